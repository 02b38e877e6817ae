//! A disk in memory that remembers every operation, can fail, can hold a sync back, and can be cut.
//!
//! Between two syncs a real disk may keep any part of what was written: [`cut`] makes such images.

#![expect(clippy::cast_possible_truncation, reason = "offsets of a disk that fits in memory")]
#![allow(dead_code, reason = "no test program uses all of it")]

use std::{io, sync::Arc};

use parking_lot::{Condvar, Mutex, MutexGuard};
use redb::StorageBackend;

use crate::random::Random;

/// What reached the disk, in order.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Write(u64, Vec<u8>),
    SetLen(u64),
    Sync,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    trace: Option<Vec<Event>>,
    /// Writes, length changes and syncs so far.
    operations: u64,
    fail_at: Option<u64>,
    syncs_held: bool,
    syncs_waiting: u64,
}

/// Clones are the same disk; dropping a ledger leaves it as it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk(Arc<(Mutex<State>, Condvar)>);

impl Disk {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let disk = Self::default();
        disk.state().bytes = bytes;
        disk
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.state().bytes.clone()
    }

    pub(crate) fn operations(&self) -> u64 {
        self.state().operations
    }

    /// From the `number`-th operation from now on, every one fails as on a full disk.
    pub(crate) fn fail_after(&self, number: u64) {
        let mut state = self.state();
        state.fail_at = Some(state.operations + number);
    }

    pub(crate) fn start_trace(&self) {
        self.state().trace = Some(Vec::new());
    }

    pub(crate) fn trace_len(&self) -> usize {
        self.state().trace.as_ref().map_or(0, Vec::len)
    }

    pub(crate) fn take_trace(&self) -> Vec<Event> {
        self.state().trace.take().unwrap()
    }

    pub(crate) fn hold_syncs(&self, held: bool) {
        self.state().syncs_held = held;
        self.0.1.notify_all();
    }

    /// Whether the writer stands before a held sync.
    pub(crate) fn is_waiting_to_sync(&self) -> bool {
        self.state().syncs_waiting > 0
    }

    fn apply(&self, event: Event) -> io::Result<()> {
        let mut state = self.state();
        if state.fail_at.is_some_and(|at| state.operations >= at) {
            state.operations += 1;
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.operations += 1;
        apply(&mut state.bytes, &event);
        if let Some(trace) = &mut state.trace {
            trace.push(event);
        }
        Ok(())
    }
}

pub(crate) fn apply(bytes: &mut Vec<u8>, event: &Event) {
    match event {
        Event::Write(offset, data) => {
            let (start, end) = (*offset as usize, *offset as usize + data.len());
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[start..end].copy_from_slice(data);
        }
        Event::SetLen(len) => bytes.resize(*len as usize, 0),
        Event::Sync => {}
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state();
        let start = offset as usize;
        let range = state.bytes.get(start..start + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(range);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.apply(Event::SetLen(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state();
        state.syncs_waiting += 1;
        while state.syncs_held {
            self.0.1.wait(&mut state);
        }
        state.syncs_waiting -= 1;
        drop(state);
        self.apply(Event::Sync)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.apply(Event::Write(offset, data.to_vec()))
    }
}

/// What of the unsynced writes a power cut leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Survival {
    /// Nothing that was not synced.
    None,
    /// Everything, as when only the process died.
    All,
    /// A subset chosen by the seed, the writes among it possibly torn at any byte.
    Some(u64),
}

/// Applies to `durable` what `survival` leaves of `unsynced`.
pub(crate) fn cut(durable: &[u8], unsynced: &[Event], survival: Survival) -> Vec<u8> {
    let mut bytes = durable.to_vec();
    let mut random = match survival {
        Survival::None => return bytes,
        Survival::All => None,
        Survival::Some(seed) => Some(Random::new(seed)),
    };
    for event in unsynced {
        match (event, random.as_mut().map(|random| (random.below(4), random))) {
            (event, None | Some((0 | 1, _))) => apply(&mut bytes, event),
            (Event::Write(offset, data), Some((2, random))) => {
                // Torn: a range inside it arrived. No byte outside it changes.
                let start = random.below(data.len());
                let end = start + 1 + random.below(data.len() - start);
                apply(&mut bytes, &Event::Write(offset + start as u64, data[start..end].to_vec()));
            }
            _ => {}
        }
    }
    bytes
}
