//! The machine of one node: a disk whose power may go in the middle of a commit, and what a start finds on it.

use farthing_ledger::{Ledger, LedgerError};

use crate::disk::{Disk, Event, Survival, apply, cut};

/// One disk after the other: a start copies what the one before kept, so that a ledger of before writes to none of them.
#[derive(Debug, Default)]
pub struct Machine {
    disk: Disk,
    /// The disk at the time when it was decided that the power goes. Its trace has what was written since.
    before: Option<Vec<u8>>,
}

impl Machine {
    /// An empty disk, and the ledger on it.
    pub fn new() -> (Self, Ledger) {
        let machine = Self::default();
        let ledger = Ledger::with_backend(machine.disk.clone()).unwrap();
        (machine, ledger)
    }

    /// Lets the power go after so many further writes and syncs of the disk, in whatever commit they are.
    pub fn lose_power_after(&mut self, operations: u64) {
        self.before = Some(self.disk.bytes());
        self.disk.start_trace();
        self.disk.fail_after(operations);
    }

    /// Starts again after a death. Of what was not synced then, the disk has what survived.
    pub fn start_again(&mut self, survival: Survival) -> Ledger {
        let kept = match self.before.take() {
            // Between two commits everything is synced.
            None => self.disk.bytes(),
            Some(before) => kept(before, &self.disk.take_trace(), survival),
        };
        self.disk = Disk::new(kept);
        Ledger::with_backend(self.disk.clone()).unwrap()
    }
}

/// What a disk has after a death, of what it had at a time when all was synced and of what was written since.
pub fn kept(mut durable: Vec<u8>, trace: &[Event], survival: Survival) -> Vec<u8> {
    let last_sync = trace.iter().rposition(|event| matches!(event, Event::Sync));
    let (synced, unsynced) = trace.split_at(last_sync.map_or(0, |at| at + 1));
    synced.iter().for_each(|event| apply(&mut durable, event));
    cut(&durable, unsynced, survival)
}

/// What was stored; nothing when the power is gone, and whoever stored it dies before it does anything else.
pub fn unless_dead<T>(stored: Result<T, LedgerError>) -> Option<T> {
    match stored {
        Ok(stored) => Some(stored),
        Err(LedgerError::Closed(_)) => None,
        Err(error) => panic!("{error}"),
    }
}
