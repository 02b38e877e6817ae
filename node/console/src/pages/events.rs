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
//!
//! However many pages are open, they share a look that is new enough for all of them: about one in a second.

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
use farthing_os::clock;
use farthing_values::keccak256;
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
/// The catalog is counted at every fifth look of a page: that takes longer, and nobody waits for it.
const COUNT_SHARED: Duration = Duration::from_secs(9);
/// A page whose time has come makes do with another page's look of this age.
const LOOK_SHARED: Duration = Duration::from_secs(1);
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
struct NodeLook {
    digest: Option<[u8; 32]>,
    services: Option<(usize, usize)>,
}

/// A look at the node.
#[derive(Debug)]
struct Look {
    /// Before anything was asked.
    at: Instant,
    /// The same for the services.
    counted_at: Instant,
    seen: NodeLook,
}

/// The greatest ages of what a page makes do with.
#[derive(Debug, Clone, Copy)]
struct LookAge {
    look: Duration,
    count: Duration,
}

impl LookAge {
    /// For a page that opens.
    const NEW: Self = Self { look: Duration::ZERO, count: Duration::ZERO };
    /// Once the console itself has changed something.
    const CHANGED: Self = Self { look: Duration::ZERO, count: COUNT_SHARED };
    /// Every two seconds.
    const REGULAR: Self = Self { look: LOOK_SHARED, count: COUNT_SHARED };
}

/// The looks at the node, which all streams share.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    last: Mutex<Option<Look>>,
    /// Looks that found the node another than the look before.
    changes: AtomicU64,
}

impl Looks {
    /// Counts the changes that looks found.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Looks at the node, and counts a change if it is another than at the last look. A look that another page made meanwhile
    /// does as well, and so does one that is as new as wanted.
    async fn look(&self, node: &Local, wanted: LookAge) {
        let asked_at = Instant::now();
        let is_within = |at: Instant, age: Duration| asked_at.saturating_duration_since(at) <= age;
        let mut last = self.last.lock().await;
        let counted = last.as_ref().filter(|last| is_within(last.counted_at, wanted.count));
        let counted = counted.map(|last| (last.counted_at, last.seen.services));
        if counted.is_some() && last.as_ref().is_some_and(|last| is_within(last.at, wanted.look)) {
            return;
        }
        let at = Instant::now();
        let (counted_at, services) = match counted {
            Some(counted) => counted,
            None => (at, services(node).await),
        };
        let seen = NodeLook { digest: digest(node).await, services };
        let is_same = last.as_ref().is_some_and(|last| last.seen == seen && last.at.elapsed() < LOOK_LASTS);
        if !is_same {
            self.changes.fetch_add(1, Ordering::Release);
        }
        *last = Some(Look { at, counted_at, seen });
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
        panel.0.looks.look(panel.node(), LookAge::NEW).await;
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
        let wanted = tokio::select! {
            () = stopping.cancelled() => return None,
            _ = self.changes.changed() => LookAge::CHANGED,
            () = tokio::time::sleep(LOOK_EVERY) => LookAge::REGULAR,
        };
        if !self.panel.access().is_session(self.session) {
            self.looks = LOOKS_MAX;
            return Some("ended");
        }
        self.panel.0.looks.look(self.panel.node(), wanted).await;
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
    // The ledger knows nothing of a call that was refused. Where a clock was set back, calls of before are dated later than now, and
    // would hide for hours that others came.
    let until_secs = clock::now_secs().saturating_add(1);
    let calls: CallsPage = node.ask(endpoint::Calls.with("limit", 1).with("to", until_secs)).await.ok()?;
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::Router;

    use super::*;

    /// A node that answers nothing and counts what it is asked.
    fn node() -> (Local, Arc<AtomicU64>) {
        let asked = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&asked);
        let refuse = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            async { StatusCode::NOT_FOUND }
        };
        (Local::new(Router::new().fallback(refuse)), asked)
    }

    #[tokio::test]
    async fn open_pages_share_a_look_and_a_page_that_opens_has_one_of_its_own() {
        let (node, asked) = node();
        let looks = Looks::default();
        let requests = async |wanted: &[LookAge]| {
            let before = asked.load(Ordering::Relaxed);
            futures::future::join_all(wanted.iter().map(|wanted| looks.look(&node, *wanted))).await;
            asked.load(Ordering::Relaxed) - before
        };
        let age = async |look: Duration, count: Duration| {
            let mut last = looks.last.lock().await;
            let last = last.as_mut().unwrap();
            let [at, counted_at] = [look, count].map(|age| Instant::now().checked_sub(age).unwrap());
            (last.at, last.counted_at) = (at, counted_at);
        };
        // Of this node's state nothing more is asked once the first answer is none; its services are another question.
        assert_eq!(requests(&[LookAge::NEW]).await, 2);
        assert_eq!(requests(&[LookAge::CHANGED]).await, 1, "the look was before the change");
        assert_eq!(requests(&[LookAge::NEW]).await, 2, "the look was before the page");
        age(LOOK_EVERY, LOOK_EVERY).await;
        assert_eq!(requests(&[LookAge::REGULAR]).await, 1, "the look is too old");
        age(LOOK_EVERY, LOOK_EVERY).await;
        let times = requests(&[LookAge::REGULAR; 99]).await;
        // One, and another one for each second in which this machine does nothing.
        assert!(times <= 9, "99 pages asked {times} times");
        age(LOOK_EVERY, 5 * LOOK_EVERY).await;
        assert_eq!(requests(&[LookAge::REGULAR]).await, 2, "the services were counted long before");
    }

    #[tokio::test]
    async fn a_change_is_counted_once_and_assumed_after_a_pause() {
        let (node, _) = node();
        let looks = Looks::default();
        looks.look(&node, LookAge::NEW).await;
        looks.look(&node, LookAge::NEW).await;
        assert_eq!(looks.changes(), 1, "the first look is one");
        if let Some(last) = &mut *looks.last.lock().await {
            last.at = Instant::now().checked_sub(LOOK_LASTS).unwrap();
        }
        looks.look(&node, LookAge::REGULAR).await;
        assert_eq!(looks.changes(), 2);
    }
}
