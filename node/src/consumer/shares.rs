//! Shares of what owners do for nothing, dealt out among the consumer secrets of this node.
//!
//! An owner lets one wallet have some uncharged calls of an operation a minute, and some in all, beyond as many as it pays
//! for, and then none for the rest of it. It does not know the secrets behind the wallet: so no secret gets the whole of
//! that. A secret may have three times what it leaves to others. Calls under way count for one that lately had several come
//! to nothing, and it has few of them at once; else nobody could have many.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use farthing_protocol::{
    Address, ServiceId,
    limits::{UNCHARGED_PER_MINUTE, UNCHARGED_PER_MINUTE_IN_ALL},
};
use parking_lot::Mutex;

const WINDOW: Duration = Duration::from_secs(60);
/// A secret has at most so many times what is left to others.
const SHARE: u32 = 3;
/// From so many in a minute on, a secret's calls under way are taken for ones that come to nothing.
const SEVERAL: u32 = 5;
/// Such calls of a secret under way with one owner: half of the places that an owner gives a wallet by default.
pub const UNDER_WAY_MAX: u32 = 8;
const RETRY_UNDER_WAY: Duration = Duration::from_secs(1);
/// Operations and owners remembered at once; those of whose minute is over go first.
const COUNTED_MAX: usize = 2_048;

/// The key by which an owner counts uncharged calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum CountedFor {
    Owner(Address),
    Operation(ServiceId, String),
}

impl CountedFor {
    const fn per_minute(&self) -> u32 {
        match self {
            Self::Owner(_) => UNCHARGED_PER_MINUTE_IN_ALL,
            Self::Operation(..) => UNCHARGED_PER_MINUTE,
        }
    }
}

/// The shares of all secrets.
#[derive(Debug, Default)]
pub struct Shares(Mutex<HashMap<CountedFor, Minute>>);

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
        let mut minutes = self.0.lock();
        if minutes.len() >= COUNTED_MAX {
            minutes.retain(|_, minute| minute.is_current() || minute.is_used());
        }
        for counted in &counted {
            let minute = minutes.entry(counted.clone()).or_insert_with(Minute::begin);
            minute.check(counted, secret)?;
        }
        for counted in &counted {
            let share = minutes.get_mut(counted).and_then(|minute| minute.secrets.get_mut(secret));
            share.into_iter().for_each(|share| share.under_way += 1);
        }
        Ok(CallShare { shares: Arc::clone(self), counted, secret: secret.to_owned() })
    }
}

impl Minute {
    fn begin() -> Self {
        Self { since: Instant::now(), charged: 0, uncharged: 0, secrets: HashMap::new() }
    }

    fn check(&mut self, counted: &CountedFor, secret: &str) -> Result<(), Duration> {
        if !self.is_current() {
            self.renew();
        }
        let share = self.secrets.entry(secret.to_owned()).or_default();
        let counts_under_way = share.is_known_for_it || share.uncharged >= SEVERAL;
        if counts_under_way && share.under_way >= UNDER_WAY_MAX && matches!(counted, CountedFor::Owner(_)) {
            return Err(RETRY_UNDER_WAY);
        }
        let used = share.uncharged + if counts_under_way { share.under_way } else { 0 };
        let most = counted.per_minute().saturating_add(self.charged);
        if used >= SHARE.saturating_mul(most.saturating_sub(self.uncharged.max(used))) {
            return Err(WINDOW.saturating_sub(self.since.elapsed()));
        }
        Ok(())
    }

    fn is_current(&self) -> bool {
        self.since.elapsed() < WINDOW
    }

    fn is_used(&self) -> bool {
        self.secrets.values().any(|share| share.under_way > 0)
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
        let mut minutes = self.shares.0.lock();
        for counted in &self.counted {
            let Some(minute) = minutes.get_mut(counted) else { continue };
            if is_charged {
                minute.charged = minute.charged.saturating_add(1);
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
        let mut minutes = self.shares.0.lock();
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
        assert!(wait <= WINDOW && wait > WINDOW / 2);
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
        shares.0.lock().values_mut().for_each(|minute| minute.since = minute_ago);
        assert_eq!((burst("alice").len(), burst("bob").len()), (8, 100));
    }
}
