//! The neutral model in which every kind of API meets: operations, parameters, schemas.
//!
//! Readers ([`crate::openapi::read`], [`crate::graphql::sdl`], [`crate::graphql::introspection`]) write it; routing,
//! requests, the published OpenAPI document, forms and client code are made from it. A description says what a
//! caller may do, and nothing of where the owner's server is or how it is paid.
//!
//! Invariants, checked by [`crate::Api::new`]: every [`SchemaId`] is an index into [`ApiDescription::schemas`];
//! operation ids are unique; no two operations match the same method and path.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{limits::LISTS_DEPTH_MAX, media::essence};

pub mod graphql;
mod schema;

use graphql::GraphqlSchema;
pub use schema::{
    ArrayOf, Discriminator, NamedSchema, NumberBounds, Object, OneOf, Property, Schema, SchemaId, Shape,
    StringBounds,
};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ApiDescription {
    pub title: String,
    /// The API's own version text, such as `1.4.2`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Markdown by a stranger.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub operations: Vec<Operation>,
    /// Named schemas that [`Shape::Ref`] points to; cycles are allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schemas: Vec<NamedSchema>,
    /// The schema that queries are planned with, when the upstream speaks GraphQL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graphql: Option<GraphqlSchema>,
    /// True if answers come packed as a caller asks for: the owner's node passes `accept-encoding` on, and refuses it no more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub packs_answers: bool,
}

/// HTTP methods that can be sold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    pub const ALL: [Self; 6] = [Self::Get, Self::Head, Self::Post, Self::Put, Self::Patch, Self::Delete];

    /// Upper case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Reads a method in any case; `None` for one that cannot be sold.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(text))
    }
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// Method and path, and everything a caller can say and hear there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    pub method: Method,
    /// Template such as `/users/{id}`; begins with a slash.
    pub path: String,
    /// Unique within the API; made up by the reader when the source has none.
    pub id: String,
    /// One line of plain text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Markdown by a stranger.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deprecated: bool,
    /// Parameters of the path template are among them, and required.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
    /// Answers of the service itself; at most one per status.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub responses: Vec<Response>,
    /// Undeclared parameters go to the query as they are instead of being refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_params: bool,
    /// Seconds that an answer may take, as the service's owner chose; what is usual otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<u16>,
    /// The GraphQL root field this operation stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<RootField>,
}

/// A field of a GraphQL root type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootField {
    pub kind: RootKind,
    pub field: String,
    /// Lists within lists that a query may ask for, as the service's owner chose; [`LISTS_DEPTH_MAX`] otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lists: Option<u8>,
}

impl RootField {
    /// A field under the usual bounds.
    pub const fn new(kind: RootKind, field: String) -> Self {
        Self { kind, field, lists: None }
    }

    /// Lists within lists that a query may ask for.
    pub fn lists_max(&self) -> u8 {
        self.lists.unwrap_or(LISTS_DEPTH_MAX)
    }
}

/// The root type that a field belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Hash)]
#[serde(rename_all = "lowercase")]
pub enum RootKind {
    Query,
    Mutation,
}

impl RootKind {
    /// The operation's keyword.
    #[must_use]
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Mutation => "mutation",
        }
    }
}

/// A named value a caller may send, as text under its name in `params`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    pub name: String,
    #[serde(rename = "in")]
    pub place: Place,
    #[serde(default, skip_serializing_if = "Style::is_default")]
    pub style: Style,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    pub schema: Schema,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deprecated: bool,
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub example: Option<Value>,
}

/// The part of the upstream's request that a parameter travels in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    #[default]
    Query,
    Path,
    Header,
}

impl Place {
    /// Returns its name in OpenAPI.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Path => "path",
            Self::Header => "header",
        }
    }
}

/// The form in which arrays and objects are written (OpenAPI 3.1, "Style Values"). Scalars look the same in all of them
/// but [`Self::Json`]. Paths and headers know commas, exploded and JSON; the others are commas there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Style {
    /// `a=1,2` in a query, `1,2` in a path or header; an object as `k,v,k,v`.
    #[default]
    Comma,
    /// `a=1&a=2` in a query; in a path or header an object as `k=v,k=v`.
    Exploded,
    /// `a=1%202`.
    Space,
    /// `a=1%7C2`.
    Pipe,
    /// `a%5Bk%5D=v`, that is `a[k]=v`.
    DeepObject,
    /// One JSON text, checked and sent as it came (OpenAPI's `content: application/json`).
    Json,
}

impl Style {
    fn is_default(&self) -> bool {
        *self == Self::Comma
    }
}

/// The body of a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Body {
    pub kind: BodyKind,
    /// Sent upstream as the content type, without parameters: `application/json`, `text/csv`, `image/*`.
    pub media_type: String,
    /// Other media types that may be sent instead, of which nothing is known; `*/*` is any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    pub schema: Schema,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub example: Option<Value>,
}

/// The way in which a caller's body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BodyKind {
    /// JSON, checked against the schema and passed on byte by byte.
    Json,
    /// A JSON object whose members become `application/x-www-form-urlencoded`, or such a form, which is passed on.
    Form,
    /// Passed on as it is: text, or bytes of a media type that is no text. Of `multipart/…` the parts are checked.
    Text,
    /// Nobody described it: passed on as it is, whatever its content type.
    #[default]
    Any,
}

/// An answer of the service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    pub status: Status,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Absent when the answer has no body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
}

/// The statuses that a [`Response`] describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Code(u16),
    /// `2XX` is `Class(2)`.
    Class(u8),
    Default,
}

impl Status {
    /// Returns whether it describes success.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Code(200..=299) | Self::Class(2))
    }
}

impl std::fmt::Display for Status {
    /// As OpenAPI writes it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "{code}"),
            Self::Class(class) => write!(f, "{class}XX"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// Any media type.
pub const ANYTHING: &str = "*/*";

/// The content of a body.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Content {
    /// Without parameters: `application/json`.
    pub media_type: String,
    pub schema: Schema,
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub example: Option<Value>,
    /// Other media types that may come instead, of which nothing is known; `*/*` is any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
}

impl Content {
    /// Every media type that may come, without parameters and in lower case.
    pub fn media_types(&self) -> impl Iterator<Item = String> {
        self.also.iter().chain([&self.media_type]).map(|media_type| essence(media_type))
    }
}

impl ApiDescription {
    /// The named schema; `None` for an id that is out of range, which [`crate::Api::new`] rules out.
    pub fn schema(&self, id: SchemaId) -> Option<&NamedSchema> {
        self.schemas.get(usize::try_from(id.0).ok()?)
    }

    /// The kind of a value in a few words: `integer`, `one of A, B`, `array of Planet`.
    pub fn type_name(&self, schema: &Schema) -> String {
        self.type_name_to(schema, 4)
    }

    fn type_name_to(&self, schema: &Schema, depth: usize) -> String {
        const CHOICES_SHOWN: usize = 6;
        let Some(depth) = depth.checked_sub(1) else { return "value".to_owned() };
        if let Shape::Ref(id) = schema.shape {
            return self.schema(id).map_or_else(|| "value".to_owned(), |named| named.name.clone());
        }
        if !schema.choices.is_empty() {
            let shown =
                |choice: &Value| choice.as_str().map_or_else(|| choice.to_string(), ToOwned::to_owned);
            let mut names: Vec<String> = schema.choices.iter().take(CHOICES_SHOWN).map(shown).collect();
            if schema.choices.len() > CHOICES_SHOWN {
                names.push("…".to_owned());
            }
            return format!("one of {}", names.join(", "));
        }
        match &schema.shape {
            Shape::Any => "any".to_owned(),
            Shape::Boolean => "boolean".to_owned(),
            Shape::Integer(_) => "integer".to_owned(),
            Shape::Number(_) => "number".to_owned(),
            Shape::String(bounds) if bounds.format.is_empty() => "string".to_owned(),
            Shape::String(bounds) => format!("string ({})", bounds.format),
            Shape::Array(array) => format!("array of {}", self.type_name_to(&array.items, depth)),
            Shape::Object(_) => "object".to_owned(),
            Shape::OneOf(_) => "one of several".to_owned(),
            Shape::Ref(_) => "value".to_owned(),
        }
    }

    /// Follows references until there is something else; `None` for a chain that never ends.
    pub fn resolve<'a>(&'a self, schema: &'a Schema) -> Option<&'a Schema> {
        let mut schema = schema;
        for _ in 0..=self.schemas.len() {
            match schema.shape {
                Shape::Ref(id) => schema = &self.schema(id)?.schema,
                _ => return Some(schema),
            }
        }
        None
    }
}

/// An example or default that is null is one; without this it would be read as none.
pub(crate) fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
