//! One stream of events per open page: it says that something changed, and the page fetches itself anew.
//!
//! What changed is not sent: pages are rendered in one place, and a stream says nothing that a page does not. While nothing
//! changes it says every two seconds that the node is here, so that a page notices a node that is not, even one whose
//! connections stay open; and it ends by saying that the log-in has ended.

use std::{convert::Infallible, time::Duration};

use axum::{
    extract::State,
    response::{IntoResponse, Response, Sse, sse::Event},
};
use farthing_control::{
    Local, endpoint,
    types::{Activity, CallsPage, CatalogPage, CatalogQuery, Figures, Reach, Status},
};
use farthing_protocol::keccak256;
use futures::stream;
use http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::{
    ConsoleState,
    access::{Session, SessionId},
};

/// Often enough to feel alive; the node answers from memory. Pages miss a node that said nothing for 5 s.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// A page open for longer connects again, and proves its session by that.
const LOOKS_MAX: u32 = 450;
/// The catalog is counted at every fifth look: that takes longer, and nobody waits for it.
const CATALOG_EVERY: u32 = 5;

pub(super) async fn stream(State(panel): State<ConsoleState>, session: Session) -> Response {
    let Ok(place) = panel.0.live_pages.clone().try_acquire_owned() else {
        // Tells a browser not to ask again.
        return StatusCode::NO_CONTENT.into_response();
    };
    let seen = Seen { digest: digest(panel.node()).await, services: services(panel.node()).await };
    let changes = panel.changes();
    let page = OpenPage { panel, session: session.id(), seen, changes, looks: 0, _place: place };
    let events = stream::unfold(page, |mut page| async move {
        let word = page.next().await?;
        // Browsers pass on no event without data.
        let event = Ok::<_, Infallible>(Event::default().event(word).data("now"));
        Some((event, page))
    });
    Sse::new(events).into_response()
}

/// The state of the node as it was told last.
#[derive(PartialEq, Eq)]
struct Seen {
    digest: Option<[u8; 32]>,
    services: Option<(usize, usize)>,
}

/// A page that is kept up to date.
struct OpenPage {
    panel: ConsoleState,
    session: SessionId,
    seen: Seen,
    /// Of the console's own: calls and sendings of money that ended.
    changes: watch::Receiver<u64>,
    looks: u32,
    _place: OwnedSemaphorePermit,
}

impl OpenPage {
    /// Waits for the next event and names it; `None` at the end of the stream.
    async fn next(&mut self) -> Option<&'static str> {
        self.looks += 1;
        if self.looks > LOOKS_MAX {
            return None;
        }
        let stopping = self.panel.0.parts.stopping.clone();
        let is_own = tokio::select! {
            () = stopping.cancelled() => return None,
            changed = self.changes.changed() => changed.is_ok(),
            () = tokio::time::sleep(LOOK_EVERY) => false,
        };
        if !self.panel.access().is_session(self.session) {
            self.looks = LOOKS_MAX;
            return Some("ended");
        }
        let is_other = self.looks_different().await;
        Some(if is_own || is_other { "changed" } else { "here" })
    }

    /// Looks at the node, and tells whether it is another than before.
    async fn looks_different(&mut self) -> bool {
        let node = self.panel.node();
        let services =
            if self.looks.is_multiple_of(CATALOG_EVERY) { services(node).await } else { self.seen.services };
        let now = Seen { digest: digest(node).await, services };
        let is_other = now != self.seen;
        self.seen = now;
        is_other
    }
}

/// Everything that pages show live, except for what changes by itself. `None` while the node does not say.
async fn digest(node: &Local) -> Option<[u8; 32]> {
    let mut status: Status = node.ask(endpoint::Status).await.ok()?;
    status.uptime_secs = 0;
    status.chain.head = None;
    status.chain.head_age_secs = None;
    let activity: Activity = node.ask(endpoint::Activity.with("limit", 1)).await.ok()?;
    // The ledger knows nothing of a call that was refused.
    let calls: CallsPage = node.ask(endpoint::Calls.with("limit", 1)).await.ok()?;
    let mut reach: Reach = node.ask(endpoint::Reached).await.ok()?;
    reach.checked_secs = None;
    // They are counted some seconds after a call.
    let figures: Figures = node.ask(endpoint::Figures).await.ok()?;
    let text = serde_json::to_vec(&(status, activity, calls, reach, figures)).ok()?;
    Some(keccak256(&[&text]))
}

/// Counts the services that are known, and those of them that are online.
async fn services(node: &Local) -> Option<(usize, usize)> {
    let query = CatalogQuery { limit: Some(0), ..CatalogQuery::default() };
    let page: CatalogPage = node.tell(endpoint::CatalogSearch, &query).await.ok()?;
    Some((page.total, page.counts.online))
}
