//! A description as an OpenAPI document: what a consumer sees of a service, called through its own gateway.
//!
//! 1. Answers of GraphQL operations are relaxed: with `fields` any member may be missing ([`relax`]).
//! 2. Equal inline shapes get a name ([`crate::share`]).
//! 3. Each operation is written with its parameters, body and answers ([`operations`]), and to the service's
//!    answers come those of the network ([`problems`]).
//! 4. Named schemas that were referred to follow ([`schemas`]), under names that OpenAPI allows ([`names`]).
//! 5. For 3.0.3 the document goes through the types of `openapiv3`, so that two programs agree on its form.
//!
//! The document is the same for the same description and options. Invariants: every `$ref` resolves; operation
//! ids are unique; every example and default is valid under its schema, because others are left out.

mod names;
mod operations;
mod problems;
pub mod relax;
mod schemas;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use self::{operations::Operations, schemas::SchemaWriter};
use crate::{description::ApiDescription, share::share};

/// The version of OpenAPI to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// 3.1.0, whose schemas are JSON Schema.
    #[default]
    V31,
    /// 3.0.3, for tools that know nothing newer.
    V30,
}

/// The contents of a document beyond the description.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteOptions {
    pub version: Version,
    /// Addresses below which the paths are, such as `https://localhost:3000/services/<id>`; `/` when empty.
    pub servers: Vec<String>,
    /// The service's id, shown as `x-farthing-service`.
    pub service: Option<String>,
    /// Price of a call in USDC as decimal text, shown as `x-farthing-price-usdc`.
    pub price: Option<String>,
    /// Prices that differ, by operation id.
    pub prices: BTreeMap<String, String>,
    /// True if calls need the consumer's secret of the gateway.
    pub needs_secret: bool,
}

/// Writes the document.
pub fn write(description: &ApiDescription, options: &WriteOptions) -> Value {
    let mut shown = relax::shown(description);
    share(&mut shown);
    let document = document(&shown, options);
    drop(shown);
    match options.version {
        Version::V31 => document,
        Version::V30 => agreed(document),
    }
}

fn document(description: &ApiDescription, options: &WriteOptions) -> Value {
    let mut schemas = SchemaWriter::new(description, options.version);
    let mut operations = Operations::new(description, options, &mut schemas);
    let paths = operations.paths();
    let responses = operations.into_shared_responses();
    let mut components = Map::new();
    components.insert("schemas".into(), schemas.into_components().into());
    components.insert("responses".into(), responses.into());
    if options.needs_secret {
        components.insert("securitySchemes".into(), json!({ SECRET: security_scheme() }));
    }
    let version = match options.version {
        Version::V31 => "3.1.0",
        Version::V30 => "3.0.3",
    };
    let mut document = Map::new();
    document.insert("openapi".into(), version.into());
    document.insert("info".into(), info(description));
    if let Some(service) = &options.service {
        document.insert("x-farthing-service".into(), service.as_str().into());
    }
    document.insert("servers".into(), servers(&options.servers));
    document
        .insert("security".into(), if options.needs_secret { json!([{ SECRET: [] }]) } else { json!([]) });
    document.insert("tags".into(), tags(description));
    document.insert("paths".into(), paths.into());
    document.insert("components".into(), components.into());
    document.into()
}

const SECRET: &str = "consumerSecret";

fn security_scheme() -> Value {
    json!({
        "type": "http",
        "scheme": "bearer",
        "description": "The consumer secret of the node that buys the call; `farthing secret show` prints it.",
    })
}

fn info(description: &ApiDescription) -> Value {
    let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
    let mut info = Map::new();
    info.insert("title".into(), or(&description.title, "Untitled service").into());
    let text = or(&description.description, "Each call is bought by the caller's own node and paid in USDC.");
    info.insert("description".into(), markdown(&text).into());
    info.insert("version".into(), or(&description.version, "1").into());
    info.into()
}

fn servers(servers: &[String]) -> Value {
    let mut urls: Vec<&str> = servers.iter().map(|url| url.trim_end_matches('/')).collect();
    if urls.is_empty() {
        urls.push("");
    }
    let server = |url: &str| json!({ "url": if url.is_empty() { "/" } else { url } });
    urls.into_iter().map(server).collect()
}

/// In the order in which operations name them.
fn tags(description: &ApiDescription) -> Value {
    let mut seen = BTreeSet::new();
    let names = description.operations.iter().flat_map(|operation| &operation.tags);
    names.filter(|name| seen.insert(name.as_str())).map(|name| json!({ "name": name })).collect()
}

/// A stranger's Markdown, in which no script can begin: not every viewer of documents takes it out.
fn markdown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        let name = tag[1..].trim_start_matches('/').get(..6);
        safe.push_str(before);
        safe.push_str(if name.is_some_and(|name| name.eq_ignore_ascii_case("script")) {
            "&lt;"
        } else {
            "<"
        });
        rest = &tag[1..];
    }
    safe.push_str(rest);
    safe
}

/// The document as the typed crate understands it. Tests show that it takes everything that is written here;
/// if it ever did not, the document itself is the better answer than none.
fn agreed(document: Value) -> Value {
    let typed = openapiv3::OpenAPI::deserialize(&document);
    typed.and_then(serde_json::to_value).unwrap_or(document)
}

#[cfg(test)]
mod tests;
