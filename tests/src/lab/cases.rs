//! What becomes of calls to an owner whose router forwards nothing, for each pair of routers: what the tests hold and what
//! `make lab` repeats.

use super::{HomeRouter, Place};

/// What becomes of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallsGo {
    Directly,
    ThroughARelay,
}

use CallsGo::{Directly, ThroughARelay};

/// Calls from a place to an owner behind a router. They begin through a relay wherever only the owner can connect past its
/// router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    pub home: HomeRouter,
    pub from: Place,
    pub calls_go: CallsGo,
}

/// Those of one router beside each other.
pub const CASES: [Case; 12] = [
    case(HomeRouter::FiltersByAddress, Place::BehindPlain, Directly),
    case(HomeRouter::FiltersByAddress, Place::BehindSymmetric, Directly),
    case(HomeRouter::Plain, Place::Public, Directly),
    case(HomeRouter::Plain, Place::BehindPlain, Directly),
    case(HomeRouter::Plain, Place::BehindSymmetric, ThroughARelay),
    case(HomeRouter::Plain, Place::Neighbour, ThroughARelay),
    case(HomeRouter::Symmetric, Place::Public, Directly),
    case(HomeRouter::Symmetric, Place::BehindPlain, ThroughARelay),
    case(HomeRouter::Symmetric, Place::BehindSymmetric, ThroughARelay),
    case(HomeRouter::BehindProvider, Place::BehindPlain, Directly),
    case(HomeRouter::BehindProvider, Place::BehindSymmetric, ThroughARelay),
    case(HomeRouter::FirewallOfIpv6, Place::BehindPlain, Directly),
];

const fn case(home: HomeRouter, from: Place, calls_go: CallsGo) -> Case {
    Case { home, from, calls_go }
}
