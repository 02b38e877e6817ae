//! The ledger's promises, each test a sentence.

#[path = "../support/disk.rs"]
mod disk;
#[path = "../../../../protocol/tests/support/random.rs"]
mod random;

mod adjustments;
mod books;
mod doubt;
mod failing;
mod figures;
mod group_commit;
mod history;
mod losses;
mod opening;
mod paid;
mod power_cut;
mod properties;
mod recovered;
mod settlements;
mod transferred;
mod workload;
mod world;
