//! Sentences that code has to say, in one place. The texts of pages stand in their templates, so that a translation is
//! another folder of templates and another of this file.

use axum::response::Redirect;
use farthing_control::types::{self, AlertKind, NodePart};
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

const APIS: Option<&str> = Some("/panel/apis");
const FINANCE: Option<&str> = Some("/panel/finance");
const LIMITS: Option<&str> = Some("/panel/finance/limits");
const NETWORK: Option<&str> = Some("/panel/network");

/// An alert of the node.
pub(super) fn alert(alert: &types::Alert) -> Alert {
    let (title, action, link) = match alert.kind {
        AlertKind::NotReady => not_ready(alert.part()),
        AlertKind::Alone => ("The network needs a look", "See the network", NETWORK),
        AlertKind::BootstrapUnusable => ("A node to join through cannot be used", "See the network", NETWORK),
        AlertKind::ChainStale => ("The chain shows no new block", "Check `chain.rpc_urls`", None),
        AlertKind::ClockOff => ("This machine's clock is wrong", "Set it, and keep it right by NTP", None),
        AlertKind::DiskLow => ("The disk is nearly full", "Free disk space", None),
        AlertKind::WalletTwice => (
            "Two nodes run with this wallet",
            "Stop one of the two: a copy must not run beside the original",
            None,
        ),
        AlertKind::MoneyElsewhere => {
            ("Money is where the settings do not lead", "Set the chain back and restart the node", None)
        }
        AlertKind::MoneyLeft => {
            ("Replaced files tell of money", "See backups", Some("/panel/settings/backup"))
        }
        AlertKind::EarningsLost => ("Payers withdrew what you had earned", "See the history", FINANCE),
        AlertKind::SpendingStopped => ("All spending is stopped", "See the limits", LIMITS),
        AlertKind::UsdcLow => ("USDC runs out", "See Finance", FINANCE),
        AlertKind::ClaimUnaffordable => {
            ("What you earn cannot be claimed", "Send a little ETH to the wallet", FINANCE)
        }
        AlertKind::ClaimRefused => ("The contract refuses your claims", "See Finance", FINANCE),
        AlertKind::EventsSkipped => {
            ("Some blocks of the chain could not be read", "Check `chain.rpc_urls`", None)
        }
        AlertKind::TransactionWaits => ("A transaction waits to be mined", "See the history", FINANCE),
        AlertKind::EthLow => ("ETH for fees runs out", "See Finance", FINANCE),
        AlertKind::BudgetLow => ("The budget of today is nearly spent", "See the limits", LIMITS),
        AlertKind::ChannelLow => ("A channel runs out", "See the channels", FINANCE),
        AlertKind::ServerDown => ("A server of yours takes no calls", "See My APIs", APIS),
        AlertKind::ListingUnseen => ("A service of yours is not found", "See My APIs", APIS),
        AlertKind::BackupFailed => ("The daily backup fails", "See backups", Some("/panel/settings/backup")),
        AlertKind::ServiceFlagged => {
            ("A service that you buy often fails", "See the limits", Some("/panel/finance/limits#flagged"))
        }
        AlertKind::CallsUndecided => ("An owner does not say how calls ended", "See the channels", FINANCE),
        AlertKind::ClosedUnasked => ("An owner closes channels at once", "See the limits", LIMITS),
        AlertKind::ChannelStopped => ("A channel is stopped", "See the channels", FINANCE),
    };
    let cause = match alert.kind {
        AlertKind::NotReady => alert.cause.clone(),
        _ => format!("{}; {}", alert.cause, alert.action),
    };
    Alert { title, cause: sentence(&cause), action, link }
}

const fn not_ready(part: Option<NodePart>) -> (&'static str, &'static str, Option<&'static str>) {
    match part {
        Some(NodePart::Ledger) => {
            ("The ledger is closed, so no money moves", "Free some disk space, then restart the node", None)
        }
        Some(NodePart::Chain) => {
            let next = "Calls over open channels go on for a while, new channels and claims wait. Check `chain.rpc_urls` if \
                        this stays";
            ("The chain cannot be used now", next, None)
        }
        Some(NodePart::Network) => ("The network needs a look", "See the network", NETWORK),
        None => ("Something needs a look", "Run `farthing doctor`", None),
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
        Limits = "limits", "The limits are set. They hold from now on.";
        LimitsReset = "limits-reset", "The configuration's limits hold again.";
        PriceAccepted = "price-accepted", "The price is accepted for all calls of the service.";
        Flagged = "flagged", "The rule is set. It applies to calls of this service from now on.";
        Spending = "spending", "Calls are paid again, within the limits.";
        Alerts = "alerts", "The levels are set. Alerts use them from now on.";
        AlertTest = "alert-test", "A test is on its way to the address. Look there whether it arrived.";
        Price = "price", "The price is published. Calls from now on cost it.";
        Paused = "paused", "Paused: nobody can call it until you resume it. Other nodes hear of it in seconds.";
        Resumed = "resumed", "Live again. Other nodes hear of it in seconds.";
        SecretLimits = "secret-limits", "The limits of this secret are set. They hold from now on.";
        SecretEnded = "secret-ended", "The secret is ended. Whoever presents it is refused.";
        LoggedOut = "logged-out", "All others are logged out.";
        KeysDropped = "keys-dropped",
            "The keys of this service were given for another server, so they are dropped. If the new one asks for keys, \
             give them under Change.";
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
            assert!(alert.title != "Something needs a look", "{alert:?}");
            assert!(alert.cause.ends_with('.') && !alert.action.is_empty(), "{alert:?}");
        }
    }
}
