//! The waits of a first call, on a chain of one's own. Two wallets that have never met: the consumer opens its channel, and the owner has
//! to see the deposit before it serves. Both look at the chain every 100 ms, as in `make demo`.
//!
//! Clocks that pass at once count only what is waited for, so the figure is the same on a busy machine: computing adds to it.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{
    apart,
    blocks::Blocks,
    ground::{Ground, LOCAL},
    in_played_time, lay,
    run::{ConsumerRun, OwnerRun},
};
use crate::{
    disk::Disk,
    halves::state::{State, Usual},
    play::history_of,
};

/// For all that a first call waits for, computing aside.
const WAITS_MAX: Duration = Duration::from_millis(150);
/// Between two looks at the chain.
const LOOKS_EVERY_MS: u64 = 100;
/// Long enough for both nodes to have seen the chain.
const STARTED_WITHIN: Duration = Duration::from_secs(10);
/// A call that has no end by then has none.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

/// Has the first call ordered so long after a look at the chain. The time until its caller has the answer.
async fn first_call(ground: &Ground, after_look: Duration) -> Duration {
    let state = State::new(&history_of(1), 0);
    {
        let mut shared = state.lock();
        shared.has_faults = false;
        shared.usual = Usual { way_ms_max: 1, service_ms: [1, 1], is_service_failing: false };
    }
    let blocks = Blocks::begin(ground, &state);
    blocks.hurry();
    let _owner = OwnerRun::start(ground, &blocks, &state, OwnerRun::first_disk(ground).await).await;
    // Their looks are not at the same moment.
    sleep(after_look).await;
    let mut consumer = ConsumerRun::start(ground, &blocks, &state, 0, Disk::default()).await;
    sleep(STARTED_WITHIN).await;
    let ordered = Instant::now();
    consumer.order(ground, &state, 1);
    loop {
        let told = state.lock().told_of(1);
        if let Some(charged) = told {
            assert!(!charged.is_zero(), "the call is not bought:\n{}", state.log());
            return ordered.elapsed();
        }
        assert!(ordered.elapsed() < ENDS_WITHIN, "the first call has no end:\n{}", state.log());
        sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn a_first_call_waits_less_than_150_ms_at_whatever_moment_its_owner_looks_at_the_chain() {
    let (ground, _kept) = lay(LOCAL, None);
    for millis in (0..LOOKS_EVERY_MS).step_by(5) {
        let after_look = Duration::from_millis(millis);
        let waited = apart(|| in_played_time(first_call(&ground, after_look)));
        assert!(waited < WAITS_MAX, "{} ms, {millis} ms after a look", waited.as_millis());
    }
}
