//! The channel rule over a bad network, late chain views and crashes: a model of a consumer and an owner that
//! live by [`PayerState`] and [`PayeeState`] alone.
//!
//! Every step checks the invariants it can touch (C1, O1, O2, O5, X2; ids as in the design of payments), and
//! every run ends at rest, where both ledgers must agree (C4, M4, X1). A failure names its seed. A release
//! runs more: `FARTHING_SEEDS=1000000 cargo test -p farthing-protocol --test simulation`.
//!
//! [`PayerState`]: farthing_protocol::channel::PayerState
//! [`PayeeState`]: farthing_protocol::channel::PayeeState

mod consumer;
mod owner;
#[path = "../support/random.rs"]
mod random;
mod world;

use random::seeds;
use world::World;

const STEPS: usize = 300;

#[test]
fn honest_parties_agree_whatever_the_network_and_crashes_do() {
    let mut charged = 0;
    for seed in seeds(10_000) {
        let run = std::panic::catch_unwind(|| {
            let mut world = World::new(seed);
            for _ in 0..STEPS {
                world.step();
            }
            world.come_to_rest();
            world.owner.state.spent.micros()
        });
        charged += run.unwrap_or_else(|_| panic!("the run with seed {seed} failed as said above"));
    }
    assert!(charged > 0, "a simulation in which nothing is bought shows nothing");
}
