//! A paid call from end to end: two nodes as processes, a real chain, and an upstream that counts.
//!
//! Every test starts a [`World`](farthing_tests::world::World), does its worst, and ends with the books of
//! both nodes compared with the chain to the last micro-USDC. One binary, because linking takes longer than most of these
//! tests.

#[path = "../../../protocol/tests/support/random.rs"]
mod random;

mod access_log;
mod alerts;
mod answers_late;
mod arm64;
mod audited;
mod backups;
mod calls_log;
mod chain_changed;
mod closes;
mod commands;
mod contract;
mod dashboard;
mod documented;
mod earlier;
mod endpoints;
mod first_start;
mod flagged;
mod folder;
mod funding;
mod gateway;
mod given_up;
mod history;
mod lifecycle;
mod load;
mod memory;
mod metrics;
mod names;
mod offline;
mod own_ports;
mod ports;
mod prices;
mod put_back;
mod repeats;
mod replaced_wallet;
mod same_machine;
mod settling;
mod spending;
mod stalls;
mod strangers;
mod terminal;
mod turns;
mod uploads;
mod upstreams;
mod without_eth;
