//! Describes what a schema expects, in a few words for an error.

use std::fmt::Display;

use serde_json::{Number, Value};

use crate::{
    SHOWN_BYTES_MAX, cut,
    description::{ApiDescription, NumberBounds, Schema, Shape, StringBounds},
    shown,
};

/// Choices and alternatives that are listed; longer lists are not read.
const LISTED_MAX: usize = 20;
/// Alternatives are listed until they are so long.
const LISTED_BYTES_MAX: usize = 4 * 1024;

/// Such as `a whole number from 1 to 10`, or `one of csv, geojson`.
pub(crate) fn expected(description: &ApiDescription, schema: &Schema) -> String {
    let Some(resolved) = description.resolve(schema) else { return "a value that ends".into() };
    if !resolved.choices.is_empty() {
        return one_of(&resolved.choices);
    }
    match &resolved.shape {
        Shape::Any | Shape::Ref(_) => "any value".into(),
        Shape::Boolean => "true or false".into(),
        Shape::Integer(bounds) => whole_number(bounds),
        Shape::Number(bounds) => match between(bounds) {
            Some(between) => format!("a number {between}"),
            None => "a number such as 4.5".into(),
        },
        Shape::String(bounds) => text(bounds),
        Shape::Array(array) => match description.resolve(&array.items).map(|items| &items.shape) {
            Some(Shape::Array(_) | Shape::Object(_)) => "a list, as a JSON array".into(),
            _ => "a list, as a JSON array or separated by commas".into(),
        },
        Shape::Object(_) => "an object, as JSON".into(),
        Shape::OneOf(one_of) => alternatives(description, &one_of.variants),
    }
}

fn one_of(choices: &[Value]) -> String {
    let text = |choice: &Value| match choice {
        Value::String(choice) => shown(choice),
        // A list or an object may be megabytes.
        _ => shown(&cut::beginning(choice, SHOWN_BYTES_MAX).0),
    };
    let listed: Vec<_> = choices.iter().take(LISTED_MAX).map(text).collect();
    let more = if choices.len() > LISTED_MAX { ", …" } else { "" };
    format!("one of {}{more}", listed.join(", "))
}

fn whole_number(bounds: &NumberBounds) -> String {
    match (between(bounds), bounds.format.as_str()) {
        (Some(between), _) => format!("a whole number {between}"),
        (None, "int32") => "a whole number of 32 bits, such as 7".into(),
        (None, "uint32" | "uint64") => "a whole number such as 7, not negative".into(),
        (None, _) => "a whole number such as 7".into(),
    }
}

fn between(bounds: &NumberBounds) -> Option<String> {
    let minimum = bounds.minimum.as_ref().map(|minimum| (minimum, bounds.minimum_is_exclusive));
    let maximum = bounds.maximum.as_ref().map(|maximum| (maximum, bounds.maximum_is_exclusive));
    let lower = |(bound, exclusive): (&Number, bool)| {
        if exclusive { format!("above {bound}") } else { format!("of at least {bound}") }
    };
    let upper = |(bound, exclusive): (&Number, bool)| {
        if exclusive { format!("below {bound}") } else { format!("of at most {bound}") }
    };
    match (minimum, maximum) {
        (None, None) => None,
        (Some((minimum, false)), Some((maximum, false))) => Some(format!("from {minimum} to {maximum}")),
        (Some(minimum), Some(maximum)) => Some(format!("{} and {}", lower(minimum), upper(maximum))),
        (Some(minimum), None) => Some(lower(minimum)),
        (None, Some(maximum)) => Some(upper(maximum)),
    }
}

fn text(bounds: &StringBounds) -> String {
    match (bounds.length_min, bounds.length_max) {
        (None, None) => "text".into(),
        (min, max) => format!("text of {} characters", range(min, max)),
    }
}

fn alternatives(description: &ApiDescription, variants: &[Schema]) -> String {
    // One level only: alternatives of alternatives are as good as anything.
    let words = |variant: &Schema| match description.resolve(variant) {
        Some(Schema { shape: Shape::OneOf(_), .. }) | None => "one of its alternatives".to_owned(),
        Some(_) => expected(description, variant),
    };
    let mut bytes = 0;
    let is_read = |words: &String| {
        let is_read = bytes < LISTED_BYTES_MAX;
        bytes += words.len();
        is_read
    };
    let mut listed: Vec<_> = variants.iter().take(LISTED_MAX).map(words).take_while(is_read).collect();
    listed.dedup();
    listed.join(", or ")
}

/// `1 to 5`, `at least 1`, `at most 5`, or `any number of`.
pub(super) fn range<T: Display + PartialEq>(min: Option<T>, max: Option<T>) -> String {
    match (min, max) {
        (Some(min), Some(max)) if min == max => format!("{min}"),
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => "any number of".into(),
    }
}
