//! Two nodes over a bad network, late views of the chain, and crashes: the node's own books and rules, with nothing
//! but messages between them.
//!
//! What is played here and is not the node's: the network that loses, doubles, delays and reorders; the chain; the
//! service; when a node dies; and the loops that wait for all of these. What decides is the node's: on the payer's side
//! `Accounts`, `Channels`, `Copies` and the checks of `answer`, on the owner's `Book`, `Calls` and `repeat`, and on
//! both the ledger, in memory. Neither side knows what the other does, nor what is on its way.
//!
//! Every step checks the invariants that it can touch (C1, C4, O1, O2, O5, X2), and every run ends at rest, where both
//! ledgers must agree on every call id (X1) and on the money (M4).
//!
//! A history is a string of bytes (`choices.rs`). A failure names the seed that made it, and the shortest history that
//! fails as well, with its steps and the books of both sides. `FARTHING_SEED=17 cargo test -p farthing-node --test
//! simulation` plays a seed again and tells its steps, `FARTHING_HISTORY=00ff…` a string. A release runs more seeds:
//! `FARTHING_SEEDS=100000`.

#[path = "../../../protocol/tests/support/random.rs"]
mod random;
#[path = "../../../protocol/tests/support/shortest.rs"]
mod shortest;

mod choices;
mod payee;
mod payer;
mod play;
mod wire;
mod world;

use std::{
    env,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use play::{attempt, play};
use random::{Random, seeds};

/// Seeds whose histories once ended with books that differed: an emptied channel whose books nobody compared after a start, a
/// charge that was booked in part when its call was found, a limit that left out what the ledger booked by itself, and a
/// receipt that was not stored, because a forgotten call had been charged beyond every voucher in the ledger, and what an
/// emptied channel had paid booked by the ledger and by memory, and what a call of an earlier run cost in this one taken
/// for a part of what that run had signed.
const FAILED_BEFORE: [u64; 9] =
    [311, 865, 3_591, 4_695, 14_459, 23_625, 24_009, 12_931_874_952_197_720_817, 18_138_743_894_395_828_683];

#[test]
fn honest_nodes_agree_on_every_call_whatever_the_network_and_crashes_do() {
    let (histories, next, charged) = (histories_to_play(), AtomicUsize::new(0), AtomicU64::new(0));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(history) = histories.get(next.fetch_add(1, Ordering::Relaxed)) {
                    charged.fetch_add(play(history), Ordering::Relaxed);
                }
            });
        }
    });
    assert!(
        histories.len() == 1 || charged.into_inner() > 0,
        "a simulation in which nothing is bought shows nothing"
    );
}

/// The same ones each time, and beside them a quarter as many that were never played before.
fn histories_to_play() -> Vec<Vec<u8>> {
    if let Ok(text) = env::var("FARTHING_HISTORY") {
        return vec![hex::decode(text).expect("FARTHING_HISTORY is the text that a failure named")];
    }
    if let Ok(text) = env::var("FARTHING_SEED") {
        return vec![history_of(text.parse().expect("FARTHING_SEED is the number that a failure named"))];
    }
    let fixed = seeds(600);
    let mut fresh = Random::new(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos().into());
    let count = fixed.end / 4;
    fixed.chain(FAILED_BEFORE).chain((0..count).map(|_| fresh.next())).map(history_of).collect()
}

fn history_of(seed: u64) -> Vec<u8> {
    seed.to_le_bytes().to_vec()
}

#[test]
fn the_decisions_of_a_history_are_bytes_that_play_it_again() {
    // One of each kind.
    for seed in 0..8 {
        let first = attempt(&history_of(seed), true).unwrap();
        let again = attempt(&first.made.with(&first.made.steps), true).unwrap();
        assert!(first.log.lines().count() > 50, "{}", first.log);
        assert_eq!((first.charged, &first.log), (again.charged, &again.log), "of seed {seed}");
        let part = attempt(&first.made.with(&first.made.steps[..40]), true).unwrap();
        let steps = part.log.split_once(" rest\n").unwrap().0;
        let (steps, _) = steps.rsplit_once('\n').unwrap();
        assert!(first.log.starts_with(steps), "its first steps are the same:\n{steps}\n\n{}", first.log);
    }
}
