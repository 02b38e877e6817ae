//! An operation as a form to fill in: one field per parameter, with what may stand in it, and the body.
//!
//! Whoever shows a form (the console, a program) needs no knowledge of schemas: a field says how it is entered
//! ([`FormInput`]), what may be chosen, and what it may begin with. What is entered goes into a call's `params` as
//! text, and is checked there like any other call.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::{
    body::is_of,
    cut,
    description::{
        ApiDescription, Body, BodyKind, Object, Operation, Parameter, Place, Property, Schema, Shape,
    },
    limits::PARTS_MAX,
    media::is_text,
    multipart::{is_form, is_multipart},
    pretty::pretty,
    samples::made_up_value,
};

/// Longer lists of choices are typed in: nobody looks through them.
const CHOICES_MAX: usize = 250;

/// Examples that are longer in lines stand in one.
const EXAMPLE_BYTES_MAX: usize = 64 * 1024;

/// The longest text of a field. Longer defaults, examples and choices are left out, descriptions are cut: 64 parameters may
/// refer to one text.
const FIELD_BYTES_MAX: usize = 16 * 1024;

/// Everything that a call of one operation is made of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Form {
    /// Required ones first, each group in the description's order.
    pub fields: Vec<FormField>,
    /// True if undeclared parameters are passed on.
    #[serde(default)]
    pub any_params: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<BodyField>,
}

/// One parameter, or one part of the body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FormField {
    pub name: String,
    /// None of a part of the body.
    #[serde(rename = "in", default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    #[serde(default)]
    pub required: bool,
    /// In a few words: `integer`, `one of A, B`.
    #[serde(rename = "type")]
    pub kind: String,
    pub input: FormInput,
    /// Markdown by a stranger.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The value that the service takes when none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
    /// Inclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<String>,
    /// Inclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<String>,
    #[serde(default)]
    pub deprecated: bool,
    /// True of a file of which several may be chosen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub several: bool,
}

/// The way in which a value is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FormInput {
    Text,
    Integer,
    Number,
    Boolean,
    /// One of the field's choices.
    Choice,
    /// Values separated by commas, or a JSON array.
    List,
    Json,
    /// A file, which only a part of the body can be.
    File,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BodyField {
    pub kind: BodyKind,
    pub media_type: String,
    /// Media types that may be sent instead; `*/*` is any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    #[serde(default, skip_serializing_if = "BodyInput::is_text")]
    pub input: BodyInput,
    #[serde(default)]
    pub required: bool,
    #[serde(rename = "type")]
    pub type_name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// A body to begin with: the owner's example, or one made up from the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
}

/// The way in which a body is entered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BodyInput {
    #[default]
    Text,
    /// One file, which is the whole body.
    File,
    /// The parts of a form, required ones first; none where the description names none.
    Parts(Vec<FormField>),
}

impl BodyInput {
    /// Returns whether the body is typed.
    pub const fn is_text(&self) -> bool {
        matches!(self, Self::Text)
    }
}

impl FormField {
    /// Returns the text that the field may begin with: nothing, unless something has to be given.
    pub fn start(&self) -> &str {
        let known = self.example.as_ref().or(self.default.as_ref()).or(self.choices.first());
        if self.required { known.map_or("", String::as_str) } else { "" }
    }
}

impl BodyField {
    /// Returns whether the body is written as JSON.
    pub const fn is_json(&self) -> bool {
        matches!(self.kind, BodyKind::Json | BodyKind::Form)
    }

    /// Returns the content type of a file that whoever sends it calls `given`: that one where it is described, the described
    /// one otherwise, as systems know few types by name.
    pub fn type_of_file<'t>(&'t self, given: &'t str) -> &'t str {
        let fits = |wanted: &String| is_of(&wanted.to_ascii_lowercase(), &given.to_ascii_lowercase());
        let is_described = !given.is_empty() && (fits(&self.media_type) || self.also.iter().any(fits));
        if is_described || self.media_type.contains('*') { given } else { &self.media_type }
    }
}

/// The form of `operation`, which is one of `description`.
pub fn of(description: &ApiDescription, operation: &Operation) -> Form {
    let mut fields: Vec<FormField> =
        operation.parameters.iter().map(|parameter| field(description, parameter)).collect();
    fields.sort_by_key(|field| !field.required);
    let body = operation.body.as_ref().map(|body| {
        let made_up = || made_up_value(description, &body.schema).filter(|_| body.kind != BodyKind::Text);
        let example = body.example.clone().or_else(made_up);
        BodyField {
            kind: body.kind,
            media_type: body.media_type.clone(),
            also: body.also.clone(),
            input: body_input(description, body),
            required: body.required,
            type_name: shortened(&description.type_name(&body.schema)),
            description: shortened(&body.description),
            example: example.map(|example| match example {
                Value::String(text) if !matches!(body.kind, BodyKind::Json | BodyKind::Form) => text,
                value => lines(&value),
            }),
        }
    });
    Form { fields, any_params: operation.any_params, body }
}

fn body_input(description: &ApiDescription, body: &Body) -> BodyInput {
    if body.kind != BodyKind::Text || is_text(&body.media_type) {
        return BodyInput::Text;
    }
    if !is_multipart(&body.media_type) {
        return BodyInput::File;
    }
    // Parts of other bodies have no names.
    let object = Some(&body.schema).filter(|_| is_form(&body.media_type));
    let properties =
        object.and_then(|schema| object_of(description, schema)).map(|object| &object.properties);
    let properties = properties.into_iter().flatten().take(PARTS_MAX);
    let mut parts: Vec<FormField> = properties.map(|property| part(description, property)).collect();
    parts.sort_by_key(|part| !part.required);
    BodyInput::Parts(parts)
}

/// The object that a schema is, or the first one that it may be.
fn object_of<'d>(description: &'d ApiDescription, schema: &'d Schema) -> Option<&'d Object> {
    let object = |schema: &'d Schema| match &description.resolve(schema)?.shape {
        Shape::Object(object) => Some(object),
        _ => None,
    };
    match &description.resolve(schema)?.shape {
        Shape::OneOf(one_of) => one_of.variants.iter().find_map(object),
        _ => object(schema),
    }
}

fn part(description: &ApiDescription, property: &Property) -> FormField {
    let resolved = |schema| description.resolve(schema).map(|schema: &Schema| &schema.shape);
    let is_file =
        |shape: Option<&Shape>| matches!(shape, Some(Shape::String(bounds)) if bounds.format == "binary");
    let shape = resolved(&property.schema);
    let several = matches!(shape, Some(Shape::Array(array)) if is_file(resolved(&array.items)));
    let field = described(description, &property.name, &property.schema);
    let input = if several || is_file(shape) { FormInput::File } else { field.input };
    FormField { required: property.required, input, several, ..field }
}

/// In lines, unless these would be so long that nobody edits them.
fn lines(value: &Value) -> String {
    let lines = pretty(value, EXAMPLE_BYTES_MAX);
    if lines.is_cut { value.to_string() } else { lines.text }
}

fn field(description: &ApiDescription, parameter: &Parameter) -> FormField {
    let field = described(description, &parameter.name, &parameter.schema);
    let said = Some(&parameter.description).filter(|text| !text.is_empty());
    FormField {
        place: Some(parameter.place),
        required: parameter.required,
        description: said.map_or(field.description, |text| shortened(text)),
        example: parameter.example.as_ref().and_then(text_of_field).or(field.example),
        deprecated: parameter.deprecated || field.deprecated,
        ..field
    }
}

fn described(description: &ApiDescription, name: &str, own: &Schema) -> FormField {
    let schema = description.resolve(own).unwrap_or(own);
    let (minimum, maximum) = bounds(schema);
    let choices = choices(schema);
    let first = |one: &Option<Value>, other: &Option<Value>| {
        one.as_ref().or(other.as_ref()).filter(|value| !value.is_null()).and_then(text_of_field)
    };
    let describes = [&own.description, &schema.description];
    FormField {
        name: name.to_owned(),
        place: None,
        required: false,
        kind: shortened(&description.type_name(own)),
        input: if choices.is_empty() { input(description, schema) } else { FormInput::Choice },
        description: describes
            .into_iter()
            .find(|text| !text.is_empty())
            .map(|text| shortened(text))
            .unwrap_or_default(),
        choices,
        default: first(&own.default, &schema.default),
        example: first(&own.example, &schema.example),
        minimum,
        maximum,
        deprecated: own.deprecated,
        several: false,
    }
}

fn choices(schema: &Schema) -> Vec<String> {
    let is_scalar = |choice: &Value| !choice.is_array() && !choice.is_object();
    if schema.choices.len() > CHOICES_MAX || !schema.choices.iter().all(is_scalar) {
        return Vec::new();
    }
    let mut bytes_left = FIELD_BYTES_MAX;
    let text = |choice| {
        let text = text(choice, bytes_left)?;
        bytes_left -= text.len();
        Some(text)
    };
    schema.choices.iter().map(text).collect::<Option<_>>().unwrap_or_default()
}

fn shortened(text: &str) -> String {
    text.chars().take(FIELD_BYTES_MAX / 4).collect()
}

fn text_of_field(value: &Value) -> Option<String> {
    text(value, FIELD_BYTES_MAX)
}

fn input(description: &ApiDescription, schema: &Schema) -> FormInput {
    match &schema.shape {
        Shape::Boolean => FormInput::Boolean,
        Shape::Integer(_) => FormInput::Integer,
        Shape::Number(_) => FormInput::Number,
        Shape::Object(_) => FormInput::Json,
        Shape::Array(array) => match description.resolve(&array.items).map(|items| &items.shape) {
            Some(Shape::Object(_) | Shape::Array(_) | Shape::OneOf(_)) => FormInput::Json,
            _ => FormInput::List,
        },
        Shape::Any | Shape::String(_) | Shape::OneOf(_) | Shape::Ref(_) => FormInput::Text,
    }
}

/// Inclusive ones: others cannot be said in a field.
fn bounds(schema: &Schema) -> (Option<String>, Option<String>) {
    let (Shape::Integer(bounds) | Shape::Number(bounds)) = &schema.shape else { return (None, None) };
    // What 32 bits can hold tells nobody anything.
    let is_meant = |bound: &&Number| bound.as_f64().is_some_and(|bound| bound.abs() < f64::from(i32::MAX));
    let minimum = bounds.minimum.as_ref().filter(|_| !bounds.minimum_is_exclusive).filter(is_meant);
    let maximum = bounds.maximum.as_ref().filter(|_| !bounds.maximum_is_exclusive).filter(is_meant);
    (minimum.map(ToString::to_string), maximum.map(ToString::to_string))
}

/// As `params` have it, if it is at most `bytes_max` long.
fn text(value: &Value, bytes_max: usize) -> Option<String> {
    match value {
        Value::String(text) => cut::whole(text, bytes_max),
        _ => cut::whole(value, bytes_max),
    }
}

#[cfg(test)]
mod tests;
