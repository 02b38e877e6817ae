//! The control socket's routes: each command of the command line, carried out by a use case.
//!
//! Handlers translate between [`types`](super::types) and the use cases; they decide nothing.

use std::time::Instant;

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Path, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{delete, get, post},
};
use bytes::Bytes;
use farthing_chain::{ChainError, ChainKind, ChainStatus as OnChain};
use farthing_ledger::LedgerError;
use farthing_protocol::{
    ChannelId, ServiceId, Usdc,
    call::ChargePolicy,
    listing::{Details, Operation, Parameter, Place, ValueKind},
};

use crate::{
    chain_view, clock,
    consumer::BuyError,
    gateway::{auth::DEFAULT_SECRET, problem},
    node::{Node, gateway_url},
    owner::{
        new_service::NewService,
        registry::{Registered, RegistryError},
    },
    settlement::SettlementError,
};

use super::types::{
    Api, ApiOperation, ApiState, ChainStatus, Channel, ChannelRole, Charge, Check, Doctor, Eth, Health, KindFile,
    OpenRequest, Peer, PingRequest, PlaceFile, Pong, PriceRequest, Problem, Secret, SendAmount, SendRequest, Sent,
    ServiceFile, Settled, Status, Text, WalletBalance, route,
};

/// Descriptions with their details can be long; nothing else here is.
const REQUEST_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The newest calls that a service's figures are taken from.
const CALLS_COUNTED_MAX: usize = 100_000;

/// Every route of the socket.
pub fn router(node: Node) -> Router {
    Router::new()
        .route(route::STATUS, get(status))
        .route(route::HEALTH, get(health))
        .route(route::DOCTOR, get(doctor))
        .route(route::CALL, post(call))
        .route(route::WALLET, get(wallet))
        .route(route::WALLET_SEND, post(send))
        .route(route::APIS, get(apis).post(add_api))
        .route(route::API, delete(remove_api))
        .route(route::API_PRICE, post(price_api))
        .route(route::API_PAUSE, post(pause_api))
        .route(route::API_RESUME, post(resume_api))
        .route(route::CHANNELS, get(channels).post(open_channel))
        .route(route::CHANNEL_CLOSE, post(close_channel))
        .route(route::SETTLE, post(settle))
        .route(route::AUDIT, get(audit))
        .route(route::SECRET, get(secret))
        .route(route::SECRET_ROTATE, post(rotate_secret))
        .route(route::PEERS, get(peers))
        .route(route::PING, post(ping))
        .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
        .with_state(node)
}

/// A use case's refusal, as the command line shows it.
struct Failed(Problem);

impl Failed {
    fn new(status: StatusCode, detail: &impl ToString, next: &str) -> Self {
        Self(Problem {
            kind: "about:blank".to_owned(),
            title: status.canonical_reason().unwrap_or_default().to_owned(),
            status: status.as_u16(),
            detail: detail.to_string(),
            next: Some(next.to_owned()).filter(|next| !next.is_empty()),
            charged: None,
            call_id: None,
        })
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(self.0)).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}

impl From<ChainError> for Failed {
    fn from(error: ChainError) -> Self {
        let status = match &error {
            ChainError::Unreachable { .. } | ChainError::Busy { .. } | ChainError::Stopped => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            ChainError::InsufficientEth { .. } | ChainError::InsufficientUsdc { .. } => {
                StatusCode::PAYMENT_REQUIRED
            }
            _ => StatusCode::BAD_REQUEST,
        };
        Self::new(status, &error, "`farthing doctor` checks wallet and chain.")
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
            RegistryError::NotFound(_) | RegistryError::NoSuchOperation { .. } => StatusCode::NOT_FOUND,
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
            other => Self::new(StatusCode::BAD_REQUEST, &other, ""),
        }
    }
}

impl From<BuyError> for Failed {
    fn from(error: BuyError) -> Self {
        let problem = problem::Problem::from(&error);
        Self::new(problem.status, &problem.detail, problem.next)
    }
}

async fn status(State(node): State<Node>) -> Json<Status> {
    let network = node.network.status().borrow().clone();
    let spec = node.chain.spec();
    let head = *node.chain.head().borrow();
    let gateway = &node.config.gateway;
    let tls = gateway.tls != crate::config::TlsMode::Off;
    let mut alerts = node.readiness.waiting_for();
    if node.config.network.bootstrap.is_empty() && network.peers == 0 {
        alerts.push("network: no peers and no `network.bootstrap`; name a node to join through".to_owned());
    }
    Json(Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_secs: clock::now_secs().saturating_sub(node.started_secs),
        address: node.wallet.into(),
        peer_id: node.peer_id.clone(),
        addresses: if network.external.is_empty() { network.listening } else { network.external },
        gateway_url: gateway_url(gateway.listen, tls),
        network: node.network_name.clone(),
        chain: ChainStatus {
            name: spec.name.clone(),
            chain_id: spec.chain_id,
            testnet: spec.kind != ChainKind::Mainnet,
            head: head.map(|head| head.number),
            head_age_secs: head.map(|head| head.seen_at.elapsed().as_secs()),
            problem: chain_view::ready(&node.chain).err(),
        },
        balance: balance(&node),
        peers: network.peers as u64,
        services: node.registry.all().len() as u64,
        spending: node.config.spending.enabled && node.ledger.closed().is_none(),
        spent_today: node.consumer.spent_today().into(),
        alerts,
    })
}

async fn health(State(node): State<Node>) -> Response {
    let waiting_for = node.readiness.waiting_for();
    let ready = waiting_for.is_empty();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(Health { ready, waiting_for })).into_response()
}

async fn doctor(State(node): State<Node>) -> Json<Doctor> {
    let check = |name: &str, result: Result<String, (String, &str)>| match result {
        Ok(detail) => Check { name: name.to_owned(), good: true, detail, next: None },
        Err((detail, next)) => {
            Check { name: name.to_owned(), good: false, detail, next: Some(next.to_owned()) }
        }
    };
    let spec = node.chain.spec();
    let balances = *node.chain.balances().borrow();
    let network = node.network.status().borrow().clone();
    let chain = match &*node.chain.status().borrow() {
        OnChain::Ready => Ok(format!("{} answers and its contracts are the right ones", spec.name)),
        OnChain::ContractMissing { contract } => Err((
            format!("the channel contract {contract} is not deployed on {}", spec.name),
            "on a chain of your own, `farthing testnet up` deploys it",
        )),
        _ => Err((
            chain_view::ready(&node.chain).err().unwrap_or_default(),
            "name a reachable endpoint in `chain.rpc_urls`",
        )),
    };
    let audit = full_audit(&node).await;
    Json(Doctor {
        checks: vec![
            check("ledger", match (node.ledger.closed(), &audit) {
                (Some(closed), _) => Err((closed.to_string(), "free disk space, then restart the node")),
                (None, Err(error)) => Err((error.to_string(), "restore a backup of the data folder")),
                (None, Ok(audit)) if audit.violations_total > 0 => Err((
                    format!("{} invariants are violated", audit.violations_total),
                    "keep the data folder as it is and see docs/ledger.md",
                )),
                (None, Ok(audit)) => {
                    Ok(format!("the books add up ({} calls served, {} bought)", audit.calls, audit.purchases))
                }
            }),
            check("chain", chain),
            check("wallet", match balances {
                None => Err(("the balance is not known yet".to_owned(), "wait for the chain")),
                Some(b) if b.usdc.is_zero() || b.eth_wei == 0 => Err((
                    format!("{} holds {} USDC and {} ETH", node.wallet, b.usdc, Eth { wei: b.eth_wei }),
                    "send USDC and a little ETH for gas to it to buy calls; selling needs ETH for claims only",
                )),
                Some(b) => Ok(format!("{} holds {} USDC and {} ETH", node.wallet, b.usdc, Eth { wei: b.eth_wei })),
            }),
            check("network", if network.peers > 0 {
                Ok(format!("{} peers; listening on {}", network.peers, network.listening.join(", ")))
            } else {
                Err(("no peers are connected".to_owned(), "name a node in `network.bootstrap`, and forward port 3001 to this machine if it is to be found from outside"))
            }),
        ],
    })
}

/// The same call as at port 3000; the socket's permissions stand for the secret.
async fn call(State(node): State<Node>, headers: HeaderMap, body: Bytes) -> Response {
    crate::gateway::answer(&node.consumer, DEFAULT_SECRET, &headers, &body, Instant::now()).await
}

fn balance(node: &Node) -> WalletBalance {
    let balances = *node.chain.balances().borrow();
    let sum = |amounts: Vec<Usdc>| amounts.into_iter().fold(Usdc::ZERO, Usdc::saturating_add);
    WalletBalance {
        address: node.wallet.into(),
        usdc: balances.map(|balances| balances.usdc.into()),
        eth: balances.map(|balances| Eth { wei: balances.eth_wei }.into()),
        in_channels: sum(
            node.channels
                .all()
                .iter()
                .map(|channel| channel.state.deposited.saturating_sub(channel.state.acknowledged))
                .collect(),
        )
        .into(),
        unclaimed: sum(node.book.all().iter().map(|(_, channel)| channel.state.unclaimed()).collect()).into(),
    }
}

async fn wallet(State(node): State<Node>) -> Json<WalletBalance> {
    Json(balance(&node))
}

async fn send(State(node): State<Node>, Json(request): Json<SendRequest>) -> Result<Json<Sent>, Failed> {
    let outcome = match request.amount {
        SendAmount::Usdc(Text(amount)) => node.chain.send_usdc(request.to.0, amount).await?,
        SendAmount::Eth(Text(Eth { wei })) => node.chain.send_eth(request.to.0, wei).await?,
    };
    Ok(Json(Sent {
        transaction: outcome.tx_hash.map(|hash| hash.to_string()).unwrap_or_default(),
        block: outcome.tx_hash.map(|_| outcome.block),
    }))
}

async fn apis(State(node): State<Node>) -> Result<Json<Vec<Api>>, Failed> {
    node.registry.all().iter().map(|service| api(&node, service)).collect::<Result<_, _>>().map(Json)
}

async fn add_api(State(node): State<Node>, Json(file): Json<ServiceFile>) -> Result<Json<Api>, Failed> {
    let service = node.registry.add(new_service(file)).await?;
    node.publish().await;
    api(&node, &service).map(Json)
}

async fn remove_api(State(node): State<Node>, Path(id): Path<Text<ServiceId>>) -> Result<Json<Api>, Failed> {
    let service = node.registry.get(id.0).ok_or(RegistryError::NotFound(id.0))?;
    let mut last = api(&node, &service)?;
    node.registry.remove(id.0).await?;
    node.publish().await;
    last.state = ApiState::Removed;
    Ok(Json(last))
}

async fn price_api(
    State(node): State<Node>,
    Path(id): Path<Text<ServiceId>>,
    Json(request): Json<PriceRequest>,
) -> Result<Json<Api>, Failed> {
    let operation = request.operation.map(|operation| (operation.method.0, operation.path));
    let service = node.registry.set_price(id.0, operation, request.price.0).await?;
    node.publish().await;
    api(&node, &service).map(Json)
}

async fn pause_api(State(node): State<Node>, Path(id): Path<Text<ServiceId>>) -> Result<Json<Api>, Failed> {
    set_paused(&node, id.0, true).await
}

async fn resume_api(State(node): State<Node>, Path(id): Path<Text<ServiceId>>) -> Result<Json<Api>, Failed> {
    set_paused(&node, id.0, false).await
}

async fn set_paused(node: &Node, id: ServiceId, paused: bool) -> Result<Json<Api>, Failed> {
    let service = node.registry.set_paused(id, paused).await?;
    node.publish().await;
    api(node, &service).map(Json)
}

fn api(node: &Node, service: &Registered) -> Result<Api, Failed> {
    let listing = service.listing();
    let served = node.ledger.served_calls(CALLS_COUNTED_MAX)?;
    let served = served.iter().filter(|row| row.call.service == listing.service && !row.call.charged.is_zero());
    Ok(Api {
        id: listing.service.into(),
        name: listing.name.clone(),
        state: if listing.paused { ApiState::Paused } else { ApiState::Published },
        upstream: service.upstream_url().to_owned(),
        upstream_class: service.upstream().class().map_or_else(|| "not resolved yet".to_owned(), |class| class.to_string()),
        price: listing.price.into(),
        listing_version: listing.seq,
        operations: service
            .known()
            .details()
            .operations
            .iter()
            .map(|operation| ApiOperation {
                method: operation.method.into(),
                path: operation.path.clone(),
                price: listing.price_of(operation).into(),
            })
            .collect(),
        calls: served.clone().count() as u64,
        earned: served.fold(Usdc::ZERO, |sum, row| sum.saturating_add(row.call.charged)).into(),
    })
}

fn new_service(file: ServiceFile) -> NewService {
    let operations = file
        .operations
        .into_iter()
        .map(|operation| Operation {
            method: operation.method.0,
            path: operation.path,
            summary: operation.summary,
            price: operation.price.map(|price| price.0),
            parameters: operation
                .parameters
                .into_iter()
                .map(|parameter| Parameter {
                    name: parameter.name,
                    place: match parameter.place {
                        PlaceFile::Query => Place::Query,
                        PlaceFile::Path => Place::Path,
                        PlaceFile::Header => Place::Header,
                    },
                    kind: match parameter.kind {
                        KindFile::Text => ValueKind::Text,
                        KindFile::Integer => ValueKind::Integer,
                        KindFile::Number => ValueKind::Number,
                        KindFile::Boolean => ValueKind::Boolean,
                    },
                    required: parameter.required,
                    choices: parameter.choices,
                    description: parameter.description,
                })
                .collect(),
            body: operation.body,
            any_params: operation.any_params,
        })
        .collect();
    NewService {
        id: file.id.map(|id| id.0),
        name: file.name,
        summary: file.summary,
        category: file.category,
        tags: file.tags,
        upstream: file.upstream,
        upstream_headers: file.upstream_headers,
        price: file.price.0,
        charge_policy: match file.charge {
            Charge::Success => ChargePolicy::Success,
            Charge::Answered => ChargePolicy::Answered,
        },
        details: Details { description: file.description, operations },
    }
}

async fn channels(State(node): State<Node>) -> Json<Vec<Channel>> {
    Json(all_channels(&node))
}

fn all_channels(node: &Node) -> Vec<Channel> {
    let payer = node.channels.all().into_iter().map(|channel| Channel {
        id: channel.id.into(),
        role: ChannelRole::Payer,
        peer: channel.config.payee.into(),
        state: match channel.close_at_secs {
            _ if channel.state.deposited <= channel.claimed => "closed".to_owned(),
            Some(at) => format!("closing: can be withdrawn in {} s", at.saturating_sub(clock::now_secs())),
            None if channel.state.stopped => "stopped: the owner's books do not match".to_owned(),
            None => "open".to_owned(),
        },
        deposited: channel.state.deposited.into(),
        spent: channel.state.acknowledged.into(),
        signed: channel.state.signed.into(),
        claimed: channel.claimed.into(),
    });
    let payee = node.book.all().into_iter().map(|(id, channel)| Channel {
        id: id.into(),
        role: ChannelRole::Payee,
        peer: channel.config.payer.into(),
        state: if channel.state.deposited <= channel.state.claimed {
            "closed".to_owned()
        } else if channel.state.closing {
            "closing".to_owned()
        } else {
            "open".to_owned()
        },
        deposited: channel.state.deposited.into(),
        spent: channel.state.spent.into(),
        signed: channel.state.best.into(),
        claimed: channel.state.claimed.into(),
    });
    let mut all: Vec<Channel> = payer.chain(payee).collect();
    all.sort_by_key(|channel| (channel.peer.0, channel.id.0));
    all
}

fn channel(node: &Node, id: ChannelId) -> Result<Json<Channel>, Failed> {
    let found = all_channels(node).into_iter().find(|channel| channel.id.0 == id);
    found.map(Json).ok_or_else(|| SettlementError::NoSuchChannel(id).into())
}

async fn open_channel(
    State(node): State<Node>,
    Json(request): Json<OpenRequest>,
) -> Result<Json<Channel>, Failed> {
    let service = node.catalog.service(request.service.0).await.map_err(BuyError::from)?;
    let listing = service.listing();
    let accept = node.consumer.choose(&listing.accepts, listing.owner)?;
    match request.deposit {
        Some(amount) => node.funding.deposit_now(accept, amount.0).await?,
        None => node.funding.ensure(accept, listing.price).await?,
    }
    let opened = node.channels.get(listing.owner).ok_or(SettlementError::NoSuchChannel(ChannelId::NONE))?;
    channel(&node, opened.id)
}

async fn close_channel(
    State(node): State<Node>,
    Path(id): Path<Text<ChannelId>>,
) -> Result<Json<Channel>, Failed> {
    let mine = node.channels.all().into_iter().find(|channel| channel.id == id.0);
    match mine {
        Some(mine) => {
            node.settlement.close_as_payer(mine.config.payee).await?;
        }
        None if node.book.get(id.0).is_some() => node.settlement.close_as_payee(id.0).await?,
        None => return Err(SettlementError::NoSuchChannel(id.0).into()),
    }
    channel(&node, id.0)
}

async fn settle(State(node): State<Node>) -> Result<Json<Settled>, Failed> {
    let claimed = node.settlement.claim().await?;
    Ok(Json(Settled {
        claimed: claimed.amount.into(),
        channels: claimed.channels as u64,
        transactions: claimed
            .transactions
            .iter()
            .filter_map(|report| report.tx_hash.map(|hash| hash.to_string()))
            .collect(),
    }))
}

/// Reads the whole ledger, so it runs where it may take its time.
async fn full_audit(node: &Node) -> Result<farthing_ledger::Audit, LedgerError> {
    let ledger = node.ledger.clone();
    match tokio::task::spawn_blocking(move || ledger.audit()).await {
        Ok(audit) => audit,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

/// Every invariant of the ledger, checked now.
async fn audit(State(node): State<Node>) -> Result<Json<super::types::Audit>, Failed> {
    let audit = full_audit(&node).await?;
    Ok(Json(super::types::Audit {
        calls_served: audit.calls,
        calls_bought: audit.purchases,
        calls_undecided: audit.promises,
        violations: audit
            .violations
            .iter()
            .map(|violation| format!("{} {}: {}", violation.invariant, violation.subject, violation.detail))
            .collect(),
    }))
}

async fn secret(State(node): State<Node>) -> Json<Secret> {
    Json(Secret { secret: node.secrets.current().expose().to_owned() })
}

async fn rotate_secret(State(node): State<Node>) -> Result<Json<Secret>, Failed> {
    let fresh = node.secrets.rotate().map_err(|error| {
        Failed::new(StatusCode::INTERNAL_SERVER_ERROR, &error, "The old secret stays valid.")
    })?;
    Ok(Json(Secret { secret: fresh.expose().to_owned() }))
}

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

async fn ping(State(node): State<Node>, Json(request): Json<PingRequest>) -> Result<Json<Pong>, Failed> {
    let wallet = request.wallet.0;
    let unreachable = |error: farthing_network::CallFailure| {
        Failed::new(StatusCode::BAD_GATEWAY, &error, "`farthing net peers` shows who is connected.")
    };
    let rtt = node.network.ping(wallet).await.map_err(unreachable)?;
    let peer = node.network.peers().await.into_iter().find(|peer| peer.address == wallet);
    Ok(Json(Pong {
        address: peer.and_then(|peer| peer.addresses.first().cloned()).unwrap_or_default(),
        rtt_us: u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX),
    }))
}
