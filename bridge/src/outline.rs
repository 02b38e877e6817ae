//! Outlines of what a call may say and hear, to read: each value with its kind, its bounds and the values within it.
//!
//! Whoever shows one (the console, a program) needs no knowledge of schemas and follows no reference. Where a schema leads back
//! into itself, deeper than anybody reads or to more than anybody reads, the outline ends and says why.
//!
//! Invariant: the outlines of an operation have at most `VALUES_MAX` values in each of their parts, `DEPTH_MAX` within each other,
//! whose texts are cut.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    cut,
    description::{
        ApiDescription, Body, Content, NumberBounds, Object, Operation, Place, Response, Schema, SchemaId,
        Shape, StringBounds,
    },
    limits::REFERENCES_MAX,
    media::is_json,
    pretty::pretty,
    samples::made_up_value,
};

/// Values of all parameters, of the body, or of all answers.
const VALUES_MAX: usize = 300;
/// Objects within objects.
const DEPTH_MAX: usize = 10;
/// Answers of one operation.
const ANSWERS_MAX: usize = 24;
/// Choices that are named; the kind of a value names the first six.
const CHOICES_MAX: usize = 40;
const CHOICES_IN_KIND: usize = 6;
/// Of a name, a kind, a bound, a default or an example.
const WORDS_BYTES_MAX: usize = 256;
const DESCRIPTION_BYTES_MAX: usize = 512;
const CHOICE_BYTES_MAX: usize = 64;
/// Of the example of a whole answer.
const EXAMPLE_BYTES_MAX: usize = 4 * 1024;

/// Everything that a call of one operation may say and hear.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationOutline {
    /// Required ones first, each group in the description's order.
    pub parameters: Vec<ParameterOutline>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<BodyOutline>,
    /// In the description's order.
    pub answers: Vec<AnswerOutline>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterOutline {
    #[serde(rename = "in")]
    pub place: Place,
    pub value: Outline,
}

/// The body of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodyOutline {
    #[serde(default)]
    pub required: bool,
    /// Markdown by a stranger.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub content: ContentOutline,
}

/// An answer of the service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerOutline {
    /// As OpenAPI writes it: `200`, `4XX`, `default`.
    pub status: String,
    /// Markdown by a stranger.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Absent when the answer has no body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentOutline>,
}

/// The content of a body or an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentOutline {
    /// The described one first; `*/*` is any.
    pub media_types: Vec<String>,
    pub value: Outline,
    /// The owner's own example, or for JSON of a success one made up from the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
}

/// A value and what is within it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outline {
    #[serde(default, skip_serializing_if = "OutlineRole::is_whole")]
    pub role: OutlineRole,
    /// Of a parameter or a member; others have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// In a few words: `integer`, `one of A, B`, `array of Planet`.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deprecated: bool,
    /// Markdown by a stranger.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// In a few words each: `at least 1`, `3 to 40 characters`, `or null`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<String>,
    /// The values that are allowed, where the kind does not name all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The value that the service takes when none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
    /// Members of an object, of each object of an array, or what a value may be one of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Outline>,
    /// The reason that there are no parts, or no more of them, although the schema has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<OutlineEnd>,
}

/// The part that a value plays in the one around it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutlineRole {
    /// It is within none, or a parameter.
    #[default]
    Whole,
    Member,
    /// Any member that is not named.
    Others,
    /// The value around it may be this one.
    Variant,
}

impl OutlineRole {
    const fn is_whole(&self) -> bool {
        matches!(self, Self::Whole)
    }
}

/// The reason that an outline goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutlineEnd {
    /// The schema is one of those around it.
    Circle,
    Deep,
    Long,
}

/// The outline of `operation`, which is one of `description`.
pub fn of(description: &ApiDescription, operation: &Operation) -> OperationOutline {
    let mut outliner = Outliner::new(description);
    let mut parameters: Vec<ParameterOutline> = operation
        .parameters
        .iter()
        .map(|parameter| {
            let value =
                outliner.value(OutlineRole::Whole, &parameter.name, parameter.required, &parameter.schema);
            let said = Some(&parameter.description).filter(|text| !text.is_empty());
            let value = Outline {
                description: said.map_or(value.description, |text| shortened(text, DESCRIPTION_BYTES_MAX)),
                deprecated: value.deprecated || parameter.deprecated,
                example: parameter.example.as_ref().map(words).or(value.example),
                ..value
            };
            ParameterOutline { place: parameter.place, value }
        })
        .collect();
    parameters.sort_by_key(|parameter| !parameter.value.required);
    let body = operation.body.as_ref().map(|body| of_body(&mut Outliner::new(description), body));
    let mut outliner = Outliner::new(description);
    let answers = operation.responses.iter().take(ANSWERS_MAX);
    OperationOutline {
        parameters,
        body,
        answers: answers.map(|answer| of_answer(&mut outliner, answer)).collect(),
    }
}

fn of_body(outliner: &mut Outliner<'_>, body: &Body) -> BodyOutline {
    BodyOutline {
        required: body.required,
        description: shortened(&body.description, DESCRIPTION_BYTES_MAX),
        content: ContentOutline {
            media_types: media_types(&body.media_type, &body.also),
            value: outliner.value(OutlineRole::Whole, "", false, &body.schema),
            example: body.example.as_ref().map(|value| example(value, &body.media_type)),
        },
    }
}

fn of_answer(outliner: &mut Outliner<'_>, answer: &Response) -> AnswerOutline {
    let content = |content: &Content| {
        let is_made_up = answer.status.is_success() && is_json(&content.media_type);
        let made_up = || made_up_value(outliner.description, &content.schema).filter(|_| is_made_up);
        let shown = content.example.clone().or_else(made_up);
        ContentOutline {
            media_types: media_types(&content.media_type, &content.also),
            example: shown.map(|value| example(&value, &content.media_type)),
            value: outliner.value(OutlineRole::Whole, "", false, &content.schema),
        }
    };
    AnswerOutline {
        status: answer.status.to_string(),
        description: shortened(&answer.description, DESCRIPTION_BYTES_MAX),
        content: answer.content.as_ref().map(content),
    }
}

fn media_types(described: &str, also: &[String]) -> Vec<String> {
    const SHOWN_MAX: usize = 8;
    let all = std::iter::once(described).chain(also.iter().map(String::as_str));
    all.take(SHOWN_MAX).map(|kind| shortened(kind, WORDS_BYTES_MAX)).collect()
}

/// An example of a whole body: in lines, or the text that it is.
fn example(value: &Value, media_type: &str) -> String {
    match value {
        Value::String(text) if !is_json(media_type) => shortened(text, EXAMPLE_BYTES_MAX),
        value => pretty(value, EXAMPLE_BYTES_MAX).text,
    }
}

/// Writes outlines as far as there is room for their values.
struct Outliner<'d> {
    description: &'d ApiDescription,
    values_left: usize,
    depth: usize,
    /// Named schemas around the value that is written.
    around: Vec<SchemaId>,
}

/// The parts of a value, and why there are no more.
type Parts = (Vec<Outline>, Option<OutlineEnd>);

impl<'d> Outliner<'d> {
    const fn new(description: &'d ApiDescription) -> Self {
        Self { description, values_left: VALUES_MAX, depth: 0, around: Vec::new() }
    }

    fn value(&mut self, role: OutlineRole, name: &str, required: bool, schema: &Schema) -> Outline {
        let api = self.description;
        let whole = api.resolve(schema).unwrap_or(schema);
        let first = |one: &Option<Value>, other: &Option<Value>| {
            one.as_ref().or(other.as_ref()).filter(|value| !value.is_null()).map(words)
        };
        let description =
            if schema.description.is_empty() { &whole.description } else { &schema.description };
        let (parts, end) = self.parts(schema);
        Outline {
            role,
            name: shortened(name, WORDS_BYTES_MAX),
            required,
            kind: shortened(&api.type_name(schema), WORDS_BYTES_MAX),
            deprecated: schema.deprecated || whole.deprecated,
            description: shortened(description, DESCRIPTION_BYTES_MAX),
            bounds: bounds(whole, schema.nullable || whole.nullable),
            choices: choices(&whole.choices),
            default: first(&schema.default, &whole.default),
            example: first(&schema.example, &whole.example),
            parts,
            end,
        }
    }

    fn parts(&mut self, schema: &Schema) -> Parts {
        match &schema.shape {
            Shape::Ref(id) => self.named(*id),
            Shape::Array(array) => self.parts(&array.items),
            Shape::Object(object) => self.members(object),
            Shape::OneOf(one_of) => {
                let variant = |schema| (OutlineRole::Variant, "", false, schema);
                self.all(one_of.variants.iter().map(variant))
            }
            Shape::Any | Shape::Boolean | Shape::Integer(_) | Shape::Number(_) | Shape::String(_) => {
                Parts::default()
            }
        }
    }

    fn named(&mut self, id: SchemaId) -> Parts {
        if self.around.contains(&id) {
            return (Vec::new(), Some(OutlineEnd::Circle));
        }
        if self.around.len() >= REFERENCES_MAX {
            return (Vec::new(), Some(OutlineEnd::Deep));
        }
        let description = self.description;
        let Some(named) = description.schema(id) else { return Parts::default() };
        self.around.push(id);
        let parts = self.parts(&named.schema);
        self.around.pop();
        parts
    }

    fn members(&mut self, object: &Object) -> Parts {
        let named = object.properties.iter();
        let named = named.map(|own| (OutlineRole::Member, own.name.as_str(), own.required, &own.schema));
        // That an object may have anything else is said of most, and meant of few.
        let others = object.additional.as_deref().filter(|schema| schema.shape != Shape::Any);
        self.all(named.chain(others.map(|schema| (OutlineRole::Others, "", false, schema))))
    }

    /// Values beside each other have their room before the values within them.
    fn all<'s>(&mut self, values: impl Iterator<Item = (OutlineRole, &'s str, bool, &'s Schema)>) -> Parts {
        let mut values = values.peekable();
        if self.depth >= DEPTH_MAX {
            return (Vec::new(), values.peek().map(|_| OutlineEnd::Deep));
        }
        let beside: Vec<_> = values.by_ref().take(self.values_left).collect();
        let end = values.peek().map(|_| OutlineEnd::Long);
        self.values_left -= beside.len();
        self.depth += 1;
        let parts = beside
            .into_iter()
            .map(|(role, name, required, schema)| self.value(role, name, required, schema))
            .collect();
        self.depth -= 1;
        (parts, end)
    }
}

fn bounds(schema: &Schema, is_nullable: bool) -> Vec<String> {
    let mut bounds = match &schema.shape {
        Shape::Integer(bounds) | Shape::Number(bounds) => of_number(bounds),
        Shape::String(bounds) => of_text(bounds),
        Shape::Array(array) => count(array.items_min, array.items_max, "items").into_iter().collect(),
        Shape::Object(object) if object.exactly_one => vec!["exactly one member".to_owned()],
        _ => Vec::new(),
    };
    bounds.extend(is_nullable.then(|| "or null".to_owned()));
    bounds
}

fn of_number(bounds: &NumberBounds) -> Vec<String> {
    let (least, most) = (
        if bounds.minimum_is_exclusive { "above" } else { "at least" },
        if bounds.maximum_is_exclusive { "below" } else { "at most" },
    );
    let low = bounds.minimum.as_ref().map(|minimum| format!("{least} {minimum}"));
    let high = bounds.maximum.as_ref().map(|maximum| format!("{most} {maximum}"));
    low.into_iter().chain(high).collect()
}

fn of_text(bounds: &StringBounds) -> Vec<String> {
    let length = count(bounds.length_min, bounds.length_max, "characters");
    let pattern = Some(&bounds.pattern).filter(|pattern| !pattern.is_empty());
    let pattern = pattern.map(|pattern| format!("matches {}", shortened(pattern, WORDS_BYTES_MAX)));
    length.into_iter().chain(pattern).collect()
}

fn count(least: Option<u64>, most: Option<u64>, what: &str) -> Option<String> {
    match (least.filter(|least| *least > 0), most) {
        (Some(least), Some(most)) if least == most => Some(format!("{least} {what}")),
        (Some(least), Some(most)) => Some(format!("{least} to {most} {what}")),
        (Some(least), None) => Some(format!("at least {least} {what}")),
        (None, Some(most)) => Some(format!("at most {most} {what}")),
        (None, None) => None,
    }
}

fn choices(choices: &[Value]) -> Vec<String> {
    if choices.len() <= CHOICES_IN_KIND {
        return Vec::new();
    }
    choices.iter().take(CHOICES_MAX).map(|choice| shortened(&words(choice), CHOICE_BYTES_MAX)).collect()
}

/// A value on one line, as `params` have it.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => shortened(text, WORDS_BYTES_MAX),
        value => marked(cut::beginning(value, WORDS_BYTES_MAX)),
    }
}

fn shortened(text: &str, bytes_max: usize) -> String {
    marked(cut::beginning(&text, bytes_max))
}

/// A beginning that says so.
fn marked((text, is_whole): (String, bool)) -> String {
    if is_whole { text } else { text + "…" }
}

#[cfg(test)]
mod tests;
