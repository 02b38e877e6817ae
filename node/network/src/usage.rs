//! Tracks connections in use: by streams of calls, questions, sessions and tests, and by gossip. A connection that
//! does nothing is the first to go when room is needed.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use libp2p::swarm::ConnectionId;
use parking_lot::Mutex;

/// The use that is made of every open connection. A cheap handle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage(Arc<Mutex<HashMap<ConnectionId, Use>>>);

#[derive(Clone, Copy, Debug)]
struct Use {
    streams: usize,
    last: Instant,
}

impl Usage {
    /// A connection begins, which counts as a use of it.
    pub(crate) fn opened(&self, connection: ConnectionId, now: Instant) {
        self.0.lock().insert(connection, Use { streams: 0, last: now });
    }

    pub(crate) fn closed(&self, connection: ConnectionId) {
        self.0.lock().remove(&connection);
    }

    /// Something came over it.
    pub(crate) fn note(&self, connection: ConnectionId, now: Instant) {
        if let Some(used) = self.0.lock().get_mut(&connection) {
            used.last = now;
        }
    }

    /// A stream is open on it until the guard is dropped.
    pub(crate) fn begin(&self, connection: ConnectionId) -> InUse {
        if let Some(used) = self.0.lock().get_mut(&connection) {
            used.streams += 1;
        }
        InUse { usage: self.clone(), connection }
    }

    /// For how long nothing has been done with it; zero while a stream is open.
    pub(crate) fn quiet_for(&self, connection: ConnectionId, now: Instant) -> Duration {
        match self.0.lock().get(&connection) {
            Some(used) if used.streams == 0 => now.saturating_duration_since(used.last),
            _ => Duration::ZERO,
        }
    }
}

/// A stream is open.
#[derive(Debug)]
pub(crate) struct InUse {
    usage: Usage,
    connection: ConnectionId,
}

impl Drop for InUse {
    fn drop(&mut self) {
        if let Some(used) = self.usage.0.lock().get_mut(&self.connection) {
            used.streams = used.streams.saturating_sub(1);
            used.last = Instant::now();
        }
    }
}
