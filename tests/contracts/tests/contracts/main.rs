//! The contracts on a real local chain: what each function promises, to whom, and what attackers get.
//!
//! Every test starts its own chain, so they run in parallel and share nothing. The modules follow a
//! channel's life; `adversary` holds what strangers, hostile tokens and bad luck may try on the way.

#[path = "../../../../protocol/tests/support/random.rs"]
mod random;

mod adversary;
mod agreement;
mod artifact;
mod claim;
mod close;
mod consent;
mod deposit;
mod gas;
mod invariants;
mod proof;
mod token;
mod world;
