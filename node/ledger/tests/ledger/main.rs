//! The ledger's promises, each test a sentence.

mod books;
mod world;
