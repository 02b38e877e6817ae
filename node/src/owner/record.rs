//! The owner's side of the ledger: what is stored before and after the upstream, and what a repeat gets.

use std::sync::Arc;

use bytes::Bytes;
use farthing_ledger::{Accepted, BODY_BYTES_MAX, Call, CallRow, LedgerError, Recorded, Served, ServedRow};
use farthing_protocol::{
    Address, CallId, CallReply, CallRequest, CallResponse, ChannelId, Hash, Receipt, Refusal, RefusalCode,
    Usdc,
    call::{CallStatus, response_hash},
};

use super::{Owner, admit::Admitted, conflict, refused, running::Answer, upstream::UpstreamAnswer};

impl Owner {
    /// Stores that a call with effects is about to run, so that a crash cannot run it twice.
    pub(super) async fn accept(&self, admitted: &Admitted) -> Result<(), Refusal> {
        let request = admitted.request();
        let accepted = Accepted {
            payer: admitted.payer(),
            call_id: request.call_id,
            service: request.service,
            method: request.method,
            path: request.path.clone(),
            request_hash: admitted.request_hash(),
            time_secs: Self::now_secs(),
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
            time_secs: Self::now_secs(),
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
                tracing::error!(call_id = %admitted.call_id(), %error, "a served call was not stored and is not answered");
                None
            }
        }
    }

    /// What an earlier run of this node knows of the call: its answer, or that it is new (`None`).
    ///
    /// # Errors
    /// A refusal when the id was used for something else, or the call may have run.
    pub(super) async fn recorded_earlier(
        &self,
        payer: Address,
        request: &CallRequest,
        body: &Bytes,
    ) -> Result<Option<Arc<Answer>>, Refusal> {
        let row = self.0.ledger.served(payer, request.call_id).map_err(|e| ledger_refusal(&e))?;
        let request_hash = request.request_hash(body);
        match row {
            None => Ok(None),
            Some(ServedRow::Accepted(accepted)) if accepted.request_hash == request_hash => {
                let detail = "the owner's node was interrupted while this call ran; you are not charged";
                Err(Refusal::new(RefusalCode::MayHaveRun, detail))
            }
            Some(ServedRow::Done(row)) if row.call.request_hash == request_hash => {
                if !row.call.outcome.is_the_services_answer() && row.call.method.is_safe() {
                    return Ok(None);
                }
                match self.stored_answer(&row)? {
                    Some(answer) => Ok(Some(answer)),
                    None if row.call.method.is_safe() => {
                        self.serve_again(&row, request, body).await.map(Some)
                    }
                    None => self.done(&row).map(Some),
                }
            }
            Some(_) => Ok(Some(conflict())),
        }
    }

    /// What the ledger says of a call that is not in memory.
    pub(super) fn status_in_ledger(&self, payer: Address, call_id: CallId) -> Result<Arc<Answer>, Refusal> {
        match self.0.ledger.served(payer, call_id).map_err(|e| ledger_refusal(&e))? {
            None => Ok(status(CallStatus::Unknown)),
            Some(ServedRow::Accepted(_)) => {
                let detail = "the owner's node was interrupted while this call ran; you are not charged";
                Ok(refused(Refusal::new(RefusalCode::MayHaveRun, detail)))
            }
            Some(ServedRow::Done(row)) => match self.stored_answer(&row)? {
                Some(answer) => Ok(answer),
                None => self.done(&row),
            },
        }
    }

    /// The recorded answer with its body, while that is kept.
    fn stored_answer(&self, row: &CallRow) -> Result<Option<Arc<Answer>>, Refusal> {
        let is_empty = row.receipt.response_hash == response_hash(row.call.status, &row.call.headers, &[]);
        let Some(body) = row.call.body.clone().or_else(|| is_empty.then(Bytes::new)) else { return Ok(None) };
        self.recorded_answer(row, row.receipt, row.call.status, row.call.headers.clone(), body).map(Some)
    }

    /// The receipt alone: the body is gone.
    fn done(&self, row: &CallRow) -> Result<Arc<Answer>, Refusal> {
        let signature = self.sign(&row.receipt)?;
        Ok(status(CallStatus::Done { receipt: row.receipt, signature }))
    }

    /// Executes a safe, recorded call once more, free, because its body is gone. The charge stays the
    /// recorded one; the receipt names the new answer.
    async fn serve_again(
        &self,
        row: &CallRow,
        request: &CallRequest,
        body: &Bytes,
    ) -> Result<Arc<Answer>, Refusal> {
        let fetched = self.fetch_free(row.payer, request, body).await?;
        if fetched.outcome != row.call.outcome {
            let detail = "the answer of this call is no longer kept and the service does not repeat it now";
            return Err(Refusal::new(RefusalCode::Unavailable, detail).retry_after_ms(2_000));
        }
        let receipt = Receipt {
            response_hash: response_hash(fetched.status, &fetched.headers, &fetched.body),
            ..row.receipt
        };
        self.recorded_answer(row, receipt, fetched.status, fetched.headers, fetched.body)
    }

    fn recorded_answer(
        &self,
        row: &CallRow,
        receipt: Receipt,
        status: u16,
        headers: std::collections::BTreeMap<String, String>,
        body: Bytes,
    ) -> Result<Arc<Answer>, Refusal> {
        let response = CallResponse {
            call_id: row.call.call_id,
            status,
            headers,
            body_bytes: body.len() as u64,
            receipt,
            signature: self.sign(&receipt)?,
            outcome: row.call.outcome,
            owner_us: 0,
            upstream_us: 0,
        };
        Ok(Arc::new(Answer { reply: CallReply::Response(response), body }))
    }
}

fn status(status: CallStatus) -> Arc<Answer> {
    Arc::new(Answer { reply: CallReply::Status(status), body: Bytes::new() })
}

fn ledger_refusal(error: &LedgerError) -> Refusal {
    match error {
        LedgerError::CallIdConflict(_) => {
            Refusal::new(RefusalCode::CallIdConflict, "this call id was used for a different call")
        }
        LedgerError::MayHaveRun(_) => Refusal::new(
            RefusalCode::MayHaveRun,
            "this call was interrupted and may have run; you are not charged",
        ),
        other => {
            tracing::error!(error = %other, "the ledger refuses");
            Refusal::new(RefusalCode::Unavailable, "the owner's node cannot store new calls")
        }
    }
}
