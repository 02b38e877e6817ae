//! Details and samples by hash: a cache on disk that forgets what was used longest ago.
//!
//! A redb file of its own. Missing content is fetched again by whoever needs it, so a damaged file is simply
//! begun anew.

use std::{fs, path::Path};

use farthing_protocol::{Hash, keccak256, limits};
use parking_lot::Mutex;
use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition, TableHandle};

use crate::{
    error::{CatalogError, Result},
    store::{attempt, cause_of, is_empty_file, move_aside},
};

/// The least size that a blob counts: its rows, and its place in the index in memory, cost as much however small it is.
const BLOB_COST_MIN: u64 = 512;
const BLOBS: TableDefinition<&[u8; 32], &[u8]> = TableDefinition::new("blobs");
/// Size in bytes and when it was last used, as a count of uses.
const USES: TableDefinition<&[u8; 32], (u64, u64)> = TableDefinition::new("uses");

/// Pages kept in memory; blobs are read whole and seldom twice.
const CACHE_BYTES: usize = 1024 * 1024;

/// The cache.
pub(crate) struct Content {
    database: Database,
    bytes_max: u64,
    uses: Mutex<Uses>,
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Content(at most {} bytes)", self.bytes_max)
    }
}

/// The time of each blob's last use. In memory; put to disk with the next blob, because a use that is forgotten in a
/// crash costs one fetch at most.
#[derive(Debug, Default)]
struct Uses {
    by_hash: std::collections::HashMap<Hash, (u64, u64)>,
    by_time: std::collections::BTreeMap<u64, Hash>,
    bytes: u64,
    last: u64,
    touched: std::collections::HashSet<Hash>,
}

impl Content {
    /// Opens the file, or begins a new one when it cannot be read, and says so.
    pub(crate) fn open(path: &Path, bytes_max: u64) -> Result<(Self, Option<String>)> {
        let was_empty = is_empty_file(path);
        match attempt(path, || Self::open_existing(path, bytes_max)) {
            Ok(content) => {
                let notice = "the cache of details was empty, as after a power cut; a new one is made";
                Ok((content, was_empty.then(|| notice.to_owned())))
            }
            Err(error @ CatalogError::InUse) => Err(error),
            Err(error) => {
                // What is no file, or not this one, was put there by somebody, who may want it back.
                let is_own = path.is_file() && !matches!(error, CatalogError::Foreign);
                if is_own { fs::remove_file(path) } else { move_aside(path).map(drop) }
                    .map_err(CatalogError::folder(path))?;
                let content = Self::open_existing(path, bytes_max)?;
                let cause = cause_of(&error);
                Ok((
                    content,
                    Some(format!("the cache of details could not be read ({cause}); a new one is made")),
                ))
            }
        }
    }

    fn open_existing(path: &Path, bytes_max: u64) -> Result<Self> {
        let database = Database::builder().set_cache_size(CACHE_BYTES).create(path)?;
        let transaction = database.begin_write()?;
        let is_another = transaction
            .list_tables()?
            .any(|table| table.name() != BLOBS.name() && table.name() != USES.name());
        if is_another {
            return Err(CatalogError::Foreign);
        }
        transaction.open_table(BLOBS)?;
        let mut uses = Uses::default();
        for row in transaction.open_table(USES)?.iter()? {
            let (hash, row) = row?;
            let (bytes, used) = row.value();
            uses.insert(*hash.value(), bytes.max(BLOB_COST_MIN), used);
        }
        transaction.commit()?;
        Ok(Self { database, bytes_max, uses: Mutex::new(uses) })
    }

    /// The content, if it is here and still what it was.
    pub(crate) fn get(&self, hash: &Hash) -> Result<Option<Vec<u8>>> {
        let transaction = self.database.begin_read()?;
        let bytes = transaction.open_table(BLOBS)?.get(hash)?.map(|bytes| bytes.value().to_vec());
        // A disk may have changed it; then it counts as missing, and is fetched and written again.
        let bytes = bytes.filter(|bytes| keccak256(&[bytes]) == *hash);
        if bytes.is_some() {
            self.uses.lock().touch(hash);
        }
        Ok(bytes)
    }

    pub(crate) fn put(&self, hash: Hash, bytes: &[u8]) -> Result<bool> {
        if bytes.len() > limits::DETAILS_BYTES_MAX || keccak256(&[bytes]) != hash {
            return Ok(false);
        }
        let size = (bytes.len() as u64).max(BLOB_COST_MIN);
        if size > self.bytes_max {
            return Ok(false);
        }
        let mut transaction = self.database.begin_write()?;
        // Losing the newest blobs in a power cut costs fetching them again; waiting for the disk costs more.
        transaction.set_durability(Durability::None)?;
        let mut uses = self.uses.lock();
        let leaving = uses.leaving(self.bytes_max.saturating_sub(size), &hash);
        {
            let mut blobs = transaction.open_table(BLOBS)?;
            let mut stored = transaction.open_table(USES)?;
            for hash in &leaving {
                blobs.remove(hash)?;
                stored.remove(hash)?;
            }
            blobs.insert(&hash, bytes)?;
            for touched in uses.touched.difference(&leaving.iter().copied().collect()) {
                if let Some(&row) = uses.by_hash.get(touched) {
                    stored.insert(touched, row)?;
                }
            }
            stored.insert(&hash, (size, uses.last + 1))?;
        }
        transaction.commit()?;
        leaving.iter().for_each(|hash| uses.remove(hash));
        let used = uses.last + 1;
        uses.insert(hash, size, used);
        uses.touched.clear();
        Ok(true)
    }
}

impl Uses {
    fn insert(&mut self, hash: Hash, bytes: u64, used: u64) {
        self.remove(&hash);
        self.by_hash.insert(hash, (bytes, used));
        self.by_time.insert(used, hash);
        self.bytes += bytes;
        self.last = self.last.max(used);
    }

    fn remove(&mut self, hash: &Hash) {
        if let Some((bytes, used)) = self.by_hash.remove(hash) {
            self.by_time.remove(&used);
            self.bytes -= bytes;
        }
        self.touched.remove(hash);
    }

    fn touch(&mut self, hash: &Hash) {
        if let Some(&(bytes, _)) = self.by_hash.get(hash) {
            self.insert(*hash, bytes, self.last + 1);
            self.touched.insert(*hash);
        }
    }

    /// Lists what has to leave, used longest ago first, until `bytes_max` are left beside `hash`.
    fn leaving(&self, bytes_max: u64, hash: &Hash) -> Vec<Hash> {
        let size = |hash: &Hash| self.by_hash.get(hash).map_or(0, |(bytes, _)| *bytes);
        let mut bytes = self.bytes - size(hash);
        let mut leaving = Vec::new();
        for oldest in self.by_time.values().filter(|oldest| *oldest != hash) {
            if bytes <= bytes_max {
                break;
            }
            bytes -= size(oldest);
            leaving.push(*oldest);
        }
        leaving
    }
}
