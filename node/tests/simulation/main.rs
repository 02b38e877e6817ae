//! Two nodes over a bad network, late views of the chain, and crashes: the node's own books and rules, with nothing
//! but messages between them.
//!
//! What is played here and is not the node's: the network that loses, doubles, delays and reorders; the chain; the
//! service; when a node dies; and the loops that wait for all of these. What decides is the node's: on the payer's side
//! `Accounts`, `Channels`, `Copies` and the checks of `answer`, on the owner's `Book`, `Calls` and `repeat`, and on
//! both the ledger, on a disk in memory that a crash may leave in the middle of a commit. Neither side knows what the other
//! does, nor what is on its way. The loops run in `halves.rs`, beside this, where both sides are as a node starts them, and in
//! `settled.rs` with settlement and a chain.
//!
//! Every step checks the invariants that it can touch (C1, C4, O1, O2, O5, X2), and every run ends at rest, where both
//! ledgers must agree on every call id (X1) and on the money (M4). The service counts its executions: no charge without one,
//! one more at most after a charge, and never a second one of a call with effects. Then both start again, and each side leaves
//! with what is its own; and the channel, filled with the price of one call, carries one.
//!
//! A history is a string of bytes (`choices.rs`). A failure names the seed that made it, and the shortest history that
//! fails as well, with its steps and the books of both sides. `FARTHING_SEED=17 cargo test -p farthing-node --test
//! simulation honest` plays a seed again and tells its steps, `FARTHING_HISTORY=00ff…` a string. `make world` plays more
//! seeds of each simulation: so many (`FARTHING_SEEDS`) from one on (`FARTHING_FIRST_SEED`).

#[path = "../../ledger/tests/support/disk.rs"]
mod disk;
#[path = "../../../protocol/tests/support/random.rs"]
mod random;
#[path = "../../../protocol/tests/support/shortest.rs"]
mod shortest;

mod books;
mod choices;
mod halves;
mod machine;
mod payee;
mod payer;
mod play;
mod service;
mod settled;
mod wire;
mod world;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::{SystemTime, UNIX_EPOCH},
};

use choices::Choices;
use play::{Attempted, Failed, Played, Simulation, history_of};
use random::{Random, seeds};
use world::World;

/// Histories of seeds in each run.
const SEEDS: u64 = 600;
/// Steps of a history that a seed makes.
const STEPS: usize = 250;

/// Each history takes some tenths of a second.
const PARTIES: Simulation<'static> = Simulation { name: "honest_nodes_agree", tries: 200, attempt: &attempt };

/// Seeds whose histories once ended with books that differed: an emptied channel whose books nobody compared after a start, a
/// charge that was booked in part when its call was found, a limit that left out what the ledger booked by itself, and a
/// receipt that was not stored, because a forgotten call had been charged beyond every voucher in the ledger, and what an
/// emptied channel had paid booked by the ledger and by memory, and what a call of an earlier run cost in this one taken
/// for a part of what that run had signed.
const FAILED_BEFORE: [u64; 9] =
    [311, 865, 3_591, 4_695, 14_459, 23_625, 24_009, 12_931_874_952_197_720_817, 18_138_743_894_395_828_683];

/// Histories in bytes. A call without effects is bought, answered and charged, and its copies arrive again after two deaths of
/// its owner, which has no answer left.
const HISTORIES: [&str; 1] =
    ["000000000000000003270000000063000063000063000063000063000063000a0663001e000032006300006200\
     004e00000a0663001e00006200004e00000a0663001e00003e00"];

#[test]
fn honest_nodes_agree_on_every_call_whatever_the_network_and_crashes_do() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // A receipt waits 20 ms for a commit to ride with, so that one history leaves half of a core to another.
    let totals = PARTIES.play_chosen(SEEDS, others(), 2 * cores);
    assert!(
        totals.histories == 1 || totals.charging > 0,
        "a simulation in which nothing is bought shows nothing"
    );
}

/// Those that failed before, and a quarter as many as of seeds that were never played.
fn others() -> Vec<Vec<u8>> {
    let mut fresh = Random::new(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos().into());
    let count = seeds(SEEDS).count() / 4;
    let of_seeds = FAILED_BEFORE.into_iter().chain((0..count).map(|_| fresh.next())).map(history_of);
    of_seeds.chain(HISTORIES.iter().map(|text| hex::decode(text).unwrap())).collect()
}

/// Plays one history to its rest, and tells its steps if somebody wants them.
fn attempt(history: &[u8], tells: bool) -> Attempted {
    let mut world = World::new(Choices::of(history, STEPS), tells);
    let charged = catch_unwind(AssertUnwindSafe(|| world.run()));
    let (made, log) = (world.made(), world.log());
    match charged {
        Ok(charged) => Ok(Played { charged, commits_cut: world.commits_cut(), made, log }),
        Err(_) => {
            let books = catch_unwind(AssertUnwindSafe(|| world.books()));
            let books = books.unwrap_or_else(|_| "the books cannot be read".to_owned());
            Err(Box::new(Failed { made, log, books }))
        }
    }
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

const BUY: &[u8] = &[0, 0];
const SEND: &[u8] = &[0, 10, 0, 99];
const ARRIVE: &[u8] = &[0, 30, 0];
const SERVE: &[u8] = &[0, 50, 0, 99, 0];
const BRING: &[u8] = &[0, 62, 0];

/// A death while something is stored.
struct Death {
    stored: &'static str,
    /// The steps before it.
    steps: &'static [&'static [u8]],
    /// Its decisions before and after the one that says how many operations of the disk come through.
    decisions: [&'static [u8]; 2],
}

const DEATHS: [Death; 6] = [
    Death { stored: "a promise", steps: &[], decisions: [&[0, 97, 0, 0, 99], &[]] },
    Death { stored: "a receipt", steps: &[BUY, SEND, ARRIVE, SERVE, BRING], decisions: [&[0, 97, 2], &[0]] },
    Death { stored: "the chain, by the consumer", steps: &[BUY], decisions: [&[0, 97, 3], &[]] },
    Death { stored: "a served call", steps: &[BUY, SEND, ARRIVE], decisions: [&[0, 98, 0, 0], &[0]] },
    Death { stored: "a call that arrives", steps: &[BUY, SEND], decisions: [&[0, 98, 0, 2], &[0]] },
    Death { stored: "the chain, by the owner", steps: &[BUY, SEND], decisions: [&[0, 98, 0, 3], &[]] },
];

impl Death {
    /// The history in which so many operations come through, of the kind whose promises are stored before they are sent.
    fn after(&self, operations: u8) -> Vec<u8> {
        let (number, beginning): (&[u8], &[u8]) = (&[0; 8], &[2, 39]);
        let survival = match operations % 3 {
            0 => vec![0],
            1 => vec![1],
            _ => vec![2, operations],
        };
        let steps: Vec<u8> = self.steps.concat();
        let [first, then] = self.decisions;
        [number, beginning, &steps, first, &[operations], then, &survival, ARRIVE, SERVE].concat()
    }
}

#[test]
fn a_death_between_any_two_operations_of_a_commit_leaves_books_that_agree() {
    std::thread::scope(|scope| {
        for death in DEATHS {
            scope.spawn(move || {
                let is_cut = |operations: &u8| PARTIES.play(&death.after(*operations)).commits_cut == 1;
                let cut = (0..48).take_while(is_cut).count();
                assert!(cut > 3, "{} is stored in more than {cut} operations", death.stored);
            });
        }
    });
}
