//! Names of services and calls: 16 random bytes, written as UUIDs.

use std::{fmt, str::FromStr};

use minicbor::{CborLen, Decode, Encode};

use crate::keccak256;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
        #[cbor(transparent)]
        pub struct $name(#[cbor(n(0), with = "minicbor::bytes")] [u8; 16]);

        impl $name {
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }
        }

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
    /// A service, as consumers name it (`api_id_public`).
    ServiceId,
    "a service id"
);
uuid_id!(
    /// One call, chosen by the consumer; a retry carries the same id and is never charged twice.
    CallId,
    "a call id"
);

/// The text is not a UUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} is a UUID such as 0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b")]
pub struct ParseIdError {
    what: &'static str,
}

impl CallId {
    /// The call id for an idempotency key of the caller's own: a UUID stands for itself, any other text for
    /// its hash, so the same key always names the same call.
    #[must_use]
    pub fn from_idempotency_key(key: &str) -> Self {
        key.parse().unwrap_or_else(|_| {
            let hash = keccak256(&[b"farthing call id\0", key.as_bytes()]);
            let mut bytes = [0; 16];
            bytes.copy_from_slice(&hash[..16]);
            Self(bytes)
        })
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
    }

    #[test]
    fn a_bad_id_says_what_was_expected() {
        let error = "not-a-uuid".parse::<ServiceId>().unwrap_err();
        assert!(error.to_string().starts_with("a service id is a UUID"));
    }
}
