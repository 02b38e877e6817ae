//! Places with an owner: of calls, as many as it serves at once, and of questions, a few.
//!
//! An owner that never answers holds a place until its caller's time is over, and a question for ten seconds. So the
//! questions about open calls, which come again and again, have places of their own; and a secret's free calls, which cost
//! nothing to make, hold no more of an owner's places than leaves some to the other secrets.

use std::time::Duration;

use farthing_protocol::{Address, limits};
use farthing_shared::keyed_semaphore::{KeyedSemaphore, SharedPlace, SharedPlaces};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};

use super::{BuyError, NoRoom, shares};

/// Questions to one owner under way.
const QUESTIONS_PER_OWNER_MAX: usize = 4;
/// Questions under way, an eighth of what this node sends at once.
const QUESTIONS_MAX: usize = 32;

#[derive(Debug)]
pub struct OwnerPlaces {
    calls: KeyedSemaphore<Address>,
    free_calls: KeyedSemaphore<(Address, String)>,
    questions: SharedPlaces<Address>,
}

/// A call's place, until dropped.
#[derive(Debug)]
pub struct CallPlace {
    _of_secret: Option<OwnedSemaphorePermit>,
    _of_owner: OwnedSemaphorePermit,
}

impl Default for OwnerPlaces {
    fn default() -> Self {
        Self {
            calls: KeyedSemaphore::new(limits::CALLS_PER_PEER_MAX),
            free_calls: KeyedSemaphore::new(shares::UNDER_WAY_MAX as usize),
            questions: SharedPlaces::new(QUESTIONS_MAX, QUESTIONS_PER_OWNER_MAX),
        }
    }
}

impl OwnerPlaces {
    /// Waits for a call's place, for `patience` at most.
    ///
    /// # Errors
    /// [`BuyError::Busy`] then.
    pub async fn of_call(
        &self,
        owner: Address,
        secret: &str,
        is_free: bool,
        patience: Duration,
    ) -> Result<CallPlace, BuyError> {
        let places = async {
            let of_secret = match is_free {
                true => {
                    let free_calls = self.free_calls.get((owner, secret.to_owned()));
                    Some(free_calls.acquire_owned().await.ok()?)
                }
                false => None,
            };
            let of_owner = self.calls.get(owner).acquire_owned().await.ok()?;
            Some(CallPlace { _of_secret: of_secret, _of_owner: of_owner })
        };
        timeout(patience, places).await.ok().flatten().ok_or_else(|| {
            BuyError::Busy(NoRoom::Places {
                owner_max: limits::CALLS_PER_PEER_MAX,
                secret_max: shares::UNDER_WAY_MAX,
            })
        })
    }

    /// Waits for a question's place.
    pub async fn of_question(&self, owner: Address) -> SharedPlace {
        self.questions.take(owner).await
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const OWNER: Address = Address::from_bytes([1; 20]);

    #[tokio::test]
    async fn free_calls_of_one_secret_leave_places_to_others() {
        let places = OwnerPlaces::default();
        let of =
            |secret, is_free| places.of_call(OWNER, secret, is_free, Duration::from_secs(60)).now_or_never();
        let held: Vec<_> = std::iter::from_fn(|| of("slow", true)).collect();
        assert_eq!(held.len(), 8);
        assert!(of("other", true).is_some(), "a free call of another secret");
        let paid: Vec<_> = std::iter::from_fn(|| of("slow", false)).collect();
        assert_eq!(paid.len(), limits::CALLS_PER_PEER_MAX - 8, "what is paid for takes what is left");
        drop(held);
        assert!(of("other", true).is_some());
    }

    #[tokio::test]
    async fn questions_to_one_owner_leave_places_to_others() {
        let places = OwnerPlaces::default();
        let of = |owner| places.of_question(Address::from_bytes([owner; 20])).now_or_never();
        let held: Vec<_> = std::iter::from_fn(|| of(1)).collect();
        assert_eq!(held.len(), QUESTIONS_PER_OWNER_MAX);
        assert!(of(2).is_some());
        let more: Vec<_> = (2..=255).filter_map(of).collect();
        assert_eq!(held.len() + more.len(), QUESTIONS_MAX, "whoever asks");
    }
}
