//! One step through the five records, merged by time.

use farthing_control::{
    counted,
    types::{Eth, HistoryEntry, HistoryKind, HistoryState, Text},
};
use farthing_ledger::{
    Adjustment, CallRow, Cause, Ledger, LedgerError, Position, Purchase, PurchaseEnd, Settlement,
    SettlementRow, SettlementState, Side, Standing, Stretch, Transaction, Window,
};
use farthing_owner::upstream::Fault;
use farthing_protocol::{ChannelId, Outcome, Usdc};

use super::{
    HistoryFilter, SCANNED_MAX, ServiceNames,
    claims::{reason_of_settlement, settlements, state_of_settlement},
    place::{Place, merge},
};

pub type HistoryPosition = Place<HistoryKind>;

/// A record as it was read.
#[derive(Debug)]
pub(super) enum Entry {
    Bought(Purchase),
    Served(CallRow),
    Settlement(Settlement),
    Transaction(Transaction),
    /// With its number among those of its second.
    Adjustment(u64, Adjustment),
}

/// Up to `limit` entries, the newest first, and where to go on; `None` at the end.
pub(super) fn step(
    ledger: &Ledger,
    filter: &HistoryFilter,
    limit: usize,
) -> Result<(Vec<Entry>, Option<HistoryPosition>), LedgerError> {
    let mut stretches = Vec::new();
    for kind in &filter.kinds {
        stretches.push((*kind, stretch(ledger, filter, *kind, limit)?));
    }
    Ok(merge(stretches, limit))
}

fn stretch(
    ledger: &Ledger,
    filter: &HistoryFilter,
    kind: HistoryKind,
    limit: usize,
) -> Result<Stretch<Entry>, LedgerError> {
    let window = Window {
        before: filter.before.among(kind),
        from_secs: filter.from_secs,
        limit,
        scan_max: SCANNED_MAX,
    };
    Ok(match kind {
        HistoryKind::Bought => {
            let keep =
                |call: &Purchase| filter.keeps(state_of_purchase(call), Some(call.service), Some(call.owner));
            entries(ledger.purchases_in(&window, keep)?, Entry::Bought)
        }
        HistoryKind::Served => {
            let keep =
                |row: &CallRow| filter.keeps(state_of_call(row), Some(row.call.service), Some(row.payer));
            entries(ledger.calls_in(&window, keep)?, Entry::Served)
        }
        HistoryKind::Transaction => {
            let keep = |row: &Transaction| filter.keeps(state_of_transaction(row), None, row.peer);
            entries(ledger.transactions_in(&window, keep)?, Entry::Transaction)
        }
        HistoryKind::Adjustment => {
            // What a call explained later has nothing left.
            let keep = |row: &Adjustment| {
                !row.amount.is_zero() && filter.keeps(state_of_adjustment(row), None, Some(row.peer))
            };
            let found = ledger.adjustments_in(&window, keep)?;
            let rows = found.rows.into_iter().map(|(position, row)| {
                let number = position.key.clone().try_into().map_or(0, u64::from_be_bytes);
                (position, Entry::Adjustment(number, row))
            });
            Stretch { rows: rows.collect(), next: found.next }
        }
        HistoryKind::Settlement => {
            let all = settlements(ledger)?;
            let mut rows: Vec<(Position, Entry)> = all
                .into_iter()
                .filter(|settlement| filter.keeps(state_of_settlement(settlement), None, None))
                .map(|settlement| (place_of(&settlement), Entry::Settlement(settlement)))
                .filter(|(position, _)| *position < window.before && position.secs >= window.from_secs)
                .collect();
            rows.sort_by(|(one, _), (other, _)| other.cmp(one));
            let more = rows.len() > limit;
            rows.truncate(limit);
            let next = rows.last().filter(|_| more).map(|(position, _)| position.clone());
            Stretch { rows, next }
        }
    })
}

fn entries<T>(stretch: Stretch<T>, entry: fn(T) -> Entry) -> Stretch<Entry> {
    let rows = stretch.rows.into_iter().map(|(position, row)| (position, entry(row)));
    Stretch { rows: rows.collect(), next: stretch.next }
}

fn place_of(settlement: &Settlement) -> Position {
    Position { secs: settlement.time_secs, key: settlement.id.to_be_bytes().to_vec() }
}

fn state_of_purchase(call: &Purchase) -> HistoryState {
    match &call.end {
        PurchaseEnd::Acknowledged { outcome, .. } => state_of(*outcome, call.charged),
        PurchaseEnd::Transferred { .. } => HistoryState::Charged,
        PurchaseEnd::Released { status: Some(_), .. } => HistoryState::Free,
        PurchaseEnd::Released { status: None, .. } => HistoryState::Failed,
    }
}

fn state_of_call(row: &CallRow) -> HistoryState {
    if row.is_lost {
        return HistoryState::Lost;
    }
    state_of(row.call.outcome, row.call.charged)
}

fn state_of(outcome: Outcome, charged: Usdc) -> HistoryState {
    match () {
        () if !charged.is_zero() => HistoryState::Charged,
        () if outcome.is_the_services_answer() => HistoryState::Free,
        () => HistoryState::Failed,
    }
}

fn state_of_adjustment(row: &Adjustment) -> HistoryState {
    if row.cause == Cause::TakenBack { HistoryState::Lost } else { HistoryState::Charged }
}

fn state_of_transaction(transaction: &Transaction) -> HistoryState {
    match transaction.standing {
        None | Some(Standing::Stays) => HistoryState::Confirmed,
        Some(Standing::Nowhere | Standing::Failed) => HistoryState::Failed,
    }
}

/// Sums what a settlement pays, or would have paid.
pub(super) fn amount_of(settlement: &Settlement) -> Usdc {
    settlement.rows.iter().map(SettlementRow::amount).fold(Usdc::ZERO, Usdc::saturating_add)
}

pub(super) fn hash_text(hash: &[u8]) -> String {
    format!("0x{}", hex::encode(hash))
}

impl Entry {
    pub(super) fn shown(self, names: &ServiceNames) -> HistoryEntry {
        match self {
            Self::Bought(call) => bought(call, names),
            Self::Served(row) => served(row, names),
            Self::Settlement(settlement) => settled(&settlement),
            Self::Adjustment(number, row) => adjusted(number, &row),
            Self::Transaction(transaction) => sent(transaction),
        }
    }
}

fn bought(call: Purchase, names: &ServiceNames) -> HistoryEntry {
    let (status, reason) = status_and_reason(&call.end);
    let (state, id) = (state_of_purchase(&call), call.call_id.to_string());
    let transaction = match &call.end {
        PurchaseEnd::Transferred { transaction, .. } => transaction.map(|hash| hash_text(&hash)),
        _ => None,
    };
    HistoryEntry {
        transaction,
        service: Some(call.service.into()),
        name: names.of(call.service),
        peer: Some(call.owner.into()),
        what: format!("{} {}", call.method, call.path),
        status,
        secret: Some(call.secret),
        channel: channel(call.channel),
        reason,
        ..blank(HistoryKind::Bought, call.promised_secs, state, id, call.charged)
    }
}

/// The status of an answer, as far as it is known, or the reason that there is none.
#[must_use]
pub fn status_and_reason(end: &PurchaseEnd) -> (Option<u16>, Option<String>) {
    match end {
        PurchaseEnd::Acknowledged { outcome, .. } if outcome.is_the_services_answer() => (end.status(), None),
        PurchaseEnd::Acknowledged { outcome, .. } => (None, Some(reason(*outcome).to_owned())),
        PurchaseEnd::Transferred { status: 0, .. } => {
            (None, Some("the server took the payment, and its answer did not arrive".to_owned()))
        }
        PurchaseEnd::Transferred { .. } | PurchaseEnd::Released { status: Some(_), .. } => {
            (end.status(), None)
        }
        PurchaseEnd::Released { reason, status: None, .. } => (None, Some(reason.clone())),
    }
}

fn served(row: CallRow, names: &ServiceNames) -> HistoryEntry {
    let (state, answered) = (state_of_call(&row), row.call.outcome.is_the_services_answer());
    let (call, id) = (row.call, row.receipt.call_id.to_string());
    HistoryEntry {
        service: Some(call.service.into()),
        name: names.of(call.service),
        peer: Some(row.payer.into()),
        what: format!("{} {}", call.method, call.path),
        status: answered.then_some(call.status),
        channel: channel(row.receipt.channel),
        transaction: row.paid_by.map(|hash| hash_text(&hash)),
        reason: match () {
            () if row.is_lost => Some("the chain has taken back its payment".to_owned()),
            () => (!answered).then(|| why(call.fault, call.outcome).to_owned()),
        },
        ..blank(HistoryKind::Served, call.time_secs, state, id, call.charged)
    }
}

fn settled(settlement: &Settlement) -> HistoryEntry {
    let (state, id) = (state_of_settlement(settlement), settlement.id.to_string());
    let amount = amount_of(settlement);
    HistoryEntry {
        what: match settlement.state {
            SettlementState::Lost => "withdrawn by the payer before it was claimed".to_owned(),
            SettlementState::Returned => "left of the deposit when the channel was closed".to_owned(),
            SettlementState::Confirmed if settlement.transaction.is_none() => {
                "paid by a close, or a claim whose transaction is not known here".to_owned()
            }
            _ => format!("claim on {}", counted(settlement.rows.len(), "channel")),
        },
        channel: match settlement.rows.as_slice() {
            [row] => channel(row.channel),
            _ => None,
        },
        transaction: settlement.transaction.map(|hash| hash_text(&hash)),
        reason: reason_of_settlement(settlement).map(str::to_owned),
        ..blank(HistoryKind::Settlement, settlement.time_secs, state, id, amount)
    }
}

fn adjusted(number: u64, row: &Adjustment) -> HistoryEntry {
    let (state, id) = (state_of_adjustment(row), format!("{}-{number}", row.time_secs));
    HistoryEntry {
        peer: Some(row.peer.into()),
        what: match (row.cause, row.side) {
            (Cause::TakenBack, _) => "lost with a call that an x402 client had paid".to_owned(),
            (_, Side::Payer) => "paid for calls that are not in this history".to_owned(),
            (_, Side::Payee) => "earned with calls that are not in this history".to_owned(),
        },
        channel: channel(row.channel),
        reason: Some(cause(row.cause).to_owned()),
        ..blank(HistoryKind::Adjustment, row.time_secs, state, id, row.amount)
    }
}

fn sent(transaction: Transaction) -> HistoryEntry {
    let (hash, wei) = (hash_text(&transaction.hash), u128::from_be_bytes(transaction.wei));
    let (time_secs, amount) = (transaction.time_secs, transaction.amount);
    let state = state_of_transaction(&transaction);
    HistoryEntry {
        peer: transaction.peer.map(Text),
        what: transaction.purpose,
        reason: match transaction.standing {
            Some(Standing::Nowhere) => Some("it is no longer in any block".to_owned()),
            Some(Standing::Failed) => Some("it failed on chain".to_owned()),
            Some(Standing::Stays) | None => None,
        },
        channel: transaction.channel.and_then(channel),
        transaction: Some(hash.clone()),
        eth: (wei > 0).then_some(Text(Eth { wei })),
        fee: Some(Text(Eth { wei: u128::from_be_bytes(transaction.fee_wei) })),
        ..blank(HistoryKind::Transaction, time_secs, state, hash, amount)
    }
}

fn channel(id: ChannelId) -> Option<Text<ChannelId>> {
    Some(id).filter(|id| *id != ChannelId::NONE).map(Text)
}

/// An entry that says no more than every entry does.
fn blank(kind: HistoryKind, time_secs: u64, state: HistoryState, id: String, amount: Usdc) -> HistoryEntry {
    HistoryEntry {
        kind,
        time_secs,
        state,
        id,
        amount: amount.into(),
        service: None,
        name: String::new(),
        peer: None,
        what: String::new(),
        status: None,
        secret: None,
        channel: None,
        transaction: None,
        eth: None,
        fee: None,
        reason: None,
    }
}

const fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Crash => "the node ended before it had noted the calls, or another node uses this wallet",
        Cause::Restored => "the calls were made after the backup that this node was restored from",
        Cause::Earlier => "the calls are older than this ledger",
        Cause::TakenBack => "the chain has taken back its payment",
        Cause::Refused => "a call was already on its way when this node's ledger refused to store it",
        Cause::Claimed => {
            "the owner claimed it on chain, but no charged call that this node knows explains it"
        }
    }
}

/// Returns why the owner's server gave no answer: exactly where the record says so.
pub(super) fn why(fault: Option<u8>, outcome: Outcome) -> &'static str {
    fault.and_then(Fault::from_code).map_or_else(|| reason(outcome), Fault::words)
}

const fn reason(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Answered | Outcome::Declined => "answered",
        Outcome::Unreachable => "the service was not reached",
        Outcome::TimedOut => "the service took too long",
        Outcome::ServerError => "the service failed",
        Outcome::Oversize => "the answer was too large",
        Outcome::BadAnswer => "the answer was broken",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::acknowledged;

    #[test]
    fn a_served_call_that_was_no_answer_tells_the_owner_why_as_far_as_its_record_knows() {
        assert_eq!(why(Some(Fault::WebPage.code()), Outcome::BadAnswer), Fault::WebPage.words());
        for unknown in [None, Some(200)] {
            assert_eq!(why(unknown, Outcome::BadAnswer), "the answer was broken", "{unknown:?}");
        }
    }

    #[test]
    fn a_claim_whose_transaction_no_block_has_tells_what_became_of_it() {
        let told = |state, is_dropped| {
            let transaction = Some([7; 32]);
            let claim = Settlement { id: 1, transaction, rows: Vec::new(), time_secs: 1, state, is_dropped };
            settled(&claim).reason.unwrap_or_default()
        };
        for (state, ends) in [
            (SettlementState::Pending, "due again"),
            (SettlementState::Confirmed, "another one paid it"),
            (SettlementState::Failed, "its transaction is no longer in any block"),
        ] {
            assert!(told(state, true).ends_with(ends), "{state:?}: {}", told(state, true));
            assert_eq!(told(state, false), "");
        }
    }

    #[test]
    fn a_call_that_was_charged_late_tells_no_status() {
        let told = |outcome, status| status_and_reason(&acknowledged(outcome, status));
        assert_eq!(told(Outcome::Answered, 0), (None, None));
        assert_eq!(told(Outcome::Answered, 200), (Some(200), None));
        let failed = Some("the service failed".to_owned());
        assert_eq!(told(Outcome::ServerError, 502), (None, failed));
    }
}
