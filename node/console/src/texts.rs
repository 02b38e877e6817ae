//! Sentences that code has to say, in one place. The texts of pages stand in their templates, so that a translation is
//! another folder of templates and another of this file.

use axum::response::Redirect;
use farthing_control::types::{self, AlertKind, LimitKind, NodePart, ProblemName};
pub(super) use farthing_control::{capital, sentence};

/// Something that keeps the node from doing all of its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Alert {
    pub(super) title: &'static str,
    pub(super) cause: String,
    pub(super) action: &'static str,
    /// The address of the action, when it is in the console.
    pub(super) link: Option<&'static str>,
}

/// The most that a node pays for one call, in USDC, until its user changes the limit.
pub(super) const PRICE_MAX_DEFAULT: &str = "0.01";

/// The error for a wallet's address of which one character is wrong.
pub(super) const WRONG_CHARACTER: &str = "A character of this address is wrong, because its checksum does not match. Copy it again from its source.";

const APIS: Option<&str> = Some("/panel/apis");
const FINANCE: Option<&str> = Some("/panel/finance");
const LIMITS: Option<&str> = Some("/panel/finance/limits");
const NETWORK: Option<&str> = Some("/panel/network");

/// An alert of the node.
pub(super) fn alert(alert: &types::Alert) -> Alert {
    let (title, action, link) = match alert.kind {
        AlertKind::NotReady => not_ready(alert.part()),
        AlertKind::Alone => ("Your node has no peers", "See the network", NETWORK),
        AlertKind::BootstrapUnusable => ("A bootstrap node cannot be used", "See the network", NETWORK),
        AlertKind::ChainStale => ("The chain shows no new block", "Check `chain.rpc_urls`", None),
        AlertKind::ClockOff => {
            ("This machine's clock is wrong", "Set the clock, and keep it right with NTP", None)
        }
        AlertKind::DiskLow => ("The disk is nearly full", "Free disk space", None),
        AlertKind::CatalogFailed => {
            ("The catalog cannot be written", "Free disk space, or check the disk", None)
        }
        AlertKind::WalletTwice => (
            "Two nodes run with this wallet",
            "Stop one of them: a copy must not run while the original runs",
            None,
        ),
        AlertKind::MoneyElsewhere => {
            ("The settings do not reach all of your money", "Set the chain back and restart the node", None)
        }
        AlertKind::MoneyLeft => {
            ("Replaced files still hold money", "See backups", Some("/panel/settings/backup"))
        }
        AlertKind::EarningsLost => ("Payers withdrew money that you had earned", "See the history", FINANCE),
        AlertKind::SalesLost => ("The chain took back payments of x402 clients", "See the history", FINANCE),
        AlertKind::SpendingStopped => ("All spending is stopped", "See the limits", LIMITS),
        AlertKind::ApprovalWaits => {
            ("An agent waits for your approval", "See the approvals", Some("/panel/finance/approvals"))
        }
        AlertKind::UsdcLow => ("USDC is running low", "See Finance", FINANCE),
        AlertKind::ClaimUnaffordable => {
            ("Your node cannot claim your earnings", "Send a little ETH to the wallet", FINANCE)
        }
        AlertKind::ClaimRefused => ("The contract refuses your claims", "See Finance", FINANCE),
        AlertKind::EventsSkipped => {
            ("Some events of the chain could not be read", "Check `chain.rpc_urls`", None)
        }
        AlertKind::TransactionWaits => ("A transaction is waiting for the chain", "See the history", FINANCE),
        AlertKind::EthLow => ("ETH for fees is running low", "See Finance", FINANCE),
        AlertKind::BudgetLow => ("Today's budget is nearly spent", "See the limits", LIMITS),
        AlertKind::ChannelLow => ("A channel is running low", "See the channels", FINANCE),
        AlertKind::X402Closed => ("Your node sells nothing to x402 clients", "See Finance", FINANCE),
        AlertKind::PaymentsRefused => ("Payments of x402 clients are refused", "See My APIs", APIS),
        AlertKind::ServerDown => ("One of your servers accepts no calls", "See My APIs", APIS),
        AlertKind::ListingUnseen => ("Other nodes cannot find one of your services", "See My APIs", APIS),
        AlertKind::BackupFailed => ("The daily backup fails", "See backups", Some("/panel/settings/backup")),
        AlertKind::ServiceFlagged => {
            ("A service that you buy often fails", "See the limits", Some("/panel/finance/limits#flagged"))
        }
        AlertKind::CallsUndecided => {
            ("An owner does not report how calls ended", "See the channels", FINANCE)
        }
        AlertKind::ClosedUnasked => ("An owner closes channels on its own", "See the limits", LIMITS),
        AlertKind::ChannelStopped => ("A channel is stopped", "See the channels", FINANCE),
    };
    let cause = match alert.kind {
        AlertKind::NotReady => alert.cause.clone(),
        _ => alert.line(),
    };
    Alert { title, cause: sentence(&cause), action, link }
}

const fn not_ready(part: Option<NodePart>) -> (&'static str, &'static str, Option<&'static str>) {
    match part {
        Some(NodePart::Ledger) => {
            ("The ledger is closed, so no money moves", "Free some disk space, then restart the node", None)
        }
        Some(NodePart::Chain) => {
            let next = "Calls over open channels continue for a while, but new channels and claims wait. Check \
                        `chain.rpc_urls` if this does not go away";
            ("Your node cannot use the chain now", next, None)
        }
        Some(NodePart::Network) => ("There is a problem with the network", "See the network", NETWORK),
        None => ("Something needs your attention", "Run `farthing doctor`", None),
    }
}

/// The step to take against a limit, and the page that takes it: the words of the link, and its address.
pub(super) const fn step_against(limit: LimitKind) -> (&'static str, (&'static str, &'static str)) {
    let limits = ("See the limits", "/panel/finance/limits");
    let secrets = ("See the secrets", "/panel/settings/secrets");
    match limit {
        LimitKind::PerCall => ("Raise the limit in Finance › Limits.", limits),
        LimitKind::PerDay | LimitKind::PerSecretDay => {
            ("Raise the limit in Finance › Limits, or wait until midnight UTC.", limits)
        }
        LimitKind::SecretPerCall => ("Raise the limit of the secret in Settings › Secrets.", secrets),
        LimitKind::SecretPerDay => {
            ("Raise the limit of the secret in Settings › Secrets, or wait until midnight UTC.", secrets)
        }
        LimitKind::AtRestPerOwner | LimitKind::AtRest => (
            "See the money in channels in Finance › Limits.",
            ("See the limits", "/panel/finance/limits#at-rest"),
        ),
        LimitKind::Refills => ("See the channels in Finance.", ("See the channels", "/panel/finance")),
    }
}

/// Returns the page that does something about a refusal, by the name of its problem: the words of the link, and its address.
pub(super) fn page_against(problem: &str) -> Option<(&'static str, &'static str)> {
    match problem.parse::<ProblemName>().ok()? {
        ProblemName::OverLimit => Some(("See the limits", "/panel/finance/limits")),
        ProblemName::ServiceFlagged => Some(("See the limits", "/panel/finance/limits#flagged")),
        ProblemName::InsufficientFunds => Some(("Fund the wallet", "/panel/setup/fund")),
        ProblemName::ChainUnreachable => Some(("See the chain's settings", "/panel/settings/chain")),
        _ => None,
    }
}

/// An enum with facts of each variant, such as its name and its title: `fact.0` is the first that a line gives.
macro_rules! words {
    ($(#[$about:meta])* pub(super) enum $name:ident($($fact:ident.$at:tt: $kind:ty),+) {
        $($variant:ident = $($value:expr),+;)+
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum $name {
            $($variant,)+
        }

        impl $name {
            pub(super) const ALL: [Self; [$(stringify!($variant)),+].len()] = [$(Self::$variant),+];

            const fn facts(self) -> ($($kind,)+) {
                match self {
                    $(Self::$variant => ($($value,)+),)+
                }
            }

            $(pub(super) const fn $fact(self) -> $kind {
                self.facts().$at
            })+
        }
    };
}
pub(super) use words;

words! {
    /// A change that a form has made, said on the page that comes next.
    pub(super) enum Done(name.0: &'static str, words.1: &'static str) {
        Limits = "limits", "Limits saved. They apply from now on.";
        LimitsReset = "limits-reset", "Limits reset. The limits of the configuration apply again.";
        PriceAccepted = "price-accepted", "Price accepted for all calls to this service.";
        CallCancelled = "call-cancelled", "Call cancelled. The program that waited for its answer got a problem instead.";
        CallApproved = "call-approved", "Call approved, once, for ten minutes. Tell the agent to repeat it.";
        CallRefused = "call-refused", "Call refused. The agent is told so when it repeats the call.";
        Flagged = "flagged", "Rule saved. It applies to calls to this service from now on.";
        Spending = "spending", "Spending resumed, within the limits.";
        Alerts = "alerts", "Thresholds saved. Alerts use them from now on.";
        AlertTest = "alert-test", "Test message sent. Check that the webhook received it.";
        Price = "price", "Price published. It applies from now on.";
        Paused = "paused", "Paused: nobody can call it until you resume it. Other nodes know within seconds.";
        Resumed = "resumed", "Live again. Other nodes know within seconds.";
        SecretLimits = "secret-limits", "Limits of this secret saved. They apply from now on.";
        SecretEnded = "secret-ended", "Secret revoked. It no longer works.";
        LoggedOut = "logged-out", "All other sessions are logged out.";
        OwnerNamed = "owner-named", "Name saved.";
        Starred = "starred", "Service starred. The catalog lists it above the search.";
        StarRemoved = "star-removed", "Star removed.";
        RequestSaved = "request-saved", "Request saved. You find it next to the operations.";
        RequestRenamed = "request-renamed", "Saved request renamed.";
        RequestDeleted = "request-deleted", "Saved request deleted.";
        ServerAdded = "server-added", "Server added. Your programs call it by its UUID.";
        ServerAsked = "server-asked", "The server answered. Nothing was paid.";
        ServerPrice = "server-price", "Highest price saved. It applies from now on.";
        ServerRemoved = "server-removed", "Server removed. Payments that are under way end as before.";
        KeysDropped = "keys-dropped",
            "The secrets of this service belonged to the old server, so they were removed. If the new server needs \
             secrets, enter them under Edit.";
    }
}

impl Done {
    /// To the page that says so.
    pub(super) fn at(self, path: &str) -> Redirect {
        let sign = if path.contains('?') { '&' } else { '?' };
        Redirect::to(&format!("{path}{sign}done={}", self.name()))
    }

    /// Reads from the address of a page what was done.
    pub(super) fn of(address: &str) -> Option<Self> {
        let (_, query) = address.split_once('?')?;
        let named = query.split('&').find_map(|pair| pair.strip_prefix("done="))?;
        Self::ALL.into_iter().find(|done| done.name() == named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_said_by_the_next_page() {
        for done in Done::ALL {
            assert_eq!(Done::of(&format!("/panel?page=1&done={}", done.name())), Some(done));
        }
        for nothing in ["/panel", "/panel?done=", "/panel?done=all", "/panel?q=done=price"] {
            assert_eq!(Done::of(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn the_price_that_nodes_refuse_by_default_is_that_of_the_settings() {
        let settings = include_str!("../../config/src/settings.rs");
        let default = format!("price_max: Usdc = Amount, Value(\"{PRICE_MAX_DEFAULT}\");");
        assert!(settings.contains(&default), "{default}");
    }

    #[test]
    fn every_alert_has_a_cause_and_an_action() {
        for (kind, subject) in [
            (AlertKind::NotReady, "ledger"),
            (AlertKind::NotReady, "chain"),
            (AlertKind::NotReady, "network"),
            (AlertKind::UsdcLow, ""),
            (AlertKind::Alone, ""),
        ] {
            let severity = types::AlertSeverity::Error;
            let amiss = types::Alert::new(kind, severity, "something is amiss", "mend it");
            let alert = alert(&amiss.about(&subject));
            assert!(alert.title != "Something needs your attention", "{alert:?}");
            assert!(alert.cause.ends_with('.') && !alert.action.is_empty(), "{alert:?}");
        }
    }
}
