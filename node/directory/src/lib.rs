//! The directory of the network: from a wallet's name to its node record, as one state machine without sockets, clocks and
//! tasks.
//!
//! What happens goes in, what is to be done comes out: [`Directory::handle`]. A driver owns the swarm and the clocks, and a
//! simulator drives the very same machine over virtual time.
//!
//! ```
//! # use std::time::Duration;
//! # use farthing_directory::{
//! #     CommandId, Config, Contact, Directory, Input, Now, Output, Verifier, records::{Facts, Untrue}, wire::{Filed, Response},
//! # };
//! # struct Nobody;
//! # impl Verifier for Nobody {
//! #     type Document = ();
//! #     fn verify(&self, _: &Filed) -> Result<(Facts, ()), Untrue> { Err(Untrue::Malformed) }
//! #     fn is_peer(&self, _: &[u8]) -> bool { true }
//! # }
//! # let (records_max, records_per_source_max, dials_max) = (10, 10, 24);
//! # let config = Config { own_id: vec![1], seed: 7, allow_private: true, records_max, records_per_source_max, dials_max };
//! # let now = Now { since: Duration::ZERO, unix_secs: 0 };
//! # let peer = Contact::new(&[2], [[4, 9, 9, 9, 9]]).unwrap();
//! let mut directory = Directory::new(config, Nobody);
//! let mut outputs = directory.handle(now, Input::Connected(peer));
//! outputs.extend(directory.handle(now, Input::Find(CommandId(1), b"/farthing/record/0123".as_slice().into())));
//! while let Some(output) = outputs.pop() {
//!     match output {
//!         // Opens a stream, after a dial if need be; writes `request.encode()` after its length, reads
//!         // `Response::decode`. Its end goes back, or `Input::Failed` with the reason.
//!         Output::Ask { id, contact, request, deadline } => {
//!             let answer = Response::FindNode { closer: Vec::new() };
//!             outputs.extend(directory.handle(now, Input::Answer(id, answer)));
//!         }
//!         // Sets the one timer, which becomes `Input::Tick`.
//!         Output::Wake(at) => {}
//!         // Dials where the record says, at once; a newer one may follow.
//!         Output::Found(id, record) => {}
//!         Output::Done { id, outcome, questions } => {}
//!         // Ends the stream or the dial of a question, answers the stream of a peer's request, or closes it.
//!         Output::Abandon(_) | Output::Reply(..) | Output::Refuse(_) => {}
//!         // Liveness, storage and the clock are told by the one, the count of strikes by the other.
//!         Output::Heard { .. } | Output::Misbehaved(..) => {}
//!     }
//! }
//! ```
//!
//! A record cannot be kept that was not verified, nor a peer enter the routing table that did not answer:
//!
//! ```compile_fail
//! # fn with<D>(filed: farthing_directory::wire::Filed) {
//! let record: farthing_directory::VerifiedRecord<D> = farthing_directory::VerifiedRecord(filed);
//! # }
//! ```
//!
//! # What a driver keeps to
//!
//! - [`Input::Connected`] names peers that were identified as of this network and that speak the protocol, with the addresses
//!   they say and, first, the one that they were reached at.
//! - [`Failure::Denied`] is what its own limits kept back, such as a connection limit or the gate; an error of the transport is
//!   [`Failure::Unreachable`].
//! - Requests come from connected peers alone, each with a [`Token`]; a stream that waits for its reply counts in its limits.
//! - Every hour, and after a sleep of the machine, [`Input::Refresh`]. The first peer that answers is reason for one by itself.
//!
//! # What is bounded
//!
//! Commands, own jobs, questions of a look-up, peers that wait on a line, buckets, records in all and of a source, sources of a
//! minute, connected peers, dials over all look-ups, and each length of a message.

mod contact;
mod dice;
mod intake;
mod job;
mod key;
mod lookup;
mod machine;
mod message;
mod placement;
mod question;
pub mod records;
mod table;
#[cfg(test)]
mod testing;
pub mod wire;

pub use contact::{ADDRESS_BYTES_MAX, ADDRESSES_MAX, Contact, Network, PEER_ID_BYTES_MAX};
pub use dice::Dice;
pub use intake::Intake;
pub use job::SLOW_AFTER;
pub use key::{Distance, Key};
pub use lookup::{LINES, PER_ANSWER};
pub use machine::{Config, Directory};
pub use message::{AskId, CommandId, Input, Now, Outcome, Output, Token};
pub use question::Failure;
pub use records::{VerifiedRecord, Verifier};

/// The peers of a bucket, of an answer, and of those nearest to a record, who keep it.
pub const K: usize = 20;
