//! Everything that reads bytes of strangers, as targets: functions of any bytes that must not panic, and that check what holds
//! of what they accept.
//!
//! `tests/known_and_broken.rs` gives each target what is known of its format and thousands of broken inputs, the same ones in
//! every run. The program `farthing-fuzz` goes on from there for as long as one likes. A further reader is a function in
//! [`targets`] and a row there.

#[path = "../../../bridge/fuzz/corpora.rs"]
mod corpora;
#[path = "../../../protocol/tests/support/damage.rs"]
#[allow(dead_code, reason = "inputs are damaged by `mutation`")]
mod damage;
mod drive;
#[path = "../../../bridge/fuzz/entries.rs"]
mod entries;
#[path = "../../../protocol/tests/support/examples.rs"]
#[allow(dead_code, reason = "the targets need a part of the examples")]
mod examples;
mod mutation;
#[path = "../../../protocol/tests/support/random.rs"]
mod random;
#[path = "../../../protocol/tests/support/readers.rs"]
#[allow(dead_code, reason = "the targets read each kind by its name")]
mod readers;
#[path = "../../../protocol/tests/support/shortest.rs"]
mod shortest;
pub mod targets;

pub use drive::{Broken, Plan, Told, drive, shortest};
