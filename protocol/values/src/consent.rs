//! Words about the end of a channel that the contract takes from whoever brings them: the payee's consent to
//! a close, and the request of payer or signer to close.
//!
//! Each names the channel's *round*, which counts how often the channel was emptied, so a word is void once
//! the channel was emptied, however it is filled again. The contract is `protocol/contracts/PayChannels.sol`.

use minicbor::{CborLen, Decode, Encode};

use crate::{ChannelId, Signature, Usdc, eip712};

const CLOSE_TYPE: &str =
    "Close(bytes32 channelId,uint128 amount,uint128 deposited,uint24 round,uint40 deadline)";
const REQUEST_CLOSE_TYPE: &str = "RequestClose(bytes32 channelId,uint24 round,uint40 deadline)";

/// The payee's consent to an immediate close, in which it ends with `amount` and the payer gets the rest.
///
/// The contract refuses it once the channel was topped up, emptied, or claimed beyond `amount`. It cannot see
/// what the payee earns off the chain: until the deadline has passed or the contract refuses it, the payee
/// gives nothing new on the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct CloseConsent {
    #[n(0)]
    pub channel: ChannelId,
    /// Everything the payee ever gets from the channel.
    #[n(1)]
    pub amount: Usdc,
    /// The channel's running total of deposits, as the payee saw it.
    #[n(2)]
    pub deposited: Usdc,
    /// So many times the channel had been emptied; the contract takes the word in that round alone.
    #[n(3)]
    pub round: u32,
    /// The last second, on the chain's clock, in which it counts.
    #[n(4)]
    pub deadline_secs: u64,
}

eip712::signed_words!(CloseConsent, CLOSE_TYPE, "`signer`, the channel's payee,", |consent| [
    *consent.channel.as_bytes(),
    eip712::uint(consent.amount.into()),
    eip712::uint(consent.deposited.into()),
    eip712::uint(consent.round.into()),
    eip712::uint(consent.deadline_secs.into()),
]);

/// A consent with the payee's signature, as it travels to the payer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct SignedClose {
    #[n(0)]
    pub consent: CloseConsent,
    #[n(1)]
    pub signature: Signature,
}

/// The request of a channel's payer or signer to close it, which starts the channel's delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct CloseRequest {
    #[n(0)]
    pub channel: ChannelId,
    /// As of [`CloseConsent`].
    #[n(1)]
    pub round: u32,
    /// The last second, on the chain's clock, in which it counts.
    #[n(2)]
    pub deadline_secs: u64,
}

eip712::signed_words!(
    CloseRequest,
    REQUEST_CLOSE_TYPE,
    "`signer`, payer or signer of the channel,",
    |request| [
        *request.channel.as_bytes(),
        eip712::uint(request.round.into()),
        eip712::uint(request.deadline_secs.into()),
    ]
);
