//! Checks a value against a schema, so that no published example contradicts its own schema.
//!
//! The answer is the one JSON Schema tools give. Where they would need to know more than we do (a pattern that
//! our regular expressions lack), the answer is no: leaving an example out harms nobody.

use std::cmp::Ordering;

use regex_lite::RegexBuilder;
use serde_json::{Number, Value};

use crate::{
    description::{ApiDescription, ArrayOf, NumberBounds, Object, OneOf, Schema, Shape, StringBounds},
    formats,
    limits::VALUE_DEPTH_MAX,
    steps::Steps,
};

/// Comparisons of one value with one schema: alternatives within alternatives could multiply without end.
const STEPS_MAX: usize = 20_000;
/// References and alternatives that may follow each other; those that lead in circles never get to a value.
const DEPTH_MAX: usize = 4 * VALUE_DEPTH_MAX;
/// Longer patterns are not tried, nor are longer texts.
const PATTERN_BYTES_MAX: usize = 1024;
const PATTERN_TEXT_BYTES_MAX: usize = 512;
/// Compiled patterns: enough for a bounded repetition of a class.
const PATTERN_PROGRAM_BYTES_MAX: usize = 64 * 1024;
/// Steps of trying a pattern: it is compiled, and then takes as long as the product of program and text.
const PATTERN_STEPS: usize = 100;
const PATTERN_STEPS_PER_BYTE: usize = 32;

/// Choices that are compared with a value in the time of one step.
const CHOICES_PER_STEP: usize = 16;

/// Returns whether `value` is valid under `schema`; false where that cannot be decided within `steps`.
pub(crate) fn fits(description: &ApiDescription, schema: &Schema, value: &Value, steps: &mut Steps) -> bool {
    steps.part(STEPS_MAX, |steps| Fitting { description, steps }.fits(schema, value, 0))
}

struct Fitting<'d, 's> {
    description: &'d ApiDescription,
    steps: &'s mut Steps,
}

impl Fitting<'_, '_> {
    fn fits(&mut self, schema: &Schema, value: &Value, depth: usize) -> bool {
        // A choice may be as large as the value.
        let compared = match schema.choices.len() {
            0 => 0,
            choices => choices.saturating_mul(size(value)) / CHOICES_PER_STEP,
        };
        if depth > DEPTH_MAX || !self.steps.take(1 + compared) {
            return false;
        }
        if value.is_null() && schema.nullable {
            return true;
        }
        let is_choice = schema.choices.is_empty() || schema.choices.contains(value);
        is_choice && self.fits_shape(&schema.shape, value, depth + 1)
    }

    fn fits_shape(&mut self, shape: &Shape, value: &Value, depth: usize) -> bool {
        match (shape, value) {
            (Shape::Any, _) | (Shape::Boolean, Value::Bool(_)) => true,
            (Shape::Integer(bounds), Value::Number(number)) => {
                is_integer(number, &bounds.format) && within(number, bounds)
            }
            (Shape::Number(bounds), Value::Number(number)) => within(number, bounds),
            (Shape::String(bounds), Value::String(text)) => {
                let is_tried = bounds.pattern.is_empty()
                    || self.steps.take(PATTERN_STEPS + PATTERN_STEPS_PER_BYTE * text.len());
                is_tried && has_form(text, bounds)
            }
            (Shape::Array(array), Value::Array(items)) => self.fits_array(array, items, depth),
            (Shape::Object(object), Value::Object(members)) => self.fits_object(object, members, depth),
            (Shape::OneOf(one_of), _) => self.fits_one_of(one_of, value, depth),
            (Shape::Ref(id), _) => {
                let description = self.description;
                description.schema(*id).is_some_and(|named| self.fits(&named.schema, value, depth))
            }
            _ => false,
        }
    }

    /// A discriminator has to be there: tools that decide by it look at nothing else.
    fn fits_one_of(&mut self, one_of: &OneOf, value: &Value, depth: usize) -> bool {
        let tag = one_of.discriminator.as_ref().map(|discriminator| value.get(&discriminator.property));
        one_of.variants.is_empty()
            || (tag.is_none_or(|tag| tag.is_some_and(Value::is_string))
                && one_of.variants.iter().any(|variant| self.fits(variant, value, depth)))
    }

    fn fits_array(&mut self, array: &ArrayOf, items: &[Value], depth: usize) -> bool {
        is_between(items.len(), array.items_min, array.items_max)
            && items.iter().all(|item| self.fits(&array.items, item, depth))
    }

    fn fits_object(
        &mut self,
        object: &Object,
        members: &serde_json::Map<String, Value>,
        depth: usize,
    ) -> bool {
        // All properties are looked at even for no member.
        let compared = object.properties.len().saturating_mul(1 + members.len());
        if !self.steps.take(compared / CHOICES_PER_STEP) {
            return false;
        }
        let has_required = object
            .properties
            .iter()
            .all(|property| !property.required || members.contains_key(&property.name));
        let count_is_right = !object.exactly_one || members.len() == 1;
        has_required
            && count_is_right
            && members.iter().all(|(name, value)| {
                let property = object.properties.iter().find(|property| property.name == *name);
                match (property, &object.additional) {
                    (Some(property), _) => self.fits(&property.schema, value, depth),
                    (None, Some(additional)) => self.fits(additional, value, depth),
                    (None, None) => false,
                }
            })
    }
}

/// Returns what comparing a value takes: its values, and 64 bytes of a text as one.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(size).sum::<usize>(),
        Value::String(text) => 1 + text.len() / 64,
        _ => 1,
    }
}

fn is_between(count: usize, min: Option<u64>, max: Option<u64>) -> bool {
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    min.is_none_or(|min| count >= min) && max.is_none_or(|max| count <= max)
}

/// JSON Schema's integers: `1.0` is one.
fn is_integer(number: &Number, format: &str) -> bool {
    let in_format = match format {
        "int32" => number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
        "int64" => number.is_i64(),
        _ => true,
    };
    in_format
        && (number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|number| number.fract() == 0.0))
}

fn within(number: &Number, bounds: &NumberBounds) -> bool {
    let above = bounds.minimum.as_ref().is_none_or(|minimum| match compare(number, minimum) {
        Some(Ordering::Greater) => true,
        Some(Ordering::Equal) => !bounds.minimum_is_exclusive,
        _ => false,
    });
    above
        && bounds.maximum.as_ref().is_none_or(|maximum| match compare(number, maximum) {
            Some(Ordering::Less) => true,
            Some(Ordering::Equal) => !bounds.maximum_is_exclusive,
            _ => false,
        })
}

/// Exactly for integers, as doubles otherwise.
pub(crate) fn compare(left: &Number, right: &Number) -> Option<Ordering> {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

fn has_form(text: &str, bounds: &StringBounds) -> bool {
    is_between(text.chars().count(), bounds.length_min, bounds.length_max)
        && formats::accepts(&bounds.format, text)
        && (bounds.pattern.is_empty() || matches(text, &bounds.pattern))
}

fn matches(text: &str, pattern: &str) -> bool {
    pattern.len() <= PATTERN_BYTES_MAX
        && text.len() <= PATTERN_TEXT_BYTES_MAX
        && RegexBuilder::new(pattern)
            .size_limit(PATTERN_PROGRAM_BYTES_MAX)
            .build()
            .is_ok_and(|pattern| pattern.is_match(text))
}

#[cfg(test)]
mod tests;
