//! One stream of events per open page: it says that something changed, and the page fetches itself anew.
//!
//! What changed is not sent: pages are rendered in one place, and a stream says nothing that a page does not. While nothing
//! changes it says every two seconds that the node is here, so that a page notices a node that is not, even one whose
//! connections stay open; and it ends by saying that the log-in has ended.
//!
//! 1. A page carries the number of changes that were known before it was rendered ([`ConsoleState::changes_count`]). It names this
//!    number when it opens its stream.
//! 2. A stream that opens looks at the node. If the number is another one by then, the stream says at once that something changed.
//!    So a page also shows what changed between its rendering and its stream.
//! 3. Each event carries the newest number. The browser names the last one that it got when it connects again.

use std::{
    convert::Infallible,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use axum::{
    extract::{Query, State},
    response::{IntoResponse, Response, Sse, sse::Event},
};
use farthing_control::{
    Local, endpoint,
    types::{Activity, CallsPage, CatalogPage, CatalogQuery, Figures, Reach, Status},
};
use farthing_protocol::keccak256;
use futures::stream;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use tokio::sync::{Mutex, OwnedSemaphorePermit, watch};

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
/// After so long without a look, the stream assumes a change. A page that was rendered meanwhile may show what came and went.
const LOOK_LASTS: Duration = Duration::from_secs(10);
/// The number of the last event that the browser got.
const LAST_EVENT_ID: &str = "last-event-id";

#[derive(Deserialize)]
pub(super) struct EventsParams {
    /// The number that the page carries.
    since: Option<String>,
}

pub(super) async fn stream(
    State(panel): State<ConsoleState>,
    session: Session,
    Query(asked): Query<EventsParams>,
    headers: HeaderMap,
) -> Response {
    let Ok(place) = panel.0.live_pages.clone().try_acquire_owned() else {
        // Tells a browser not to ask again.
        return StatusCode::NO_CONTENT.into_response();
    };
    let heard = headers.get(LAST_EVENT_ID).and_then(|number| number.to_str().ok());
    let page = OpenPage::of(panel, session.id(), heard.or(asked.since.as_deref()), place).await;
    let events = stream::unfold(page, |mut page| async move {
        let word = page.next().await?;
        // Browsers pass on no event without data.
        let event = Event::default().id(page.told.to_string()).event(word).data("now");
        Some((Ok::<_, Infallible>(event), page))
    });
    Sse::new(events).into_response()
}

/// The state of the node at a look.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    digest: Option<[u8; 32]>,
    services: Option<(usize, usize)>,
}

/// The looks at the node, which all streams share.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    last: Mutex<Option<(Instant, Seen)>>,
    /// Looks that found the node another than the look before.
    changes: AtomicU64,
}

impl Looks {
    /// Counts the changes that looks found.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Looks at the node, and counts a change if it is another than at the last look.
    async fn look(&self, node: &Local, counts_services: bool) {
        let mut last = self.last.lock().await;
        let at = Instant::now();
        let services = match &*last {
            Some((_, seen)) if !counts_services => seen.services,
            _ => services(node).await,
        };
        let now = Seen { digest: digest(node).await, services };
        let is_same = last.as_ref().is_some_and(|(at, seen)| *seen == now && at.elapsed() < LOOK_LASTS);
        if !is_same {
            self.changes.fetch_add(1, Ordering::Release);
        }
        *last = Some((at, now));
    }
}

/// A page that is kept up to date.
struct OpenPage {
    panel: ConsoleState,
    session: SessionId,
    /// The number of changes that the page was told last.
    told: u64,
    /// Of the console's own: calls and sendings of money that ended.
    changes: watch::Receiver<u64>,
    looks: u32,
    _place: OwnedSemaphorePermit,
}

impl OpenPage {
    /// A page that names the number it is up to date with, if it knows one.
    async fn of(
        panel: ConsoleState,
        session: SessionId,
        known: Option<&str>,
        place: OwnedSemaphorePermit,
    ) -> Self {
        let mut changes = panel.changes();
        panel.0.looks.look(panel.node(), true).await;
        let count = panel.changes_count();
        // No page carries 0, so what is no number is told that something changed.
        let told = known.map_or(count, |known| known.parse().unwrap_or(0));
        if told != count {
            changes.mark_changed();
        }
        Self { panel, session, told, changes, looks: 0, _place: place }
    }

    /// Waits for the next event and names it; `None` at the end of the stream.
    async fn next(&mut self) -> Option<&'static str> {
        self.looks += 1;
        if self.looks > LOOKS_MAX {
            return None;
        }
        let stopping = self.panel.0.parts.stopping.clone();
        tokio::select! {
            () = stopping.cancelled() => return None,
            _ = self.changes.changed() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        if !self.panel.access().is_session(self.session) {
            self.looks = LOOKS_MAX;
            return Some("ended");
        }
        let counts_services = self.looks.is_multiple_of(CATALOG_EVERY);
        self.panel.0.looks.look(self.panel.node(), counts_services).await;
        let told = std::mem::replace(&mut self.told, self.panel.changes_count());
        Some(if told != self.told { "changed" } else { "here" })
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
