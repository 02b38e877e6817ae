//! The file under the database, left alone from its first failed write on.
//!
//! redb refuses reads as well as writes after an I/O error. A node whose disk is full must still show its
//! books, so this wrapper keeps the failure to itself: it remembers it in [`Failure`], keeps what the failing
//! transaction still writes in memory, and lets the database finish. The writer asks [`Failure`] after every
//! commit and never publishes a snapshot of a failed one.
//!
//! Invariant: after the first failure the file does not change, exactly as if the power had gone then. What
//! stays in memory is bounded by one transaction, because the writer starts no other.

use std::{
    io,
    ops::Bound,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use redb::{BackendError, StorageBackend};

/// The first failed write, shared between the backend and the writer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failure(Arc<OnceLock<Arc<io::Error>>>);

impl Failure {
    pub(crate) fn get(&self) -> Option<Arc<io::Error>> {
        self.0.get().cloned()
    }

    fn happened(&self) -> bool {
        self.0.get().is_some()
    }

    fn set(&self, error: io::Error) {
        // Only the first failure is the cause; later ones follow from it.
        let _ = self.0.set(Arc::new(error));
    }
}

/// A backend whose writes go to memory once one of them has failed.
#[derive(Debug)]
pub(crate) struct FailClosed<B> {
    inner: B,
    failure: Failure,
    after_failure: Mutex<Overlay>,
}

/// Writes that did not reach the file, in order, and the length they pretend.
#[derive(Debug, Default)]
struct Overlay {
    writes: Vec<(u64, Vec<u8>)>,
    len: u64,
}

impl<B: StorageBackend> FailClosed<B> {
    pub(crate) fn new(inner: B, failure: Failure) -> Self {
        Self { inner, failure, after_failure: Mutex::default() }
    }

    /// Notes the failure. `len` is what the database believes the length to be.
    fn fail(&self, error: io::Error) {
        let mut overlay = self.after_failure.lock();
        if !self.failure.happened() {
            overlay.len = self.inner.len().unwrap_or(0);
            self.failure.set(error);
        }
    }

    fn write_to_memory(&self, offset: u64, data: &[u8]) {
        let mut overlay = self.after_failure.lock();
        overlay.len = overlay.len.max(offset + data.len() as u64);
        overlay.writes.push((offset, data.to_vec()));
    }

    fn read_with_overlay(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let overlay = self.after_failure.lock();
        let end = offset + out.len() as u64;
        if end > overlay.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // The file may be shorter than the overlay pretends; what is missing reads as zero.
        let on_disk = usize::try_from(self.inner.len()?.saturating_sub(offset)).unwrap_or(usize::MAX);
        let on_disk = on_disk.min(out.len());
        self.inner.read(offset, &mut out[..on_disk])?;
        out[on_disk..].fill(0);
        for (start, data) in &overlay.writes {
            copy_overlap(*start, data, offset, out);
        }
        Ok(())
    }
}

/// Copies the part of `data`, which begins at `start`, that lies within `out`, which begins at `offset`.
fn copy_overlap(start: u64, data: &[u8], offset: u64, out: &mut [u8]) {
    let from = start.max(offset);
    let to = (start + data.len() as u64).min(offset + out.len() as u64);
    if from >= to {
        return;
    }
    let index = |at: u64, base: u64| usize::try_from(at - base).unwrap_or(usize::MAX);
    out[index(from, offset)..index(to, offset)].copy_from_slice(&data[index(from, start)..index(to, start)]);
}

impl<B: StorageBackend> StorageBackend for FailClosed<B> {
    fn len(&self) -> io::Result<u64> {
        if self.failure.happened() { Ok(self.after_failure.lock().len) } else { self.inner.len() }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if self.failure.happened() {
            self.read_with_overlay(offset, out)
        } else {
            self.inner.read(offset, out)
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if !self.failure.happened() {
            match self.inner.set_len(len) {
                Ok(()) => return Ok(()),
                Err(error) => self.fail(error),
            }
        }
        self.after_failure.lock().len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        if !self.failure.happened()
            && let Err(error) = self.inner.sync_data()
        {
            self.fail(error);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if !self.failure.happened() {
            match self.inner.write(offset, data) {
                Ok(()) => return Ok(()),
                Err(error) => self.fail(error),
            }
        }
        self.write_to_memory(offset, data);
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.query_lock_range(start, end)
    }
}
