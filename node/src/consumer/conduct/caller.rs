//! The key under which calls of a service are counted together.
//!
//! Who asks for too much, or for what does not exist, makes any service fail. So what the calls of one consumer secret
//! come to says how the service behaves to that secret, and stops nobody else's calls.

use farthing_protocol::{ServiceId, keccak256};

use crate::secret::file::DEFAULT_SECRET;

/// A service and a consumer secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CallerKey {
    pub service: ServiceId,
    /// Of the secret's name; `None` for the default one.
    secret: Option<[u8; 8]>,
}

impl CallerKey {
    pub(super) fn new(service: ServiceId, secret: &str) -> Self {
        let hashed = || {
            let hash = keccak256(&[b"farthing secret's name\0", secret.as_bytes()]);
            let [a, b, c, d, e, f, g, h, ..] = hash;
            [a, b, c, d, e, f, g, h]
        };
        Self { service, secret: (secret != DEFAULT_SECRET).then(hashed) }
    }

    /// Returns the key under which the user's word on the service is kept.
    pub(super) const fn of_user(service: ServiceId) -> Self {
        Self { service, secret: None }
    }

    /// As it is stored.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.service.as_bytes().to_vec();
        bytes.extend(self.secret.iter().flatten());
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (service, secret) = bytes.split_first_chunk::<16>()?;
        let secret = if secret.is_empty() { None } else { Some(secret.try_into().ok()?) };
        Some(Self { service: ServiceId::from_bytes(*service), secret })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_was_stored() {
        let service = ServiceId::from_bytes([7; 16]);
        let keys = ["default", "limited", "other"].map(|secret| CallerKey::new(service, secret));
        assert_eq!(keys.map(|key| CallerKey::from_bytes(&key.to_bytes())), keys.map(Some));
        assert_eq!(keys[0], CallerKey::of_user(service));
        assert!(keys[1] != keys[0] && keys[1] != keys[2]);
        assert_eq!(CallerKey::from_bytes(&[0; 20]), None);
    }
}
