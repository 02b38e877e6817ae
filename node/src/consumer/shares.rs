//! Shares of what owners do for nothing, dealt out among the consumer secrets of this node.
//!
//! An owner lets one wallet have some uncharged calls of an operation a minute, and some in all, and then one now and then,
//! until one is charged. It does not know the secrets behind the wallet: so no secret gets the whole of that. A secret may
//! have three times what it leaves to others; then it has one now and then, too, so that an operation which failed and
//! is well again is found out with the next call. Calls under way count for one that lately had several come to nothing,
//! and it has few of them at once; else nobody could have many.

use std::{collections::HashMap, sync::Arc, time::Duration};

use farthing_protocol::{Address, ServiceId, limits};
use parking_lot::Mutex;
use tokio::time::Instant;

const WINDOW: Duration = Duration::from_secs(60);
/// A secret has at most so many times what is left to others.
const SHARE: u32 = 3;
/// From so many in a minute on, a secret's calls under way are taken for ones that come to nothing.
const SEVERAL: u32 = 5;
/// Such calls of a secret under way with one owner: half of the places that an owner gives a wallet by default.
pub const UNDER_WAY_MAX: u32 = 8;
const RETRY_UNDER_WAY: Duration = Duration::from_secs(1);
/// Between two calls of a secret that had its share.
const TRIAL: Duration = Duration::from_millis(limits::UNCHARGED_TRIAL_MS);
/// Operations and owners remembered at once; those of whose minute is over go first.
const COUNTED_MAX: usize = 2_048;

/// The key by which an owner counts uncharged calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum CountedFor {
    Owner(Address),
    Operation(ServiceId, String),
}

/// The calls that an owner is taken to serve for nothing in a minute.
#[derive(Clone, Copy, Debug)]
pub struct ForNothing {
    pub per_operation: u32,
    pub in_all: u32,
}

impl Default for ForNothing {
    fn default() -> Self {
        Self { per_operation: limits::UNCHARGED_PER_MINUTE, in_all: limits::UNCHARGED_PER_MINUTE_IN_ALL }
    }
}

impl ForNothing {
    const fn of(self, counted: &CountedFor) -> u32 {
        match counted {
            CountedFor::Owner(_) => self.in_all,
            CountedFor::Operation(..) => self.per_operation,
        }
    }
}

/// The shares of all secrets.
#[derive(Debug, Default)]
pub struct Shares {
    whole: ForNothing,
    minutes: Mutex<HashMap<CountedFor, Minute>>,
}

#[derive(Debug)]
struct Minute {
    since: Instant,
    charged: u32,
    uncharged: u32,
    secrets: HashMap<String, SecretShare>,
}

#[derive(Debug, Default)]
struct SecretShare {
    uncharged: u32,
    under_way: u32,
    /// The beginning of its newest call.
    began: Option<Instant>,
    /// It had several in the minute before.
    is_known_for_it: bool,
}

/// A call under way, until dropped.
#[derive(Debug)]
pub struct CallShare {
    shares: Arc<Shares>,
    counted: [CountedFor; 2],
    secret: String,
}

impl Shares {
    pub fn new(whole: ForNothing) -> Self {
        Self { whole, ..Self::default() }
    }

    /// Lets a secret call an operation of an owner's service, unless it had its share of what the owner does for nothing.
    ///
    /// # Errors
    /// How long it has to wait.
    pub fn enter(
        self: &Arc<Self>,
        owner: Address,
        (service, operation): (ServiceId, &str),
        secret: &str,
    ) -> Result<CallShare, Duration> {
        let counted = [CountedFor::Owner(owner), CountedFor::Operation(service, operation.to_owned())];
        let mut minutes = self.minutes.lock();
        if minutes.len() >= COUNTED_MAX {
            minutes.retain(|_, minute| minute.is_current() || minute.is_used());
        }
        // What is paid for waits for nothing that others came to.
        let is_paid_for = minutes.get(&counted[1]).is_some_and(Minute::is_paid_for);
        for counted in &counted {
            let minute = minutes.entry(counted.clone()).or_insert_with(Minute::begin);
            let whole = if is_paid_for { u32::MAX } else { self.whole.of(counted) };
            minute.check(counted, whole, secret)?;
        }
        for counted in &counted {
            let share = minutes.get_mut(counted).and_then(|minute| minute.secrets.get_mut(secret));
            if let Some(share) = share {
                (share.under_way, share.began) = (share.under_way + 1, Some(Instant::now()));
            }
        }
        Ok(CallShare { shares: Arc::clone(self), counted, secret: secret.to_owned() })
    }
}

impl Minute {
    fn begin() -> Self {
        Self { since: Instant::now(), charged: 0, uncharged: 0, secrets: HashMap::new() }
    }

    fn check(&mut self, counted: &CountedFor, whole: u32, secret: &str) -> Result<(), Duration> {
        if !self.is_current() {
            self.renew();
        }
        let share = self.secrets.entry(secret.to_owned()).or_default();
        let counts_under_way = share.is_known_for_it || share.uncharged >= SEVERAL;
        if counts_under_way && share.under_way >= UNDER_WAY_MAX && matches!(counted, CountedFor::Owner(_)) {
            return Err(RETRY_UNDER_WAY);
        }
        let used = share.uncharged + if counts_under_way { share.under_way } else { 0 };
        let most = whole.saturating_add(self.charged);
        if used < SHARE.saturating_mul(most.saturating_sub(self.uncharged.max(used))) {
            return Ok(());
        }
        let until_trial = share.began.map_or(Duration::ZERO, |began| TRIAL.saturating_sub(began.elapsed()));
        let wait = until_trial.min(WINDOW.saturating_sub(self.since.elapsed()));
        if wait.is_zero() { Ok(()) } else { Err(wait) }
    }

    fn is_current(&self) -> bool {
        self.since.elapsed() < WINDOW
    }

    fn is_paid_for(&self) -> bool {
        self.is_current() && self.charged > 0 && self.uncharged == 0
    }

    fn is_used(&self) -> bool {
        self.secrets.values().any(|share| share.under_way > 0)
    }

    /// The operation is well: what was counted before says nothing of it any more.
    fn forget_uncharged(&mut self) {
        self.uncharged = 0;
        self.secrets.values_mut().for_each(|share| share.uncharged = 0);
    }

    fn renew(&mut self) {
        (self.since, self.charged, self.uncharged) = (Instant::now(), 0, 0);
        for share in self.secrets.values_mut() {
            share.is_known_for_it = share.uncharged >= SEVERAL;
            share.uncharged = 0;
        }
        self.secrets.retain(|_, share| share.is_known_for_it || share.under_way > 0);
    }
}

impl CallShare {
    /// Counts the call: its owner worked on it.
    pub fn count(&self, is_charged: bool) {
        let mut minutes = self.shares.minutes.lock();
        for counted in &self.counted {
            let Some(minute) = minutes.get_mut(counted) else { continue };
            if is_charged {
                minute.charged = minute.charged.saturating_add(1);
                if matches!(counted, CountedFor::Operation(..)) {
                    minute.forget_uncharged();
                }
            } else {
                minute.uncharged = minute.uncharged.saturating_add(1);
                let share = minute.secrets.entry(self.secret.clone()).or_default();
                share.uncharged = share.uncharged.saturating_add(1);
            }
        }
    }
}

impl Drop for CallShare {
    fn drop(&mut self) {
        let mut minutes = self.shares.minutes.lock();
        for counted in &self.counted {
            let share = minutes.get_mut(counted).and_then(|minute| minute.secrets.get_mut(&self.secret));
            if let Some(share) = share {
                share.under_way = share.under_way.saturating_sub(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Address = Address::ZERO;
    const SERVICE: ServiceId = ServiceId::from_bytes([1; 16]);

    fn fail(shares: &Arc<Shares>, secret: &str) -> bool {
        fail_at(shares, "GET /q", secret)
    }

    fn fail_at(shares: &Arc<Shares>, operation: &str, secret: &str) -> bool {
        let entered = shares.enter(OWNER, (SERVICE, operation), secret);
        entered.is_ok_and(|call| {
            call.count(false);
            true
        })
    }

    #[test]
    fn a_secret_whose_calls_come_to_nothing_leaves_some_to_others() {
        let shares = Arc::new(Shares::default());
        let failed = (0..60).filter(|_| fail(&shares, "alice")).count();
        assert_eq!(failed, 15, "three quarters");
        let wait = shares.enter(OWNER, (SERVICE, "GET /q"), "alice").unwrap_err();
        assert!(wait <= TRIAL, "{wait:?}");
        assert!(shares.enter(OWNER, (SERVICE, "GET /other"), "alice").is_ok(), "at another operation");
        for _ in 0..100 {
            shares.enter(OWNER, (SERVICE, "GET /q"), "bob").unwrap().count(true);
        }
        assert!(fail(&shares, "alice"), "what others pay for earns more for everybody");
    }

    #[test]
    fn of_what_an_owner_does_for_nothing_in_all_a_secret_leaves_some_to_others_too() {
        let shares = Arc::new(Shares::default());
        let at = |number: usize| format!("GET /{number}");
        let failed = (0..200).filter(|number| fail_at(&shares, &at(*number), "alice")).count();
        assert_eq!(failed, 75, "three quarters");
        assert!(fail_at(&shares, "GET /0", "bob"));
        for _ in 0..100 {
            shares.enter(OWNER, (SERVICE, "GET /paid"), "bob").unwrap().count(true);
        }
        assert!(shares.enter(OWNER, (SERVICE, "GET /paid"), "alice").is_ok(), "what is paid for goes on");
    }

    #[test]
    fn a_secret_that_had_its_share_tries_again_now_and_then_and_one_charged_call_ends_that() {
        let shares = Arc::new(Shares::new(ForNothing { per_operation: 4, in_all: 100 }));
        assert_eq!((0..20).filter(|_| fail(&shares, "alice")).count(), 3, "three quarters");
        assert!(fail(&shares, "bob"), "a call of another secret is tried at once");
        let later = |shares: &Shares| {
            let mut minutes = shares.minutes.lock();
            let of_alice = minutes.values_mut().filter_map(|minute| minute.secrets.get_mut("alice"));
            of_alice.for_each(|share| share.began = share.began.and_then(|began| began.checked_sub(TRIAL)));
        };
        for _ in 0..10 {
            later(&shares);
            assert!(fail(&shares, "alice"));
            assert!(!fail(&shares, "alice"));
        }
        later(&shares);
        shares.enter(OWNER, (SERVICE, "GET /q"), "alice").unwrap().count(true);
        assert_eq!(
            (0..20).filter(|_| fail(&shares, "alice")).count(),
            4,
            "counted anew, and one more is earned"
        );
    }

    #[test]
    fn many_at_once_are_let_in_until_several_came_to_nothing() {
        let shares = Arc::new(Shares::default());
        let burst = |secret| {
            let entering = || shares.enter(OWNER, (SERVICE, "GET /q"), secret).ok();
            std::iter::from_fn(entering).take(100).collect::<Vec<_>>()
        };
        let first = burst("alice");
        assert_eq!(first.len(), 100, "nobody knows what they come to");
        first[..5].iter().for_each(|call| call.count(false));
        drop(first);
        assert_eq!(burst("alice").len(), 8, "it leaves places to others");
        // In the next minute as well.
        let minute_ago = Instant::now().checked_sub(WINDOW).unwrap();
        shares.minutes.lock().values_mut().for_each(|minute| minute.since = minute_ago);
        assert_eq!((burst("alice").len(), burst("bob").len()), (8, 100));
    }
}
