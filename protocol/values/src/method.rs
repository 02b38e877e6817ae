//! Methods that a call may have.

use minicbor::{CborLen, Decode, Encode};

/// HTTP methods that can be sold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
#[cbor(index_only)]
pub enum Method {
    #[default]
    #[n(0)]
    Get,
    #[n(1)]
    Head,
    #[n(2)]
    Post,
    #[n(3)]
    Put,
    #[n(4)]
    Patch,
    #[n(5)]
    Delete,
}

impl Method {
    pub const ALL: [Self; 6] = [Self::Get, Self::Head, Self::Post, Self::Put, Self::Patch, Self::Delete];

    /// May be repeated without effect on the service (RFC 9110, safe methods).
    #[must_use]
    pub const fn is_safe(self) -> bool {
        matches!(self, Self::Get | Self::Head)
    }

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// The text names no method that can be sold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not one of GET, HEAD, POST, PUT, PATCH, DELETE")]
pub struct ParseMethodError(String);

impl std::str::FromStr for Method {
    type Err = ParseMethodError;

    /// Reads a method in any case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|method| method.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| ParseMethodError(text.chars().take(20).collect()))
    }
}
