//! Commands about what needs a person, from when on it is told, and to whom.

use axum::{Json, extract::State, http::StatusCode};
use farthing_control::types::{Alert, AlertLevels, AlertLevelsRequest, Secret};
use farthing_node::{
    alerts::{Levels, LevelsError, WebhookAddress, WebhookError},
    handles::Handles,
};

use super::{Failed, Reply};

fn levels_of(node: &Handles) -> AlertLevels {
    let (levels, delivery) = (node.alerts.levels(), node.alerts.delivery());
    AlertLevels {
        usdc_below: levels.usdc_below.into(),
        eth_below: levels.eth_below.into(),
        channel_below: levels.channel_below.into(),
        webhook: levels.webhook.map(|webhook| webhook.host()),
        signed: levels.secret.is_some(),
        told_secs: delivery.told_secs,
        problem: delivery.problem,
    }
}

answer!(Alerts: list);
async fn list(State(node): State<Handles>) -> Json<Vec<Alert>> {
    Json(node.alerts.look())
}

answer!(AlertLevels: levels);
async fn levels(State(node): State<Handles>) -> Json<AlertLevels> {
    Json(levels_of(&node))
}

answer!(SetAlertLevels: set);
async fn set(State(node): State<Handles>, Json(request): Json<AlertLevelsRequest>) -> Reply<AlertLevels> {
    let AlertLevelsRequest { usdc_below, eth_below, channel_below, webhook } = request;
    let edit = |levels: &mut Levels| {
        levels.usdc_below = usdc_below.map_or(levels.usdc_below, |text| text.0);
        levels.eth_below = eth_below.map_or(levels.eth_below, |text| text.0);
        levels.channel_below = channel_below.map_or(levels.channel_below, |text| text.0);
        if let Some(webhook) = webhook {
            levels.webhook = (!webhook.trim().is_empty()).then(|| WebhookAddress::new(&webhook));
        }
    };
    node.alerts.set(edit).await?;
    Ok(Json(levels_of(&node)))
}

answer!(TestAlerts: test);
async fn test(State(node): State<Handles>) -> Reply<AlertLevels> {
    match node.alerts.test_webhook().await {
        None => {
            let next = "`farthing alert set --webhook` sets one.";
            Err(Failed::new(StatusCode::CONFLICT, &"there is no webhook", next))
        }
        Some(told) => {
            told?;
            Ok(Json(levels_of(&node)))
        }
    }
}

answer!(RenewAlertSecret: renew_secret);
async fn renew_secret(State(node): State<Handles>) -> Reply<Secret> {
    let secret = node.alerts.renew_secret().await?;
    Ok(Json(Secret { secret: secret.expose().to_owned() }))
}

refused!(WebhookError {
    WebhookError::Malformed | WebhookError::Forbidden(_) => BAD_REQUEST,
    _ => BAD_GATEWAY,
});

impl From<LevelsError> for Failed {
    fn from(error: LevelsError) -> Self {
        match error {
            LevelsError::Webhook(error) => error.into(),
            LevelsError::NotStored(_) | LevelsError::NoRandomness(_) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, &error, error.next_step())
            }
        }
    }
}
