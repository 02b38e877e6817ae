//! The world between a consumer and an owner: a chain both see late, and a network that loses, doubles and
//! reorders what is sent.
//!
//! Assumed, as the node keeps it: a reply belongs to the stream of its request; "never served" and "not
//! charged" are believed when no copy of the request is on its way any more (a stream that does not deliver
//! its head within seconds is given up).

use farthing_protocol::{ChannelId, RefusalCode, Usdc, Voucher, channel::ReceiptMismatch};

use crate::{
    consumer::{Consumer, sum},
    owner::{Owner, Word},
    random::Random,
};

pub const CHANNEL: ChannelId = ChannelId::NONE;
pub type Id = usize;

#[derive(Clone, Copy)]
pub struct Call {
    pub price: Usdc,
    pub cumulative: Usdc,
    /// The deposit when it was signed, and how often the deposit had been withdrawn by then.
    pub deposit: Usdc,
    pub withdrawals: usize,
    pub durable: bool,
    /// Promised before a crash: it is asked about and not repeated, because it may have ended uncharged and
    /// later calls may use its headroom.
    pub earlier_run: bool,
}

#[derive(Clone, Copy)]
pub struct Request {
    pub id: Id,
    pub voucher: Voucher,
    pub price: Usdc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub id: Id,
    pub charged: Usdc,
    pub spent_total: Usdc,
}

pub struct World {
    pub random: Random,
    /// Crashes of the consumer may come before its promises are stored.
    pub forgetful: bool,
    pub consumer: Consumer,
    pub owner: Owner,
    deposited: Usdc,
    claimed: Usdc,
    requests: Vec<Request>,
    receipts: Vec<Receipt>,
    next_id: Id,
    /// A cooperative close was asked for.
    closing: bool,
}

impl World {
    pub fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            forgetful: seed % 4 == 3,
            consumer: Consumer::default(),
            owner: Owner::default(),
            deposited: Usdc::ZERO,
            claimed: Usdc::ZERO,
            requests: Vec::new(),
            receipts: Vec::new(),
            next_id: 0,
            closing: false,
        }
    }

    pub fn step(&mut self) {
        match self.random.below(100) {
            0..20 => self.start(),
            20..40 => self.deliver_request(),
            40..55 => self.finish(),
            55..70 => self.deliver_receipt(),
            70..75 => self.repeat(),
            75..81 => self.ask(),
            81..87 => self.commit(),
            87..92 => self.chain(),
            92..94 => self.claim(),
            94..95 => self.close(),
            95..97 => self.crash_consumer(),
            97..99 => self.owner.crash(),
            _ => self.lose(),
        }
    }

    fn start(&mut self) {
        let again = self.consumer.uncharged();
        let id = if !again.is_empty() && self.random.chance(20) {
            again[self.random.below(again.len())]
        } else {
            self.next_id += 1;
            self.next_id
        };
        let price = Usdc::from_micros([1, 2, 2, 3, 7, 0][id % 6]);
        if let Some(request) = self.consumer.start(id, price) {
            self.requests.push(request);
            if !self.forgetful || self.random.chance(70) {
                self.consumer.commit_promise(id);
            }
        }
    }

    fn deliver_request(&mut self) {
        let Some(request) = self.random.take(&mut self.requests) else { return };
        if self.random.chance(15) {
            self.requests.push(request);
        }
        match self.owner.call(request) {
            Word::Done(receipt) => self.receipts.push(receipt),
            Word::Refused(code) => self.refused(request, code),
            // The consumer reads the newest stream of a call; replies on older ones are not heard.
            Word::Running | Word::Unknown => self.receipts.retain(|receipt| receipt.id != request.id),
        }
    }

    /// Is the refusal right? Then the call is over, unless another copy of it is on its way.
    fn refused(&mut self, request: Request, code: RefusalCode) {
        let known = self.consumer.open.get(&request.id);
        match code {
            RefusalCode::ChannelClosing => assert!(self.closing, "no close was asked for"),
            RefusalCode::VoucherAboveDeposit => {
                let seen = self.owner.state.deposited;
                // With an old best voucher above it, a deposit that this owner has yet to see may be in use.
                let behind = self.deposited > seen && self.owner.state.best > seen;
                let within = known.is_some_and(|call| {
                    call.deposit <= seen && call.withdrawals == self.consumer.withdrawals
                });
                assert!(
                    !within || behind || self.forgot(),
                    "a voucher within the deposit of {seen} is refused"
                );
            }
            RefusalCode::InsufficientVoucher => assert!(self.forgot(), "honest traffic is refused: {code:?}"),
            other => panic!("{other:?} is not the channel's to say"),
        }
        if self.forgot() {
            self.sync();
        }
        self.end_uncharged(request.id);
    }

    fn finish(&mut self) {
        let Some(id) = self.random.take(&mut self.owner.running()) else { return };
        let (answered, stored) = (self.random.chance(75), self.random.chance(95));
        if let Some(receipt) = self.owner.finish(id, answered, stored) {
            self.receipts.push(receipt);
        }
    }

    fn deliver_receipt(&mut self) {
        let Some(receipt) = self.random.take(&mut self.receipts) else { return };
        if self.random.chance(15) {
            self.receipts.push(receipt);
        }
        self.receive(receipt);
    }

    fn receive(&mut self, receipt: Receipt) {
        if receipt.charged.is_zero() && (self.on_its_way(receipt.id) || self.owner.runs(receipt.id)) {
            return;
        }
        match self.consumer.receive(receipt) {
            Ok(()) => {}
            Err(ReceiptMismatch::UnexplainedTotal { .. }) if self.forgot() => self.sync(),
            Err(mismatch) => panic!("an honest receipt is distrusted: {mismatch}"),
        }
        if receipt.charged.is_zero() {
            self.receipts.retain(|other| other.id != receipt.id);
        }
    }

    fn repeat(&mut self) {
        let open = self.consumer.open.iter().filter(|(_, call)| !call.earlier_run);
        let mut ids: Vec<Id> = open.map(|(id, _)| *id).collect();
        if let Some(id) = self.random.take(&mut ids) {
            self.requests.push(self.consumer.repeat(id));
        }
    }

    /// "What became of this call?" The question or its answer may be lost.
    fn ask(&mut self) {
        let mut ids: Vec<Id> = self.consumer.open.keys().copied().collect();
        if let Some(id) = self.random.take(&mut ids).filter(|_| self.random.chance(70)) {
            self.resolve(id);
        }
    }

    fn resolve(&mut self, id: Id) {
        match self.owner.status(id) {
            Word::Done(receipt) => self.receive(receipt),
            Word::Unknown => self.end_uncharged(id),
            Word::Running | Word::Refused(_) => {}
        }
    }

    fn end_uncharged(&mut self, id: Id) {
        if !self.on_its_way(id) && matches!(self.owner.status(id), Word::Unknown) {
            self.consumer.release(id);
        }
    }

    fn on_its_way(&self, id: Id) -> bool {
        self.requests.iter().any(|request| request.id == id)
    }

    fn forgot(&self) -> bool {
        !self.consumer.forgotten.is_empty()
    }

    fn sync(&mut self) {
        self.consumer.take_over(self.owner.state.spent, self.owner.state.best);
    }

    fn commit(&mut self) {
        let count = self.random.below(4);
        self.consumer.commit(count);
    }

    /// More is deposited, or one side sees what the chain has confirmed.
    fn chain(&mut self) {
        match self.random.below(3) {
            0 if !self.closing => {
                let amount = Usdc::from_micros(5 + self.random.next() % 40);
                self.deposited = sum([self.deposited, amount]);
            }
            1 => self.consumer.deposit_seen(self.deposited),
            _ => self.owner.chain_seen(self.deposited, self.claimed),
        }
    }

    fn claim(&mut self) {
        let amount = self.owner.claimable();
        assert!(amount <= self.consumer.signed_ever, "X2: every charge is covered by a signed voucher");
        assert!(amount <= self.deposited, "X2: every charge is covered by the deposit");
        self.claimed = self.claimed.max(amount);
    }

    /// The payer asks to close; once nothing runs the owner claims, and the rest goes back.
    fn close(&mut self) {
        if !self.closing {
            self.closing = true;
            self.consumer.state.stopped = true;
            self.owner.set_closing(true);
        } else if self.owner.running().is_empty() {
            self.claim();
            self.deposited = self.claimed;
            self.owner.chain_seen(self.deposited, self.claimed);
            self.consumer.deposit_seen(self.deposited);
            self.consumer.withdrawals += 1;
            self.owner.set_closing(false);
            self.consumer.state.stopped = false;
            self.closing = false;
        }
    }

    fn crash_consumer(&mut self) {
        self.consumer.crash();
        self.receipts.clear();
        self.consumer.state.stopped = self.closing;
    }

    fn lose(&mut self) {
        if self.random.chance(50) {
            self.random.take(&mut self.requests);
        } else {
            self.random.take(&mut self.receipts);
        }
    }

    /// Everything that is under way arrives, every call finds its end.
    pub fn come_to_rest(&mut self) {
        while !self.requests.is_empty() {
            self.deliver_request();
        }
        for id in self.owner.running() {
            self.owner.finish(id, true, true);
        }
        for id in self.consumer.open.keys().copied().collect::<Vec<_>>() {
            self.resolve(id);
        }
        if self.forgot() {
            self.sync();
        }
        self.consumer.commit(usize::MAX);
        self.check_rest();
    }

    fn check_rest(&self) {
        let (payer, payee) = (self.consumer.state, self.owner.state);
        assert!(self.consumer.open.is_empty() && payer.in_flight.is_zero(), "C4: every call has its end");
        assert_eq!(payee.reserved, Usdc::ZERO);
        let charges = sum(self.owner.charged().map(|(_, charged)| charged));
        assert_eq!(payee.spent, charges, "O2");
        // A forgotten call that was taken over with the owner's figure and bought again under its id counts
        // twice here, and never in the owner's books.
        let forgotten = &self.consumer.forgotten;
        let slack = sum(forgotten.values().copied());
        assert!(payer.acknowledged >= charges, "M4: every charge is acknowledged");
        assert!(payer.acknowledged <= sum([charges, slack]), "M4: nothing else is acknowledged");
        for (id, charged) in self.owner.charged().filter(|(id, _)| !forgotten.contains_key(id)) {
            assert_eq!(self.consumer.ended(id), Some(charged), "X1: both know what call {id} cost");
        }
    }
}
