//! The shape of values, whatever the source called it: JSON Schema, Swagger's subset of it, GraphQL's types.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use super::given;

/// Index into [`ApiDescription::schemas`](super::ApiDescription::schemas).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SchemaId(pub u32);

/// A schema with the name it had in its source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedSchema {
    /// Unique within the API.
    pub name: String,
    pub schema: Schema,
}

/// The form of a value. Whatever a source says that is not here is not checked, and named in the report when it would
/// have been.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    pub shape: Shape,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nullable: bool,
    /// The allowed values, `null` not among them; any when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Value>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The value that the upstream takes when none is given; shown, never sent.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub example: Option<Value>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deprecated: bool,
}

/// The kind of a value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Shape {
    /// Any JSON.
    #[default]
    Any,
    Boolean,
    /// Of 64 bits unless the format says otherwise; a longer one is refused.
    Integer(NumberBounds),
    Number(NumberBounds),
    String(StringBounds),
    Array(Box<ArrayOf>),
    Object(Object),
    /// At least one of them (JSON Schema's `oneOf` and `anyOf`, a GraphQL union).
    OneOf(OneOf),
    /// A named schema. The referring [`Schema`] may add `nullable`, a description, a default.
    Ref(SchemaId),
}

/// Bounds of a number, inclusive unless said otherwise.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NumberBounds {
    /// `int32`, `int64`, `double`, …
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub format: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<Number>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub minimum_is_exclusive: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub maximum_is_exclusive: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StringBounds {
    /// `date-time`, `uuid`, `byte`, `binary`, …; shown, not checked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub format: String,
    /// Characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length_min: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length_max: Option<u64>,
    /// A regular expression of the source's dialect (ECMA-262); shown, not checked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pattern: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ArrayOf {
    pub items: Schema,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items_min: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items_max: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Object {
    /// In the source's order; names are unique.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<Property>,
    /// The schema of further members; `None` when there may be none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional: Option<Box<Schema>>,
    /// Exactly one member must be given (GraphQL's `@oneOf`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exactly_one: bool,
}

/// A member of an object.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Property {
    pub name: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    pub schema: Schema,
}

/// Alternatives.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OneOf {
    pub variants: Vec<Schema>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discriminator: Option<Discriminator>,
}

/// The member that says which alternative a value is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Discriminator {
    pub property: String,
    /// Value of the property and index of the variant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mapping: Vec<(String, u32)>,
}

impl Schema {
    /// A schema of this shape and nothing else.
    pub fn of(shape: Shape) -> Self {
        Self { shape, ..Self::default() }
    }

    pub fn string() -> Self {
        Self::of(Shape::String(StringBounds::default()))
    }

    pub fn integer() -> Self {
        Self::of(Shape::Integer(NumberBounds::default()))
    }

    pub fn number() -> Self {
        Self::of(Shape::Number(NumberBounds::default()))
    }

    pub fn boolean() -> Self {
        Self::of(Shape::Boolean)
    }

    pub fn array(items: Self) -> Self {
        Self::of(Shape::Array(Box::new(ArrayOf { items, ..ArrayOf::default() })))
    }

    pub fn reference(id: SchemaId) -> Self {
        Self::of(Shape::Ref(id))
    }

    #[must_use]
    pub fn or_null(mut self) -> Self {
        self.nullable = true;
        self
    }
}
