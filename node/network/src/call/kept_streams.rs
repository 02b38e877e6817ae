//! Streams at rest between two calls of this node.
//!
//! A call over one of them needs no word with the task that owns the swarm, and two messages where a new stream needs
//! seven. This node takes none that rests for half as long as owners let it rest
//! ([`stream_rest_max`](crate::NetworkLimits::stream_rest_max)), so that no request is written to an end that is just going
//! by its timer. What has come on a stream at rest, or its end, makes it useless: it is dropped, and nothing was sent.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use farthing_protocol::{Address, limits};
use parking_lot::Mutex;

use super::AskingStream;

/// Streams at rest with one owner. Under load calls end in bursts, and a stream that is dropped then is opened again a
/// moment later.
const OF_ONE_OWNER_MAX: usize = limits::CALLS_PER_PEER_MAX;
/// Of all owners, about 2 KiB each.
const MAX: usize = 256;

/// The streams, by owner.
#[derive(Debug)]
pub(crate) struct KeptStreams {
    taken_within: Duration,
    rest: Mutex<Rest>,
}

#[derive(Debug, Default)]
struct Rest {
    /// The newest come last.
    by_owner: HashMap<Address, Vec<(AskingStream, Instant)>>,
    count: usize,
}

impl KeptStreams {
    /// None of those that have rested for half of `rest_max` is taken.
    pub(crate) fn new(rest_max: Duration) -> Self {
        Self { taken_within: rest_max / 2, rest: Mutex::default() }
    }

    /// The stream with `owner` that was used last, if one can be used.
    pub(crate) fn take(&self, owner: Address, now: Instant) -> Option<AskingStream> {
        let mut rest = self.rest.lock();
        loop {
            let (mut stream, since) = rest.pop(owner)?;
            if now.saturating_duration_since(since) < self.taken_within && stream.line_mut().is_silent() {
                stream.line_mut().wake();
                return Some(stream);
            }
        }
    }

    /// Keeps a stream for the next call if it can carry one. None through a relay is: the next call may find a direct
    /// connection.
    pub(crate) fn keep(&self, owner: Address, mut stream: AskingStream, now: Instant) {
        if !stream.is_at_rest() || stream.line().is_relayed() {
            return;
        }
        stream.line_mut().rest();
        let mut rest = self.rest.lock();
        let Rest { by_owner, count } = &mut *rest;
        let of_owner = by_owner.entry(owner).or_default();
        if *count < MAX && of_owner.len() < OF_ONE_OWNER_MAX {
            of_owner.push((stream, now));
            *count += 1;
        }
    }

    /// Drops all that rest with `owner`.
    pub(crate) fn forget(&self, owner: Address) {
        let mut rest = self.rest.lock();
        let dropped = rest.by_owner.remove(&owner).map_or(0, |streams| streams.len());
        rest.count -= dropped;
    }

    /// Drops what has rested for too long.
    pub(crate) fn sweep(&self, now: Instant) {
        let mut rest = self.rest.lock();
        rest.by_owner.retain(|_, streams| {
            streams.retain(|(_, since)| now.saturating_duration_since(*since) < self.taken_within);
            !streams.is_empty()
        });
        rest.count = rest.by_owner.values().map(Vec::len).sum();
    }
}

impl Rest {
    fn pop(&mut self, owner: Address) -> Option<(AskingStream, Instant)> {
        let popped = self.by_owner.get_mut(&owner)?.pop()?;
        self.count -= 1;
        Some(popped)
    }
}
