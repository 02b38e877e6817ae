//! The terms of an x402 server, as it said them itself when it was asked last: in memory, to be shown to the user.
//!
//! No call is paid by it: each is paid by the offer that its own answer has.

use farthing_os::clock;
use farthing_protocol::{Address, Usdc};
use url::Url;

/// The answer of a server to a request without a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignTerms {
    /// The address that was asked, without its query.
    pub url: Url,
    /// Seconds since the Unix epoch.
    pub heard_secs: u64,
    /// HTTP status; 402 from a server that asks for a payment.
    pub status: u16,
    /// The server's own words, a stranger's text.
    pub description: Option<String>,
    /// The offer that this node would pay.
    pub offer: Option<ForeignOffer>,
    /// The reason that this node pays none, though the server asks for a payment.
    pub refused: Option<String>,
}

/// An offer that this node would pay, in its chain's USDC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignOffer {
    pub price: Usdc,
    /// The chain as the server names it.
    pub network: String,
    pub pay_to: Address,
}

impl ForeignTerms {
    /// Terms that are only a status yet.
    pub(super) fn answered(url: &Url, status: u16) -> Self {
        let mut url = url.clone();
        // Terms are of a path, and a query can hold what its caller keeps to itself.
        url.set_query(None);
        Self { url, heard_secs: clock::now_secs(), status, description: None, offer: None, refused: None }
    }
}
