//! An operation as a form to fill in: one field per parameter, with what may stand in it, and the body.
//!
//! Whoever shows a form (the console, a program) needs no knowledge of schemas: a field says how it is entered
//! ([`FormInput`]), what may be chosen, and what it may begin with. What is entered goes into a call's `params` as
//! text, and is checked there like any other call.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::{
    cut,
    description::{ApiDescription, BodyKind, Operation, Parameter, Place, Schema, Shape},
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

/// One parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FormField {
    pub name: String,
    #[serde(rename = "in")]
    pub place: Place,
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
}

/// The body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BodyField {
    pub kind: BodyKind,
    pub media_type: String,
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

/// In lines, unless these would be so long that nobody edits them.
fn lines(value: &Value) -> String {
    let lines = pretty(value, EXAMPLE_BYTES_MAX);
    if lines.is_cut { value.to_string() } else { lines.text }
}

fn field(description: &ApiDescription, parameter: &Parameter) -> FormField {
    let own = &parameter.schema;
    let schema = description.resolve(own).unwrap_or(own);
    let (minimum, maximum) = bounds(schema);
    let choices = choices(schema);
    let first = |one: &Option<Value>, other: &Option<Value>| {
        one.as_ref().or(other.as_ref()).filter(|value| !value.is_null()).and_then(text_of_field)
    };
    let describes = [&parameter.description, &own.description, &schema.description];
    FormField {
        name: parameter.name.clone(),
        place: parameter.place,
        required: parameter.required,
        kind: shortened(&description.type_name(own)),
        input: if choices.is_empty() { input(description, schema) } else { FormInput::Choice },
        description: describes
            .into_iter()
            .find(|text| !text.is_empty())
            .map(|text| shortened(text))
            .unwrap_or_default(),
        choices,
        default: first(&own.default, &schema.default),
        example: parameter
            .example
            .as_ref()
            .and_then(text_of_field)
            .or_else(|| first(&own.example, &schema.example)),
        minimum,
        maximum,
        deprecated: parameter.deprecated || own.deprecated,
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
mod tests {
    use serde_json::json;

    use super::*;
    use crate::read;

    fn form(operation: &Value) -> Form {
        let document = json!({ "openapi": "3.1.0", "info": { "title": "t", "version": "1" },
            "components": { "schemas": { "Order": { "type": "string", "enum": ["up", "down"], "default": "up" } } },
            "paths": { "/a/{id}": { "post": operation } } });
        let reading = read(document.to_string().as_bytes()).unwrap();
        of(&reading.description, &reading.description.operations[0])
    }

    #[test]
    fn every_kind_of_parameter_has_its_kind_of_field() {
        let query = |name: &str, schema: Value| json!({ "name": name, "in": "query", "schema": schema });
        let form = form(&json!({
            "responses": { "200": { "description": "ok" } },
            "parameters": [
                query("order", json!({ "$ref": "#/components/schemas/Order" })),
                query("limit", json!({ "type": "integer", "minimum": 1, "maximum": 100, "default": 20 })),
                query("share", json!({ "type": "number", "exclusiveMinimum": 0 })),
                query("flag", json!({ "type": "boolean" })),
                query("ids", json!({ "type": "array", "items": { "type": "integer" } })),
                query("filter", json!({ "type": "object", "properties": { "a": { "type": "string" } } })),
                { "name": "id", "in": "path", "required": true, "example": "x7", "schema": { "type": "string" } },
            ],
        }));
        let inputs: Vec<_> = form.fields.iter().map(|field| (field.name.as_str(), field.input)).collect();
        assert_eq!(
            inputs,
            [
                ("id", FormInput::Text),
                ("order", FormInput::Choice),
                ("limit", FormInput::Integer),
                ("share", FormInput::Number),
                ("flag", FormInput::Boolean),
                ("ids", FormInput::List),
                ("filter", FormInput::Json),
            ]
        );
        let field = |name: &str| form.fields.iter().find(|field| field.name == name).unwrap();
        assert_eq!(field("id").start(), "x7", "what is required begins with something");
        assert_eq!((field("order").start(), field("order").default.as_deref()), ("", Some("up")));
        assert_eq!(field("order").choices, ["up", "down"]);
        let limit = field("limit");
        assert_eq!((limit.minimum.as_deref(), limit.maximum.as_deref()), (Some("1"), Some("100")));
        assert_eq!(field("share").minimum, None, "zero itself is not allowed");
    }

    #[test]
    fn a_body_begins_with_an_example() {
        let body = |content: Value| {
            let operation = json!({ "requestBody": { "content": content, "required": true },
                "responses": { "200": { "description": "ok" } },
                "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }] });
            form(&operation).body.unwrap()
        };
        let schema = json!({ "type": "object", "required": ["name"],
            "properties": { "name": { "type": "string", "example": "Ada" } } });
        let made_up = body(json!({ "application/json": { "schema": schema } }));
        assert!(made_up.is_json() && made_up.required);
        let text: Value = serde_json::from_str(&made_up.example.unwrap()).unwrap();
        assert_eq!(text["name"], "Ada");
        let given = body(json!({ "application/json": { "schema": schema, "example": { "name": "Bo" } } }));
        assert!(given.example.unwrap().contains("Bo"));
    }

    #[test]
    fn texts_that_many_fields_may_refer_to_are_cut_or_left_out() {
        let long = "x".repeat(100_000);
        let schema = json!({ "type": "string", "description": long, "default": long, "example": long });
        let choices = json!({ "type": "string", "enum": vec![long.clone(); 3] });
        let many: Vec<_> = (100..200).map(|n| format!("{n}{}", &long[..1_000])).collect();
        let many = json!({ "type": "string", "enum": many });
        let form = form(&json!({
            "responses": { "200": { "description": "ok" } },
            "parameters": [{ "name": "a", "in": "query", "description": long, "schema": schema },
                { "name": "b", "in": "query", "schema": choices },
                { "name": "c", "in": "query", "schema": many }],
        }));
        let bytes = serde_json::to_vec(&form).unwrap().len();
        assert!(bytes < 20_000, "{bytes} bytes");
    }

    #[test]
    fn of_a_long_text_only_as_much_is_written_as_a_field_has() {
        let long = json!(vec![0.1; 500_000]);
        crate::testing::timed(|| (0..3_000).for_each(|_| assert_eq!(text_of_field(&long), None)));
        assert_eq!(text_of_field(&json!([0.1, 2])).as_deref(), Some("[0.1,2]"));
        assert_eq!(
            text_of_field(&"x".repeat(FIELD_BYTES_MAX).into()).map(|text| text.len()),
            Some(FIELD_BYTES_MAX)
        );
    }
}
