//! Trouble at the door, for its owner: the reason that it sells nothing now, and payments that the chain refuses.
//!
//! Payments of strangers cost nothing, so only so many are counted, and each for an hour.

use std::{collections::HashMap, time::Duration};

use farthing_protocol::Usdc;
use farthing_shared::{chain_view, gas::check_worth};
use tokio::time::Instant;

use super::{X402Sales, due::GAS_FACTOR_MIN, sales::SaleKey};

/// The time for which a refused payment is shown, unless it is taken meanwhile.
const TOLD_FOR: Duration = Duration::from_secs(3_600);
const COUNTED_MAX: usize = 256;
/// A reason that the token gives may be longer than anybody reads.
const REASON_BYTES_MAX: usize = 200;

/// Payments that the chain refused although their calls were served; the answers are withheld.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedPayments {
    /// Within the last hour.
    pub count: usize,
    /// Of the newest.
    pub reason: String,
}

/// The reason that the door sells nothing now, and the step to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedDoor {
    pub cause: String,
    pub action: &'static str,
}

/// Notes of what failed at the door.
#[derive(Debug, Default)]
pub(super) struct DoorNotes {
    refused: HashMap<SaleKey, (Instant, String)>,
    /// The reason that the token's name and version are not known.
    token: Option<String>,
}

impl DoorNotes {
    /// Notes that the chain refused a payment.
    pub(super) fn refuse(&mut self, key: SaleKey, mut reason: String, now: Instant) {
        reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
        self.refused.retain(|_, (since, _)| is_told(*since, now));
        if self.refused.len() < COUNTED_MAX || self.refused.contains_key(&key) {
            self.refused.insert(key, (now, reason));
        }
    }

    /// Notes that a payment was taken.
    pub(super) fn take(&mut self, key: &SaleKey) {
        self.refused.remove(key);
    }

    /// Notes whether the token's name and version could be read.
    pub(super) fn read_token(&mut self, problem: Option<String>) {
        self.token = problem;
    }

    fn refused(&self, now: Instant) -> Option<RefusedPayments> {
        let told = self.refused.values().filter(|(since, _)| is_told(*since, now));
        let (_, reason) = told.clone().max_by_key(|(since, _)| *since)?;
        Some(RefusedPayments { count: told.count(), reason: reason.clone() })
    }
}

fn is_told(since: Instant, now: Instant) -> bool {
    now.saturating_duration_since(since) < TOLD_FOR
}

/// The trouble that gas costs too much even for the dearest call, so that no call is sold.
fn too_dear(highest_price: Usdc, gas: Usdc) -> Option<ClosedDoor> {
    check_worth(highest_price, gas, GAS_FACTOR_MIN).err().map(|least| ClosedDoor {
        cause: format!(
            "the gas of a payment costs {gas} USDC, so x402 clients can buy only calls for {least} USDC or more, and your dearest \
             one costs {highest_price} USDC"
        ),
        action: "wait until gas costs less, or raise your prices; Farthing nodes can still buy",
    })
}

impl X402Sales {
    /// Returns the payments that the chain refused within the last hour.
    pub fn refused_payments(&self) -> Option<RefusedPayments> {
        self.0.door.notes.lock().refused(Instant::now())
    }

    /// Returns the reason that the door sells nothing now, as far as it is known without asking the chain.
    pub fn closed_door(&self) -> Option<ClosedDoor> {
        if chain_view::means(&self.0.chain).rows == 0 {
            let cause =
                "the wallet has no ETH for the gas of a payment, so x402 clients buy nothing".to_owned();
            return Some(ClosedDoor { cause, action: "send a little ETH to the wallet" });
        }
        if let Some(dear) = self.highest_price().and_then(|price| too_dear(price, self.payment_gas())) {
            return Some(dear);
        }
        let reason = self.0.door.notes.lock().token.clone()?;
        let cause = format!(
            "x402 clients buy nothing, because the name and the version of the token cannot be read: {reason}"
        );
        Some(ClosedDoor { cause, action: "set an endpoint that answers in `chain.rpc_urls`" })
    }

    /// Reads what the terms of the door need from the chain, and notes what cannot be read.
    pub async fn look_at_the_door(&self) {
        if let Err(refusal) = self.token().await {
            tracing::debug!(reason = refusal.detail, "the terms of x402 clients cannot be told");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_payment_is_told_of_for_an_hour_unless_it_is_taken() {
        let (mut notes, start) = (DoorNotes::default(), Instant::now());
        assert_eq!(notes.refused(start), None);
        let key = |number: u8| [number; 52];
        notes.refuse(key(1), "no money".to_owned(), start);
        let later = start + TOLD_FOR / 2;
        notes.refuse(key(2), "blocked".to_owned(), later);
        notes.refuse(key(2), "blocked".to_owned(), later);
        let both = RefusedPayments { count: 2, reason: "blocked".to_owned() };
        assert_eq!(notes.refused(later), Some(both));
        let one = RefusedPayments { count: 1, reason: "blocked".to_owned() };
        assert_eq!(notes.refused(start + TOLD_FOR), Some(one));
        notes.take(&key(2));
        assert_eq!(notes.refused(start + TOLD_FOR), None);
    }

    #[test]
    fn gas_that_is_too_dear_for_every_call_closes_the_port() {
        let [price, third] = [30_000, 10_000].map(Usdc::from_micros);
        assert_eq!(too_dear(price, Usdc::ZERO), None);
        assert_eq!(too_dear(price, third), None);
        let closed = too_dear(price, Usdc::from_micros(10_001)).unwrap();
        assert!(closed.cause.contains("calls for 0.030003 USDC or more"), "{}", closed.cause);
    }

    #[test]
    fn strangers_make_no_more_notes_than_there_is_room_for() {
        let (mut notes, now) = (DoorNotes::default(), Instant::now());
        for number in 0..2 * COUNTED_MAX {
            let mut key = [0; 52];
            key[..8].copy_from_slice(&(number as u64).to_be_bytes());
            notes.refuse(key, "no money".to_owned(), now);
        }
        assert_eq!(notes.refused(now).map(|refused| refused.count), Some(COUNTED_MAX));
    }
}
