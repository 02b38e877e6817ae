//! Undecided calls: nobody waits for them any more, and their owner has not told how they ended.
//!
//! Each of them left its owner a voucher that is good. So the sum of their prices with one owner has a limit: beyond it a
//! call is refused before anything is promised, but for one trial at a time. In order: a call counts once its time is up
//! ([`UndecidedCalls::note`]), or because an earlier run left it open ([`UndecidedCalls::restore`]); each new call is held
//! against the sum ([`UndecidedCalls::admit`]); a call's end, whoever tells it, takes it out ([`UndecidedCalls::end`]). What
//! that end is judged by stays with the call until then ([`OpenVerdict`]).
//!
//! Invariant: calls whose callers still wait do not count, so that it does not matter how many are made at once.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use farthing_protocol::{Address, CallId, Usdc, resolution::COPY_LIFETIME};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    open_verdict::OpenVerdict,
    pauses::{ASK_EVERY_FIRST, ASK_EVERY_MAX},
};

/// The least that may be undecided, in prices of the call at hand, whatever the setting says: dear calls have to work, too.
const PRICES_MIN: u64 = 10;
/// Since the last call that became undecided, until one is tried beyond the limit. An honest owner has told by then how all
/// of them ended.
const TRIAL_AFTER: Duration = Duration::from_secs(3_600);
/// While one trial is under way.
const SOON: Duration = Duration::from_secs(1);
/// The time in which an honest owner tells how calls ended that a crash of this node left open: its word on them counts only
/// once no copy of before can arrive ([`COPY_LIFETIME`]). Each pause between questions is twice the one before, so the first
/// question after that leaves before twice the time and [`ASK_EVERY_FIRST`]; the rest is for its answer.
const TOLD_WITHIN: Duration =
    COPY_LIFETIME.saturating_mul(2).saturating_add(ASK_EVERY_FIRST).saturating_add(ANSWERED_WITHIN);
const ANSWERED_WITHIN: Duration = Duration::from_millis(2_500);

/// The undecided calls of all owners. A cheap handle.
#[derive(Clone, Debug, Default)]
pub struct UndecidedCalls(Arc<Mutex<UndecidedState>>);

#[derive(Debug, Default)]
struct UndecidedState {
    owners: HashMap<Address, UndecidedOwner>,
    /// The owners that a trial is made with.
    tried: HashSet<Address>,
    /// The moment from which calls of an earlier run are told of.
    told_by: Option<Instant>,
}

#[derive(Debug, Default)]
struct UndecidedOwner {
    calls: HashMap<CallId, UndecidedCall>,
    /// The prices of this run's calls, and of those of earlier runs.
    sum: Usdc,
    sum_before: Usdc,
    /// The highest price of a call since there are any.
    dearest: Usdc,
    /// The time when one became undecided last.
    newest: Option<Instant>,
}

#[derive(Debug)]
struct UndecidedCall {
    price: Usdc,
    is_of_before: bool,
    unjudged: Option<OpenVerdict>,
}

/// The undecided calls of one owner, in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndecidedSum {
    pub owner: Address,
    pub calls: usize,
    pub sum: Usdc,
    /// For the dearest of them.
    pub limit: Usdc,
}

/// The reason that no further money is risked with an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooMuchUndecided {
    #[error(
        "the owner {owner} has not reported how calls for {sum} USDC ended, and at most {limit} USDC may be undecided \
         with one owner (`spending.undecided_max`, or ten times the price of the call)"
    )]
    Call { owner: Address, sum: Usdc, limit: Usdc, wait_secs: u64 },
    #[error(
        "the owner {owner} has not reported how calls for {sum} USDC ended, and above {limit} USDC this node adds \
         nothing to the channel: this is half of what may be undecided (`spending.undecided_max`, or ten times the \
         price of the call)"
    )]
    Deposit { owner: Address, sum: Usdc, limit: Usdc },
}

impl TooMuchUndecided {
    /// Returns the time after which another try may do better.
    pub const fn wait_secs(&self) -> u64 {
        match self {
            Self::Call { wait_secs, .. } => *wait_secs,
            Self::Deposit { .. } => ASK_EVERY_MAX.as_secs(),
        }
    }
}

/// The right to one call beyond the limit; ends when dropped.
#[derive(Debug)]
pub struct UndecidedTrial {
    calls: UndecidedCalls,
    owner: Address,
}

impl Drop for UndecidedTrial {
    fn drop(&mut self) {
        self.calls.0.lock().tried.remove(&self.owner);
    }
}

impl UndecidedSum {
    /// Tells whether nothing is added to the owner's channel any more.
    pub fn is_above_half(&self) -> bool {
        self.sum > half(self.limit)
    }
}

impl UndecidedCalls {
    /// Counts a call that nobody waits for any more, and keeps what its end is judged by.
    pub fn note(&self, owner: Address, call_id: CallId, price: Usdc, unjudged: Option<OpenVerdict>) {
        self.0.lock().note(owner, call_id, (price, unjudged), Instant::now());
    }

    /// Counts a call that an earlier run left open; it is told of once its owner has had the time to tell its end.
    pub fn restore(&self, owner: Address, call_id: CallId, price: Usdc) {
        self.0.lock().restore(owner, call_id, price, Instant::now());
    }

    /// Takes out what a call's end is judged by, for whoever learns the end or works on the call; the call counts on.
    #[must_use]
    pub fn take_unjudged(&self, owner: Address, call_id: CallId) -> Option<OpenVerdict> {
        self.0.lock().call(owner, call_id)?.unjudged.take()
    }

    /// Counts a call no more: its end is known.
    pub fn end(&self, owner: Address, call_id: CallId) {
        let unjudged = self.0.lock().end(owner, call_id);
        // After the lock: a trial may end with it.
        drop(unjudged);
    }

    /// Admits a call at `price`, where `most` may be undecided; returns the trial it is, beyond that.
    ///
    /// # Errors
    /// [`TooMuchUndecided::Call`].
    pub fn admit(
        &self,
        owner: Address,
        price: Usdc,
        most: Usdc,
    ) -> Result<Option<UndecidedTrial>, TooMuchUndecided> {
        let is_trial = self.0.lock().admit(owner, price, most, Instant::now())?;
        Ok(is_trial.then(|| UndecidedTrial { calls: self.clone(), owner }))
    }

    /// Checks that this node may add to the owner's channel by itself, for a call at `price`.
    ///
    /// # Errors
    /// [`TooMuchUndecided::Deposit`].
    pub fn check_deposit(&self, owner: Address, price: Usdc, most: Usdc) -> Result<(), TooMuchUndecided> {
        self.0.lock().check_deposit(owner, price, most)
    }

    /// Lists the undecided calls themselves.
    pub fn ids(&self) -> HashSet<CallId> {
        self.0.lock().owners.values().flat_map(|owner| owner.calls.keys()).copied().collect()
    }

    /// Lists the owners with undecided calls.
    pub fn all(&self, most: Usdc) -> Vec<UndecidedSum> {
        self.0.lock().all(most, Instant::now())
    }
}

impl UndecidedState {
    fn note(
        &mut self,
        owner: Address,
        call_id: CallId,
        (price, unjudged): (Usdc, Option<OpenVerdict>),
        now: Instant,
    ) {
        if let Some(known) = self.call(owner, call_id) {
            known.unjudged = unjudged;
            return;
        }
        let call = UndecidedCall { price, is_of_before: false, unjudged };
        if let Some(of_owner) = self.add(owner, call_id, call) {
            of_owner.newest = Some(now);
        }
    }

    fn restore(&mut self, owner: Address, call_id: CallId, price: Usdc, now: Instant) {
        self.told_by.get_or_insert(now + TOLD_WITHIN);
        self.add(owner, call_id, UndecidedCall { price, is_of_before: true, unjudged: None });
    }

    /// Counts a call that costs something, once; `None` when there was nothing to count.
    fn add(&mut self, owner: Address, call_id: CallId, call: UndecidedCall) -> Option<&mut UndecidedOwner> {
        if call.price.is_zero() {
            return None;
        }
        let of_owner = self.owners.entry(owner).or_default();
        let Entry::Vacant(place) = of_owner.calls.entry(call_id) else { return None };
        let UndecidedCall { price, is_of_before, .. } = call;
        place.insert(call);
        of_owner.dearest = of_owner.dearest.max(price);
        let sum = of_owner.sum_with(is_of_before);
        *sum = sum.saturating_add(price);
        Some(of_owner)
    }

    fn end(&mut self, owner: Address, call_id: CallId) -> Option<OpenVerdict> {
        let of_owner = self.owners.get_mut(&owner)?;
        let UndecidedCall { price, is_of_before, unjudged } = of_owner.calls.remove(&call_id)?;
        let sum = of_owner.sum_with(is_of_before);
        *sum = sum.saturating_sub(price);
        if of_owner.calls.is_empty() {
            self.owners.remove(&owner);
        }
        unjudged
    }

    fn call(&mut self, owner: Address, call_id: CallId) -> Option<&mut UndecidedCall> {
        self.owners.get_mut(&owner)?.calls.get_mut(&call_id)
    }

    /// Admits a call; `true` for one that is a trial.
    fn admit(
        &mut self,
        owner: Address,
        price: Usdc,
        most: Usdc,
        now: Instant,
    ) -> Result<bool, TooMuchUndecided> {
        let (sum, limit) = (self.sum(owner), limit(price, most));
        if price.is_zero() || sum.is_zero() || sum.saturating_add(price) <= limit {
            return Ok(false);
        }
        let newest = self.owners.get(&owner).and_then(|of_owner| of_owner.newest);
        let since = newest.map_or(TRIAL_AFTER, |newest| now.saturating_duration_since(newest));
        let rest = TRIAL_AFTER.saturating_sub(since);
        if rest.is_zero() && self.tried.insert(owner) {
            return Ok(true);
        }
        // By then its owner was asked again.
        let wait_secs = rest.clamp(SOON, ASK_EVERY_MAX).as_secs();
        Err(TooMuchUndecided::Call { owner, sum, limit, wait_secs })
    }

    fn check_deposit(&self, owner: Address, price: Usdc, most: Usdc) -> Result<(), TooMuchUndecided> {
        let (sum, limit) = (self.sum(owner), half(limit(price, most)));
        if sum > limit { Err(TooMuchUndecided::Deposit { owner, sum, limit }) } else { Ok(()) }
    }

    fn all(&self, most: Usdc, now: Instant) -> Vec<UndecidedSum> {
        let is_early = self.told_by.is_some_and(|told_by| now < told_by);
        let sums = self.owners.iter().map(|(&owner, of_owner)| UndecidedSum {
            owner,
            calls: of_owner.calls.len(),
            sum: if is_early { of_owner.sum } else { of_owner.in_all() },
            limit: limit(of_owner.dearest, most),
        });
        let mut sums: Vec<_> = sums.filter(|of_owner| !of_owner.sum.is_zero()).collect();
        sums.sort_unstable_by_key(|of_owner| of_owner.owner);
        sums
    }

    fn sum(&self, owner: Address) -> Usdc {
        self.owners.get(&owner).map_or(Usdc::ZERO, UndecidedOwner::in_all)
    }
}

impl UndecidedOwner {
    fn in_all(&self) -> Usdc {
        self.sum.saturating_add(self.sum_before)
    }

    /// The sum that a call is a part of.
    fn sum_with(&mut self, is_of_before: bool) -> &mut Usdc {
        if is_of_before { &mut self.sum_before } else { &mut self.sum }
    }
}

/// The most that may be undecided with one owner, for a call at `price`.
fn limit(price: Usdc, most: Usdc) -> Usdc {
    most.max(price.saturating_mul(PRICES_MIN))
}

const fn half(limit: Usdc) -> Usdc {
    Usdc::from_micros(limit.micros() / 2)
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use farthing_protocol::{Listing, SecretKey, ServiceNonce, Signed};

    use super::*;
    use crate::consumer::{channels::tests::usdc, open_verdict::BoughtVersion};

    const OWNER: Address = Address::from_bytes([1; 20]);
    const OTHER: Address = Address::from_bytes([2; 20]);
    const MOST: Usdc = usdc(100);

    const fn call_id(number: u8) -> CallId {
        CallId::from_bytes([number; 16])
    }

    /// A version that nobody has in memory.
    fn bought() -> BoughtVersion {
        let key = SecretKey::from_bytes(&[7; 32]).unwrap();
        let first = Listing::first("test", key.address(), ServiceNonce::from_bytes([1; 16]), 1);
        let listing = Listing { name: "Test".to_owned(), category: "other".to_owned(), ..first };
        let listing = Signed::sign(&listing, &key).unwrap().verify().unwrap();
        BoughtVersion { known: Weak::new(), listing: Arc::new(listing) }
    }

    /// So many calls at a price that became undecided just now.
    fn undecided(calls: u8, price: u64, now: Instant) -> UndecidedState {
        let mut state = UndecidedState::default();
        (0..calls).for_each(|number| state.note(OWNER, call_id(number), (usdc(price), None), now));
        state
    }

    fn is_refused(state: &mut UndecidedState, price: u64, now: Instant) -> bool {
        state.admit(OWNER, usdc(price), MOST, now).is_err()
    }

    #[test]
    fn calls_are_admitted_up_to_the_limit_and_dear_ones_up_to_ten_prices() {
        let now = Instant::now();
        for (undecided_at_5, price, refused) in
            [(0, 5, false), (19, 5, false), (20, 5, true), (20, 1, true), (19, 6, true), (20, 0, false)]
        {
            let mut state = undecided(undecided_at_5, 5, now);
            assert_eq!(is_refused(&mut state, price, now), refused, "{undecided_at_5} and one at {price}");
        }
        assert!(!is_refused(&mut undecided(9, 1_000, now), 1_000, now));
        assert!(is_refused(&mut undecided(10, 1_000, now), 1_000, now));
        let refusal = undecided(20, 5, now).admit(OWNER, usdc(5), MOST, now).unwrap_err();
        let wait_secs = ASK_EVERY_MAX.as_secs();
        assert_eq!(refusal, TooMuchUndecided::Call { owner: OWNER, sum: MOST, limit: MOST, wait_secs });
        let told = refusal.to_string();
        assert!(told.contains(&OWNER.to_string()) && told.contains("0.0001 USDC"), "{told}");
    }

    #[test]
    fn a_calls_end_gives_room_again_once_and_owners_are_counted_apart() {
        let now = Instant::now();
        let mut state = undecided(20, 5, now);
        // It is said again of one that is counted.
        state.note(OWNER, call_id(1), (usdc(5), None), now);
        assert_eq!(state.sum(OWNER), usdc(100));
        assert!(state.admit(OTHER, usdc(5), MOST, now).is_ok());
        state.end(OTHER, call_id(1));
        state.end(OWNER, call_id(200));
        assert!(is_refused(&mut state, 5, now));
        for _ in 0..2 {
            state.end(OWNER, call_id(1));
            assert_eq!(state.sum(OWNER), usdc(95));
        }
        assert!(!is_refused(&mut state, 5, now));
        (0..20).for_each(|number| drop(state.end(OWNER, call_id(number))));
        assert!(state.owners.is_empty() && state.all(MOST, now).is_empty());
    }

    #[test]
    fn beyond_the_limit_one_trial_at_a_time_is_made_once_no_call_became_undecided_for_long() {
        let begun = Instant::now();
        let mut state = undecided(20, 5, begun);
        let waits = |state: &mut UndecidedState, now| match state.admit(OWNER, usdc(5), MOST, now) {
            Err(refused) => refused.wait_secs(),
            Ok(is_trial) => {
                assert!(is_trial, "it is beyond the limit");
                0
            }
        };
        let due = begun + TRIAL_AFTER;
        assert_eq!(waits(&mut state, due - Duration::from_secs(61)), 60);
        assert_eq!(waits(&mut state, due - Duration::from_secs(7)), 7);
        assert_eq!(waits(&mut state, due), 0);
        assert_eq!(waits(&mut state, due), 1, "one at a time");
        // It was answered.
        state.tried.remove(&OWNER);
        assert_eq!(waits(&mut state, due), 0, "the next one");
        // It was not.
        state.tried.remove(&OWNER);
        state.note(OWNER, call_id(99), (usdc(5), None), due);
        assert_eq!(waits(&mut state, due + Duration::from_secs(1)), 60);
        assert_eq!(waits(&mut state, due + TRIAL_AFTER), 0);
    }

    #[test]
    fn what_a_call_is_judged_by_stays_until_its_end_and_an_earlier_runs_call_has_nothing() {
        let calls = UndecidedCalls::default();
        let note = || {
            let unjudged =
                OpenVerdict { bought: bought(), made: Instant::now(), was_taken: false, trial: None };
            calls.note(OWNER, call_id(1), usdc(5), Some(unjudged));
        };
        let take = |number| calls.take_unjudged(OWNER, call_id(number)).is_some();
        calls.restore(OWNER, call_id(2), usdc(5));
        note();
        assert_eq!([take(1), take(1), take(2)], [true, false, false], "once");
        // Whoever took it, and did not learn the end, gives it back.
        note();
        assert!(take(1));
        note();
        calls.end(OWNER, call_id(1));
        assert!(!take(1));
        assert_eq!(calls.0.lock().sum(OWNER), usdc(5));
    }

    #[test]
    fn a_trial_ends_when_it_is_dropped() {
        let calls = UndecidedCalls::default();
        calls.restore(OWNER, call_id(1), usdc(100));
        let trial = calls.admit(OWNER, usdc(1), MOST).unwrap();
        assert!(trial.is_some() && calls.admit(OWNER, usdc(1), MOST).is_err());
        drop(trial);
        assert!(calls.admit(OWNER, usdc(1), MOST).unwrap().is_some());
    }

    #[test]
    fn calls_that_an_earlier_run_left_open_count_at_once_and_are_told_of_once_an_honest_owner_had_its_time() {
        let begun = Instant::now();
        let mut state = UndecidedState::default();
        (0..20).for_each(|number| state.restore(OWNER, call_id(number), usdc(5), begun));
        let later = begun + TOLD_WITHIN;
        assert_eq!(state.all(MOST, later - Duration::from_millis(1)), []);
        assert_eq!(state.admit(OWNER, usdc(5), MOST, begun), Ok(true), "a trial");
        assert!(is_refused(&mut state, 5, begun) && state.check_deposit(OWNER, usdc(5), MOST).is_err());
        let all = [UndecidedSum { owner: OWNER, calls: 20, sum: usdc(100), limit: MOST }];
        assert_eq!(state.all(MOST, later), all);
        state.end(OWNER, call_id(1));
        assert!(!is_refused(&mut state, 5, begun));
        // This run's are told of at once.
        let mut state = undecided(20, 5, begun);
        state.restore(OTHER, call_id(1), usdc(5), begun);
        assert_eq!(state.all(MOST, begun), all);
    }

    #[test]
    fn nothing_is_added_to_a_channel_above_half_of_the_limit() {
        let now = Instant::now();
        for (undecided_at_5, price, refused) in [(10, 5, false), (11, 5, true), (11, 11, false)] {
            let state = undecided(undecided_at_5, 5, now);
            assert_eq!(state.check_deposit(OWNER, usdc(price), MOST).is_err(), refused, "{undecided_at_5}");
            let is_above_half = state.all(MOST, now)[0].is_above_half();
            assert_eq!(is_above_half, undecided_at_5 > 10);
        }
        // Two dear ones are a fifth of what may be.
        assert!(!undecided(2, 1_000, now).all(MOST, now)[0].is_above_half());
    }
}
