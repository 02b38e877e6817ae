//! `/farthing/<net>/reach/1`: dialling peers back when they ask for it.
//!
//! The order of checks: places, size, form, where the asker is connected from, how often it asked. Only then
//! is anything dialled, and only addresses of the asker itself. A neighbour that asks on behalf of another is believed
//! that the address is that one's. So that nobody scans ports with that, one host is dialled for it and what came of it
//! is told in one bit: reached or not, and why not is neither said nor to be told from the time it took.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use farthing_protocol::{
    Address, limits,
    reach::{BY_ANOTHER, DialBack, ReachRequest, ReachResponse, dial_back_key},
    wire,
};
use futures::{AsyncWriteExt, future::join_all};
use libp2p::{Multiaddr, PeerId};
use parking_lot::Mutex;
use tokio::{
    sync::{
        mpsc::{Sender, WeakSender},
        oneshot,
    },
    time::timeout,
};

use super::{dialer::dial_back, limiter::Limiter, place};
use crate::{
    ReachConfig, addresses,
    admission::{Admission, Shares, Visitor},
    command::{Asker, Command, Protocol},
    frame::{self, FrameError, MinimumPace},
    identity,
    line::Line,
    partners::Partners,
    report::{Reporter, Strike},
    status::Counters,
};

/// Requests being served, per peer and in all, half of them of peers with open channels alone; each dials at most eight
/// addresses.
const REQUESTS_PER_PEER_MAX: usize = 1;
const REQUESTS_MAX: usize = 16;
/// The time for a request besides its dials: two frames on a slow line.
const FRAMES_DEADLINE: Duration = Duration::from_secs(5);
const PACE: MinimumPace = MinimumPace::any(FRAMES_DEADLINE);

/// Neighbours that are asked one after the other to dial as well, while they refuse.
const STRANGERS_MAX: usize = 4;
/// All that is told of a dial on behalf of another that failed.
const NOT_REACHED: &str = "not reached";
/// The time for a neighbour's request besides its dials; the asker waits for both.
const ANOTHER_S_FRAMES_DEADLINE: Duration = Duration::from_secs(2);

/// Sends one request and reads its answer, at most as long as an honest peer takes.
pub(crate) async fn exchange(
    mut stream: Line,
    request: &ReachRequest,
    dial_deadline: Duration,
) -> Result<ReachResponse, String> {
    let patience = dial_deadline + 2 * FRAMES_DEADLINE;
    let exchange = async {
        frame::write_frame(&mut stream, &wire::encode(request), &Bytes::new(), PACE).await?;
        frame::read_head(&mut stream, limits::REACH_FRAME_BYTES_MAX, MinimumPace::any(patience)).await
    };
    let head = timeout(patience, exchange).await.map_err(|_| "it did not answer".to_owned())?;
    let head = head.map_err(|error| match error {
        // The library's words for it are for its programmers.
        FrameError::Io(_) | FrameError::Truncated { .. } => "its connection was lost".to_owned(),
        other => other.to_string(),
    })?;
    wire::decode(&head).map_err(|error| error.to_string())
}

/// Has `stranger` dial on behalf of another.
async fn ask_another(
    commands: &Sender<Command>,
    stranger: Address,
    request: &ReachRequest,
    dial_deadline: Duration,
) -> Option<ReachResponse> {
    let (reply, stream) = oneshot::channel();
    commands.send(Command::Open { owner: stranger, protocol: Protocol::Reach, reply }).await.ok()?;
    exchange(stream.await.ok()?.ok()?, request, dial_deadline).await.ok()
}

/// The places of requests: wallets are free, so strangers of one address range have a part.
fn places() -> Arc<Admission> {
    Admission::shared(Shares::half_for_partners(REQUESTS_PER_PEER_MAX, REQUESTS_MAX))
}

/// Dials peers that ask for it.
#[derive(Debug)]
pub(crate) struct ReachServer {
    admission: Arc<Admission>,
    partners: Partners,
    limiter: Mutex<Limiter>,
    /// The swarm's task, which knows where peers are connected from. Weak: it must end without us.
    commands: WeakSender<Command>,
    dial_deadline: Duration,
    allow_private: bool,
    reporter: Reporter,
    counters: Arc<Counters>,
}

impl ReachServer {
    pub(crate) fn new(
        config: &ReachConfig,
        allow_private: bool,
        commands: WeakSender<Command>,
        partners: Partners,
        reporter: Reporter,
        counters: Arc<Counters>,
    ) -> Arc<Self> {
        Arc::new(Self {
            admission: places(),
            partners,
            limiter: Mutex::new(Limiter::new(config.asker_interval)),
            commands,
            dial_deadline: config.dial_deadline,
            allow_private,
            reporter,
            counters,
        })
    }

    /// Takes a stream that `peer` opened. Runs on its own task from here.
    pub(crate) fn accept(self: &Arc<Self>, peer: Address, stream: Line) {
        let visitor = Visitor::of(peer, &stream, &self.partners);
        let Some(permit) = self.admission.admit_visitor(visitor) else {
            return Counters::add(&self.counters.streams_reset);
        };
        let server = Arc::clone(self);
        tokio::spawn(async move {
            server.serve(peer, stream).await;
            drop(permit);
        });
    }

    async fn serve(&self, peer: Address, mut stream: Line) {
        let head = frame::read_head(&mut stream, limits::REACH_FRAME_BYTES_MAX, PACE);
        let response = match timeout(FRAMES_DEADLINE, head).await {
            Ok(Ok(head)) => self.answer(peer, &head).await,
            Ok(Err(error @ FrameError::TooLarge { .. })) => {
                self.reporter.strike(peer, Strike::TooLarge);
                ReachResponse::Refused(error.to_string())
            }
            // A peer that is too slow, or gone, finds its stream closed.
            Ok(Err(_)) | Err(_) => return,
        };
        if !matches!(response, ReachResponse::Dialled(..)) {
            Counters::add(&self.counters.dial_backs_refused);
        }
        let head = wire::encode(&response);
        if frame::write_frame(&mut stream, &head, &Bytes::new(), PACE).await.is_ok() {
            let _ = timeout(FRAMES_DEADLINE, stream.close()).await;
        }
    }

    async fn answer(&self, peer: Address, head: &[u8]) -> ReachResponse {
        let request: ReachRequest = match wire::decode(head) {
            Ok(request) => request,
            Err(error) => {
                self.reporter.strike(peer, Strike::Malformed);
                return ReachResponse::Refused(error.to_string());
            }
        };
        if request.addresses.len() > limits::REACH_ADDRESSES_MAX {
            self.reporter.strike(peer, Strike::TooLarge);
            return ReachResponse::Refused(format!("at most {} addresses", limits::REACH_ADDRESSES_MAX));
        }
        let Some(asker) = self.asker(peer).await else {
            return ReachResponse::Refused("you are not connected".to_owned());
        };
        let admitted = {
            let mut limiter = self.limiter.lock();
            limiter.admit(peer, &asker.ips, Instant::now())
        };
        if let Err(wait) = admitted {
            return ReachResponse::TooSoon { retry_after_secs: wait.as_secs() + 1 };
        }
        match &request.on_behalf_of {
            None => {
                let own =
                    self.dial_all(&request, 0, asker.id, |address| self.may_be_dialled(address, &asker.ips));
                let (own, by_another) = tokio::join!(own, self.have_another_dial(&asker, &request));
                ReachResponse::Dialled(own, by_another)
            }
            Some(id) => match PeerId::from_bytes(id).ok().filter(|id| identity::wallet(id).is_some()) {
                Some(id) => ReachResponse::Dialled(self.dial_for_another(&request, id).await, None),
                None => ReachResponse::Refused("this is not the peer id of a wallet".to_owned()),
            },
        }
    }

    /// Has a neighbour dial as well that the asker has not written to, if there is one and it has the time.
    async fn have_another_dial(&self, asker: &Asker, request: &ReachRequest) -> Option<Vec<DialBack>> {
        // The neighbour takes our word for it that the asker is at these addresses.
        let are_the_asker_s = request.addresses.iter().all(|bytes| {
            let address = Multiaddr::try_from(bytes.to_vec());
            address.is_ok_and(|address| self.may_be_dialled(&address, &asker.ips).is_ok())
        });
        let known = request.known.as_ref().filter(|_| are_the_asker_s)?.iter().take(limits::REACH_KNOWN_MAX);
        let not_at =
            known.filter_map(|bytes| place::ip_from(bytes)).chain(asker.ips.iter().copied()).collect();
        let commands = self.commands.upgrade()?;
        let (reply, strangers) = oneshot::channel();
        let wanted = Command::Strangers { not_at, salt: request.nonce, count: STRANGERS_MAX, reply };
        commands.send(wanted).await.ok()?;
        let on_behalf_of = Some(asker.id.to_bytes().into());
        let passed_on = ReachRequest { known: None, on_behalf_of, ..request.clone() };
        let ask_in_turn = async {
            for stranger in strangers.await.ok()? {
                match ask_another(&commands, stranger, &passed_on, self.dial_deadline).await {
                    Some(ReachResponse::Dialled(ends, _)) => return Some(ends),
                    // It dialled for somebody a moment ago, or is gone.
                    Some(ReachResponse::TooSoon { .. } | ReachResponse::Refused(_)) | None => {}
                }
            }
            None
        };
        timeout(self.dial_deadline + ANOTHER_S_FRAMES_DEADLINE, ask_in_turn).await.ok()?
    }

    /// Dials the addresses of one host, the first that is named, and says no more than whether that was `expected`.
    async fn dial_for_another(&self, request: &ReachRequest, expected: PeerId) -> Vec<DialBack> {
        let told = Instant::now() + self.dial_deadline;
        let is_dialable = |address: &Multiaddr| addresses::is_dialable(address, self.allow_private);
        let named = request.addresses.iter().filter_map(|bytes| Multiaddr::try_from(bytes.to_vec()).ok());
        let host = named.filter(|address| is_dialable(address)).find_map(|address| addresses::ip(&address));
        let may_be_dialled = |address: &Multiaddr| match addresses::ip(address) {
            _ if !is_dialable(address) => Err("not dialled: this is not a public address".to_owned()),
            ip if ip == host => Ok(()),
            _ => Err("not dialled: only one host is dialled per request".to_owned()),
        };
        let mut ends = self.dial_all(request, BY_ANOTHER, expected, may_be_dialled).await;
        for end in &mut ends {
            if let DialBack::Failed(why) = end {
                NOT_REACHED.clone_into(why);
            }
        }
        if ends.iter().any(|end| matches!(end, DialBack::Failed(_))) {
            tokio::time::sleep_until(told.into()).await;
        }
        ends
    }

    /// Dials every address of a request, as far as `may_be_dialled` lets it.
    async fn dial_all(
        &self,
        request: &ReachRequest,
        index_first: u8,
        expected: PeerId,
        may_be_dialled: impl Fn(&Multiaddr) -> Result<(), String>,
    ) -> Vec<DialBack> {
        let dials = (index_first..).zip(&request.addresses).map(|(index, bytes)| {
            let may_be_dialled = &may_be_dialled;
            async move {
                let admitted = || {
                    let address = Multiaddr::try_from(bytes.to_vec())
                        .map(|address| addresses::without_peer(&address))
                        .map_err(|_| "this is not a multiaddress".to_owned())?;
                    may_be_dialled(&address)?;
                    let key = dial_back_key(&request.nonce, index)
                        .ok_or_else(|| "this nonce makes no key".to_owned())?;
                    Ok::<_, String>((address, key))
                };
                let (address, key) = match admitted() {
                    Ok(admitted) => admitted,
                    Err(why) => return DialBack::Declined(cut(&why)),
                };
                Counters::add(&self.counters.dial_backs);
                let dialled = dial_back(address, expected, &key, self.dial_deadline).await;
                dialled.map_or_else(|why| DialBack::Failed(cut(&why)), |()| DialBack::Reached)
            }
        });
        join_all(dials).await
    }

    fn may_be_dialled(&self, address: &Multiaddr, of_peer: &[IpAddr]) -> Result<(), String> {
        if place::may_be_dialled(address, of_peer, self.allow_private) {
            return Ok(());
        }
        let ips: Vec<String> = of_peer.iter().map(ToString::to_string).collect();
        Err(format!("not dialled: you are connected from {}", ips.join(", ")))
    }

    async fn asker(&self, peer: Address) -> Option<Asker> {
        let (reply, answer) = oneshot::channel();
        let commands = self.commands.upgrade()?;
        commands.send(Command::Asker { peer, reply }).await.ok()?;
        answer.await.ok()?
    }
}

fn cut(reason: &str) -> String {
    reason.chars().take(limits::REACH_REASON_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wallets_of_one_address_range_leave_others_places_to_be_dialled_back() {
        let places = places();
        let visitor = |wallet: u8, range: u8, is_partner| Visitor {
            wallet: Address::from_bytes([wallet; 20]),
            range: Some([9, 9, range, 0].into()),
            is_partner,
        };
        let admitted = (0..20).filter_map(|wallet| places.admit_visitor(visitor(wallet, 1, false)));
        let crowd: Vec<_> = admitted.collect();
        assert_eq!(crowd.len(), 2);
        let other = places.admit_visitor(visitor(30, 2, false));
        assert!(other.is_some(), "another stranger");
        let more = (40..60).filter_map(|wallet| places.admit_visitor(visitor(wallet, wallet, false)));
        let strangers: Vec<_> = more.collect();
        assert_eq!(crowd.len() + strangers.len() + 1, REQUESTS_MAX / 2);
        assert!(places.admit_visitor(visitor(70, 1, true)).is_some(), "a partner");
    }
}
