//! Values without parts: their one spelling, and their bounds.

use std::cmp::Ordering;

use serde_json::Value;

use crate::{
    description::{NumberBounds, Shape, StringBounds},
    json::{Json, compare, is_integer, is_number},
};

/// Reads `text` as a value of `shape`, which has no parts. Text of any kind is itself.
pub(super) fn read<'a>(text: &'a str, shape: &Shape) -> Option<Json<'a>> {
    let value = match shape {
        Shape::Any | Shape::String(_) => Json::String(text.into()),
        Shape::Boolean if text == "true" => Json::Boolean(true),
        Shape::Boolean if text == "false" => Json::Boolean(false),
        Shape::Integer(_) if is_integer(text) => Json::Number(text.into()),
        Shape::Number(_) if is_number(text) => Json::Number(text.into()),
        _ => return None,
    };
    (*shape == Shape::Any || fits(&value, shape)).then_some(value)
}

/// Tells whether `value` is of `shape`, which has no parts, and within its bounds.
pub(super) fn fits(value: &Json<'_>, shape: &Shape) -> bool {
    match (shape, value) {
        (Shape::Boolean, Json::Boolean(_)) => true,
        (Shape::Integer(bounds), Json::Number(text)) => {
            is_integer(text) && is_of_width(text, &bounds.format) && is_within(text, bounds)
        }
        (Shape::Number(bounds), Json::Number(text)) => {
            text.parse::<f64>().is_ok_and(f64::is_finite) && is_within(text, bounds)
        }
        (Shape::String(bounds), Json::String(text)) => is_of_length(text, bounds),
        _ => false,
    }
}

/// The value that `text` stands for when it is `choice` of a schema of `shape`.
pub(super) fn chosen<'a>(text: &'a str, choice: &Value, shape: &Shape) -> Option<Json<'a>> {
    match choice {
        Value::String(choice) => (choice == text).then(|| Json::String(text.into())),
        Value::Bool(choice) => (choice.to_string() == text).then_some(Json::Boolean(*choice)),
        Value::Number(choice) => {
            // Who reads whole numbers reads 100000 from `100000e-3`.
            let may_be_broken = match shape {
                Shape::Integer(_) => false,
                Shape::Number(_) => true,
                _ => choice.is_f64(),
            };
            let is_spelled = if may_be_broken { is_number(text) } else { is_integer(text) };
            let same = is_spelled && compare(text, choice) == Some(Ordering::Equal);
            same.then(|| Json::Number(text.into()))
        }
        _ => None,
    }
}

/// Whole numbers are 64 bits wide unless their format says otherwise: neither most servers nor most clients hold
/// more without loss, and a longer one is more likely a slip than a wish.
fn is_of_width(text: &str, format: &str) -> bool {
    match format {
        "int8" => text.parse::<i8>().is_ok(),
        "int16" => text.parse::<i16>().is_ok(),
        "int32" => text.parse::<i32>().is_ok(),
        "int64" => text.parse::<i64>().is_ok(),
        "uint8" => text.parse::<u8>().is_ok(),
        "uint16" => text.parse::<u16>().is_ok(),
        "uint32" => text.parse::<u32>().is_ok(),
        "uint64" => text.parse::<u64>().is_ok(),
        _ => text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok(),
    }
}

fn is_within(text: &str, bounds: &NumberBounds) -> bool {
    let order = |bound: &Option<_>| bound.as_ref().map(|bound| compare(text, bound));
    let above = match order(&bounds.minimum) {
        None => true,
        Some(Some(Ordering::Equal)) => !bounds.minimum_is_exclusive,
        Some(order) => order == Some(Ordering::Greater),
    };
    let below = match order(&bounds.maximum) {
        None => true,
        Some(Some(Ordering::Equal)) => !bounds.maximum_is_exclusive,
        Some(order) => order == Some(Ordering::Less),
    };
    above && below
}

fn is_of_length(text: &str, bounds: &StringBounds) -> bool {
    if bounds.length_min.is_none() && bounds.length_max.is_none() {
        return true;
    }
    let length = text.chars().count() as u64;
    bounds.length_min.is_none_or(|min| length >= min) && bounds.length_max.is_none_or(|max| length <= max)
}
