//! Calls of agents that wait for the user: the alert about them.

use farthing_control::types::{Alert, AlertKind, AlertSeverity::Warning, Approval, ApprovalState};

/// The calls that wait now: their number, and the name of a secret that one of them is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AskingAgents {
    calls: usize,
    secret: String,
}

impl AskingAgents {
    /// `None` while no call waits.
    pub(super) fn of(approvals: &[Approval]) -> Option<Self> {
        let waiting = || approvals.iter().filter(|approval| approval.state == ApprovalState::Waiting);
        let newest = waiting().next()?;
        Some(Self { calls: waiting().count(), secret: newest.secret.clone() })
    }
}

pub(super) fn alert(asking: &AskingAgents) -> Alert {
    let AskingAgents { calls, secret } = asking;
    let waits = match calls {
        1 => "1 call of an agent waits".to_owned(),
        calls => format!("{calls} calls of agents wait"),
    };
    let cause = format!("{waits} for your approval; the newest is for the secret “{secret}”");
    Alert::new(AlertKind::ApprovalWaits, Warning, cause, "look at it with `farthing mcp approvals`")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn approval(secret: &str, state: &str) -> Approval {
        serde_json::from_value(json!({
            "id": "a1", "secret": secret, "state": state, "service_name": "", "price": "0.5", "above": "0.1", "asked_secs": 1,
            "expires_in_secs": 600, "url": "",
            "call": { "api_id_public": "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b", "method": "GET", "path": "/a" },
        }))
        .unwrap()
    }

    #[test]
    fn calls_that_wait_are_told_and_decided_ones_are_not() {
        assert_eq!(AskingAgents::of(&[approval("a", "approved"), approval("a", "refused")]), None);
        let both = [approval("b", "refused"), approval("a", "waiting"), approval("c", "waiting")];
        let told = alert(&AskingAgents::of(&both).unwrap());
        assert!(
            told.cause.starts_with("2 calls of agents wait") && told.cause.ends_with("secret “a”"),
            "{told:?}"
        );
    }
}
