//! Two whole nodes' halves over a line and a chain that are played: each has its half that buys, its half that sells and the settlement
//! between them, as a node starts them, with the chain's real watcher and writer, on one thread whose clock passes at once.
//!
//! What is played here: the network (`halves/line.rs`), the service (`halves/state.rs`), the chain and its endpoints
//! (`settled/blocks.rs`), the wall clock, who orders what, and when a node dies: between two steps of its tasks or in the middle of a
//! commit, with what its disk has by then and with its transactions under way. Nothing is given: the consumer opens its channel by a
//! transaction, the owner finds it and claims on it, and either closes it.
//!
//! In histories of their own, one side's wallet sends transactions behind its node's back (`settled/hostile.rs`).
//!
//! A history is a string of bytes, as in all simulations of this program (`choices.rs`).
//! `FARTHING_SEED=17 cargo test -p farthing-node --test simulation settled::both` plays one and tells its steps.

mod blocks;
mod first_call;
mod ground;
mod history;
mod hostile;
mod judge;
mod patience;
mod run;

use std::{
    panic::{AssertUnwindSafe, resume_unwind},
    thread,
};

use farthing_os::clock;
use farthing_shared::blocking::play_on_this_thread;
use futures::FutureExt;
use tokio::{runtime::Builder, time::Instant};

use self::{
    ground::{BEGAN, Ground, Kept, PUBLIC, UNLIMITED},
    history::{History, STEPS},
};
use crate::{
    halves::{hostile::Side, state::State},
    play::{Attempted, Played, Simulation, history_of},
};

/// Histories of each run.
const HISTORIES: u64 = 60;
/// To shorten one that fails; each takes some tenths of a second.
const TRIES: usize = 60;

/// Does something on a thread of its own, whose clocks nobody reads afterwards.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let done = thread::scope(|scope| scope.spawn(work).join());
    done.unwrap_or_else(|panic| resume_unwind(panic))
}

fn lay(settings: &[&str], timeout_secs: Option<u16>) -> (Ground, Kept) {
    apart(|| {
        clock::play_on_this_thread(|| BEGAN);
        Ground::lay(settings, timeout_secs)
    })
}

/// Does something while the clocks of this thread pass at once. They are played from then on.
fn in_played_time<T>(work: impl Future<Output = T>) -> T {
    play_on_this_thread();
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let began = Instant::now();
        clock::play_on_this_thread(move || BEGAN + began.elapsed());
        work.await
    })
}

/// Plays one history of two honest sides to its rest. The clocks of this thread are played from then on.
fn attempt(ground: &Ground, history: &[u8]) -> Attempted {
    attempt_against(ground, history, None)
}

/// Plays one history, in which a side may break the rules on the chain, to its rest.
fn attempt_against(ground: &Ground, history: &[u8], hostile: Option<Side>) -> Attempted {
    in_played_time(async {
        let state = State::new(history, STEPS);
        let played = async { History::begin(ground, &state, hostile).await.play().await };
        let charged = AssertUnwindSafe(played).catch_unwind().await;
        let Ok(charged) = charged else { return Err(state.failed()) };
        let made = state.lock().choices.made();
        Ok(Played { charged: charged.micros(), commits_cut: 0, made, log: state.log() })
    })
}

#[test]
fn both_nodes_leave_with_what_is_theirs_whatever_network_chain_and_deaths_do() {
    let (ground, _kept) = lay(&[PUBLIC, UNLIMITED].concat(), None);
    let attempt = |history: &[u8], _: bool| attempt(&ground, history);
    let settled = Simulation { name: "settled::both_nodes_leave", tries: TRIES, attempt: &attempt };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let totals = settled.play_chosen(HISTORIES, Vec::new(), cores);
    assert!(
        totals.histories == 1 || 2 * totals.charging >= totals.histories as u64,
        "the others show little: {totals:?}"
    );
}

#[test]
fn a_seed_plays_the_same_history_on_a_played_chain_each_time() {
    let (ground, _kept) = lay(&[PUBLIC, UNLIMITED].concat(), None);
    let play = |history: &[u8]| apart(|| attempt(&ground, history).unwrap());
    for seed in 0..2 {
        let first = play(&history_of(seed));
        // Once more as a seed, and once by the bytes of its decisions.
        let bytes = first.made.with(&first.made.steps);
        let [again, by_bytes] = [history_of(seed), bytes].map(|history| play(&history));
        assert!(first.log.lines().count() > 60, "{}", first.log);
        assert_eq!((first.charged, &first.log), (again.charged, &again.log), "of seed {seed}");
        assert_eq!((first.charged, &first.log), (by_bytes.charged, &by_bytes.log), "bytes of seed {seed}");
    }
}

#[test]
fn any_bytes_are_a_history_on_a_played_chain() {
    let (ground, _kept) = lay(&[PUBLIC, UNLIMITED].concat(), None);
    for history in [vec![0xff; 9], vec![0x2a; 60], (0..=255).collect()] {
        assert!(apart(|| attempt(&ground, &history).is_ok()), "{}", hex::encode(history));
    }
}
