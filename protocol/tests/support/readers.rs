//! Everything of this crate that reads bytes from strangers, called one after the other.

use farthing_protocol::{
    CallMessage, CallReply, ChannelConfig, Listing, NodeRecord, Receipt, Refusal, Signed,
    agreement::RecordsMessage,
    info::{InfoRequest, InfoResponse},
    listing::Details,
    reach::{ReachRequest, ReachResponse},
    sync::SyncMessage,
    wire,
};
use minicbor::{Decode, Encode};

/// One reader of bytes, and what it is called. It tells whether it accepts them.
pub type Reader = (&'static str, fn(&[u8]) -> bool);

/// Every reader. What one accepts is written and read once more, and must stay the same.
pub const READERS: [Reader; 15] = [
    ("CallMessage", reads::<CallMessage>),
    ("CallReply", reads::<CallReply>),
    ("Refusal", reads::<Refusal>),
    ("InfoRequest", reads::<InfoRequest>),
    ("InfoResponse", reads::<InfoResponse>),
    ("SyncMessage", reads::<SyncMessage>),
    ("RecordsMessage", reads::<RecordsMessage>),
    ("ReachRequest", reads::<ReachRequest>),
    ("ReachResponse", reads::<ReachResponse>),
    ("Signed<NodeRecord>", reads::<Signed<NodeRecord>>),
    ("Signed<Listing>", reads::<Signed<Listing>>),
    ("NodeRecord", reads::<NodeRecord>),
    ("Listing", reads::<Listing>),
    ("Details", reads::<Details>),
    ("payment types", |bytes| {
        let is_receipt = reads::<Receipt>(bytes);
        reads::<ChannelConfig>(bytes) || is_receipt
    }),
];

fn reads<T: Encode<()> + for<'b> Decode<'b, ()> + PartialEq + std::fmt::Debug>(bytes: &[u8]) -> bool {
    read::<T>(bytes).is_some()
}

/// Reads a value. What is accepted is written and read once more, and must stay the same.
pub fn read<T: Encode<()> + for<'b> Decode<'b, ()> + PartialEq + std::fmt::Debug>(bytes: &[u8]) -> Option<T> {
    let value = wire::decode::<T>(bytes).ok()?;
    let canonical = wire::encode(&value);
    assert!(canonical.len() <= bytes.len(), "a canonical encoding is the shortest");
    assert_eq!(wire::decode::<T>(&canonical).as_ref(), Ok(&value));
    Some(value)
}
