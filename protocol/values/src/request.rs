//! The request of a call, as its consumer keeps and sends it.
//!
//! The request hash ties a call id to what was asked, the response hash ties the receipt to what was answered.

use std::collections::BTreeMap;

use minicbor::{CborLen, Decode, Encode};

use crate::{CallId, ChannelId, Hash, Method, ServiceId, Signature, Usdc, keccak256, limits, wire};

/// The way in which a call is paid.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Payment {
    /// `free/1`: the listed price is zero.
    #[n(0)]
    Free,
    /// `channel/1`: a voucher, or the best voucher the owner already holds when there is no signature.
    #[n(1)]
    Channel {
        #[n(0)]
        channel: ChannelId,
        #[n(1)]
        cumulative: Usdc,
        #[n(2)]
        signature: Option<Signature>,
        /// The highest total that a receipt of the owner's bears on this channel, as the payer holds it. An owner that
        /// counts less has lost records, and refuses with `BooksBehind` until it is shown that receipt.
        #[n(3)]
        receipted: Option<Usdc>,
    },
}

impl Payment {
    /// As many bytes as any payment takes: it stands in a request whose bounds are checked before it is paid.
    pub const LARGEST: Self = Self::Channel {
        channel: ChannelId::NONE,
        cumulative: Usdc::MAX,
        signature: Some(Signature::from_bytes([u8::MAX; 65])),
        receipted: Some(Usdc::MAX),
    };
}

/// The bytes that a message puts around a request (`farthing_protocol::CallMessage::Call`).
const MESSAGE_BYTES: usize = 3;

/// A consumer's request. The body of `body_bytes` follows the head.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct CallRequest {
    #[n(0)]
    pub call_id: CallId,
    #[n(1)]
    pub service: ServiceId,
    /// [`crate::Listing::seq`] of the listing whose price was accepted.
    #[n(2)]
    pub listing_version: u64,
    #[n(3)]
    pub method: Method,
    /// Concrete path, or the operation's template.
    #[n(4)]
    pub path: String,
    #[n(5)]
    pub params: BTreeMap<String, String>,
    /// Names in lower case.
    #[n(6)]
    pub headers: BTreeMap<String, String>,
    #[n(7)]
    pub body_bytes: u64,
    #[n(8)]
    pub price: Usdc,
    #[n(9)]
    pub deadline_ms: u64,
    #[n(10)]
    pub payment: Payment,
}

impl CallRequest {
    /// Computes the hash of what this call asks for, whatever it pays: two requests under one call id must agree on it.
    pub fn request_hash(&self, body: &[u8]) -> Hash {
        let asked =
            wire::encode(&(self.service, self.method, &self.path, &self.params, &self.headers, body.len()));
        keccak256(&[b"farthing request\0", &asked, &keccak256(&[body])])
    }

    /// Checks every bound of [`limits`] that a head must keep, and the head as it travels, which nothing encodes for this.
    ///
    /// # Errors
    /// The bound that is broken, in words.
    pub fn check_bounds(&self) -> Result<(), OutOfBounds> {
        self.check_parts()?;
        within("whole head", MESSAGE_BYTES + minicbor::len(self), limits::CALL_HEAD_BYTES_MAX)
    }

    /// Checks the parts of a head that was read, and so measured.
    ///
    /// # Errors
    /// The first bound that is broken.
    pub fn check_parts(&self) -> Result<(), OutOfBounds> {
        within("path", self.path.len(), limits::PATH_BYTES_MAX)?;
        within("number of params", self.params.len(), limits::PARAMS_MAX)?;
        within("number of headers", self.headers.len(), limits::HEADERS_MAX)?;
        for (name, value) in self.params.iter().chain(&self.headers) {
            within("name of a parameter or header", name.len(), limits::PARAM_NAME_BYTES_MAX)?;
            within("value of a parameter or header", value.len(), limits::PARAM_VALUE_BYTES_MAX)?;
        }
        let body_bytes = usize::try_from(self.body_bytes).unwrap_or(usize::MAX);
        within("body", body_bytes, limits::REQUEST_BODY_BYTES_MAX)
    }
}

/// A bound of [`limits`] that a message exceeds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} is {size}, at most {size_max} is allowed")]
pub struct OutOfBounds {
    pub what: &'static str,
    pub size: usize,
    pub size_max: usize,
}

/// Checks one bound.
///
/// # Errors
/// [`OutOfBounds`] if `size` is above `size_max`.
pub fn within(what: &'static str, size: usize, size_max: usize) -> Result<(), OutOfBounds> {
    if size > size_max { Err(OutOfBounds { what, size, size_max }) } else { Ok(()) }
}

/// Computes the `response_hash` of a receipt, which binds status, headers and body of the answer.
pub fn response_hash(status: u16, headers: &BTreeMap<String, String>, body: &[u8]) -> Hash {
    keccak256(&[b"farthing response\0", &wire::encode(&(status, headers)), &keccak256(&[body])])
}
