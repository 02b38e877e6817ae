//! The redb file: listings as they were signed, words of operations, owners, and what the index has yet to learn.
//!
//! `listings` service → [`Row`] · `operations` service → text · `owners` address → [`OwnerRow`] · `unindexed`
//! slot → () · `about` name → value. Only the writer writes.

use std::{
    collections::BTreeSet,
    fs, io,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use farthing_protocol::{Address, Listing, ServiceId, Signed, sync::ItemName, wire};
use minicbor::{CborLen, Decode, Encode};
use parking_lot::RwLock;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use crate::{
    error::{CatalogError, Result},
    listings::{Came, Listings, Owner, Slot},
    options::Options,
    verdict::Bringer,
};

const LISTINGS: TableDefinition<&[u8; 16], &[u8]> = TableDefinition::new("listings");
const OPERATIONS: TableDefinition<&[u8; 16], &str> = TableDefinition::new("operations");
const OWNERS: TableDefinition<&[u8; 20], &[u8]> = TableDefinition::new("owners");
const UNINDEXED: TableDefinition<u32, ()> = TableDefinition::new("unindexed");
const ABOUT: TableDefinition<&str, &str> = TableDefinition::new("about");

/// Of the tables above. Another one is moved aside: the network has it all.
const SCHEMA: &str = "2";
/// Pages kept in memory. Listings are read one by one; what is hot is small.
const CACHE_BYTES: usize = 4 * 1024 * 1024;

/// A listing as it is stored.
#[derive(Debug, Encode, Decode, CborLen)]
#[cbor(map)]
pub(crate) struct Row {
    #[n(0)]
    pub(crate) signed: Signed<Listing>,
    #[n(1)]
    pub(crate) first_seen_secs: u64,
    #[n(2)]
    pub(crate) slot: Slot,
    /// The neighbour that brought it first, unless its address range is known.
    #[n(3)]
    brought_by: Option<Address>,
    #[n(4)]
    brought_from: Option<IpAddr>,
    /// The time at which this version came; rows of an older version of this program tell only that of the first.
    #[n(5)]
    arrived_secs: Option<u64>,
}

impl Row {
    pub(crate) fn new(signed: Signed<Listing>, slot: Slot, came: Came) -> Self {
        let (brought_by, brought_from) = match came.brought_by {
            None => (None, None),
            Some(Bringer::Wallet(wallet)) => (Some(wallet), None),
            Some(Bringer::Range(range)) => (None, Some(range)),
        };
        let (first_seen_secs, arrived_secs) = (came.first_seen_secs, Some(came.arrived_secs));
        Self { signed, first_seen_secs, slot, brought_by, brought_from, arrived_secs }
    }

    fn came(&self) -> Came {
        Came {
            first_seen_secs: self.first_seen_secs,
            arrived_secs: self.arrived_secs.unwrap_or(u64::MAX),
            brought_by: self
                .brought_from
                .map(Bringer::Range)
                .or_else(|| self.brought_by.map(Bringer::Wallet)),
        }
    }
}

#[derive(Debug, Encode, Decode, CborLen)]
#[cbor(map)]
struct OwnerRow {
    #[n(0)]
    known: bool,
    #[n(1)]
    until_secs: u64,
}

/// The changes of one transaction.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) put: Vec<(ServiceId, Vec<u8>)>,
    pub(crate) remove: Vec<ServiceId>,
    pub(crate) operations: Vec<(ServiceId, String)>,
    pub(crate) owners: Vec<Owner>,
    pub(crate) forgotten: Vec<Address>,
    /// Slots the index has to learn anew.
    pub(crate) unindexed: BTreeSet<Slot>,
}

impl Changes {
    fn is_empty(&self) -> bool {
        self.put.is_empty()
            && self.remove.is_empty()
            && self.operations.is_empty()
            && self.owners.is_empty()
            && self.forgotten.is_empty()
            && self.unindexed.is_empty()
    }
}

/// The file.
pub(crate) struct Store {
    path: PathBuf,
    /// `None` after the storage failed, until the file can be opened again.
    database: RwLock<Option<Database>>,
    /// The last transaction failed, or the file could not be opened again.
    failed: AtomicBool,
    epoch: String,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({})", self.epoch)
    }
}

impl Store {
    /// Opens the file and fills a listings from it. A file that cannot be read, or is another network's, is moved
    /// aside, a new one begun, and the reason told.
    pub(crate) fn open(path: &Path, options: &Options) -> Result<(Self, Listings, Option<String>)> {
        // As a power cut leaves it; the library takes it for a new one.
        let was_empty = is_empty_file(path);
        match attempt(path, || Self::open_existing(path, options)) {
            Ok((store, listings)) => {
                let notice =
                    "the catalog's file was empty, as after a power cut; it is filled from the network again";
                Ok((store, listings, was_empty.then(|| notice.to_owned())))
            }
            Err(error @ (CatalogError::InUse | CatalogError::Folder { .. })) => Err(error),
            Err(error) => {
                let aside = move_aside(path).map_err(CatalogError::folder(path))?;
                let (store, listings) = Self::open_existing(path, options)?;
                let notice = format!(
                    "the catalog could not be read ({}) and was moved to {}; a new one is filled from the network",
                    cause_of(&error),
                    aside.display()
                );
                Ok((store, listings, Some(notice)))
            }
        }
    }

    fn open_existing(path: &Path, options: &Options) -> Result<(Self, Listings)> {
        let database = open_file(path)?;
        let transaction = database.begin_write()?;
        // A database of something else that was put in this one's place.
        let has_tables = transaction.list_tables()?.next().is_some();
        let epoch = {
            let mut about = transaction.open_table(ABOUT)?;
            for (name, expected) in [("schema", SCHEMA), ("network", &options.network)] {
                let found = about.get(name)?.map(|found| found.value().to_owned());
                match found {
                    None if has_tables => {
                        return Err(CatalogError::Foreign);
                    }
                    None => drop(about.insert(name, expected)?),
                    Some(found) if found == expected => {}
                    Some(found) => {
                        return Err(CatalogError::Damaged(format!("its {name} is {found}, not {expected}")));
                    }
                }
            }
            let known = about.get("epoch")?.map(|epoch| epoch.value().to_owned());
            match known {
                Some(epoch) => epoch,
                None => {
                    let epoch = new_epoch();
                    about.insert("epoch", epoch.as_str())?;
                    epoch
                }
            }
        };
        transaction.open_table(LISTINGS)?;
        transaction.open_table(OPERATIONS)?;
        transaction.open_table(OWNERS)?;
        transaction.open_table(UNINDEXED)?;
        transaction.commit()?;
        let (database, failed) = (RwLock::new(Some(database)), AtomicBool::new(false));
        let store = Self { path: path.to_owned(), database, failed, epoch };
        let listings = store.load(options)?;
        Ok((store, listings))
    }

    /// Marks this very file, so that an index of another one is recognised.
    pub(crate) fn epoch(&self) -> &str {
        &self.epoch
    }

    /// Fills a listings. What was verified before it was stored is not verified again here, but when it is handed
    /// out.
    pub(crate) fn load(&self, options: &Options) -> Result<Listings> {
        let (mut listings, moved) = self.with(|database| read_all(database, options))?;
        listings.restored();
        self.apply(&moved)?;
        Ok(listings)
    }

    /// Opens the file again after the storage failed: the library uses no file again that failed once.
    pub(crate) fn reopen(&self) -> Result<()> {
        let mut database = self.database.write();
        // First: the file is locked while it is open.
        drop(database.take());
        let opened = attempt(&self.path, || open_file(&self.path));
        if opened.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        *database = Some(opened?);
        Ok(())
    }

    /// Tells whether the last transaction failed, or the file could not be opened again.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Returns whether the file failed and could not be opened again.
    pub(crate) fn is_closed(&self) -> bool {
        self.database.read().is_none()
    }

    /// Leaves the file as one that failed.
    #[cfg(test)]
    pub(crate) fn fail(&self) {
        drop(self.database.write().take());
    }

    /// Works with the file, which is not opened again meanwhile.
    fn with<T>(&self, work: impl FnOnce(&Database) -> Result<T>) -> Result<T> {
        match &*self.database.read() {
            Some(database) => work(database),
            None => Err(CatalogError::Storage(Arc::new(redb::Error::PreviousIo))),
        }
    }

    /// Writes everything or nothing; durable when it returns.
    pub(crate) fn apply(&self, changes: &Changes) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let written = self.with(|database| write_all(database, changes));
        self.failed.store(written.is_err(), Ordering::Relaxed);
        written
    }

    /// The index has learned these.
    pub(crate) fn indexed(&self, slots: &BTreeSet<Slot>) -> Result<()> {
        self.with(|database| {
            let transaction = database.begin_write()?;
            {
                let mut unindexed = transaction.open_table(UNINDEXED)?;
                for slot in slots {
                    unindexed.remove(slot)?;
                }
            }
            transaction.commit()?;
            Ok(())
        })
    }

    pub(crate) fn unindexed(&self) -> Result<BTreeSet<Slot>> {
        self.with(|database| {
            let transaction = database.begin_read()?;
            let table = transaction.open_table(UNINDEXED)?;
            table.iter()?.map(|slot| Ok(slot?.0.value())).collect()
        })
    }

    pub(crate) fn row(&self, service: ServiceId) -> Result<Option<Row>> {
        Ok(self.rows(&[service])?.into_iter().next().flatten())
    }

    /// One for each service, in their order.
    pub(crate) fn rows(&self, services: &[ServiceId]) -> Result<Vec<Option<Row>>> {
        self.with(|database| {
            let transaction = database.begin_read()?;
            let table = transaction.open_table(LISTINGS)?;
            services
                .iter()
                .map(|service| table.get(service.as_bytes())?.map(|row| decode(row.value())).transpose())
                .collect()
        })
    }

    /// Words of the service's operations.
    pub(crate) fn operations(&self, services: &[ServiceId]) -> Result<Vec<String>> {
        self.with(|database| {
            let transaction = database.begin_read()?;
            let table = transaction.open_table(OPERATIONS)?;
            let text = |service: &ServiceId| {
                Ok(table.get(service.as_bytes())?.map(|text| text.value().to_owned()).unwrap_or_default())
            };
            services.iter().map(text).collect()
        })
    }
}

/// Opens the file, which is created if it is missing.
fn open_file(path: &Path) -> Result<Database> {
    Ok(Database::builder().set_cache_size(CACHE_BYTES).create(path)?)
}

/// Reads every owner and listing, and notes what has another slot than is stored.
fn read_all(database: &Database, options: &Options) -> Result<(Listings, Changes)> {
    let mut listings = Listings::new(options);
    let transaction = database.begin_read()?;
    for row in transaction.open_table(OWNERS)?.iter()? {
        let (address, row) = row?;
        let row: OwnerRow = decode(row.value())?;
        listings.owners.restore(Address::from_bytes(*address.value()), row.known, row.until_secs);
    }
    let mut moved = Changes::default();
    for row in transaction.open_table(LISTINGS)?.iter()? {
        let (_, row) = row?;
        let row: Row = decode(row.value())?;
        let listing = row.signed.claimed().map_err(|e| CatalogError::Damaged(e.to_string()))?;
        let item = ItemName::of(&row.signed.content_hash());
        let slot = listings.restore(row.slot, &listing, item, row.came());
        if slot != row.slot {
            moved.put.push((listing.service, wire::encode(&Row { slot, ..row })));
            moved.unindexed.insert(slot);
        }
    }
    Ok((listings, moved))
}

fn write_all(database: &Database, changes: &Changes) -> Result<()> {
    let transaction = database.begin_write()?;
    {
        let mut listings = transaction.open_table(LISTINGS)?;
        let mut operations = transaction.open_table(OPERATIONS)?;
        for service in &changes.remove {
            listings.remove(service.as_bytes())?;
            operations.remove(service.as_bytes())?;
        }
        for (service, row) in &changes.put {
            listings.insert(service.as_bytes(), row.as_slice())?;
        }
        for (service, text) in &changes.operations {
            operations.insert(service.as_bytes(), text.as_str())?;
        }
        let mut owners = transaction.open_table(OWNERS)?;
        for owner in &changes.owners {
            let row = wire::encode(&OwnerRow { known: owner.known, until_secs: owner.until_secs });
            owners.insert(owner.address.as_bytes(), row.as_slice())?;
        }
        for owner in &changes.forgotten {
            owners.remove(owner.as_bytes())?;
        }
        let mut unindexed = transaction.open_table(UNINDEXED)?;
        for slot in &changes.unindexed {
            unindexed.insert(slot, ())?;
        }
    }
    transaction.commit()?;
    Ok(())
}

fn decode<'b, T: Decode<'b, ()>>(bytes: &'b [u8]) -> Result<T> {
    wire::decode(bytes).map_err(|e| CatalogError::Damaged(e.to_string()))
}

/// Runs `open`; a panic over a damaged file is one more way to say that it is damaged. The name of the thread is how
/// the program knows that such a panic is dealt with, and need not be printed.
pub(crate) fn attempt<T: Send>(path: &Path, open: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| {
        let opening = thread::Builder::new().name("opening".to_owned()).spawn_scoped(scope, open);
        let opened = opening.map_err(CatalogError::folder(path))?.join();
        opened.unwrap_or_else(|_| Err(CatalogError::Damaged("reading it failed".to_owned())))
    })
}

/// The cause in words, for a notice.
pub(crate) fn cause_of(error: &CatalogError) -> String {
    match error {
        CatalogError::Storage(cause) => cause.to_string(),
        CatalogError::Damaged(cause) => cause.clone(),
        other => other.to_string(),
    }
}

/// Returns whether there is a file without a byte in it.
pub(crate) fn is_empty_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.is_file() && about.len() == 0)
}

/// Renames `path` to the first free `path.damaged-<n>`; of ten, the last is overwritten.
pub(crate) fn move_aside(path: &Path) -> io::Result<PathBuf> {
    let aside = |n: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".damaged-{n}"));
        PathBuf::from(name)
    };
    let free = (1..10).map(aside).find(|aside| !aside.exists()).unwrap_or_else(|| aside(10));
    fs::rename(path, &free)?;
    Ok(free)
}

/// A number that no two files share. The standard library's random keys are random enough for that.
fn new_epoch() -> String {
    use std::hash::{BuildHasher, RandomState};
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}
