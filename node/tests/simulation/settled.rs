//! Two whole nodes' halves over a line and a chain that are played: each has its half that buys, its half that sells and the settlement
//! between them, as a node starts them, with the chain's real watcher and writer, on one thread whose clock passes at once.
//!
//! What is played here: the network (`halves/line.rs`), the service (`halves/state.rs`), the chain and its endpoints
//! (`settled/blocks.rs`), the wall clock, who orders what, and when a node dies: between two steps of its tasks or in the middle of a
//! commit, with what its disk has by then and with its transactions under way. Nothing is given: the consumer opens its channel by a
//! transaction, the owner finds it and claims on it, and either closes it.
//!
//! `FARTHING_SEED=17 cargo test -p farthing-node --test simulation settled::` plays one history and tells its steps.

mod blocks;
mod first_call;
mod ground;
mod history;
mod judge;
mod patience;
mod run;

use std::{
    env,
    panic::{AssertUnwindSafe, resume_unwind},
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use farthing_os::clock;
use farthing_protocol::Usdc;
use farthing_shared::blocking::play_on_this_thread;
use futures::FutureExt;
use tokio::{runtime::Builder, time::Instant};

use self::{
    ground::{BEGAN, Ground, Kept, PUBLIC, UNLIMITED},
    history::History,
};
use crate::{halves::state::State, random::seeds};

/// Histories of each run.
const HISTORIES: u64 = 60;

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

/// Plays one history. What was charged, and its steps. The clocks of this thread are played from then on.
fn play(ground: &Ground, seed: u64) -> (Usdc, String) {
    in_played_time(async {
        let state = State::new(seed);
        let played = async { History::begin(ground, &state).await.play().await };
        let charged = AssertUnwindSafe(played).catch_unwind().await.unwrap_or_else(|panic| {
            eprintln!("FARTHING_SEED={seed} fails:\n{}", state.log());
            resume_unwind(panic)
        });
        (charged, state.log())
    })
}

#[test]
fn both_nodes_leave_with_what_is_theirs_whatever_network_chain_and_deaths_do() {
    let (ground, _kept) = lay(&[PUBLIC, UNLIMITED].concat(), None);
    if let Ok(seed) = env::var("FARTHING_SEED") {
        let seed = seed.parse().expect("FARTHING_SEED is the number that a failure named");
        let (charged, log) = apart(|| play(&ground, seed));
        return eprintln!("{log}\n{charged} charged");
    }
    let (seeds, next, charging) = (seeds(HISTORIES), AtomicU64::new(0), AtomicU64::new(0));
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if !seeds.contains(&seed) {
                        return;
                    }
                    let charged = play(&ground, seed).0;
                    charging.fetch_add(u64::from(!charged.is_zero()), Ordering::Relaxed);
                }
            });
        }
    });
    let (charging, all) = (charging.into_inner(), seeds.end - seeds.start);
    assert!(2 * charging >= all, "of {all} histories {charging} charge something; the others show little");
}

#[test]
fn a_seed_plays_the_same_history_on_a_played_chain_each_time() {
    let (ground, _kept) = lay(&[PUBLIC, UNLIMITED].concat(), None);
    for seed in 0..2 {
        let [first, again] = [(); 2].map(|()| apart(|| play(&ground, seed)));
        assert!(first.1.lines().count() > 60, "{}", first.1);
        assert_eq!(first, again, "of seed {seed}");
    }
}
