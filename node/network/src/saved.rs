//! Knowledge of other nodes, kept in `network.redb` across restarts: the peer book and the records.
//!
//! The file only saves time: everything in it can be learned again. So a file that cannot be read is moved
//! aside and begun anew, one that cannot be written is done without, and a crash may lose the last moments.
//! A thread of its own reads it at the start, verifying every record again, and writes what has changed from
//! time to time; the swarm never waits for a disk.

mod file;
#[cfg(feature = "memory")]
mod fill;

use std::{
    path::Path,
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use farthing_protocol::wire::NetworkName;
use parking_lot::Mutex;

use self::file::File;
#[cfg(feature = "memory")]
pub use self::fill::save_records;
use crate::{
    peer_book::PeerBook,
    records::{self, SharedRecords, StoredRecord},
};

/// The time between two writes of changes: long enough that a busy minute becomes one commit, short enough that a
/// crash forgets nobody who matters.
const WRITE_EVERY: Duration = Duration::from_secs(10);
/// Records written in one commit, so that the store is locked for a moment only.
const RECORDS_PER_WRITE_MAX: usize = 512;

/// The peer book, shared between the swarm's task and the thread that writes it. Locked for moments.
pub(crate) type SharedBook = Arc<Mutex<PeerBook>>;

/// The thread that writes. Dropping it writes what is left and waits for that.
#[derive(Debug)]
pub(crate) struct Saved {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Saved {
    /// Opens the file in `dir`, puts the peers into `book`, and begins to put the records into `records`.
    /// Blocks for as long as reading a few hundred KiB takes.
    pub(crate) fn open(
        dir: &Path,
        network: &NetworkName,
        book: &SharedBook,
        records: &SharedRecords,
    ) -> Option<Self> {
        let (file, peers) = File::open(dir, network)?;
        for (peer, known) in peers {
            book.lock().restore(peer, known);
        }
        records.lock().track_changes();
        let (stop, stopped) = sync_channel(0);
        let (network, book, records) = (network.clone(), book.clone(), records.clone());
        let work = move || {
            restore_records(&file, &network, &records);
            loop {
                let is_last = !matches!(stopped.recv_timeout(WRITE_EVERY), Err(RecvTimeoutError::Timeout));
                if let Err(error) = write_changes(&file, &book, &records) {
                    tracing::warn!(%error, "known peers are no longer saved; check the disk");
                    return;
                }
                if is_last {
                    return;
                }
            }
        };
        match std::thread::Builder::new().name("network-book".into()).spawn(work) {
            Ok(thread) => Some(Self { stop: Some(stop), thread: Some(thread) }),
            Err(error) => {
                tracing::warn!(%error, "known peers will not be saved");
                None
            }
        }
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // What was not written is learned again.
            let _ = thread.join();
        }
    }
}

/// A record counts as its owner's own word again; who passed it on last time says nothing now.
fn restore_records(file: &File, network: &NetworkName, records: &SharedRecords) {
    let stored = match file.records() {
        Ok(stored) => stored,
        Err(error) => return tracing::warn!(%error, "the stored records cannot be read"),
    };
    let now_secs = crate::now_secs();
    for (owner, StoredRecord { value, since_secs }) in stored {
        let record = records::decode(&value, Some(owner), network).ok();
        records.lock().restore(owner, record.as_ref(), since_secs, now_secs);
    }
}

fn write_changes(file: &File, book: &SharedBook, records: &SharedRecords) -> Result<(), redb::Error> {
    let mut peers = book.lock().take_changed();
    loop {
        let changed = records.lock().take_changed(RECORDS_PER_WRITE_MAX);
        if peers.is_empty() && changed.is_empty() {
            return Ok(());
        }
        file.write(&std::mem::take(&mut peers), &changed)?;
    }
}
