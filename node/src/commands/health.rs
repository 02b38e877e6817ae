//! Whether others have what this owner offers: asked of them, as a stranger would, when somebody wants to know.

use std::time::Duration;

use axum::{
    Json,
    extract::{Path, State},
};
use farthing_protocol::{
    Address, Hash, ServiceId, Signed,
    info::{InfoRequest, InfoResponse},
    keccak256,
};
use futures::future::join_all;
use url::Url;

use super::Failed;
use crate::{
    clock,
    control::types::{ListingHealth, Text, route},
    node::Node,
    owner::{registry::Registered, upstream::AddressClass},
};

/// As many neighbours say enough about all.
const ASKED_MAX: usize = 16;
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Of those that have the listing, asked for the details.
const DETAILS_ASKED_MAX: usize = 3;
const CONNECT_WITHIN: Duration = Duration::from_secs(3);

/// What one neighbour has of a service.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Has {
    Current,
    Earlier,
    Nothing,
    Silent,
}

#[utoipa::path(
    get,
    path = route::API_HEALTH,
    summary = "Whether others have the listing of my service, and whether my server answers",
    tag = "My services",
    operation_id = "api_health",
    params(("id" = String, Path, description = "UUID of the service")),
    responses((status = 200, description = "Done", body = ListingHealth))
)]
pub(super) async fn health(
    State(node): State<Node>,
    Path(id): Path<Text<ServiceId>>,
) -> Result<Json<ListingHealth>, Failed> {
    let service = node.registry.find(id.0)?;
    let mut peers = node.network.connected_peers().await;
    peers.truncate(ASKED_MAX);
    let asking = join_all(peers.iter().map(|peer| has(&node, &service, *peer)));
    let (answers, upstream) = tokio::join!(asking, upstream(&service));
    let count = |wanted: Has| answers.iter().filter(|has| **has == wanted).count() as u64;
    let holders: Vec<Address> =
        peers.iter().zip(&answers).filter(|(_, has)| **has == Has::Current).map(|(peer, _)| *peer).collect();
    let details_served = served(&node, service.listing().details_hash, &holders).await;
    Ok(Json(ListingHealth {
        asked_secs: clock::now_secs(),
        asked: answers.len() as u64,
        current: count(Has::Current),
        earlier: count(Has::Earlier),
        missing: count(Has::Nothing),
        silent: count(Has::Silent),
        details_served,
        upstream_good: upstream.is_ok(),
        upstream: upstream.unwrap_or_else(|reason| reason),
    }))
}

async fn ask(node: &Node, peer: Address, request: InfoRequest) -> Option<InfoResponse> {
    let asked = tokio::time::timeout(ANSWER_WITHIN, node.network.ask(peer, request)).await;
    asked.ok().and_then(Result::ok)
}

async fn has(node: &Node, service: &Registered, peer: Address) -> Has {
    let own = service.listing();
    let Some(InfoResponse::Listings(listings)) =
        ask(node, peer, InfoRequest::Services(vec![own.service])).await
    else {
        return Has::Silent;
    };
    let theirs = listings.iter().filter(|theirs| is_of(theirs, own.service));
    let is_current = |theirs: &Signed<_>| theirs.content_hash() == own.to_signed().content_hash();
    match theirs.map(is_current).max() {
        Some(true) => Has::Current,
        Some(false) => Has::Earlier,
        None => Has::Nothing,
    }
}

fn is_of(theirs: &Signed<farthing_protocol::Listing>, service: ServiceId) -> bool {
    theirs.claimed().is_ok_and(|listing| listing.service == service)
}

/// Whether one of those who have the listing gives out what it pins.
async fn served(node: &Node, hash: Hash, holders: &[Address]) -> Option<bool> {
    let holders = holders.get(..DETAILS_ASKED_MAX.min(holders.len()))?;
    if holders.is_empty() {
        return None;
    }
    for holder in holders {
        if let Some(InfoResponse::Blob(Some(content))) = ask(node, *holder, InfoRequest::Blob(hash)).await
            && keccak256(&[&content]) == hash
        {
            return Some(true);
        }
    }
    Some(false)
}

/// Whether something listens where the owner's server should be. No request is sent: it might cost the owner.
async fn upstream(service: &Registered) -> Result<String, String> {
    let url = Url::parse(service.upstream_url()).map_err(|error| error.to_string())?;
    let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(80));
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let class = service.upstream().class();
    let connecting = async {
        let found =
            tokio::net::lookup_host((host.as_str(), port)).await.map_err(|error| error.to_string())?;
        let allowed = |address: &std::net::SocketAddr| {
            let own = AddressClass::of(address.ip());
            own.is_some() && (class.is_none() || own == class)
        };
        let addresses: Vec<_> = found.filter(allowed).collect();
        if addresses.is_empty() {
            return Err("its name leads nowhere that may be connected to".to_owned());
        }
        let began = std::time::Instant::now();
        tokio::net::TcpStream::connect(addresses.as_slice()).await.map_err(|error| error.to_string())?;
        Ok(began.elapsed())
    };
    match tokio::time::timeout(CONNECT_WITHIN, connecting).await {
        Ok(Ok(took)) => Ok(format!("takes connections, in {} ms", took.as_millis().max(1))),
        Ok(Err(reason)) => Err(format!("takes no connection: {reason}")),
        Err(_) => Err(format!("takes no connection within {} s", CONNECT_WITHIN.as_secs())),
    }
}
