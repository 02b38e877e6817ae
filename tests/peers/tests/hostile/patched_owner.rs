//! An owner that keeps to no rule: it takes the real one's place, with its key, and answers calls by hand.
//!
//! Whatever it says, its payer is told the truth, pays nothing that was not asked for, and its books agree with
//! what the owner can prove.

use std::{collections::HashMap, sync::Arc};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use farthing_control::{endpoint, types::Channel};
use farthing_ledger::{Ledger, OpenMode, PayeeChannelRow};
use farthing_network::{Inbound, NetworkHandle};
use farthing_protocol::{
    CallId, CallMessage, CallReply, CallRequest, CloseConsent, Domain, Outcome, Receipt, Refusal,
    RefusalCode, SecretKey, SignedClose, Usdc,
    books::{CallRecord, CallsAsked, CallsPage, Shown},
    call::{CallStatus, ChannelSync, Payment},
    sponsor::{SponsorAsked, SponsorReply},
};
use farthing_testnet::anvil::Anvil;
use farthing_tests::{
    calls::{cost, expect_served, with},
    wait::eventually,
    world::{FUNDS, PRICE, Setup, World},
};
use farthing_wallet::Wallet;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::stranger::{join, until_connected};

mod asked;
mod before;
mod claimed;
mod compared;
mod doubled;
mod errands;
mod frames;
mod healed;
mod hostile_books;
mod locked;
mod mislabelled;
mod relisted;
mod unanswered;
mod undecided;

/// What a patched owner answers to a copy of a call; `None` leaves it without an answer.
type Answers = fn(&Owner, &CallRequest, copies: usize) -> Option<CallReply>;

/// What it says when it is asked for its books: of calls, or of a channel. `None` leaves it without an answer.
type Pages = fn(&State, CallsAsked) -> Option<CallReply>;
type Books = fn(&Owner, ChannelSync) -> Option<CallReply>;

/// What a patched owner knows.
struct Owner {
    key: SecretKey,
    domain: Domain,
    answers: Answers,
    /// The channel, as the real one's books had it.
    channel: PayeeChannelRow,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The requests that arrived, and how often.
    calls: HashMap<CallId, (CallRequest, usize)>,
    receipts: HashMap<CallId, Receipt>,
    /// It says what calls came to; until then they run.
    tells: bool,
    /// It says that calls were interrupted, when it is asked for their ends.
    interrupts: bool,
    /// Asked for a call's end, it gives the answer with the receipt.
    keeps_answers: bool,
    /// What they came to; answers unless it is set.
    outcome: Option<Outcome>,
    spent: Usdc,
    /// It says that no call arrived.
    denies: bool,
    /// What it says of its books.
    records: Vec<CallRecord>,
    pages: Option<Pages>,
    books: Option<Books>,
    /// What it was shown of its own, with a request to close.
    shown: Option<Shown>,
    /// The close that it signs; without one it promises to close, or is busy.
    consent: Option<CloseConsent>,
    promises: bool,
    /// How often it was asked for its books, and whether whoever asks is left waiting.
    times_asked: usize,
    is_slow: bool,
    /// The errands that it was asked for, and its word on them; `None` leaves them without an answer.
    errands: Vec<SponsorAsked>,
    errand_reply: Option<SponsorReply>,
    /// What its refusals bring, and how often the details were asked for.
    offer: Option<relisted::Offer>,
    offers_asked: usize,
}

impl Owner {
    /// Stops the real one, whose first call was paid, and knows with these answers what it knew.
    async fn takes_over(world: &mut World, answers: Answers) -> Result<(Arc<Self>, Wallet)> {
        let channels = world.consumer.control().ask(endpoint::Channels).await?;
        let contract =
            farthing_chain::local(world.chain.rpc_url(), Anvil::CHAIN_ID, world.chain.token).contract;
        let wallet = Wallet::open(world.owner.data_dir(), None)?;
        world.owner.stop().await?;
        // A call on a connection that is about to end would be lost on the way, and no fault of whoever comes next.
        world.wait_until_owner_is_lost().await?;
        let ledger = Ledger::open(&world.owner.data_dir().join("ledger.redb"), OpenMode::Existing)?;
        let channel = *ledger.payee_channels()?.first().context("the owner's channel")?;
        drop(ledger);
        let state = State { spent: channels[0].spent.0, ..State::default() };
        let owner = Self {
            key: wallet.secret_for_network(),
            domain: Domain::new(Anvil::CHAIN_ID, contract),
            answers,
            channel,
            state: Mutex::new(state),
        };
        Ok((Arc::new(owner), wallet))
    }

    /// Puts an owner with these answers in the place of the real one, whose first call was paid.
    async fn replaces(world: &mut World, answers: Answers) -> Result<(Arc<Self>, NetworkHandle)> {
        let (owner, wallet) = Self::takes_over(world, answers).await?;
        let (network, inbound) = join(wallet.secret_for_network(), &[&world.consumer]).await?;
        tokio::spawn(Arc::clone(&owner).run(inbound));
        until_connected(&network, world.consumer_wallet).await?;
        world.wait_until_owner_is_met().await?;
        Ok((owner, network))
    }

    async fn run(self: Arc<Self>, mut inbound: Inbound) {
        let mut waiting = Vec::new();
        loop {
            let call = tokio::select! {
                call = inbound.calls.recv() => call,
                Some(info) = inbound.info.recv() => {
                    self.tell_offer(info);
                    continue;
                }
            };
            let Some(call) = call else { return };
            if matches!(call.message, CallMessage::Sync(..)) && self.is_slow() {
                waiting.push(call);
                continue;
            }
            match self.word(call.message) {
                Some(answer) => drop(call.reply.send(answer, Bytes::new())),
                None => drop(call.reply),
            }
        }
    }

    fn word(&self, message: CallMessage) -> Option<CallReply> {
        match message {
            CallMessage::Call(request) => self.take(&request),
            CallMessage::Status(call_id) => Some(self.status(call_id)),
            CallMessage::Calls(asked) => self.page(asked),
            CallMessage::Sync(..) => self.books(),
            CallMessage::Close(_, shown) => {
                self.state.lock().shown = shown;
                self.close()
            }
            CallMessage::Sponsor(asked) => self.sponsor(asked),
        }
    }

    fn take(&self, request: &CallRequest) -> Option<CallReply> {
        let copies = {
            let mut state = self.state.lock();
            let entry = state.calls.entry(request.call_id).or_insert_with(|| (request.clone(), 0));
            entry.1 += 1;
            entry.1
        };
        (self.answers)(self, request, copies)
    }

    fn status(&self, call_id: CallId) -> CallReply {
        let (request, tells, keeps_answers) = {
            let state = self.state.lock();
            if state.interrupts {
                let why = "the call was interrupted";
                return CallReply::Refused(Refusal::new(RefusalCode::MayHaveRun, why));
            }
            let known = state.calls.get(&call_id).filter(|_| !state.denies);
            (known.map(|(request, _)| request.clone()), state.tells, state.keeps_answers)
        };
        match request {
            None => CallReply::Status(CallStatus::Unknown),
            Some(request) if tells && keeps_answers => mislabelled::kept_answer(self, &request),
            Some(request) if tells => self.receipt(&request),
            Some(_) => CallReply::Status(CallStatus::Running),
        }
    }

    /// The receipt of a call that was answered and charged.
    fn receipt(&self, request: &CallRequest) -> CallReply {
        let Payment::Channel { channel, .. } = request.payment else { return busy() };
        let mut state = self.state.lock();
        let State { receipts, spent, outcome, .. } = &mut *state;
        let receipt = *receipts.entry(request.call_id).or_insert_with(|| {
            *spent = spent.saturating_add(request.price);
            Receipt {
                channel,
                call_id: request.call_id,
                request_hash: request.request_hash(&[]),
                response_hash: [0; 32],
                outcome: outcome.unwrap_or(Outcome::Answered).code(),
                charged: request.price,
                spent_total: *spent,
                time_secs: 1,
            }
        });
        CallReply::Status(CallStatus::Done { receipt, signature: receipt.sign(&self.domain, &self.key) })
    }

    /// Its books with the close that it signs, when it signs one, or as a promise.
    fn close(&self) -> Option<CallReply> {
        let (consent, promises) = {
            let state = self.state.lock();
            (state.consent, state.promises)
        };
        match (consent, self.books()) {
            (Some(consent), Some(CallReply::Channel(books))) => {
                let close = SignedClose { consent, signature: consent.sign(&self.domain, &self.key) };
                Some(CallReply::Channel(ChannelSync { close: Some(close), ..books }))
            }
            (None, promise) if promises => promise,
            _ => Some(busy()),
        }
    }

    /// Its books of the channel.
    fn books(&self) -> Option<CallReply> {
        let PayeeChannelRow { config, deposited, claimed, best, best_signature, .. } = self.channel;
        let (spent, lie) = {
            let state = self.state.lock();
            (state.spent, state.books)
        };
        let close = None;
        let told = ChannelSync { config, deposited, claimed, spent, best, best_signature, close };
        lie.map_or_else(|| Some(CallReply::Channel(told.clone())), |lie| lie(self, told.clone()))
    }

    /// Counts who asks for its books.
    fn is_slow(&self) -> bool {
        let mut state = self.state.lock();
        state.times_asked += 1;
        state.is_slow
    }

    fn page(&self, asked: CallsAsked) -> Option<CallReply> {
        let state = self.state.lock();
        let all = || page(state.records.clone(), None);
        state.pages.map_or_else(|| Some(all()), |lie| lie(&state, asked))
    }

    /// Notes what it is asked to bring to the chain, and brings nothing.
    fn sponsor(&self, asked: SponsorAsked) -> Option<CallReply> {
        let mut state = self.state.lock();
        state.errands.push(asked);
        state.errand_reply.clone().map(CallReply::Sponsor)
    }

    fn tell(&self) {
        self.state.lock().tells = true;
    }

    /// Says of every call that it was interrupted, which costs nothing, until its payer has none without an end. The real one,
    /// whose books end with the first call, lacks nothing then.
    async fn interrupts_all(&self, world: &World) -> Result<()> {
        self.state.lock().interrupts = true;
        world.wait_until_decided().await
    }
}

fn page(records: Vec<CallRecord>, next: Option<CallId>) -> CallReply {
    CallReply::Calls(CallsPage { records, next, kept_since_secs: 0, adjusted: None })
}

fn busy() -> CallReply {
    CallReply::Refused(Refusal::new(RefusalCode::Busy, "later"))
}

/// A receipt within the total that the payer has seen, as of a call that was made and forgotten.
fn receipt_of_before(owner: &Owner, request: &CallRequest) -> CallReply {
    let CallReply::Status(CallStatus::Done { receipt, .. }) = owner.receipt(request) else { return busy() };
    let receipt = Receipt { spent_total: PRICE, ..receipt };
    CallReply::Status(CallStatus::Done { receipt, signature: receipt.sign(&owner.domain, &owner.key) })
}

/// The refusal that a call asks for in its parameters.
fn refusal_asked_for(request: &CallRequest) -> CallReply {
    let code = match request.params.get("refusal").map(String::as_str) {
        Some("insufficient_voucher") => RefusalCode::InsufficientVoucher,
        Some("service_paused") => RefusalCode::ServicePaused,
        Some("unavailable") => RefusalCode::Unavailable,
        Some("malformed") => RefusalCode::Malformed,
        _ => RefusalCode::Busy,
    };
    CallReply::Refused(Refusal::new(code, "as it was asked for"))
}

/// Has the real owner serve one call, however often it takes more than the time that calls have here: under one id, so that
/// it is charged once.
async fn serve_one(world: &World) -> Result<()> {
    let first = with(world.body("GET", "/ok"), "call_id", "first");
    eventually("the first call is served", async || Ok(world.call(&first).await?.status.is_success()))
        .await?;
    world.wait_until_decided().await
}

async fn spent(world: &World) -> Result<Usdc> {
    Ok(world.channel().await?.spent.0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_first_copy_was_lost_is_ended_by_no_refusal_of_a_later_one() -> Result<()> {
    const REFUSALS: [&str; 5] =
        ["busy", "unavailable", "service_paused", "insufficient_voucher", "malformed"];
    let mut world = World::start().await?;
    world.buy(1).await?;
    let lost_then_refused: Answers = |_, request, copies| (copies > 1).then(|| refusal_asked_for(request));
    let (owner, _network) = Owner::replaces(&mut world, lost_then_refused).await?;
    // The real owner served none of them.
    world.expect_differences(&["payee: forgotten calls of", "0.012 USDC paid, 0.002 earned"]);
    let calls = REFUSALS.map(|refusal| {
        with(with(world.body("GET", "/ok"), "call_id", refusal), "params", json!({ "refusal": refusal }))
    });
    let answers = futures::future::try_join_all(calls.iter().map(|call| world.call(call))).await?;
    for (refusal, answer) in REFUSALS.iter().zip(&answers) {
        ensure!(answer.problem() == "undecided", "{refusal}: {answer:?}");
        ensure!(answer.charged() == Value::Null, "{refusal}: {answer:?}");
        ensure!(!answer.header("x-farthing-call-id").is_empty(), "{refusal}: {answer:?}");
    }
    // Nothing is counted as charged, and all of it stays reserved.
    assert_eq!(spent(&world).await?, PRICE);
    let spending = world.consumer.control().ask(endpoint::Spending).await?;
    assert_eq!(spending.spent_today.0, cost(1 + REFUSALS.len() as u64));
    let audit = world.consumer.control().ask(endpoint::Audit).await?;
    assert_eq!(audit.calls_undecided, REFUSALS.len() as u64);

    owner.tell();
    world.wait_until_decided().await?;
    eventually("the books have every charge", async || {
        Ok(spent(&world).await? == cost(1 + REFUSALS.len() as u64))
    })
    .await?;
    let spending = world.consumer.control().ask(endpoint::Spending).await?;
    assert_eq!(spending.spent_today.0, cost(1 + REFUSALS.len() as u64));
    let audit = world.consumer.control().ask(endpoint::Audit).await?;
    ensure!(audit.violations.is_empty(), "{:?}", audit.violations);
    Ok(())
}

/// Leaves the first copy without an answer while it runs, and has no time for others before that one has ended.
fn busy_while_it_runs(owner: &Owner, request: &CallRequest, copies: usize) -> Option<CallReply> {
    let has_ended = owner.state.lock().tells;
    match copies {
        1 => None,
        _ if has_ended => Some(owner.receipt(request)),
        _ => Some(busy()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_runs_while_its_copies_hear_busy_is_told_as_charged_and_counted_once() -> Result<()> {
    let mut world = World::start().await?;
    world.buy(1).await?;
    let (owner, _network) = Owner::replaces(&mut world, busy_while_it_runs).await?;
    // The real owner served none of it.
    world.expect_differences(&["payee: forgotten calls of", "0.004 USDC paid, 0.002 earned"]);
    let call = with(world.body("GET", "/slow/500"), "call_id", "it runs");
    let copies = || owner.state.lock().calls.values().map(|(_, copies)| *copies).sum::<usize>();
    let running = async {
        eventually("the first copy is there", async || Ok(copies() > 0)).await?;
        let asked = world.client().get(format!("{}/slow/500", world.upstream.url())).send();
        let served = async { Ok::<_, anyhow::Error>(asked.await?.error_for_status()?) };
        let heard = eventually("two copies have heard busy", async || Ok(copies() > 2));
        futures::try_join!(served, heard)?;
        owner.tell();
        anyhow::Ok(())
    };
    let (answer, ran) = tokio::join!(world.call(&call), running);
    ran?;
    let answer = answer?;
    ensure!(answer.problem() == "answer-no-longer-kept" && answer.charged() == true, "{answer:?}");
    world.wait_until_decided().await?;
    assert_eq!(world.upstream.hits(), 2);
    assert_eq!(spent(&world).await?, cost(2));
    let spending = world.consumer.control().ask(endpoint::Spending).await?;
    assert_eq!(spending.spent_today.0, cost(2));
    let audit = world.consumer.control().ask(endpoint::Audit).await?;
    ensure!(audit.violations.is_empty(), "{:?}", audit.violations);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_that_nobody_asked_for_is_not_paid_and_stops_the_channel() -> Result<()> {
    let served_before_it_came: Answers = |owner, request, _| Some(owner.receipt(request));
    let counted_before_it_came: Answers = |owner, request, _| Some(receipt_of_before(owner, request));
    for answers in [served_before_it_came, counted_before_it_came] {
        is_not_paid(answers).await?;
    }
    Ok(())
}

async fn is_not_paid(answers: Answers) -> Result<()> {
    let mut world = World::start().await?;
    world.buy(1).await?;
    let (_owner, _network) = Owner::replaces(&mut world, answers).await?;
    let answer = world.get("/ok").await?;
    ensure!(answer.problem() == "bad-answer", "{answer:?}");
    ensure!(answer.charged() != json!(true), "{answer:?}");
    world.wait_until_decided().await?;
    assert_eq!(spent(&world).await?, PRICE, "the first call alone is paid");
    let next = world.get("/ok").await?;
    ensure!(next.problem() == "owner-distrusted", "{next:?}");
    let left = world.chain.usdc_of(world.consumer_wallet).await?;
    ensure!(left < FUNDS, "the deposit is still to be taken back");
    Ok(())
}
