//! Is this the answer that was bought? The checks between an owner's word and the caller's.
//!
//! Pure. Every returned result has a verified receipt (invariant C3): signed by the owner, for this call id,
//! request and response, charging no more than the price.

use bytes::Bytes;
use farthing_protocol::{
    Address, CallResponse, ChannelId, Domain, Hash, Outcome, Usdc, Verified,
    call::{ChargePolicy, response_hash},
    channel::{Receipt, ReceiptMismatch},
    listing::Accept,
};

/// The request, as far as the answer must agree with it.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedAnswer {
    pub owner: Address,
    pub call_id: farthing_protocol::CallId,
    /// [`ChannelId::NONE`] for a free call.
    pub channel: ChannelId,
    pub request_hash: Hash,
    pub price: Usdc,
    pub charge_policy: ChargePolicy,
}

/// A contradiction between an answer and its receipt, or between both and the order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error("the receipt is not signed by the owner")]
    Signature,
    #[error("the receipt is for another {0}")]
    Other(&'static str),
    #[error("the answer does not match the receipt")]
    Response,
    #[error("the answer's status is {status}, which its receipt calls {outcome:?}")]
    Status { status: u16, outcome: Outcome },
    #[error("the owner says that it served the call before it was sent")]
    Unasked,
    #[error("the receipt charges {charged} USDC where {due} USDC are due")]
    Charge { charged: Usdc, due: Usdc },
    #[error("the repeated answer contradicts the receipt of the first")]
    Repeated,
    #[error(transparent)]
    Books(#[from] ReceiptMismatch),
}

/// Verifies an answer.
pub fn verify(
    expected: &ExpectedAnswer,
    domain: &Domain,
    response: &CallResponse,
    body: &Bytes,
) -> Result<Verified<Receipt>, Mismatch> {
    let receipt = verify_receipt(expected, domain, response.receipt, response.signature)?;
    if receipt.outcome != response.outcome.code() {
        return Err(Mismatch::Other("outcome"));
    }
    let (status, outcome) = (response.status, response.outcome);
    if !outcome.fits(status) {
        return Err(Mismatch::Status { status, outcome });
    }
    if receipt.response_hash != response_hash(response.status, &response.headers, body) {
        return Err(Mismatch::Response);
    }
    Ok(receipt)
}

/// Verifies a receipt without its answer, as recovery does.
pub fn verify_receipt(
    expected: &ExpectedAnswer,
    domain: &Domain,
    receipt: Receipt,
    signature: farthing_protocol::Signature,
) -> Result<Verified<Receipt>, Mismatch> {
    let receipt = receipt.verify(domain, signature, expected.owner).map_err(|_| Mismatch::Signature)?;
    if receipt.call_id != expected.call_id {
        return Err(Mismatch::Other("call"));
    }
    if receipt.channel != expected.channel {
        return Err(Mismatch::Other("channel"));
    }
    if receipt.request_hash != expected.request_hash {
        return Err(Mismatch::Other("request"));
    }
    let outcome = Outcome::from_code(receipt.outcome).ok_or(Mismatch::Other("outcome"))?;
    let due = outcome.charge(expected.charge_policy, expected.price);
    if receipt.charged > due {
        return Err(Mismatch::Charge { charged: receipt.charged, due });
    }
    Ok(receipt)
}

/// Returns the domain that a receipt is to be verified in. A channel binds its calls to this node's; a free call has none and
/// proves no money, so its receipt may also be of another contract in which its owner is paid.
pub fn domain_of(
    expected: &ExpectedAnswer,
    own: Domain,
    accepts: impl FnOnce() -> Vec<Accept>,
    receipt: Receipt,
    signature: farthing_protocol::Signature,
) -> Domain {
    if expected.channel != ChannelId::NONE {
        return own;
    }
    let accepts = accepts().into_iter().map(|accept| Domain::new(accept.chain_id, accept.contract));
    let mut others = accepts.filter(|other| *other != own);
    others.find(|other| receipt.verify(other, signature, expected.owner).is_ok()).unwrap_or(own)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use farthing_protocol::{CallId, SecretKey, listing::SCHEME_CHANNEL};

    use super::*;

    fn owner() -> SecretKey {
        SecretKey::from_bytes(&[9; 32]).unwrap()
    }

    fn domain() -> Domain {
        Domain::new(31_337, Address::ZERO)
    }

    fn expected() -> ExpectedAnswer {
        ExpectedAnswer {
            owner: owner().address(),
            call_id: CallId::from_bytes([1; 16]),
            channel: ChannelId::from_bytes([2; 32]),
            request_hash: [3; 32],
            price: Usdc::from_micros(2_000),
            charge_policy: ChargePolicy::Success,
        }
    }

    fn honest() -> (CallResponse, Bytes) {
        let (body, headers) = (Bytes::from_static(b"{}"), BTreeMap::new());
        let receipt = Receipt {
            channel: expected().channel,
            call_id: expected().call_id,
            request_hash: expected().request_hash,
            response_hash: response_hash(200, &headers, &body),
            outcome: Outcome::Answered.code(),
            charged: expected().price,
            spent_total: expected().price,
            time_secs: 1,
        };
        (signed(receipt, headers, &body), body)
    }

    fn signed(receipt: Receipt, headers: BTreeMap<String, String>, body: &Bytes) -> CallResponse {
        CallResponse {
            call_id: receipt.call_id,
            status: 200,
            headers,
            body_bytes: body.len() as u64,
            receipt,
            signature: receipt.sign(&domain(), &owner()),
            outcome: Outcome::from_code(receipt.outcome).unwrap(),
            owner_us: 0,
            upstream_us: 0,
        }
    }

    #[test]
    fn an_answer_is_what_its_status_says() {
        let (_, body) = honest();
        for (outcome, status, is_right) in [
            (Outcome::Answered, 200, true),
            (Outcome::Answered, 304, true),
            (Outcome::Answered, 199, false),
            (Outcome::Answered, 400, false),
            (Outcome::Answered, 500, false),
            (Outcome::Answered, 0, false),
            (Outcome::Declined, 404, true),
            (Outcome::Declined, 399, false),
            (Outcome::Declined, 500, false),
            (Outcome::ServerError, 500, true),
            (Outcome::Unreachable, 0, true),
        ] {
            let headers = BTreeMap::new();
            let charged = outcome.charge(expected().charge_policy, expected().price);
            let response_hash = response_hash(status, &headers, &body);
            let receipt = Receipt { response_hash, outcome: outcome.code(), charged, ..honest().0.receipt };
            let response = CallResponse { status, ..signed(receipt, headers, &body) };
            let verified = verify(&expected(), &domain(), &response, &body).map(|receipt| receipt.charged);
            let told = if is_right { Ok(charged) } else { Err(Mismatch::Status { status, outcome }) };
            assert_eq!(verified, told, "{outcome:?} {status}");
        }
    }

    #[test]
    fn a_receipt_of_another_contract_of_its_owners_counts_for_a_free_call_alone() {
        let contract = Address::from_bytes([5; 20]);
        let other = Domain::new(31_337, contract);
        let accept = Accept {
            scheme: SCHEME_CHANNEL.to_owned(),
            chain_id: 31_337,
            asset: Address::ZERO,
            pay_to: owner().address(),
            contract,
            min_deposit: Usdc::ZERO,
            close_delay_secs: 1,
        };
        let free = ExpectedAnswer { channel: ChannelId::NONE, price: Usdc::ZERO, ..expected() };
        let receipt = honest().0.receipt;
        let by_owner = receipt.sign(&other, &owner());
        let by_other = receipt.sign(&other, &SecretKey::from_bytes(&[8; 32]).unwrap());
        let here = receipt.sign(&domain(), &owner());
        for (expected, accepts, signature, counts_in) in [
            (free, vec![accept.clone()], by_owner, other),
            (free, vec![accept.clone()], by_other, domain()),
            (free, vec![accept.clone()], here, domain()),
            (free, Vec::new(), by_owner, domain()),
            (expected(), vec![accept], by_owner, domain()),
        ] {
            assert_eq!(domain_of(&expected, domain(), || accepts, receipt, signature), counts_in);
        }
    }

    #[test]
    fn an_honest_answer_is_accepted() {
        let (response, body) = honest();
        assert!(verify(&expected(), &domain(), &response, &body).is_ok());
    }

    #[test]
    fn a_changed_answer_is_refused() {
        let (response, body) = honest();
        let verify = |response: &CallResponse, body: &Bytes| verify(&expected(), &domain(), response, body);
        assert_eq!(verify(&response, &Bytes::from_static(b"{ }")), Err(Mismatch::Response));
        let other_status = CallResponse { status: 201, ..response.clone() };
        assert_eq!(verify(&other_status, &body), Err(Mismatch::Response));
        let headers = BTreeMap::from([("content-type".to_owned(), "text/html".to_owned())]);
        let other_headers = CallResponse { headers, ..response };
        assert_eq!(verify(&other_headers, &body), Err(Mismatch::Response));
    }

    #[test]
    fn a_receipt_for_something_else_is_refused() {
        let (response, body) = honest();
        let with = |edit: &dyn Fn(&mut Receipt)| {
            let mut receipt = response.receipt;
            edit(&mut receipt);
            verify(&expected(), &domain(), &signed(receipt, BTreeMap::new(), &body), &body).unwrap_err()
        };
        assert_eq!(with(&|r| r.call_id = CallId::from_bytes([7; 16])), Mismatch::Other("call"));
        assert_eq!(with(&|r| r.channel = ChannelId::NONE), Mismatch::Other("channel"));
        assert_eq!(with(&|r| r.request_hash = [0; 32]), Mismatch::Other("request"));
        assert!(matches!(with(&|r| r.charged = Usdc::from_micros(2_001)), Mismatch::Charge { .. }));
        assert!(matches!(with(&|r| r.outcome = Outcome::ServerError.code()), Mismatch::Charge { .. }));
    }

    #[test]
    fn a_receipt_by_anyone_else_is_refused() {
        let (mut response, body) = honest();
        response.signature = response.receipt.sign(&domain(), &SecretKey::from_bytes(&[8; 32]).unwrap());
        assert_eq!(verify(&expected(), &domain(), &response, &body), Err(Mismatch::Signature));
        let other_chain = Domain::new(1, Address::ZERO);
        response.signature = response.receipt.sign(&other_chain, &owner());
        assert_eq!(verify(&expected(), &domain(), &response, &body), Err(Mismatch::Signature));
    }
}
