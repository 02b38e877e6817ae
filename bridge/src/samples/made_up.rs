//! Values made up from a schema: the same one always, and small.
//!
//! Examples, defaults and choices inside the schema are used where they fit. Optional members stop a few levels
//! down, required ones go on until the schema ends or leads in a circle, which has no value.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value, json};

use crate::{
    description::{ApiDescription, ArrayOf, NumberBounds, Object, OneOf, Schema, Shape, StringBounds},
    fits, formats,
    limits::SAMPLE_BYTES_MAX,
    steps::Steps,
};

/// Below this, optional members are left out.
const OPTIONAL_DEPTH_MAX: usize = 6;
/// Below this there is no value.
const DEPTH_MAX: usize = 24;
/// Values within one that is made up, and schemas looked at for them: no larger one is shown.
const VALUES_MAX: usize = SAMPLE_BYTES_MAX / 2;
/// Examples, defaults and choices of a schema that are tried: one that was meant fits.
const GIVEN_MAX: usize = 16;
/// Texts and arrays that must be longer are not made up.
const LENGTH_MAX: u64 = 100;

/// A value that the schema allows, as far as can be told from it; `None` when there is none of bounded size, or `steps`
/// are used up.
pub(super) fn value(description: &ApiDescription, schema: &Schema, steps: &mut Steps) -> Option<Value> {
    Maker { description, values: Steps::new(VALUES_MAX), steps }.value(schema, "", 0)
}

struct Maker<'d> {
    description: &'d ApiDescription,
    values: Steps,
    steps: &'d mut Steps,
}

impl Maker<'_> {
    /// `name` is that of the member, for a text that says what it is.
    fn value(&mut self, schema: &Schema, name: &str, depth: usize) -> Option<Value> {
        if depth > DEPTH_MAX || !self.values.take(1) || !self.steps.take(1) {
            return None;
        }
        let given = schema.example.iter().chain(&schema.default).chain(&schema.choices);
        let mut given = given.filter(|value| !value.is_null()).take(GIVEN_MAX);
        if let Some(value) = given.find(|value| fits::fits(self.description, schema, value, self.steps)) {
            return self.pay(value).then(|| value.clone());
        }
        if self.steps.are_spent() {
            // What was given may fit.
            return None;
        }
        let value = self.shape(&schema.shape, name, depth + 1);
        value.or_else(|| schema.nullable.then_some(Value::Null))
    }

    /// Takes the room for a copy of a value, and tells whether there was enough.
    fn pay(&mut self, value: &Value) -> bool {
        self.values.take(1)
            && match value {
                Value::Array(items) => items.iter().all(|item| self.pay(item)),
                Value::Object(members) => members.values().all(|member| self.pay(member)),
                _ => true,
            }
    }

    fn shape(&mut self, shape: &Shape, name: &str, depth: usize) -> Option<Value> {
        match shape {
            Shape::Any => Some(json!({})),
            Shape::Boolean => Some(true.into()),
            Shape::Integer(bounds) => number(bounds, true).map(Value::Number),
            Shape::Number(bounds) => number(bounds, false).map(Value::Number),
            Shape::String(bounds) => text(bounds, name).map(Value::String),
            Shape::Array(array) => self.array(array, name, depth),
            Shape::Object(object) => self.object(object, depth).map(Value::Object),
            Shape::OneOf(one_of) => self.one_of(one_of, name, depth),
            Shape::Ref(id) => {
                let description = self.description;
                self.value(&description.schema(*id)?.schema, name, depth)
            }
        }
    }

    fn array(&mut self, array: &ArrayOf, name: &str, depth: usize) -> Option<Value> {
        let least = array.items_min.unwrap_or(0);
        if least > LENGTH_MAX {
            return None;
        }
        let wanted =
            if array.items_max == Some(0) || depth > OPTIONAL_DEPTH_MAX { least } else { least.max(1) };
        match (wanted, self.value(&array.items, name, depth)) {
            (0, _) => Some(json!([])),
            (wanted, Some(item)) => {
                // Arrays within arrays multiply.
                let mut items = Vec::new();
                for _ in 1..wanted {
                    items.push(self.pay(&item).then(|| item.clone())?);
                }
                items.push(item);
                Some(items.into())
            }
            (_, None) => (least == 0).then(|| json!([])),
        }
    }

    fn object(&mut self, object: &Object, depth: usize) -> Option<Map<String, Value>> {
        let mut members = Map::new();
        for property in &object.properties {
            let is_needed = property.required || (object.exactly_one && members.is_empty());
            let is_wanted = is_needed || (!object.exactly_one && depth <= OPTIONAL_DEPTH_MAX);
            if !is_wanted {
                continue;
            }
            match self.value(&property.schema, &property.name, depth) {
                Some(value) => {
                    members.insert(property.name.clone(), value);
                }
                None if property.required => return None,
                None => {}
            }
        }
        (!object.exactly_one || members.len() == 1).then_some(members)
    }

    fn one_of(&mut self, one_of: &OneOf, name: &str, depth: usize) -> Option<Value> {
        if one_of.variants.is_empty() {
            return Some(json!({}));
        }
        let mut variants = one_of.variants.iter().enumerate();
        let (index, value) =
            variants.find_map(|(index, variant)| Some((index, self.value(variant, name, depth)?)))?;
        Some(self.tagged(one_of, index, &value).unwrap_or(value))
    }

    /// The value with the discriminator's member saying which alternative it is, if the alternative allows that.
    fn tagged(&mut self, one_of: &OneOf, index: usize, value: &Value) -> Option<Value> {
        let discriminator = one_of.discriminator.as_ref()?;
        let variant = one_of.variants.get(index)?;
        let is_own = |(_, variant): &&(String, u32)| usize::try_from(*variant) == Ok(index);
        let mapped = discriminator.mapping.iter().find(is_own).map(|(tag, _)| tag);
        // Without a mapping OpenAPI takes the schema's name.
        let named = || match variant.shape {
            Shape::Ref(id) => self.description.schema(id).map(|named| &named.name),
            _ => None,
        };
        let tag = mapped.or_else(named)?;
        let mut members = value.as_object()?.clone();
        members.insert(discriminator.property.clone(), tag.as_str().into());
        let tagged = Value::Object(members);
        fits::fits(self.description, variant, &tagged, self.steps).then_some(tagged)
    }
}

/// 1 or 1.5 where that is allowed, otherwise the allowed number nearest to a bound.
fn number(bounds: &NumberBounds, whole: bool) -> Option<Number> {
    let usual = if whole { Number::from(1) } else { Number::from_f64(1.5)? };
    let near = |bound: &Option<Number>, up: bool| {
        let bound = bound.as_ref()?;
        let steps: [i64; 2] = if up { [0, 1] } else { [0, -1] };
        steps
            .into_iter()
            .find_map(|step| near_bound(bound, step, whole).filter(|number| is_allowed(number, bounds)))
    };
    let between = || {
        let middle = bounds.minimum.as_ref()?.as_f64()? / 2.0 + bounds.maximum.as_ref()?.as_f64()? / 2.0;
        Number::from_f64(middle).filter(|number| !whole && is_allowed(number, bounds))
    };
    Some(usual)
        .filter(|usual| is_allowed(usual, bounds))
        .or_else(|| near(&bounds.minimum, true))
        .or_else(|| near(&bounds.maximum, false))
        .or_else(between)
}

/// `bound + step`, rounded into the range for whole numbers.
fn near_bound(bound: &Number, step: i64, whole: bool) -> Option<Number> {
    if let Some(bound) = bound.as_i64() {
        return bound.checked_add(step).map(Number::from);
    }
    if bound.is_u64() {
        return (step == 0).then(|| bound.clone());
    }
    let bound = bound.as_f64()?;
    if !whole {
        return Number::from_f64(if step < 0 {
            bound - 1.0
        } else if step > 0 {
            bound + 1.0
        } else {
            bound
        });
    }
    // Doubles up to 2^53 are exact integers; beyond, there is no telling which integer is meant.
    let rounded = if step < 0 { bound.floor() } else { bound.ceil() };
    let text = format!("{rounded:.0}");
    (rounded.abs() < 9_007_199_254_740_992.0).then(|| text.parse::<i64>().ok().map(Number::from))?
}

fn is_allowed(number: &Number, bounds: &NumberBounds) -> bool {
    let holds = |bound: &Option<Number>, wrong: Ordering, exclusive: bool| {
        bound.as_ref().is_none_or(|bound| match fits::compare(number, bound) {
            Some(Ordering::Equal) => !exclusive,
            Some(order) => order != wrong,
            None => false,
        })
    };
    holds(&bounds.minimum, Ordering::Less, bounds.minimum_is_exclusive)
        && holds(&bounds.maximum, Ordering::Greater, bounds.maximum_is_exclusive)
}

/// An example of the format, or the member's name, made as long as it must be.
fn text(bounds: &StringBounds, name: &str) -> Option<String> {
    if let Some(example) = formats::example(&bounds.format) {
        return Some(example.to_owned());
    }
    let least = bounds.length_min.unwrap_or(0);
    if least > LENGTH_MAX {
        return None;
    }
    let word = if name.is_empty() { "text" } else { name };
    let length = usize::try_from(least).ok()?.max(word.chars().count());
    let length_max = bounds.length_max.unwrap_or(LENGTH_MAX).min(LENGTH_MAX);
    let length = length.min(usize::try_from(length_max).ok()?);
    Some(word.chars().cycle().take(length).collect())
}
