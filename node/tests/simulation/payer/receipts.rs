//! Receipts out of replies, verified as the node does.

use bytes::Bytes;
use farthing_ledger::{Acknowledgement, Timing};
use farthing_node::consumer::answer::{self, ExpectedAnswer};
use farthing_os::clock;
use farthing_protocol::{CallReply, Receipt, Signature, Verified, call::CallStatus};
use farthing_wallet::Signer;

pub(super) fn receipt_in(reply: &CallReply) -> (Receipt, Signature) {
    match reply {
        CallReply::Response(response) => (response.receipt, response.signature),
        CallReply::Status(CallStatus::Done { receipt, signature }) => (*receipt, *signature),
        reply => panic!("no receipt in {reply:?}"),
    }
}

pub(super) fn verified(expected: &ExpectedAnswer, signer: &Signer, reply: &CallReply) -> Verified<Receipt> {
    let (receipt, signature) = receipt_in(reply);
    match reply {
        CallReply::Response(response) => {
            answer::verify(expected, signer.domain(), response, &Bytes::from_static(b"{}")).unwrap()
        }
        _ => answer::verify_receipt(expected, signer.domain(), receipt, signature).unwrap(),
    }
}

pub(super) fn acknowledgement(receipt: Verified<Receipt>) -> Acknowledgement {
    Acknowledgement { receipt, status: 200, timing: Timing::default(), time_secs: clock::now_secs() }
}
