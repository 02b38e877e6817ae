//! Watches a connection: is its request head overdue, does nothing move on it, and how soon may it be asked to go?
//!
//! Bytes that arrive over HTTP/1 while no request is being worked on begin a head, which must be complete within `head`.
//! Apart from that, a connection may be silent for `idle` unless a request is being worked on; a reader that
//! takes its answer too slowly is silent as well. Over HTTP/2 only requests and answers are movement: whoever sends
//! pings is silent.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, sleep_until},
};
use tokio_util::{
    io::{InspectReader, InspectWriter},
    sync::CancellationToken,
};

use super::Limits;

/// The activity of one connection, with its time limits.
#[derive(Debug)]
pub(super) struct Activity {
    head: Duration,
    idle: Duration,
    state: Mutex<State>,
    /// Another connection needs its place.
    evicted: CancellationToken,
}

/// So long a new connection of a subscriber makes no room for another one of it: some round trips, for the handshake and the
/// first request.
const ARRIVES_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct State {
    began: Instant,
    is_http2: bool,
    has_asked: bool,
    /// Requests being worked on.
    working: usize,
    /// Those among them whose body has not come.
    waiting: usize,
    /// Answers that are being sent.
    answering: usize,
    /// The time at which the first byte of an incomplete head arrived.
    head_began: Option<Instant>,
    moved: Instant,
}

/// The order in which connections make room for another one: the least first, and of equals the one that was silent for
/// longest. One whose request is being worked on does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// Never asked anything.
    Silent,
    /// Has its answers.
    Idle,
    /// Came a while ago, and has not asked yet: the handshakes of a crowd take long on a busy machine. Behind those that
    /// are idle, because a client that has had an answer connects again, and one whose first connection is cut tells its user.
    Slow,
    /// Is new, and has not asked yet. It makes room for one of another subscriber only.
    Arriving,
    /// Takes its answers.
    Answering,
    /// Sends the bodies of its requests.
    Sending,
}

impl Activity {
    pub(super) fn new(limits: &Limits) -> Arc<Self> {
        let now = Instant::now();
        let state = State {
            began: now,
            is_http2: false,
            has_asked: false,
            working: 0,
            waiting: 0,
            answering: 0,
            head_began: None,
            moved: now,
        };
        let Limits { head, idle, .. } = *limits;
        let evicted = CancellationToken::new();
        Arc::new(Self { head, idle, state: Mutex::new(state), evicted })
    }

    /// Returns the stream, whose movements are noted from now on.
    pub(super) fn watch(self: Arc<Self>, stream: impl AsyncRead + AsyncWrite) -> impl AsyncRead + AsyncWrite {
        let activity = Arc::clone(&self);
        let read = move |bytes: &[u8]| {
            // Empty at the end of the stream.
            if !bytes.is_empty() {
                activity.moved(true);
            }
        };
        InspectWriter::new(InspectReader::new(stream, read), move |_| self.moved(false))
    }

    /// From now on only requests and answers count.
    pub(super) fn speaks_http2(&self) {
        self.update(|state| state.is_http2 = true);
    }

    /// Returns when the connection has to be closed.
    pub(super) async fn expired(&self) {
        let overdue = async {
            loop {
                let deadline = self.deadline();
                if deadline <= Instant::now() {
                    return;
                }
                sleep_until(deadline).await;
            }
        };
        tokio::select! {
            () = overdue => {}
            () = self.evicted() => {}
        }
    }

    /// Returns when another connection needs the place of this one.
    pub(super) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    pub(super) fn evict(&self) {
        self.evicted.cancel();
    }

    /// Returns its standing, and since when nothing moves; `None` while it makes no room.
    pub(super) fn standing(&self, now: Instant) -> Option<(Standing, Instant)> {
        let state = self.state.lock();
        let standing = if state.working > state.waiting {
            return None;
        } else if state.working > 0 {
            Standing::Sending
        } else if state.answering > 0 {
            Standing::Answering
        } else if state.has_asked {
            Standing::Idle
        } else if now.duration_since(state.began) < ARRIVES_WITHIN {
            Standing::Arriving
        } else if now.duration_since(state.began) < self.head {
            Standing::Slow
        } else {
            Standing::Silent
        };
        Some((standing, state.moved))
    }

    /// A request's head is complete; it is being worked on until the guard is dropped.
    pub(super) fn work(activity: &Arc<Self>) -> Guard {
        Guard::new(activity, |state, begins| {
            count(&mut state.working, begins);
            state.has_asked = true;
            state.head_began = None;
        })
    }

    /// The body of a request that is being worked on does not come.
    pub(super) fn wait(activity: &Arc<Self>) -> Guard {
        Guard::new(activity, |state, begins| count(&mut state.waiting, begins))
    }

    /// An answer is being sent.
    pub(super) fn answer(activity: &Arc<Self>) -> Guard {
        Guard::new(activity, |state, begins| count(&mut state.answering, begins))
    }

    /// A part of a request or an answer was passed on.
    pub(super) fn pass(&self) {
        self.update(|_| {});
    }

    fn deadline(&self) -> Instant {
        let state = self.state.lock();
        if state.working > 0 {
            // Handlers and bodies have deadlines of their own; look again later.
            return Instant::now() + self.idle;
        }
        let idle = state.moved + self.idle;
        match state.head_began {
            _ if state.is_http2 => idle,
            Some(began) => idle.min(began + self.head),
            // Looked at often enough to notice a head that begins meanwhile.
            None => idle.min(Instant::now() + self.head),
        }
    }

    /// Bytes came or went.
    fn moved(&self, read: bool) {
        let mut state = self.state.lock();
        if state.is_http2 {
            return;
        }
        state.moved = Instant::now();
        if read && state.working == 0 && state.head_began.is_none() {
            state.head_began = Some(Instant::now());
        }
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        state.moved = Instant::now();
        change(&mut state);
    }
}

const fn count(number: &mut usize, begins: bool) {
    if begins {
        *number += 1;
    } else {
        *number -= 1;
    }
}

/// Something goes on until this is dropped.
#[derive(Debug)]
pub(super) struct Guard {
    activity: Arc<Activity>,
    change: fn(&mut State, bool),
}

impl Guard {
    fn new(activity: &Arc<Activity>, change: fn(&mut State, bool)) -> Self {
        activity.update(|state| change(state, true));
        Self { activity: Arc::clone(activity), change }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.activity.update(|state| (self.change)(state, false));
    }
}
