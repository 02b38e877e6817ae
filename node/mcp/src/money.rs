//! The money that an agent may spend: its secret's limits within those of the node, and what is left today.

use farthing_control::types::{SecretShown, SpendingState, StoppedBy};
use farthing_values::Usdc;
use serde_json::json;

use crate::{ToolAnswer, Trouble};

/// The price above which a user has to confirm a call with the secret of this name: the lower of its own and the node's.
#[must_use]
pub fn confirm_above(secrets: &[SecretShown], state: &SpendingState, name: &str) -> Option<Usdc> {
    let secret = secrets.iter().find(|secret| secret.name == name);
    let own = secret.and_then(|secret| secret.limits.confirm_above);
    own.into_iter().chain(state.confirm_above).map(|above| above.0).min()
}

/// Makes the result of asking for the spending of the secret of this name.
///
/// # Errors
/// [`Trouble`] when there is no such secret.
pub fn status(secrets: &[SecretShown], state: &SpendingState, name: &str) -> Result<ToolAnswer, Trouble> {
    let secret = secrets.iter().find(|secret| secret.name == name).ok_or_else(|| {
        let next = format!("Ask your user to create it with `farthing secret create {name}`.");
        Trouble::new("no-secret", &format!("the node has no secret `{name}`"), &next)
    })?;
    let (own, node) = (&secret.limits, &state.limits);
    let per_call = smaller(own.price_max.map(|price| price.0), node.price_max.0);
    let per_day = smaller(own.per_day.map(|amount| amount.0), node.per_secret_day.0);
    let left_of_secret = per_day.saturating_sub(secret.spent_today.0);
    let left_of_node = node.per_day.0.saturating_sub(state.spent_today.0);
    let left = if state.stopped.is_some() { Usdc::ZERO } else { left_of_secret.min(left_of_node) };
    let confirm_above = confirm_above(secrets, state, name);
    let stopped = state.stopped.map(|by| match by {
        StoppedBy::Configuration => "Buying is turned off in the configuration.",
        StoppedBy::User => "The user stopped all buying.",
    });
    let structured = json!({
        "secret": name,
        "spent_today_usdc": secret.spent_today,
        "left_today_usdc": left.to_string(),
        "per_call_usdc": per_call.to_string(),
        "per_day_usdc": per_day.to_string(),
        "confirm_above_usdc": confirm_above.map(|above| above.to_string()),
        "services": own.services,
        "node": {
            "spent_today_usdc": state.spent_today,
            "per_day_usdc": node.per_day,
            "stopped": stopped,
        },
    });
    let scope = if own.services.is_some() { " Only the services in `services` are allowed." } else { "" };
    let stopped = stopped.map_or_else(String::new, |words| format!(" {words}"));
    let confirmed = confirm_above.map_or_else(String::new, |above| {
        format!(" The user confirms a call that costs more than {above} USDC.")
    });
    let text = format!(
        "Spent today: {} USDC. Left today: {left} USDC. A call may cost {per_call} USDC at most.{confirmed}{scope}{stopped} The day \
         ends at midnight UTC. Only the user can change this.",
        secret.spent_today
    );
    Ok(ToolAnswer { text, structured })
}

fn smaller(own: Option<Usdc>, node: Usdc) -> Usdc {
    own.map_or(node, |own| own.min(node))
}

#[cfg(test)]
mod tests {
    use farthing_control::types::Text;

    use super::*;

    fn state(stopped: Option<&str>) -> SpendingState {
        let limits = json!({ "price_max": "1.00", "per_day": "5.00", "per_secret_day": "2.00" });
        serde_json::from_value(json!({
            "stopped": stopped, "stopped_secs": null, "spent_today": "4.50", "limits": limits, "configured": limits,
            "at_rest": { "now": "0", "returned": "0", "max": "10", "per_owner": "5", "close_delay_max_secs": 1 },
        }))
        .unwrap()
    }

    fn secrets() -> Vec<SecretShown> {
        serde_json::from_value(json!([
            { "name": "default", "created_secs": null, "last_used_secs": null, "spent_today": "0.50", "limits": {} },
            { "name": "agent", "created_secs": 1, "last_used_secs": null, "spent_today": "0.10", "limits": {
                "price_max": "0.01", "per_day": "0.20", "services": ["0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b"] } },
        ]))
        .unwrap()
    }

    #[test]
    fn the_smaller_limit_counts_and_what_is_left_of_both() {
        let of = |name: &str, stopped| status(&secrets(), &state(stopped), name).unwrap();
        let agent = of("agent", None);
        assert_eq!(agent.structured["left_today_usdc"], "0.10");
        assert_eq!(agent.structured["per_call_usdc"], "0.01");
        assert!(agent.text.contains("Only the services in `services`"), "{}", agent.text);
        let default = of("default", None);
        assert_eq!(default.structured["left_today_usdc"], "0.50", "of the node's day");
        assert_eq!(default.structured["per_day_usdc"], "2.00");
        let stopped = of("agent", Some("user"));
        assert_eq!(stopped.structured["left_today_usdc"], "0.00");
        assert!(stopped.text.contains("The user stopped all buying."), "{}", stopped.text);
    }

    #[test]
    fn a_user_confirms_above_the_lower_of_both_amounts() {
        let above = |own: Option<&str>, node: Option<&str>| {
            let (mut secrets, mut state) = (secrets(), state(None));
            let read = |text: &str| Text(text.parse::<Usdc>().unwrap());
            secrets[1].limits.confirm_above = own.map(read);
            state.confirm_above = node.map(read);
            let told = status(&secrets, &state, "agent").unwrap();
            assert_eq!(told.text.contains("The user confirms"), own.or(node).is_some(), "{}", told.text);
            confirm_above(&secrets, &state, "agent").map(|above| above.to_string())
        };
        assert_eq!(above(None, None), None);
        for (own, node) in [(Some("0.01"), Some("0.02")), (Some("0.02"), Some("0.01"))] {
            assert_eq!(above(own, node).as_deref(), Some("0.01"));
        }
        assert_eq!(above(Some("0.01"), None).as_deref(), Some("0.01"));
        assert_eq!(above(None, Some("0.00")).as_deref(), Some("0.00"));
    }

    #[test]
    fn a_secret_that_is_not_there_is_asked_for() {
        let trouble = status(&secrets(), &state(None), "other").unwrap_err();
        assert!(trouble.next.contains("farthing secret create other"), "{trouble:?}");
    }
}
