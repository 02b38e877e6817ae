//! Everything that moved or earned money, in the order of time, and what each day came to.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{AddressText, ChannelIdText, EthText, ServedCall, ServiceIdText, UsdcText};
pub use crate::text::NoneOf;

/// One step through the history, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HistoryPage {
    pub entries: Vec<HistoryEntry>,
    /// To be given as `cursor` for what comes before; absent at the end. A step may be short, even empty, and not the
    /// last one: only so much is looked at at once.
    pub next: Option<String>,
}

/// A call, a transaction, a settlement or an adjustment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HistoryEntry {
    pub kind: HistoryKind,
    /// Seconds since the Unix epoch.
    pub time_secs: u64,
    pub state: HistoryState,
    /// Call id, hash of the transaction, or number of the settlement or the adjustment.
    pub id: String,
    /// The amount paid for a call or moved by a transaction, or earned by a call or a settlement.
    pub amount: UsdcText,
    pub service: Option<ServiceIdText>,
    /// Name of the service, a stranger's text; empty where there is none.
    pub name: String,
    /// The other side's wallet.
    pub peer: Option<AddressText>,
    /// `GET /v1/things` of a call, `deposit` of a transaction.
    pub what: String,
    /// HTTP status of the service's answer.
    pub status: Option<u16>,
    /// Name of the secret that bought it.
    pub secret: Option<String>,
    pub channel: Option<ChannelIdText>,
    /// Hash, `0x…`.
    pub transaction: Option<String>,
    /// ETH that a transaction moved, beside its fee.
    pub eth: Option<EthText>,
    /// The fee that a transaction paid for gas, in ETH.
    pub fee: Option<EthText>,
    /// The reason that a call cost nothing, when it was not answered; the cause of an adjustment; what became of a transaction
    /// that is in no block any more.
    pub reason: Option<String>,
}

words! {
    /// The kind of an entry.
    HistoryKind {
        /// A call that this node bought.
        Bought = "bought",
        /// A call that this node served.
        Served = "served",
        /// A claim of what was earned.
        Settlement = "settlement",
        /// A transaction of this wallet.
        Transaction = "transaction",
        /// An amount that a channel counts and no call explains, or that a call counts and nothing pays, with its cause.
        Adjustment = "adjustment",
    }
}

words! {
    /// The state of an entry.
    HistoryState {
        /// A call that was answered and paid.
        Charged = "charged",
        /// A call that was answered and cost nothing.
        Free = "free",
        /// Not answered, or not carried out; nothing was paid.
        Failed = "failed",
        /// Not in a block yet.
        Pending = "pending",
        /// In a block.
        Confirmed = "confirmed",
        /// Earned, and withdrawn by the payer before it was claimed; or paid over x402 in a block that the chain took back.
        Lost = "lost",
        /// Left of this wallet's deposit when its channel was closed, and back in the wallet: no earnings.
        Returned = "returned",
    }
}

/// One day in UTC: calls that a service answered, and what was charged for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DayTotals {
    /// `2026-11-21`
    pub date: String,
    pub bought: u64,
    pub spent: UsdcText,
    pub served: u64,
    pub earned: UsdcText,
}

/// Show a settlement and the calls it paid for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SettlementShown {
    pub id: u64,
    /// Seconds since the Unix epoch, of the last change.
    pub time_secs: u64,
    pub state: HistoryState,
    /// Hash, `0x…`; none before it was sent.
    pub transaction: Option<String>,
    /// The fate of a claim whose transaction no block has any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub amount: UsdcText,
    pub channels: Vec<SettledChannel>,
    /// The newest first.
    pub calls: Vec<ServedCall>,
    /// Calls of it may be missing here, because they are too old or too many.
    pub partial: bool,
}

/// One channel's part of a settlement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SettledChannel {
    pub channel: ChannelIdText,
    pub payer: Option<AddressText>,
    pub amount: UsdcText,
}

/// Column heads of [`csv_line`].
pub const CSV_HEAD: &str = "time,kind,state,id,amount_usdc,service,name,peer,what,status,secret,channel,transaction,eth,fee_eth,reason\r\n";

/// An entry as a line of RFC 4180. What a spreadsheet would take for a formula begins with an apostrophe.
pub fn csv_line(entry: &HistoryEntry) -> String {
    fn text<T: fmt::Display>(value: Option<&T>) -> String {
        value.map(ToString::to_string).unwrap_or_default()
    }
    let cells = [
        farthing_os::clock::timestamp(entry.time_secs),
        entry.kind.to_string(),
        entry.state.to_string(),
        entry.id.clone(),
        entry.amount.to_string(),
        text(entry.service.as_ref()),
        entry.name.clone(),
        text(entry.peer.as_ref()),
        entry.what.clone(),
        text(entry.status.as_ref()),
        text(entry.secret.as_ref()),
        text(entry.channel.as_ref()),
        text(entry.transaction.as_ref()),
        text(entry.eth.as_ref()),
        text(entry.fee.as_ref()),
        text(entry.reason.as_ref()),
    ];
    cells.map(|cell| csv_cell(&cell)).join(",") + "\r\n"
}

fn csv_cell(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    let formula = text.starts_with(['=', '+', '-', '@']);
    let text = if formula { format!("'{text}") } else { text };
    // Programs of some countries part cells at semicolons.
    if text.contains(['"', ',', ';']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_neither_a_formula_nor_the_end_of_a_line() {
        for (text, cell) in [
            ("plain", "plain"),
            ("", ""),
            ("a,b", "\"a,b\""),
            ("a;=b", "\"a;=b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=HYPERLINK(\"x\",1)", "\"'=HYPERLINK(\"\"x\"\",1)\""),
            ("@sum", "'@sum"),
            ("a\r\nb", "ab"),
            ("\t=1", "'=1"),
        ] {
            assert_eq!(csv_cell(text), cell, "{text:?}");
        }
    }

    #[test]
    fn kinds_and_states_are_read_as_they_are_written() {
        for kind in HistoryKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        for state in HistoryState::ALL {
            assert_eq!(state.name().parse(), Ok(state));
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
        let error = "spent".parse::<HistoryKind>().unwrap_err().to_string();
        assert_eq!(error, "`spent` is none of bought, served, settlement, transaction, adjustment");
    }
}
