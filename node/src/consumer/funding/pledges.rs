//! USDC that is promised to x402 servers and may be taken at any time: deposits leave it in the wallet.

use std::collections::HashMap;

use farthing_chain::Balances;
use farthing_protocol::{Address, CallId, Usdc};
use farthing_shared::chain_view::NotReady;
use parking_lot::Mutex;

use super::Funding;
use crate::consumer::{BuyError, ForeignError, deposits::WantedDeposit};

/// The sums of payments whose ends are not known, by call.
#[derive(Debug, Default)]
pub(super) struct Pledges(Mutex<HashMap<CallId, Usdc>>);

impl Pledges {
    /// The part of a balance that nothing is promised of.
    pub(super) fn left_of(&self, balances: Balances) -> Balances {
        Balances { usdc: balances.usdc.saturating_sub(sum(&self.0.lock())), ..balances }
    }

    fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Sets aside the price of a call, out of the part of a balance that deposits leave.
    ///
    /// # Errors
    /// The part that is left, if that is less.
    fn take(&self, call_id: CallId, price: Usdc, balance: Usdc) -> Result<(), Usdc> {
        let mut pledged = self.0.lock();
        let left = balance.saturating_sub(sum(&pledged));
        if left < price {
            return Err(left);
        }
        pledged.insert(call_id, price);
        Ok(())
    }
}

fn sum(pledged: &HashMap<CallId, Usdc>) -> Usdc {
    pledged.values().fold(Usdc::ZERO, |sum, price| sum.saturating_add(*price))
}

/// The sum of the deposits that are being made and of those that owners may bring. With one owner both are the same money.
fn sum_of_deposits(mut by_owner: HashMap<Address, Usdc>, signed: Vec<(Address, Usdc)>) -> Usdc {
    for (owner, amount) in signed {
        let most = by_owner.entry(owner).or_default();
        *most = amount.max(*most);
    }
    by_owner.into_values().fold(Usdc::ZERO, Usdc::saturating_add)
}

/// A price that is set aside. Dropped before it is kept, it is given back.
#[derive(Debug)]
pub struct Pledge {
    funding: Funding,
    call_id: CallId,
    is_kept: bool,
}

impl Pledge {
    /// Leaves it set aside until [`Funding::unpledge`].
    pub fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Pledge {
    fn drop(&mut self) {
        if !self.is_kept {
            self.funding.unpledge(self.call_id);
        }
    }
}

impl Funding {
    /// Sets aside the price of a call of an x402 server, beside deposits and what other servers may take.
    ///
    /// # Errors
    /// [`ForeignError::Unfunded`], or that the chain does not tell what the wallet has or the ledger what was signed.
    pub fn pledge(&self, call_id: CallId, price: Usdc) -> Result<Pledge, BuyError> {
        self.check_ready()?;
        let balances = *self.0.chain.balances().borrow();
        let balance = balances.ok_or(NotReady::BalanceUnknown)?.usdc;
        // Held until the price is set aside: of two that want the same money, the later one sees the other.
        let being_made = self.0.being_made.lock();
        let signed = self.signed_to_bring()?.into_iter().map(|signed| signed.deposit);
        let signed: Vec<_> = signed.map(|deposit| (deposit.config.payee, deposit.amount)).collect();
        let deposits = sum_of_deposits(being_made.clone(), signed);
        let taken = self.0.pledges.take(call_id, price, balance.saturating_sub(deposits));
        drop(being_made);
        taken.map_err(|have| ForeignError::Unfunded { have, need: price })?;
        Ok(Pledge { funding: self.clone(), call_id, is_kept: false })
    }

    /// Makes a deposit no larger than what is not promised to x402 servers. If nothing is, the chain alone judges it.
    pub(super) fn beside_pledges(
        &self,
        owner: Address,
        wanted: WantedDeposit,
    ) -> Result<WantedDeposit, BuyError> {
        if self.0.pledges.is_empty() {
            return Ok(wanted);
        }
        let left = self.balance()?;
        if left.usdc < wanted.least {
            return Err(self.missing(owner, left, wanted.least));
        }
        Ok(WantedDeposit { amount: wanted.amount.min(left.usdc), ..wanted })
    }

    /// Sets aside what an earlier run of this node promised, whatever the wallet has.
    pub fn pledge_again(&self, call_id: CallId, price: Usdc) {
        self.0.pledges.0.lock().insert(call_id, price);
    }

    /// Gives back what a payment set aside, which has ended.
    pub fn unpledge(&self, call_id: CallId) {
        self.0.pledges.0.lock().remove(&call_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_promised_to_servers_is_left_by_deposits_and_promised_once() {
        let usdc = Usdc::from_micros;
        let [one, two] = [1, 2].map(|n| CallId::from_bytes([n; 16]));
        let pledges = Pledges::default();
        assert_eq!(pledges.take(one, usdc(6), usdc(10)), Ok(()));
        assert_eq!(pledges.take(two, usdc(5), usdc(10)), Err(usdc(4)));
        let left = pledges.left_of(Balances { usdc: usdc(10), eth_wei: 7 });
        assert_eq!((left.usdc, left.eth_wei), (usdc(4), 7));
        assert_eq!(pledges.take(two, usdc(4), usdc(10)), Ok(()));
        pledges.0.lock().remove(&one);
        assert_eq!(pledges.left_of(Balances { usdc: usdc(10), eth_wei: 0 }).usdc, usdc(6));
    }

    #[test]
    fn a_deposit_that_is_being_made_and_was_signed_for_its_owner_counts_once() {
        let usdc = Usdc::from_micros;
        let [one, two, three] = [1, 2, 3].map(|n| Address::from_bytes([n; 20]));
        let being_made = HashMap::from([(one, usdc(5)), (two, usdc(7))]);
        let signed = vec![(two, usdc(8)), (three, usdc(100))];
        assert_eq!(sum_of_deposits(being_made, signed), usdc(113));
    }
}
