//! Nodes as processes among peers that keep to no rule, or speak an earlier protocol, and over books that somebody wrote into.
//!
//! The peers are in this process: the network and the chain as the node has them, and whatever a test likes to say with
//! them. Nodes that buy and sell end with their books compared, as in all tests of paid calls.

mod bare;
mod before;
mod bombs;
mod claimed_books;
mod crowds;
mod ends;
mod floods;
mod knocking;
mod later_program;
mod patched_owner;
mod patched_payer;
mod previews;
mod soak;
mod stranger;
mod takeover;
