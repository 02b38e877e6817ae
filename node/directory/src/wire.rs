//! The messages of the directory as they travel: those of libp2p's Kademlia (`dht.proto`), byte for byte.
//!
//! A stream carries each message after its length as a varint, which the driver reads and holds to
//! [`MESSAGE_BYTES_MAX`]. Providers are not of our directory, and nobody answers a ping of the older nodes.

mod protobuf;

use std::sync::Arc;

use self::protobuf::{Fields, put_bytes, put_message, put_number};
use crate::{Contact, K};

/// One message, without its length.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024;
/// The name of a record or of a peer.
pub const NAME_BYTES_MAX: usize = 64;
/// A node record with signature and framing.
pub const VALUE_BYTES_MAX: usize = 1024 + 128;

/// A name whose hash is a place in the key space. A copy is cheap.
pub type Name = Arc<[u8]>;
/// A record's bytes. A copy is cheap.
pub type RecordBytes = Arc<[u8]>;

/// A record's bytes, and the name that they are filed under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filed {
    /// Its hash is the record's place.
    pub name: Name,
    /// The record as it travels.
    pub value: RecordBytes,
}

/// A question to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Asks who is near.
    FindNode { name: Name },
    /// Asks for the record of this name, and who is near.
    GetValue { name: Name },
    /// Asks to keep this.
    PutValue(Filed),
}

/// The answer to a [`Request`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// Says that these are near.
    FindNode { closer: Vec<Contact> },
    /// Says that this is filed there, and that these are near.
    GetValue { found: Option<Filed>, closer: Vec<Contact> },
    /// Says that this is kept.
    PutValue(Filed),
}

/// The reason that bytes are no message of the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It ends too early.
    #[error("it ends in the middle of a field")]
    Short,
    /// A number has more than 64 bits.
    #[error("a number has more than 64 bits")]
    Number,
    /// A field is of another kind.
    #[error("a field is of another kind than expected")]
    Kind,
    /// Something is too long.
    #[error("its {0} is too long")]
    TooLong(&'static str),
    /// Something is missing.
    #[error("its {0} is missing")]
    Missing(&'static str),
    /// Of a type that is not spoken here.
    #[error("messages of type {0} are not spoken")]
    Type(u64),
}

const PUT_VALUE: u64 = 0;
const GET_VALUE: u64 = 1;
const FIND_NODE: u64 = 4;
/// Numbers that libp2p writes into a field that nobody reads.
const LEVEL_OF_REQUEST: u64 = 10;
const LEVEL_OF_RESPONSE: u64 = 9;

mod field {
    pub(super) const TYPE: u64 = 1;
    pub(super) const KEY: u64 = 2;
    pub(super) const RECORD: u64 = 3;
    pub(super) const CLOSER: u64 = 8;
    pub(super) const LEVEL: u64 = 10;
    pub(super) const RECORD_KEY: u64 = 1;
    pub(super) const RECORD_VALUE: u64 = 2;
    pub(super) const PEER_ID: u64 = 1;
    pub(super) const PEER_ADDRESS: u64 = 2;
}

impl Request {
    /// Writes the request.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let kind = match self {
            Self::FindNode { .. } => FIND_NODE,
            Self::GetValue { .. } => GET_VALUE,
            Self::PutValue(_) => PUT_VALUE,
        };
        put_number(&mut out, field::TYPE, kind);
        match self {
            Self::FindNode { name } | Self::GetValue { name } => {
                put_bytes(&mut out, field::KEY, name);
                put_number(&mut out, field::LEVEL, LEVEL_OF_REQUEST);
            }
            Self::PutValue(filed) => {
                put_bytes(&mut out, field::KEY, &filed.name);
                put_record(&mut out, filed);
            }
        }
        out
    }

    /// Reads a request.
    ///
    /// # Errors
    /// If it is none of ours, or beyond a bound.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let message = Message::read(bytes)?;
        match message.kind {
            FIND_NODE => Ok(Self::FindNode { name: name(message.key)? }),
            GET_VALUE => Ok(Self::GetValue { name: name(message.key)? }),
            PUT_VALUE => Ok(Self::PutValue(message.put()?)),
            other => Err(Malformed::Type(other)),
        }
    }
}

impl Response {
    /// Writes the response, with as many of the peers as a message has room for.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::FindNode { closer } => {
                put_number(&mut out, field::TYPE, FIND_NODE);
                put_peers(&mut out, closer);
                put_number(&mut out, field::LEVEL, LEVEL_OF_RESPONSE);
            }
            Self::GetValue { found, closer } => {
                put_number(&mut out, field::TYPE, GET_VALUE);
                found.iter().for_each(|filed| put_record(&mut out, filed));
                put_peers(&mut out, closer);
                put_number(&mut out, field::LEVEL, LEVEL_OF_RESPONSE);
            }
            Self::PutValue(filed) => {
                put_bytes(&mut out, field::KEY, &filed.name);
                put_record(&mut out, filed);
            }
        }
        out
    }

    /// Reads a response. Peers beyond their bounds are left out, as are those beyond the first [`K`].
    ///
    /// # Errors
    /// If it is none of ours, or beyond a bound.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let message = Message::read(bytes)?;
        match message.kind {
            FIND_NODE => Ok(Self::FindNode { closer: message.closer }),
            GET_VALUE => {
                let found = message.record.map(RecordFields::filed).transpose()?;
                Ok(Self::GetValue { found, closer: message.closer })
            }
            PUT_VALUE => Ok(Self::PutValue(message.put()?)),
            other => Err(Malformed::Type(other)),
        }
    }
}

/// The fields of a message that we read.
#[derive(Default)]
struct Message<'a> {
    kind: u64,
    key: &'a [u8],
    record: Option<RecordFields<'a>>,
    closer: Vec<Contact>,
}

impl<'a> Message<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if bytes.len() > MESSAGE_BYTES_MAX {
            return Err(Malformed::TooLong("message"));
        }
        let mut message = Self::default();
        for field in Fields(bytes) {
            match field? {
                (field::TYPE, value) => message.kind = value.number()?,
                (field::KEY, value) => message.key = value.bytes()?,
                (field::RECORD, value) => message.record = Some(RecordFields::read(value.bytes()?)?),
                (field::CLOSER, value) if message.closer.len() < K => {
                    message.closer.extend(peer(value.bytes()?)?);
                }
                _ => {}
            }
        }
        Ok(message)
    }

    /// The record that is put; an answer repeats it.
    fn put(self) -> Result<Filed, Malformed> {
        self.record.ok_or(Malformed::Missing("record"))?.filed()
    }
}

#[derive(Default)]
struct RecordFields<'a> {
    name: &'a [u8],
    value: &'a [u8],
}

impl<'a> RecordFields<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut record = Self::default();
        for field in Fields(bytes) {
            match field? {
                (field::RECORD_KEY, value) => record.name = value.bytes()?,
                (field::RECORD_VALUE, value) => record.value = value.bytes()?,
                // Publisher and remaining time are of no use: a record says by itself whose it is, and until when.
                _ => {}
            }
        }
        Ok(record)
    }

    fn filed(self) -> Result<Filed, Malformed> {
        if self.value.len() > VALUE_BYTES_MAX {
            return Err(Malformed::TooLong("record"));
        }
        Ok(Filed { name: name(self.name)?, value: self.value.into() })
    }
}

fn name(bytes: &[u8]) -> Result<Name, Malformed> {
    match bytes.len() {
        0 => Err(Malformed::Missing("key")),
        1..=NAME_BYTES_MAX => Ok(bytes.into()),
        _ => Err(Malformed::TooLong("key")),
    }
}

/// Reads a peer; nothing of one whose id is beyond its bound.
fn peer(bytes: &[u8]) -> Result<Option<Contact>, Malformed> {
    let (mut id, mut addresses) = (&[][..], Vec::new());
    for field in Fields(bytes) {
        match field? {
            (field::PEER_ID, value) => id = value.bytes()?,
            (field::PEER_ADDRESS, value) => addresses.push(value.bytes()?),
            _ => {}
        }
    }
    Ok(Contact::new(id, addresses))
}

fn put_record(out: &mut Vec<u8>, filed: &Filed) {
    let mut record = Vec::new();
    put_bytes(&mut record, field::RECORD_KEY, &filed.name);
    put_bytes(&mut record, field::RECORD_VALUE, &filed.value);
    put_message(out, field::RECORD, &record);
}

fn put_peers(out: &mut Vec<u8>, peers: &[Contact]) {
    /// The length of a peer, its field, and what follows the peers.
    const AROUND: usize = 8;
    for contact in peers {
        let mut peer = Vec::new();
        put_bytes(&mut peer, field::PEER_ID, contact.id());
        contact.addresses().iter().for_each(|address| put_message(&mut peer, field::PEER_ADDRESS, address));
        if out.len() + peer.len() + AROUND <= MESSAGE_BYTES_MAX {
            put_message(out, field::CLOSER, &peer);
        }
    }
}
