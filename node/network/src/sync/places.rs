//! Places for the catalog sessions that others open: one for each peer, few for one address range, half of them for
//! peers with open channels. When there is none left, whoever has been silent, or has had its turn, makes room.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{NetworkLimits, admission::Visitor};

/// The sessions under way. A cheap handle.
#[derive(Clone, Debug)]
pub(super) struct Places(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    rules: Rules,
    next: u64,
    sessions: Vec<CatalogSession>,
}

#[derive(Clone, Copy, Debug)]
struct Rules {
    all_max: usize,
    strangers_max: usize,
    per_range_max: usize,
    quiet_max: Duration,
    turn_max: Duration,
}

#[derive(Debug)]
struct CatalogSession {
    number: u64,
    visitor: Visitor,
    began: Instant,
    /// Since when its opener has been waited for.
    waiting: Option<Instant>,
    ended: Arc<Notify>,
}

/// A session's place; dropping it gives it back.
pub(super) struct Place {
    places: Places,
    number: u64,
    ended: Arc<Notify>,
}

impl Places {
    pub(super) fn new(limits: &NetworkLimits) -> Self {
        let all_max = limits.inbound_syncs_max;
        let rules = Rules {
            all_max,
            strangers_max: all_max.div_ceil(2),
            per_range_max: limits.inbound_syncs_per_range_max,
            quiet_max: limits.sync_quiet_max,
            turn_max: limits.sync_turn_max,
        };
        Self(Arc::new(Mutex::new(State { rules, next: 0, sessions: Vec::new() })))
    }

    /// A place for a session of `visitor`, if need be in place of another one, which ends.
    pub(super) fn enter(&self, visitor: Visitor, now: Instant) -> Option<Place> {
        let mut state = self.0.lock();
        state.make_room(&visitor, now)?;
        let (number, ended) = (state.next, Arc::new(Notify::new()));
        state.next += 1;
        let session =
            CatalogSession { number, visitor, began: now, waiting: Some(now), ended: Arc::clone(&ended) };
        state.sessions.push(session);
        Some(Place { places: self.clone(), number, ended })
    }
}

impl State {
    /// Nothing when there is no room to be made.
    fn make_room(&mut self, visitor: &Visitor, now: Instant) -> Option<()> {
        let of = |rule: &dyn Fn(&Visitor) -> bool| {
            self.sessions.iter().filter(|session| rule(&session.visitor)).count()
        };
        let is_same_range = |other: &Visitor| !other.is_partner && other.range == visitor.range;
        let is_full = of(&|_| true) >= self.rules.all_max;
        if of(&|other| other.wallet == visitor.wallet) > 0 {
            return None;
        }
        if visitor.is_partner {
            return if is_full { self.end_one(&|_| true, now) } else { Some(()) };
        }
        if visitor.range.is_some() && of(&is_same_range) >= self.rules.per_range_max {
            // One range makes room for itself alone.
            return self.end_one(&is_same_range, now);
        }
        if is_full || of(&|other| !other.is_partner) >= self.rules.strangers_max {
            return self.end_one(&|other| !other.is_partner, now);
        }
        Some(())
    }

    /// Ends, of those that `rule` names, the session that was silent longest, or else had the longest turn.
    fn end_one(&mut self, rule: &dyn Fn(&Visitor) -> bool, now: Instant) -> Option<()> {
        let Rules { quiet_max, turn_max, .. } = self.rules;
        let rank = |session: &CatalogSession| {
            let quiet = session.waiting.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
            let turn = now.saturating_duration_since(session.began);
            (quiet >= quiet_max || turn >= turn_max).then_some((quiet >= quiet_max, quiet, turn))
        };
        let candidates = self.sessions.iter().enumerate().filter(|(_, session)| rule(&session.visitor));
        let ranked = candidates.filter_map(|(at, session)| Some((rank(session)?, at)));
        let (_, at) = ranked.max()?;
        self.sessions.swap_remove(at).ended.notify_one();
        Some(())
    }
}

impl Place {
    /// The other side is waited for from now on, or has done its part.
    pub(super) fn waits(&self, waits: bool) {
        let mut state = self.places.0.lock();
        if let Some(session) = state.sessions.iter_mut().find(|session| session.number == self.number) {
            session.waiting = waits.then(Instant::now);
        }
    }

    /// Returns when the session has to make room.
    pub(super) async fn ended(&self) {
        self.ended.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.0.lock().sessions.retain(|session| session.number != self.number);
    }
}

farthing_os::hidden!(Place { number });

#[cfg(test)]
mod tests {
    use farthing_protocol::Address;

    use super::*;

    fn visitor(wallet: u8, range: Option<u8>, is_partner: bool) -> Visitor {
        let range = range.map(|range| [9, 9, range, 0].into());
        Visitor { wallet: Address::from_bytes([wallet; 20]), range, is_partner }
    }

    fn places() -> (Places, Instant) {
        (Places::new(&NetworkLimits::default()), Instant::now())
    }

    #[test]
    fn sessions_of_many_wallets_leave_half_of_the_places_to_partners() {
        let (places, now) = places();
        let strangers: Vec<_> =
            (0..64).filter_map(|n| places.enter(visitor(n, Some(n), false), now)).collect();
        assert_eq!(strangers.len(), 8);
        let partners: Vec<_> = (64..128).filter_map(|n| places.enter(visitor(n, None, true), now)).collect();
        assert_eq!(partners.len(), 8);
    }

    #[test]
    fn one_peer_has_one_session_and_one_address_range_two() {
        let (places, now) = places();
        let _one = places.enter(visitor(1, Some(1), false), now).unwrap();
        assert!(places.enter(visitor(1, Some(1), false), now).is_none());
        let _two = places.enter(visitor(2, Some(1), false), now).unwrap();
        assert!(places.enter(visitor(3, Some(1), false), now).is_none());
        assert!(places.enter(visitor(4, Some(2), false), now).is_some());
    }

    #[test]
    fn whoever_is_silent_or_had_its_turn_makes_room() {
        let (places, now) = places();
        let held: Vec<_> = (0..8).map(|n| places.enter(visitor(n, Some(n), false), now).unwrap()).collect();
        let late = |now| places.enter(visitor(99, Some(99), false), now);
        held.iter().for_each(|place| place.waits(false));
        assert!(late(now + Duration::from_secs(19)).is_none(), "all of them are at work");
        let first = late(now + Duration::from_secs(20)).expect("all of them had their turn");
        held[5].waits(true);
        let soon = Instant::now() + Duration::from_secs(3);
        drop(places.enter(visitor(98, Some(98), false), soon).expect("one of them is silent"));
        assert!(!places.0.lock().sessions.iter().any(|session| session.number == held[5].number));
        drop(first);
    }
}
