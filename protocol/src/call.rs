//! One call between two nodes: the response head, and the messages around it and around a [`CallRequest`].
//!
//! Bodies travel behind their heads (see [`crate::wire`]); a head names its body's length.

use std::collections::BTreeMap;

use minicbor::{CborLen, Decode, Encode};

use crate::{
    CallId, CallRequest, ChannelConfig, ChannelId, Outcome, Refusal, Signature, SignedClose, Usdc,
    books::{CallsAsked, CallsPage, Shown},
    channel::Receipt,
    limits,
    request::within,
    sponsor::{SponsorAsked, SponsorReply},
    wire,
};
pub use crate::{
    ChargePolicy, Method, ParseMethodError, Payment,
    request::{OutOfBounds, response_hash},
};

/// The owner's answer. The body of `body_bytes` follows the head.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct CallResponse {
    #[n(0)]
    pub call_id: CallId,
    /// The service's own status for an answer of the service; otherwise what the upstream said, or 0.
    #[n(1)]
    pub status: u16,
    #[n(2)]
    pub headers: BTreeMap<String, String>,
    #[n(3)]
    pub body_bytes: u64,
    #[n(4)]
    pub receipt: Receipt,
    #[n(5)]
    pub signature: Signature,
    #[n(6)]
    pub outcome: Outcome,
    /// Spent at the owner's node and, of that, at its upstream.
    #[n(7)]
    pub owner_us: u64,
    #[n(8)]
    pub upstream_us: u64,
}

/// Messages of `/farthing/<net>/call/1` and `call/2`, consumer to owner.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum CallMessage {
    #[n(0)]
    Call(#[n(0)] CallRequest),
    /// A question about the end of a call of mine. Answered with its response while kept, else with its state.
    #[n(1)]
    Status(#[n(0)] CallId),
    /// A question about what you hold of my channel. This is your newest word on it.
    #[n(2)]
    Sync(#[n(0)] ChannelId, #[n(1)] Option<Shown>),
    /// Please close my channel; I will promise nothing more on it. This is your newest word on it.
    #[n(3)]
    Close(#[n(0)] ChannelId, #[n(1)] Option<Shown>),
    /// A question about your records of my calls.
    #[n(7)]
    Calls(#[n(0)] CallsAsked),
    /// Please bring this to the chain at your cost; I have no ETH.
    #[n(8)]
    Sponsor(#[n(0)] SponsorAsked),
}

impl CallMessage {
    /// Length of the body behind this head.
    pub const fn body_bytes(&self) -> u64 {
        match self {
            Self::Call(request) => request.body_bytes,
            Self::Status(_) | Self::Sync(..) | Self::Close(..) | Self::Calls(_) | Self::Sponsor(_) => 0,
        }
    }

    /// Checks the parts of a head that was read, and so measured. What is sent was checked where it was made, by
    /// [`CallRequest::check_bounds`].
    ///
    /// # Errors
    /// [`OutOfBounds`] for the first bound that is broken.
    pub fn check_parts(&self) -> Result<(), OutOfBounds> {
        match self {
            Self::Call(request) => request.check_parts(),
            Self::Status(_) | Self::Sync(..) | Self::Close(..) | Self::Calls(_) | Self::Sponsor(_) => Ok(()),
        }
    }

    /// The head as it travels, measured as a whole.
    ///
    /// # Errors
    /// [`OutOfBounds`] when it is too large.
    pub fn to_head(&self) -> Result<Vec<u8>, OutOfBounds> {
        let head = wire::encode(self);
        within("whole head", head.len(), limits::CALL_HEAD_BYTES_MAX)?;
        Ok(head)
    }
}

/// Answers of `/farthing/<net>/call/1` and `call/2`.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum CallReply {
    #[n(0)]
    Response(#[n(0)] CallResponse),
    #[n(1)]
    Refused(#[n(0)] Refusal),
    #[n(2)]
    Status(#[n(0)] CallStatus),
    #[n(3)]
    Channel(#[n(0)] ChannelSync),
    #[n(7)]
    Calls(#[n(0)] CallsPage),
    #[n(8)]
    Sponsor(#[n(0)] SponsorReply),
}

impl CallReply {
    /// Length of the body behind this head.
    pub const fn body_bytes(&self) -> u64 {
        match self {
            Self::Response(response) => response.body_bytes,
            Self::Refused(_) | Self::Status(_) | Self::Channel(_) | Self::Calls(_) | Self::Sponsor(_) => 0,
        }
    }
}

/// An owner's knowledge of a call whose answer it does not send.
#[expect(clippy::large_enum_variant, reason = "made once per question and sent; nothing holds many of them")]
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum CallStatus {
    /// Finished; the body is no longer kept. A safe call may be repeated under its id once, free.
    #[n(0)]
    Done {
        #[n(0)]
        receipt: Receipt,
        #[n(1)]
        signature: Signature,
    },
    #[n(1)]
    Running,
    /// Never served: nothing was charged, and nothing will be unless the call is sent again.
    #[n(2)]
    Unknown,
}

/// An owner's books on one channel, for the payer to compare with its own.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct ChannelSync {
    #[n(0)]
    pub config: ChannelConfig,
    #[n(1)]
    pub deposited: Usdc,
    #[n(2)]
    pub claimed: Usdc,
    #[n(3)]
    pub spent: Usdc,
    #[n(4)]
    pub best: Usdc,
    /// The payer's own signature on `best`: proof for a payer that lost its ledger.
    #[n(5)]
    pub best_signature: Option<Signature>,
    /// In answer to [`CallMessage::Close`]: the owner does not close at its own cost; whoever wants it brings this to
    /// the chain. Without it the owner closes.
    #[n(6)]
    pub close: Option<SignedClose>,
}
