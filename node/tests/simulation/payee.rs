//! The owner's node: its book, its calls in progress and its ledger, between messages and a service.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use farthing_ledger::{
    AcceptedCall, Call, CallRow, Ending, Ledger, LedgerError, PayeeChannelFacts, Served, ServedRow,
};
use farthing_os::clock;
use farthing_owner::{
    answer::Answer,
    book::{self, Book, Reserved, View},
    record::record_of,
    running::{Arrival, Calls, RunningCall},
    upstream::UpstreamAnswer,
};
use farthing_protocol::{
    Address, CallId, CallReply, CallRequest, ChannelId, Outcome, Receipt, Refusal, RefusalCode, Usdc,
    Voucher,
    call::{CallStatus, ChannelSync, ChargePolicy, Payment, response_hash},
    resolution::{Record, Repeat, repeat},
};
use farthing_shared::gas::GasMeans;
use farthing_wallet::{Signer, Wallet};
use futures::executor::block_on;

use crate::{
    disk::Survival,
    machine::{Machine, unless_dead},
    service::Service,
    world::{Chain, Terms, sum},
};

/// A call at the service.
struct Serving {
    request: CallRequest,
    reserved: Option<Reserved>,
    running: RunningCall,
    /// Streams on which its end is waited for.
    waiting: Vec<u64>,
}

pub struct Payee {
    pub signer: Signer,
    pub ledger: Ledger,
    pub machine: Machine,
    pub service: Service,
    pub book: Book,
    calls: Calls,
    serving: BTreeMap<CallId, Serving>,
    channel: ChannelId,
    payer: Address,
    /// The highest deposit the chain ever confirmed to this owner.
    deposited_peak: Usdc,
}

impl Payee {
    pub fn new(terms: &Terms) -> Self {
        let (machine, ledger) = Machine::new();
        Self {
            signer: Wallet::from_key(terms.payee.clone()).signer(terms.domain),
            ledger,
            machine,
            service: Service::default(),
            book: Book::new(Usdc::ZERO, Usdc::MAX),
            calls: Calls::default(),
            serving: BTreeMap::new(),
            channel: terms.channel,
            payer: terms.payer.address(),
            deposited_peak: Usdc::ZERO,
        }
    }

    pub fn serving(&self) -> Vec<CallId> {
        self.serving.keys().copied().collect()
    }

    /// Streams on which an answer is to come.
    pub fn waiting(&self) -> Vec<u64> {
        self.serving.values().flat_map(|serving| serving.waiting.iter().copied()).collect()
    }

    /// One copy of a call. `None` while its answer is waited for.
    pub fn call(&mut self, stream: u64, request: CallRequest) -> Option<CallReply> {
        let (call_id, hash) = (request.call_id, request.request_hash(&[]));
        let running = match self.calls.arrive((self.payer, call_id)) {
            Arrival::Repeat(_) => {
                let answer = self.calls.status(&(self.payer, call_id)).flatten();
                if answer.is_none() {
                    self.serving.get_mut(&call_id).unwrap().waiting.push(stream);
                }
                return answer.map(|answer| reply_of(&answer));
            }
            Arrival::First(running) => running,
        };
        running.asks_for(hash);
        let (answer, is_final) = match self.recorded(&request) {
            Some(answer) => (answer, true),
            None => match self.admit(&request) {
                Ok(reserved) => {
                    let has_ended = self.has_ended(call_id);
                    self.service.execute(call_id, request.method.is_safe(), has_ended).unwrap();
                    let serving = Serving { request, reserved, running, waiting: vec![stream] };
                    self.serving.insert(call_id, serving);
                    self.check();
                    return None;
                }
                Err(code) => (refused(code), false),
            },
        };
        running.finish(answer.clone(), is_final);
        Some(reply_of(&answer))
    }

    /// Whether an answer or a charge of a call is stored.
    fn has_ended(&self, call_id: CallId) -> bool {
        let row = self.ledger.served(self.payer, call_id).unwrap();
        matches!(row, Some(ServedRow::Done(row)) if row.receipt.is_final())
    }

    /// What the ledger has of a call, for another copy of it; `None` when it is to be served.
    fn recorded(&mut self, request: &CallRequest) -> Option<Arc<Answer>> {
        let row = match self.ledger.served(self.payer, request.call_id).unwrap()? {
            ServedRow::Accepted(_) => return self.by_rule(Record::Interrupted, request, None),
            ServedRow::Done(row) => row,
        };
        assert_eq!(row.call.request_hash, request.request_hash(&[]));
        let is_kept = row.call.body.is_some();
        self.by_rule(record_of(&row, is_kept), request, Some(&row))
    }

    fn by_rule(
        &mut self,
        record: Record,
        request: &CallRequest,
        row: Option<&CallRow>,
    ) -> Option<Arc<Answer>> {
        match (repeat(record, request.method.is_safe()), row) {
            (Repeat::Serve, _) => None,
            (Repeat::AskOnceMore, Some(row)) => {
                let taken = self.ledger.repeat(self.payer, request.call_id, clock::now_secs());
                Some(match unless_dead(block_on(taken)) {
                    Some(true) => self.ask_once_more(request, row),
                    Some(false) => self.done(row),
                    None => refused(RefusalCode::Unavailable),
                })
            }
            (Repeat::Answer, Some(row)) => self.stored(row),
            (Repeat::Receipt, Some(row)) => Some(self.done(row)),
            _ => Some(refused(RefusalCode::MayHaveRun)),
        }
    }

    fn ask_once_more(&mut self, request: &CallRequest, row: &CallRow) -> Arc<Answer> {
        self.service.execute(request.call_id, request.method.is_safe(), true).unwrap();
        let said = said(row.call.outcome, row.call.status);
        Answer::repeated(row, said, |receipt| Ok(self.signer.sign_receipt(receipt).unwrap())).unwrap()
    }

    fn admit(&mut self, request: &CallRequest) -> Result<Option<Reserved>, RefusalCode> {
        let reserved = match request.payment {
            Payment::Free => None,
            Payment::Channel { channel, cumulative, signature, .. } => {
                let (config, _, best) = self.book.terms(channel).ok_or(RefusalCode::UnknownChannel)?;
                let voucher = (cumulative > best).then(|| {
                    let voucher = Voucher { channel, cumulative };
                    voucher.verify(self.signer.domain(), signature.unwrap(), config.signer).unwrap()
                });
                let before = self.book.get(channel).map(|entry| entry.state);
                let reserved = self.book.admit(channel, voucher.as_ref(), request.price, GasMeans::UNLIMITED);
                let after = self.book.get(channel).map(|entry| entry.state);
                assert!(reserved.is_ok() || before == after, "a refusal changes nothing");
                Some(reserved?)
            }
        };
        if !request.method.is_safe() {
            let accepted = AcceptedCall {
                payer: self.payer,
                call_id: request.call_id,
                service: request.service,
                method: request.method,
                path: request.path.clone(),
                request_hash: request.request_hash(&[]),
                time_secs: clock::now_secs(),
            };
            unless_dead(block_on(self.ledger.accept(accepted))).ok_or(RefusalCode::Unavailable)?;
        }
        Ok(reserved)
    }

    /// The service is done: one commit of voucher, call and charge, then the answer on every stream that waits. What
    /// was charged, and the streams; `None` when it could not be stored.
    pub fn finish(&mut self, call_id: CallId, outcome: Outcome) -> Option<(Receipt, Vec<u64>, CallReply)> {
        let Serving { request, reserved, running, waiting } = self.serving.remove(&call_id)?;
        let charged = outcome.charge(ChargePolicy::Success, request.price);
        let status = if outcome == Outcome::Answered { 200 } else { 500 };
        let said = said(outcome, status);
        let call = Call {
            call_id,
            service: request.service,
            method: request.method,
            path: request.path.clone(),
            request_hash: request.request_hash(&[]),
            response_hash: response_hash(status, &said.headers, &said.body),
            price: request.price,
            charged,
            outcome,
            status,
            headers: said.headers.clone(),
            body: (!request.method.is_safe()).then(|| said.body.clone()),
            fault: None,
            upstream_us: None,
            time_secs: clock::now_secs(),
        };
        let served = Served {
            payer: self.payer,
            channel: reserved.as_ref().map_or(ChannelId::NONE, Reserved::channel),
            voucher: reserved.as_ref().and_then(|reserved| reserved.voucher().cloned()),
            call,
        };
        let recorded = match block_on(self.ledger.serve(served)) {
            Ok(recorded) => recorded,
            Err(
                LedgerError::Overdrawn { .. }
                | LedgerError::VoucherAboveDeposit { .. }
                | LedgerError::Closed(_),
            ) => return None,
            Err(error) => panic!("O5: {error}"),
        };
        let sign = |receipt: &Receipt| Ok(self.signer.sign_receipt(receipt).unwrap());
        let answer = Answer::recorded(&recorded, said, Duration::ZERO, sign).unwrap();
        if let Some(reserved) = reserved {
            reserved.settle(charged);
        }
        let reply = reply_of(&answer);
        running.finish(answer, outcome.is_the_services_answer() || !request.method.is_safe());
        self.check();
        Some((*recorded.receipt(), waiting, reply))
    }

    /// A payer whose call with effects outlasts its deadline hears that it runs.
    pub fn tell_running(&mut self, call_id: CallId) -> Vec<u64> {
        let slow = self.serving.get_mut(&call_id).filter(|serving| !serving.request.method.is_safe());
        slow.map_or_else(Vec::new, |serving| std::mem::take(&mut serving.waiting))
    }

    pub fn status(&self, call_id: CallId) -> CallReply {
        match self.calls.status(&(self.payer, call_id)) {
            Some(Some(answer)) => return reply_of(&answer),
            Some(None) => return CallReply::Status(CallStatus::Running),
            None => {}
        }
        match self.ledger.served(self.payer, call_id).unwrap() {
            None => CallReply::Status(CallStatus::Unknown),
            Some(ServedRow::Accepted(_)) => reply_of(&refused(RefusalCode::MayHaveRun)),
            Some(ServedRow::Done(row)) => reply_of(&self.stored(&row).unwrap_or_else(|| self.done(&row))),
        }
    }

    pub fn sync(&self) -> Option<ChannelSync> {
        let entry = self.book.get(self.channel)?;
        Some(ChannelSync {
            config: entry.config,
            deposited: entry.state.deposited,
            claimed: entry.state.claimed,
            spent: entry.state.spent,
            best: entry.state.best,
            best_signature: entry.proof().map(|voucher| *voucher.signature()),
            close: None,
        })
    }

    fn stored(&self, row: &CallRow) -> Option<Arc<Answer>> {
        Answer::stored(row, (row.call.body.clone(), Arc::default()), |receipt| {
            Ok(self.signer.sign_receipt(receipt).unwrap())
        })
        .unwrap()
    }

    fn done(&self, row: &CallRow) -> Arc<Answer> {
        let signature = self.signer.sign_receipt(&row.receipt).unwrap();
        Answer::status(CallStatus::Done { receipt: row.receipt, signature })
    }

    /// Whether the power is gone.
    pub fn is_dead(&self) -> bool {
        self.ledger.closed().is_some()
    }

    /// Loses the memory, with the calls in progress, and what did not survive on the disk.
    pub fn crash(&mut self, survival: Survival) {
        self.serving.clear();
        self.ledger = self.machine.start_again(survival);
        self.calls = Calls::default();
        self.book = Book::new(Usdc::ZERO, Usdc::MAX);
        for row in self.ledger.payee_channels().unwrap() {
            let view = View { safe_deposited: row.claimed, close_at_secs: None, round: 0, safe_round: 0 };
            self.book.apply(&row, book::proof(&row, self.signer.domain()), view);
        }
    }

    pub fn see(&mut self, terms: &Terms, chain: &Chain) {
        self.deposited_peak = self.deposited_peak.max(chain.deposited);
        let facts = PayeeChannelFacts {
            id: terms.channel,
            config: terms.config,
            deposited: chain.deposited,
            claimed: chain.claimed,
            closing: false,
        };
        let Some(row) = unless_dead(block_on(self.ledger.put_payee_channel(facts))) else { return };
        let view = View { safe_deposited: chain.deposited, close_at_secs: None, round: 0, safe_round: 0 };
        self.book.apply(&row, book::proof(&row, self.signer.domain()), view);
        // It has been shown for a while.
        if !self.book.closed().is_empty() {
            self.book.set_ending(self.channel, Ending::None);
        }
        self.check();
    }

    /// The payer asks to close.
    pub fn end(&mut self) -> bool {
        self.book.set_ending(self.channel, Ending::Closes { round: None })
    }

    /// What is claimed: what was charged, as far as the deposit goes, proven with the best voucher (X2).
    pub fn claim(&self, deposited: Usdc) -> Usdc {
        let Some(entry) = self.book.get(self.channel) else { return Usdc::ZERO };
        let amount = entry.state.spent.min(deposited);
        let proven = entry.best_voucher.map_or(entry.state.claimed, |voucher| voucher.cumulative);
        assert!(amount <= proven, "X2: {amount} USDC are charged, vouchers cover {proven}");
        amount
    }

    /// Everything this owner recorded, by call.
    pub fn recorded_calls(&self) -> BTreeMap<CallId, Call> {
        let rows = self.ledger.calls_of(self.payer, None, usize::MAX, usize::MAX, |row| match row {
            ServedRow::Accepted(_) => None,
            ServedRow::Done(row) => Some((row.call.call_id, row.call)),
        });
        rows.unwrap().0.into_iter().collect()
    }

    pub fn check(&self) {
        let Some(entry) = self.book.get(self.channel) else { return };
        let state = entry.state;
        let reserved = self.serving.values().map(|serving| serving.request.price);
        assert_eq!(state.reserved, sum(reserved), "what is reserved");
        assert!(
            state.claimed <= state.spent && sum([state.spent, state.reserved]) <= state.best,
            "O1: {state:?}"
        );
        assert!(state.best <= self.deposited_peak, "O1: no voucher beyond what was ever deposited");
    }
}

/// What the service says to every call.
fn said(outcome: Outcome, status: u16) -> UpstreamAnswer {
    let (headers, body) = (BTreeMap::new(), Bytes::from_static(b"{}"));
    UpstreamAnswer { outcome, status, headers, body, elapsed: Duration::ZERO, fault: None }
}

fn reply_of(answer: &Answer) -> CallReply {
    answer.to_wire().0
}

fn refused(code: RefusalCode) -> Arc<Answer> {
    Answer::refused(Refusal::new(code, ""))
}
