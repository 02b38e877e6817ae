//! A REST service and a GraphQL service with everything a description can say.

use crate::description::ApiDescription;

fn read(json: &str) -> ApiDescription {
    serde_json::from_str(json).expect("a description in its own form")
}

/// Every place, style, shape, bound, status, body and annotation.
pub(crate) fn rest() -> ApiDescription {
    read(include_str!("rest.json"))
}

/// Nullable references, unions, recursion, input objects, a mutation, and members that `fields` can leave out.
pub(crate) fn graphql() -> ApiDescription {
    read(include_str!("graphql.json"))
}
