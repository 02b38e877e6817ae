//! One call, with everything that this node keeps of it, and the verdict on its receipt.

mod receipt;

use std::collections::BTreeMap;

use farthing_control::types::{
    CallPart, CallSettlement, CallShown, CallVoucher, HistoryState, KeptAnswer, LoggedCall,
};
use farthing_ledger::{CallRow, LedgerError, Promise, Purchase, PurchaseEnd, ServedRow, Settlement, Timing};
use farthing_os::clock;
use farthing_protocol::{Address, CallId, ChannelId, Escrow, Hash, Receipt, call::Payment};
use farthing_shared::call_ends::Half;
use farthing_wallet::Signer;

use super::{CallKey, LogEntry, Notes};
use crate::history::{
    History,
    claims::{state_of_settlement, told},
    read::hash_text,
};

/// Characters of a kept body that are shown.
const BODY_SHOWN_MAX: usize = 4_096;

/// The wallet that reads a call, and the place of its channels.
#[derive(Clone, Debug)]
pub struct CallReader {
    pub signer: Signer,
    pub escrow: Escrow,
    /// A site that shows the chain's transactions at `/tx/HASH`.
    pub explorer: Option<String>,
    /// The receipt is to be verified.
    pub verifies: bool,
}

pub(super) fn shown(
    history: &History,
    key: &CallKey,
    reader: &CallReader,
) -> Result<Option<CallShown>, LedgerError> {
    let Some(entry) = find(history, key)? else { return Ok(None) };
    let call = only(history.logged(&entry, &history.names()));
    let shown = match &entry {
        LogEntry::Open(promise, ..) => open(call, promise),
        LogEntry::Bought(purchase, _) => bought(call, purchase, (history, reader))?,
        LogEntry::Served(row) => served(call, row, (history, reader))?,
        LogEntry::Begun(_) | LogEntry::Refused(_) => call,
    };
    Ok(Some(shown))
}

fn find(history: &History, key: &CallKey) -> Result<Option<LogEntry>, LedgerError> {
    match *key {
        CallKey::Bought(call_id) => find_bought(history, call_id),
        CallKey::Served(payer, call_id) => find_served(history, payer, call_id),
        CallKey::Refused(number) => Ok(history.refused.numbered(number).map(LogEntry::Refused)),
        CallKey::Any(call_id) => find_any(history, call_id),
    }
}

fn find_bought(history: &History, call_id: CallId) -> Result<Option<LogEntry>, LedgerError> {
    let notes = Notes::read(&history.refused);
    let begun = history.awaited.get(call_id);
    // One that goes on between two of the looks is found by the later one.
    if let Some(promise) = history.ledger.promise_of(call_id)? {
        let note = notes.of(call_id, u64::MAX).cloned();
        let outcome = history.open_outcome(&promise, note.is_some(), clock::now_secs());
        return Ok(Some(LogEntry::Open(Box::new(promise), note, outcome)));
    }
    let ended = history.ledger.purchase(call_id)?.map(|purchase| {
        let note = notes.of(call_id, purchase.closed_secs).cloned();
        LogEntry::Bought(Box::new(purchase), note)
    });
    Ok(ended.or(begun.map(LogEntry::Begun)))
}

fn find_served(history: &History, payer: Address, call_id: CallId) -> Result<Option<LogEntry>, LedgerError> {
    Ok(match history.ledger.served(payer, call_id)? {
        Some(ServedRow::Done(row)) => Some(LogEntry::Served(row)),
        Some(ServedRow::Accepted(_)) | None => None,
    })
}

/// Finds the call with this id.
fn find_any(history: &History, call_id: CallId) -> Result<Option<LogEntry>, LedgerError> {
    if let Some(bought) = find_bought(history, call_id)? {
        return Ok(Some(bought));
    }
    let mut refused = Half::ALL.into_iter().flat_map(|half| history.refused.of(half));
    if let Some(note) = refused.find(|note| note.call_id == Some(call_id)) {
        return Ok(Some(LogEntry::Refused(note)));
    }
    for payer in history.ledger.payers_of(call_id)? {
        if let Some(served) = find_served(history, payer, call_id)? {
            return Ok(Some(served));
        }
    }
    Ok(None)
}

/// A call of which nothing more is kept than the log shows.
fn only(call: LoggedCall) -> CallShown {
    CallShown {
        call,
        price: None,
        parameters: BTreeMap::new(),
        parts: Vec::new(),
        answer: None,
        voucher: None,
        receipt: None,
        verdict: None,
        settlement: None,
    }
}

fn open(shown: CallShown, promise: &Promise) -> CallShown {
    let voucher = match promise.request.payment {
        Payment::Free => None,
        Payment::Channel { channel, cumulative, .. } => {
            Some(CallVoucher { channel: channel.into(), covers: cumulative.into() })
        }
    };
    let parameters = promise.request.params.clone();
    CallShown { price: Some(promise.request.price.into()), parameters, voucher, ..shown }
}

/// The voucher of a call with a receipt. Nothing is owed for a free one.
fn voucher_of(receipt: &Receipt) -> Option<CallVoucher> {
    let is_paid = receipt.channel != ChannelId::NONE;
    is_paid.then(|| CallVoucher { channel: receipt.channel.into(), covers: receipt.spent_total.into() })
}

fn bought(
    shown: CallShown,
    purchase: &Purchase,
    (history, reader): (&History, &CallReader),
) -> Result<CallShown, LedgerError> {
    let price = Some(purchase.price.into());
    if let PurchaseEnd::Transferred { transaction, timing, is_seen, .. } = &purchase.end {
        let transaction = transaction.map(|hash| hash_text(&hash));
        let settlement = Some(paid(transaction, *is_seen, reader.explorer.as_deref()));
        return Ok(CallShown { price, parts: parts(timing), settlement, ..shown });
    }
    let PurchaseEnd::Acknowledged { receipt, signature, timing, .. } = &purchase.end else {
        return Ok(CallShown { price, ..shown });
    };
    Ok(CallShown {
        price,
        parts: parts(timing),
        voucher: voucher_of(receipt),
        receipt: Some(receipt::shown(receipt, purchase.owner, Some(*signature))),
        verdict: reader.verifies.then(|| receipt::of_owner(purchase, receipt, *signature, &reader.escrow)),
        settlement: claimed_by_owner(history, receipt)?,
        ..shown
    })
}

/// The transfer that paid a call: as the chain showed it, or as the server says.
fn paid(transaction: Option<String>, is_seen: bool, explorer: Option<&str>) -> CallSettlement {
    let explorer = explorer.zip(transaction.as_ref()).map(|(site, hash)| format!("{site}/tx/{hash}"));
    let state = if is_seen { HistoryState::Confirmed } else { HistoryState::Pending };
    CallSettlement { state, number: None, transaction, explorer, seen_on_chain: Some(is_seen) }
}

fn parts(timing: &Timing) -> Vec<CallPart> {
    if timing.total_us == 0 {
        return Vec::new();
    }
    let part = |(name, took_us): (&str, u64)| CallPart { name: name.to_owned(), took_us };
    let parts = [
        ("network", timing.total_us.saturating_sub(timing.owner_us)),
        ("owner's node", timing.owner_us.saturating_sub(timing.upstream_us)),
        ("its server", timing.upstream_us),
    ];
    parts.map(part).into()
}

/// The state of the owner's claim of a call; the chain tells no more than the channel's total.
fn claimed_by_owner(history: &History, receipt: &Receipt) -> Result<Option<CallSettlement>, LedgerError> {
    if receipt.charged.is_zero() {
        return Ok(None);
    }
    let channels = history.ledger.payer_channels()?;
    let channel = channels.iter().find(|channel| channel.id == receipt.channel);
    Ok(channel.map(|channel| {
        let is_claimed = channel.claimed >= receipt.spent_total;
        let state = if is_claimed { HistoryState::Confirmed } else { HistoryState::Pending };
        CallSettlement { state, number: None, transaction: None, explorer: None, seen_on_chain: None }
    }))
}

fn served(
    shown: CallShown,
    row: &CallRow,
    (history, reader): (&History, &CallReader),
) -> Result<CallShown, LedgerError> {
    let signed = if reader.verifies { receipt::sign_again(history, row, reader)? } else { None };
    let server = |took_us| CallPart { name: "your server".to_owned(), took_us };
    Ok(CallShown {
        price: Some(row.call.price.into()),
        parts: row.call.upstream_us.map(server).into_iter().collect(),
        answer: row.call.outcome.is_the_services_answer().then(|| kept_answer(row)),
        voucher: voucher_of(&row.receipt),
        receipt: Some(receipt::shown(&row.receipt, reader.signer.address(), signed)),
        verdict: if reader.verifies { Some(receipt::of_own(history, row, signed)?) } else { None },
        settlement: match row.paid_by {
            Some(hash) => Some(paid_by_client(row, hash, reader)),
            None => claimed(history, &row.receipt, reader)?,
        },
        ..shown
    })
}

fn kept_answer(row: &CallRow) -> KeptAnswer {
    let body = row.call.body.as_deref().unwrap_or_default();
    let text = std::str::from_utf8(body).ok().filter(|text| !text.is_empty());
    KeptAnswer {
        headers: row.call.headers.clone(),
        body_bytes: body.len() as u64,
        text: text.map(|text| text.chars().take(BODY_SHOWN_MAX).collect()),
    }
}

/// The transaction of an x402 client that paid a call.
fn paid_by_client(row: &CallRow, hash: Hash, reader: &CallReader) -> CallSettlement {
    let paid = paid(Some(hash_text(&hash)), !row.is_lost, reader.explorer.as_deref());
    let state = if row.is_lost { HistoryState::Lost } else { paid.state };
    CallSettlement { state, ..paid }
}

/// The claim of this node's that pays for a call, or would have.
fn claimed(
    history: &History,
    receipt: &Receipt,
    reader: &CallReader,
) -> Result<Option<CallSettlement>, LedgerError> {
    let pays = |claim: &Settlement| {
        let mut rows = claim.rows.iter().filter(|row| row.channel == receipt.channel);
        rows.any(|row| receipt.spent_total > row.from && receipt.spent_total <= row.to)
    };
    if receipt.charged.is_zero() {
        return Ok(None);
    }
    let Some(claim) = history.ledger.settlements_of(receipt.channel)?.into_iter().find(pays) else {
        let state = HistoryState::Pending;
        let (transaction, explorer, seen_on_chain) = (None, None, None);
        return Ok(Some(CallSettlement { state, number: None, transaction, explorer, seen_on_chain }));
    };
    let claim = told(&history.ledger, claim)?;
    let transaction = claim.transaction.map(|hash| hash_text(&hash));
    let channel = history.ledger.payee_channel(receipt.channel)?;
    let is_here = channel.is_some_and(|channel| reader.escrow.holds(channel.id, &channel.config));
    let site = reader.explorer.as_ref().filter(|_| is_here);
    Ok(Some(CallSettlement {
        state: state_of_settlement(&claim),
        number: Some(claim.id),
        explorer: site.zip(transaction.as_ref()).map(|(site, hash)| format!("{site}/tx/{hash}")),
        transaction,
        seen_on_chain: None,
    }))
}
