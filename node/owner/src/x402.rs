//! Selling to x402 clients: each call brings its own payment, which is a transaction of its own.
//!
//! In order: the price and the terms of a call; the payment is checked, cheap checks first, and the chain is asked whether the
//! token would take it; the sale is stored (`sales`); the upstream is asked; the answer is stored; the payment is taken
//! (`settle`); the call is recorded; only then the answer leaves.
//!
//! Invariants: O4 to O6. One request of a payment works at a time. No step with an effect comes before the record that says it
//! may have happened, so a copy goes on where the record ends, and no copy is served unpaid or charged again.

mod call;
mod due;
mod noted;
mod offers;
mod pledges;
mod sales;
mod settle;
mod taken_back;
mod trouble;

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use farthing_bounds::HeldBytes;
use farthing_chain::{ChainError, ChainHandle};
use farthing_discovery::CallPlan;
use farthing_ledger::{Ledger, LedgerError};
use farthing_os::{clock, killpoint};
use farthing_protocol::{
    Address, CallId, CallRequest, Hash, Outcome, Refusal, RefusalCode, TransferAuthorization, Usdc, limits,
};
use farthing_shared::{
    call_ends::{BegunCall, CallEnds, Half},
    chain_view,
    keyed_mutex::KeyedMutex,
    refused::RefusedCalls,
    tasks::Tasks,
};
use farthing_wallet::Signer;
use farthing_x402::{InvalidPayment, ReceivedPayment, Terms};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use self::{
    call::CallRoom,
    offers::Offers,
    pledges::{Pledge, Pledges},
    sales::{AnswerHead, Sale, SaleKey, SaleState, Sales},
    trouble::DoorNotes,
};
pub use self::{
    call::{DoorAnswer, DoorCall, SoldAnswer},
    trouble::{ClosedDoor, RefusedPayments},
};
use super::{
    admit::{planned, upstream_request},
    book::Book,
    load::{Caller, Load, WorkPlace},
    registry::{Registered, Registry},
    upstream::{Permit, Sealed, UpstreamAnswer, UpstreamRequest},
};

/// Payments that the chain is asked about at once: wallets are free, and so are their signatures.
const CHECKS_MAX: usize = 16;

/// The longest answer that is sold: the ledger keeps it until it is paid, and for a while after.
const BODY_BYTES_MAX: usize = limits::RESPONSE_BODY_BYTES_DEFAULT;

/// The state that the door holds between two requests.
#[derive(Debug)]
pub struct Door {
    sales: Sales,
    room: CallRoom,
    /// One request of a payment works at a time.
    turns: KeyedMutex<SaleKey>,
    offers: Offers,
    pledges: Arc<Pledges>,
    checks: Semaphore,
    notes: Mutex<DoorNotes>,
}

impl Door {
    /// Opens what the ledger has of sales.
    ///
    /// # Errors
    /// [`LedgerError`] when it cannot be read.
    pub fn restore(ledger: Ledger) -> Result<Self, LedgerError> {
        Ok(Self {
            sales: Sales::restore(ledger)?,
            room: CallRoom::default(),
            turns: KeyedMutex::default(),
            offers: Offers::default(),
            pledges: Arc::default(),
            checks: Semaphore::new(CHECKS_MAX),
            notes: Mutex::default(),
        })
    }
}

/// A call whose payment the token would take, and whose sale is stored: it may reach its service.
struct PaidCall {
    request: UpstreamRequest,
    operation: String,
    service: Arc<Registered>,
    place: WorkPlace,
}

impl Sealed for PaidCall {}

impl Permit for PaidCall {
    fn request(&self) -> UpstreamRequest {
        self.request.clone()
    }

    fn room(&self) -> Option<HeldBytes> {
        Some(self.place.room())
    }
}

/// The sales to x402 clients. A cheap handle.
#[derive(Clone, Debug)]
pub struct X402Sales(Arc<X402SaleParts>);

/// The parts that sales to x402 clients are made with. The door is theirs alone; the owner has the others as well.
#[derive(Debug)]
pub struct X402SaleParts {
    pub signer: Signer,
    pub ledger: Ledger,
    pub chain: ChainHandle,
    pub registry: Registry,
    pub book: Book,
    pub load: Arc<Load>,
    pub tasks: Tasks,
    pub ends: CallEnds,
    pub refused: RefusedCalls,
    pub door: Door,
}

impl X402Sales {
    pub fn new(parts: X402SaleParts) -> Self {
        Self(Arc::new(parts))
    }

    /// Answers a request of an x402 client: with the terms if it brings no payment. With one, the work goes on to its end
    /// whether or not the client waits for it.
    pub async fn sell(&self, call: DoorCall, payment: Option<ReceivedPayment>) -> DoorAnswer {
        let Some(payment) = payment else {
            let due = self.due(&call).await;
            return due
                .map_or_else(DoorAnswer::Refused, |(_, terms)| DoorAnswer::Due { terms, invalid: None });
        };
        let room = match self.0.door.room.take(payment.transfer.authorization.from, &call) {
            Ok(room) => room,
            Err(refusal) => return DoorAnswer::Refused(refusal),
        };
        let sales = self.clone();
        let sold = self.0.tasks.spawn(async move {
            let answer = sales.sell_for(&call, &payment).await;
            drop((call, room));
            answer
        });
        sold.await.unwrap_or_else(|_| DoorAnswer::Refused(failed()))
    }

    async fn sell_for(&self, call: &DoorCall, payment: &ReceivedPayment) -> DoorAnswer {
        let authorization = payment.transfer.authorization;
        let call_id = self.call_id_of(&authorization.nonce);
        let begun = BegunCall::new(call_id, call.service, call.method, &call.path);
        let key = sales::key_of(&authorization);
        let turn = self.0.door.turns.take(key).await;
        let sold = self.sell_in_turn(call, payment, key, call_id).await;
        drop(turn);
        let answer = sold.unwrap_or_else(DoorAnswer::Refused);
        self.note_sold(&begun, &payment.transfer, &call.path, &answer);
        answer
    }

    /// Goes on where the record of the payment ends.
    async fn sell_in_turn(
        &self,
        call: &DoorCall,
        payment: &ReceivedPayment,
        key: SaleKey,
        call_id: CallId,
    ) -> Result<DoorAnswer, Refusal> {
        let payer = payment.transfer.authorization.from;
        let known = self.0.door.sales.find(&key).map_err(|error| unstored(&error))?;
        let Some(sale) = known else {
            let recorded = self.0.ledger.served_head(payer, call_id).map_err(|error| unstored(&error))?;
            if recorded.is_some() {
                return Err(no_longer_kept());
            }
            return self.sell_anew(call, payment, (key, call_id)).await;
        };
        let request_hash = call.hash(&sale.header_names).await?;
        let is_here = sale.is_in(self.token_of_now());
        if !is_here || (sale.payment, sale.request_hash) != (payment.transfer, request_hash) {
            let detail = "this payment was sent with another call, or its nonce with another payment";
            return Err(Refusal::new(RefusalCode::CallIdConflict, detail));
        }
        let state = match sale.state {
            // The node was restored from a backup. Nothing is paid for an answer that it has not.
            SaleState::Answered if !self.has_body(&key)? => SaleState::Running,
            state => state,
        };
        match state {
            SaleState::Settled | SaleState::Free => self.told(&key, sale, (None, true)),
            SaleState::Answered => {
                self.begin_settlement(&sale)?;
                self.settle(key, sale, None).await
            }
            // The node ended meanwhile, before anything was paid.
            SaleState::Running if sale.method.is_safe() => {
                self.sell_anew(call, payment, (key, call_id)).await
            }
            SaleState::Running => {
                // Also by this node, before it was restored from a backup.
                self.check_unspent(&payment.transfer.authorization).await?;
                let detail = "the owner's node was interrupted, or restored from a backup, after this call had begun; the \
                              call may have had its effect, and is not paid. A new payment makes the call again";
                Err(Refusal::new(RefusalCode::MayHaveRun, detail))
            }
        }
    }

    async fn sell_anew(
        &self,
        call: &DoorCall,
        payment: &ReceivedPayment,
        (key, call_id): (SaleKey, CallId),
    ) -> Result<DoorAnswer, Refusal> {
        let (service, terms) = self.due(call).await?;
        let TransferAuthorization { from: payer, value, .. } = payment.transfer.authorization;
        let price = self.price_for(call, &service, (terms.price, value));
        // The token goes by the date of its block. A clock that is behind would take a payment that expires before it is brought.
        let now_secs = clock::now_secs().max(chain_view::time_secs(&self.0.chain).unwrap_or_default());
        if let Err(invalid) = payment.check(&Terms { price, ..terms.clone() }, now_secs) {
            return Ok(DoorAnswer::Due { terms, invalid: Some(invalid) });
        }
        let request = call.request(&service, call_id)?;
        let plan = self.plan_for(payer, &service, &request, &call.body).await?;
        if plan.price != terms.price {
            let detail = "the price has just changed; ask again for the terms";
            return Err(Refusal::new(RefusalCode::PriceChanged, detail));
        }
        let header_names = call.header_names(&service);
        let request_hash = call.hash(&header_names).await?;
        let since_block = self.newest_block();
        let pledge = match self.try_on(payment, price).await? {
            Ok(pledge) => pledge,
            Err(invalid) => {
                // The chain was asked for nothing.
                self.0.load.count_end(payer, Some((call.service, plan.operation.as_str())), false);
                self.check_unspent(&payment.transfer.authorization).await?;
                return Ok(DoorAnswer::Due { terms, invalid: Some(invalid) });
            }
        };
        let paid = self.enter(payer, service, (&request, &call.body), plan).await?;
        let sale = Sale {
            chain_id: self.0.chain.spec().chain_id,
            request_hash,
            service: call.service,
            method: call.method,
            path: call.path.clone(),
            price,
            payment: payment.transfer,
            since_block,
            time_secs: clock::now_secs(),
            state: SaleState::Running,
            answer: None,
            paid_by: None,
            header_names,
            token: Some(self.0.chain.spec().token),
        };
        let answer = self.serve_sale(key, sale, paid).await;
        drop(pledge);
        answer
    }

    /// Asks the upstream for a sale, and settles what it costs.
    async fn serve_sale(&self, key: SaleKey, sale: Sale, paid: PaidCall) -> Result<DoorAnswer, Refusal> {
        self.0.door.sales.put(key, &sale, None).await.map_err(|error| unstored(&error))?;
        killpoint::reached("x402.before_upstream");
        let fetched = within_a_sale(paid.service.upstream().fetch(&paid).await);
        killpoint::reached("x402.after_upstream");
        let charge = fetched.outcome.charge(paid.service.listing().charge_policy, sale.price);
        let payer = sale.payment.authorization.from;
        self.note_parts(&fetched);
        let head = AnswerHead::of(&fetched);
        if charge.is_zero() {
            self.0.load.count_end(payer, Some((sale.service, paid.operation.as_str())), false);
            return self.end_free(key, Sale { answer: Some(head), ..sale }, fetched).await;
        }
        // The place is for the upstream, and not for the wait for a block.
        drop(paid);
        let sale = Sale { state: SaleState::Answered, answer: Some(head), ..sale };
        let stored = self.0.door.sales.put(key, &sale, Some(fetched.body.clone())).await;
        stored.map_err(|error| unstored(&error))?;
        killpoint::reached("x402.before_settlement");
        self.settle(key, sale, Some(fetched.body)).await
    }

    /// Ends a sale that costs nothing. A call without effects may be tried again with the same payment.
    async fn end_free(
        &self,
        key: SaleKey,
        sale: Sale,
        fetched: UpstreamAnswer,
    ) -> Result<DoorAnswer, Refusal> {
        let sales = &self.0.door.sales;
        let sale = Sale { state: SaleState::Free, ..sale };
        let stored = if sale.method.is_safe() {
            sales.forget(key).await
        } else {
            sales.put(key, &sale, Some(fetched.body.clone())).await
        };
        stored.map_err(|error| unstored(&error))?;
        self.told(&key, sale, (Some(fetched.body), false))
    }

    /// The answer of a sale that has ended.
    fn told(
        &self,
        key: &SaleKey,
        sale: Sale,
        (body, is_copy): (Option<Bytes>, bool),
    ) -> Result<DoorAnswer, Refusal> {
        let answer = sale.answer.ok_or_else(failed)?;
        if !answer.outcome.is_the_services_answer() {
            return Ok(DoorAnswer::Failed(answer.outcome));
        }
        let payer = sale.payment.authorization.from;
        let body = match body {
            Some(body) => body,
            None => {
                let body = self.0.door.sales.body(key).map_err(|error| unstored(&error))?;
                self.0.load.hold(payer, body.ok_or_else(no_longer_kept)?)?
            }
        };
        Ok(DoorAnswer::Said(SoldAnswer {
            call_id: self.call_id_of(&sale.payment.authorization.nonce),
            payer,
            price: sale.price,
            status: answer.status,
            headers: answer.headers,
            body,
            paid_by: sale.paid_by.map(Into::into),
            is_copy,
        }))
    }

    fn has_body(&self, key: &SaleKey) -> Result<bool, Refusal> {
        self.0.door.sales.body(key).map(|body| body.is_some()).map_err(|error| unstored(&error))
    }

    /// Works out what a call asks of its service, within what its payer may ask for nothing.
    async fn plan_for(
        &self,
        payer: Address,
        service: &Arc<Registered>,
        request: &CallRequest,
        body: &Bytes,
    ) -> Result<CallPlan, Refusal> {
        let operation = service.known().operation_at(request.method, &request.path);
        let operation = operation.as_deref().map(|operation| (request.service, operation));
        self.0.load.check_uncharged(payer, operation)?;
        let plan = planned(service, request, body).await?;
        plan.inspect_err(|_| self.0.load.count_end(payer, operation, false))
    }

    /// Asks the chain whether the token would take a payment, and whether its payer holds what all its payments under way
    /// come to.
    async fn try_on(
        &self,
        payment: &ReceivedPayment,
        price: Usdc,
    ) -> Result<Result<Pledge, InvalidPayment>, Refusal> {
        let _check = self.0.door.checks.acquire().await.map_err(|_| failed())?;
        let (chain, payer) = (&self.0.chain, payment.transfer.authorization.from);
        let balance = chain.balances_of(payer).await.map_err(|error| away(&error))?.usdc;
        let Some(pledge) = self.0.door.pledges.take(payer, price, balance) else {
            return Ok(Err(InvalidPayment::Funds));
        };
        let refusal = chain.payment_refusal(&payment.transfer).await.map_err(|error| away(&error))?;
        Ok(refusal.map_or(Ok(pledge), |reason| Err(InvalidPayment::WouldFail(reason))))
    }

    /// Checks that the token has not taken a payment whose answer this node does not have. Terms would have its payer pay again
    /// unawares.
    async fn check_unspent(&self, payment: &TransferAuthorization) -> Result<(), Refusal> {
        let _check = self.0.door.checks.acquire().await.map_err(|_| failed())?;
        if self.0.chain.is_used(payment).await.map_err(|error| away(&error))? { Err(spent()) } else { Ok(()) }
    }

    /// Waits for a place to work in.
    async fn enter(
        &self,
        payer: Address,
        service: Arc<Registered>,
        (request, body): (&CallRequest, &Bytes),
        plan: CallPlan,
    ) -> Result<PaidCall, Refusal> {
        let (sales, turns) = (&self.0.door.sales, &self.0.door.turns);
        let is_room = sales.make_room(turns).await.map_err(|error| unstored(&error))?;
        if !is_room || !sales.has_room(payer) {
            let detail = "the owner keeps as many answers in all, or unpaid ones of this payer, as it may";
            return Err(Refusal::new(RefusalCode::Busy, detail).retry_after_ms(60_000));
        }
        let load = &self.0.load;
        let caller = Caller { wallet: payer, has_channel: false, is_relayed: false };
        let place = load.enter(caller, request.service, service.upstream().large_bytes()).await?;
        load.begin_uncharged(payer, Some((request.service, plan.operation.as_str())))?;
        let request = upstream_request(&plan, request, body);
        Ok(PaidCall { request, operation: plan.operation, service, place })
    }

    fn newest_block(&self) -> u64 {
        let head = *self.0.chain.head().borrow();
        // Endpoints differ by a few.
        head.map_or(0, |head| head.number.saturating_sub(16))
    }

    /// Chain and token in which calls are sold now.
    fn token_of_now(&self) -> (u64, Address) {
        let spec = self.0.chain.spec();
        (spec.chain_id, spec.token)
    }

    /// The id of the call that a payment pays: the same for each copy.
    fn call_id_of(&self, nonce: &Hash) -> CallId {
        let chain_id = self.0.chain.spec().chain_id;
        CallId::from_idempotency_key(&format!("x402/{chain_id}/{}", hex::encode(nonce)))
    }

    fn note_parts(&self, fetched: &UpstreamAnswer) {
        if fetched.outcome.is_the_services_answer() {
            self.0.ends.note_part(Half::Owner, "upstream", fetched.elapsed);
        }
    }
}

/// An answer that can be kept until it is paid. A longer one is none, and costs nothing.
fn within_a_sale(fetched: UpstreamAnswer) -> UpstreamAnswer {
    if fetched.body.len() <= BODY_BYTES_MAX {
        return fetched;
    }
    let (headers, body) = (BTreeMap::new(), Bytes::new());
    UpstreamAnswer { outcome: Outcome::Oversize, headers, body, ..fetched }
}

fn failed() -> Refusal {
    Refusal::new(
        RefusalCode::Unavailable,
        "the owner's node failed; repeat the request with the same payment",
    )
}

fn no_longer_kept() -> Refusal {
    let detail = "this payment was used for an earlier call, whose answer is no longer kept. A new payment makes a new call";
    Refusal::new(RefusalCode::CallIdConflict, detail)
}

fn spent() -> Refusal {
    let detail = "this payment was taken or cancelled before, and this node has no answer for it: a node that was \
                  restored from a backup lacks later calls. Nothing more is taken. A new payment makes a new call, \
                  and costs its price again";
    Refusal::new(RefusalCode::CallIdConflict, detail)
}

fn unstored(error: &LedgerError) -> Refusal {
    tracing::error!(%error, "the ledger refuses a sale");
    Refusal::new(RefusalCode::Unavailable, "the owner's node cannot store the call")
}

fn away(error: &ChainError) -> Refusal {
    if matches!(error, ChainError::Busy { .. }) {
        let detail = "as many payments as the owner takes at once wait for their blocks";
        return Refusal::new(RefusalCode::Busy, detail).retry_after_ms(5_000);
    }
    if let Some(left_out) = noted::admit_line() {
        tracing::warn!(%error, left_out, "the chain cannot be asked about a payment");
    }
    Refusal::new(RefusalCode::ChainStale, "the owner's node cannot reach the chain").retry_after_ms(5_000)
}
