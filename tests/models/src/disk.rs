//! A database as the writer sees it, and the disk under it: what is committed is in memory, and on the disk unless that fails.

use real_std::{
    cell::{Cell, RefCell},
    fmt,
    marker::PhantomData,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::point;

/// One state of the database: numbers, and the note that every promise is stored.
#[derive(Clone, Debug, Default)]
struct State {
    numbers: Vec<u64>,
    note: bool,
}

#[derive(Debug, Default)]
struct Disk {
    synced: State,
    /// What the database shows; more than the disk has once that fails.
    memory: State,
    commits: usize,
    /// The number of commits after which the disk takes no more.
    commits_max: Option<usize>,
    /// Promises whose calls have left.
    left: Vec<u64>,
}

impl Disk {
    /// Whatever ends the program now, the next start must know that a promise may be lacking.
    fn check(&self) {
        let State { numbers, note } = &self.synced;
        let lacking = self.left.iter().find(|number| !numbers.contains(number));
        assert!(
            !note || lacking.is_none(),
            "the disk says that nothing is lacking, and promise {lacking:?} is"
        );
    }
}

/// The database, and a look at its disk.
#[derive(Clone, Debug, Default)]
pub struct Database {
    disk: Arc<Mutex<Disk>>,
    pub(crate) failure: backend::Failure,
}

impl Database {
    /// One that a program has ended well, or not; and whose disk fails after so many commits.
    pub(crate) fn with(note: bool, commits_max: Option<usize>) -> Self {
        let database = Self::default();
        let state = State { note, ..State::default() };
        *database.disk() = Disk { synced: state.clone(), memory: state, commits_max, ..Disk::default() };
        database
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells whether a number is on the disk.
    pub(crate) fn holds(&self, number: u64) -> bool {
        self.disk().synced.numbers.contains(&number)
    }

    /// Numbers on the disk.
    pub(crate) fn len(&self) -> usize {
        self.disk().synced.numbers.len()
    }

    pub(crate) fn has_note(&self) -> bool {
        self.disk().synced.note
    }

    /// Takes note that the call of a promise leaves.
    pub(crate) fn leaves(&self, number: u64) {
        point();
        let mut disk = self.disk();
        disk.left.push(number);
        disk.check();
    }

    pub(crate) fn begin_write(&self) -> Result<WriteTransaction, Error> {
        let state = RefCell::new(self.disk().memory.clone());
        Ok(WriteTransaction { database: self.clone(), state })
    }
}

pub trait ReadableDatabase {
    fn begin_read(&self) -> Result<ReadTransaction, Error>;
}

impl ReadableDatabase for Database {
    fn begin_read(&self) -> Result<ReadTransaction, Error> {
        Ok(ReadTransaction(self.disk().memory.clone()))
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Durability {
    Immediate,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the database is open")]
    DatabaseAlreadyOpen,
    #[error("the disk cannot be read")]
    Unreadable,
}

pub struct WriteTransaction {
    database: Database,
    state: RefCell<State>,
}

impl WriteTransaction {
    pub(crate) fn set_durability(&mut self, _: Durability) -> Result<(), Error> {
        Ok(())
    }

    pub(crate) fn set_two_phase_commit(&mut self, _: bool) {}

    pub(crate) fn insert(&self, number: u64) {
        point();
        self.state.borrow_mut().numbers.push(number);
    }

    pub(crate) fn commit(self) -> Result<(), Error> {
        point();
        {
            let mut disk = self.database.disk();
            disk.memory = self.state.take();
            if disk.commits_max == Some(disk.commits) {
                self.database.failure.set();
            } else {
                disk.commits += 1;
                disk.synced = disk.memory.clone();
            }
            disk.check();
        }
        point();
        Ok(())
    }

    pub(crate) fn abort(self) -> Result<(), Error> {
        Ok(())
    }
}

pub struct ReadTransaction(State);

impl ReadTransaction {
    pub(crate) fn holds(&self, number: u64) -> bool {
        self.0.numbers.contains(&number)
    }

    pub(crate) fn open_table<K, V>(&self, _: tables::Table<K, V>) -> Result<ReadOnlyTable<K, V>, Error> {
        Ok(ReadOnlyTable(PhantomData))
    }
}

/// Tables are opened, and none is read.
#[derive(Debug)]
pub struct ReadOnlyTable<K, V>(PhantomData<(K, V)>);

pub trait Key {}
pub trait Value {}
impl<T> Key for T {}
impl<T> Value for T {}

pub mod backend {
    //! The first failed write.

    use real_std::{
        io,
        sync::{Arc, OnceLock},
    };

    #[derive(Clone, Debug, Default)]
    pub struct Failure(Arc<OnceLock<Arc<io::Error>>>);

    impl Failure {
        pub(crate) fn get(&self) -> Option<Arc<io::Error>> {
            self.0.get().cloned()
        }

        pub(super) fn set(&self) {
            let _ = self.0.set(Arc::new(io::Error::other("the disk is full")));
        }
    }
}

pub mod tables {
    //! The tables that the writer names, and its note.

    use super::{PhantomData, ReadTransaction, WriteTransaction};
    use crate::error::Result;

    #[derive(Debug)]
    pub struct Table<K, V>(PhantomData<(K, V)>);

    pub(crate) type Bytes = &'static [u8];

    pub(crate) const CALLS: Table<&'static [u8; 36], Bytes> = Table(PhantomData);
    pub(crate) const PROMISES: Table<&'static [u8; 16], Bytes> = Table(PhantomData);
    pub(crate) const PURCHASES: Table<&'static [u8; 16], Bytes> = Table(PhantomData);
    pub(crate) const DOCUMENTS: Table<(u8, Bytes), Bytes> = Table(PhantomData);

    pub(crate) fn note_closed(transaction: &WriteTransaction) -> Result<()> {
        transaction.state.borrow_mut().note = true;
        Ok(())
    }

    pub(crate) fn forget_closed(transaction: &WriteTransaction) -> Result<()> {
        transaction.state.borrow_mut().note = false;
        Ok(())
    }

    pub(crate) fn was_closed(transaction: &ReadTransaction) -> Result<bool> {
        Ok(transaction.0.note)
    }
}

impl fmt::Debug for WriteTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WriteTransaction")
    }
}

impl fmt::Debug for ReadTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadTransaction")
    }
}
