//! `/farthing/<net>/reach/1`: "dial me, and I will see whether you got through".
//!
//! A node asks a peer to dial it on fresh connections. For each address the peer takes a key that only the
//! two of them can compute ([`dial_back_key`]) and completes a handshake under it: the handshake itself shows
//! the asker that this peer came through to this address, and shows the peer that the asker's wallet answers
//! there. Nothing else is sent on these connections. A peer's word alone proves nothing.
//!
//! Some routers let back in whoever their owner has written to, from any port. Such a peer comes through although
//! nothing is forwarded. It therefore has one of its own neighbours, whom the asker has not written to, dial as well.

use minicbor::{CborLen, Decode, Encode, bytes::ByteVec};

use crate::{Hash, SecretKey, keccak256};

/// Asks to be dialled.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct ReachRequest {
    /// Random, for this peer and this test alone.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub nonce: Hash,
    /// Binary multiaddresses of TCP or QUIC on an IP from which the peer sees the asker; at most
    /// [`crate::limits::REACH_ADDRESSES_MAX`].
    #[n(1)]
    pub addresses: Vec<ByteVec>,
    /// IPs, of 4 or 16 bytes, that the asker has written to: nobody at one of them can say what a stranger would
    /// find. At most [`crate::limits::REACH_KNOWN_MAX`].
    #[n(2)]
    pub known: Option<Vec<ByteVec>>,
    /// A peer passes its neighbour's request on: this is the peer id of that neighbour, which is to be dialled in
    /// place of the asker. Such a request is not passed on again.
    #[n(3)]
    pub on_behalf_of: Option<ByteVec>,
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum ReachResponse {
    /// One for each address, in the request's order; and the same of a neighbour that dialled on behalf of the asker,
    /// if there was one.
    #[n(0)]
    Dialled(#[n(0)] Vec<DialBack>, #[n(1)] Option<Vec<DialBack>>),
    /// A peer is dialled once a minute.
    #[n(1)]
    TooSoon {
        #[n(0)]
        retry_after_secs: u64,
    },
    #[n(2)]
    Refused(#[n(0)] String),
}

/// The result of one dial.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum DialBack {
    #[n(0)]
    Reached,
    /// A dial that failed, with the reason in a line for a person.
    #[n(1)]
    Failed(#[n(0)] String),
    /// A dial that was not tried, with the reason in a line for a person; says nothing about the address.
    #[n(2)]
    Declined(#[n(0)] String),
}

/// Added to an address's index by whoever dials it on behalf of the asker.
pub const BY_ANOTHER: u8 = 0x80;

/// The key under which the `index`-th address of a request is dialled, or [`BY_ANOTHER`] more when it is dialled on
/// behalf of the asker. `None` for one nonce in 2¹²⁸, whose hash is no key.
pub fn dial_back_key(nonce: &Hash, index: u8) -> Option<SecretKey> {
    SecretKey::from_bytes(&keccak256(&[b"farthing reach/1 dial-back", nonce, &[index]])).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_of_every_request_has_a_key_of_its_own() {
        let addresses = [([1; 32], 0), ([1; 32], 1), ([2; 32], 0), ([2; 32], 1)];
        let keys = addresses.map(|(nonce, index)| dial_back_key(&nonce, index).unwrap().address());
        for (n, key) in keys.iter().enumerate() {
            assert!(!keys[..n].contains(key));
        }
        assert_eq!(dial_back_key(&[1; 32], 0).unwrap().address(), keys[0], "both sides compute the same");
    }
}
