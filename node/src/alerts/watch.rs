//! Looks at the alerts again and again, and tells the webhook when they change.
//!
//! What counts is the difference between what holds now and what the webhook was told last. A message that does not
//! arrive is tried again a few times, with what holds by then; so nothing queues up, and a webhook that was away
//! learns the newest state.

use std::{collections::BTreeMap, time::Duration};

use farthing_os::clock;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Alert, Alerts, Delivery, Key, Levels, WebhookError, key};

const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The seconds for which an alert must hold; what passes by itself within this time is told to nobody.
const HOLDS_FOR_SECS: u64 = 5;
/// Waits before the second, third and fourth attempt; then the next change is waited for.
const AGAIN_AFTER: [Duration; 3] =
    [Duration::from_secs(5), Duration::from_secs(30), Duration::from_secs(120)];

impl Alerts {
    /// Runs until it is dropped.
    pub async fn watch(self) {
        let mut told: BTreeMap<Key, Alert> = BTreeMap::new();
        let mut failures = 0;
        let mut not_before = Instant::now();
        // Whom this was told: another webhook is told everything.
        let mut to = None;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let Levels { webhook, secret, .. } = self.levels();
            if webhook != to {
                (told, failures, not_before) = (BTreeMap::new(), 0, Instant::now());
                to.clone_from(&webhook);
            }
            let now_secs = clock::now_secs();
            let holding = |alert: &Alert| now_secs.saturating_sub(alert.since_secs) >= HOLDS_FOR_SECS;
            // What was told already holds until it is gone.
            let current: BTreeMap<Key, Alert> = self
                .look()
                .into_iter()
                .filter(|alert| holding(alert) || told.contains_key(&key(alert)))
                .map(|alert| (key(&alert), alert))
                .collect();
            let Some(webhook) = webhook else { continue };
            let is_new = !current.keys().eq(told.keys());
            if !is_new || Instant::now() < not_before {
                continue;
            }
            let document = self.document(&told, &current);
            match webhook.post(&self.0.parts.upstream, &document, secret.as_ref()).await {
                Ok(()) => {
                    self.delivered(Ok(()));
                    (told, failures) = (current, 0);
                }
                Err(error) => {
                    tracing::warn!(%error, "alerts could not be sent to the webhook");
                    self.delivered(Err(&error));
                    match AGAIN_AFTER.get(failures) {
                        Some(wait) => (failures, not_before) = (failures + 1, Instant::now() + *wait),
                        None => (told, failures) = (current, 0),
                    }
                }
            }
        }
    }

    /// Tells the webhook something now, whatever holds.
    ///
    /// # Errors
    /// [`WebhookError`]; `None` when no webhook is set.
    pub async fn test_webhook(&self) -> Option<Result<(), WebhookError>> {
        let Levels { webhook, secret, .. } = self.levels();
        let webhook = webhook?;
        let current = self.look().into_iter().map(|alert| (key(&alert), alert)).collect();
        let mut document = self.document(&current, &current);
        document["test"] = json!(true);
        let told = webhook.post(&self.0.parts.upstream, &document, secret.as_ref()).await;
        self.delivered(told.as_ref().copied());
        Some(told)
    }

    fn delivered(&self, told: Result<(), &WebhookError>) {
        let mut delivery = self.0.delivery.lock();
        match told {
            Ok(()) => *delivery = Delivery { told_secs: Some(clock::now_secs()), problem: None },
            Err(error) => delivery.problem = Some(error.to_string()),
        }
    }

    fn document(&self, told: &BTreeMap<Key, Alert>, current: &BTreeMap<Key, Alert>) -> Value {
        json!({
            "wallet": self.0.parts.wallet.to_string(),
            "network": self.0.parts.network_name,
            "time_secs": clock::now_secs(),
            "raised": only_in(current, told),
            "cleared": only_in(told, current),
            "alerts": current.values().collect::<Vec<_>>(),
        })
    }
}

fn only_in<'a>(one: &'a BTreeMap<Key, Alert>, other: &BTreeMap<Key, Alert>) -> Vec<&'a Alert> {
    one.iter().filter(|(key, _)| !other.contains_key(*key)).map(|(_, alert)| alert).collect()
}
