//! Opening a ledger.
//!
//! A new ledger is written beside its place and moved there when it is whole, so a crash while creating it
//! leaves either none or a complete one.

use std::{
    fs::{File, OpenOptions},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use redb::{Database, StorageBackend, backends::FileBackend};

use crate::{
    Ledger,
    backend::{FailClosed, Failure},
    error::OpenError,
    latest::LatestFigures,
    schema,
    writer::{Queue, Store},
};

/// Pages kept in memory. The working set is the channels, the newest calls and the inner pages of the trees;
/// a node that idles under 80 MB has this much to spare.
pub(crate) const CACHE_BYTES: usize = 32 * 1024 * 1024;

/// The way to open a ledger that may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Create it when it is missing: only for a wallet that no node has used.
    Create,
    /// Refuse when it is missing: a wallet that was used must not continue with empty books.
    Existing,
}

impl Ledger {
    /// Opens the ledger file, readable by its user alone. Blocks for as long as a repair after a power cut
    /// takes, which reads the file once.
    pub fn open(path: &Path, mode: OpenMode) -> Result<Self, OpenError> {
        let failed = |source| OpenError::File { path: path.to_owned(), source };
        if !path.try_exists().map_err(failed)? {
            match mode {
                OpenMode::Existing => return Err(OpenError::Missing { path: path.to_owned() }),
                OpenMode::Create => create(path)?,
            }
        }
        let file = open_private(path, false).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() == 0 {
            // An empty file is no ledger; redb would make one of it.
            return Err(OpenError::Missing { path: path.to_owned() });
        }
        Self::with_backend(FileBackend::new(file)?)
    }

    /// Opens a ledger over any storage, for tests; an empty storage becomes a new ledger.
    pub fn with_backend(backend: impl StorageBackend) -> Result<Self, OpenError> {
        let queue = Queue::start(open_store(backend)?).map_err(OpenError::Thread)?;
        Ok(Self::new(queue))
    }

    /// Opens a ledger over any storage, for worlds that are played on one thread: each operation is committed by whoever asks for
    /// it. Its last handle notes nothing, so that the next start finds a crash unless [`Self::end_promises`] was called.
    ///
    /// # Errors
    /// [`OpenError`], saying what to do.
    pub fn without_thread(backend: impl StorageBackend) -> Result<Self, OpenError> {
        Ok(Self::new(Queue::without_thread(open_store(backend)?)))
    }
}

fn open_store(backend: impl StorageBackend) -> Result<Arc<Store>, OpenError> {
    let failure = Failure::default();
    let database = open_database(backend, &failure)?;
    schema::prepare(&database)?;
    check(&failure)?;
    let store = Arc::new(Store::new(database, failure)?);
    match store.read(LatestFigures::read) {
        Ok(latest) => *store.latest() = latest,
        // Nothing rests on them.
        Err(error) => tracing::warn!(%error, "the figures of the last hour begin with this start"),
    }
    store.look_for_losses();
    Ok(store)
}

fn open_database(backend: impl StorageBackend, failure: &Failure) -> Result<Database, OpenError> {
    let backend = FailClosed::new(backend, failure.clone());
    let database = Database::builder().set_cache_size(CACHE_BYTES).create_with_backend(backend)?;
    check(failure)?;
    Ok(database)
}

fn check(failure: &Failure) -> Result<(), OpenError> {
    match failure.get() {
        None => Ok(()),
        Some(cause) => {
            Err(OpenError::Storage(Arc::new(redb::Error::Io(io::Error::new(cause.kind(), cause)))))
        }
    }
}

/// Writes a complete, empty ledger beside `path`, then moves it there.
fn create(path: &Path) -> Result<(), OpenError> {
    let failed = |source| OpenError::File { path: path.to_owned(), source };
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = PathBuf::from(unfinished);
    let file = open_private(&unfinished, true).map_err(failed)?;
    let failure = Failure::default();
    let database = open_database(FileBackend::new(file)?, &failure)?;
    schema::prepare(&database)?;
    check(&failure)?;
    drop(database);
    let publish = || {
        File::open(&unfinished)?.sync_all()?;
        std::fs::rename(&unfinished, path)?;
        sync_folder(path)
    };
    publish().map_err(failed)
}

pub(crate) fn open_private(path: &Path, create: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(create).truncate(create);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    // A copy restored by hand may have lost its permissions.
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(file)
}

/// Makes the new name durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(folder) = path.parent() {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}
