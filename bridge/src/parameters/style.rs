//! Writes checked values: scalars as their text, arrays and objects in the style of their parameter.
//!
//! Everything but RFC 3986's unreserved characters is percent-encoded, so that no value can be mistaken for a
//! delimiter. Only delimiters that a URI may hold (`,` `=` `&`) stand for themselves; `[`, `]`, `|` and the blank
//! are written `%5B`, `%5D`, `%7C` and `%20`, as OpenAPI 3.1 shows them. A server splits at the latter after
//! decoding, so an item that holds one is refused, and so is what cannot be written at all: an empty list or
//! object. What is nested deeper than a style goes is written as JSON.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use super::{ArgumentValue, ArgumentValues};
use crate::{
    description::{Object, Operation, Parameter, Place, Schema, Shape, Style},
    escape::{encode, encoded},
    headers::is_ambiguous,
    json::Json,
    problem::Problem,
    routing::{has_slash, leads_elsewhere},
    shown,
    values::{Checker, ValuePath},
};

/// Says what was expected instead of `text`, if it cannot travel in its place.
pub(super) fn objection(parameter: &Parameter, text: &str) -> Option<&'static str> {
    match parameter.place {
        Place::Path if text.is_empty() => Some("a value that is not empty"),
        Place::Path if leads_elsewhere(text) => Some("a value without the segments . and .., encoded or not"),
        Place::Path if text.contains(char::is_control) => Some("text without control characters"),
        Place::Header if !text.bytes().all(|b| matches!(b, b' '..=b'~')) => Some("printable ASCII"),
        _ => None,
    }
}

/// Tells whether a value of a path has a slash: servers that decode a path before they look for its route take it for a
/// longer one.
fn is_longer(argument: &ArgumentValue<'_>) -> bool {
    fn holds(value: &Json<'_>) -> bool {
        match value {
            Json::Array(items) => items.iter().any(holds),
            Json::Object(members) => members.iter().any(|(name, value)| has_slash(name) || holds(value)),
            scalar => has_slash(&plain(scalar)),
        }
    }
    argument.parameter.place == Place::Path && holds(&argument.value) && !shows_slash(argument.parameter)
}

/// Tells whether the description shows a value with a slash: its owner knows of them.
fn shows_slash(parameter: &Parameter) -> bool {
    let examples = [parameter.example.as_ref(), parameter.schema.example.as_ref()].into_iter().flatten();
    let mut shown = examples.chain(&parameter.schema.choices);
    shown.any(|value| value.as_str().is_some_and(has_slash))
}

/// Tells what cannot be written.
pub(super) fn check(checker: &mut Checker<'_>, operation: &Operation, arguments: &ArgumentValues<'_>) {
    for argument in &arguments.declared {
        if let Some(expected) = unwritable(argument) {
            let at = ValuePath::Root(&argument.parameter.name);
            checker.refuse(&at, &argument.json_text(), expected);
        }
        if argument.parameter.style == Style::DeepObject
            && let Json::Object(members) = &argument.value
        {
            let root = &argument.parameter.name;
            let is_declared = |name: &str| operation.parameters.iter().any(|other| other.name == name);
            for name in
                members.iter().map(|(name, _)| format!("{root}[{name}]")).filter(|name| is_declared(name))
            {
                let places = "as a member and as a parameter of its own";
                checker.tell(Problem::Twice { name: shown(&name), places });
            }
        }
    }
    let exploded = || arguments.declared.iter().filter_map(exploded_object);
    if exploded().next().is_none() && arguments.others.is_empty() {
        return;
    }
    let mut names = QueryNames::of(checker, operation);
    for (parameter, members) in exploded() {
        let own = objects(checker, &parameter.schema);
        for (name, _) in members {
            if names.is_ambiguous(name) {
                checker.tell(Problem::ambiguous(name));
            } else if !names.take(name, &own) {
                let name = ValuePath::Member(&ValuePath::Root(&parameter.name), name).to_string();
                checker.tell(Problem::Twice { name, places: "as a member and as a parameter of its own" });
            }
        }
    }
    for (name, _) in &arguments.others {
        if names.is_ambiguous(name) {
            checker.tell(Problem::ambiguous(name));
        } else if !names.take(name, &[]) {
            let places = "as a parameter of its own and as a part of another";
            checker.tell(Problem::Twice { name: shown(name), places });
        }
    }
}

/// An object whose members stand in the query as if they were parameters.
fn exploded_object<'a, 'v>(argument: &'v ArgumentValue<'a>) -> Option<(&'a Parameter, &'v Members<'a>)> {
    let Parameter { place, style, .. } = argument.parameter;
    match &argument.value {
        Json::Object(members) if (*place, *style) == (Place::Query, Style::Exploded) => {
            Some((argument.parameter, members))
        }
        _ => None,
    }
}

type Members<'a> = [(Cow<'a, str>, Json<'a>)];

/// The names in a query, and whose they are: a name that the caller chooses may be no other parameter's, whose bounds
/// its value would pass by.
struct QueryNames<'a> {
    /// Of parameters.
    parameters: HashSet<Cow<'a, str>>,
    /// Of members that exploded objects declare, with those objects.
    members: HashMap<Cow<'a, str>, Vec<*const Object>>,
    /// Names that the caller has chosen.
    taken: HashSet<Cow<'a, str>>,
}

impl<'a> QueryNames<'a> {
    fn of(checker: &Checker<'a>, operation: &'a Operation) -> Self {
        let in_query = || operation.parameters.iter().filter(|parameter| parameter.place == Place::Query);
        let mut names = Self {
            parameters: in_query().map(|parameter| base_name(&parameter.name)).collect(),
            members: HashMap::new(),
            taken: HashSet::new(),
        };
        let exploded = in_query().filter(|parameter| parameter.style == Style::Exploded);
        let mut seen = HashSet::new();
        for object in exploded.flat_map(|parameter| objects(checker, &parameter.schema)) {
            if seen.insert(std::ptr::from_ref(object)) {
                for property in &object.properties {
                    names.members.entry(base_name(&property.name)).or_default().push(object);
                }
            }
        }
        names
    }

    /// Tells whether the caller chose a name that says something else to some servers than it says here.
    fn is_ambiguous(&self, name: &str) -> bool {
        let name = base_name(name);
        is_ambiguous(&name) && !self.parameters.contains(&name) && !self.members.contains_key(&name)
    }

    /// Takes a name of the caller's for a member of one of `own`, or for one that is not declared. False when it is
    /// another's.
    fn take(&mut self, name: &'a str, own: &[&'a Object]) -> bool {
        let name = base_name(name);
        let is_own = |owner: &*const Object| own.iter().any(|own| std::ptr::eq(*own, *owner));
        let is_anothers = self.parameters.contains(&name)
            || self.members.get(&name).is_some_and(|owners| !owners.iter().any(is_own));
        !is_anothers && self.taken.insert(name)
    }
}

/// The objects that a value may be.
pub(crate) fn objects<'a>(checker: &Checker<'a>, schema: &'a Schema) -> Vec<&'a Object> {
    let variants = match checker.resolved(schema).map(|schema| &schema.shape) {
        Some(Shape::OneOf(one_of)) => &one_of.variants[..],
        _ => std::slice::from_ref(schema),
    };
    let object = |variant| match &checker.resolved(variant)?.shape {
        Shape::Object(object) => Some(object),
        _ => None,
    };
    variants.iter().filter_map(object).collect()
}

/// The name that servers may take `name` for: `name[x]` and `[name]x` for a part of `name`, dots and blanks for
/// underscores, and all of it without case. Empty where nothing is left.
pub fn base_name(name: &str) -> Cow<'_, str> {
    let name = name.trim_start_matches(|c: char| matches!(c, '[' | ']') || c.is_whitespace());
    let base = name.split(['[', ']', '\0']).next().unwrap_or_default().trim_end();
    let is_other = |b: u8| b.is_ascii_uppercase() || matches!(b, b'.' | b' ');
    match base.bytes().any(is_other) {
        true => base.to_ascii_lowercase().replace(['.', ' '], "_").into(),
        false => base.into(),
    }
}

fn unwritable(argument: &ArgumentValue<'_>) -> Option<&'static str> {
    let ArgumentValue { parameter, value, .. } = argument;
    if parameter.style == Style::Json {
        return objection(parameter, &argument.json_text());
    }
    if has_empty_part(value) {
        return Some("at least one value in every list and object; leave out empty ones");
    }
    if is_longer(argument) {
        return Some("a value without / and \\, encoded or not, unless the parameter's example has one");
    }
    let texts: Vec<Cow<'_, str>> = match value {
        Json::Array(items) => items.iter().map(plain).collect(),
        Json::Object(members) => {
            members.iter().flat_map(|(name, value)| [Cow::Borrowed(&**name), plain(value)]).collect()
        }
        _ => return None,
    };
    let delimited = |delimiter: char| texts.iter().any(|text| text.contains(delimiter));
    if parameter.style == Style::DeepObject && has_brackets(value) {
        return Some("members without [ and ], which stand around their names");
    }
    match (parameter.place, parameter.style) {
        (Place::Query, Style::Space) if delimited(' ') => Some("items without blanks, which separate them"),
        (Place::Query, Style::Pipe) if delimited('|') => Some("items without |, which separates them"),
        (Place::Query, _) => None,
        (Place::Header, _) if delimited(',') => Some("items without commas, which separate them"),
        (Place::Header, Style::Exploded) if names_hold(value, '=') => {
            Some("members without = in their names, which ends them")
        }
        (Place::Path | Place::Header, _) => texts.iter().find_map(|text| objection(parameter, text)),
    }
}

/// Tells whether a value has a list or object that no style but JSON can write.
fn has_empty_part(value: &Json<'_>) -> bool {
    match value {
        Json::Array(items) => items.is_empty() || items.iter().any(has_empty_part),
        Json::Object(members) => members.is_empty() || members.iter().any(|(_, value)| has_empty_part(value)),
        _ => false,
    }
}

fn names_hold(value: &Json<'_>, delimiter: char) -> bool {
    matches!(value, Json::Object(members) if members.iter().any(|(name, _)| name.contains(delimiter)))
}

/// Tells whether a member's name would be read as a path to another member.
fn has_brackets(value: &Json<'_>) -> bool {
    let Json::Object(members) = value else { return false };
    members.iter().any(|(name, value)| name.contains(['[', ']']) || has_brackets(value))
}

/// Appends `argument` to a query.
pub(crate) fn write_query(query: &mut String, argument: &ArgumentValue<'_>) {
    let ArgumentValue { parameter, value, .. } = argument;
    let name = parameter.name.as_str();
    let separator = match parameter.style {
        Style::Space => "%20",
        Style::Pipe => "%7C",
        _ => ",",
    };
    match (value, parameter.style) {
        (_, Style::Json) => pair(query, name, &argument.json_text()),
        (Json::Array(items), Style::Exploded | Style::DeepObject) => {
            items.iter().for_each(|item| pair(query, name, &plain(item)));
        }
        (Json::Object(members), Style::Exploded) => {
            for (member, value) in members {
                pair(query, member, &plain(value));
            }
        }
        (Json::Object(_), Style::DeepObject) => deep(query, &encoded(name), value),
        (Json::Array(_) | Json::Object(_), _) => {
            begin(query, &encoded(name));
            joined(query, value, separator, separator);
        }
        (scalar, _) => pair(query, name, &plain(scalar)),
    }
}

/// Appends an undeclared parameter to a query.
pub(crate) fn pair(query: &mut String, name: &str, text: &str) {
    begin(query, &encoded(name));
    encode(query, text);
}

/// `argument` as a part of a path, encoded.
pub(crate) fn path_text(argument: &ArgumentValue<'_>) -> String {
    let mut text = String::new();
    match (&argument.value, argument.parameter.style) {
        (_, Style::Json) => encode(&mut text, &argument.json_text()),
        (value @ (Json::Array(_) | Json::Object(_)), style) => {
            joined(&mut text, value, ",", if style == Style::Exploded { "=" } else { "," });
        }
        (scalar, _) => encode(&mut text, &plain(scalar)),
    }
    text
}

/// `argument` as the value of a header, where nothing is encoded.
pub(crate) fn header_text(argument: &ArgumentValue<'_>) -> String {
    let between = if argument.parameter.style == Style::Exploded { "=" } else { "," };
    match &argument.value {
        _ if argument.parameter.style == Style::Json => argument.json_text().into_owned(),
        Json::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        Json::Object(members) => {
            let member =
                |(name, value): &(Cow<'_, str>, Json<'_>)| format!("{name}{between}{}", plain(value));
            members.iter().map(member).collect::<Vec<_>>().join(",")
        }
        scalar => plain(scalar).into_owned(),
    }
}

/// `a[k]=v`, `a[k][l]=v`; a list within repeats its name.
fn deep(query: &mut String, name: &str, value: &Json<'_>) {
    match value {
        Json::Object(members) => {
            for (member, value) in members {
                deep(query, &format!("{name}%5B{}%5D", encoded(member)), value);
            }
        }
        Json::Array(items) => {
            for item in items {
                begin(query, name);
                encode(query, &plain(item));
            }
        }
        scalar => {
            begin(query, name);
            encode(query, &plain(scalar));
        }
    }
}

fn begin(query: &mut String, encoded_name: &str) {
    if !query.is_empty() {
        query.push('&');
    }
    query.push_str(encoded_name);
    query.push('=');
}

/// Items joined by `separator`, members by `between` within.
fn joined(text: &mut String, value: &Json<'_>, separator: &str, between: &str) {
    let mut first = true;
    let mut item = |name: Option<&str>, value: &Json<'_>| {
        if !std::mem::take(&mut first) {
            text.push_str(separator);
        }
        if let Some(name) = name {
            encode(text, name);
            text.push_str(between);
        }
        encode(text, &plain(value));
    };
    match value {
        Json::Array(items) => items.iter().for_each(|value| item(None, value)),
        Json::Object(members) => members.iter().for_each(|(name, value)| item(Some(name), value)),
        scalar => item(None, scalar),
    }
}

/// The text of a scalar; JSON for anything else.
pub(crate) fn plain<'j>(value: &'j Json<'_>) -> Cow<'j, str> {
    match value {
        Json::String(text) | Json::Number(text) => Cow::Borrowed(text),
        Json::Boolean(true) => Cow::Borrowed("true"),
        Json::Boolean(false) => Cow::Borrowed("false"),
        Json::Null => Cow::Borrowed("null"),
        Json::Array(_) | Json::Object(_) => Cow::Owned(value.to_text()),
    }
}
