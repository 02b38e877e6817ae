//! Checks an answer against what its operation promises, for those who paid for it.
//!
//! 1. The status has to be among those that the operation describes, where it describes any; one success stands for
//!    another.
//! 2. What is promised as JSON has to be JSON.
//! 3. Its outermost values have to be of the promised kind, and to have most of what they must have ([`sketch`]).
//!
//! The judge is lenient: descriptions are imprecise, and an honest service must not look bad for that. It looks at
//! nothing but kinds and names, knows no formats, bounds or choices, takes a number for a text, allows members that
//! nobody described and null wherever something may be left out, and where it cannot tell, the answer is kept. It costs
//! little whatever a stranger's description and answer are: at most [`BODY_BYTES_MAX`] are read, without being kept, and
//! [`STEPS_MAX`] comparisons are made.

mod sketch;

use std::{borrow::Cow, fmt};

use self::sketch::Sketch;
use crate::{
    cut,
    description::{
        ANYTHING, ApiDescription, Content, Method, Object, Operation, Response, Schema, Shape, Status,
    },
    media::{is_json, without_parameters},
    shown,
    steps::Steps,
};

/// Of a longer answer only the first byte is looked at: some milliseconds are enough.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Comparisons of one answer with one schema.
const STEPS_MAX: usize = 100_000;
/// Schemas that may follow each other without getting to another value.
const DEPTH_MAX: usize = 32;
/// The name that a breach tells; no more is shown of it.
const NAME_BYTES_MAX: usize = 512;

/// An answer, and what the call said of the answer that it wants.
#[derive(Debug, Clone, Copy)]
pub struct PromisedAnswer<'a> {
    pub status: u16,
    pub body: &'a [u8],
    /// The call's `accept`, when it named one.
    pub accept: Option<&'a str>,
    /// The media type that the answer declares.
    pub media_type: Option<&'a str>,
    /// True if the call asked for an answer only if it changed.
    pub is_conditional: bool,
}

/// A way in which an answer breaks what was promised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Breach {
    /// The operation describes others, and no default.
    Status(u16),
    Empty,
    NotJson,
    /// Of the value with this name, empty for the whole answer.
    Kind {
        of: String,
        promised: &'static str,
        found: &'static str,
    },
    /// Most of what an object must have is not there; this is the first of it.
    Missing {
        name: String,
    },
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "the description does not list status {status}"),
            Self::Empty => f.write_str("the answer is empty where JSON is promised"),
            Self::NotJson => f.write_str("the answer is not JSON, although JSON is promised"),
            Self::Kind { of, promised, found } if of.is_empty() => {
                write!(f, "the answer is {found} where {promised} is promised")
            }
            Self::Kind { of, promised, found } => {
                write!(f, "`{}` is {found} where {promised} is promised", shown(of))
            }
            Self::Missing { name } => {
                write!(f, "`{}` and most other required members are missing", shown(name))
            }
        }
    }
}

/// Finds how `answer` breaks what `operation` promises; `None` when it keeps it, or when that cannot be told.
#[must_use]
pub fn breach(
    description: &ApiDescription,
    operation: &Operation,
    answer: &PromisedAnswer<'_>,
) -> Option<Breach> {
    let is_unchanged = answer.status == 304 && answer.is_conditional;
    if is_unchanged || operation.responses.is_empty() {
        return None;
    }
    let Some(response) = promise(operation, answer.status) else {
        // Who describes no success says nothing of any.
        return (answer.status / 100 != 2).then_some(Breach::Status(answer.status));
    };
    let content = response.content.as_ref().filter(|content| is_json(&content.media_type))?;
    let wants_json = answer.accept.is_none_or(|accept| accept.contains("json") || accept.contains('*'));
    // Frameworks have no content to show of what was changed, whatever is described.
    let is_done = answer.status == 204 && operation.method != Method::Get;
    if operation.method == Method::Head || is_done || !wants_json || is_another(content, answer.media_type) {
        return None;
    }
    json(description, operation, content, answer.body)
}

/// Tells whether the answer is one of those that may come instead, as when a call names a format by a parameter.
fn is_another(content: &Content, media_type: Option<&str>) -> bool {
    let Some(media_type) = media_type else { return false };
    let media_type = without_parameters(media_type);
    let is_it = |also: &String| also == ANYTHING || also.eq_ignore_ascii_case(media_type);
    !is_json(media_type) && content.also.iter().any(is_it)
}

/// Finds the promise for a status. Frameworks answer 201 where a description says 200, so a success that is not
/// described is judged by the first one that is.
fn promise(operation: &Operation, status: u16) -> Option<&Response> {
    let of = |wanted: Status| operation.responses.iter().find(|response| response.status == wanted);
    let class = u8::try_from(status / 100).unwrap_or_default();
    let exact = of(Status::Code(status)).or_else(|| of(Status::Class(class))).or_else(|| of(Status::Default));
    let another = || operation.responses.iter().find(|response| response.status.is_success());
    exact.or_else(|| if class == 2 { another() } else { None })
}

fn json(
    description: &ApiDescription,
    operation: &Operation,
    content: &Content,
    body: &[u8],
) -> Option<Breach> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii();
    let promised = description.resolve(&content.schema)?;
    // A text under the name of JSON is a usual mistake.
    let is_text = matches!(promised.shape, Shape::String(_));
    let Some(first) = body.first() else { return (!is_text).then_some(Breach::Empty) };
    let begins = matches!(first, b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n');
    let is_long = body.len() > BODY_BYTES_MAX;
    let sketch = if is_long { begins.then_some(None) } else { sketch::of(body) };
    match sketch {
        None => (!is_text).then_some(Breach::NotJson),
        Some(None) => None,
        Some(Some(sketch)) => {
            // What a GraphQL answer has is what its call selected, not what the operation describes.
            let members = operation.root.is_none();
            let mut judge = Judge { description, steps: Steps::new(STEPS_MAX), members };
            judge.breach(&content.schema, &sketch, "", 0).err().map(Fault::told)
        }
    }
}

/// A breach as it is found: what does not fit one alternative is forgotten, so nothing is copied for it.
enum Fault<'d> {
    Kind { of: &'d str, promised: &'static str, found: &'static str },
    Missing { name: &'d str },
}

impl Fault<'_> {
    fn told(self) -> Breach {
        let name = |name: &str| cut::beginning(&name, NAME_BYTES_MAX).0;
        match self {
            Self::Kind { of, promised, found } => Breach::Kind { of: name(of), promised, found },
            Self::Missing { name: first } => Breach::Missing { name: name(first) },
        }
    }
}

struct Judge<'d> {
    description: &'d ApiDescription,
    steps: Steps,
    /// True if the members of objects are looked at.
    members: bool,
}

impl<'d> Judge<'d> {
    /// `name` is that of the value, empty for the whole answer.
    fn breach(
        &mut self,
        schema: &'d Schema,
        value: &Sketch<'_>,
        name: &'d str,
        depth: usize,
    ) -> Result<(), Fault<'d>> {
        let description = self.description;
        if depth == DEPTH_MAX || !self.steps.take(1) {
            return Ok(());
        }
        let Some(resolved) = description.resolve(schema) else { return Ok(()) };
        let wrong = |promised, found| Err(Fault::Kind { of: name, promised, found });
        let may_be_null = schema.nullable || resolved.nullable || !name.is_empty() || depth > 0;
        match (&resolved.shape, value) {
            (Shape::Any | Shape::Ref(_), _) => Ok(()),
            (_, Sketch::Null) if may_be_null => Ok(()),
            (Shape::OneOf(one_of), _) => {
                let fits = |variant| self.breach(variant, value, name, depth + 1).is_ok();
                if one_of.variants.is_empty() || one_of.variants.iter().any(fits) {
                    return Ok(());
                }
                wrong("one of several kinds", found(value))
            }
            (Shape::Array(array), Sketch::Array(items)) => {
                items.iter().try_for_each(|item| self.breach(&array.items, item, name, depth + 1))
            }
            (Shape::Object(object), Sketch::Object { members, is_whole }) if self.members => {
                self.object(object, members, *is_whole, depth)
            }
            (Shape::Object(_), Sketch::Object { .. }) => Ok(()),
            (Shape::Array(_), _) => wrong("an array", found(value)),
            (Shape::Object(_), _) => wrong("an object", found(value)),
            (_, Sketch::Single) => Ok(()),
            (Shape::Boolean | Shape::Integer(_) | Shape::Number(_) | Shape::String(_), _) => {
                wrong("a single value", found(value))
            }
        }
    }

    /// Some members of an answer are only in requests, and some are left out although they must not be: an object
    /// breaks its promise when it lacks more of what it must have than it has.
    fn object(
        &mut self,
        object: &'d Object,
        members: &[(Cow<'_, str>, Sketch<'_>)],
        is_whole: bool,
        depth: usize,
    ) -> Result<(), Fault<'d>> {
        let find = |name: &str| members.iter().find(|(own, _)| own == name).map(|(_, value)| value);
        let (mut required, mut missing, mut first) = (0_usize, 0_usize, None);
        for property in &object.properties {
            if !self.steps.take(1 + members.len()) {
                return Ok(());
            }
            required += usize::from(property.required);
            match find(&property.name) {
                Some(value) => self.breach(&property.schema, value, &property.name, depth + 1)?,
                None if property.required => {
                    missing += 1;
                    first.get_or_insert(&property.name);
                }
                None => {}
            }
        }
        match first {
            Some(name) if is_whole && missing * 2 > required => Err(Fault::Missing { name }),
            _ => Ok(()),
        }
    }
}

const fn found(value: &Sketch<'_>) -> &'static str {
    match value {
        Sketch::Null => "null",
        Sketch::Single => "a single value",
        Sketch::Array(_) => "an array",
        Sketch::Object { .. } => "an object",
    }
}

#[cfg(test)]
mod tests;
