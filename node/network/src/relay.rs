//! Relays: how an owner is reached that nobody can connect to, by libp2p's circuit relay v2 and DCUtR.
//!
//! In the order things happen:
//! 1. Who is reachable offers places to others (`server`), as many as `guests` has and with so many bytes and seconds each.
//! 2. An owner whom no dial-back reaches takes a place at two of them that lie apart (`choice`), over connections that it
//!    made itself (`client`).
//! 3. It connects to itself through each, as a stranger would (`check`). What arrives is published: where the relay is, and
//!    `/p2p-circuit`.
//! 4. Who calls it dials that. Both sides then try to connect past their routers (`punch`); where that succeeds, calls
//!    use the new connection, and the one through the relay is closed.
//!
//! Invariant: a relay sees who talks to whom and how much, and nothing of what is said. Connections through it are
//! encrypted and proven from end to end as any other.

mod check;
mod choice;
mod client;
mod contained_handler;
mod guests;
mod punch;
mod server;

pub(crate) use self::{
    check::connect_through,
    choice::{RelayCandidate, Relays},
    client::{RelayClientBehaviour, circuits},
    punch::PunchBehaviour,
    server::RelayServerBehaviour,
};

/// The longest request or answer that goes through a relay. A circuit carries so many bytes in all, and what it is cut off
/// in has to be asked about.
pub const RELAYED_BODY_BYTES_MAX: usize = 64 * 1024;
