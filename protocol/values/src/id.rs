//! Names of services and calls: 16 bytes, written as UUIDs. A call's are chosen, a service's follow from its owner.

use std::{fmt, str::FromStr};

use crate::{Address, bytes::byte_array, keccak256};

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        byte_array!($(#[$doc])* $name[16]);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                uuid::Uuid::from_bytes(self.0).hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                uuid::Uuid::try_parse(text)
                    .map(|uuid| Self(uuid.into_bytes()))
                    .map_err(|_| ParseIdError { what: $what })
            }
        }
    };
}

uuid_id!(
    /// A service, as consumers name it (`api_id_public`): [`ServiceId::derive`]d from its owner's address, so that no
    /// other wallet can list it.
    ServiceId,
    "a service id"
);
uuid_id!(
    /// One call, chosen by the consumer; a retry carries the same id and is never charged twice.
    CallId,
    "a call id"
);

byte_array!(
    /// Tells an owner's services apart: 16 bytes that the owner draws at random once for each, and every version of the
    /// listing carries.
    #[derive(Debug)]
    ServiceNonce[16]
);

/// A UUID of version 8 (RFC 9562) with 122 bits of the hash of `parts`.
fn hashed(parts: &[&[u8]]) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&keccak256(parts)[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid().into_bytes()
}

impl ServiceId {
    /// The id of the service that `owner` tells apart by `nonce`: a UUID of version 8 (RFC 9562) with 122 bits of a
    /// hash over both. Whoever wants the id of another's service has to find a second preimage of those.
    pub fn derive(owner: Address, nonce: ServiceNonce) -> Self {
        Self(hashed(&[b"farthing service id\0", owner.as_bytes(), &nonce.0]))
    }
}

/// The text is not a UUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} is a UUID such as 0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b")]
pub struct ParseIdError {
    what: &'static str,
}

impl CallId {
    /// The call id for an idempotency key of the caller's own: a UUID stands for itself, any other text for a UUID of
    /// version 8 (RFC 9562) with 122 bits of its hash, so the same key always names the same call.
    pub fn from_idempotency_key(key: &str) -> Self {
        key.parse().unwrap_or_else(|_| Self(hashed(&[b"farthing call id\0", key.as_bytes()])))
    }

    /// Returns whether it may be that of a text. Whoever foresees the text knows it; other ids are random.
    pub fn may_be_of_a_text(&self) -> bool {
        uuid::Uuid::from_bytes(self.0).get_version() == Some(uuid::Version::Custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idempotency_key_always_names_the_same_call() {
        let uuid = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";
        assert_eq!(CallId::from_idempotency_key(uuid).to_string(), uuid);
        assert_eq!(CallId::from_idempotency_key("order-7"), CallId::from_idempotency_key("order-7"));
        assert_ne!(CallId::from_idempotency_key("order-7"), CallId::from_idempotency_key("order-8"));
        assert!(CallId::from_idempotency_key("order-7").may_be_of_a_text());
        assert!(!CallId::from_idempotency_key(uuid).may_be_of_a_text());
    }

    #[test]
    fn a_service_s_id_follows_from_owner_and_nonce_and_is_a_uuid_of_version_8() {
        let id =
            |owner, nonce| ServiceId::derive(Address::from_bytes([owner; 20]), ServiceNonce([nonce; 16]));
        assert_eq!(id(1, 1), id(1, 1));
        let ids: std::collections::BTreeSet<ServiceId> =
            (0..16).flat_map(|owner| (0..16).map(move |nonce| id(owner, nonce))).collect();
        assert_eq!(ids.len(), 256, "another owner or another nonce is another service");
        for id in ids {
            let uuid: uuid::Uuid = id.to_string().parse().unwrap();
            assert_eq!((uuid.get_version_num(), uuid.get_variant()), (8, uuid::Variant::RFC4122));
        }
    }

    #[test]
    fn a_bad_id_says_what_was_expected() {
        let error = "not-a-uuid".parse::<ServiceId>().unwrap_err();
        assert!(error.to_string().starts_with("a service id is a UUID"));
    }
}
