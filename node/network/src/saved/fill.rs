//! Records that a stopped node is to know when it starts, for measurements of nodes that know many.

use std::{io, path::Path};

use farthing_protocol::{
    NodeRecord, Signed,
    wire::{self, NetworkName},
};

use super::file::File;
use crate::records::{Change, StoredRecord};

/// Writes these records into the folder of a node that is not running, as the node does that has learned them.
///
/// # Errors
/// The file is in use, or cannot be written; or a record is none.
pub fn save_records(dir: &Path, network: &NetworkName, records: &[Signed<NodeRecord>]) -> io::Result<()> {
    let opened = File::open(dir, network);
    let (file, _) = opened.ok_or_else(|| io::Error::other("the file of known peers cannot be used"))?;
    let since_secs = crate::now_secs();
    let change = |record: &Signed<NodeRecord>| -> io::Result<Change> {
        let owner = record.claimed().map_err(io::Error::other)?.public_key.address();
        Ok((owner, Some(StoredRecord { value: wire::encode(record), since_secs })))
    };
    let changes = records.iter().map(change).collect::<io::Result<Vec<_>>>()?;
    file.write(&[], &changes).map_err(io::Error::other)
}
