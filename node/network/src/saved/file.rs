//! The file itself: four tables, opened whatever state they are in.

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
};

use farthing_protocol::{Address, wire::NetworkName};
use libp2p::{Multiaddr, PeerId};
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};

use crate::{
    peer_book::KnownAddress,
    records::{Change, StoredRecord},
};

const FILE: &str = "network.redb";
/// The layout of the tables below, and the network they are about.
const FORMAT: TableDefinition<&str, &str> = TableDefinition::new("format");
const VERSION: &str = "1";
/// (peer id, multiaddress) → (successes, failures, seen in seconds since the Unix epoch).
const PEERS: TableDefinition<PeerAndAddress, (u32, u32, u64)> = TableDefinition::new("peers");
/// Wallet → its signed record, as it travels.
const RECORDS: TableDefinition<[u8; 20], &[u8]> = TableDefinition::new("records");
/// Wallet → the time since which it has been here. A record of a program that did not write it has none.
const SINCE: TableDefinition<[u8; 20], u64> = TableDefinition::new("since");
/// It is read once and written in small pieces.
const CACHE_BYTES: usize = 1024 * 1024;
/// Damaged files that are kept for whoever wants to know; more are replaced.
const DAMAGED_MAX: u32 = 3;

type PeerAndAddress = (&'static [u8], &'static [u8]);
type Peers = Vec<(PeerId, KnownAddress)>;

#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error("another program has it open")]
    Open,
    #[error("it is of another network or another version")]
    Foreign,
    #[error("{0}")]
    Damaged(#[from] redb::Error),
    #[error("reading it failed unexpectedly")]
    Panicked,
}

pub(super) struct File(Database);

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("network.redb")
    }
}

impl File {
    /// Opens or begins the file and reads the peers. Nothing when the disk does not let us; a warning says so.
    pub(super) fn open(dir: &Path, network: &NetworkName) -> Option<(Self, Peers)> {
        let path = dir.join(FILE);
        if path.metadata().is_ok_and(|about| about.is_file() && about.len() == 0) {
            // As a power cut leaves it; the library takes it for a new one.
            tracing::warn!(path = %path.display(), "the file of known peers was empty; a new one is made");
        }
        let why = match fs::create_dir_all(dir).map_err(redb::Error::Io).map_err(Unusable::from) {
            Ok(()) => match try_open(&path, network) {
                Ok(opened) => return Some(opened),
                Err(why) => why,
            },
            Err(why) => why,
        };
        if matches!(why, Unusable::Open) {
            tracing::warn!(path = %path.display(), %why, "known peers are neither read nor saved");
            return None;
        }
        match set_aside(&path).map_err(redb::Error::Io).map_err(Unusable::from) {
            Ok(kept) => {
                tracing::warn!(kept = %kept.display(), %why, "the file of known peers could not be used; a new one is \
                                                              made");
            }
            Err(error) => {
                tracing::warn!(path = %path.display(), %why, %error, "known peers are neither read nor saved");
                return None;
            }
        }
        try_open(&path, network)
            .inspect_err(|error| tracing::warn!(path = %path.display(), %error, "known peers are not saved"))
            .ok()
    }

    /// Every stored record. Strangers' bytes: to be verified.
    pub(super) fn records(&self) -> Result<Vec<(Address, StoredRecord)>, redb::Error> {
        let reading = self.0.begin_read()?;
        let (table, since) = (reading.open_table(RECORDS)?, reading.open_table(SINCE)?);
        let now_secs = crate::now_secs();
        let all = table.iter()?.map(|row| {
            let (owner, value) = row?;
            let since_secs = since.get(owner.value())?.map_or(now_secs, |since| since.value());
            let stored = StoredRecord { value: value.value().to_vec(), since_secs };
            Ok((Address::from_bytes(owner.value()), stored))
        });
        all.collect()
    }

    /// Replaces what is stored of these peers and wallets; what is empty is removed.
    pub(super) fn write(
        &self,
        peers: &[(PeerId, Vec<KnownAddress>)],
        records: &[Change],
    ) -> Result<(), redb::Error> {
        let transaction = self.0.begin_write()?;
        {
            let mut table = transaction.open_table(PEERS)?;
            for (peer, all) in peers {
                let peer = peer.to_bytes();
                let (first, last): ((&[u8], &[u8]), _) =
                    ((&peer, &[]), (peer.as_slice(), [0xff; 256].as_slice()));
                table.retain_in(first..last, |_, _| false)?;
                for known in all {
                    let row = (known.successes, known.failures, known.seen_secs);
                    table.insert((peer.as_slice(), known.address.as_ref()), row)?;
                }
            }
            let mut table = transaction.open_table(RECORDS)?;
            let mut since = transaction.open_table(SINCE)?;
            for (owner, stored) in records {
                if let Some(StoredRecord { value, since_secs }) = stored {
                    table.insert(*owner.as_bytes(), value.as_slice())?;
                    since.insert(*owner.as_bytes(), since_secs)?;
                } else {
                    table.remove(*owner.as_bytes())?;
                    since.remove(*owner.as_bytes())?;
                }
            }
        }
        transaction.commit()?;
        Ok(())
    }
}

/// Opens the file, or begins it where there is none. The library may panic over a file that was tampered with, which
/// is no reason for the node to end; the name of the thread is how the program knows that this is dealt with, and
/// need not be printed.
fn try_open(path: &Path, network: &NetworkName) -> Result<(File, Peers), Unusable> {
    thread::scope(|scope| {
        let open = || open_and_read(path, network);
        let opening = thread::Builder::new().name("opening".to_owned()).spawn_scoped(scope, open);
        opening.map_err(redb::Error::Io)?.join().unwrap_or(Err(Unusable::Panicked))
    })
}

fn open_and_read(path: &Path, network: &NetworkName) -> Result<(File, Peers), Unusable> {
    let database = Database::builder().set_cache_size(CACHE_BYTES).create(path);
    let database = database.map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => Unusable::Open,
        error => Unusable::Damaged(error.into()),
    })?;
    prepare(&database, network)?;
    let peers = read_peers(&database)?;
    Ok((File(database), peers))
}

fn prepare(database: &Database, network: &NetworkName) -> Result<(), Unusable> {
    let transaction = database.begin_write().map_err(redb::Error::from)?;
    let usable = (|| {
        // A database of something else that was put in this one's place.
        let has_tables = transaction.list_tables()?.next().is_some();
        let mut format = transaction.open_table(FORMAT)?;
        let mut is = |key: &str, wanted: &str| -> Result<bool, redb::Error> {
            let held = format.get(key)?.map(|value| value.value() == wanted);
            if held.is_none() {
                format.insert(key, wanted)?;
            }
            Ok(held.unwrap_or(!has_tables))
        };
        let is_readable = is("version", VERSION)?;
        let is_of_network = is("network", network.as_str())?;
        // Until the chain was part of it a network was named as somebody had called it. Its peers are the same;
        // records of then fail their verification and are dropped.
        let former = format.get("network")?.map(|held| held.value().to_owned());
        let is_of_former = former.as_deref().is_some_and(|held| network.parts().0 == Some(held));
        if is_of_former {
            format.insert("network", network.as_str())?;
        }
        let usable = is_readable && (is_of_network || is_of_former);
        transaction.open_table(PEERS)?;
        transaction.open_table(RECORDS)?;
        transaction.open_table(SINCE)?;
        Ok::<_, redb::Error>(usable)
    })()?;
    if !usable {
        // What is somebody else's stays as it is.
        transaction.abort().map_err(redb::Error::from)?;
        return Err(Unusable::Foreign);
    }
    Ok(transaction.commit().map_err(redb::Error::from)?)
}

fn read_peers(database: &Database) -> Result<Peers, redb::Error> {
    let table = database.begin_read()?.open_table(PEERS)?;
    let mut peers = Vec::new();
    for row in table.iter()? {
        let (key, value) = row?;
        let ((peer, address), (successes, failures, seen_secs)) = (key.value(), value.value());
        // One row that cannot be read is one address less.
        if let (Ok(peer), Ok(address)) = (PeerId::from_bytes(peer), Multiaddr::try_from(address.to_vec())) {
            peers.push((peer, KnownAddress { address, successes, failures, seen_secs }));
        }
    }
    Ok(peers)
}

/// Moves the file out of the way and says where to.
fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let name = |n: u32| path.with_file_name(format!("{FILE}.damaged-{n}"));
    let free = (1..DAMAGED_MAX).map(name).find(|name| !name.exists()).unwrap_or_else(|| name(DAMAGED_MAX));
    fs::rename(path, &free)?;
    Ok(free)
}
