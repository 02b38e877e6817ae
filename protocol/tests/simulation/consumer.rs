//! A consumer: `PayerState` in memory, a ledger on disk, and the calls it is waiting for.

use std::collections::BTreeMap;

use farthing_protocol::{
    Usdc,
    channel::{PayerState, ReceiptMismatch, Voucher},
};

use crate::world::{CHANNEL, Call, Id, Receipt, Request};

/// What a crash leaves.
#[derive(Default)]
struct Disk {
    deposited: Usdc,
    acknowledged: Usdc,
    signed: Usdc,
    /// Open promises.
    promises: BTreeMap<Id, Call>,
    /// What each finished call cost.
    ended: BTreeMap<Id, Usdc>,
}

#[derive(Default)]
pub struct Consumer {
    pub state: PayerState,
    /// How often the deposit went back to this consumer.
    pub withdrawals: usize,
    /// Sent, end unknown.
    pub open: BTreeMap<Id, Call>,
    /// Ended in memory; the disk hears of it later, in order.
    ending: Vec<(Id, Usdc)>,
    disk: Disk,
    /// Calls that a crash made this consumer forget, though the owner may have served them.
    pub forgotten: BTreeMap<Id, Usdc>,
    /// The most that was promised and not durably closed, at any time.
    exposure_peak: Usdc,
    /// The highest voucher ever signed, whatever the disk says.
    pub signed_ever: Usdc,
}

impl Consumer {
    pub fn ended(&self, id: Id) -> Option<Usdc> {
        let in_memory =
            self.ending.iter().rev().find(|(ending, _)| *ending == id).map(|(_, charged)| *charged);
        in_memory.or_else(|| self.disk.ended.get(&id).copied())
    }

    /// Calls that ended without a charge and may be tried again under their id.
    pub fn uncharged(&self) -> Vec<Id> {
        let done =
            self.disk.ended.iter().filter(|(id, charged)| charged.is_zero() && !self.open.contains_key(id));
        done.map(|(id, _)| *id).filter(|id| !self.ending.iter().any(|(ending, _)| ending == id)).collect()
    }

    pub fn deposit_seen(&mut self, deposited: Usdc) {
        self.state.deposited = deposited;
        self.disk.deposited = deposited;
    }

    /// Reserves, signs and sends. `None` when the channel cannot carry the call.
    pub fn start(&mut self, id: Id, price: Usdc) -> Option<Request> {
        let before = self.state;
        let Some(cumulative) = self.state.reserve(price) else {
            assert_eq!(self.state, before, "a refused reservation changes nothing");
            return None;
        };
        assert_eq!(cumulative, sum([before.acknowledged, before.in_flight, price]), "C1: what is signed");
        assert!(cumulative <= self.state.deposited, "no promise beyond the deposit");
        self.signed_ever = self.signed_ever.max(cumulative);
        let (deposit, withdrawals) = (self.state.deposited, self.withdrawals);
        let call = Call { price, cumulative, deposit, withdrawals, durable: false, earlier_run: false };
        self.open.insert(id, call);
        self.exposure_peak = self.exposure_peak.max(self.exposure());
        self.check();
        Some(Request { id, voucher: Voucher { channel: CHANNEL, cumulative }, price })
    }

    /// The same request once more: same id, same voucher.
    pub fn repeat(&self, id: Id) -> Request {
        let call = self.open[&id];
        let voucher = Voucher { channel: CHANNEL, cumulative: call.cumulative };
        Request { id, voucher, price: call.price }
    }

    /// Ends a call with the owner's receipt; one that was ended before is ignored.
    pub fn receive(&mut self, receipt: Receipt) -> Result<(), ReceiptMismatch> {
        self.commit_promise(receipt.id);
        let Some(call) = self.open.remove(&receipt.id) else { return Ok(()) };
        self.ending.push((receipt.id, receipt.charged));
        let result = self.state.acknowledge(call.price, receipt.charged, receipt.spent_total);
        self.check();
        result
    }

    /// Ends a call that was never served.
    pub fn release(&mut self, id: Id) {
        self.commit_promise(id);
        if let Some(call) = self.open.remove(&id) {
            self.state.release(call.price);
            self.ending.push((id, Usdc::ZERO));
        }
        self.check();
    }

    /// Takes over the owner's figure, which a voucher of this consumer's own must cover.
    pub fn take_over(&mut self, spent: Usdc, best: Usdc) {
        assert!(spent <= best && best <= self.signed_ever, "the owner proves what it counts");
        let acknowledged = spent.saturating_sub(self.state.in_flight);
        self.state.acknowledged = self.state.acknowledged.max(acknowledged);
        // Recovery is stored on its own, with everything that ended before.
        self.commit(usize::MAX);
        self.disk.acknowledged = self.state.acknowledged;
    }

    pub fn commit_promise(&mut self, id: Id) {
        if let Some(call) = self.open.get_mut(&id) {
            call.durable = true;
            self.disk.signed = self.disk.signed.max(call.cumulative);
            self.disk.promises.insert(id, *call);
        }
    }

    /// Stores the ends of the `count` oldest calls that ended.
    pub fn commit(&mut self, count: usize) {
        for (id, charged) in self.ending.drain(..count.min(self.ending.len())) {
            if self.disk.promises.remove(&id).is_some() {
                self.disk.acknowledged = sum([self.disk.acknowledged, charged]);
            }
            self.disk.ended.insert(id, charged);
        }
        self.check();
    }

    /// Loses the memory, and with it promises whose commit had not finished.
    pub fn crash(&mut self) {
        self.ending.clear();
        for (id, call) in std::mem::take(&mut self.open) {
            if !call.durable {
                self.forgotten.insert(id, call.price);
            }
        }
        self.open = self.disk.promises.clone();
        self.open.values_mut().for_each(|call| call.earlier_run = true);
        self.state = PayerState {
            deposited: self.disk.deposited,
            acknowledged: self.disk.acknowledged,
            in_flight: sum(self.open.values().map(|call| call.price)),
            signed: self.disk.signed,
            stopped: false,
        };
        self.check();
    }

    fn exposure(&self) -> Usdc {
        let ending =
            self.ending.iter().filter_map(|(id, _)| self.disk.promises.get(id)).map(|call| call.price);
        sum(self.open.values().map(|call| call.price).chain(ending).chain(self.forgotten.values().copied()))
    }

    pub fn check(&self) {
        assert_eq!(self.state.in_flight, sum(self.open.values().map(|call| call.price)), "what is in flight");
        let at_risk = self.signed_ever.saturating_sub(self.state.acknowledged);
        assert!(
            at_risk <= self.exposure_peak,
            "C1: {at_risk} at risk, peak in flight {}",
            self.exposure_peak
        );
        let charges = sum(self.disk.ended.values().copied());
        if self.forgotten.is_empty() {
            assert_eq!(self.disk.acknowledged, charges, "acknowledged is the sum of all charges");
        }
    }
}

pub fn sum(amounts: impl IntoIterator<Item = Usdc>) -> Usdc {
    farthing_protocol::money::checked_sum(amounts).expect("the simulation moves little money")
}
