//! A service of this owner as the ledger keeps it.

use std::collections::{BTreeMap, BTreeSet};

use farthing_control::types::ServiceFile;
use farthing_protocol::{Listing, Signed};
use minicbor::{Decode, Encode};

use crate::upstream::AddressClass;

/// The stored form.
#[derive(Clone, Encode, Decode)]
#[cbor(map)]
pub(super) struct StoredService {
    #[n(0)]
    pub(super) listing: Signed<Listing>,
    #[cbor(n(1), with = "minicbor::bytes")]
    pub(super) details: Vec<u8>,
    #[n(2)]
    pub(super) upstream: String,
    /// The owner's own secrets: added to every upstream request.
    #[n(3)]
    pub(super) headers: BTreeMap<String, String>,
    /// The same for parameters of the query.
    #[n(4)]
    #[cbor(default)]
    pub(super) query: BTreeMap<String, String>,
    /// The service file and the report of its description as JSON.
    #[n(5)]
    #[cbor(default)]
    pub(super) file: String,
    #[n(6)]
    #[cbor(default)]
    pub(super) report: String,
    #[cbor(n(7), with = "minicbor::bytes", default)]
    pub(super) samples: Vec<u8>,
    /// Notes of versions as JSON, the newest last.
    #[n(8)]
    #[cbor(default)]
    pub(super) versions: String,
    /// The document that the listing pins of them.
    #[cbor(n(9), with = "minicbor::bytes", default)]
    pub(super) history: Vec<u8>,
    /// The distance of the upstream when it was named; a restart does not let its name lead elsewhere.
    #[n(10)]
    pub(super) class: Option<AddressClass>,
}

impl StoredService {
    /// The headers of answers that the owner passes on beside the usual ones, in lower case.
    pub(super) fn response_headers(&self) -> BTreeSet<String> {
        let file: ServiceFile = serde_json::from_str(&self.file).unwrap_or_default();
        file.response_headers.iter().map(|name| name.trim().to_ascii_lowercase()).collect()
    }
}

farthing_os::hidden!(StoredService { upstream });
