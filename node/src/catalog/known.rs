//! A service whose listing and details are verified: what calls are planned with, on both sides.

use std::collections::BTreeMap;

use farthing_bridge::{
    Api, ApiError, Kind, OperationSpec, ParameterSpec, Place, PrepareError, Prepared, RouteError,
};
use farthing_protocol::{
    Listing, Usdc, Verified,
    call::Method,
    listing::{self, Details, DetailsError, ValueKind},
};

/// Headers a caller may always send: they say what it sends and what it can read.
const HEADERS_ALLOWED: [&str; 5] =
    ["accept", "accept-language", "content-type", "if-modified-since", "if-none-match"];

/// A verified service.
#[derive(Clone, Debug)]
pub struct Known {
    listing: Verified<Listing>,
    details: Details,
    api: Api,
}

/// Why a service cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum KnownError {
    #[error(transparent)]
    Details(#[from] DetailsError),
    #[error(transparent)]
    Api(#[from] ApiError),
}

/// A call that fits the service's description.
#[derive(Clone, Debug)]
pub struct Plan {
    pub price: Usdc,
    /// Where it goes, below the upstream's base.
    pub prepared: Prepared,
    /// To be sent along; names in lower case.
    pub headers: BTreeMap<String, String>,
}

/// Why a call does not fit; nothing is priced or sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("{0}")]
    UnknownPath(String),
    #[error("{0}")]
    MethodNotAllowed(String),
    #[error("{0}")]
    BadParameter(String),
}

impl Known {
    /// Reads the details that `listing` pins and indexes the operations.
    ///
    /// # Errors
    /// [`KnownError`] when they are not the pinned ones, or cannot be offered.
    pub fn new(listing: Verified<Listing>, details: &[u8]) -> Result<Self, KnownError> {
        let details = Details::from_blob(details, &listing)?;
        let api = Api::new(details.operations.iter().map(operation_spec).collect())?;
        Ok(Self { listing, details, api })
    }

    #[must_use]
    pub const fn listing(&self) -> &Verified<Listing> {
        &self.listing
    }

    #[must_use]
    pub const fn details(&self) -> &Details {
        &self.details
    }

    /// Checks a call against the description and prices it.
    ///
    /// # Errors
    /// [`PlanError`], naming what is wrong and what would be right.
    pub fn plan(
        &self,
        method: Method,
        path: &str,
        params: &BTreeMap<String, String>,
        headers: &BTreeMap<String, String>,
        body_bytes: usize,
    ) -> Result<Plan, PlanError> {
        let prepared = self.api.prepare(method.as_str(), path, params)?;
        let operation = &self.details.operations[prepared.operation];
        if body_bytes > 0 && !operation.body {
            let what = format!("{} {} takes no body; leave `body` out", operation.method, operation.path);
            return Err(PlanError::BadParameter(what));
        }
        let mut passed_on: BTreeMap<String, String> = prepared.headers.iter().cloned().collect();
        for (name, value) in headers {
            if !HEADERS_ALLOWED.contains(&name.as_str()) {
                let shown: String = name.chars().filter(|c| !c.is_control()).take(60).collect();
                return Err(PlanError::BadParameter(format!(
                    "the header `{shown}` is not passed on; `headers` may have {}, and declared headers are `params`",
                    HEADERS_ALLOWED.join(", ")
                )));
            }
            if !value.bytes().all(|b| matches!(b, b' '..=b'~')) {
                return Err(PlanError::BadParameter(format!("the header `{name}` must be printable ASCII")));
            }
            passed_on.entry(name.clone()).or_insert_with(|| value.clone());
        }
        Ok(Plan { price: self.listing.price_of(operation), prepared, headers: passed_on })
    }
}

impl From<PrepareError> for PlanError {
    fn from(error: PrepareError) -> Self {
        let text = error.to_string();
        match error {
            PrepareError::Route(RouteError::MethodNotAllowed { .. }) => Self::MethodNotAllowed(text),
            PrepareError::Route(RouteError::BadPath(_)) => Self::BadParameter(text),
            PrepareError::Route(_) => Self::UnknownPath(text),
            PrepareError::Parameters(_) => Self::BadParameter(text),
        }
    }
}

fn operation_spec(operation: &listing::Operation) -> OperationSpec {
    OperationSpec {
        method: operation.method.as_str().to_owned(),
        template: operation.path.clone(),
        parameters: operation.parameters.iter().map(parameter_spec).collect(),
        any_params: operation.any_params,
    }
}

fn parameter_spec(parameter: &listing::Parameter) -> ParameterSpec {
    ParameterSpec {
        name: parameter.name.clone(),
        place: match parameter.place {
            listing::Place::Query => Place::Query,
            listing::Place::Path => Place::Path,
            listing::Place::Header => Place::Header,
        },
        kind: match parameter.kind {
            ValueKind::Text => Kind::Text,
            ValueKind::Integer => Kind::Integer,
            ValueKind::Number => Kind::Number,
            ValueKind::Boolean => Kind::Boolean,
        },
        required: parameter.required,
        choices: parameter.choices.clone(),
    }
}
