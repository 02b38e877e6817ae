//! Commands of the command line and the console, carried out by the running node: the routes of the control socket.
//!
//! Handlers translate between [`types`](farthing_control::types) and the use cases; they decide nothing.

use std::{sync::Arc, time::Instant};

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, FromRef, Path, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use farthing_chain::ChainError;
use farthing_control::{
    endpoint::Commands as Endpoints,
    sentence,
    types::{
        Lookup, LookupRecord, LookupRequest, LookupStep, Peer, PingRequest, Pong, Problem, ProblemName, Reach,
    },
};
use farthing_discovery::documents::WritingFailed;
use farthing_gateway::{Gateway, problem};
use farthing_ledger::LedgerError;
use farthing_network::CallFailure;
use farthing_node::{
    consumer::{BuyError, spending::Grant, trust::NotResumed},
    deployment::DeploymentError,
    handles::Handles,
    secrets::DEFAULT_SECRET,
    settlement::SettlementError,
    transfers::TransferError,
};
use farthing_os::clock;
use farthing_owner::{intake::IntakeError, publish::PublishError, registry::RegistryError};

/// Refusals that are an error of a use case, with its own words and next step: one status for all of its kinds, or one
/// for each.
macro_rules! refused {
    ($error:ty: $status:ident $(saying $undone:literal)?) => {
        impl From<$error> for Failed {
            fn from(error: $error) -> Self {
                Self::new(StatusCode::$status, &error, error.next_step())$(.saying($undone))?
            }
        }
    };
    ($error:ty { $($kind:pat => $status:ident),+ $(,)? } $(saying $undone:literal)?) => {
        impl From<$error> for Failed {
            fn from(error: $error) -> Self {
                let status = match &error {
                    $($kind => StatusCode::$status,)+
                };
                Self::new(status, &error, error.next_step())$(.saying($undone))?
            }
        }
    };
}

/// Says which function answers an endpoint.
macro_rules! answer {
    ($endpoint:ident: $($function:tt)+) => {
        farthing_control::answer!($crate::Commands, $endpoint, $($function)+);
    };
}

mod activity;
mod agent_calls;
mod alerts;
mod approvals;
mod audit;
mod backup;
mod calls;
mod catalog;
mod contract;
mod flagged;
mod foreign;
mod health;
mod history;
mod inspect;
mod logs;
mod money;
mod openapi;
mod petnames;
mod reach;
mod saved;
mod sdk;
mod secrets;
mod services;
pub mod settings;
mod spending;
mod starred;
mod status;
mod traffic;

/// Descriptions with their details can be long; nothing else here is.
const REQUEST_BYTES_MAX: usize = 40 * 1024 * 1024;

/// The endpoints that the node answers.
pub fn router(node: Handles) -> Router {
    Endpoints::router::<Commands>().layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX)).with_state(Commands {
        node,
        counted: activity::CountedFigures::default(),
        meter: traffic::Meter::new(),
    })
}

/// The parts that the handlers work with.
#[derive(Clone)]
struct Commands {
    node: Handles,
    counted: activity::CountedFigures,
    meter: traffic::Meter,
}

macro_rules! handed_out {
    ($($part:ty = $field:ident),+) => {
        $(impl FromRef<Commands> for $part {
            fn from_ref(commands: &Commands) -> Self {
                commands.$field.clone()
            }
        })+
    };
}

handed_out!(Handles = node, activity::CountedFigures = counted, traffic::Meter = meter);

answer!(Call: call);
/// The same call as at port 3000; the socket's permissions stand for the secret.
async fn call(State(node): State<Handles>, headers: HeaderMap, body: Bytes) -> Response {
    let gateway = Gateway::of(&node);
    let grant = Arc::new(Grant::unlimited(DEFAULT_SECRET));
    farthing_gateway::answer(&gateway, grant, &gateway.url, &headers, &body, Instant::now()).await
}

answer!(CallWithSecret: call_with_secret);
/// The same call as at port 3000 with this secret; the socket's permissions stand for its text.
async fn call_with_secret(
    State(node): State<Handles>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Failed> {
    let gateway = Gateway::of(&node);
    let grant = Arc::new(node.secrets.grant_named(&name)?);
    Ok(farthing_gateway::answer(&gateway, grant, &gateway.url, &headers, &body, Instant::now()).await)
}

answer!(Peers: peers);
async fn peers(State(node): State<Handles>) -> Json<Vec<Peer>> {
    let peers = node.network.peers().await;
    Json(
        peers
            .into_iter()
            .map(|peer| Peer {
                wallet: peer.address.into(),
                address: peer.addresses.first().cloned().unwrap_or_default(),
                agent: peer.agent,
                rtt_us: peer.rtt.map(clock::micros),
            })
            .collect(),
    )
}

answer!(Ping: ping);
async fn ping(State(node): State<Handles>, Json(request): Json<PingRequest>) -> Reply<Pong> {
    let wallet = request.wallet.0;
    if wallet == node.wallet {
        let detail = format!("{wallet} is this node's own wallet");
        let next = "Name another node's; `farthing net peers` shows them.";
        return Err(Failed::new(StatusCode::BAD_REQUEST, &detail, next));
    }
    let unreachable = |error: CallFailure| {
        let reason = match error {
            CallFailure::NeverStarted(reason) => reason.to_string(),
            CallFailure::Unknown(reason) => format!("{wallet} is connected but did not answer: {reason}"),
        };
        Failed::new(StatusCode::BAD_GATEWAY, &reason, "`farthing net lookup` shows each step of the look-up.")
    };
    let rtt = node.network.ping(wallet).await.map_err(unreachable)?;
    let peer = node.network.peers().await.into_iter().find(|peer| peer.address == wallet);
    Ok(Json(Pong {
        address: peer.and_then(|peer| peer.addresses.first().cloned()).unwrap_or_default(),
        rtt_us: clock::micros(rtt),
    }))
}

answer!(Lookup: lookup);
async fn lookup(State(node): State<Handles>, Json(request): Json<LookupRequest>) -> Json<Lookup> {
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
                took_us: clock::micros(step.took),
                outcome: step.outcome,
                helped: step.helped,
            })
            .collect(),
    })
}

answer!(Reached: reached);
async fn reached(State(node): State<Handles>) -> Json<Reach> {
    let reachability = node.network.status().borrow().reachability.clone();
    Json(reach::shown(&reachability, clock::now_secs()))
}

answer!(TestReach: test_reach);
async fn test_reach(State(node): State<Handles>) -> Reply<Reach> {
    let tested = node.network.test_reachability().await;
    let reachability =
        tested.map_err(|error| Failed::new(StatusCode::SERVICE_UNAVAILABLE, &error, error.next_step()))?;
    Ok(Json(reach::shown(&reachability, clock::now_secs())))
}

/// The answer of a command: JSON, or a refusal.
type Reply<T> = Result<Json<T>, Failed>;

/// A use case's refusal, as the command line shows it.
struct Failed(Problem);

impl Failed {
    fn new<'a>(status: StatusCode, detail: &impl ToString, next: impl Into<Option<&'a str>>) -> Self {
        let next = next.into().map(sentence).unwrap_or_default();
        Self(Problem::of_status(status, detail.to_string(), &next))
    }

    /// Says what was not done.
    fn saying(mut self, undone: &str) -> Self {
        self.0.undone = Some(undone.to_owned());
        self
    }

    /// Of a command that may have been carried out, or may be yet.
    fn may_have_been_made(detail: &impl ToString, next: &str) -> Self {
        let mut failed = Self::new(StatusCode::GATEWAY_TIMEOUT, detail, next);
        failed.0.kind = ProblemName::MayHaveBeenMade.kind();
        failed
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

refused!(WritingFailed: INTERNAL_SERVER_ERROR);

refused!(LedgerError: SERVICE_UNAVAILABLE);

refused!(PublishError {
    PublishError::Intake(IntakeError::Unreachable { .. }) => BAD_GATEWAY,
    _ => BAD_REQUEST,
} saying "Nothing was published.");

refused!(ChainError {
    ChainError::Unreachable { .. } => BAD_GATEWAY,
    ChainError::Busy { .. } | ChainError::Stopped | ChainError::Journal(_) => SERVICE_UNAVAILABLE,
    ChainError::InsufficientEth { .. } | ChainError::InsufficientUsdc { .. } => PAYMENT_REQUIRED,
    ChainError::Reverted { .. }
    | ChainError::Failed { .. }
    | ChainError::Replaced { .. }
    | ChainError::DeployerMissing { .. } => CONFLICT,
    _ => BAD_REQUEST,
});

refused!(RegistryError {
    RegistryError::NotFound(_) => NOT_FOUND,
    RegistryError::Changed { .. } => CONFLICT,
    RegistryError::Ledger(_) => SERVICE_UNAVAILABLE,
    _ => BAD_REQUEST,
});

refused!(NotResumed {
    NotResumed::Ledger(_) => SERVICE_UNAVAILABLE,
    NotResumed::NoSuchChannel(_) => NOT_FOUND,
    NotResumed::NotStopped(_) | NotResumed::Closing(_) | NotResumed::NotEmpty(_) => CONFLICT,
});

impl From<SettlementError> for Failed {
    fn from(error: SettlementError) -> Self {
        let status = match error {
            SettlementError::Chain(error) => return error.into(),
            SettlementError::Refused { .. } | SettlementError::NotOpen(_) => StatusCode::CONFLICT,
            SettlementError::Policy(_) => StatusCode::INTERNAL_SERVER_ERROR,
            SettlementError::NoSuchChannel(_) => StatusCode::NOT_FOUND,
            SettlementError::NotSponsored { .. } => StatusCode::PAYMENT_REQUIRED,
            SettlementError::NotBrought { ref why, .. }
                if matches!(**why, ChainError::InsufficientEth { .. }) =>
            {
                StatusCode::PAYMENT_REQUIRED
            }
            SettlementError::OwnerBusy { .. }
            | SettlementError::NotBrought { .. }
            | SettlementError::ShuttingDown
            | SettlementError::Ledger(_) => StatusCode::SERVICE_UNAVAILABLE,
            SettlementError::LetGo => return Self::may_have_been_made(&error, error.next_step()),
        };
        Self::new(status, &error, error.next_step())
    }
}

impl From<TransferError> for Failed {
    fn from(error: TransferError) -> Self {
        let next = error.next_step();
        match error {
            TransferError::SetAside(error) => Self::new(StatusCode::PAYMENT_REQUIRED, &error, next.as_str()),
            TransferError::MayHaveBeenMade(error) => Self::may_have_been_made(&error, &next),
            TransferError::NotMade(error) => {
                let mut failed = Self::from(error);
                failed.0.next = Some(sentence(&next));
                failed
            }
        }
    }
}

impl From<DeploymentError> for Failed {
    fn from(error: DeploymentError) -> Self {
        match error {
            DeploymentError::TestEthMissing { .. } => {
                Self::new(StatusCode::PAYMENT_REQUIRED, &error, error.next_step())
            }
            DeploymentError::Chain(error) => error.into(),
        }
    }
}

impl From<BuyError> for Failed {
    fn from(error: BuyError) -> Self {
        let problem = problem::Problem::from(&error);
        let mut failed = Self::new(problem.status, &problem.detail, problem.next);
        failed.0.kind = problem.name.kind();
        failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_that_does_not_answer_is_one_thing_and_the_next_step_another() {
        let (chain, reason) = ("base".to_owned(), "timed out".to_owned());
        let Failed(problem) = ChainError::Unreachable { chain, reason }.into();
        assert_eq!(problem.detail, "no endpoint of base answers: timed out");
        assert!(problem.next.unwrap().starts_with("Check the connection, or set another endpoint"));
    }

    #[test]
    fn a_transfer_that_may_have_been_made_is_told_as_such_and_no_other() {
        let refused = |error: ChainError| {
            let Failed(problem) = TransferError::from(error).into();
            let next = problem.next.clone().unwrap();
            (problem.status, problem.is(ProblemName::MayHaveBeenMade), next)
        };
        let (status, may_be, next) =
            refused(ChainError::UnderWay { what: "the transfer", hashes: Vec::new() });
        assert_eq!((status, may_be), (504, true));
        assert!(next.ends_with("a second transfer costs money again."), "{next}");
        let (status, may_be, next) = refused(ChainError::Stopped);
        assert_eq!((status, may_be), (503, false));
        assert_eq!(next, "Nothing was sent. Repeat it when the node runs again.");
        let (status, may_be, _) = refused(ChainError::Invalid("a transfer of nothing".to_owned()));
        assert_eq!((status, may_be), (400, false));
    }
}
