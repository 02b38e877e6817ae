//! Payments under way, by payer: a wallet that holds the price of one call is not served two at once.

use std::{collections::HashMap, sync::Arc};

use farthing_protocol::{Address, Usdc};
use parking_lot::Mutex;

/// The sums that payers have signed for, and that are not taken yet.
#[derive(Debug, Default)]
pub(super) struct Pledges(Mutex<HashMap<Address, Usdc>>);

/// A sum that counts until this is dropped.
#[derive(Debug)]
pub(super) struct Pledge {
    all: Arc<Pledges>,
    payer: Address,
    sum: Usdc,
}

impl Pledges {
    /// Counts a sum of a payer that holds `balance`; `None` if all its sums are more than that.
    pub(super) fn take(self: &Arc<Self>, payer: Address, sum: Usdc, balance: Usdc) -> Option<Pledge> {
        let mut pledged = self.0.lock();
        let all = pledged.get(&payer).copied().unwrap_or_default().saturating_add(sum);
        if all > balance {
            return None;
        }
        pledged.insert(payer, all);
        Some(Pledge { all: Arc::clone(self), payer, sum })
    }
}

impl Drop for Pledge {
    fn drop(&mut self) {
        let mut pledged = self.all.0.lock();
        let left = pledged.get(&self.payer).copied().unwrap_or_default().saturating_sub(self.sum);
        if left.is_zero() {
            pledged.remove(&self.payer);
        } else {
            pledged.insert(self.payer, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payer_has_no_more_payments_under_way_than_it_holds() {
        let pledges = Arc::new(Pledges::default());
        let [payer, other] = [1, 2].map(|n| Address::from_bytes([n; 20]));
        let usdc = Usdc::from_micros;
        let first = pledges.take(payer, usdc(6), usdc(10)).unwrap();
        assert!(pledges.take(payer, usdc(5), usdc(10)).is_none());
        let second = pledges.take(payer, usdc(4), usdc(10)).unwrap();
        assert!(pledges.take(other, usdc(10), usdc(10)).is_some());
        drop(first);
        assert!(pledges.take(payer, usdc(6), usdc(10)).is_some());
        drop(second);
        assert!(pledges.0.lock().is_empty(), "nothing is kept of who has none under way");
    }
}
