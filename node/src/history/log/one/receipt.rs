//! Receipts as they are shown, and what came of verifying one.

use farthing_control::types::{CallReceipt, ReceiptVerdict};
use farthing_ledger::{CallRow, LedgerError, Purchase};
use farthing_protocol::{Address, ChannelId, Escrow, Receipt, Signature};

use super::CallReader;
use crate::history::{History, read::hash_text};

pub(super) fn shown(receipt: &Receipt, signer: Address, signature: Option<Signature>) -> CallReceipt {
    CallReceipt {
        signer: signer.into(),
        charged: receipt.charged.into(),
        spent_total: receipt.spent_total.into(),
        time_secs: receipt.time_secs,
        request_hash: hash_text(&receipt.request_hash),
        response_hash: hash_text(&receipt.response_hash),
        signature: signature.map(|signature| hash_text(signature.as_bytes())),
    }
}

fn verdict(holds: bool, words: impl Into<String>) -> ReceiptVerdict {
    ReceiptVerdict { holds, words: words.into() }
}

/// The verdict on the receipt of a call that was bought: the owner's signature, and what it says.
pub(super) fn of_owner(
    call: &Purchase,
    receipt: &Receipt,
    signature: Signature,
    escrow: &Escrow,
) -> ReceiptVerdict {
    let is_signed = receipt.verify(&escrow.domain(), signature, call.owner).is_ok();
    let owner = call.owner;
    match () {
        () if !is_signed => verdict(
            false,
            format!(
                "{owner} did not sign this receipt for the chain and the contract that your settings name."
            ),
        ),
        () if receipt.call_id != call.call_id || receipt.request_hash != call.request_hash => {
            verdict(false, "The receipt is signed, and it is for another call or another request.")
        }
        () if receipt.channel != call.channel => {
            verdict(false, "The receipt is signed, and it counts on another channel.")
        }
        () if receipt.charged > call.price => verdict(
            false,
            format!("The receipt charges {} USDC, and the price was {} USDC.", receipt.charged, call.price),
        ),
        () => verdict(
            true,
            format!(
                "{owner} signed this receipt. It is for this call and this request, and it charges no more than the price."
            ),
        ),
    }
}

/// The signature of this node's own receipt. None is stored, and the same bytes come again, as long as the settings name the
/// chain and the contract of its channel.
pub(super) fn sign_again(
    history: &History,
    row: &CallRow,
    reader: &CallReader,
) -> Result<Option<Signature>, LedgerError> {
    let channel = row.receipt.channel;
    let is_here = match history.ledger.payee_channel(channel)? {
        Some(known) => reader.escrow.holds(channel, &known.config),
        None => channel == ChannelId::NONE,
    };
    Ok(is_here.then(|| reader.signer.sign_receipt(&row.receipt).ok()).flatten())
}

/// The verdict on a receipt of this node's own: it can be signed, and a voucher covers what it counts.
pub(super) fn of_own(
    history: &History,
    row: &CallRow,
    signed: Option<Signature>,
) -> Result<ReceiptVerdict, LedgerError> {
    let receipt = &row.receipt;
    if row.is_lost {
        return Ok(verdict(false, "The chain has taken back the payment of this call (x402)."));
    }
    if receipt.charged > row.call.price {
        return Ok(verdict(false, "The receipt charges more than the price of the call."));
    }
    // It counts on no channel, so that the wallet's policy signs no receipt of it.
    if receipt.channel == ChannelId::NONE && !receipt.charged.is_zero() {
        return Ok(verdict(
            true,
            "A transaction of the payer paid this call (x402), so no voucher covers it.",
        ));
    }
    if signed.is_none() {
        return Ok(verdict(
            false,
            "The channel is in another chain or contract than your settings name, so your wallet does not sign it.",
        ));
    }
    if receipt.channel == ChannelId::NONE {
        return Ok(verdict(true, "Your wallet signs this receipt. The call was free."));
    }
    let best = history.ledger.payee_channel(receipt.channel)?.map(|channel| channel.best);
    Ok(match best {
        Some(best) if best >= receipt.spent_total => verdict(
            true,
            format!(
                "Your wallet signs this receipt, and the payer's voucher over {best} USDC covers what it counts."
            ),
        ),
        Some(best) => verdict(
            false,
            format!(
                "The receipt counts {} USDC, and the payer's voucher covers {best} USDC.",
                receipt.spent_total
            ),
        ),
        None => verdict(false, "The channel of this receipt is no longer in the ledger."),
    })
}

#[cfg(test)]
mod tests {
    use farthing_ledger::{PurchaseEnd, Timing};
    use farthing_protocol::{
        CallId, Outcome, SecretKey, ServiceId, Usdc,
        call::{ChargePolicy, Method},
    };

    use super::*;

    const CHANNEL: ChannelId = ChannelId::from_bytes([4; 32]);
    const ESCROW: Escrow = Escrow {
        chain_id: 31_337,
        contract: Address::from_bytes([5; 20]),
        token: Address::from_bytes([6; 20]),
    };

    fn owner() -> SecretKey {
        SecretKey::from_bytes(&[9; 32]).unwrap()
    }

    fn receipt() -> Receipt {
        Receipt {
            channel: CHANNEL,
            call_id: CallId::from_bytes([1; 16]),
            request_hash: [2; 32],
            response_hash: [3; 32],
            outcome: Outcome::Answered.code(),
            charged: Usdc::from_micros(2),
            spent_total: Usdc::from_micros(5),
            time_secs: 7,
        }
    }

    fn purchase(signature: Signature) -> Purchase {
        Purchase {
            call_id: receipt().call_id,
            service: ServiceId::from_bytes([7; 16]),
            owner: owner().address(),
            channel: CHANNEL,
            secret: String::new(),
            method: Method::Get,
            path: "/ok".to_owned(),
            request_hash: receipt().request_hash,
            price: Usdc::from_micros(2),
            charge_policy: ChargePolicy::Answered,
            charged: Usdc::from_micros(2),
            promised_secs: 1,
            closed_secs: 1,
            end: PurchaseEnd::Acknowledged {
                receipt: Box::new(receipt()),
                signature,
                outcome: Outcome::Answered,
                status: 200,
                timing: Timing::default(),
            },
        }
    }

    fn holds(said: Receipt, signer: &SecretKey) -> bool {
        let signature = said.sign(&ESCROW.domain(), signer);
        of_owner(&purchase(signature), &said, signature, &ESCROW).holds
    }

    #[test]
    fn a_receipt_holds_when_its_owner_signed_it_for_this_very_call_and_this_price() {
        assert!(holds(receipt(), &owner()));
        assert!(!holds(receipt(), &SecretKey::from_bytes(&[8; 32]).unwrap()), "another wallet");
        let other_call = CallId::from_bytes([9; 16]);
        for wrong in [
            Receipt { call_id: other_call, ..receipt() },
            Receipt { request_hash: [9; 32], ..receipt() },
            Receipt { channel: ChannelId::from_bytes([9; 32]), ..receipt() },
            Receipt { charged: Usdc::from_micros(3), ..receipt() },
        ] {
            assert!(!holds(wrong, &owner()), "{wrong:?}");
        }
        let elsewhere = Escrow { chain_id: 1, ..ESCROW };
        let signature = receipt().sign(&elsewhere.domain(), &owner());
        assert!(!of_owner(&purchase(signature), &receipt(), signature, &ESCROW).holds, "another chain");
    }
}
