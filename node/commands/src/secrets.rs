//! The secrets that scripts present: created, looked at, limited, replaced, ended.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use farthing_control::types::{NewSecret, PinnedServices, Secret, SecretLimits, SecretShown, ServiceIdText};
use farthing_node::{
    handles::Handles,
    secret::ConsumerSecret,
    secrets::{DEFAULT_SECRET, SecretFacts, Secrets, SecretsError},
};
use farthing_shared::blocking::run_blocking;

use super::{Failed, Reply};

fn shown(node: &Handles, facts: SecretFacts) -> SecretShown {
    SecretShown {
        spent_today: node.consumer.spent_today_by(&facts.name).into(),
        name: facts.name,
        created_secs: facts.created_secs,
        last_used_secs: facts.last_used_secs,
        limits: facts.limits,
        pinned: facts.pinned,
    }
}

fn one(node: &Handles, name: &str) -> Result<SecretShown, Failed> {
    let found = node.secrets.all().into_iter().find(|facts| facts.name == name);
    let facts = found.ok_or_else(|| SecretsError::NotFound(name.to_owned()))?;
    Ok(shown(node, facts))
}

/// A change waits for the disk, apart from those who answer.
async fn change<T: Send + 'static>(
    node: &Handles,
    change: impl FnOnce(&Secrets) -> Result<T, SecretsError> + Send + 'static,
) -> Result<T, Failed> {
    let secrets = Arc::clone(&node.secrets);
    Ok(run_blocking(move || change(&secrets)).await?)
}

fn exposed(secret: &ConsumerSecret) -> Json<Secret> {
    Json(Secret { secret: secret.expose().to_owned() })
}

answer!(Secret: default);
async fn default(State(node): State<Handles>) -> Reply<Secret> {
    Ok(exposed(&node.secrets.show(DEFAULT_SECRET)?))
}

answer!(RotateSecret: rotate_default);
async fn rotate_default(State(node): State<Handles>) -> Reply<Secret> {
    Ok(exposed(&change(&node, |secrets| secrets.rotate(DEFAULT_SECRET)).await?))
}

answer!(Secrets: list);
async fn list(State(node): State<Handles>) -> Json<Vec<SecretShown>> {
    Json(node.secrets.all().into_iter().map(|facts| shown(&node, facts)).collect())
}

answer!(CreateSecret: create);
async fn create(State(node): State<Handles>, Json(new): Json<NewSecret>) -> Reply<Secret> {
    let made = change(&node, move |secrets| secrets.create(&new.name, new.limits)).await?;
    Ok(exposed(&made))
}

answer!(NamedSecret: show);
async fn show(State(node): State<Handles>, Path(name): Path<String>) -> Reply<Secret> {
    Ok(exposed(&node.secrets.show(&name)?))
}

answer!(RevokeSecret: revoke);
async fn revoke(State(node): State<Handles>, Path(name): Path<String>) -> Reply<SecretShown> {
    let last = one(&node, &name)?;
    change(&node, move |secrets| secrets.revoke(&name)).await?;
    Ok(Json(last))
}

answer!(LimitSecret: limit);
async fn limit(
    State(node): State<Handles>,
    Path(name): Path<String>,
    Json(request): Json<SecretLimits>,
) -> Reply<SecretShown> {
    let named = name.clone();
    change(&node, move |secrets| secrets.limit(&named, request)).await?;
    Ok(Json(one(&node, &name)?))
}

answer!(PinServices: pin);
async fn pin(
    State(node): State<Handles>,
    Path(name): Path<String>,
    Json(request): Json<PinnedServices>,
) -> Reply<SecretShown> {
    let pinned = one(&node, &name)?.pinned;
    // One that is pinned already can stay, so that others can be unpinned.
    let is_server = |service: &&ServiceIdText| node.foreign.has(service.0) && !pinned.contains(*service);
    if let Some(service) = request.services.iter().find(is_server) {
        let detail =
            format!("{service} is an x402 server: it describes no operations, so it gives an agent no tools");
        let next = "Give the agent its UUID: `call_service` buys from it.";
        return Err(Failed::new(StatusCode::BAD_REQUEST, &detail, next));
    }
    let named = name.clone();
    change(&node, move |secrets| secrets.pin(&named, request.services)).await?;
    Ok(Json(one(&node, &name)?))
}

answer!(RotateNamedSecret: rotate);
async fn rotate(State(node): State<Handles>, Path(name): Path<String>) -> Reply<Secret> {
    Ok(exposed(&change(&node, move |secrets| secrets.rotate(&name)).await?))
}

refused!(SecretsError {
    SecretsError::Name(_) | SecretsError::TooManyServices | SecretsError::TooManyPinned => BAD_REQUEST,
    SecretsError::NotFound(_) => NOT_FOUND,
    SecretsError::Exists(_) | SecretsError::TooMany | SecretsError::IsDefault => CONFLICT,
    SecretsError::File(_) => INTERNAL_SERVER_ERROR,
});
