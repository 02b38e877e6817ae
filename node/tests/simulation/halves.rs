//! Real halves over a line that is played: the consumer and the owner as a node starts them, with their loops, waits and ledgers,
//! on one thread whose clock passes at once.
//!
//! What is played here: the network (`halves/line.rs`), the service (`halves/state.rs`), who orders what, and when a half dies:
//! between two steps of its tasks, with what its disk has by then. A commit is over at once; commits that a death leaves in part
//! are played beside this (`world.rs`). The chain is a real one that nothing happens on: each side's ledger has the channel.
//!
//! `FARTHING_SEED=17 cargo test -p farthing-node --test simulation halves::` plays one history and tells its steps.

pub mod ground;
mod history;
pub mod line;
mod parties;
pub mod state;

use std::{
    env,
    panic::{AssertUnwindSafe, resume_unwind},
    sync::atomic::{AtomicU64, Ordering},
};

use farthing_protocol::Usdc;
use farthing_shared::blocking::play_on_this_thread;
use futures::FutureExt;
use tokio::runtime::Builder;

use self::{ground::Ground, history::History, state::State};
use crate::random::seeds;

/// Histories of each run.
const HISTORIES: u64 = 200;

/// Plays one history. What was charged, and its steps.
fn play(ground: &Ground, seed: u64) -> (Usdc, String) {
    play_on_this_thread();
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
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
fn real_halves_agree_on_every_call_whatever_the_network_loses_and_whichever_dies() {
    let (ground, _kept) = Ground::lay();
    if let Ok(seed) = env::var("FARTHING_SEED") {
        let seed = seed.parse().expect("FARTHING_SEED is the number that a failure named");
        let (charged, log) = play(&ground, seed);
        return eprintln!("{log}\n{charged} charged");
    }
    let (seeds, next, charged) = (seeds(HISTORIES), AtomicU64::new(0), AtomicU64::new(0));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if !seeds.contains(&seed) {
                        return;
                    }
                    charged.fetch_add(play(&ground, seed).0.micros(), Ordering::Relaxed);
                }
            });
        }
    });
    assert!(charged.into_inner() > 0, "histories in which nothing is bought show nothing");
}

#[test]
fn a_seed_plays_the_same_history_of_real_halves_each_time() {
    let (ground, _kept) = Ground::lay();
    for seed in 0..4 {
        let (first, again) = (play(&ground, seed), play(&ground, seed));
        assert!(first.1.lines().count() > 100, "{}", first.1);
        assert_eq!(first, again, "of seed {seed}");
    }
}
