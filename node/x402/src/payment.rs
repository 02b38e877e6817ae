//! A payment as it comes in a header, and whether it is the one that was asked for.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use farthing_values::{Address, Hash, Signature, SignedTransfer, TransferAuthorization, Usdc};
use serde::Deserialize;

use super::{EXACT, Version, terms::Terms};

/// A payment with everything that clients put around it has less than 3 KiB.
pub const PAYMENT_BYTES_MAX: usize = 8 * 1024;
/// The least time that an authorization has to be valid for, half of what the terms ask for: the service works for it first, then it
/// waits behind 32 others for its block, and for the last 30 seconds it is not sent any more. A payer that could choose a shorter
/// time would have the work, and effects, for payments that expire meanwhile.
const VALID_SECS_MIN: u64 = 150;

/// A payment as its payer sent it. Nothing of it is checked yet but its form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedPayment {
    pub version: Version,
    pub transfer: SignedTransfer,
    scheme: String,
    network: String,
}

/// The reason that a header is not a payment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("the payment has more than {PAYMENT_BYTES_MAX} bytes")]
    TooLong,
    #[error("the payment is not base64 of JSON")]
    NotBase64,
    #[error("the payment is not what x402 describes: {0}")]
    NotJson(String),
    #[error("the payment says version {found}, and its header is of version {expected}")]
    Version { found: u64, expected: u64 },
    #[error("the payment's `{0}` is missing or has another form than x402 describes")]
    Member(&'static str),
}

/// The reason that a payment does not pay a call. Nothing was taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPayment {
    #[error("the scheme is not `exact`")]
    Scheme,
    #[error("the payment is for another network")]
    Network,
    #[error("the payment goes to another wallet")]
    Payee,
    #[error("the payment is {paid} USDC, and the price is {price} USDC")]
    Amount { paid: Usdc, price: Usdc },
    #[error("the payment expires too soon: sign it for at least {VALID_SECS_MIN} more seconds")]
    Expired,
    #[error("the payment is not valid yet")]
    NotYet,
    #[error(
        "the payment is not signed by the key of the paying address itself, in the token's EIP-712 domain; smart wallets \
         cannot pay here"
    )]
    Signature,
    #[error("the payer has not enough USDC for this and its other payments under way")]
    Funds,
    #[error("the token would not take the payment: {0}")]
    WouldFail(String),
}

impl InvalidPayment {
    /// The code for programs, as the official packages name it.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Scheme => "unsupported_scheme",
            Self::Network => "invalid_network",
            Self::Payee => "invalid_exact_evm_payload_recipient_mismatch",
            Self::Amount { .. } => "invalid_exact_evm_payload_authorization_value",
            Self::Expired => "invalid_exact_evm_payload_authorization_valid_before",
            Self::NotYet => "invalid_exact_evm_payload_authorization_valid_after",
            Self::Signature => "invalid_exact_evm_payload_signature",
            Self::Funds => "insufficient_funds",
            Self::WouldFail(_) => "invalid_transaction_state",
        }
    }
}

/// The members that count; all others are passed over.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PaymentJson {
    x402_version: u64,
    /// Of version 1.
    scheme: Option<String>,
    network: Option<String>,
    /// Of version 2: the offer that the payer took.
    accepted: Option<AcceptedJson>,
    payload: PayloadJson,
}

#[derive(Deserialize)]
struct AcceptedJson {
    scheme: String,
    network: String,
}

#[derive(Deserialize)]
struct PayloadJson {
    signature: String,
    authorization: AuthorizationJson,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuthorizationJson {
    from: String,
    to: String,
    value: String,
    valid_after: String,
    valid_before: String,
    nonce: String,
}

/// Reads the header of a payment: `PAYMENT-SIGNATURE` of version 2, or `X-PAYMENT` of version 1.
///
/// # Errors
/// [`Malformed`], naming what is wrong.
pub fn read(version: Version, header: &[u8]) -> Result<ReceivedPayment, Malformed> {
    if header.len() > PAYMENT_BYTES_MAX {
        return Err(Malformed::TooLong);
    }
    read_json(version, &STANDARD.decode(header).map_err(|_| Malformed::NotBase64)?)
}

/// Reads the JSON within the header.
///
/// # Errors
/// As [`read`].
pub fn read_json(version: Version, json: &[u8]) -> Result<ReceivedPayment, Malformed> {
    let payment: PaymentJson =
        serde_json::from_slice(json).map_err(|error| Malformed::NotJson(error.to_string()))?;
    if payment.x402_version != version.number() {
        return Err(Malformed::Version { found: payment.x402_version, expected: version.number() });
    }
    let (scheme, network) = match version {
        Version::One => (payment.scheme, payment.network),
        Version::Two => payment.accepted.map(|accepted| (accepted.scheme, accepted.network)).unzip(),
    };
    Ok(ReceivedPayment {
        version,
        transfer: payment.payload.transfer()?,
        scheme: scheme.ok_or(Malformed::Member("scheme"))?,
        network: network.ok_or(Malformed::Member("network"))?,
    })
}

impl PayloadJson {
    fn transfer(&self) -> Result<SignedTransfer, Malformed> {
        let own = &self.authorization;
        let authorization = TransferAuthorization {
            from: address(&own.from).ok_or(Malformed::Member("from"))?,
            to: address(&own.to).ok_or(Malformed::Member("to"))?,
            value: Usdc::from_micros(number(&own.value).ok_or(Malformed::Member("value"))?),
            valid_after_secs: number(&own.valid_after).ok_or(Malformed::Member("validAfter"))?,
            valid_before_secs: number(&own.valid_before).ok_or(Malformed::Member("validBefore"))?,
            nonce: word(&own.nonce).ok_or(Malformed::Member("nonce"))?,
        };
        Ok(SignedTransfer { authorization, signature: signature(&self.signature)? })
    }
}

/// Digits alone; more than fits is no time and no amount of USDC.
pub(super) fn number(text: &str) -> Option<u64> {
    Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

fn word(text: &str) -> Option<Hash> {
    hex::decode(text.strip_prefix("0x")?).ok()?.try_into().ok()
}

/// Clients write addresses with a checksum or without.
pub(super) fn address(text: &str) -> Option<Address> {
    text.to_ascii_lowercase().parse().ok()
}

/// One of 65 bytes, as a key makes it. What is longer or shorter is a smart wallet's, whose signer nobody can name: it stands
/// for one that no key made.
fn signature(text: &str) -> Result<Signature, Malformed> {
    let malformed = || Malformed::Member("signature");
    let bytes = text.strip_prefix("0x").and_then(|digits| hex::decode(digits).ok()).ok_or_else(malformed)?;
    let mut own = [0; 65];
    if bytes.len() == own.len() {
        own.copy_from_slice(&bytes);
        // Some keys' programs write the parity alone.
        if own[64] < 27 {
            own[64] += 27;
        }
    }
    Ok(Signature::from_bytes(own))
}

impl ReceivedPayment {
    /// Checks that it pays a call on these terms, as far as no chain has to be asked: cheap checks first.
    ///
    /// # Errors
    /// The first [`InvalidPayment`].
    pub fn check(&self, terms: &Terms, now_secs: u64) -> Result<(), InvalidPayment> {
        let TransferAuthorization { to, value, valid_after_secs, valid_before_secs, .. } =
            self.transfer.authorization;
        let invalid = match () {
            () if self.scheme != EXACT => InvalidPayment::Scheme,
            () if self.version.network(terms.token.chain_id).as_ref() != Some(&self.network) => {
                InvalidPayment::Network
            }
            () if to != terms.pay_to => InvalidPayment::Payee,
            () if value != terms.price => InvalidPayment::Amount { paid: value, price: terms.price },
            () if valid_before_secs < now_secs.saturating_add(VALID_SECS_MIN) => InvalidPayment::Expired,
            () if valid_after_secs > now_secs => InvalidPayment::NotYet,
            () if self.transfer.verify(&terms.token).is_err() => InvalidPayment::Signature,
            () => return Ok(()),
        };
        Err(invalid)
    }
}

#[cfg(test)]
mod tests;
