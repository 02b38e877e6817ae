//! Work that an owner does for nothing: the calls that end uncharged, per payer, and the moment when the next is tried.
//!
//! They cost the owner and not the payer, so they are counted, per operation and in all. Beyond the limit one call is let
//! through now and then: whether the next one is paid, only serving it tells. A charged one clears the count of its
//! operation, so that a failed upstream that is back is known to be back with the first call. And each charged call earns
//! its operation one more, whatever the payer's other calls come to: those that are paid for are not held up by those
//! that are not.

use std::{collections::HashMap, time::Duration};

use farthing_protocol::{Address, ServiceId, limits};
use tokio::time::Instant;

const WINDOW: Duration = Duration::from_secs(60);
/// Keys remembered at once; unused ones are dropped first.
const KEYS_MAX: usize = 4096;

/// Limits of what is done for nothing.
#[derive(Clone, Copy, Debug)]
pub struct UnchargedLimits {
    /// Calls of one payer at one operation in a minute,
    pub per_minute: u32,
    /// and at all operations together.
    pub in_all: u32,
    /// From then on, the time between two that are let through all the same.
    pub trial: Duration,
}

impl Default for UnchargedLimits {
    fn default() -> Self {
        Self {
            per_minute: limits::UNCHARGED_PER_MINUTE,
            in_all: limits::UNCHARGED_PER_MINUTE_IN_ALL,
            trial: Duration::from_millis(limits::UNCHARGED_TRIAL_MS),
        }
    }
}

/// The operation that a call is of; `None` when it fits none.
pub type CalledOperation<'a> = Option<(ServiceId, &'a str)>;

/// A call that has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotYet {
    /// The limit that it meets.
    pub limit: u32,
    /// True for the limit of all operations together.
    pub is_in_all: bool,
    pub wait: Duration,
}

/// The counts of all payers.
#[derive(Debug)]
pub struct UnchargedCounts {
    limits: UnchargedLimits,
    counts: HashMap<UnchargedGroup, UnchargedCount>,
}

/// A group of one payer's calls that are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct UnchargedGroup {
    payer: Address,
    calls: CountedCalls,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum CountedCalls {
    All,
    /// Calls that fit no operation. Honest nodes check their calls before they send them.
    Misfits,
    Of(ServiceId, String),
}

#[derive(Clone, Copy, Debug)]
struct UnchargedCount {
    since: Instant,
    /// In the minute that began then, without those before the last charged call of an operation.
    uncharged: u32,
    /// Charged calls that earned one more, which was not used yet.
    earned: u32,
    /// Beyond the limit, the next is let through then.
    trial_at: Instant,
}

impl UnchargedGroup {
    fn of(payer: Address, operation: CalledOperation<'_>) -> Self {
        let calls = operation.map_or(CountedCalls::Misfits, |(service, operation)| {
            CountedCalls::Of(service, operation.to_owned())
        });
        Self { payer, calls }
    }

    const fn all(payer: Address) -> Self {
        Self { payer, calls: CountedCalls::All }
    }
}

impl UnchargedCounts {
    pub fn new(limits: UnchargedLimits) -> Self {
        Self { limits, counts: HashMap::new() }
    }

    /// Checks that a call may be worked on now.
    ///
    /// # Errors
    /// How long it has to wait.
    pub fn check(&self, payer: Address, operation: CalledOperation<'_>, now: Instant) -> Result<(), NotYet> {
        let own = self.counts.get(&UnchargedGroup::of(payer, operation));
        if own.is_some_and(|count| count.earned > 0) {
            return Ok(());
        }
        let wait = |count: Option<&UnchargedCount>, limit| count.and_then(|count| count.wait(limit, now));
        let all = self.counts.get(&UnchargedGroup::all(payer));
        let waits = [
            wait(own, self.limits.per_minute).map(|wait| (wait, self.limits.per_minute, false)),
            wait(all, self.limits.in_all).map(|wait| (wait, self.limits.in_all, true)),
        ];
        let longest = waits.into_iter().flatten().max();
        match longest {
            Some((wait, limit, is_in_all)) if !wait.is_zero() => Err(NotYet { limit, is_in_all, wait }),
            _ => Ok(()),
        }
    }

    /// The same, and takes the trial or what was earned, where the call is beyond a limit.
    pub fn begin(
        &mut self,
        payer: Address,
        operation: CalledOperation<'_>,
        now: Instant,
    ) -> Result<(), NotYet> {
        self.check(payer, operation, now)?;
        let (own, all) = (UnchargedGroup::of(payer, operation), UnchargedGroup::all(payer));
        let is_over = |counted: &UnchargedGroup, limit| {
            self.counts.get(counted).is_some_and(|count| count.wait(limit, now).is_some())
        };
        let over = [is_over(&own, self.limits.per_minute), is_over(&all, self.limits.in_all)];
        if over == [false; 2] {
            return Ok(());
        }
        if let Some(count) = self.counts.get_mut(&own).filter(|count| count.earned > 0) {
            count.earned -= 1;
            return Ok(());
        }
        for (counted, is_over) in [own, all].iter().zip(over) {
            if let Some(count) = self.counts.get_mut(counted).filter(|_| is_over) {
                count.trial_at = now + self.limits.trial;
            }
        }
        Ok(())
    }

    /// Counts the end of a call that costs something, or fits no operation.
    pub fn count(&mut self, payer: Address, operation: CalledOperation<'_>, is_charged: bool, now: Instant) {
        let UnchargedLimits { in_all, trial, .. } = self.limits;
        let (own, all) = (UnchargedGroup::of(payer, operation), UnchargedGroup::all(payer));
        if let Some(count) = self.current(own, now) {
            if is_charged {
                (count.uncharged, count.earned) = (0, count.earned.saturating_add(1).min(in_all));
            } else {
                count.fail(now + trial);
            }
        }
        if !is_charged && let Some(count) = self.current(all, now) {
            count.fail(now + trial);
        }
    }

    /// The count of this minute; `None` when there is no room for one more.
    fn current(&mut self, counted: UnchargedGroup, now: Instant) -> Option<&mut UnchargedCount> {
        if self.counts.len() >= KEYS_MAX && !self.counts.contains_key(&counted) {
            self.make_room(now);
            if self.counts.len() >= KEYS_MAX {
                return None;
            }
        }
        let count = self.counts.entry(counted).or_insert_with(|| UnchargedCount::begin(now));
        if !count.is_current(now) {
            *count = UnchargedCount { earned: count.earned, ..UnchargedCount::begin(now) };
        }
        Some(count)
    }

    fn make_room(&mut self, now: Instant) {
        self.counts.retain(|_, count| count.is_current(now) || count.earned > 0);
        if self.counts.len() >= KEYS_MAX {
            self.counts.retain(|_, count| count.is_current(now));
        }
        if self.counts.len() >= KEYS_MAX {
            // Wallets cost nothing: what many of them did once makes room for what one does often.
            let few = self.limits.per_minute / 4;
            self.counts.retain(|_, count| count.uncharged > few || count.earned > 0);
        }
    }
}

impl UnchargedCount {
    const fn begin(now: Instant) -> Self {
        Self { since: now, uncharged: 0, earned: 0, trial_at: now }
    }

    fn is_current(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) < WINDOW
    }

    /// Returns the wait of the next call, for its trial or the end of the minute; `None` within the limit.
    fn wait(&self, limit: u32, now: Instant) -> Option<Duration> {
        let next = self.trial_at.min(self.since + WINDOW);
        let is_over = self.is_current(now) && self.uncharged >= limit;
        is_over.then(|| next.saturating_duration_since(now))
    }

    fn fail(&mut self, trial_at: Instant) {
        self.uncharged = self.uncharged.saturating_add(1);
        self.trial_at = self.trial_at.max(trial_at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYER: Address = Address::ZERO;
    const SLOW: CalledOperation<'static> = at("GET /slow");

    const fn at(operation: &str) -> CalledOperation<'_> {
        Some((ServiceId::from_bytes([0; 16]), operation))
    }

    fn few() -> UnchargedCounts {
        let trial = Duration::from_secs(3);
        UnchargedCounts::new(UnchargedLimits { per_minute: 20, in_all: 100, trial })
    }

    /// Makes a call, which comes to nothing where it is let in.
    fn fails(
        uncharged: &mut UnchargedCounts,
        operation: CalledOperation<'_>,
        now: Instant,
    ) -> Result<(), NotYet> {
        uncharged.begin(PAYER, operation, now)?;
        uncharged.count(PAYER, operation, false, now);
        Ok(())
    }

    fn pays(
        uncharged: &mut UnchargedCounts,
        operation: CalledOperation<'_>,
        now: Instant,
    ) -> Result<(), NotYet> {
        uncharged.begin(PAYER, operation, now)?;
        uncharged.count(PAYER, operation, true, now);
        Ok(())
    }

    /// Returns how many of a hundred calls at once, which come to nothing, are let in.
    fn let_in_of_many(
        uncharged: &mut UnchargedCounts,
        operation: CalledOperation<'_>,
        now: Instant,
    ) -> usize {
        (0..100).filter(|_| fails(uncharged, operation, now).is_ok()).count()
    }

    #[test]
    fn beyond_its_limit_one_call_of_an_operation_is_tried_now_and_then_and_others_go_on() {
        let (mut uncharged, now) = (few(), Instant::now());
        for n in 0..20 {
            assert_eq!(fails(&mut uncharged, SLOW, now), Ok(()), "{n}");
        }
        let not_yet = NotYet { limit: 20, is_in_all: false, wait: Duration::from_secs(3) };
        assert_eq!(fails(&mut uncharged, SLOW, now), Err(not_yet));
        assert_eq!(fails(&mut uncharged, at("GET /other"), now), Ok(()), "other operations go on");
        let nearly = now + Duration::from_millis(2_999);
        assert_eq!(uncharged.check(PAYER, SLOW, nearly).map_err(|not_yet| not_yet.wait.as_millis()), Err(1));
        let later = now + Duration::from_secs(3);
        assert_eq!(uncharged.check(PAYER, SLOW, later), Ok(()), "to look takes no trial");
        assert_eq!(uncharged.begin(PAYER, SLOW, later), Ok(()), "one is tried");
        assert_eq!(uncharged.begin(PAYER, SLOW, later), Err(not_yet), "one at a time");
        uncharged.count(PAYER, SLOW, false, later);
        assert_eq!(uncharged.begin(PAYER, SLOW, later), Err(not_yet));
    }

    #[test]
    fn the_wait_is_never_longer_than_the_minute_and_each_minute_has_its_own_count() {
        let limits = UnchargedLimits { per_minute: 2, in_all: 100, trial: Duration::from_secs(600) };
        let (mut uncharged, now) = (UnchargedCounts::new(limits), Instant::now());
        assert_eq!(let_in_of_many(&mut uncharged, SLOW, now), 2);
        let half = now + WINDOW / 2;
        assert_eq!(fails(&mut uncharged, SLOW, half).map_err(|not_yet| not_yet.wait), Err(WINDOW / 2));
        let next = now + WINDOW;
        assert_eq!(let_in_of_many(&mut uncharged, SLOW, next), 2, "no more and no fewer");
        assert_eq!(fails(&mut uncharged, SLOW, next).map_err(|not_yet| not_yet.wait), Err(WINDOW));
    }

    #[test]
    fn a_charged_call_clears_the_count_of_its_operation_and_of_no_other() {
        let (mut uncharged, now) = (few(), Instant::now());
        let other = at("GET /other");
        for operation in [SLOW, other] {
            assert_eq!(let_in_of_many(&mut uncharged, operation, now), 20);
        }
        let later = now + Duration::from_secs(3);
        assert_eq!(pays(&mut uncharged, SLOW, later), Ok(()), "a trial");
        assert_eq!(let_in_of_many(&mut uncharged, SLOW, later), 20 + 1, "and one was earned");
        assert_eq!(let_in_of_many(&mut uncharged, other, later), 1, "its trial");
    }

    #[test]
    fn after_an_outage_of_an_hour_the_first_call_that_is_paid_ends_the_limit() {
        let (mut uncharged, begin) = (few(), Instant::now());
        let mut now = begin;
        while now < begin + Duration::from_secs(3_600) {
            let _ = fails(&mut uncharged, SLOW, now);
            now += Duration::from_millis(100);
        }
        let wait = uncharged.check(PAYER, SLOW, now).err().map_or(Duration::ZERO, |not_yet| not_yet.wait);
        assert!(wait <= Duration::from_secs(3), "{wait:?}");
        now += wait;
        for n in 0..1_000 {
            assert_eq!(pays(&mut uncharged, SLOW, now), Ok(()), "{n}");
        }
        assert_eq!(fails(&mut uncharged, SLOW, now), Ok(()), "counted anew");
    }

    #[test]
    fn an_operation_that_is_paid_for_goes_on_however_many_others_fail() {
        let (mut uncharged, now) = (few(), Instant::now());
        assert_eq!(pays(&mut uncharged, at("GET /ok"), now), Ok(()));
        for n in 0..100 {
            assert_eq!(fails(&mut uncharged, at(&format!("GET /{n}")), now), Ok(()), "{n}");
        }
        let in_all = fails(&mut uncharged, at("GET /100"), now).unwrap_err();
        assert_eq!((in_all.limit, in_all.is_in_all), (100, true));
        for n in 0..1_000 {
            assert_eq!(pays(&mut uncharged, at("GET /ok"), now), Ok(()), "{n}");
        }
    }

    #[test]
    fn beyond_all_limits_a_payer_gets_no_more_for_nothing_than_it_pays_for() {
        let (mut uncharged, now) = (few(), Instant::now());
        let (mut free, mut paid) = (0, 0);
        for n in 0..10_000 {
            let operation = format!("GET /{}", n % 7);
            if n % 50 == 0 {
                paid += u32::from(pays(&mut uncharged, at(&operation), now).is_ok());
            } else {
                free += u32::from(fails(&mut uncharged, at(&operation), now).is_ok());
            }
        }
        assert!(paid >= 1 && free <= 100 + paid, "{free} for nothing, {paid} paid");
    }

    #[test]
    fn calls_that_fit_no_operation_are_counted_by_themselves() {
        let (mut uncharged, now) = (few(), Instant::now());
        for n in 0..20 {
            assert_eq!(fails(&mut uncharged, None, now), Ok(()), "{n}");
        }
        assert!(fails(&mut uncharged, None, now).is_err());
        assert_eq!(fails(&mut uncharged, SLOW, now), Ok(()));
    }

    #[test]
    fn wallets_that_fail_once_take_no_more_memory_than_there_is_and_hide_none_that_fails_often() {
        let (mut uncharged, now) = (few(), Instant::now());
        let often = Address::from_bytes([9; 20]);
        (0..20).for_each(|_| uncharged.count(often, None, false, now));
        for n in 0..4 * KEYS_MAX as u64 {
            let mut bytes = [0; 20];
            bytes[..8].copy_from_slice(&n.to_be_bytes());
            uncharged.count(Address::from_bytes(bytes), None, false, now);
            assert!(uncharged.counts.len() <= KEYS_MAX);
        }
        assert!(uncharged.check(often, None, now).is_err());
    }
}
