//! What owners do for nothing, shared out among the consumer secrets of this node.
//!
//! An owner lets one wallet have some uncharged calls of an operation a minute, beyond as many as it pays for, and then none
//! for the rest of it. It does not know the secrets behind the wallet: so no secret gets the whole of that. A secret may
//! have three times what it leaves to others. Calls under way count for one that lately had several come to nothing; else
//! nobody could have many at once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use farthing_protocol::{ServiceId, limits::UNCHARGED_PER_MINUTE};

const WINDOW: Duration = Duration::from_secs(60);
/// A secret has at most so many times what is left to others.
const SHARE: u32 = 3;
/// From so many in a minute on, a secret's calls under way are taken for ones that come to nothing.
const SEVERAL: u32 = 5;
/// Operations remembered at once; those of whose minute is over go first.
const OPERATIONS_MAX: usize = 1_024;

/// An operation of a service.
type Operation = (ServiceId, String);

/// The shares of all secrets.
#[derive(Debug, Default)]
pub struct Shares(Mutex<HashMap<Operation, Minute>>);

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
    operation: Operation,
    secret: String,
}

impl Shares {
    /// Lets a secret call an operation, unless it had its share of what the owner does for nothing.
    ///
    /// # Errors
    /// How long it has to wait.
    pub fn enter(
        self: &Arc<Self>,
        service: ServiceId,
        operation: &str,
        secret: &str,
    ) -> Result<CallShare, Duration> {
        let operation = (service, operation.to_owned());
        let mut operations = self.lock();
        if operations.len() >= OPERATIONS_MAX {
            operations.retain(|_, minute| minute.is_current() || minute.is_used());
        }
        let minute = operations.entry(operation.clone()).or_insert_with(Minute::begin);
        if !minute.is_current() {
            minute.renew();
        }
        let share = minute.secrets.entry(secret.to_owned()).or_default();
        let counts_under_way = share.is_known_for_it || share.uncharged >= SEVERAL;
        let used = share.uncharged + if counts_under_way { share.under_way } else { 0 };
        let left =
            UNCHARGED_PER_MINUTE.saturating_add(minute.charged).saturating_sub(minute.uncharged.max(used));
        if used >= SHARE.saturating_mul(left) {
            return Err(WINDOW.saturating_sub(minute.since.elapsed()));
        }
        share.under_way += 1;
        Ok(CallShare { shares: Arc::clone(self), operation, secret: secret.to_owned() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Operation, Minute>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Minute {
    fn begin() -> Self {
        Self { since: Instant::now(), charged: 0, uncharged: 0, secrets: HashMap::new() }
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
        let mut operations = self.shares.lock();
        let Some(minute) = operations.get_mut(&self.operation) else { return };
        if is_charged {
            minute.charged = minute.charged.saturating_add(1);
        } else {
            minute.uncharged = minute.uncharged.saturating_add(1);
            let share = minute.secrets.entry(self.secret.clone()).or_default();
            share.uncharged = share.uncharged.saturating_add(1);
        }
    }
}

impl Drop for CallShare {
    fn drop(&mut self) {
        let mut operations = self.shares.lock();
        let share =
            operations.get_mut(&self.operation).and_then(|minute| minute.secrets.get_mut(&self.secret));
        if let Some(share) = share {
            share.under_way = share.under_way.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICE: ServiceId = ServiceId::from_bytes([1; 16]);

    fn fail(shares: &Arc<Shares>, secret: &str) -> bool {
        let entered = shares.enter(SERVICE, "GET /q", secret);
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
        let wait = shares.enter(SERVICE, "GET /q", "alice").unwrap_err();
        assert!(wait <= WINDOW && wait > WINDOW / 2);
        assert!(shares.enter(SERVICE, "GET /other", "alice").is_ok(), "at another operation");
        for _ in 0..100 {
            shares.enter(SERVICE, "GET /q", "bob").unwrap().count(true);
        }
        assert!(fail(&shares, "alice"), "what others pay for earns more for everybody");
    }

    #[test]
    fn many_at_once_are_let_in_until_several_came_to_nothing() {
        let shares = Arc::new(Shares::default());
        let burst = |secret| {
            let entering = || shares.enter(SERVICE, "GET /q", secret).ok();
            std::iter::from_fn(entering).take(100).collect::<Vec<_>>()
        };
        let first = burst("alice");
        assert_eq!(first.len(), 100, "nobody knows what they come to");
        first[..5].iter().for_each(|call| call.count(false));
        drop(first);
        assert_eq!(burst("alice").len(), 10, "with five that failed");
        // In the next minute as well.
        let minute_ago = Instant::now().checked_sub(WINDOW).unwrap();
        shares.lock().values_mut().for_each(|minute| minute.since = minute_ago);
        assert_eq!((burst("alice").len(), burst("bob").len()), (15, 100));
    }
}
