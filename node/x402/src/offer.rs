//! The offers of a server that is bought from, the one that this node may pay, and the payment for it.
//!
//! A server is a stranger: what it says of the token is compared with what the chain says, and what it says of itself is repeated
//! to it alone, except for its description, which the user reads.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use farthing_values::{Address, SignedTransfer, TokenDomain, Usdc};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    EXACT, Version, header,
    payment::{address, number},
    words,
};

/// Offers with everything that servers put around them have less than 8 KiB.
pub const OFFERS_BYTES_MAX: usize = 64 * 1024;
/// One offer is repeated to its server with the payment, in a header that servers bound as well.
const OFFER_BYTES_MAX: usize = 4 * 1024;
const RESOURCE_BYTES_MAX: usize = 1024;
/// As much of a server's description as people read before they pay.
pub const DESCRIPTION_CHARS_MAX: usize = 300;
/// As much of a name as a sentence quotes.
const QUOTED_CHARS_MAX: usize = 64;
/// More ways to pay than any server has.
const OFFERS_MAX: usize = 64;
/// A shorter time ends before a payment has reached the chain.
const TIMEOUT_SECS_MIN: u64 = 10;

/// The ways in which a server wants to be paid, as it wrote them.
#[derive(Clone, Debug, PartialEq)]
pub struct Offers {
    version: Version,
    resource: Option<Value>,
    description: Option<String>,
    accepts: Vec<Value>,
}

/// An offer that this node may pay.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    pub version: Version,
    pub price: Usdc,
    pub pay_to: Address,
    /// The time for which the server waits for its payment.
    pub timeout_secs: u64,
    network: String,
    accepted: Value,
    resource: Option<Value>,
}

/// The reason that this node pays none of a server's offers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoOffer {
    #[error("the server asks for a payment, but its answer has no terms in the form of x402")]
    Unreadable,
    #[error("the server does not accept the scheme `exact`, the only one that this node uses")]
    Scheme,
    #[error("the server wants to be paid on another chain: {0}")]
    Network(String),
    #[error("the server wants a token that is not this chain's USDC")]
    Token,
    #[error(
        "the server names the token's signature domain as `{name}` version `{version}`, but the chain names another one: \
         a payment with this domain would not be valid"
    )]
    Domain { name: String, version: String },
    #[error("the server does not accept a signed transfer (EIP-3009), the only method that this node uses")]
    Method,
    #[error("the server's offer has no readable {0}")]
    Member(&'static str),
    #[error("the server's offer has more than {OFFER_BYTES_MAX} bytes")]
    TooLong,
    #[error("the server asks for a payment of 0 USDC")]
    Nothing,
    #[error("the server asks to pay this node's own wallet")]
    OwnWallet,
    #[error("the server waits only {0} s for its payment, which is too short")]
    TooShort(u64),
}

/// The members that count; all others are passed over.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequiredJson {
    x402_version: u64,
    resource: Option<Value>,
    accepts: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfferJson {
    scheme: String,
    network: String,
    /// Of version 2.
    amount: Option<String>,
    /// Of version 1.
    max_amount_required: Option<String>,
    asset: String,
    pay_to: String,
    max_timeout_seconds: u64,
    extra: Option<ExtraJson>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExtraJson {
    name: Option<String>,
    version: Option<String>,
    asset_transfer_method: Option<String>,
}

impl Offers {
    /// Reads an answer of status 402: the header `PAYMENT-REQUIRED` of version 2, and else the body, which version 1 uses.
    ///
    /// # Errors
    /// [`NoOffer::Unreadable`].
    pub fn read(required: Option<&[u8]>, body: &[u8]) -> Result<Self, NoOffer> {
        let told = match required {
            Some(header) if header.len() <= OFFERS_BYTES_MAX => {
                Some((Version::Two, STANDARD.decode(header).map_err(|_| NoOffer::Unreadable)?))
            }
            Some(_) => None,
            None => Some((Version::One, body.to_vec())),
        };
        let (version, json) = told.ok_or(NoOffer::Unreadable)?;
        Self::read_json(version, &json)
    }

    /// Reads the JSON of either.
    ///
    /// # Errors
    /// [`NoOffer::Unreadable`].
    pub fn read_json(version: Version, json: &[u8]) -> Result<Self, NoOffer> {
        if json.len() > OFFERS_BYTES_MAX {
            return Err(NoOffer::Unreadable);
        }
        let required: RequiredJson = serde_json::from_slice(json).map_err(|_| NoOffer::Unreadable)?;
        if required.x402_version != version.number()
            || required.accepts.is_empty()
            || required.accepts.len() > OFFERS_MAX
        {
            return Err(NoOffer::Unreadable);
        }
        let described = [required.resource.as_ref(), required.accepts.first()];
        let description = described
            .into_iter()
            .flatten()
            .find_map(|named| named.get("description")?.as_str())
            .map(|text| words(text, DESCRIPTION_CHARS_MAX));
        // A payment need not repeat it.
        let resource = required.resource.filter(|named| named.to_string().len() <= RESOURCE_BYTES_MAX);
        Ok(Self { version, resource, description, accepts: required.accepts })
    }

    /// The server's own words on what it sells, a stranger's text of at most 300 characters; `None` if it has none.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref().filter(|words| !words.is_empty())
    }

    /// Chooses the cheapest offer that pays this token, whose domain the chain has confirmed.
    ///
    /// # Errors
    /// [`NoOffer`]: why the offer that comes nearest is none for this node.
    pub fn choose(&self, token: &TokenDomain) -> Result<Offer, NoOffer> {
        let mut nearest = NoOffer::Scheme;
        let mut best: Option<Offer> = None;
        for accepted in &self.accepts {
            match self.offer(accepted, token) {
                Ok(offer) if best.as_ref().is_none_or(|best| offer.price < best.price) => best = Some(offer),
                Ok(_) => {}
                Err(reason) if reason.nearness() >= nearest.nearness() => nearest = reason,
                Err(_) => {}
            }
        }
        best.ok_or(nearest)
    }

    /// The same for a wallet that pays, which pays nothing to itself.
    ///
    /// # Errors
    /// [`NoOffer`].
    pub fn choose_for(&self, payer: Address, token: &TokenDomain) -> Result<Offer, NoOffer> {
        let offer = self.choose(token)?;
        if offer.pay_to == payer { Err(NoOffer::OwnWallet) } else { Ok(offer) }
    }

    fn offer(&self, accepted: &Value, token: &TokenDomain) -> Result<Offer, NoOffer> {
        let offer = OfferJson::deserialize(accepted).map_err(|_| NoOffer::Member("terms"))?;
        if offer.scheme != EXACT {
            return Err(NoOffer::Scheme);
        }
        if accepted.to_string().len() > OFFER_BYTES_MAX {
            return Err(NoOffer::TooLong);
        }
        if self.version.network(token.chain_id).as_ref() != Some(&offer.network) {
            return Err(NoOffer::Network(shortened(&offer.network)));
        }
        if address(&offer.asset) != Some(token.token) {
            return Err(NoOffer::Token);
        }
        let extra = offer.extra.unwrap_or_default();
        if extra.asset_transfer_method.is_some_and(|method| method != "eip3009") {
            return Err(NoOffer::Method);
        }
        // A server that names no domain leaves it to the payer.
        let (name, version) = (extra.name.as_ref(), extra.version.as_ref());
        if name.is_some_and(|name| *name != token.name)
            || version.is_some_and(|version| *version != token.version)
        {
            let told = |text: Option<&String>| text.map(|text| shortened(text)).unwrap_or_default();
            return Err(NoOffer::Domain { name: told(name), version: told(version) });
        }
        let amount = match self.version {
            Version::One => offer.max_amount_required,
            Version::Two => offer.amount,
        };
        let price =
            amount.as_deref().and_then(number).map(Usdc::from_micros).ok_or(NoOffer::Member("amount"))?;
        if price.is_zero() {
            return Err(NoOffer::Nothing);
        }
        let pay_to = address(&offer.pay_to).filter(|payee| *payee != Address::ZERO);
        let pay_to = pay_to.ok_or(NoOffer::Member("payee"))?;
        let timeout_secs = offer.max_timeout_seconds;
        if timeout_secs < TIMEOUT_SECS_MIN {
            return Err(NoOffer::TooShort(timeout_secs));
        }
        let (accepted, resource) = (accepted.clone(), self.resource.clone());
        Ok(Offer {
            version: self.version,
            price,
            pay_to,
            timeout_secs,
            network: offer.network,
            accepted,
            resource,
        })
    }
}

impl NoOffer {
    /// The number of checks that an offer passed before this reason refused it.
    const fn nearness(&self) -> u8 {
        match self {
            Self::Unreadable => 0,
            Self::Scheme => 1,
            Self::Network(_) => 2,
            Self::Token => 3,
            Self::Method => 4,
            Self::Domain { .. } => 5,
            Self::Member(_) | Self::TooLong | Self::Nothing | Self::OwnWallet | Self::TooShort(_) => 6,
        }
    }
}

impl Offer {
    /// The chain as the server names it: `eip155:8453` in version 2, `base` in version 1.
    #[must_use]
    pub fn network(&self) -> &str {
        &self.network
    }

    /// The name of the header that carries the payment.
    #[must_use]
    pub const fn header_name(&self) -> &'static str {
        match self.version {
            Version::One => "x-payment",
            Version::Two => "payment-signature",
        }
    }

    /// The header that pays this offer.
    #[must_use]
    pub fn payment(&self, transfer: &SignedTransfer) -> String {
        let SignedTransfer { authorization, signature } = transfer;
        let payload = json!({
            "signature": hex_of(signature.as_bytes()),
            "authorization": {
                "from": authorization.from.to_string(),
                "to": authorization.to.to_string(),
                "value": authorization.value.micros().to_string(),
                "validAfter": authorization.valid_after_secs.to_string(),
                "validBefore": authorization.valid_before_secs.to_string(),
                "nonce": hex_of(&authorization.nonce),
            },
        });
        let number = self.version.number();
        header(&match self.version {
            Version::One => {
                json!({ "x402Version": number, "scheme": EXACT, "network": self.network, "payload": payload })
            }
            Version::Two => {
                let mut payment =
                    json!({ "x402Version": number, "accepted": self.accepted, "payload": payload });
                if let Some(resource) = &self.resource {
                    payment["resource"] = resource.clone();
                }
                payment
            }
        })
    }
}

fn hex_of(bytes: &[u8]) -> String {
    format!("0x{}", hex::encode(bytes))
}

/// A stranger's text in a sentence of this node's.
fn shortened(text: &str) -> String {
    words(text, QUOTED_CHARS_MAX)
}

#[cfg(test)]
mod tests;
