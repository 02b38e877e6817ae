//! One stream of events per open page: it says that something changed, and the page fetches itself anew.
//!
//! What changed is not sent: pages are rendered in one place, and a stream says nothing that a page does not.

use std::{convert::Infallible, time::Duration};

use axum::{
    extract::State,
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use farthing_control::{
    Local, endpoint,
    types::{Activity, CatalogPage, CatalogQuery, Figures, Reach, Status},
};
use farthing_protocol::keccak256;
use futures::stream;
use http::StatusCode;

use crate::{ConsoleState, access::Session};

/// Often enough to feel alive; the node answers from memory.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Below the idle limit of a connection.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// A page open for longer connects again, and proves its session by that.
const LOOKS_MAX: u32 = 450;
/// The catalog is counted at every fifth look: that takes longer, and nobody waits for it.
const CATALOG_EVERY: u32 = 5;

pub(super) async fn stream(State(panel): State<ConsoleState>, _: Session) -> Response {
    let Ok(place) = panel.0.live_pages.clone().try_acquire_owned() else {
        // Tells a browser not to ask again.
        return StatusCode::NO_CONTENT.into_response();
    };
    let before = (digest(panel.node()).await, services(panel.node()).await);
    let events =
        stream::unfold((panel, before, place, 0_u32), |(panel, mut before, place, mut looks)| async move {
            loop {
                looks += 1;
                if looks > LOOKS_MAX {
                    return None;
                }
                tokio::select! {
                    () = panel.0.parts.stopping.cancelled() => return None,
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                }
                let known =
                    if looks.is_multiple_of(CATALOG_EVERY) { services(panel.node()).await } else { before.1 };
                let now = (digest(panel.node()).await, known);
                if now != before {
                    before = now;
                    // Browsers pass on no event without data.
                    let event = Ok::<_, Infallible>(Event::default().event("changed").data("now"));
                    return Some((event, (panel, before, place, looks)));
                }
            }
        });
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

/// Everything that pages show live, except for what changes by itself. `None` while the node does not say.
async fn digest(node: &Local) -> Option<[u8; 32]> {
    let mut status: Status = node.ask(endpoint::Status).await.ok()?;
    status.uptime_secs = 0;
    status.chain.head = None;
    status.chain.head_age_secs = None;
    let activity: Activity = node.ask(endpoint::Activity.with("limit", 1)).await.ok()?;
    let mut reach: Reach = node.ask(endpoint::Reached).await.ok()?;
    reach.checked_secs = None;
    // They are counted some seconds after a call.
    let figures: Figures = node.ask(endpoint::Figures).await.ok()?;
    let text = serde_json::to_vec(&(status, activity, reach, figures)).ok()?;
    Some(keccak256(&[&text]))
}

/// Counts the services that are known, and those of them that are online.
async fn services(node: &Local) -> Option<(usize, usize)> {
    let query = CatalogQuery { limit: Some(0), ..CatalogQuery::default() };
    let page: CatalogPage = node.tell(endpoint::CatalogSearch, &query).await.ok()?;
    Some((page.total, page.counts.online))
}
