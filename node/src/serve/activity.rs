//! Watches a connection: is its request head overdue, or does nothing move on it?
//!
//! Bytes that arrive while no request is being worked on begin a head, which must be complete within `head`.
//! Apart from that, a connection may be silent for `idle` unless a request is being worked on; a reader that
//! takes its answer too slowly is silent as well.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, sleep_until},
};

/// What is known of one connection.
#[derive(Debug)]
pub(super) struct Activity {
    head: Option<Duration>,
    idle: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Requests being worked on.
    working: usize,
    /// When the first byte of an incomplete head arrived.
    head_began: Option<Instant>,
    moved: Instant,
}

impl Activity {
    pub(super) fn new(head: Option<Duration>, idle: Duration) -> Arc<Self> {
        let state = State { working: 0, head_began: None, moved: Instant::now() };
        Arc::new(Self { head, idle, state: Mutex::new(state) })
    }

    /// Returns when the connection has to be closed.
    pub(super) async fn expired(&self) {
        loop {
            let deadline = self.deadline();
            if deadline <= Instant::now() {
                return;
            }
            sleep_until(deadline).await;
        }
    }

    /// A request's head is complete; it is being worked on until the guard is dropped.
    pub(super) fn work(activity: &Arc<Self>) -> Working {
        activity.update(|state| {
            state.working += 1;
            state.head_began = None;
        });
        Working(Arc::clone(activity))
    }

    fn deadline(&self) -> Instant {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.working > 0 {
            // Handlers and bodies have deadlines of their own; look again later.
            return Instant::now() + self.idle;
        }
        let idle = state.moved + self.idle;
        match (self.head, state.head_began) {
            (Some(head), Some(began)) => idle.min(began + head),
            // Looked at often enough to notice a head that begins meanwhile.
            (Some(head), None) => idle.min(Instant::now() + head),
            (None, _) => idle,
        }
    }

    fn moved(&self, read: bool) {
        self.update(|state| {
            if read && state.working == 0 && state.head_began.is_none() {
                state.head_began = Some(Instant::now());
            }
        });
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.moved = Instant::now();
        change(&mut state);
    }
}

/// A request is being worked on.
#[derive(Debug)]
pub(super) struct Working(Arc<Activity>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.update(|state| state.working -= 1);
    }
}

/// A stream whose movements are noted.
#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    activity: Arc<Activity>,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self { stream, activity }
    }

    fn noted(&self, read: bool, moved: bool) {
        if moved {
            self.activity.moved(read);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.noted(true, buffer.filled().len() > before);
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.noted(false, matches!(result, Poll::Ready(Ok(1..))));
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.noted(false, matches!(result, Poll::Ready(Ok(1..))));
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
