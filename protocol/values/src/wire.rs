//! Encoding of messages as bytes: CBOR with integer keys, protocol names, frames.
//!
//! Structures are CBOR maps with small integer keys in ascending order and without indefinite lengths, so
//! one value has one encoding; a reader skips keys it does not know, which leaves room to grow. A frame on a
//! stream is a 4-byte big-endian length, the head of that length, then the body whose length the head names.

use minicbor::{Decode, Encode};

use crate::limits;

/// Room for what most messages take, so that their bytes do not move six times while they grow.
const ROOM_BYTES: usize = 256;

/// The bytes of `value`.
pub fn encode<T: Encode<()>>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ROOM_BYTES);
    minicbor::encode(value, &mut bytes).expect("writing to memory cannot fail");
    bytes
}

/// The error for bytes that are not the message they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("{0}")]
    Malformed(String),
    #[error("{0} bytes follow the message")]
    TrailingBytes(usize),
}

/// Reads exactly one value. Allocation is bounded by the input: a length is believed only as far as there
/// are bytes behind it.
///
/// # Errors
/// [`DecodeError`] for anything else than one complete value.
pub fn decode<'b, T: Decode<'b, ()>>(bytes: &'b [u8]) -> Result<T, DecodeError> {
    let mut decoder = minicbor::Decoder::new(bytes);
    let value = decoder.decode().map_err(|e| DecodeError::Malformed(e.to_string()))?;
    match bytes.len() - decoder.position() {
        0 => Ok(value),
        rest => Err(DecodeError::TrailingBytes(rest)),
    }
}

/// Returns whether these bytes are one structure of whatever version: a complete map and nothing else.
pub(crate) fn is_map(bytes: &[u8]) -> bool {
    let mut decoder = minicbor::Decoder::new(bytes);
    decoder.datatype().is_ok_and(|kind| kind == minicbor::data::Type::Map)
        && decoder.skip().is_ok()
        && decoder.position() == bytes.len()
}

/// The name of a network in protocol names and documents: its chain id, or `<chosen name>-<chain id>`. Whoever settles
/// on another chain is on another network, whatever that is called: neither could pay the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NetworkName(String);

/// The text cannot name a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a network name is 1–{max} lower-case letters, digits or dashes", max = limits::NETWORK_NAME_BYTES_MAX)]
pub struct NetworkNameError;

impl NetworkName {
    /// # Errors
    /// [`NetworkNameError`] for anything but lower-case letters, digits and dashes.
    pub fn new(name: impl Into<String>) -> Result<Self, NetworkNameError> {
        let name = name.into();
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if name.is_empty() || name.len() > limits::NETWORK_NAME_BYTES_MAX || !name.bytes().all(allowed) {
            return Err(NetworkNameError);
        }
        Ok(Self(name))
    }

    /// The network that somebody called `chosen`, or nothing, on the chain `chain_id`: the only place where the two
    /// become one name. A network that is called as its chain is that chain's own.
    ///
    /// # Errors
    /// [`NetworkNameError`] for a chosen name that is too long or has other signs than a name may have.
    pub fn on_chain(chosen: Option<&str>, chain_id: u64) -> Result<Self, NetworkNameError> {
        let chain = chain_id.to_string();
        match chosen.filter(|chosen| *chosen != chain) {
            None => Self::new(chain),
            Some(chosen) if chosen.len() > limits::NETWORK_NAME_CHOSEN_BYTES_MAX || chosen.is_empty() => {
                Err(NetworkNameError)
            }
            Some(chosen) => Self::new(format!("{chosen}-{chain}")),
        }
    }

    /// Returns what was chosen, if anything, and the chain. No chain in names that nodes of this program do not make.
    pub fn parts(&self) -> (Option<&str>, Option<u64>) {
        let (chosen, chain) = match self.0.rsplit_once('-') {
            Some((chosen, chain)) if !chosen.is_empty() => (Some(chosen), chain),
            _ => (None, self.0.as_str()),
        };
        match chain.parse() {
            Ok(chain_id) => (chosen, Some(chain_id)),
            Err(_) => (Some(&self.0), None),
        }
    }

    /// For a sentence: `lab on chain 31337`, `chain 8453`.
    pub fn in_words(&self) -> String {
        match self.parts() {
            (Some(chosen), Some(chain_id)) => format!("{chosen} on chain {chain_id}"),
            (None, Some(chain_id)) => format!("chain {chain_id}"),
            (_, None) => self.0.clone(),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The network of a node that announces `version`, in whatever version of the protocols.
    pub fn of_identify_version(version: &str) -> Option<Self> {
        let (name, _) = version.strip_prefix("farthing/")?.split_once('/')?;
        Self::new(name).ok()
    }
}

/// `name = form;` where the network's name stands in the form.
macro_rules! named_after_the_network {
    ($($(#[$about:meta])* $name:ident = $form:literal;)+) => {
        impl NetworkName {
            $(
                $(#[$about])*
                ///
                #[doc = concat!("`", $form, "`")]
                pub fn $name(&self) -> String {
                    format!($form, self.0)
                }
            )+
        }
    };
}

named_after_the_network! {
    /// One call for each stream: what nodes of before speak.
    call_protocol = "/farthing/{}/call/1";
    /// One call after the other on streams that are kept.
    call_stream_protocol = "/farthing/{}/call/2";
    info_protocol = "/farthing/{}/info/1";
    /// Sessions about whole catalogs: what nodes of before speak.
    sync_protocol = "/farthing/{}/sync/1";
    /// Sessions about the shards that both nodes keep.
    shard_sync_protocol = "/farthing/{}/sync/2";
    gossip_protocol = "/farthing/{}/gossip/1";
    /// Sessions in which two nodes exchange the records that one of them lacks.
    agreement_protocol = "/farthing/{}/records/1";
    reach_protocol = "/farthing/{}/reach/1";
    kad_protocol = "/farthing/{}/kad/1";
    /// The gossip topic of new node records.
    records_topic = "farthing/{}/records/1";
    /// The gossip topic of new listings.
    listings_topic = "farthing/{}/listings/1";
    /// The version that identify announces; peers of another network are not talked to.
    identify_version = "farthing/{}/1";
}

impl std::fmt::Display for NetworkName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The DHT key of a wallet's node record: `/farthing/record/` ‖ address.
pub fn record_key(address: crate::Address) -> Vec<u8> {
    [b"/farthing/record/".as_slice(), address.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_declared_length_allocates_nothing() {
        // A byte string, a text, an array and a map, each announcing 2^62 items and carrying none.
        for header in [0x5b_u8, 0x7b, 0x9b, 0xbb] {
            let mut bytes = vec![header];
            bytes.extend_from_slice(&(1_u64 << 62).to_be_bytes());
            assert!(decode::<minicbor::bytes::ByteVec>(&bytes).is_err());
            assert!(decode::<String>(&bytes).is_err());
            assert!(decode::<Vec<u64>>(&bytes).is_err());
            assert!(decode::<std::collections::BTreeMap<String, String>>(&bytes).is_err());
        }
    }

    #[test]
    fn bytes_after_the_message_are_refused() {
        assert_eq!(decode::<u8>(&[1, 2]), Err(DecodeError::TrailingBytes(1)));
    }

    #[test]
    fn what_a_newer_version_wrote_has_the_form_of_a_structure_and_noise_has_not() {
        let newer =
            std::collections::BTreeMap::from([(0_u8, "a kind of service nobody knows"), (99, "more")]);
        let newer = encode(&newer);
        assert!(is_map(&newer));
        let cut = &newer[..newer.len() - 1];
        let followed = [&newer[..], &[0]].concat();
        for noise in [&[][..], &[7; 8], b"nonsense", cut, &followed, &encode(&"text"), &[0xbb, 0xff]] {
            assert!(!is_map(noise), "{noise:?}");
        }
    }

    #[test]
    fn a_network_name_cannot_forge_a_protocol_name() {
        assert_eq!(NetworkName::new("31337").unwrap().call_protocol(), "/farthing/31337/call/1");
        for bad in ["", "a/b", "A", "x\n", &"a".repeat(limits::NETWORK_NAME_BYTES_MAX + 1)] {
            assert_eq!(NetworkName::new(bad), Err(NetworkNameError), "{bad:?}");
        }
    }

    #[test]
    fn a_network_is_a_name_and_a_chain_together() {
        let name = |chosen, chain_id| NetworkName::on_chain(chosen, chain_id).unwrap();
        for (chosen, chain_id, text, words) in [
            (None, 8453, "8453", "chain 8453"),
            (Some("8453"), 8453, "8453", "chain 8453"),
            (Some("8453"), 84532, "8453-84532", "8453 on chain 84532"),
            (Some("lab-x"), 31337, "lab-x-31337", "lab-x on chain 31337"),
            (Some("lab-31337"), 31337, "lab-31337-31337", "lab-31337 on chain 31337"),
        ] {
            assert_eq!(
                (name(chosen, chain_id).as_str(), name(chosen, chain_id).in_words().as_str()),
                (text, words)
            );
        }
        assert_ne!(name(Some("lab"), 1), name(Some("lab"), 2));
        assert_eq!(NetworkName::new("local-other").unwrap().in_words(), "local-other");
        assert_eq!(NetworkName::new("-7").unwrap().in_words(), "-7");
        let longest = "n".repeat(limits::NETWORK_NAME_CHOSEN_BYTES_MAX);
        assert_eq!(name(Some(&longest), u64::MAX).as_str().len(), limits::NETWORK_NAME_BYTES_MAX);
        for bad in ["", "A", "a/b", &format!("{longest}n")] {
            assert_eq!(NetworkName::on_chain(Some(bad), 1), Err(NetworkNameError), "{bad:?}");
        }
    }

    #[test]
    fn a_node_tells_its_network_in_what_it_announces() {
        let name = NetworkName::new("local-test").unwrap();
        assert_eq!(NetworkName::of_identify_version(&name.identify_version()), Some(name));
        for other in ["", "ipfs/0.1.0", "farthing/local-test", "farthing/\u{202e}evil/1", "farthing//1"] {
            assert_eq!(NetworkName::of_identify_version(other), None, "{other:?}");
        }
    }
}
