//! A chain in the process of a test: blocks, forks, transactions that wait, the contracts, and endpoints with faults.
//!
//! Everything is a state machine: a request goes in, its answer comes out, and nothing happens by itself. Blocks, their times, what
//! they cost and what is wrong with an endpoint are inputs of the test, so the same inputs give the same chain each time.
//!
//! In order: `signed` reads a transaction and says who signed it; `token` and `escrow` are the contracts, with the rules of
//! `farthing_contract_tests::rules`; `books` has what one block leaves behind; [`Machine`] makes blocks and takes them back; `answer`
//! is what an `eth_*` server says about it; [`PlayedChain`] is what tests hold; `names` has what they call wallets and channels. Its
//! tests compare it with anvil.
//!
//! Gas is not the real one: it grows with a transaction's data, and is enough to pay for it. Contracts are not deployed: both are
//! there from the first block.

mod answer;
mod books;
mod endpoint;
mod escrow;
mod faults;
mod machine;
mod names;
mod signed;
mod token;

pub use books::Books;
pub use endpoint::{PlayedChain, Said};
pub use faults::Faults;
pub use machine::{Block, Genesis, Machine, Mined, NotTaken};
pub use names::{account, slot_id};
pub use signed::Transaction;
