//! Answers as they are sent.
//!
//! The service's own is made of what the ledger recorded: of the proof of a commit, or of a stored call. Everything else is a
//! refusal or a word on what became of a call.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use farthing_ledger::{Call, CallRow, Recorded};
use farthing_network::RELAYED_BODY_BYTES_MAX;
use farthing_os::clock;
use farthing_protocol::{
    CallReply, CallResponse, Receipt, Refusal, RefusalCode, Signature,
    call::{CallStatus, response_hash},
    limits,
    resolution::OwnerAnswer,
    wire,
};

use super::upstream::UpstreamAnswer;

/// An answer is given so many times with its body from memory, and from the ledger again; a payer that asks for it once
/// more is told its receipt. A script that repeats a call every few seconds has it for as long as memory keeps it.
const GIVEN_MAX: u32 = 256;

/// The refusal of a copy whose recorded answer is too long for the way that the copy came.
const LONG_FOR_RELAY: &str = "the answer is larger than the 64 KiB that a relay carries, and you are connected through \
                              a relay; forward port 3001 on either side and repeat the call with its id: nothing is \
                              charged again";

/// An answer, cheap to send again. Nobody puts one together without the ledger:
///
/// ```compile_fail,E0451
/// use farthing_owner::answer::Answer;
/// use farthing_protocol::CallReply;
///
/// fn answer(reply: CallReply, body: bytes::Bytes) -> Answer {
///     Answer { reply, body }
/// }
/// ```
#[derive(Debug)]
pub struct Answer {
    reply: CallReply,
    body: Bytes,
    given: Arc<AtomicU32>,
}

/// The signature of a receipt; the refusal says that the books do not add up.
type Signed = Result<Signature, Refusal>;

impl Answer {
    /// Builds the answer to a call just recorded: what the service said. `took` is the owner's time for all of it.
    ///
    /// # Errors
    /// The refusal of `sign`.
    pub fn recorded(
        recorded: &Recorded,
        said: UpstreamAnswer,
        took: Duration,
        sign: impl FnOnce(&Receipt) -> Signed,
    ) -> Result<Arc<Self>, Refusal> {
        Self::response(*recorded.receipt(), (said, Arc::default()), took, sign)
    }

    /// The stored answer of a call, with the body that is kept of it; `None` when that is gone, or its head is too long for any peer: earlier versions
    /// recorded such answers.
    ///
    /// # Errors
    /// The refusal of `sign`.
    pub fn stored(
        row: &CallRow,
        (body, given): (Option<Bytes>, Arc<AtomicU32>),
        sign: impl FnOnce(&Receipt) -> Signed,
    ) -> Result<Option<Arc<Self>>, Refusal> {
        let Call { status, outcome, ref headers, .. } = row.call;
        let is_empty = row.receipt.response_hash == response_hash(status, headers, &[]);
        let Some(body) = body.or_else(|| is_empty.then(Bytes::new)) else { return Ok(None) };
        let (headers, elapsed, fault) = (headers.clone(), Duration::ZERO, None);
        let said = UpstreamAnswer { outcome, status, headers, body, elapsed, fault };
        let answer = Self::response(row.receipt, (said, given), Duration::ZERO, sign)?;
        Ok((wire::encode(&answer.reply).len() <= limits::CALL_HEAD_BYTES_MAX).then_some(answer))
    }

    /// Builds the answer to the one repeat of a stored call: the charge stays, and the receipt names this answer.
    ///
    /// # Errors
    /// The refusal of `sign`.
    pub fn repeated(
        row: &CallRow,
        said: UpstreamAnswer,
        sign: impl FnOnce(&Receipt) -> Signed,
    ) -> Result<Arc<Self>, Refusal> {
        let response_hash = response_hash(said.status, &said.headers, &said.body);
        let said = UpstreamAnswer { outcome: row.call.outcome, elapsed: Duration::ZERO, ..said };
        let receipt = Receipt { response_hash, ..row.receipt };
        Self::response(receipt, (said, Arc::default()), Duration::ZERO, sign)
    }

    fn response(
        receipt: Receipt,
        (said, given): (UpstreamAnswer, Arc<AtomicU32>),
        took: Duration,
        sign: impl FnOnce(&Receipt) -> Signed,
    ) -> Result<Arc<Self>, Refusal> {
        let response = CallResponse {
            call_id: receipt.call_id,
            status: said.status,
            headers: said.headers,
            body_bytes: said.body.len() as u64,
            receipt,
            signature: sign(&receipt)?,
            outcome: said.outcome,
            owner_us: clock::micros(took),
            upstream_us: clock::micros(said.elapsed),
        };
        Ok(Arc::new(Self { reply: CallReply::Response(response), body: said.body, given }))
    }

    /// A word on what became of a call.
    pub fn status(status: CallStatus) -> Arc<Self> {
        Self::of(CallReply::Status(status), Bytes::new())
    }

    /// Builds the answer to a call that is not served, with the reason.
    pub fn refused(refusal: Refusal) -> Arc<Self> {
        Self::of(CallReply::Refused(refusal), Bytes::new())
    }

    /// The same with a body of its own, which holds on to no other memory.
    pub(super) fn apart(&self) -> Arc<Self> {
        let (reply, body) = (self.reply.clone(), Bytes::copy_from_slice(&self.body));
        Arc::new(Self { reply, body, given: self.given.clone() })
    }

    pub const fn reply(&self) -> &CallReply {
        &self.reply
    }

    pub const fn body(&self) -> &Bytes {
        &self.body
    }

    fn of(reply: CallReply, body: Bytes) -> Arc<Self> {
        Arc::new(Self { reply, body, given: Arc::default() })
    }

    /// Returns whether its payer takes it for the end of a call that costs nothing.
    pub fn is_free(&self) -> bool {
        matches!(
            OwnerAnswer::of(&self.reply),
            Some(OwnerAnswer::Unknown | OwnerAnswer::Receipt { is_final: false })
        )
    }

    /// Returns what a copy of a call gets that was recorded before it came: a refusal where it came through a relay that does
    /// not carry the answer, which stays as it is.
    pub fn for_copy(self: Arc<Self>, is_relayed: bool) -> Arc<Self> {
        if is_relayed && !self.fits_a_relay() {
            return Self::refused(Refusal::new(RefusalCode::TooLarge, LONG_FOR_RELAY));
        }
        self
    }

    /// Returns the reply and the body that go over the wire to whoever asks what became of a call: the receipt alone where a
    /// relay does not carry the body.
    pub fn to_wire_for_question(&self, is_relayed: bool) -> (CallReply, Bytes) {
        if is_relayed && !self.fits_a_relay() { self.receipt_to_wire() } else { self.to_wire() }
    }

    /// Returns the reply and the body that go over the wire: the receipt alone once the body was given often enough.
    pub fn to_wire(&self) -> (CallReply, Bytes) {
        if !self.body.is_empty() && self.given.fetch_add(1, Relaxed) >= GIVEN_MAX {
            return self.receipt_to_wire();
        }
        (self.reply.clone(), self.body.clone())
    }

    /// Returns the receipt without the answer, of the service's own answers, which alone have bodies.
    fn receipt_to_wire(&self) -> (CallReply, Bytes) {
        let reply = match &self.reply {
            CallReply::Response(CallResponse { receipt, signature, .. }) => {
                CallReply::Status(CallStatus::Done { receipt: *receipt, signature: *signature })
            }
            other => other.clone(),
        };
        (reply, Bytes::new())
    }

    const fn fits_a_relay(&self) -> bool {
        self.body.len() <= RELAYED_BODY_BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use farthing_protocol::{Address, CallId, ChannelId, Hash, Outcome, ServiceId, Usdc, call::Method};

    use super::*;
    use crate::told::GivenAgain;

    #[test]
    fn an_answer_is_given_so_often_and_then_its_receipt_alone() {
        let answer = stored(1).unwrap();
        for _ in 0..GIVEN_MAX {
            let (reply, body) = answer.to_wire();
            assert!(matches!(reply, CallReply::Response(_)) && body == "{}");
        }
        let (reply, body) = answer.to_wire();
        assert!(matches!(reply, CallReply::Status(CallStatus::Done { .. })), "{reply:?}");
        assert!(body.is_empty());
    }

    #[test]
    fn an_answer_that_memory_forgets_is_given_no_more_often_than_one_that_it_keeps() {
        let (given, call) = (GivenAgain::default(), (Address::ZERO, CallId::from_bytes([1; 16])));
        for n in 0..2 * GIVEN_MAX {
            let (_, body) = stored_and_given(1, given.of(call)).unwrap().to_wire();
            assert_eq!(body.is_empty(), n >= GIVEN_MAX, "{n}");
        }
        let other = (Address::ZERO, CallId::from_bytes([2; 16]));
        assert!(!stored_and_given(1, given.of(other)).unwrap().to_wire().1.is_empty(), "another call");
    }

    #[test]
    fn a_relay_brings_no_stored_answer_that_it_does_not_carry_and_the_answer_stays_for_another_way() {
        let of = |bytes| stored_answer(1, Bytes::from(vec![b'a'; bytes]), Arc::default()).unwrap();
        let largest = of(RELAYED_BODY_BYTES_MAX);
        for (reply, body) in [largest.clone().for_copy(true).to_wire(), largest.to_wire_for_question(true)] {
            assert!(matches!(reply, CallReply::Response(_)) && body.len() == RELAYED_BODY_BYTES_MAX);
        }
        let long = of(RELAYED_BODY_BYTES_MAX + 1);
        let (reply, body) = long.clone().for_copy(true).to_wire();
        let CallReply::Refused(refusal) = reply else { panic!("{reply:?}") };
        assert_eq!(refusal.code, RefusalCode::TooLarge);
        assert!(refusal.detail.contains("relay") && refusal.detail.contains("nothing is charged again"));
        assert!(body.is_empty());
        let (reply, body) = long.to_wire_for_question(true);
        assert!(matches!(reply, CallReply::Status(CallStatus::Done { .. })) && body.is_empty(), "{reply:?}");
        for (reply, body) in [long.clone().for_copy(false).to_wire(), long.to_wire_for_question(false)] {
            assert!(matches!(reply, CallReply::Response(_)) && body.len() == RELAYED_BODY_BYTES_MAX + 1);
        }
    }

    /// An answer with a header of so many bytes.
    fn stored(bytes: usize) -> Option<Arc<Answer>> {
        stored_and_given(bytes, Arc::default())
    }

    fn stored_and_given(bytes: usize, given: Arc<AtomicU32>) -> Option<Arc<Answer>> {
        stored_answer(bytes, Bytes::from_static(b"{}"), given)
    }

    fn stored_answer(bytes: usize, body: Bytes, given: Arc<AtomicU32>) -> Option<Arc<Answer>> {
        let headers = BTreeMap::from([("etag".to_owned(), "a".repeat(bytes))]);
        let (id, hash, charged) = (CallId::from_bytes([1; 16]), Hash::from([2; 32]), Usdc::from_micros(2));
        let response_hash = response_hash(200, &headers, &body);
        let receipt = Receipt {
            channel: ChannelId::NONE,
            call_id: id,
            request_hash: hash,
            response_hash,
            outcome: Outcome::Answered.code(),
            charged,
            spent_total: charged,
            time_secs: 1,
        };
        let call = Call {
            call_id: id,
            service: ServiceId::from_bytes([3; 16]),
            method: Method::Post,
            path: "/ok".to_owned(),
            request_hash: hash,
            response_hash,
            price: charged,
            charged,
            outcome: Outcome::Answered,
            status: 200,
            headers,
            body: Some(body),
            fault: None,
            upstream_us: None,
            time_secs: 1,
        };
        let row = CallRow {
            payer: Address::ZERO,
            call,
            receipt,
            body_bytes: 2,
            repeated_secs: None,
            paid_by: None,
            is_lost: false,
        };
        Answer::stored(&row, (row.call.body.clone(), given), |_| Ok(Signature::from_bytes([4; 65]))).unwrap()
    }

    #[test]
    fn a_stored_answer_that_no_peer_can_read_is_told_without_its_body() {
        assert!(stored(32_000).is_some(), "a head of 32 KiB at most");
        assert!(stored(32_700).is_none(), "the receipt alone is told");
    }
}
