//! The NAT laboratory: whole nodes in network namespaces, behind routers that translate as real ones do.
//!
//! `lab` builds the networks, `market` puts nodes into them and keeps the books; each of the other files is one
//! laboratory with its cases in sequence, because starting one takes longer than most cases. It needs root, `ip`
//! and `nft`; where they are missing every case is skipped and says so. `make nat-test` runs all of it.

mod forwarding;
mod lab;
mod market;
mod nearby;
mod outages;
mod reachable;
