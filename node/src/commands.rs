//! Commands of the command line and the console, carried out by the running node: the routes of the control socket.
//!
//! Handlers translate between [`types`](farthing_control::types) and the use cases; they decide nothing.

use std::{sync::Arc, time::Instant};

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, FromRef, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::{delete, get, post},
};
use bytes::Bytes;
use farthing_chain::ChainError;
use farthing_control::types::{
    CallRequest, Lookup, LookupRecord, LookupRequest, LookupStep, Peer, PingRequest, Pong, Problem, Reach,
    route,
};
use farthing_ledger::LedgerError;
use farthing_network::CallFailure;
use farthing_os::clock;
use utoipa::openapi::OpenApi;

use crate::{
    consumer::{BuyError, spending::Grant, trust::NotResumed},
    gateway::{auth::DEFAULT_SECRET, problem},
    node::Node,
    owner::{intake::IntakeError, publish::PublishError, registry::RegistryError},
    settlement::SettlementError,
};

mod activity;
mod alerts;
mod audit;
mod backup;
mod catalog;
mod flagged;
mod health;
mod history;
mod inspect;
mod money;
mod openapi;
mod reach;
mod sdk;
mod secrets;
mod services;
pub mod settings;
mod spending;
mod status;
mod tally;
mod traffic;

/// Descriptions with their details can be long; nothing else here is.
const REQUEST_BYTES_MAX: usize = 40 * 1024 * 1024;

/// Every route of the socket. Its document also describes what a port has `beside` them.
pub fn router(node: Node, beside: fn() -> OpenApi) -> Router {
    Router::new()
        .route(route::STATUS, get(status::status))
        .route(route::HEALTH, get(status::health))
        .route(route::DOCTOR, get(status::doctor))
        .route(route::CALL, post(call))
        .route(route::WALLET, get(money::wallet))
        .route(route::WALLET_SEND, post(money::send))
        .route(route::APIS, get(services::apis).post(services::add_api))
        .route(route::APIS_INSPECT, post(inspect::inspect))
        .route(route::APIS_PREVIEW, post(inspect::preview))
        .route(route::APIS_TRY, post(inspect::try_out))
        .route(route::API, get(services::show_api).delete(services::remove_api))
        .route(route::API_RESCAN, post(services::rescan_api))
        .route(route::API_OPENAPI, get(services::openapi))
        .route(route::API_EDIT, post(services::edit_api))
        .route(route::API_VERSIONS, get(services::versions))
        .route(route::API_HEALTH, get(health::health))
        .route(route::API_PRICE, post(services::price_api))
        .route(route::API_PAUSE, post(services::pause_api))
        .route(route::API_RESUME, post(services::resume_api))
        .route(route::CATALOG_SEARCH, post(catalog::search))
        .route(route::CATALOG_SERVICE, get(catalog::show))
        .route(route::CATALOG_OPENAPI, get(catalog::openapi))
        .route(route::CATALOG_SAMPLES, get(catalog::sample))
        .route(route::CATALOG_FORM, get(catalog::form))
        .route(route::CATALOG_VERSIONS, get(catalog::versions))
        .route(route::CATALOG_SDK, get(sdk::download).post(sdk::generate))
        .route(route::CATALOG_SNIPPETS, post(sdk::snippets))
        .route(route::SDK_LANGUAGES, get(sdk::languages))
        .route(route::CHANNELS, get(money::channels).post(money::open_channel))
        .route(route::CHANNEL_CLOSE, post(money::close_channel))
        .route(route::CHANNEL_RESUME, post(money::resume_channel))
        .route(route::SETTLE, post(money::settle))
        .route(route::AUDIT, get(audit::audit))
        .route(route::SPENDING, get(spending::show))
        .route(route::SPENDING_STOP, post(spending::stop))
        .route(route::SPENDING_RESUME, post(spending::resume))
        .route(route::SPENDING_LIMITS, post(spending::limit))
        .route(route::SPENDING_ACCEPT, post(spending::accept))
        .route(route::SPENDING_FLAGGED, get(flagged::list).post(flagged::set))
        .route(route::SECRET, get(secrets::default))
        .route(route::SECRET_ROTATE, post(secrets::rotate_default))
        .route(route::SECRETS, get(secrets::list).post(secrets::create))
        .route(route::SECRET_NAMED, get(secrets::show).delete(secrets::revoke))
        .route(route::SECRET_LIMITS, post(secrets::limit))
        .route(route::SECRET_NAMED_ROTATE, post(secrets::rotate))
        .route(route::PEERS, get(peers))
        .route(route::PING, post(ping))
        .route(route::LOOKUP, post(lookup))
        .route(route::REACH, get(reached).post(test_reach))
        .route(route::TRAFFIC, get(traffic::traffic))
        .route(route::ACTIVITY, get(activity::activity))
        .route(route::FIGURES, get(activity::figures))
        .route(route::HISTORY, get(history::history))
        .route(route::HISTORY_CSV, get(history::csv))
        .route(route::HISTORY_JSON, get(history::json))
        .route(route::HISTORY_DAYS, get(history::days))
        .route(route::SETTLEMENT, get(history::settled))
        .route(route::ALERTS, get(alerts::list))
        .route(route::ALERT_LEVELS, get(alerts::levels).post(alerts::set))
        .route(route::ALERT_TEST, post(alerts::test))
        .route(route::BACKUPS, get(backup::list).post(backup::create))
        .route(
            route::BACKUP_UPLOAD,
            post(backup::upload).layer(DefaultBodyLimit::max(backup::UPLOAD_BYTES_MAX)),
        )
        .route(route::BACKUP, get(backup::download))
        .route(route::BACKUP_VERIFY, post(backup::verify))
        .route(route::AUTOMATIC_BACKUPS, get(backup::automatic::show).post(backup::automatic::set))
        .route(route::AUTOMATIC_BACKUPS_NOW, post(backup::automatic::make))
        .route(route::REPLACED_NODES, get(backup::replaced::list))
        .route(route::REPLACED_NODE, delete(backup::replaced::remove))
        .route(route::WALLET_BACKUP, get(backup::wallet_backup))
        .route(route::WALLET_PHRASE, post(backup::phrase))
        .route(route::WALLET_PHRASE_CHECK, post(backup::check_phrase))
        .route(route::OPENAPI, get(openapi::show))
        .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
        .with_state(Commands {
            document: openapi::Document::new(beside),
            node,
            counted: activity::Counted::default(),
            tally: tally::Tally::default(),
            meter: traffic::Meter::new(),
        })
}

/// What the handlers work with.
#[derive(Clone)]
struct Commands {
    document: openapi::Document,
    node: Node,
    counted: activity::Counted,
    tally: tally::Tally,
    meter: traffic::Meter,
}

impl FromRef<Commands> for Node {
    fn from_ref(commands: &Commands) -> Self {
        commands.node.clone()
    }
}

impl FromRef<Commands> for openapi::Document {
    fn from_ref(commands: &Commands) -> Self {
        commands.document.clone()
    }
}

impl FromRef<Commands> for activity::Counted {
    fn from_ref(commands: &Commands) -> Self {
        commands.counted.clone()
    }
}

impl FromRef<Commands> for tally::Tally {
    fn from_ref(commands: &Commands) -> Self {
        commands.tally.clone()
    }
}

impl FromRef<Commands> for traffic::Meter {
    fn from_ref(commands: &Commands) -> Self {
        commands.meter.clone()
    }
}

/// The same call as at port 3000; the socket's permissions stand for the secret.
#[utoipa::path(
    post,
    path = route::CALL,
    summary = "Buy one call; the answer is the service's own",
    tag = "Calls",
    operation_id = "call",
    request_body = CallRequest,
    responses((status = 200, description = "Done"))
)]
async fn call(State(node): State<Node>, headers: HeaderMap, body: Bytes) -> Response {
    let gateway = node.gateway();
    let grant = Arc::new(Grant::unlimited(DEFAULT_SECRET));
    crate::gateway::answer(&gateway, grant, &gateway.url, &headers, &body, Instant::now()).await
}

#[utoipa::path(
    get,
    path = route::PEERS,
    summary = "Connected nodes",
    tag = "Network",
    responses((status = 200, description = "Done", body = Vec<Peer>))
)]
async fn peers(State(node): State<Node>) -> Json<Vec<Peer>> {
    let peers = node.network.peers().await;
    Json(
        peers
            .into_iter()
            .map(|peer| Peer {
                wallet: peer.address.into(),
                address: peer.addresses.first().cloned().unwrap_or_default(),
                agent: peer.agent,
                rtt_us: peer.rtt.map(|rtt| u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX)),
            })
            .collect(),
    )
}

#[utoipa::path(
    post,
    path = route::PING,
    summary = "Measure the way to a node",
    tag = "Network",
    request_body = PingRequest,
    responses((status = 200, description = "Done", body = Pong))
)]
async fn ping(State(node): State<Node>, Json(request): Json<PingRequest>) -> Result<Json<Pong>, Failed> {
    let wallet = request.wallet.0;
    if wallet == node.wallet {
        let detail = format!("{wallet} is this node's own wallet");
        let next = "Name another node's; `farthing net peers` shows them.";
        return Err(Failed::new(StatusCode::BAD_REQUEST, &detail, next));
    }
    let unreachable = |error: CallFailure| {
        let reason = match error {
            CallFailure::NeverStarted(reason) => reason.to_string(),
            CallFailure::Unknown(reason) => format!("{wallet} is connected and did not answer: {reason}"),
        };
        Failed::new(StatusCode::BAD_GATEWAY, &reason, "`farthing net lookup` shows where it was looked for.")
    };
    let rtt = node.network.ping(wallet).await.map_err(unreachable)?;
    let peer = node.network.peers().await.into_iter().find(|peer| peer.address == wallet);
    Ok(Json(Pong {
        address: peer.and_then(|peer| peer.addresses.first().cloned()).unwrap_or_default(),
        rtt_us: u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX),
    }))
}

#[utoipa::path(
    post,
    path = route::LOOKUP,
    summary = "Look for a node everywhere",
    tag = "Network",
    request_body = LookupRequest,
    responses((status = 200, description = "Done", body = Lookup))
)]
async fn lookup(State(node): State<Node>, Json(request): Json<LookupRequest>) -> Json<Lookup> {
    let found = node.network.lookup(request.wallet.0).await;
    let addresses = found.addresses;
    Json(Lookup {
        connected: found.is_connected,
        record: found.record.map(|record| LookupRecord {
            seq: record.seq,
            issued_secs: record.issued_secs,
            expires_secs: record.expires_secs,
            addresses,
            listings: record.listings_count,
            amiss: found.amiss.map(str::to_owned),
        }),
        steps: found
            .steps
            .into_iter()
            .map(|step| LookupStep {
                name: step.name.to_owned(),
                took_us: u64::try_from(step.took.as_micros()).unwrap_or(u64::MAX),
                outcome: step.outcome,
                helped: step.helped,
            })
            .collect(),
    })
}

#[utoipa::path(
    get,
    path = route::REACH,
    summary = "Whether others reach this node, as last tested",
    tag = "Network",
    responses((status = 200, description = "Done", body = Reach))
)]
async fn reached(State(node): State<Node>) -> Json<Reach> {
    let reachability = node.network.status().borrow().reachability.clone();
    Json(reach::shown(&reachability, clock::now_secs()))
}

#[utoipa::path(
    post,
    path = route::REACH,
    summary = "Test now whether others reach this node",
    tag = "Network",
    responses((status = 200, description = "Done", body = Reach))
)]
async fn test_reach(State(node): State<Node>) -> Result<Json<Reach>, Failed> {
    let tested = node.network.test_reachability().await;
    let reachability = tested.map_err(|error| {
        Failed::new(StatusCode::SERVICE_UNAVAILABLE, &error, "The node is shutting down.")
    })?;
    Ok(Json(reach::shown(&reachability, clock::now_secs())))
}

/// A use case's refusal, as the command line shows it.
struct Failed(Problem);

impl Failed {
    fn new(status: StatusCode, detail: &impl ToString, next: &str) -> Self {
        Self(Problem::of_status(status, detail.to_string(), next))
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl From<PublishError> for Failed {
    fn from(error: PublishError) -> Self {
        let status = match &error {
            PublishError::Intake(IntakeError::Unreachable { .. }) => StatusCode::BAD_GATEWAY,
            _ => StatusCode::BAD_REQUEST,
        };
        Self::new(status, &error, "Nothing was published.")
    }
}

impl From<ChainError> for Failed {
    fn from(error: ChainError) -> Self {
        let status = match &error {
            ChainError::Unreachable { .. } => StatusCode::BAD_GATEWAY,
            ChainError::Busy { .. } | ChainError::Stopped => StatusCode::SERVICE_UNAVAILABLE,
            ChainError::InsufficientEth { .. } | ChainError::InsufficientUsdc { .. } => {
                StatusCode::PAYMENT_REQUIRED
            }
            _ => StatusCode::BAD_REQUEST,
        };
        let next = match error {
            ChainError::Invalid(_) => "Correct what is named; nothing was sent.",
            _ => "`farthing doctor` checks wallet and chain.",
        };
        Self::new(status, &error, next)
    }
}

impl From<LedgerError> for Failed {
    fn from(error: LedgerError) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, &error, "`farthing doctor` checks the ledger.")
    }
}

impl From<RegistryError> for Failed {
    fn from(error: RegistryError) -> Self {
        let status = match &error {
            RegistryError::NotFound(_) => StatusCode::NOT_FOUND,
            RegistryError::Changed { .. } => StatusCode::CONFLICT,
            RegistryError::Ledger(_) => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::BAD_REQUEST,
        };
        Self::new(status, &error, "Correct what is named and try again; nothing was changed.")
    }
}

impl From<SettlementError> for Failed {
    fn from(error: SettlementError) -> Self {
        match error {
            SettlementError::Chain(error) => error.into(),
            SettlementError::Ledger(error) => error.into(),
            error @ SettlementError::Refused { .. } => {
                let next =
                    "It is tried again by itself; `farthing alert list` says what is served meanwhile.";
                Self::new(StatusCode::CONFLICT, &error, next)
            }
            error @ SettlementError::Policy(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, &error, ""),
            error @ SettlementError::NoSuchChannel(_) => Self::new(StatusCode::NOT_FOUND, &error, ""),
            error @ SettlementError::ShuttingDown => Self::new(StatusCode::SERVICE_UNAVAILABLE, &error, ""),
        }
    }
}

impl From<NotResumed> for Failed {
    fn from(error: NotResumed) -> Self {
        match error {
            NotResumed::Ledger(error) => error.into(),
            NotResumed::NoSuchChannel(_) => Self::new(StatusCode::NOT_FOUND, &error, ""),
            NotResumed::NotStopped(_) => Self::new(StatusCode::CONFLICT, &error, "Nothing was changed."),
            NotResumed::NotEmpty(_) => {
                let next =
                    "Nothing was changed. `farthing channel list` says `closed` once the deposit is back.";
                Self::new(StatusCode::CONFLICT, &error, next)
            }
        }
    }
}

impl From<BuyError> for Failed {
    fn from(error: BuyError) -> Self {
        let problem = problem::Problem::from(&error);
        let mut failed = Self::new(problem.status, &problem.detail, problem.next);
        failed.0.kind = format!("urn:farthing:problem:{}", problem.name);
        failed
    }
}
