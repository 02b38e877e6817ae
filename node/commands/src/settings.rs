//! The configuration that the node runs with, where each value comes from, and what of it is changed while it runs.
//!
//! What is changed is tried first, then stored, and holds from the next start on: [`restart`] ends running calls and
//! starts the same program again in the same process.

use std::{io, path::Path, sync::Arc};

use axum::{
    Json, Router,
    extract::{Path as InPath, State},
    http::StatusCode,
};
use farthing_chain::{ChainKind, ChainSpec, EndpointProbe};
use farthing_config::{
    self as config, ChangedSettings, EffectiveSetting, Loaded, Sources, UserSettings, keys::SettingKey,
};
use farthing_control::{
    endpoint::Settings,
    types::{
        BackupRequest, ChainSettings, ChainSettingsRequest, ChainSettingsSaved, EndpointTested, Restarting,
        Restoring, Setting, SettingOrigin,
    },
};
use farthing_node::{
    backup::{Backups, staged},
    chain_spec::chain_spec,
    handles::Handles,
};
use farthing_os::{clock, files, secret::SecretText};
use farthing_shared::blocking::run_blocking;
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

use super::{Failed, Reply};

/// More are a mistake.
const ENDPOINTS_MAX: usize = 16;
/// A chain whose newest block is older has stopped, or its endpoint has.
const HEAD_AGE_MAX_SECS: u64 = 600;
const RPC_URLS: &str = "chain.rpc_urls";
const CONFIRMATIONS: &str = "chain.confirmations";

/// The parts that these commands work with.
#[derive(Clone, Debug)]
pub struct RunningNode {
    pub node: Handles,
    /// The sources of settings that the process was given.
    pub sources: Arc<Sources>,
    /// The settings that it runs with: those of its start, and what was taken over since.
    loaded: Arc<RwLock<Loaded>>,
    /// Cancelled to start again.
    pub restart: CancellationToken,
}

impl RunningNode {
    pub fn new(node: Handles, sources: Sources, loaded: Loaded, restart: CancellationToken) -> Self {
        Self { node, sources: Arc::new(sources), loaded: Arc::new(RwLock::new(loaded)), restart }
    }

    /// Takes over what holds at once of settings that were read again, and names what changed.
    pub fn take_over(&self, newer: &Loaded) -> ChangedSettings {
        self.loaded.write().take_over(newer)
    }

    fn settings(&self) -> Vec<Setting> {
        let setting = |EffectiveSetting { name, value, origin }| Setting {
            name: name.to_owned(),
            value: value.to_string(),
            origin,
        };
        self.loaded.read().shown().into_iter().map(setting).collect()
    }
}

pub fn router(running: RunningNode) -> Router {
    Settings::router().with_state(running)
}

farthing_control::answer!(RunningNode, Config, show);
async fn show(State(running): State<RunningNode>) -> Json<Vec<Setting>> {
    Json(running.settings())
}

farthing_control::answer!(RunningNode, Restart, restart);
async fn restart(State(running): State<RunningNode>) -> Json<Restarting> {
    running.restart.cancel();
    Json(Restarting { restarting: true })
}

farthing_control::answer!(RunningNode, ChainSettings, chain);
async fn chain(State(running): State<RunningNode>) -> Reply<ChainSettings> {
    Ok(Json(chain_now(&running)?))
}

/// Reads what is set now, which holds from the next start on.
fn chain_now(running: &RunningNode) -> Result<ChainSettings, Failed> {
    let loaded = config::load(&running.sources)?;
    let shown = loaded.shown();
    let from = |name: &str| {
        let shown = shown.iter().find(|shown| shown.name == name);
        match shown.map(|shown| &shown.origin.0) {
            None | Some(SettingOrigin::Unset | SettingOrigin::Default) => SettingOrigin::Preset.into(),
            Some(origin) => origin.clone().into(),
        }
    };
    let spec = spec_of(&loaded.config)?;
    let runs = running.node.chain.spec();
    Ok(ChainSettings {
        preset: loaded.config.chain.preset.clone(),
        endpoints: spec.rpc_urls.iter().map(|url| host(url)).collect(),
        endpoints_from: from(RPC_URLS),
        confirmations: spec.confirmations,
        confirmations_from: from(CONFIRMATIONS),
        in_force: spec.rpc_urls == runs.rpc_urls && spec.confirmations == runs.confirmations,
    })
}

fn spec_of(config: &config::Config) -> Result<ChainSpec, Failed> {
    chain_spec(config).map_err(|error| {
        Failed::new(StatusCode::BAD_REQUEST, &error, "Set it in `farthing.toml`.")
            .saying("Nothing was changed.")
    })
}

refused!(config::ConfigError: BAD_REQUEST);

/// Host and port alone.
fn host(url: &str) -> String {
    let url = url::Url::parse(url).ok();
    let host = url.as_ref().and_then(|url| Some((url.host_str()?, url.port())));
    host.map_or_else(
        || "(set)".to_owned(),
        |(host, port)| port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")),
    )
}

farthing_control::answer!(RunningNode, SetChainSettings, set_chain);
async fn set_chain(
    State(running): State<RunningNode>,
    Json(request): Json<ChainSettingsRequest>,
) -> Reply<ChainSettingsSaved> {
    let chosen = chosen(&running, &request)?;
    let trial = Sources { chosen: Some(chosen.text()), ..(*running.sources).clone() };
    let loaded = config::load(&trial).map_err(|error| Failed::from(error).saying("Nothing was changed."))?;
    let spec = spec_of(&loaded.config)?;
    let probed = if request.rpc_urls.is_some() { farthing_chain::probe(&spec).await } else { Vec::new() };
    let rests = spec.kind == ChainKind::Local;
    let tested: Vec<_> = probed.iter().map(|probed| tested(probed, rests, clock::now_secs())).collect();
    judge(&probed, &tested)?;
    chosen.write(&running.node.config.node.data_dir).map_err(|error| {
        let detail = format!("the settings could not be stored: {error}");
        Failed::new(StatusCode::SERVICE_UNAVAILABLE, &detail, "Check the data folder and its disk.")
    })?;
    Ok(Json(ChainSettingsSaved { settings: chain_now(&running)?, tested }))
}

/// Joins what is stored with what is asked for.
fn chosen(running: &RunningNode, request: &ChainSettingsRequest) -> Result<UserSettings, Failed> {
    let refused = |detail: &str, next: &str| Failed::new(StatusCode::BAD_REQUEST, &detail, next);
    let (urls, confirmations) =
        (request.rpc_urls.as_ref(), request.confirmations.map(|number| [number.to_string()]));
    if urls.is_some_and(|urls| urls.is_empty() || urls.len() > ENDPOINTS_MAX) {
        return Err(refused(
            "`rpc_urls` must name 1 to 16 addresses",
            "`reset` goes back to the configured ones.",
        ));
    }
    let named =
        [(RPC_URLS, urls.map(Vec::as_slice)), (CONFIRMATIONS, confirmations.as_ref().map(|one| &one[..]))];
    let (data_dir, settings) = (&running.node.config.node.data_dir, running.settings());
    let mut chosen = UserSettings::read(data_dir).map_err(|error| {
        // A file that is no TOML says itself what to do with it.
        let next = (error.kind() != io::ErrorKind::InvalidData).then(|| files::next_step(&error));
        Failed::new(StatusCode::SERVICE_UNAVAILABLE, &error, next).saying("Nothing was changed.")
    })?;
    for (name, value) in named {
        let Some(key) = SettingKey::find(name) else { continue };
        let setting = settings.iter().find(|setting| setting.name == name);
        let above = setting.map(|setting| &setting.origin.0).filter(|origin| origin.is_above_console());
        if let Some(above) = above.filter(|_| value.is_some()) {
            let detail = format!("`{name}` comes from the {above}, which overrides what you set here");
            return Err(refused(&detail, "Change it there, or remove it there first."));
        }
        if request.reset || value.is_some() {
            chosen.set(key, value);
        }
    }
    Ok(chosen)
}

fn tested(probed: &EndpointProbe, rests: bool, now_secs: u64) -> EndpointTested {
    let (good, detail) = match &probed.outcome {
        Ok(served) => {
            let age_secs = now_secs.saturating_sub(served.head_secs);
            let block = format!("block {} in {} ms", served.head, served.took.as_millis());
            if rests || age_secs <= HEAD_AGE_MAX_SECS {
                (true, block)
            } else {
                (false, format!("{block}; its newest block is {} minutes old", age_secs / 60))
            }
        }
        Err(reason) => (false, reason.clone()),
    };
    EndpointTested { endpoint: probed.endpoint.clone(), good, detail }
}

/// One that answers is enough; one of another chain is a mistake.
fn judge(probed: &[EndpointProbe], tested: &[EndpointTested]) -> Result<(), Failed> {
    let wrong = probed.iter().zip(tested).find(|(probed, _)| probed.wrong_chain).map(|(_, tested)| tested);
    let none = tested.first().filter(|_| tested.iter().all(|tested| !tested.good));
    let Some(bad) = wrong.or(none) else { return Ok(()) };
    let detail = format!("{} {}", bad.endpoint, bad.detail);
    Err(Failed::new(StatusCode::BAD_REQUEST, &detail, "Check the address; nothing was changed."))
}

farthing_control::answer!(RunningNode, RestoreBackup, restore);
async fn restore(
    State(running): State<RunningNode>,
    InPath(name): InPath<String>,
    Json(request): Json<BackupRequest>,
) -> Reply<Restoring> {
    let passphrase = SecretText::new(request.passphrase);
    let config = running.node.config.clone();
    let bytes = super::backup::read(&Backups::of(&config.node), &name).await?;
    let sources = running.sources.clone();
    let node = running.node.clone();
    let staged = run_blocking(move || {
        let check = |file: &Path| check_settings(&sources, file);
        let wallet_passphrase = config.wallet.passphrase.as_ref();
        let own = || node.money_at_end();
        staged::stage(&bytes, &passphrase, wallet_passphrase, &config.node.data_dir, own, check)
    });
    let (facts, kept_in) = staged.await?;
    tracing::warn!(wallet = facts.wallet, "a backup replaces the node, which restarts");
    running.restart.cancel();
    let left = Some(running.node.balance());
    Ok(Json(Restoring { facts, kept_in: kept_in.display().to_string(), left }))
}

/// Checks that the node would start with the settings file of a backup. One that is named elsewhere stays.
fn check_settings(sources: &Sources, file: &Path) -> Result<(), String> {
    if sources.file.is_some() {
        return Ok(());
    }
    let restored = Sources { file: Some(file.to_owned()), ..sources.clone() };
    config::load(&restored).map(drop).map_err(|error| error.to_string())
}
