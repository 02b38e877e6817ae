//! The owner's side of the ledger: what is stored before and after the upstream, and what a repeat gets.

use std::sync::Arc;

use bytes::Bytes;
use farthing_ledger::{
    AcceptedCall, BODY_BYTES_MAX, Call, CallRow, LedgerError, Recorded, Served, ServedRow,
};
use farthing_os::{clock, killpoint};
use farthing_protocol::{
    Address, CallId, CallReply, CallRequest, ChannelId, Hash, Receipt, Refusal, RefusalCode, Signature, Usdc,
    call::CallStatus,
    resolution::{Record, Repeat, repeat},
};

use super::{
    Owner,
    admit::{Admitted, hash_noted},
    answer::Answer,
    conflict,
    running::RunningCall,
    told::BooksQuestion,
    upstream::{Fault, UpstreamAnswer},
};

/// The state of a call when its payer asks what became of it.
pub(super) enum CallState {
    Answered(Arc<Answer>),
    Running,
    Unknown,
    /// In the ledger alone.
    Stored(Box<ServedRow>),
    Refused(Refusal),
}

impl CallState {
    /// Returns whether the payer hears that the call costs nothing.
    pub(super) fn is_free(&self) -> bool {
        match self {
            Self::Answered(answer) => answer.is_free(),
            Self::Unknown => true,
            Self::Stored(row) => matches!(&**row, ServedRow::Done(row) if !row.receipt.is_final()),
            Self::Running | Self::Refused(_) => false,
        }
    }
}

impl Owner {
    /// Stores that a call with effects is about to run, so that a crash cannot run it twice.
    pub(super) async fn accept(&self, admitted: &Admitted) -> Result<(), Refusal> {
        let request = admitted.request();
        let accepted = AcceptedCall {
            payer: admitted.payer(),
            call_id: request.call_id,
            service: request.service,
            method: request.method,
            path: request.path.clone(),
            request_hash: admitted.request_hash(),
            time_secs: clock::now_secs(),
        };
        self.0.ledger.accept(accepted).await.map_err(|error| ledger_refusal(&error))
    }

    /// One durable commit of voucher, call and charge. `None` when it failed; nothing may be answered then.
    pub(super) async fn record(
        &self,
        admitted: &Admitted,
        fetched: &UpstreamAnswer,
        charged: Usdc,
        response_hash: Hash,
    ) -> Option<Recorded> {
        let request = admitted.request();
        // A safe call can be asked again; the answer to any other has to be kept.
        let keep = !request.method.is_safe() && fetched.body.len() <= BODY_BYTES_MAX;
        let call = Call {
            call_id: request.call_id,
            service: request.service,
            method: request.method,
            path: request.path.clone(),
            request_hash: admitted.request_hash(),
            response_hash,
            price: admitted.price(),
            charged,
            outcome: fetched.outcome,
            status: fetched.status,
            headers: fetched.headers.clone(),
            body: keep.then(|| fetched.body.clone()),
            fault: fetched.fault.map(Fault::code),
            upstream_us: Some(clock::micros(fetched.elapsed)),
            time_secs: clock::now_secs(),
        };
        let served = Served {
            payer: admitted.payer(),
            channel: admitted.reserved().map_or(ChannelId::NONE, super::book::Reserved::channel),
            voucher: admitted.reserved().and_then(|reserved| reserved.voucher().cloned()),
            call,
        };
        match self.0.ledger.serve(served).await {
            Ok(recorded) => Some(recorded),
            Err(error) => {
                tracing::error!(call_id = %admitted.call_id(), %error, "a served call could not be stored and is not \
                                                                        answered");
                None
            }
        }
    }

    /// Looks up the call in this node's records: its answer, or `None` when it is to be served.
    ///
    /// Before admission, and although that costs a read of the ledger: a call that was charged is answered whatever
    /// keeps a new one out (O5, C4). Its service may be paused, retired or dearer by now, its channel used up or
    /// closed, and its payer beyond a limit.
    ///
    /// # Errors
    /// A refusal when the call may have run, or time mends what keeps its answer.
    pub(super) async fn recorded_earlier(
        &self,
        payer: Address,
        request: &CallRequest,
        body: &Bytes,
        running: &RunningCall,
    ) -> Result<Option<Arc<Answer>>, Refusal> {
        let Some(row) = self.certain(self.0.ledger.served(payer, request.call_id))? else {
            return Ok(None);
        };
        let request_hash = hash_noted(running, request, body).await?;
        if row.request_hash() != request_hash {
            // It is no end of the call: the right one may come afterwards.
            return Err(conflict());
        }
        let ServedRow::Done(row) = row else { return Err(interrupted()) };
        let kept = self.stored_answer(&row)?;
        match repeat(record_of(&row, kept.is_some()), row.call.method.is_safe()) {
            Repeat::Serve => Ok(None),
            Repeat::AskOnceMore => self.ask_once_more(&row, request, body).await.map(Some),
            Repeat::Answer | Repeat::Receipt | Repeat::MayHaveRun => {
                kept.map_or_else(|| self.done(&row), Ok).map(Some)
            }
        }
    }

    /// Looks up what became of a call, for a consumer that lost its answer. All calls wait for it: no body is looked at.
    pub(super) fn what_became(&self, payer: Address, call_id: CallId) -> CallState {
        match self.0.calls.status(&(payer, call_id)) {
            Some(Some(answer)) => return CallState::Answered(answer),
            Some(None) => return CallState::Running,
            None => {}
        }
        match self.certain(self.0.ledger.served_head(payer, call_id)) {
            Ok(Some(row)) => CallState::Stored(Box::new(row)),
            Ok(None) => CallState::Unknown,
            Err(refusal) => CallState::Refused(refusal),
        }
    }

    /// Tells it. That may take a signature and a copy of a body.
    pub(super) fn tell(
        &self,
        payer: (Address, bool),
        asked: CallState,
        is_relayed: bool,
    ) -> (CallReply, Bytes) {
        let answer = match asked {
            CallState::Answered(answer) => Ok(answer),
            CallState::Running => Ok(Answer::status(CallStatus::Running)),
            CallState::Unknown => Ok(Answer::status(CallStatus::Unknown)),
            CallState::Refused(refusal) => Err(refusal),
            CallState::Stored(row) => self.tell_stored(payer, *row),
        };
        answer.unwrap_or_else(Answer::refused).to_wire_for_question(is_relayed)
    }

    fn tell_stored(&self, payer: (Address, bool), row: ServedRow) -> Result<Arc<Answer>, Refusal> {
        let ServedRow::Done(mut row) = row else { return Err(interrupted()) };
        row.call.body = self.0.ledger.served_body(&row).map_err(|error| ledger_refusal(&error))?;
        // A question costs nothing, and its answer may have a body: so many a minute.
        let has_body = row.call.body.as_ref().is_some_and(|body| !body.is_empty());
        if has_body && self.0.told.count(payer, BooksQuestion::Answers).is_err() {
            return self.done(&row);
        }
        self.stored_answer(&row)?.map_or_else(|| self.done(&row), Ok)
    }

    /// Gives what was read of a call, when that is certain. After a failed commit only what was charged is: the rest may
    /// turn out otherwise after a restart.
    fn certain(&self, read: Result<Option<ServedRow>, LedgerError>) -> Result<Option<ServedRow>, Refusal> {
        let row = read.map_err(|error| ledger_refusal(&error))?;
        let is_charged = matches!(&row, Some(ServedRow::Done(row)) if !row.call.charged.is_zero());
        if self.0.ledger.closed().is_some() && !is_charged {
            let detail =
                "the owner's node cannot store calls; after a restart it can say how this call ended";
            return Err(Refusal::new(RefusalCode::Unavailable, detail));
        }
        Ok(row)
    }

    /// The recorded answer with its body, while that is kept.
    fn stored_answer(&self, row: &CallRow) -> Result<Option<Arc<Answer>>, Refusal> {
        let given = self.0.given.of((row.payer, row.call.call_id));
        let body = row.call.body.clone().map(|body| self.0.load.hold(row.payer, body)).transpose()?;
        Answer::stored(row, (body, given), |receipt| self.sign_stored(receipt))
    }

    /// Signs the receipt of a stored call, which may be of another contract or chain than the settings name.
    fn sign_stored(&self, receipt: &Receipt) -> Result<Signature, Refusal> {
        self.check_signs_on(receipt.channel)?;
        self.sign(receipt)
    }

    /// The receipt alone: the body is gone.
    fn done(&self, row: &CallRow) -> Result<Arc<Answer>, Refusal> {
        let signature = self.sign_stored(&row.receipt)?;
        Ok(Answer::status(CallStatus::Done { receipt: row.receipt, signature }))
    }

    /// Asks the service of a safe, recorded call once more, free, because its answer is gone. The charge stays the
    /// recorded one; the receipt names the new answer. That it was done is durable before the service is asked, so
    /// one charge never buys a third execution.
    async fn ask_once_more(
        &self,
        row: &CallRow,
        request: &CallRequest,
        body: &Bytes,
    ) -> Result<Arc<Answer>, Refusal> {
        let admitted = self.admit_again(row, request, body).await?;
        let Some(admitted) = admitted else { return self.done(row) };
        let replay = admitted.record(&self.0.ledger, row).await.map_err(|error| ledger_refusal(&error))?;
        let Some(replay) = replay else { return self.done(row) };
        let fetched = replay.fetch().await;
        killpoint::reached("owner.after_repeat");
        if fetched.outcome != row.call.outcome {
            return self.done(row);
        }
        Answer::repeated(row, fetched, |receipt| self.sign_stored(receipt))
    }
}

/// Builds the record of a finished call for the rule of repeats.
pub fn record_of(row: &CallRow, is_kept: bool) -> Record {
    Record::Finished {
        is_answer: row.call.outcome.is_the_services_answer(),
        is_charged: !row.call.charged.is_zero(),
        is_kept,
        was_repeated: row.repeated_secs.is_some(),
    }
}

fn interrupted() -> Refusal {
    let detail = "the owner's node was interrupted while this call ran";
    Refusal::new(RefusalCode::MayHaveRun, detail)
}

fn ledger_refusal(error: &LedgerError) -> Refusal {
    match error {
        LedgerError::CallIdConflict(_) => {
            Refusal::new(RefusalCode::CallIdConflict, "this call id was used for a different call")
        }
        LedgerError::MayHaveRun(_) => {
            Refusal::new(RefusalCode::MayHaveRun, "this call was interrupted and may have run")
        }
        other => {
            tracing::error!(error = %other, "the ledger refuses");
            Refusal::new(RefusalCode::Unavailable, "the owner's node cannot store new calls")
        }
    }
}
