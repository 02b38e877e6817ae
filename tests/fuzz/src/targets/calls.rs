//! Calls between two nodes: frames, heads, and the signed words in them.

use farthing_protocol::{
    CallMessage, CallReply, CallRequest, Receipt, Signature, SignedClose, Usdc, Voucher,
    call::{CallStatus, Payment},
    call_stream::{AnsweringEnd, AskingEnd, FrameHead, FrameKind},
    limits::{CALL_HEAD_BYTES_MAX, REQUEST_BODY_BYTES_MAX, RESPONSE_BODY_BYTES_MAX},
    wire,
};

use crate::{examples, readers::read};

/// The bytes of a stream of `call/2`, as the end that answers meets the requests in them, and the end that asks the replies.
pub(super) fn frames(bytes: &[u8]) -> bool {
    let (mut answering, mut asking) = (AnsweringEnd::default(), AskingEnd::default());
    let (mut rest, mut requests, mut replies) = (bytes, 0, 0);
    while let Some((beginning, behind)) = rest.split_first_chunk::<{ FrameHead::BYTES }>() {
        let Ok(frame) = FrameHead::from_bytes(*beginning) else { break };
        assert_eq!(frame.to_bytes(), *beginning, "a beginning has one form");
        let head_bytes = usize::try_from(frame.head_bytes).unwrap_or(usize::MAX);
        assert!(head_bytes <= CALL_HEAD_BYTES_MAX);
        let Some((head, behind)) = behind.split_at_checked(head_bytes) else { break };
        let body_bytes = match frame.kind {
            FrameKind::Request => request(&mut answering, frame, &mut requests, head),
            _ => reply(&mut asking, frame, &mut replies, head),
        };
        let Some(behind) = body_bytes.and_then(|bytes| behind.get(bytes..)) else { break };
        rest = behind;
    }
    requests + replies > 0
}

/// A request begins. Returns the length of its body, if the stream goes on.
fn request(end: &mut AnsweringEnd, frame: FrameHead, taken: &mut u32, head: &[u8]) -> Option<usize> {
    if end.asked(frame).is_err() {
        assert!(!end.is_at_rest(), "an end that was disturbed takes nothing more");
        return None;
    }
    *taken += 1;
    assert_eq!(frame.number, *taken, "requests are numbered one after the other");
    let message = read::<CallMessage>(head)?;
    message.check_parts().ok()?;
    let reply = end.reply(0, false).expect("a request waits for its reply");
    assert_eq!(reply.number, frame.number);
    usize::try_from(message.body_bytes()).ok()
}

/// A reply begins, to a request that was just asked. Returns the length of its body, if the stream goes on.
fn reply(end: &mut AskingEnd, frame: FrameHead, taken: &mut u32, head: &[u8]) -> Option<usize> {
    let asked = end.ask(0).expect("an end at rest asks");
    if end.reply(frame).is_err() {
        end.end(true);
        assert!(!end.is_at_rest(), "an end that was disturbed asks nothing more");
        return None;
    }
    *taken += 1;
    assert_eq!((frame.number, asked.number), (*taken, *taken), "a reply is to the newest request");
    let reply = read::<CallReply>(head)?;
    end.end(true);
    assert_eq!(end.is_at_rest(), !frame.is_last);
    let body_bytes = usize::try_from(reply.body_bytes()).ok()?;
    (end.is_at_rest() && body_bytes <= RESPONSE_BODY_BYTES_MAX).then_some(body_bytes)
}

/// Each example in a frame, and all of them on one stream.
pub(super) fn known_frames() -> Vec<Vec<u8>> {
    let messages = examples::call_messages();
    let replies = examples::call_replies();
    let asked = |number, message: &CallMessage| {
        frame(FrameKind::Request, number, &wire::encode(message), message.body_bytes())
    };
    let told =
        |number, reply: &CallReply| frame(FrameKind::Reply, number, &wire::encode(reply), reply.body_bytes());
    let mut known: Vec<Vec<u8>> = messages.iter().map(|(_, message)| asked(1, message)).collect();
    known.extend(replies.iter().map(|(_, reply)| told(1, reply)));
    let all_asked: Vec<Vec<u8>> =
        (1..).zip(&messages).map(|(number, (_, message))| asked(number, message)).collect();
    let all_told: Vec<Vec<u8>> =
        (1..).zip(&replies).map(|(number, (_, reply))| told(number, reply)).collect();
    known.extend([all_asked.concat(), all_told.concat()]);
    known
}

fn frame(kind: FrameKind, number: u32, head: &[u8], body_bytes: u64) -> Vec<u8> {
    let head_bytes = u32::try_from(head.len()).expect("examples are small");
    let body = vec![b'x'; usize::try_from(body_bytes).expect("and so are their bodies")];
    let beginning = FrameHead { kind, is_last: false, number, head_bytes }.to_bytes();
    [&beginning[..], head, &body].concat()
}

/// The head of a request or of a reply, of `call/1` and `call/2`.
pub(super) fn heads(bytes: &[u8]) -> bool {
    let message = read::<CallMessage>(bytes);
    if let Some(message) = &message {
        message_holds(message, bytes.len());
    }
    message.is_some() || read::<CallReply>(bytes).is_some()
}

fn message_holds(message: &CallMessage, bytes: usize) {
    if bytes > CALL_HEAD_BYTES_MAX || message.check_parts().is_err() {
        return;
    }
    assert!(message.body_bytes() <= REQUEST_BODY_BYTES_MAX as u64);
    assert!(message.to_head().is_ok(), "a head that was read within its bound is written within it");
    if let CallMessage::Call(request) = message {
        assert_eq!(request.check_bounds(), Ok(()));
        let unpaid =
            CallRequest { price: Usdc::ZERO, deadline_ms: 0, payment: Payment::Free, ..request.clone() };
        assert_eq!(unpaid.request_hash(b"body"), request.request_hash(b"body"), "it binds what is asked");
    }
}

/// Heads with signed words: whatever is changed in one, no word counts that nobody signed.
pub(super) fn payments(bytes: &[u8]) -> bool {
    let asked = match read::<CallMessage>(bytes) {
        Some(CallMessage::Call(CallRequest {
            payment: Payment::Channel { cumulative, signature: Some(signature), .. },
            ..
        })) => is_promised(cumulative, signature),
        Some(CallMessage::Sync(_, Some(shown)) | CallMessage::Close(_, Some(shown))) => {
            let is_receipt = is_served(shown.receipt, shown.receipt_signature);
            is_promised(shown.promised, shown.voucher_signature) || is_receipt
        }
        _ => false,
    };
    let told = match read::<CallReply>(bytes) {
        Some(CallReply::Response(response)) => is_served(response.receipt, response.signature),
        Some(CallReply::Status(CallStatus::Done { receipt, signature })) => is_served(receipt, signature),
        Some(CallReply::Channel(sync)) => {
            let is_close = sync.close.is_some_and(is_consented);
            sync.best_signature.is_some_and(|signature| is_promised(sync.best, signature)) || is_close
        }
        _ => false,
    };
    asked || told
}

/// Returns whether the payer signed a voucher over this.
fn is_promised(cumulative: Usdc, signature: Signature) -> bool {
    let (domain, terms) = (examples::domain(), examples::channel_config());
    let voucher = Voucher { channel: terms.id(&domain), cumulative };
    let is_signed = voucher.verify(&domain, signature, terms.signer).is_ok();
    let signed = [examples::voucher().cumulative, examples::receipt().spent_total];
    assert!(!is_signed || signed.contains(&cumulative), "{cumulative} USDC were never promised");
    is_signed
}

/// Returns whether the owner signed this receipt.
fn is_served(receipt: Receipt, signature: Signature) -> bool {
    let payee = examples::channel_config().payee;
    let is_signed = receipt.verify(&examples::domain(), signature, payee).is_ok();
    assert!(!is_signed || receipt == examples::receipt(), "{receipt:?} was never signed");
    is_signed
}

/// Returns whether the owner signed this consent to a close.
fn is_consented(close: SignedClose) -> bool {
    let payee = examples::channel_config().payee;
    let is_signed = close.consent.verify(&examples::domain(), close.signature, payee).is_ok();
    assert!(!is_signed || close.consent == examples::close_consent(), "{close:?} was never signed");
    is_signed
}
