//! Serving one paid call: admission, upstream, charge, commit, answer.
//!
//! In order: a repeat gets the first one's answer, and a copy that comes too late is refused ([`late`]); the call is
//! checked against the listing and its price; the voucher is verified and the price reserved ([`admit`]); the upstream is
//! asked; the outcome decides the charge; voucher, call and charge are committed together; only then the answer leaves,
//! with a receipt.
//!
//! Invariants: O1–O6. [`upstream`] is asked only with a [`Permit`](upstream::Permit), and an [`answer`] of the service is made only of
//! what the ledger recorded, so an unpaid call cannot be served and an unrecorded one cannot be answered.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use farthing_chain::ChainHandle;
use farthing_discovery::NOT_MODIFIED;
use farthing_ledger::Ledger;
use farthing_network::{InboundCall, Responder};
use farthing_os::{clock, killpoint};
use farthing_protocol::{
    Address, CallMessage, CallReply, CallRequest, ChannelId, Receipt, Refusal, RefusalCode, Signature, Usdc,
    call::{CallStatus, ChannelSync, Method, response_hash},
    limits,
};
use farthing_shared::{
    blocking::run_blocking,
    call_ends::{BegunCall, CallEnds},
    refused::{RefusedCall, RefusedCalls},
    tasks::Tasks,
};
use farthing_wallet::Signer;
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior},
};

pub mod admit;
pub mod answer;
pub mod assemble;
pub mod book;
mod close;
mod doubts;
pub mod edit;
mod elsewhere;
mod ended;
mod evidence;
pub mod health;
pub mod inspect;
pub mod intake;
pub mod late;
pub mod load;
pub mod new_service;
pub mod node_record;
pub mod previews;
mod probe;
pub mod publish;
#[cfg(test)]
#[path = "../../../protocol/tests/support/random.rs"]
mod random;
pub mod record;
mod refusals;
pub mod registry;
pub mod running;
pub mod samples;
pub mod sponsor;
pub mod terms;
#[cfg(test)]
mod tests;
pub mod told;
pub mod uncharged;
pub mod upstream;
pub mod x402;

use admit::Admitted;
use answer::Answer;
use book::Book;
use ended::FirstOrAgain;
use late::ToldFree;
use load::{Caller, Load};
use registry::Registry;
use running::{Arrival, Calls, Conflict, RunningCall};
use sponsor::Sponsor;
use terms::Terms;
use told::{BooksLimiter, BooksQuestion, GivenAgain};
use upstream::UpstreamAnswer;
use x402::X402Sales;

/// The owner half of the node. A cheap handle.
#[derive(Clone, Debug)]
pub struct Owner(Arc<OwnerParts>);

/// The parts that the owner is made of.
#[derive(Debug)]
pub struct OwnerParts {
    pub signer: Signer,
    pub ledger: Ledger,
    pub chain: ChainHandle,
    pub registry: Registry,
    pub book: Book,
    pub calls: Calls,
    /// Counts of how often stored answers were given again.
    pub given: GivenAgain,
    /// Calls that payers were told were never served.
    pub told_free: ToldFree,
    pub load: Arc<Load>,
    /// A count of what payers were told of their calls.
    pub told: BooksLimiter,
    pub terms: Terms,
    /// Channels whose payer asks for a cooperative close; settlement carries it out.
    pub closes: mpsc::Sender<ChannelId>,
    pub tasks: Tasks,
    pub ends: CallEnds,
    pub refused: RefusedCalls,
    pub x402: X402Sales,
    /// Gas for payers without ETH.
    pub sponsor: Sponsor,
}

impl Owner {
    pub fn new(parts: OwnerParts) -> Self {
        Self(Arc::new(parts))
    }

    /// Returns the sales to x402 clients.
    pub fn x402(&self) -> &X402Sales {
        &self.0.x402
    }

    /// Answers everything that arrives, each call in a task of its own, until the network ends. All calls pass through
    /// here, so nothing is done here that takes time.
    pub async fn run(&self, mut inbound: mpsc::Receiver<InboundCall>) {
        let mut seconds = tokio::time::interval(Duration::from_secs(1));
        // Those in which this process did not run are not made up for.
        seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let call = tokio::select! {
                call = inbound.recv() => call,
                _ = seconds.tick() => {
                    self.0.told_free.a_second_passed();
                    continue;
                }
            };
            let Some(call) = call else { return };
            let InboundCall { peer, is_partner, is_relayed, origin, range, message, body, reply } = call;
            match message {
                CallMessage::Call(request) => {
                    let late = self.0.told_free.check(peer, request.call_id, origin);
                    if let Err(refusal) = late {
                        refusals::note(&self.0.refused, refusals::asked(peer, &request), &refusal);
                        reply.send(CallReply::Refused(refusal), Bytes::new());
                        continue;
                    }
                    // Registered before the next message is read, so a status question finds it.
                    let arrival = self.0.calls.arrive((peer, request.call_id));
                    let caller = Caller { wallet: peer, has_channel: is_partner, is_relayed };
                    let owner = self.clone();
                    let work = async move { owner.respond(caller, request, body, arrival, reply).await };
                    self.0.tasks.spawn(work);
                }
                CallMessage::Status(call_id) => {
                    let known = self.what_became(peer, call_id);
                    // Its payer takes it for the end of a call that costs nothing. Noted before a copy is looked at.
                    let told = &self.0.told_free;
                    if known.is_free() && !told.note(peer, is_partner, call_id, origin, Instant::now()) {
                        reply.send(CallReply::Refused(too_many_doubts()), Bytes::new());
                        continue;
                    }
                    let owner = self.clone();
                    self.0.tasks.spawn(async move {
                        let (answer, body) = owner.tell((peer, is_partner), known, is_relayed);
                        reply.send(answer, body);
                    });
                }
                CallMessage::Sync(channel, None) => {
                    reply.send(self.sync(peer, channel), Bytes::new());
                }
                CallMessage::Sync(channel, Some(shown)) => {
                    let owner = self.clone();
                    self.0.tasks.spawn(async move {
                        // The books are told as they are in either case.
                        drop(owner.recover(peer, channel, &shown).await);
                        reply.send(owner.sync(peer, channel), Bytes::new());
                    });
                }
                CallMessage::Close(channel, shown) => {
                    let owner = self.clone();
                    self.0.tasks.spawn(async move {
                        reply.send(owner.close(peer, channel, shown).await, Bytes::new());
                    });
                }
                CallMessage::Calls(asked) => {
                    match self.0.told.count((peer, is_partner), BooksQuestion::Calls) {
                        Ok(()) => {
                            let (ledger, book) = (self.0.ledger.clone(), self.0.book.clone());
                            self.0.tasks.spawn(async move {
                                let page =
                                    run_blocking(move || told::page(&ledger, &book, peer, asked)).await;
                                reply.send(page, Bytes::new());
                            });
                        }
                        Err(refusal) => drop(reply.send(CallReply::Refused(refusal), Bytes::new())),
                    }
                }
                CallMessage::Sponsor(asked) => {
                    let owner = self.clone();
                    self.0.tasks.spawn(async move {
                        let answer = owner.sponsor(peer, range, asked).await;
                        reply.send(CallReply::Sponsor(answer), Bytes::new());
                    });
                }
            }
        }
    }

    /// Answers one copy of a call. When a call with effects outlasts its payer's deadline, the payer hears that it is
    /// running; its end is recorded and charged like any other, and told when it is asked for.
    async fn respond(
        &self,
        caller: Caller,
        request: CallRequest,
        body: Bytes,
        arrival: Arrival,
        reply: Responder,
    ) {
        let (payer, patience) = (caller.wallet, answer_within(request.method, request.deadline_ms));
        let call = BegunCall::new(request.call_id, request.service, request.method, &request.path);
        let asked = refusals::asked(payer, &request);
        let mut answering = std::pin::pin!(self.answer(caller, request, body, arrival));
        let (answered, reply) = match tokio::time::timeout(patience, &mut answering).await {
            Ok(answered) => (answered, Some(reply)),
            Err(_) => {
                reply.send(CallReply::Status(CallStatus::Running), Bytes::new());
                (answering.await, None)
            }
        };
        // Before the payer has the answer, so that the log of calls has all that a payer knows of.
        self.note_end(&call, payer, answered.as_ref());
        let Some((answer, _)) = answered else { return };
        if let CallReply::Refused(refusal) = answer.reply() {
            let took_us = clock::micros(call.took());
            refusals::note(&self.0.refused, RefusedCall { took_us, ..asked }, refusal);
        }
        if let Some(reply) = reply {
            killpoint::reached("owner.during_answer");
            let (answer, body) = answer.to_wire();
            reply.send(answer, body);
        }
    }

    /// The one answer of a call id, and whether it was made now; `None` when there can be none.
    async fn answer(
        &self,
        caller: Caller,
        request: CallRequest,
        body: Bytes,
        arrival: Arrival,
    ) -> Option<FirstOrAgain> {
        let is_relayed = caller.is_relayed;
        match arrival {
            Arrival::Repeat(joined) => {
                let answer = match admit::request_hash(&request, &body).await {
                    Ok(request_hash) => {
                        let answer = joined.answer(request_hash).await;
                        answer.unwrap_or_else(|Conflict| Some(Answer::refused(conflict())))
                    }
                    Err(refusal) => Some(Answer::refused(refusal)),
                };
                answer.map(|answer| (answer.for_copy(is_relayed), false))
            }
            Arrival::First(running) => self.first(caller, request, body, running).await,
        }
    }

    async fn first(
        &self,
        caller: Caller,
        request: CallRequest,
        body: Bytes,
        running: RunningCall,
    ) -> Option<FirstOrAgain> {
        let started = Instant::now();
        let _under_way = self.0.ledger.under_way();
        let recorded = self.recorded_earlier(caller.wallet, &request, &body, &running).await;
        let is_first = matches!(recorded, Ok(None));
        let (answer, is_final) = match recorded {
            Ok(Some(answer)) => (answer, true),
            Ok(None) => match self.admit(caller, request, body, &running).await {
                Ok(admitted) => self.serve(admitted, started).await?,
                Err(refusal) => (Answer::refused(refusal), false),
            },
            Err(refusal) => (Answer::refused(refusal), false),
        };
        running.finish(answer.clone(), is_final);
        // The first answer was bounded where it was fetched.
        let answer = if is_first { answer } else { answer.for_copy(caller.is_relayed) };
        Some((answer, is_first))
    }

    fn count_end(&self, admitted: &Admitted, is_charged: bool) {
        self.0.load.count_end(admitted.payer(), Some(admitted.operation()), is_charged);
    }

    /// Asks the upstream, records the call and answers it. `None` when the commit failed: nothing may be acknowledged then.
    async fn serve(&self, admitted: Admitted, started: Instant) -> Option<(Arc<Answer>, bool)> {
        killpoint::reached("owner.before_upstream");
        let mut fetched = admitted.fetch().await;
        killpoint::reached("owner.after_upstream");
        let charge = charge(&admitted, &mut fetched);
        let answer_hash = response_hash(fetched.status, &fetched.headers, &fetched.body);
        let recorded = self.record(&admitted, &fetched, charge, answer_hash).await;
        if recorded.is_none() || !admitted.price().is_zero() {
            self.count_end(&admitted, recorded.is_some() && !charge.is_zero());
        }
        let recorded = recorded?;
        killpoint::reached("owner.after_commit");
        let is_final = fetched.outcome.is_the_services_answer() || !admitted.method().is_safe();
        let answer =
            Answer::recorded(&recorded, fetched, started.elapsed(), |receipt| self.sign(receipt)).ok()?;
        admitted.settle(charge);
        Some((answer, is_final))
    }

    fn sync(&self, payer: Address, channel: ChannelId) -> CallReply {
        let Some(entry) = self.0.book.get(channel).filter(|entry| entry.config.payer == payer) else {
            return CallReply::Refused(unknown_channel());
        };
        // No voucher that is kept of it proves anything here, and without one its total would look invented.
        if let Err(refusal) = self.check_signs_on(channel) {
            return CallReply::Refused(refusal);
        }
        CallReply::Channel(ChannelSync {
            config: entry.config,
            deposited: entry.state.deposited,
            claimed: entry.state.claimed,
            spent: entry.state.spent,
            best: entry.state.best,
            best_signature: entry.proof().map(|voucher| *voucher.signature()),
            close: None,
        })
    }

    /// Signs the receipt of a call that was let in here, whose channel therefore lies here.
    fn sign(&self, receipt: &Receipt) -> Result<Signature, Refusal> {
        self.0.signer.sign_receipt(receipt).map_err(|error| {
            tracing::error!(call_id = %receipt.call_id, %error, "a receipt is not signed");
            Refusal::new(RefusalCode::Unavailable, "the owner's ledger does not add up")
        })
    }
}

/// Returns the cost of an answer. That nothing has changed is said for nothing to whoever names one thing that it has, and
/// nothing more is said then.
fn charge(admitted: &Admitted, fetched: &mut UpstreamAnswer) -> Usdc {
    match admitted.condition().filter(|_| fetched.status == NOT_MODIFIED) {
        Some(condition) => {
            condition.keep_named(&mut fetched.headers);
            Usdc::ZERO
        }
        None => fetched.outcome.charge(admitted.charge_policy(), admitted.price()),
    }
}

/// Returns a payer's wait for its answer. The deadline of a call without effects ends its work, and the answer says so, a moment
/// later than the longest one.
fn answer_within(method: Method, deadline_ms: u64) -> Duration {
    let (max, told) = (limits::CALL_DEADLINE_MS_MAX, limits::DEADLINE_TOLD_MS);
    Duration::from_millis(if method.is_safe() { max + told } else { deadline_ms.min(max) })
}

/// A question about a call whose word could not be kept; asked again later, it can.
fn too_many_doubts() -> Refusal {
    Refusal::new(RefusalCode::Busy, "too many of your calls are undecided; ask again in two minutes")
}

fn conflict() -> Refusal {
    Refusal::new(RefusalCode::CallIdConflict, "this call id was used for a different call")
}

fn unknown_channel() -> Refusal {
    Refusal::new(
        RefusalCode::UnknownChannel,
        "this node has not seen a confirmed deposit on this channel yet",
    )
    .retry_after_ms(500)
}
