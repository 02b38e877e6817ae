//! API descriptions in; requests out. Pure: no sockets, files, tasks or clocks.
//!
//! A service is a list of [`OperationSpec`]s. [`Api::new`] checks and indexes them once; [`Api::prepare`] turns
//! method, path and parameters of a call into a [`Prepared`] request or says, naming the nearest right thing,
//! why it cannot: *a bad request costs nothing*. The same code runs on the consumer's node before a call is
//! priced and on the owner's before the upstream is reached.
//!
//! Reading order: [`routing`] → [`parameters`] → [`request`] → [`headers`].

pub mod description;
pub mod document;
pub mod graphql;
pub mod headers;
pub mod limits;
pub mod parameters;
pub mod problem;
pub mod report;
pub mod request;
pub mod routing;

pub use parameters::{Api, ApiError, Kind, OperationSpec, ParameterSpec, Place, PrepareError};
pub use request::Prepared;
pub use routing::{Route, RouteError, Routes};

/// The candidate most like `name`, if any is alike enough to be what was meant.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distance_max = name.chars().count() / 3 + 1;
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= distance_max)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A stranger's text, shortened and without control characters, for repeating it in an error.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}
