//! x402 servers that this node buys from.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{AddressText, ServiceIdText, UsdcText};

/// An x402 server, whose paths are called under an id of this node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct X402Server {
    /// `api_id_public` of its calls, at this node alone.
    pub id: ServiceIdText,
    /// Its paths are below this address.
    pub url: String,
    /// Seconds since the Unix epoch.
    pub added_secs: u64,
    /// No call may cost more, whatever `max_price` the call has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_price: Option<UsdcText>,
    /// The terms that the server said last; absent if it was not asked since the node started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<X402Terms>,
}

/// The terms of an x402 server, as it said them itself when it was asked. Every call has an offer of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct X402Terms {
    /// The address that was asked, without its query.
    pub url: String,
    /// The time of its answer, in seconds since the Unix epoch.
    pub heard_secs: u64,
    /// HTTP status of its answer without a payment: 402 if it asks for one.
    pub status: u16,
    /// Price of a call in this chain's USDC; absent if this node would not pay, or nothing is asked.
    pub price: Option<UsdcText>,
    /// The chain as the server names it.
    pub network: Option<String>,
    /// The wallet that is paid.
    pub pay_to: Option<AddressText>,
    /// The server's own words about what it sells, a stranger's text of at most 300 characters.
    pub description: Option<String>,
    /// The reason that this node would not pay, though the server asks for a payment.
    pub refused: Option<String>,
}

/// An address to ask for its terms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct X402Question {
    /// That of an x402 server or of a path of it, without user name and query.
    pub url: String,
}

/// An x402 server to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewX402Server {
    /// Such as https://data.example/api, without user name and query.
    pub url: String,
    /// No call may cost more. A server that is there already takes it over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_price: Option<UsdcText>,
}
