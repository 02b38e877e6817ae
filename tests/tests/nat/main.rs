//! The NAT laboratory: whole nodes in network namespaces, behind routers that translate as real ones do.
//!
//! `tests/src/lab.rs` builds the networks, `tests/src/market.rs` puts nodes into them and keeps the books; each file here is
//! one laboratory with its cases in sequence, because starting one takes longer than most cases. It needs root, `ip`
//! and `nft`; where they are missing every case is skipped and says so. `make nat-test` runs all of it; how fast it is,
//! `make lab` measures.

mod documented;
mod forwarding;
mod nearby;
mod outages;
mod reachable;
mod relayed;
mod strangers;
