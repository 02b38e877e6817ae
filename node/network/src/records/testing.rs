//! Wallets by number, and records as their nodes publish them.

use farthing_protocol::{NodeRecord, SecretKey, Signed};

pub(crate) fn key(n: u32) -> SecretKey {
    let mut bytes = [1; 32];
    bytes[..4].copy_from_slice(&n.to_be_bytes());
    SecretKey::from_bytes(&bytes).unwrap()
}

pub(crate) fn record(n: u32, seq: u64, issued_secs: u64, lifetime_secs: u64) -> NodeRecord {
    NodeRecord {
        network: "local-test".to_owned(),
        public_key: key(n).public_key(),
        net_key: None,
        seq,
        issued_secs,
        expires_secs: issued_secs + lifetime_secs,
        flags: 0,
        protocol_min: 1,
        protocol_max: 1,
        addresses: Vec::new(),
        listings_count: 0,
        listings_root: [0; 32],
        agent: "farthing/0.1.0".to_owned(),
    }
}

pub(crate) fn signed(n: u32, seq: u64, issued_secs: u64, lifetime_secs: u64) -> Signed<NodeRecord> {
    Signed::sign(&record(n, seq, issued_secs, lifetime_secs), &key(n)).unwrap()
}
