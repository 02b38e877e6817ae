//! What nodes send while nobody wants anything of them.

use std::time::{Duration, Instant};

use anyhow::Result;
use farthing_tests::report::{print_promise, resident_mib, rounded};
use serde::Serialize;

use super::population::Member;

/// What an idle node sends and receives in a second, at most.
pub(super) const BYTES_PER_SECOND_MAX: f64 = 2_000.0;

/// Traffic and memory of an average node. Bytes are those of the connection itself, with security and framing.
#[derive(Debug, Clone, Serialize)]
pub struct Idle {
    pub kind: String,
    pub nodes: usize,
    /// Connected peers of an average node.
    pub peers: f64,
    pub measured_secs: f64,
    pub sent_bytes_per_second: f64,
    pub sent_and_received_bytes_per_second: f64,
    /// Extrapolated from the measured time.
    pub messages_per_hour: f64,
    /// Extrapolated from the measured time.
    pub sent_kib_per_hour: f64,
    /// What the process has gained since before the first of them, over their number: too little where an earlier network
    /// left room.
    pub memory_mib_per_node: f64,
}

impl Idle {
    /// Says whether the node is as quiet as it has to be.
    pub fn print_promise(&self) {
        let found = self.sent_and_received_bytes_per_second;
        let promise = format!(
            "an idle node of {} sends and receives at most {BYTES_PER_SECOND_MAX} B/s ({found} B/s)",
            self.nodes
        );
        print_promise(promise, found <= BYTES_PER_SECOND_MAX);
    }
}

/// Watches `members`, which are of this kind, for `duration`. The process had `before_mib` before the first of them.
pub async fn idle(kind: &str, members: &[Member], duration: Duration, before_mib: u64) -> Result<Idle> {
    anyhow::ensure!(!members.is_empty(), "nobody to watch");
    let (before, started) = (sum(members), Instant::now());
    tokio::time::sleep(duration).await;
    let (after, seconds) = (sum(members), started.elapsed().as_secs_f64());
    let rate = |before: u64, after: u64| count(after - before) / seconds / count(members.len() as u64);
    let sent = rate(before.sent, after.sent);
    Ok(Idle {
        kind: kind.to_owned(),
        nodes: members.len(),
        peers: rounded(peers(members)),
        measured_secs: rounded(seconds),
        sent_bytes_per_second: rounded(sent),
        sent_and_received_bytes_per_second: rounded(sent + rate(before.received, after.received)),
        messages_per_hour: rounded(rate(before.messages, after.messages) * 3600.0),
        sent_kib_per_hour: rounded(sent * 3600.0 / 1024.0),
        memory_mib_per_node: rounded(
            count(resident_mib()?.saturating_sub(before_mib)) / count(members.len() as u64),
        ),
    })
}

/// Connected peers of an average node.
pub fn peers(members: &[Member]) -> f64 {
    let peers = members.iter().map(|member| member.handle.status().borrow().peers as u64).sum();
    count(peers) / count(members.len().max(1) as u64)
}

#[derive(Default)]
struct Sum {
    messages: u64,
    sent: u64,
    received: u64,
}

fn sum(members: &[Member]) -> Sum {
    members.iter().map(|member| member.handle.counters()).fold(Sum::default(), |sum, of_one| Sum {
        messages: sum.messages + of_one.memory_messages_sent,
        sent: sum.sent + of_one.memory_bytes_sent,
        received: sum.received + of_one.memory_bytes_received,
    })
}

/// A count as a number to divide with; counts here stay far below 2^52.
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
pub const fn count(number: u64) -> f64 {
    number as f64
}
