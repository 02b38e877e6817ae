//! USDC that is promised to x402 servers and may be taken at any time: deposits and the user's transfers leave it in the wallet.
//!
//! Invariant: no USDC is promised twice. What a payment has taken stays set aside until the balance was read in a block that has it.

use std::collections::HashMap;

use farthing_chain::Balances;
use farthing_os::clock;
use farthing_protocol::{Address, CallId, Usdc};
use farthing_shared::chain_view::{NotReady, believed_after};
use parking_lot::MutexGuard;

use super::Funding;
use crate::consumer::{BuyError, ForeignError, deposits::WantedDeposit};

/// The prices that payments may take, or have taken from a balance that was not read since, by call.
#[derive(Debug, Default)]
pub(super) struct Pledges(HashMap<CallId, Pledged>);

#[derive(Clone, Copy, Debug)]
struct Pledged {
    price: Usdc,
    /// The second until which the payment can be taken, if it is signed.
    until_secs: Option<u64>,
    /// A block that has the payment; `None` while none is known.
    taken_by: Option<u64>,
}

/// The reason that USDC stays in the wallet: it is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the wallet can send at most {} USDC now: of its {have} USDC, {promised} USDC are promised to x402 servers{}",
    have.saturating_sub(*promised), at_most(*until_secs)
)]
pub struct SetAside {
    pub have: Usdc,
    pub promised: Usdc,
    /// The second after which none of it can be taken any more, if that is known.
    pub until_secs: Option<u64>,
}

fn at_most(until_secs: Option<u64>) -> String {
    until_secs.map_or_else(String::new, |secs| format!(", until {} at most", clock::timestamp(secs)))
}

impl Pledges {
    /// The part of a balance that nothing is promised of.
    pub(super) fn left_of(&self, balances: Balances) -> Balances {
        Balances { usdc: balances.usdc.saturating_sub(self.sum()), ..balances }
    }

    fn sum(&self) -> Usdc {
        self.0.values().fold(Usdc::ZERO, |sum, pledged| sum.saturating_add(pledged.price))
    }

    /// Gives back what a balance of this block does not have any more.
    fn balance_read(&mut self, block: u64) {
        self.0.retain(|_, pledged| pledged.taken_by.is_none_or(|by_block| by_block > block));
    }

    fn put(&mut self, call_id: CallId, price: Usdc, taken_by: Option<u64>) {
        self.0.insert(call_id, Pledged { price, until_secs: None, taken_by });
    }

    /// Notes until when the payment of a call can be taken.
    fn sign(&mut self, call_id: CallId, until_secs: u64) {
        if let Some(pledged) = self.0.get_mut(&call_id) {
            pledged.until_secs = Some(until_secs);
        }
    }

    /// Sets aside what the user sends out of a balance, under an id that no call has.
    ///
    /// # Errors
    /// The sum that is promised, if that leaves less.
    fn send(&mut self, amount: Usdc, have: Usdc) -> Result<CallId, SetAside> {
        let promised = self.sum();
        if !promised.is_zero() && have.saturating_sub(promised) < amount {
            let until_secs = self.0.values().filter_map(|pledged| pledged.until_secs).max();
            return Err(SetAside { have, promised, until_secs });
        }
        let mut ids = (0..=u128::MAX).map(|number| CallId::from_bytes(number.to_be_bytes()));
        let id = ids.find(|id| !self.0.contains_key(id)).unwrap_or(CallId::from_bytes([0; 16]));
        self.put(id, amount, None);
        Ok(id)
    }

    /// Sets aside the price of a call, out of the part of a balance that deposits leave.
    ///
    /// # Errors
    /// The part that is left, if that is less.
    fn take(&mut self, call_id: CallId, price: Usdc, balance: Usdc) -> Result<(), Usdc> {
        let left = balance.saturating_sub(self.sum());
        if left < price {
            return Err(left);
        }
        self.put(call_id, price, None);
        Ok(())
    }
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
    /// Leaves it set aside until [`Funding::unpledge`], or until a balance shows what [`Funding::paid`] tells of. The payment can
    /// be taken until then.
    pub fn keep(mut self, until_secs: u64) {
        self.funding.0.pledges.lock().sign(self.call_id, until_secs);
        self.is_kept = true;
    }

    /// Leaves it set aside until the balance was read in a block that shows it as paid, as this block does.
    pub fn paid(mut self, price: Usdc, by_block: u64) {
        self.funding.paid(self.call_id, price, by_block);
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
        // Held until the price is set aside: of two that want the same money, the later one sees the other.
        let being_made = self.0.being_made.lock();
        let signed = self.signed_to_bring()?.into_iter().map(|signed| signed.deposit);
        let signed: Vec<_> = signed.map(|deposit| (deposit.config.payee, deposit.amount)).collect();
        let deposits = sum_of_deposits(being_made.clone(), signed);
        let (mut pledges, balances) = self.pledges();
        let balance = balances.ok_or(NotReady::BalanceUnknown)?.usdc;
        let taken = pledges.take(call_id, price, balance.saturating_sub(deposits));
        drop((pledges, being_made));
        taken.map_err(|have| ForeignError::Unfunded { have, need: price })?;
        Ok(Pledge { funding: self.clone(), call_id, is_kept: false })
    }

    /// Sets aside what the user sends from the wallet, so that meanwhile nobody is promised the same money. If nothing is promised,
    /// the chain alone judges it.
    ///
    /// # Errors
    /// [`SetAside`] if it is more than what is left beside the promises.
    pub fn set_aside(&self, amount: Usdc) -> Result<Pledge, SetAside> {
        let (mut pledges, balances) = self.pledges();
        let have = balances.map_or(Usdc::ZERO, |balances| balances.usdc);
        let sent = pledges.send(amount, have);
        drop(pledges);
        let lapsed_after = believed_after(self.0.chain.spec().kind).as_secs();
        let call_id = sent.map_err(|aside| SetAside {
            until_secs: aside.until_secs.map(|secs| secs.saturating_add(lapsed_after)),
            ..aside
        })?;
        Ok(Pledge { funding: self.clone(), call_id, is_kept: false })
    }

    /// Makes a deposit no larger than what is not promised to x402 servers. If nothing is, the chain alone judges it.
    pub(super) fn beside_pledges(
        &self,
        owner: Address,
        wanted: WantedDeposit,
    ) -> Result<WantedDeposit, BuyError> {
        if self.pledges().0.0.is_empty() {
            return Ok(wanted);
        }
        let left = self.balance()?;
        if left.usdc < wanted.least {
            return Err(self.missing(owner, left, wanted.least));
        }
        Ok(WantedDeposit { amount: wanted.amount.min(left.usdc), ..wanted })
    }

    /// Locks the pledges, less those that the wallet's balances show as paid, and reads these balances.
    pub(super) fn pledges(&self) -> (MutexGuard<'_, Pledges>, Option<Balances>) {
        let mut pledges = self.0.pledges.lock();
        // The block first: the balances are published before it, so they are never older.
        let head = *self.0.chain.head().borrow();
        let balances = *self.0.chain.balances().borrow();
        if let Some(head) = head {
            pledges.balance_read(head.confirmed);
        }
        (pledges, balances)
    }

    /// Sets aside what an earlier run of this node promised, whatever the wallet has. It can be taken until then, if that is known.
    pub fn pledge_again(&self, call_id: CallId, price: Usdc, until_secs: Option<u64>) {
        let mut pledges = self.0.pledges.lock();
        pledges.put(call_id, price, None);
        if let Some(until_secs) = until_secs {
            pledges.sign(call_id, until_secs);
        }
    }

    /// Has the price of a payment stay set aside until the balance was read in a block that has it, as this block has.
    pub fn paid(&self, call_id: CallId, price: Usdc, by_block: u64) {
        self.0.pledges.lock().put(call_id, price, Some(by_block));
    }

    /// Gives back what a payment set aside that nobody can take any more.
    pub fn unpledge(&self, call_id: CallId) {
        self.0.pledges.lock().0.remove(&call_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_promised_to_servers_is_left_by_deposits_and_promised_once() {
        let usdc = Usdc::from_micros;
        let [one, two] = [1, 2].map(|n| CallId::from_bytes([n; 16]));
        let mut pledges = Pledges::default();
        assert_eq!(pledges.take(one, usdc(6), usdc(10)), Ok(()));
        assert_eq!(pledges.take(two, usdc(5), usdc(10)), Err(usdc(4)));
        let left = pledges.left_of(Balances { usdc: usdc(10), eth_wei: 7 });
        assert_eq!((left.usdc, left.eth_wei), (usdc(4), 7));
        assert_eq!(pledges.take(two, usdc(4), usdc(10)), Ok(()));
        pledges.0.remove(&one);
        assert_eq!(pledges.left_of(Balances { usdc: usdc(10), eth_wei: 0 }).usdc, usdc(6));
    }

    #[test]
    fn what_a_payment_took_is_set_aside_until_the_balance_was_read_in_a_block_that_has_it() {
        let usdc = Usdc::from_micros;
        let [one, two] = [1, 2].map(|n| CallId::from_bytes([n; 16]));
        let mut pledges = Pledges::default();
        assert_eq!(pledges.take(one, usdc(6), usdc(10)), Ok(()));
        pledges.balance_read(u64::MAX);
        assert_eq!(pledges.sum(), usdc(6), "nobody knows a block that has it");
        pledges.put(one, usdc(6), Some(7));
        for block in [0, 6] {
            pledges.balance_read(block);
            assert_eq!(pledges.take(two, usdc(5), usdc(10)), Err(usdc(4)), "{block}");
        }
        pledges.balance_read(7);
        assert_eq!(pledges.take(two, usdc(4), usdc(4)), Ok(()), "the balance shows it");
    }

    #[test]
    fn what_is_sent_leaves_what_is_promised_and_is_promised_to_nobody_meanwhile() {
        let usdc = Usdc::from_micros;
        let [one, two] = [1, 2].map(|n| CallId::from_bytes([n; 16]));
        let mut pledges = Pledges::default();
        let unpromised = pledges.send(usdc(20), usdc(10)).unwrap();
        pledges.0.remove(&unpromised);
        assert_eq!(pledges.take(one, usdc(6), usdc(10)), Ok(()));
        pledges.sign(one, 60);
        let aside = SetAside { have: usdc(10), promised: usdc(6), until_secs: Some(60) };
        assert_eq!(pledges.send(usdc(5), usdc(10)), Err(aside));
        let told = aside.to_string();
        let words = ["0.000004 USDC now", "0.000006 USDC are promised", "until 1970-01-01T00:01:00Z at most"];
        assert!(words.iter().all(|words| told.contains(words)), "{told}");
        let sent = pledges.send(usdc(4), usdc(10)).unwrap();
        assert_eq!(pledges.take(two, usdc(1), usdc(10)), Err(usdc(0)), "it is on its way");
        pledges.0.remove(&sent);
        assert_eq!(pledges.take(two, usdc(1), usdc(10)), Ok(()));
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
