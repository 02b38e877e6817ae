//! Asking a GraphQL server what it offers.
//!
//! Introspection first, with what newer servers know and then without; where it is switched off, a federated
//! service may still hand out its schema as text.

use bytes::Bytes;
use farthing_bridge::{graphql::introspection, report::ReadError, report::Reading};
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use url::Url;

use super::{
    fetch::{Fetcher, Miss, Page},
    parse,
};

/// Query of Apollo Federation for the schema of one service.
const SERVICE_SDL: &str = "{ _service { sdl } }";

/// The answer of an address that was asked for its schema.
pub(super) enum Endpoint {
    Schema(Box<Reading>),
    /// It told its schema, which cannot be read.
    Unreadable(ReadError),
    /// It speaks GraphQL and does not tell its schema.
    Silent,
    /// It does not speak GraphQL; the status it gave.
    Other(u16),
}

/// Asks `url` for its schema.
pub(super) async fn ask(fetcher: &Fetcher, url: &Url) -> Result<Endpoint, Miss> {
    for query in [introspection::QUERY_RICH, introspection::QUERY, SERVICE_SDL] {
        let page = fetcher.post(url, json!({ "query": query }).to_string().into()).await?;
        match GraphqlAnswer::of(&page) {
            None => return Ok(Endpoint::Other(page.status.as_u16())),
            Some(answer) if answer.tells_schema() => return Ok(read(page.body.clone()).await),
            Some(_) => {}
        }
    }
    Ok(Endpoint::Silent)
}

async fn read(bytes: Bytes) -> Endpoint {
    match parse(bytes).await {
        Ok(reading) => Endpoint::Schema(Box::new(reading)),
        Err(error) => Endpoint::Unreadable(error),
    }
}

/// An answer as the GraphQL specification has it; anything else is not GraphQL.
#[derive(Deserialize)]
struct GraphqlAnswer<'a> {
    #[serde(borrow)]
    data: Option<Data<'a>>,
    errors: Option<Vec<GraphqlError<'a>>>,
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow, rename = "__schema")]
    schema: Option<&'a RawValue>,
    #[serde(rename = "_service")]
    service: Option<Service<'a>>,
}

#[derive(Deserialize)]
struct Service<'a> {
    #[serde(borrow)]
    sdl: Option<&'a RawValue>,
}

/// An error; only that it has a message tells GraphQL from other APIs with a list of `errors`.
#[derive(Deserialize)]
struct GraphqlError<'a> {
    #[serde(borrow, rename = "message")]
    _message: &'a RawValue,
}

impl<'a> GraphqlAnswer<'a> {
    fn of(page: &'a Page) -> Option<Self> {
        let answer: Self = serde_json::from_slice(&page.body).ok()?;
        let complains = answer.errors.as_ref().is_some_and(|errors| !errors.is_empty());
        (complains || answer.tells_schema()).then_some(answer)
    }

    fn tells_schema(&self) -> bool {
        let tells = |part: Option<&RawValue>| part.is_some_and(|part| part.get().starts_with(['{', '"']));
        self.data.as_ref().is_some_and(|data| {
            tells(data.schema) || data.service.as_ref().is_some_and(|service| tells(service.sdl))
        })
    }
}
