//! The record store as the directory (Kademlia) sees it.
//!
//! Records arrive here only from this node itself; what peers put is filtered by the swarm's task first.
//! Provider records are not kept: the directory maps wallets to node records and nothing else.

use std::{borrow::Cow, iter};

use farthing_protocol::{Address, wire, wire::NetworkName};
use libp2p::{
    PeerId,
    kad::{
        ProviderRecord, Record, RecordKey,
        store::{Error, RecordStore, Result},
    },
};

use super::{SharedRecords, decode};

/// Adapts [`SharedRecords`] to the directory's trait.
#[derive(Debug)]
pub(crate) struct DirectoryStore {
    records: SharedRecords,
    own: Address,
    network: NetworkName,
}

impl DirectoryStore {
    pub(crate) fn new(records: SharedRecords, own: Address, network: NetworkName) -> Self {
        Self { records, own, network }
    }
}

/// The wallet whose record is filed under `key`.
pub(crate) fn owner_of(key: &RecordKey) -> Option<Address> {
    let key = key.as_ref();
    let owner = Address::from_bytes(key.last_chunk().copied()?);
    (wire::record_key(owner) == key).then_some(owner)
}

impl RecordStore for DirectoryStore {
    type RecordsIter<'a> = iter::Empty<Cow<'a, Record>>;
    type ProvidedIter<'a> = iter::Empty<Cow<'a, ProviderRecord>>;

    fn get(&self, key: &RecordKey) -> Option<Cow<'_, Record>> {
        let record = self.records.get(owner_of(key)?)?;
        Some(Cow::Owned(Record::new(key.clone(), wire::encode(&record.to_signed()))))
    }

    fn put(&mut self, record: Record) -> Result<()> {
        let owner = owner_of(&record.key).ok_or(Error::ValueTooLarge)?;
        let record = decode(&record.value, Some(owner), &self.network).map_err(|_| Error::ValueTooLarge)?;
        let mut records = self.records.lock();
        // The publisher stores its record before it hands it to the directory.
        if records.get(owner).is_some_and(|held| held.seq == record.seq) {
            return Ok(());
        }
        records.insert(record, self.own, crate::now_secs()).map_err(|_| Error::MaxRecords)
    }

    fn remove(&mut self, key: &RecordKey) {
        if let Some(owner) = owner_of(key) {
            self.records.lock().remove(owner);
        }
    }

    /// Nothing: owners publish their records again themselves, so the directory's own job does not run.
    fn records(&self) -> Self::RecordsIter<'_> {
        iter::empty()
    }

    fn add_provider(&mut self, _: ProviderRecord) -> Result<()> {
        Err(Error::MaxProvidedKeys)
    }

    fn providers(&self, _: &RecordKey) -> Vec<ProviderRecord> {
        Vec::new()
    }

    fn provided(&self) -> Self::ProvidedIter<'_> {
        iter::empty()
    }

    fn remove_provider(&mut self, _: &RecordKey, _: &PeerId) {}
}
