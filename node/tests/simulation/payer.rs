//! The consumer's node: its books, and what it does next about each call that it works on.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use farthing_ledger::{Acknowledgement, Ledger, LedgerError, PayerChannelFacts, Promise, Purchase, day_of};
use farthing_node::consumer::{
    accounts::{Accounts, Attempt, CountedReceipt, Earlier, expected_of, tells_of_all},
    answer::ExpectedAnswer,
    channels::{PayerChannels, Reservation},
    spending::{Grant, SpendingCaps},
};
use farthing_os::clock;
use farthing_protocol::{
    CallId, CallReply, CallRequest, ChannelId, RefusalCode, ServiceId, Usdc, Voucher,
    call::{ChargePolicy, Method, Payment},
    resolution::{Copies, CopyOutcome, End, OwnerAnswer, Step},
};
use farthing_wallet::{Signer, Wallet};
use futures::executor::block_on;

use self::receipts::{acknowledgement, receipt_in, verified};
use crate::{
    disk::Survival,
    machine::{Machine, unless_dead},
    payee::Payee,
    wire::Brought,
    world::{Chain, Terms, sum},
};

mod receipts;

const SECRET: &str = "laptop";
const LIMITS: SpendingCaps =
    SpendingCaps { price_max: Usdc::MAX, per_day: Usdc::MAX, per_secret_day: Usdc::MAX };

/// What is done next about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send a copy.
    Send,
    /// Ask the owner what became of it.
    Ask,
    /// A copy is on its way.
    HearCopy(u64),
    /// So is a question.
    HearWord(u64),
    /// Its receipt is being stored; a repeat waits.
    Stored,
}

/// A call that somebody works on.
#[derive(Debug)]
pub struct Work {
    pub attempt: Attempt,
    copies: Copies,
    pub next: Next,
    /// When the copy or the question left.
    sent: Duration,
    /// The caller was told that its end is not known.
    pub is_in_background: bool,
}

/// A receipt on its way to the ledger.
struct Store {
    attempt: Attempt,
    counted: CountedReceipt,
    acknowledgement: Acknowledgement,
}

pub struct Payer {
    pub signer: Signer,
    pub ledger: Ledger,
    pub machine: Machine,
    pub channels: Arc<PayerChannels>,
    pub accounts: Accounts,
    pub works: BTreeMap<CallId, Work>,
    /// Promises that the ledger does not have yet, in order.
    unstored: VecDeque<Promise>,
    stores: Vec<Store>,
    /// Calls that a crash made this node forget.
    pub forgotten: BTreeSet<CallId>,
    started: Duration,
    /// The books were compared since the start, and once more when no earlier copy could arrive.
    is_compared: bool,
    is_compared_last: bool,
    /// An emptied channel is left out of that until something is promised on it again.
    is_left_out: bool,
    terms: Terms,
}

impl Payer {
    pub fn new(terms: &Terms) -> Self {
        let signer = Wallet::from_key(terms.payer.clone()).signer(terms.domain);
        let (machine, ledger) = Machine::new();
        let channels = Arc::new(PayerChannels::default());
        let accounts = accounts(&ledger, &channels, &signer);
        let (works, unstored, stores) = (BTreeMap::new(), VecDeque::new(), Vec::new());
        let (forgotten, terms) = (BTreeSet::new(), terms.clone());
        Self {
            signer,
            ledger,
            machine,
            channels,
            accounts,
            works,
            unstored,
            stores,
            forgotten,
            started: Duration::ZERO,
            is_compared: true,
            is_compared_last: true,
            is_left_out: false,
            terms,
        }
    }

    /// Buys a call, or goes on with one whose end is not known, as a caller does that repeats it.
    pub fn buy(&mut self, payee: &Payee, request: CallRequest, now: Duration) {
        let call_id = request.call_id;
        let mut copies = Copies::default();
        match self.accounts.earlier(call_id).unwrap() {
            _ if self.works.get(&call_id).is_some_and(|work| !work.is_in_background) => return,
            Earlier::Bought(_) => return,
            Earlier::Open(promise) => {
                self.compare(payee, now, false);
                let Some(work) = self.works.get_mut(&call_id).filter(|work| work.next == Next::Ask) else {
                    return;
                };
                work.copies.doubt(now);
                (work.attempt, work.next, work.is_in_background) = (Attempt::of(*promise), Next::Send, false);
                return;
            }
            Earlier::InDoubt => copies.doubt(now),
            Earlier::Nothing => {}
        }
        if let Some(attempt) = self.promise(payee, request, now) {
            let work = Work { attempt, copies, next: Next::Send, sent: now, is_in_background: false };
            self.works.insert(call_id, work);
            self.check();
        }
    }

    /// Headroom, limits and a voucher. `None` when the channel cannot carry the call now.
    fn promise(&mut self, payee: &Payee, mut request: CallRequest, now: Duration) -> Option<Attempt> {
        let (owner, now_secs, price) = (self.terms.config.payee, clock::now_secs(), request.price);
        let mut reservation = None;
        if !price.is_zero() {
            if std::mem::take(&mut self.is_left_out) {
                (self.is_compared, self.is_compared_last) = (false, false);
            }
            self.compare(payee, now, false);
            if !self.channels.unexplained(owner).is_zero() {
                self.heal(payee, now);
            }
            reservation = Some(self.channels.reserve(owner, price, now_secs).ok()?);
        }
        let grant = Grant::unlimited(SECRET);
        let day = day_of(now_secs);
        self.accounts.spending_of(day).unwrap().reserve(&LIMITS, day, &grant, price).unwrap();
        if let Some(Reservation { channel, cumulative, deposited, .. }) = reservation {
            let voucher = Voucher { channel, cumulative };
            let signature = Some(self.signer.sign_voucher(&voucher, deposited).unwrap());
            request.payment = Payment::Channel { channel, cumulative, signature, receipted: None };
        }
        let request_hash = request.request_hash(&[]);
        let expected = ExpectedAnswer {
            owner,
            call_id: request.call_id,
            channel: reservation.map_or(ChannelId::NONE, |reservation| reservation.channel),
            request_hash,
            price,
            charge_policy: ChargePolicy::Success,
        };
        let promise = Promise {
            request,
            request_hash,
            owner,
            secret: SECRET.to_owned(),
            time_secs: now_secs,
            limits: None,
            seen_total: reservation.map_or(Usdc::ZERO, |reservation| reservation.seen_total),
            charge_policy: ChargePolicy::Success,
        };
        self.unstored.push_back(promise.clone());
        let promise = Arc::new(promise);
        Some(Attempt { promise, body: Bytes::new(), expected, reservation, funding: Duration::ZERO })
    }

    pub fn waits_for(&mut self, call_id: CallId, next: Next, now: Duration) {
        if let Some(work) = self.works.get_mut(&call_id) {
            (work.next, work.sent) = (next, now);
        }
    }

    /// Whether a refusal is taken as the owner's lag and the call simply sent again.
    pub fn is_lag(&self, call_id: CallId, brought: &Brought) -> bool {
        let Brought::Reply(CallReply::Refused(refusal)) = brought else { return false };
        let lags = matches!(refusal.code, RefusalCode::UnknownChannel | RefusalCode::VoucherAboveDeposit);
        lags && self.works.get(&call_id).is_some_and(|work| !work.copies.are_in_doubt())
    }

    /// What came back on a stream.
    pub fn hear(&mut self, payee: &Payee, call_id: CallId, brought: &Brought, now: Duration) {
        let Some(work) = self.works.get_mut(&call_id) else { return };
        if matches!(work.next, Next::HearWord(_)) {
            let said = match brought {
                Brought::Reply(reply) => OwnerAnswer::of(reply),
                Brought::Lost | Brought::NotSent => None,
            };
            match (said.map_or(End::Open, |said| said.end(&work.copies, work.sent)), brought) {
                (End::Receipt, Brought::Reply(reply)) => self.end(call_id, reply),
                (End::NotCharged, _) => self.release(call_id),
                (End::Open | End::Receipt, _) => work.next = Next::Ask,
            }
            return;
        }
        let heard = match brought {
            Brought::Reply(reply) => CopyOutcome::of(reply),
            Brought::Lost => CopyOutcome::Lost,
            Brought::NotSent => CopyOutcome::NotSent,
        };
        match (work.copies.hear(heard, now), brought) {
            (Step::Again, _) => work.next = Next::Send,
            (Step::Ask, _) => work.next = Next::Ask,
            (Step::Answered | Step::Served, Brought::Reply(reply)) => self.end(call_id, reply),
            (Step::Unasked, Brought::Reply(reply)) => self.end_unasked(payee, call_id, reply, now),
            (Step::Uncharged, _) => self.end_uncharged(payee, call_id, heard, now),
            (step, brought) => panic!("{step:?} after {brought:?}"),
        }
        self.check();
    }

    fn end_uncharged(&mut self, payee: &Payee, call_id: CallId, heard: CopyOutcome, now: Duration) {
        self.release(call_id);
        if heard == CopyOutcome::Refused(RefusalCode::InsufficientVoucher) {
            assert!(!self.forgotten.is_empty(), "between honest books every voucher is sufficient");
            self.heal(payee, now);
        }
    }

    fn end_unasked(&mut self, payee: &Payee, call_id: CallId, reply: &CallReply, now: Duration) {
        let (receipt, _) = receipt_in(reply);
        let attempt = self.works[&call_id].attempt.clone();
        if !receipt.charged.is_zero() && !self.accounts.may_be_forgotten(&attempt, &receipt) {
            self.compare(payee, now, true);
            let is_honest = self.accounts.may_be_forgotten(&attempt, &receipt);
            assert!(is_honest, "an honest receipt is distrusted: nobody asked for it");
        }
        self.end(call_id, reply);
    }

    fn end(&mut self, call_id: CallId, reply: &CallReply) {
        self.store_promises(usize::MAX);
        let Some(work) = self.works.get_mut(&call_id) else { return };
        work.next = Next::Stored;
        let receipt = verified(&work.attempt.expected, &self.signer, reply);
        let attempt = work.attempt.clone();
        let counted = self.accounts.count(&attempt, &receipt);
        assert_eq!(counted.mismatch, None);
        self.stores.push(Store { attempt, counted, acknowledgement: acknowledgement(receipt) });
    }

    fn release(&mut self, call_id: CallId) {
        self.store_promises(usize::MAX);
        let Some(work) = self.works.remove(&call_id) else { return };
        block_on(self.accounts.release(&work.attempt, "not charged", &work.copies));
    }

    /// The caller's patience ends: what is not known by now is asked for in the background.
    pub fn give_up(&mut self, payee: &Payee, call_id: CallId, now: Duration) {
        let waits = |work: &&mut Work| !work.is_in_background && matches!(work.next, Next::Send | Next::Ask);
        let Some(work) = self.works.get_mut(&call_id).filter(waits) else { return };
        if !work.copies.are_in_doubt() {
            return self.end_uncharged(payee, call_id, CopyOutcome::NotSent, now);
        }
        self.store_promises(usize::MAX);
        let Some(promise) = self.ledger.promise_of(call_id).unwrap() else { return };
        let Some(work) = self.works.get_mut(&call_id) else { return };
        work.copies.doubt(now);
        (work.attempt, work.next, work.is_in_background) = (Attempt::of(promise), Next::Ask, true);
    }

    pub fn store_promises(&mut self, count: usize) {
        for promise in self.unstored.iter().take(count).cloned().collect::<Vec<_>>() {
            if unless_dead(block_on(record(&self.ledger, promise))).is_none() {
                return;
            }
            self.unstored.pop_front();
        }
    }

    /// One receipt reaches the ledger.
    pub fn store(&mut self, payee: &Payee, pick: usize, now: Duration) {
        if self.stores.is_empty() {
            return;
        }
        let Store { attempt, counted, acknowledgement } = self.stores.swap_remove(pick % self.stores.len());
        block_on(self.accounts.store(&attempt, &counted, acknowledgement));
        if self.is_dead() {
            return;
        }
        self.works.remove(&attempt.call_id());
        if !self.channels.unexplained(self.terms.config.payee).is_zero() {
            self.heal(payee, now);
        }
        self.check();
    }

    pub fn has_stores(&self) -> bool {
        !self.stores.is_empty()
    }

    /// Compares the books after a start, and once more when no copy of an earlier run can arrive.
    pub fn compare(&mut self, payee: &Payee, now: Duration, again: bool) {
        let is_last = tells_of_all(now.saturating_sub(self.started));
        if self.is_compared_last || (self.is_compared && !is_last && !again) {
            return;
        }
        if let Some(sync) = payee.sync() {
            let owner = self.terms.config.payee;
            unless_dead(block_on(self.accounts.take_over(owner, self.terms.channel, &sync)));
        }
        (self.is_compared, self.is_compared_last) = (true, is_last);
        if is_last && self.channels.get(self.terms.channel).is_none_or(|channel| channel.forgotten.is_zero())
        {
            unless_dead(block_on(self.ledger.note_compared(self.terms.channel)));
        }
    }

    /// The owner counts more than this node: the calls that explain it are looked for.
    pub fn heal(&mut self, payee: &Payee, now: Duration) {
        let owner = self.terms.config.payee;
        let Some(sync) = payee.sync() else { return };
        block_on(self.accounts.book_forgotten(owner, self.terms.channel, sync.spent));
        self.channels.hear(self.terms.channel, sync.spent);
        let unexplained = || self.channels.unexplained(owner);
        if unexplained().is_zero() {
            return;
        }
        for purchase in self.ledger.released_in_doubt(self.terms.channel).unwrap() {
            if !unexplained().is_zero() && !self.works.contains_key(&purchase.call_id) {
                self.take_late(payee, &purchase);
            }
        }
        if !unexplained().is_zero() {
            self.compare(payee, now, true);
        }
        let unexplained = self.channels.unexplained(owner);
        assert!(
            unexplained.is_zero() || self.is_dead(),
            "an honest owner is distrusted: {unexplained} unexplained"
        );
    }

    fn take_late(&self, payee: &Payee, purchase: &Purchase) {
        let reply = payee.status(purchase.call_id);
        if matches!(OwnerAnswer::of(&reply), Some(OwnerAnswer::Receipt { .. })) {
            let receipt = verified(&expected_of(purchase), &self.signer, &reply);
            if !receipt.charged.is_zero() {
                block_on(self.accounts.book_late(purchase, receipt));
            }
        }
    }

    /// No forgotten call can still run.
    pub fn settle_forgotten(&mut self, payee: &Payee) {
        let owner = self.terms.config.payee;
        if let Some(sync) = payee.sync() {
            block_on(self.accounts.book_forgotten(owner, self.terms.channel, sync.spent));
        }
        self.channels.forgive(self.terms.channel);
        block_on(self.ledger.note_compared(self.terms.channel)).unwrap();
    }

    /// Stores everything that is on its way to the ledger, and starts again.
    pub fn stop_and_start(&mut self, now: Duration) {
        self.store_promises(usize::MAX);
        for Store { attempt, counted, acknowledgement } in std::mem::take(&mut self.stores) {
            block_on(self.accounts.store(&attempt, &counted, acknowledgement));
        }
        block_on(self.ledger.end_promises()).unwrap();
        self.ledger = self.machine.start_again(Survival::All);
        self.start(now);
    }

    /// Loses the memory, and with it promises and receipts whose commit did not survive on the disk. Starts again.
    pub fn restart(&mut self, survival: Survival, now: Duration) {
        self.ledger = self.machine.start_again(survival);
        let unstored = self.unstored.drain(..).map(|promise| promise.request.call_id);
        self.forgotten.extend(unstored.filter(|id| self.ledger.promise_of(*id).unwrap().is_none()));
        self.stores.clear();
        self.start(now);
    }

    /// Whether the power is gone.
    pub fn is_dead(&self) -> bool {
        self.ledger.closed().is_some()
    }

    fn start(&mut self, now: Duration) {
        self.works.clear();
        self.channels = Arc::new(PayerChannels::default());
        self.accounts = accounts(&self.ledger, &self.channels, &self.signer);
        for row in self.ledger.payer_channels().unwrap() {
            self.channels.apply(&row, None);
        }
        let open = self.ledger.unresolved().unwrap();
        self.accounts.restore(&open).unwrap();
        for promise in open {
            let (copies, attempt) = (Copies::in_doubt(now), Attempt::of(promise));
            let work = Work { attempt, copies, next: Next::Ask, sent: now, is_in_background: true };
            self.works.insert(work.attempt.call_id(), work);
        }
        let channel = self.channels.get(self.terms.channel);
        self.is_left_out = channel.is_none_or(|channel| !channel.holds_something());
        (self.is_compared, self.is_compared_last) = (self.is_left_out, self.is_left_out);
        self.started = now;
        self.check();
    }

    pub const fn is_compared(&self) -> bool {
        self.is_compared
    }

    pub fn see(&mut self, chain: &Chain) {
        // What was queued for the ledger before comes before.
        self.store_promises(usize::MAX);
        let facts = PayerChannelFacts {
            id: self.terms.channel,
            config: self.terms.config,
            deposited: chain.deposited,
            claimed: chain.claimed,
            round: None,
            stopped: false,
        };
        unless_dead(block_on(self.accounts.observe(facts, None)));
    }

    /// C2: what is counted against today's limits is what the ledger holds of the day.
    pub fn check_limits(&self) {
        let today = day_of(clock::now_secs());
        let stored = sum(self.ledger.day_totals(today).unwrap().into_iter().map(|(_, total)| total));
        let counted = self.accounts.spending_of(today).unwrap().total(today);
        // Midnight may have passed meanwhile.
        assert!(counted == stored || counted.is_zero(), "C2: {counted} counted, {stored} stored");
    }

    pub fn check(&self) {
        let Some(channel) = self.channels.get(self.terms.channel) else { return };
        let is_open = |work: &&Work| work.next != Next::Stored;
        let prices = self.works.values().filter(is_open).map(|work| work.attempt.expected.price);
        let found = self.stores.iter().filter(|store| store.counted.found.is_some());
        let known = sum(prices.chain(found.map(|store| store.attempt.expected.price)));
        let state = channel.state;
        assert_eq!(state.in_flight, sum([known, channel.forgotten]), "what is in flight: {channel:?}");
    }
}

async fn record(ledger: &Ledger, promise: Promise) -> Result<(), LedgerError> {
    ledger.promise(promise).await?.await.map(drop)
}

fn accounts(ledger: &Ledger, channels: &Arc<PayerChannels>, signer: &Signer) -> Accounts {
    Accounts::new(ledger.clone(), channels.clone(), (signer.address(), *signer.domain()))
}

/// The call with this number; a number is asked for in one way and at one price.
pub fn request(number: u64) -> CallRequest {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    let price = [1, 2, 2, 3, 7, 0][usize::try_from(number % 6).unwrap()];
    CallRequest {
        call_id: CallId::from_bytes(bytes),
        service: ServiceId::from_bytes([7; 16]),
        listing_version: 1,
        method: if (number / 6).is_multiple_of(3) { Method::Post } else { Method::Get },
        path: "/quakes".to_owned(),
        params: BTreeMap::new(),
        headers: BTreeMap::new(),
        body_bytes: 0,
        price: Usdc::from_micros(price),
        deadline_ms: 30_000,
        payment: Payment::Free,
    }
}
