//! Offers that were made a short time ago: a payer that has signed for one is served at its price, although the owner has changed
//! the price since.

use std::{collections::HashMap, time::Duration};

use farthing_protocol::{ServiceId, Usdc};
use parking_lot::Mutex;
use tokio::time::Instant;

/// The time that an authorization has to be valid for, which is long enough for any call and its block.
pub(super) const TIMEOUT_SECS: u64 = 300;
/// An offer holds for the time that it names to its payer.
const HELD: Duration = Duration::from_secs(TIMEOUT_SECS);
/// Offers that are held. A node makes more only if it sells more operations than this.
const OFFERS_MAX: usize = 4_096;

/// The price that an operation was offered at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Offer {
    pub(super) service: ServiceId,
    pub(super) operation: String,
    pub(super) price: Usdc,
}

/// The offers of this process, and when each was made last. After a restart today's prices count alone.
#[derive(Debug, Default)]
pub(super) struct Offers(Mutex<HashMap<Offer, Instant>>);

impl Offers {
    /// Notes an offer that is made now.
    pub(super) fn make(&self, offer: Offer, now: Instant) {
        let mut made = self.0.lock();
        if made.len() >= OFFERS_MAX {
            made.retain(|_, since| is_held(*since, now));
        }
        if made.len() < OFFERS_MAX {
            made.insert(offer, now);
        }
    }

    /// Returns whether an offer was made a short time ago.
    pub(super) fn holds(&self, offer: &Offer, now: Instant) -> bool {
        self.0.lock().get(offer).is_some_and(|since| is_held(*since, now))
    }
}

fn is_held(since: Instant, now: Instant) -> bool {
    now.saturating_duration_since(since) <= HELD
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(micros: u64) -> Offer {
        let operation = "GET /ok".to_owned();
        Offer { service: ServiceId::from_bytes([1; 16]), operation, price: Usdc::from_micros(micros) }
    }

    #[test]
    fn an_offer_holds_at_its_price_for_as_long_as_it_says() {
        let (offers, now) = (Offers::default(), Instant::now());
        offers.make(offer(2), now);
        assert!(offers.holds(&offer(2), now + HELD));
        assert!(!offers.holds(&offer(2), now + HELD + Duration::from_secs(1)));
        assert!(!offers.holds(&offer(1), now), "never offered");
    }

    #[test]
    fn offers_that_are_over_make_room_for_new_ones() {
        let (offers, now) = (Offers::default(), Instant::now());
        for micros in 0..=OFFERS_MAX as u64 {
            offers.make(offer(micros), now);
        }
        assert!(!offers.holds(&offer(OFFERS_MAX as u64), now), "no more than there is room for");
        let later = now + HELD + Duration::from_secs(1);
        offers.make(offer(7), later);
        assert!(offers.holds(&offer(7), later));
        assert_eq!(offers.0.lock().len(), 1);
    }
}
