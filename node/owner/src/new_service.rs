//! A service that an owner publishes, checked before anything is signed.

use std::collections::BTreeMap;

use farthing_bridge::{
    description::{ApiDescription, Place},
    report::Report,
};
use farthing_control::types::ServiceFile;
use farthing_protocol::{ServiceId, Usdc, call::ChargePolicy, limits, listing::OperationPrice};
use url::Url;

/// A service to publish.
#[derive(Clone)]
pub struct NewService {
    /// Replaces the service of this id; a new one is chosen when absent.
    pub id: Option<ServiceId>,
    pub name: String,
    pub summary: String,
    pub category: String,
    pub tags: Vec<String>,
    /// Base URL of the owner's server; for GraphQL the endpoint itself.
    pub upstream: String,
    /// True if the owner names it now. Otherwise its name may lead no further than in the version before.
    pub upstream_is_named: bool,
    pub secrets: UpstreamSecrets,
    /// Otherwise none mean those of the version before.
    pub secrets_are_all: bool,
    pub price: Usdc,
    pub charge_policy: ChargePolicy,
    /// Only what is offered.
    pub api: ApiDescription,
    pub prices: Vec<OperationPrice>,
    /// The file it was registered with, secrets and texts left out: a later reading is compared with it.
    pub file: ServiceFile,
    pub report: Report,
    /// The samples document, when there is one.
    pub samples: Option<Vec<u8>>,
}

/// Sent to the upstream with every call and never shown to anyone.
#[derive(Clone, Default)]
pub struct UpstreamSecrets {
    pub headers: BTreeMap<String, String>,
    pub query: BTreeMap<String, String>,
}

impl UpstreamSecrets {
    pub fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.query.is_empty()
    }

    /// All of them when `now` has the scheme, host and port of `before`, else none: a key belongs to the server that
    /// it was given for, and another one gets it only when its owner gives it again.
    #[must_use]
    pub fn kept_for(self, before: &str, now: &str) -> Self {
        if same_origin(before, now) { self } else { Self::default() }
    }

    /// Tells whether a caller's parameter of this name would meet one of them.
    pub fn has(&self, place: Place, name: &str) -> bool {
        let of = |names: &BTreeMap<String, String>| names.keys().any(|own| own.eq_ignore_ascii_case(name));
        match place {
            Place::Query => of(&self.query),
            Place::Header => of(&self.headers),
            Place::Path => false,
        }
    }
}

/// Compares two addresses by scheme, host and port; what is no address is like no other.
pub fn same_origin(one: &str, other: &str) -> bool {
    match (Url::parse(one.trim()), Url::parse(other.trim())) {
        (Ok(one), Ok(other)) => one.origin().is_tuple() && one.origin() == other.origin(),
        _ => false,
    }
}

impl std::fmt::Debug for UpstreamSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&String> = self.headers.keys().chain(self.query.keys()).collect();
        f.debug_struct("UpstreamSecrets").field("names", &names).finish_non_exhaustive()
    }
}

farthing_os::hidden!(NewService { name });

/// A mistake that keeps a service from being published.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct NewServiceError {
    pub field: String,
    pub problem: String,
}

impl NewServiceError {
    pub(super) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}

impl NewService {
    /// Checks what neither the listing nor the bridge does: that there is something to sell, within bounds.
    pub fn check(&self) -> Result<(), NewServiceError> {
        let operations = &self.api.operations;
        if operations.is_empty() {
            let problem = "is empty; name at least one, such as method = \"GET\", path = \"/v1/things\"";
            return Err(NewServiceError::new("operations", problem));
        }
        if operations.len() > limits::OPERATIONS_MAX {
            let problem = format!("are more than {}; leave some out", limits::OPERATIONS_MAX);
            return Err(NewServiceError::new("operations", problem));
        }
        for (i, operation) in operations.iter().enumerate() {
            if !operation.path.starts_with('/') || operation.path.len() > limits::PATH_BYTES_MAX {
                let problem = "must start with / and be a path such as /v1/things/{id}";
                return Err(NewServiceError::new(format!("operations[{i}].path"), problem));
            }
        }
        if self.upstream.is_empty() {
            let problem = "is missing; enter the address of your own server, such as http://127.0.0.1:8080";
            return Err(NewServiceError::new("upstream", problem));
        }
        Ok(())
    }
}
