//! x402 servers that this node buys from.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ServiceIdText;

/// An x402 server, whose paths are called under an id of this node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct X402Server {
    /// `api_id_public` of its calls, at this node alone.
    pub id: ServiceIdText,
    /// Its paths are below this address.
    pub url: String,
    /// Seconds since the Unix epoch.
    pub added_secs: u64,
}

/// The address of an x402 server to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewX402Server {
    /// Such as https://data.example/api, without user name and query.
    pub url: String,
}
