//! Traffic between this node and others: counted by the network, made a pace here.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{Json, extract::State};
use farthing_control::types::Traffic;
use farthing_node::handles::Handles;
use parking_lot::Mutex;

/// The time that "now" means for a pace.
const WINDOW: Duration = Duration::from_secs(60);
/// Looks closer together than this share a sample.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// Bytes at a moment, since the start.
#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Instant,
    sent: u64,
    received: u64,
}

/// Remembers what was counted at earlier looks. A cheap handle.
#[derive(Clone)]
pub(super) struct Meter(Arc<Mutex<VecDeque<Sample>>>);

impl Meter {
    /// From now on; nothing has travelled yet.
    pub(super) fn new() -> Self {
        let begin = Sample { at: Instant::now(), sent: 0, received: 0 };
        Self(Arc::new(Mutex::new(VecDeque::from([begin]))))
    }

    /// The pace since the latest look that lies a whole window back, or since the earliest.
    fn look(&self, now: Sample) -> Traffic {
        let mut samples = self.0.lock();
        let is_old = |sample: &Sample| now.at.saturating_duration_since(sample.at) >= WINDOW;
        while samples.get(1).is_some_and(is_old) {
            samples.pop_front();
        }
        let first = samples.front().copied().unwrap_or(now);
        let is_due = |last: &Sample| now.at.saturating_duration_since(last.at) >= SAMPLE_EVERY;
        if samples.back().is_none_or(is_due) {
            samples.push_back(now);
        }
        let over = now.at.saturating_duration_since(first.at);
        let pace = |now: u64, then: u64| {
            let millis = u64::try_from(over.as_millis()).unwrap_or(u64::MAX).max(1);
            now.saturating_sub(then).saturating_mul(1_000) / millis
        };
        Traffic {
            sent_bytes: now.sent,
            received_bytes: now.received,
            over_secs: over.as_secs(),
            sent_bytes_per_sec: pace(now.sent, first.sent),
            received_bytes_per_sec: pace(now.received, first.received),
        }
    }
}

answer!(Traffic: traffic);
async fn traffic(State(node): State<Handles>, State(meter): State<Meter>) -> Json<Traffic> {
    let counted = node.network.counters();
    let now = Sample {
        at: Instant::now(),
        sent: counted.stream_bytes_sent,
        received: counted.stream_bytes_received,
    };
    Json(meter.look(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_that_of_the_last_minute_however_often_one_looks() {
        let meter = Meter::new();
        let begin = meter.0.lock()[0].at;
        let look = |secs: u64, sent: u64| {
            meter.look(Sample { at: begin + Duration::from_secs(secs), sent, received: sent / 2 })
        };
        let first = look(10, 1_000);
        assert_eq!((first.over_secs, first.sent_bytes_per_sec, first.received_bytes_per_sec), (10, 100, 50));
        for secs in 11..=100 {
            look(secs, 1_000);
        }
        let quiet = look(101, 1_000);
        assert_eq!((quiet.sent_bytes, quiet.sent_bytes_per_sec), (1_000, 0));
        assert!((60..62).contains(&quiet.over_secs), "{quiet:?}");
        assert!(meter.0.lock().len() < 64, "as many as a minute has seconds");
        assert_eq!(look(3_701, 37_000).sent_bytes_per_sec, 10, "after an hour in which nobody looked");
    }
}
