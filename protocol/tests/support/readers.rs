//! Everything of this crate that reads bytes from strangers, called one after the other.

use farthing_protocol::{
    CallMessage, CallReply, ChannelConfig, Listing, NodeRecord, Receipt, Refusal, Signed,
    info::{InfoRequest, InfoResponse},
    listing::Details,
    reach::{ReachRequest, ReachResponse},
    sync::SyncMessage,
    wire,
};
use minicbor::{Decode, Encode};

/// One reader of bytes, and what it is called.
pub type Reader = (&'static str, fn(&[u8]));

/// Every reader. What one accepts is written and read once more, and must stay the same.
pub const READERS: [Reader; 14] = [
    ("CallMessage", read::<CallMessage>),
    ("CallReply", read::<CallReply>),
    ("Refusal", read::<Refusal>),
    ("InfoRequest", read::<InfoRequest>),
    ("InfoResponse", read::<InfoResponse>),
    ("SyncMessage", read::<SyncMessage>),
    ("ReachRequest", read::<ReachRequest>),
    ("ReachResponse", read::<ReachResponse>),
    ("Signed<NodeRecord>", read::<Signed<NodeRecord>>),
    ("Signed<Listing>", read::<Signed<Listing>>),
    ("NodeRecord", read::<NodeRecord>),
    ("Listing", read::<Listing>),
    ("Details", read::<Details>),
    ("payment types", |bytes| {
        read::<Receipt>(bytes);
        read::<ChannelConfig>(bytes);
    }),
];

fn read<T: Encode<()> + for<'b> Decode<'b, ()> + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    if let Ok(value) = wire::decode::<T>(bytes) {
        let canonical = wire::encode(&value);
        assert!(canonical.len() <= bytes.len(), "a canonical encoding is the shortest");
        assert_eq!(wire::decode::<T>(&canonical).as_ref(), Ok(&value));
    }
}
