//! How checked values are written: scalars as their text, arrays and objects in the style of their parameter.
//!
//! Everything but RFC 3986's unreserved characters is percent-encoded, so that no value can be mistaken for a
//! delimiter. Only delimiters that a URI may hold (`,` `=` `&`) stand for themselves; `[`, `]`, `|` and the blank
//! are written `%5B`, `%5D`, `%7C` and `%20`, as OpenAPI 3.1 shows them. A server splits at the latter after
//! decoding, so an item that holds one is refused, and so is what cannot be written at all: an empty list or
//! object. What is nested deeper than a style goes is written as JSON.

use std::borrow::Cow;

use super::{ArgumentValue, ArgumentValues};
use crate::{
    description::{Operation, Parameter, Place, Style},
    escape::{encode, encoded},
    json::Json,
    problem::Problem,
    routing::leads_elsewhere,
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

/// Tells what cannot be written.
pub(super) fn check(checker: &mut Checker<'_>, operation: &Operation, arguments: &ArgumentValues<'_>) {
    for argument in &arguments.declared {
        let ArgumentValue { parameter, value, .. } = argument;
        let at = ValuePath::Root(&parameter.name);
        if let Some(expected) = unwritable(argument) {
            checker.refuse(&at, &argument.json_text(), expected);
        }
        if parameter.place == Place::Query
            && parameter.style == Style::Exploded
            && let Json::Object(members) = value
        {
            let taken = |name: &str| operation.parameters.iter().any(|other| other.name == name);
            for (name, _) in members.iter().filter(|(name, _)| taken(name)) {
                let name = ValuePath::Member(&at, name).to_string();
                checker.tell(Problem::Twice { name, places: "as a member and as a parameter of its own" });
            }
        }
    }
}

fn unwritable(argument: &ArgumentValue<'_>) -> Option<&'static str> {
    let ArgumentValue { parameter, value, .. } = argument;
    if parameter.style == Style::Json {
        return objection(parameter, &argument.json_text());
    }
    if has_empty_part(value) {
        return Some("something in every list and object; leave out what is empty");
    }
    let texts: Vec<Cow<'_, str>> = match value {
        Json::Array(items) => items.iter().map(plain).collect(),
        Json::Object(members) => {
            members.iter().flat_map(|(name, value)| [Cow::Borrowed(&**name), plain(value)]).collect()
        }
        _ => return None,
    };
    let delimited = |delimiter: char| texts.iter().any(|text| text.contains(delimiter));
    match (parameter.place, parameter.style) {
        (Place::Query, Style::Space) if delimited(' ') => Some("items without blanks, which separate them"),
        (Place::Query, Style::Pipe) if delimited('|') => Some("items without |, which separates them"),
        (Place::Query, _) => None,
        (Place::Header, _) if delimited(',') => Some("items without commas, which separate them"),
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
