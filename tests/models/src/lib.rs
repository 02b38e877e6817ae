//! The program's parts that threads and tasks share, in a world where a scheduler chooses every step.
//!
//! The files under test are those of the program, compiled here a second time and unchanged. What they import from `std`,
//! `parking_lot`, `tokio` and `redb` is found in this crate, under the same names: locks, atomics and threads are shuttle's, waits
//! are tokio's own with a point before each step at which another thread may run, time passes when somebody waits for it, and
//! the database is a disk that keeps what was synced ([`disk`]). Types of other packages that take part in no race are stand-ins
//! ([`stand_ins`]).
//!
//! [`models`] has the scenarios, each with what must hold; `tests/models.rs` runs them under many schedules.
//!
//! What a model cannot see: orders of memory weaker than sequential consistency, because shuttle's atomics have none, and a step
//! inside tokio or redb.

#![allow(dead_code, unused_imports, reason = "the program uses more of its files than the models do")]

extern crate self as farthing_ledger;
extern crate self as farthing_os;
extern crate self as farthing_shared;
extern crate self as parking_lot;
extern crate self as redb;
extern crate self as std;
extern crate self as tokio;
extern crate std as real_std;
extern crate tokio as real_tokio;

pub use real_std::*;

pub mod disk;
pub mod locks;
pub mod models;
pub mod stand_ins;
pub mod sync;
pub mod thread;
pub mod time;

pub use disk::{
    Database, Durability, Error, Key, ReadOnlyTable, ReadTransaction, ReadableDatabase, Value,
    WriteTransaction, backend, tables,
};
pub use locks::{Condvar, Mutex, MutexGuard, RwLock};
pub use stand_ins::*;
pub use thread::spawn;

#[path = "../../../node/bounds/src"]
pub mod bounds {
    pub mod budget;
}

#[path = "../../../node/ledger/src"]
mod ledger {
    pub mod error;
    pub(crate) mod writer;
}

pub mod error {
    //! The ledger's errors beside the trait of `std`, which has a module of that name, too.

    pub use real_std::error::Error;

    pub use crate::ledger::error::*;
}

#[path = "../../../node/network/src"]
mod network {
    pub(crate) mod single_flight;
}

#[path = "../../../node/owner/src"]
pub mod owner {
    pub mod book;
}

#[path = "../../../node/src/consumer"]
pub mod consumer {
    pub mod channels;
}

#[path = "../../../node/shared/src"]
pub mod shared {
    pub mod keyed_mutex;
    pub mod keyed_semaphore;
}

/// A point at which the scheduler may run another thread.
pub(crate) fn point() {
    shuttle_engine::runtime::thread::switch_if_not_stopping();
}
