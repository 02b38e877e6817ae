//! x402 servers that this node buys from: listed, asked for their terms, added, removed.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use farthing_control::types::{NewX402Server, ServiceIdText, X402Question, X402Server, X402Terms};
use farthing_node::{
    foreign::{ForeignServer, ForeignServerError, ForeignTerms},
    handles::Handles,
};

use super::{Failed, Reply};

fn shown(node: &Handles, server: &ForeignServer) -> X402Server {
    X402Server {
        id: server.id.into(),
        url: server.url.to_string(),
        added_secs: server.added_secs,
        max_price: server.max_price.map(Into::into),
        terms: node.foreign.terms(server.id).map(terms),
    }
}

fn terms(heard: ForeignTerms) -> X402Terms {
    let offer = heard.offer;
    X402Terms {
        url: heard.url.into(),
        heard_secs: heard.heard_secs,
        status: heard.status,
        price: offer.as_ref().map(|offer| offer.price.into()),
        pay_to: offer.as_ref().map(|offer| offer.pay_to.into()),
        network: offer.map(|offer| offer.network),
        description: heard.description,
        refused: heard.refused,
    }
}

answer!(X402Servers: list);
async fn list(State(node): State<Handles>) -> Json<Vec<X402Server>> {
    Json(node.foreign.servers().iter().map(|server| shown(&node, server)).collect())
}

answer!(AddX402Server: add);
async fn add(State(node): State<Handles>, Json(new): Json<NewX402Server>) -> Reply<X402Server> {
    let added = node.foreign.add(&new.url, new.max_price.map(|price| price.0)).await?;
    Ok(Json(shown(&node, &added)))
}

answer!(AskX402Server: ask);
async fn ask(State(node): State<Handles>, Json(asked): Json<X402Question>) -> Reply<X402Terms> {
    Ok(Json(terms(node.foreign.ask(&asked.url).await?)))
}

answer!(RemoveX402Server: remove);
async fn remove(State(node): State<Handles>, Path(id): Path<ServiceIdText>) -> Reply<X402Server> {
    let removed = node.foreign.remove(id.0).await?;
    Ok(Json(shown(&node, &removed)))
}

refused!(ForeignServerError {
    ForeignServerError::NotFound => NOT_FOUND,
    ForeignServerError::TooMany => CONFLICT,
    ForeignServerError::Unreachable(_) => BAD_GATEWAY,
    ForeignServerError::NotStored(_) => SERVICE_UNAVAILABLE,
    _ => BAD_REQUEST,
});
