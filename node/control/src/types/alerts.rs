//! Alerts: what needs a person, and who is told of it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{EthText, UsdcText};

/// A problem that needs attention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Alert {
    pub kind: AlertKind,
    /// The one of several of a kind: a part of the node, a channel's or a service's id, an owner's or a wallet's address, a token
    /// with its contract. Empty where there is only one.
    pub subject: String,
    pub severity: AlertSeverity,
    pub cause: String,
    /// The step to take.
    pub action: String,
    /// Seconds since the Unix epoch; since the start of the node at most.
    pub since_secs: u64,
}

words! {
    /// The kind of an alert.
    AlertKind {
        /// A part of the node does not work, so nothing is bought and sold; the subject is a [`NodePart`].
        NotReady = "not-ready",
        /// The chain shows no new block, and soon this node sells nothing.
        ChainStale = "chain-stale",
        DiskLow = "disk-low",
        /// The listings of the network, or their search index, cannot be written; calls and sales go on.
        CatalogFailed = "catalog-failed",
        ClockOff = "clock-off",
        /// Two nodes run with one wallet.
        WalletTwice = "wallet-twice",
        /// Money is on channels of another chain, contract or token than the settings name; the subject says of which.
        MoneyElsewhere = "money-elsewhere",
        /// A wallet that a restored backup replaced has money, or the files of this node's own have better vouchers than the backup;
        /// the subject is its address.
        MoneyLeft = "money-left",
        /// Payers withdrew what was earned, before it was claimed.
        EarningsLost = "earnings-lost",
        /// The chain took back payments of x402 clients that have their answers, and nothing pays these calls any more.
        SalesLost = "sales-lost",
        SpendingStopped = "spending-stopped",
        /// Calls of agents wait for the user's approval.
        ApprovalWaits = "approval-waits",
        UsdcLow = "usdc-low",
        /// The contract refuses claims.
        ClaimRefused = "claim-refused",
        /// The wallet's ETH does not pay for the claims.
        ClaimUnaffordable = "claim-unaffordable",
        EthLow = "eth-low",
        /// A transaction of the wallet is not mined, and whatever is due after it waits.
        TransactionWaits = "transaction-waits",
        BudgetLow = "budget-low",
        ChannelStopped = "channel-stopped",
        ChannelLow = "channel-low",
        /// An owner has not said how calls ended; the subject is its address.
        CallsUndecided = "calls-undecided",
        /// An owner closed its channel unasked, and what came back takes room among the money at rest; the subject is its
        /// address.
        ClosedUnasked = "closed-unasked",
        /// Events of the chain that could not be read.
        EventsSkipped = "events-skipped",
        /// The port for x402 clients sells nothing.
        X402Closed = "x402-closed",
        /// The chain refuses payments of x402 clients whose calls were served.
        PaymentsRefused = "payments-refused",
        ServerDown = "server-down",
        ListingUnseen = "listing-unseen",
        ServiceFlagged = "service-flagged",
        BackupFailed = "backup-failed",
        /// Nobody is connected, and nobody is named to join through. The status alone tells it.
        Alone = "alone",
        /// A node to join through cannot be used; the subject is its address. The status alone tells it.
        BootstrapUnusable = "bootstrap-unusable",
    }
}

words! {
    /// A part without which a node neither buys nor sells; the subject of an alert.
    NodePart {
        Ledger = "ledger",
        Chain = "chain",
        Network = "network",
    }
}

impl Alert {
    /// An alert that is the only one of its kind. Who lists it says since when.
    pub fn new(
        kind: AlertKind,
        severity: AlertSeverity,
        cause: impl Into<String>,
        action: impl Into<String>,
    ) -> Self {
        let (cause, action) = (cause.into(), action.into());
        Self { kind, subject: String::new(), severity, cause, action, since_secs: 0 }
    }

    /// The same alert as one of several of its kind.
    #[must_use]
    pub fn about(self, subject: &impl ToString) -> Self {
        Self { subject: subject.to_string(), ..self }
    }

    /// The cause and the step to take, in one line.
    pub fn line(&self) -> String {
        format!("{}; {}", self.cause, self.action)
    }

    /// The part of the node that does not work.
    pub fn part(&self) -> Option<NodePart> {
        let is_of_part = self.kind == AlertKind::NotReady;
        self.subject.parse().ok().filter(|_| is_of_part)
    }
}

/// The severity of an alert: something has stopped, or is about to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlertSeverity {
    Warning,
    Error,
}

/// The levels of alerts and the webhook that gets them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AlertLevels {
    /// In the wallet of a node that buys; zero raises nothing, here and below.
    pub usdc_below: UsdcText,
    /// For gas, in the wallet of a node that buys or has something to claim.
    pub eth_below: EthText,
    /// Left on a channel on which the node pays.
    pub channel_below: UsdcText,
    /// Scheme, host and port of the webhook: the rest of its address often is a secret.
    pub webhook: Option<String>,
    /// `true` once messages to the webhook are signed.
    pub signed: bool,
    /// Seconds since the Unix epoch, when the webhook was told last since the node started.
    pub told_secs: Option<u64>,
    /// The reason that the webhook was not told, the last time.
    pub problem: Option<String>,
}

/// `farthing alert set`; members that are left out stay as they are.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AlertLevelsRequest {
    pub usdc_below: Option<UsdcText>,
    pub eth_below: Option<EthText>,
    pub channel_below: Option<UsdcText>,
    /// An address that takes JSON by POST; empty for none.
    pub webhook: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_kind_is_what_json_has() {
        for kind in AlertKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
