//! `/farthing/<net>/records/1`: two nodes find out whose records only one of them has, or has newer, and exchange those.
//!
//! One side asks, the other answers every message with one message:
//!
//! ```text
//! Compare(…)        → Compare(…)           rounds of range comparison, until the asking side knows both differences
//! Fetch(wallets)    → Records(batch)       as many as fit into a frame; the rest is asked for again
//! Records(batch)    → Records(batch)       what the answering side has that is newer than what it was given
//! Done              → Done
//! anything          → Refused(reason)      ends the exchange
//! ```

use minicbor::{CborLen, Decode, Encode, bytes::ByteVec};

use crate::{Address, reconciliation::Item};

/// One frame. Lists are bounded by [`crate::limits::SYNC_ITEMS_MAX`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum RecordsMessage {
    /// A message of range-based set reconciliation, compressed with zstd. Its items are [`item`]s.
    #[n(0)]
    Compare(#[n(0)] ByteVec),
    /// Send me the newest records of these.
    #[n(1)]
    Fetch(#[n(0)] Vec<Address>),
    /// An array of signed records, compressed with zstd.
    #[n(2)]
    Records(#[n(0)] ByteVec),
    /// Nothing more to say.
    #[n(3)]
    Done,
    /// No, and why: one line for a person.
    #[n(4)]
    Refused(#[n(0)] String),
}

/// Writes the item that stands for a wallet's record in a comparison: its wallet, its sequence number, and four zeros.
pub fn item(owner: Address, seq: u64) -> Item {
    let mut item = [0; 32];
    item[..20].copy_from_slice(owner.as_bytes());
    item[20..28].copy_from_slice(&seq.to_be_bytes());
    item
}

/// Reads what [`item`] wrote.
pub fn read_item(item: &Item) -> (Address, u64) {
    let (mut owner, mut seq) = ([0; 20], [0; 8]);
    owner.copy_from_slice(&item[..20]);
    seq.copy_from_slice(&item[20..28]);
    (Address::from_bytes(owner), u64::from_be_bytes(seq))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_names_a_wallet_and_a_number() {
        let (owner, seq) = (Address::from_bytes([0x5a; 20]), 0x0102_0304_0506_0708);
        let written = item(owner, seq);
        assert_eq!(written[18..], [0x5a, 0x5a, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0]);
        assert_eq!(read_item(&written), (owner, seq));
    }
}
