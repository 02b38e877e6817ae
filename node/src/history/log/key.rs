//! Names of calls in the log.

use std::{fmt, str::FromStr};

use farthing_control::types::CallRecord;
use farthing_protocol::{Address, CallId};

/// The name of a call in the log: its record, and its key there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKey {
    Bought(CallId),
    /// Each payer chooses its own call ids.
    Served(Address, CallId),
    /// The number of the note.
    Refused(u64),
    /// The call with this id: bought first, then refused, then served.
    Any(CallId),
}

impl fmt::Display for CallKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bought(id) => write!(f, "{}-{id}", CallRecord::Bought),
            Self::Served(payer, id) => write!(f, "{}-{payer}-{id}", CallRecord::Served),
            Self::Refused(number) => write!(f, "{}-{number}", CallRecord::Refused),
            Self::Any(id) => write!(f, "{id}"),
        }
    }
}

impl CallKey {
    /// Returns the id of a call that this node may have bought.
    #[must_use]
    pub const fn bought(self) -> Option<CallId> {
        match self {
            Self::Bought(id) | Self::Any(id) => Some(id),
            Self::Served(..) | Self::Refused(_) => None,
        }
    }
}

/// The error for a text that names no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a call is named by its call id, a UUID, or by its `key` in the list of calls")]
pub struct NoCallKey;

impl FromStr for CallKey {
    type Err = NoCallKey;

    fn from_str(text: &str) -> Result<Self, NoCallKey> {
        if let Ok(id) = text.parse::<CallId>() {
            return Ok(Self::Any(id));
        }
        let (record, key) = text.split_once('-').ok_or(NoCallKey)?;
        match record.parse::<CallRecord>().map_err(|_| NoCallKey)? {
            CallRecord::Bought => key.parse().map(Self::Bought).map_err(|_| NoCallKey),
            CallRecord::Served => {
                let (payer, id) = key.split_once('-').ok_or(NoCallKey)?;
                let payer: Address = payer.parse().map_err(|_| NoCallKey)?;
                id.parse().map(|id| Self::Served(payer, id)).map_err(|_| NoCallKey)
            }
            CallRecord::Refused => key.parse().map(Self::Refused).map_err(|_| NoCallKey),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_by_the_name_that_the_log_gives_it_and_by_nothing_else() {
        let id = CallId::from_bytes([7; 16]);
        for key in [
            CallKey::Bought(id),
            CallKey::Served(Address::from_bytes([3; 20]), id),
            CallKey::Refused(u64::MAX),
            CallKey::Any(id),
        ] {
            assert_eq!(key.to_string().parse(), Ok(key), "{key}");
        }
        for none in ["", "bought-", "refused--1", "served-0x12-1", "sold-1", "refused-<b>"] {
            assert_eq!(none.parse::<CallKey>(), Err(NoCallKey), "{none}");
        }
    }
}
