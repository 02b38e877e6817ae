//! An owner: `PayeeState` in memory, a ledger on disk, and the calls its upstream works on.

use std::collections::BTreeMap;

use farthing_protocol::{RefusalCode, Usdc, channel::PayeeState};

use crate::{
    consumer::sum,
    world::{Id, Receipt, Request},
};

/// What a crash leaves.
#[derive(Default)]
struct Disk {
    deposited: Usdc,
    claimed: Usdc,
    best: Usdc,
    spent: Usdc,
    closing: bool,
    calls: BTreeMap<Id, Receipt>,
}

/// A call at the upstream: its price, and the best voucher when it was admitted, which its commit stores.
#[derive(Clone, Copy)]
struct Running {
    price: Usdc,
    best: Usdc,
}

/// What the owner says of a call.
pub enum Word {
    Done(Receipt),
    Running,
    Refused(RefusalCode),
    Unknown,
}

#[derive(Default)]
pub struct Owner {
    pub state: PayeeState,
    running: BTreeMap<Id, Running>,
    disk: Disk,
    /// The highest deposit the chain ever confirmed to this owner.
    deposited_peak: Usdc,
}

impl Owner {
    pub fn running(&self) -> Vec<Id> {
        self.running.keys().copied().collect()
    }

    pub fn runs(&self, id: Id) -> bool {
        self.running.contains_key(&id)
    }

    pub fn call(&mut self, request: Request) -> Word {
        if let Some(&receipt) = self.disk.calls.get(&request.id).filter(|receipt| !receipt.charged.is_zero())
        {
            return Word::Done(receipt);
        }
        if self.runs(request.id) {
            return Word::Running;
        }
        let before = self.state;
        match self.state.admit(Some(request.voucher.cumulative), request.price) {
            Ok(()) => {
                let running = Running { price: request.price, best: self.state.best };
                self.running.insert(request.id, running);
                self.check();
                Word::Running
            }
            Err(code) => {
                assert_eq!(self.state, before, "a refusal changes nothing");
                Word::Refused(code)
            }
        }
    }

    pub fn status(&self, id: Id) -> Word {
        match self.disk.calls.get(&id) {
            _ if self.runs(id) => Word::Running,
            Some(&receipt) => Word::Done(receipt),
            None => Word::Unknown,
        }
    }

    /// The upstream is done: one commit of voucher, call and charge, then the answer. `None` when it fails.
    pub fn finish(&mut self, id: Id, answered: bool, stored: bool) -> Option<Receipt> {
        let Running { price, best } = self.running.remove(&id)?;
        if !stored {
            self.state.settle(price, Usdc::ZERO);
            self.check();
            return None;
        }
        let charged = if answered { price } else { Usdc::ZERO };
        self.disk.best = self.disk.best.max(best);
        self.disk.spent = sum([self.disk.spent, charged]);
        let receipt = Receipt { id, charged, spent_total: self.disk.spent };
        let earlier = self.disk.calls.insert(id, receipt);
        assert!(earlier.is_none_or(|earlier| earlier.charged.is_zero()), "O5: {id} is charged once");
        self.state.settle(price, charged);
        self.check();
        Some(receipt)
    }

    pub fn crash(&mut self) {
        self.running.clear();
        let Disk { deposited, claimed, best, spent, closing, .. } = self.disk;
        self.state = PayeeState { deposited, claimed, best, spent, reserved: Usdc::ZERO, closing };
        self.check();
    }

    pub fn set_closing(&mut self, closing: bool) {
        self.state.closing = closing;
        self.disk.closing = closing;
    }

    pub fn chain_seen(&mut self, deposited: Usdc, claimed: Usdc) {
        self.deposited_peak = self.deposited_peak.max(deposited);
        for (ours, theirs) in [
            (&mut self.state.deposited, deposited),
            (&mut self.disk.deposited, deposited),
            (&mut self.state.claimed, claimed),
            (&mut self.disk.claimed, claimed),
        ] {
            *ours = theirs;
        }
        self.check();
    }

    /// What may be claimed now: what was durably charged.
    pub fn claimable(&self) -> Usdc {
        self.disk.spent
    }

    pub fn charged(&self) -> impl Iterator<Item = (Id, Usdc)> {
        self.disk.calls.values().map(|receipt| (receipt.id, receipt.charged))
    }

    pub fn check(&self) {
        let PayeeState { claimed, spent, best, reserved, .. } = self.state;
        assert!(claimed <= spent && sum([spent, reserved]) <= best, "O1 in memory: {:?}", self.state);
        assert!(best <= self.deposited_peak, "O1: no voucher beyond what was ever deposited");
        assert!(self.disk.spent <= self.disk.best && self.disk.best <= best, "O1 on disk");
        assert_eq!(self.disk.spent, sum(self.charged().map(|(_, charged)| charged)), "O2");
        assert_eq!(spent, self.disk.spent, "the memory counts as the disk does");
        assert_eq!(reserved, sum(self.running.values().map(|running| running.price)), "what is reserved");
    }
}
