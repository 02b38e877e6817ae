//! Records of where a wallet address can be reached: signed, sequenced, expiring.

use minicbor::{CborLen, Decode, Encode, bytes::ByteVec};

use crate::{
    Address, Hash, PublicKey, limits,
    signed::{Document, InvalidDocument},
};

/// Reached from outside over TCP; verified by dial-back.
pub const FLAG_TCP_VERIFIED: u32 = 1;
/// Reached from outside over QUIC; verified by dial-back.
pub const FLAG_QUIC_VERIFIED: u32 = 1 << 1;
/// Has services to sell. The bit before it is kept for nodes that relay for others.
pub const FLAG_ACCEPTS_CALLS: u32 = 1 << 3;
/// Keeps the listings of all shards, and answers searches of those that keep less.
pub const FLAG_KEEPS_ALL: u32 = 1 << 4;
/// Takes calls on streams that are kept (`call/2`), so that a first call need not wait for the node to say so.
pub const FLAG_CALL_STREAMS: u32 = 1 << 5;
/// Pays the gas of payers without ETH, within limits of its own. Without it, nobody asks.
pub const FLAG_SPONSORS: u32 = 1 << 6;

/// The record that a node publishes in the directory, keyed by its wallet address. Usually 256 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct NodeRecord {
    /// Nodes of one network ignore records of another.
    #[n(0)]
    pub network: String,
    #[n(1)]
    pub public_key: PublicKey,
    /// Reserved for a network key delegated by the wallet.
    #[n(2)]
    pub net_key: Option<PublicKey>,
    /// Strictly rising; the highest wins.
    #[n(3)]
    pub seq: u64,
    /// Seconds since the Unix epoch.
    #[n(4)]
    pub issued_secs: u64,
    #[n(5)]
    pub expires_secs: u64,
    /// `FLAG_…`
    #[n(6)]
    pub flags: u32,
    #[n(7)]
    pub protocol_min: u16,
    #[n(8)]
    pub protocol_max: u16,
    /// Binary multiaddresses, best first.
    #[n(9)]
    pub addresses: Vec<ByteVec>,
    #[n(10)]
    pub listings_count: u32,
    /// Hash over the owner's current listings; a change tells others to fetch.
    #[cbor(n(11), with = "minicbor::bytes")]
    pub listings_root: Hash,
    /// `farthing/0.1.0`
    #[n(12)]
    pub agent: String,
}

impl NodeRecord {
    /// Checks that the record may be used at `now_secs`, allowing for clocks that differ.
    ///
    /// # Errors
    /// [`InvalidDocument`] when it is from the future or expired.
    pub fn check_time(&self, now_secs: u64) -> Result<(), InvalidDocument> {
        if self.issued_secs > now_secs.saturating_add(limits::CLOCK_SKEW_SECS_MAX) {
            return Err(InvalidDocument::new("issued", "lies in the future; check both nodes' clocks"));
        }
        if self.has_expired(now_secs) {
            return Err(InvalidDocument::new("expires", "has passed"));
        }
        Ok(())
    }

    /// Tells whether its time is over at `now_secs`, in seconds since the Unix epoch.
    pub const fn has_expired(&self, now_secs: u64) -> bool {
        self.expires_secs <= now_secs
    }
}

impl Document for NodeRecord {
    const DOMAIN: &'static str = "node record 1";
    const BYTES_MAX: usize = limits::RECORD_BYTES_MAX;

    fn signer(&self) -> Address {
        self.public_key.address()
    }

    fn validate(&self) -> Result<(), InvalidDocument> {
        if self.network.is_empty() || self.network.len() > limits::NETWORK_NAME_BYTES_MAX {
            return Err(InvalidDocument::new("network", "must name the network"));
        }
        if self.expires_secs < self.issued_secs
            || self.expires_secs - self.issued_secs > limits::RECORD_LIFETIME_SECS_MAX
        {
            return Err(InvalidDocument::new("expires", "must be within 48 hours of issue"));
        }
        if self.addresses.len() > limits::RECORD_ADDRESSES_MAX {
            return Err(InvalidDocument::new("addresses", "must be 8 at most"));
        }
        if self.addresses.iter().any(|address| address.len() > limits::RECORD_ADDRESS_BYTES_MAX) {
            return Err(InvalidDocument::new("addresses", "must have 128 bytes each at most"));
        }
        if self.agent.len() > 64 {
            return Err(InvalidDocument::new("agent", "must have 64 bytes at most"));
        }
        Ok(())
    }
}
