//! Request bodies: a deadline for their arrival, room for what has arrived, and what is done with those nobody read.
//!
//! A request may be answered before its body was looked at, for instance when its secret is wrong. Over HTTP/2
//! that ends the stream early, and over HTTP/1 the connection, which some clients (curl 7.88) take for a failure
//! and then show nothing. So the rest is read and dropped, within bounds, before the answer goes out.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use farthing_bounds::{ByteBudget, HeldBytes};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use parking_lot::Mutex;
use tokio::time::{Sleep, timeout};

use super::activity::{Activity, Guard};

/// Several times what any request may have, so that whoever sends a little too much is told so. Nothing of it is
/// kept.
const DRAINED_BYTES_MAX: usize = 16 * 1024 * 1024;
const DRAINED_WITHIN: Duration = Duration::from_secs(5);

/// The memory that the body of one request holds, until the request is answered.
#[derive(Clone)]
pub(super) struct Room(Arc<Mutex<HeldBody>>);

struct HeldBody {
    bytes: HeldBytes,
    was_short: bool,
}

impl Room {
    pub(super) fn new(budget: &ByteBudget) -> Self {
        Self(Arc::new(Mutex::new(HeldBody { bytes: budget.nothing(), was_short: false })))
    }

    fn grow(&self, more: usize) -> bool {
        let mut held = self.0.lock();
        let grown = held.bytes.grow(more);
        held.was_short |= !grown;
        grown
    }

    /// Returns whether there was too little for the body, which nobody has read to its end then.
    pub(super) fn was_short(&self) -> bool {
        self.0.lock().was_short
    }
}

/// A request body that must have arrived by a deadline, and finds room.
pub(super) struct TimedBody {
    /// There until dropped.
    inner: Option<Incoming>,
    allowed: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
    activity: Arc<Activity>,
    /// While nothing comes.
    waiting: Option<Guard>,
    room: Room,
    rest: Arc<Mutex<Option<Incoming>>>,
}

/// The part of a [`TimedBody`] that its reader left over.
pub(super) struct Unread(Arc<Mutex<Option<Incoming>>>);

impl TimedBody {
    pub(super) fn new(
        inner: Incoming,
        allowed: Duration,
        activity: &Arc<Activity>,
        room: &Room,
    ) -> (Self, Unread) {
        let rest = Arc::default();
        let unread = Unread(Arc::clone(&rest));
        let activity = Arc::clone(activity);
        let room = room.clone();
        (Self { inner: Some(inner), allowed, deadline: None, activity, waiting: None, room, rest }, unread)
    }
}

impl Drop for TimedBody {
    fn drop(&mut self) {
        let rest = self.inner.take().filter(|inner| !inner.is_end_stream());
        *self.rest.lock() = rest;
    }
}

impl Unread {
    /// Reads the rest; one that is too large or too slow ends with its stream.
    pub(super) async fn drain(self, activity: &Arc<Activity>) {
        let Some(mut rest) = self.0.lock().take() else { return };
        let _waiting = Activity::wait(activity);
        let read = async {
            let mut bytes = 0;
            while let Some(Ok(frame)) = rest.frame().await {
                bytes += frame.data_ref().map_or(0, Bytes::len);
                if bytes > DRAINED_BYTES_MAX {
                    return;
                }
            }
        };
        // Too slow is the same as too large.
        let _ = timeout(DRAINED_WITHIN, read).await;
    }
}

impl Body for TimedBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        let Some(inner) = this.inner.as_mut() else { return Poll::Ready(None) };
        if let Poll::Ready(frame) = Pin::new(inner).poll_frame(context) {
            this.waiting = None;
            this.activity.pass();
            let bytes = match &frame {
                Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
                _ => 0,
            };
            if !this.room.grow(bytes) {
                return Poll::Ready(Some(Err("this node already holds as many bytes as it may".into())));
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        // Most bodies are there at once; the clock is started for those that are not.
        let allowed = this.allowed;
        let deadline = this.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(allowed)));
        if deadline.as_mut().poll(context).is_pending() {
            this.waiting.get_or_insert_with(|| Activity::wait(&this.activity));
            return Poll::Pending;
        }
        this.waiting = None;
        // What did not come in time is not worth waiting for again.
        this.inner = None;
        Poll::Ready(Some(Err("the request's body did not arrive in time".into())))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or_else(SizeHint::default, Body::size_hint)
    }
}
