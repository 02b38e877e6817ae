//! Real halves over a line that is played: the consumer and the owner as a node starts them, with their loops, waits and ledgers,
//! on one thread whose clock passes at once.
//!
//! What is played here: the network (`halves/line.rs`), the service (`halves/state.rs`), who orders what, and when a half dies:
//! between two steps of its tasks, with what its disk has by then. A commit is over at once; commits that a death leaves in part
//! are played beside this (`world.rs`). The chain is a real one that nothing happens on: each side's ledger has the channel.
//!
//! In histories of their own, two consumers buy, prices change and a ledger is put back to what it was (`halves/changes.rs`), or one
//! side breaks the rules (`halves/hostile.rs`).
//!
//! A history is a string of bytes, as in all simulations of this program (`choices.rs`).
//! `FARTHING_SEED=17 cargo test -p farthing-node --test simulation halves::real` plays one and tells its steps.

mod changes;
mod costs;
pub mod ground;
mod history;
pub mod hostile;
pub mod line;
mod pair;
pub mod parties;
pub mod state;

use std::{panic::AssertUnwindSafe, slice, thread};

use bytes::Bytes;
use farthing_protocol::Usdc;
use farthing_shared::blocking::play_on_this_thread;
use futures::FutureExt;
use tokio::{runtime::Builder, time::sleep};

use self::{
    ground::Ground,
    history::{History, STEPS},
    hostile::Hostile,
    parties::order,
    state::State,
};
use crate::play::{Attempted, Played, Simulation, history_of};

/// Histories of each run. With those of the other two simulations, they are more than 2,000.
const HISTORIES: u64 = 1_200;
/// To shorten one that fails; each takes some hundredths of a second.
const TRIES: usize = 200;

/// Plays one history of two honest sides to its rest.
fn attempt(ground: &Ground, history: &[u8]) -> Attempted {
    attempt_with(ground, history, None)
}

/// Plays one history, in which a side may break the rules, to its rest.
fn attempt_with(ground: &Ground, history: &[u8], hostile: Option<Hostile>) -> Attempted {
    attempt_on(history, hostile, async |state| {
        History::begin(slice::from_ref(ground), state, None).await.play().await
    })
}

/// Plays one history, as it says itself, in a runtime of its own.
fn attempt_on(history: &[u8], hostile: Option<Hostile>, play: impl AsyncFnOnce(&State) -> Usdc) -> Attempted {
    play_on_this_thread();
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let state = State::new(history, STEPS);
        state.lock().hostile = hostile;
        let charged = AssertUnwindSafe(play(&state)).catch_unwind().await;
        let Ok(charged) = charged else { return Err(state.failed()) };
        let made = state.lock().choices.made();
        Ok(Played { charged: charged.micros(), commits_cut: 0, made, log: state.log() })
    })
}

#[test]
fn real_halves_agree_on_every_call_whatever_the_network_loses_and_whichever_dies() {
    let (ground, _kept) = Ground::lay();
    let attempt = |history: &[u8], _: bool| attempt(&ground, history);
    let halves = Simulation { name: "halves::real_halves_agree", tries: TRIES, attempt: &attempt };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let totals = halves.play_chosen(HISTORIES, Vec::new(), cores);
    assert!(
        totals.histories == 1 || totals.charging > 0,
        "histories in which nothing is bought show nothing"
    );
}

#[test]
fn a_seed_plays_the_same_history_of_real_halves_each_time() {
    let (ground, _kept) = Ground::lay();
    for seed in 0..4 {
        let first = attempt(&ground, &history_of(seed)).unwrap();
        // Once more as a seed, and once by the bytes of its decisions.
        let bytes = first.made.with(&first.made.steps);
        let [again, by_bytes] = [history_of(seed), bytes].map(|history| attempt(&ground, &history).unwrap());
        assert!(first.log.lines().count() > 100, "{}", first.log);
        assert_eq!((first.charged, &first.log), (again.charged, &again.log), "of seed {seed}");
        assert_eq!((first.charged, &first.log), (by_bytes.charged, &by_bytes.log), "bytes of seed {seed}");
    }
}

#[test]
fn any_bytes_are_a_history_of_real_halves() {
    let (ground, _kept) = Ground::lay();
    for history in [vec![], vec![0xff; 3], vec![0xff; 9], vec![0x2a; 60], (0..=255).collect()] {
        assert!(attempt(&ground, &history).is_ok(), "{}", hex::encode(history));
    }
}

#[test]
fn a_failure_tells_what_both_ledgers_hold() {
    costs::with_halves(Bytes::from_static(b"{}"), async |ground, state, consumer, _| {
        consumer.half.consumer.buy(order(ground, 1, Bytes::new())).await.unwrap();
        sleep(costs::REST).await;
        let books = state.failed().books;
        let told = books.matches("call 1 at 0.001: Answered, 0.001 charged").count();
        assert_eq!(told, 2, "by either side:\n{books}");
    });
}
