//! Events of the chain that could not be read: this node may not hear of channels that are opened for it.

use std::time::Duration;

use farthing_chain::LogsView;
use farthing_control::{
    counted,
    types::{Alert, AlertKind, AlertSeverity::Warning},
};

/// An endpoint that fails for a moment is no reason to tell anybody.
const TOLD_AFTER: Duration = Duration::from_secs(300);
const MINUTE_SECS: u64 = 60;

#[derive(Clone, Debug, Default)]
pub(super) struct UnreadEvents {
    /// Blocks whose events could not be read, while those of others could.
    pub(super) skipped: Vec<u64>,
    /// For how long none could be read, and why.
    pub(super) failing: Option<(Duration, String)>,
}

impl UnreadEvents {
    pub(super) fn of(logs: &LogsView) -> Self {
        let failing = logs.failing.as_ref();
        let failing = failing.map(|failing| (failing.since.elapsed(), failing.reason.clone()));
        Self { skipped: logs.skipped.clone(), failing }
    }
}

pub(super) fn alert(unread: &UnreadEvents) -> Option<Alert> {
    let lasting = unread.failing.as_ref().filter(|(time, _)| *time >= TOLD_AFTER);
    let (cause, action) = match lasting {
        Some((time, reason)) => (
            format!(
                "no endpoint has given events of the chain for {} minutes: {reason}; this node does not hear of new \
                 channels, so it refuses new customers",
                time.as_secs() / MINUTE_SECS
            ),
            "set another endpoint in `chain.rpc_urls` and restart the node",
        ),
        None => {
            let newest = unread.skipped.last()?;
            let cause = format!(
                "the events of {} could not be read, the newest is {newest}; this node may not know channels that were \
                 opened in them",
                counted(unread.skipped.len(), "block")
            );
            let action = "set another endpoint in `chain.rpc_urls`, restart the node, and ask payers that are refused \
                          with unknown_channel to deposit a little more";
            (cause, action)
        }
    };
    Some(Alert::new(AlertKind::EventsSkipped, Warning, cause, action))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_no_endpoint_gives_are_told_of_once_that_lasts() {
        let failing = |secs| UnreadEvents {
            failing: Some((Duration::from_secs(secs), "the method does not exist".to_owned())),
            ..UnreadEvents::default()
        };
        assert_eq!(alert(&failing(299)), None);
        let told = alert(&failing(300)).unwrap();
        assert_eq!(told.kind, AlertKind::EventsSkipped);
        assert!(told.cause.contains("for 5 minutes: the method does not exist"), "{}", told.cause);
        let skipped = UnreadEvents { skipped: vec![7, 9], ..failing(299) };
        assert!(alert(&skipped).unwrap().cause.contains("2 blocks could not be read, the newest is 9"));
    }
}
