//! Details of new services, fetched ahead, so that a search also finds words of their operations.
//!
//! Nobody asked for them, and a listing costs nothing, nor does a record that names the addresses of anybody. So only
//! who is connected is asked: the owner, and a few neighbours, which heard of the service as well and read it too. They
//! may have read it a moment later, so what nobody had is asked for again, ever more rarely.
//!
//! Invariant: a listing makes no node dial anybody.

use std::{collections::HashMap, time::Duration};

use farthing_os::clock;
use farthing_protocol::{Address, Hash, ServiceId, listing::Pin};
use tokio::{sync::broadcast, task::JoinSet, time::Instant};

use super::{Catalog, CatalogError, content::pin_of};

/// Details fetched ahead; most are a few KiB, and a network of thousands of services must not become a flood.
const BYTES_MAX: u32 = 64 * 1024;
const TOGETHER: usize = 4;
/// A peer that does not answer must not keep the others waiting.
const WITHIN: Duration = Duration::from_secs(10);
/// Neighbours asked besides the owner, others each time.
const ASKED_MAX: usize = 3;
/// Until what nobody had is asked for again: four times as long each time.
const AGAIN_FIRST: Duration = Duration::from_secs(2);
const AGAIN_MAX: u32 = 4;
/// Services that wait for that; beyond, they are read when somebody looks at them.
const WAITING_MAX: usize = 256;

/// One service to be looked into, and how often it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    service: ServiceId,
    times: u32,
}

impl Catalog {
    /// Follows what changes in the store and fetches small details ahead, a few at a time. When many services come
    /// at once, as to a newcomer, some are passed over and fetched when somebody looks at them.
    ///
    /// A service that is in use keeps the version it is used with until a call takes a newer one: a dearer one is paid
    /// for only within the caller's `max_price`, or after the owner's refusal has said so to the caller.
    pub async fn follow_changes(&self) {
        let (mut changes, mut looking) = (self.0.store.changes(), JoinSet::new());
        let mut again = Again::default();
        loop {
            let due = again.next().unwrap_or_else(|| Instant::now() + AGAIN_FIRST);
            let look = tokio::select! {
                changed = changes.recv() => match changed {
                    Ok(service) => Look { service, times: 0 },
                    Err(broadcast::error::RecvError::Lagged(_)) => continue,
                    Err(broadcast::error::RecvError::Closed) => return,
                },
                Some(looked) = looking.join_next() => {
                    again.note(looked.ok().flatten(), Instant::now());
                    continue;
                }
                () = tokio::time::sleep_until(due) => match again.take_due(Instant::now()) {
                    Some(look) => look,
                    None => continue,
                },
            };
            if looking.len() >= TOGETHER
                && let Some(looked) = looking.join_next().await
            {
                again.note(looked.ok().flatten(), Instant::now());
            }
            let catalog = self.clone();
            looking.spawn(async move { catalog.look_ahead(look).await });
        }
    }

    /// Gives the look back when nobody had what it needs.
    async fn look_ahead(&self, look: Look) -> Option<Look> {
        match self.fetch_ahead(look).await {
            Ok(is_read) => (!is_read).then_some(look),
            Err(error) => {
                tracing::debug!(service = %look.service, %error, "not fetched ahead");
                None
            }
        }
    }

    /// Fetches what is missing of a service, and returns whether there is nothing more to be done.
    async fn fetch_ahead(&self, look: Look) -> Result<bool, CatalogError> {
        let Some(entry) = self.0.store.get(look.service, clock::now_secs())? else { return Ok(true) };
        if let Some(own) = self.0.own.service(look.service) {
            if entry.listing.seq > own.known().listing().seq {
                self.0.overtaken.notify_one();
            }
            self.index(own.known()).await;
            return Ok(true);
        }
        if entry.listing.tombstone || entry.listing.details_bytes > BYTES_MAX {
            return Ok(true);
        }
        let listing = entry.listing;
        let owner = listing.owner;
        let Some(blob) = self.content_ahead(pin_of(&listing), owner, look.times).await else {
            return Ok(false);
        };
        // Its bounds limit the time; a limit on the waiting would leave the work behind, beyond those of its number.
        let known = self.read_ahead(listing, blob).await?;
        match known.details().samples {
            Some(samples) if samples.bytes <= BYTES_MAX => {
                Ok(self.content_ahead(samples, owner, look.times).await.is_some())
            }
            Some(_) | None => Ok(true),
        }
    }

    /// Pinned content, from who is connected.
    async fn content_ahead(&self, pin: Pin, owner: Address, times: u32) -> Option<Vec<u8>> {
        if let Some(content) = self.at_hand(&pin.hash) {
            return Some(content);
        }
        let connected = self.0.network.connected_peers().await;
        let asking = async {
            for peer in whom_to_ask(&connected, owner, &pin.hash, times) {
                if let Ok(content) = self.fetch_from_connected(peer, pin).await {
                    return Some(content);
                }
            }
            None
        };
        tokio::time::timeout(WITHIN, asking).await.ok().flatten()
    }
}

/// The owner, if it is connected, and a few others: for each content and each time others.
fn whom_to_ask(connected: &[Address], owner: Address, hash: &Hash, times: u32) -> Vec<Address> {
    let others: Vec<Address> = connected.iter().copied().filter(|peer| *peer != owner).collect();
    let lot = usize::from(u16::from_be_bytes([hash[0], hash[1]]));
    let first = lot + ASKED_MAX * usize::try_from(times).unwrap_or(0);
    let some = (0..ASKED_MAX.min(others.len())).map(|n| others[(first + n) % others.len()]);
    connected.iter().copied().filter(|peer| *peer == owner).chain(some).collect()
}

/// The looks that found nobody, and the times at which they are repeated.
#[derive(Debug, Default)]
struct Again(HashMap<ServiceId, (Instant, Look)>);

impl Again {
    fn next(&self) -> Option<Instant> {
        self.0.values().map(|(due, _)| *due).min()
    }

    /// Takes note of a look that found nobody who has it.
    fn note(&mut self, look: Option<Look>, now: Instant) {
        let Some(Look { service, times }) = look.filter(|look| look.times < AGAIN_MAX) else { return };
        if self.0.len() < WAITING_MAX {
            let wait = AGAIN_FIRST * 4_u32.pow(times);
            self.0.entry(service).or_insert((now + wait, Look { service, times: times + 1 }));
        }
    }

    fn take_due(&mut self, now: Instant) -> Option<Look> {
        let (service, _) =
            self.0.iter().min_by_key(|(_, (due, _))| *due).filter(|(_, (due, _))| *due <= now)?;
        let service = *service;
        self.0.remove(&service).map(|(_, look)| look)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn peer(n: u8) -> Address {
        Address::from_bytes([n; 20])
    }

    #[test]
    fn nobody_is_asked_but_who_is_connected_and_all_of_them_in_the_end() {
        let connected: Vec<Address> = (1..=9).map(peer).collect();
        assert_eq!(whom_to_ask(&[], peer(7), &[0; 32], 0), []);
        assert_eq!(whom_to_ask(&[peer(7)], peer(7), &[0; 32], 0), [peer(7)]);
        let mut asked = std::collections::HashSet::new();
        for times in 0..3 {
            let now = whom_to_ask(&connected, peer(70), &[9; 32], times);
            assert_eq!(now.len(), ASKED_MAX);
            asked.extend(now);
        }
        assert_eq!(asked.len(), connected.len());
        assert_eq!(whom_to_ask(&connected, peer(7), &[9; 32], 0)[0], peer(7), "the owner comes first");
    }

    #[test]
    fn what_nobody_had_is_asked_for_a_few_times_ever_more_rarely() {
        let (mut again, mut now) = (Again::default(), Instant::now());
        let mut look = Look { service: ServiceId::from_bytes([1; 16]), times: 0 };
        let mut waits = Vec::new();
        loop {
            again.note(Some(look), now);
            let Some(due) = again.next() else { break };
            assert_eq!(again.take_due(due - Duration::from_millis(1)), None);
            waits.push((due - now).as_secs());
            now = due;
            look = again.take_due(now).unwrap();
        }
        assert_eq!(waits, [2, 8, 32, 128]);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut again = Again::default();
        for n in 0..2 * u128::try_from(WAITING_MAX).unwrap() {
            let service = ServiceId::from_bytes(n.to_be_bytes());
            again.note(Some(Look { service, times: 0 }), Instant::now());
        }
        assert_eq!(again.0.len(), WAITING_MAX);
    }
}
