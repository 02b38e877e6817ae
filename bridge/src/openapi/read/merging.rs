//! Two schemas that must both hold, as one: `allOf`, and keywords beside a reference or alternatives.
//!
//! What says nothing gives way to the other. Named schemas are opened only when something has to be added to
//! them. Two that no value fits, or two lists of alternatives, become any JSON with a warning: the upstream will
//! know better.

use std::{
    collections::{HashMap, HashSet},
    mem::take,
};

use serde_json::{Number, Value};

use super::{
    DocumentReader,
    values::{BYTES_PER_NODE, bytes},
};
use crate::description::{ArrayOf, NumberBounds, Object, OneOf, Property, Schema, Shape, StringBounds};

impl DocumentReader<'_> {
    /// A schema for values that fit both.
    pub(super) fn both(&mut self, a: Schema, b: Schema) -> Schema {
        if says_nothing(&a) || (is_bare_object(&a) && is_structured(&b)) {
            return annotated(b, a);
        }
        if says_nothing(&b) || (is_bare_object(&b) && is_structured(&a)) {
            return annotated(a, b);
        }
        if a.shape == b.shape && a.choices == b.choices {
            let nullable = a.nullable && b.nullable;
            return Schema { nullable, ..annotated(a, b) };
        }
        if !self.enter() {
            return Schema::default();
        }
        let merged = self.merged(a, b);
        self.leave();
        merged
    }

    fn merged(&mut self, a: Schema, b: Schema) -> Schema {
        let (Some(mut a), Some(mut b)) = (self.opened(a), self.opened(b)) else {
            self.warn("`allOf` contains itself; that part is taken as any JSON");
            return Schema::default();
        };
        let nullable = a.nullable && b.nullable;
        // Taken, not copied: what many parts have made together is handed on from one to the next.
        let choices = both_choices(take(&mut a.choices), take(&mut b.choices));
        let shape = self.both_shapes(take(&mut a.shape), take(&mut b.shape));
        let (shape, choices) = match shape.zip(choices) {
            Some(both) => both,
            None => {
                self.warn("what `allOf`, `oneOf` and `anyOf` say cannot be combined; taken as any JSON");
                (Shape::Any, Vec::new())
            }
        };
        annotated(Schema { shape, nullable, choices, ..b }, a)
    }

    /// `None` when no value has both.
    fn both_shapes(&mut self, a: Shape, b: Shape) -> Option<Shape> {
        Some(match (a, b) {
            (Shape::Any, shape) | (shape, Shape::Any) => shape,
            (Shape::Boolean, Shape::Boolean) => Shape::Boolean,
            (Shape::Integer(a), Shape::Integer(b) | Shape::Number(b))
            | (Shape::Number(a), Shape::Integer(b)) => Shape::Integer(both_bounds(a, b)),
            (Shape::Number(a), Shape::Number(b)) => Shape::Number(both_bounds(a, b)),
            (Shape::String(a), Shape::String(b)) => Shape::String(both_strings(a, b)),
            (Shape::Array(a), Shape::Array(b)) => {
                let (a, b) = (*a, *b);
                Shape::Array(Box::new(ArrayOf {
                    items: self.below(|reader| reader.both(a.items, b.items)),
                    items_min: a.items_min.max(b.items_min),
                    items_max: least(a.items_max, b.items_max),
                }))
            }
            (Shape::Object(a), Shape::Object(b)) => self.both_objects(a, b),
            (Shape::OneOf(_), Shape::OneOf(_)) => return None,
            (Shape::OneOf(one_of), shape) | (shape, Shape::OneOf(one_of)) => {
                let other = Schema::of(shape);
                if !self.spend(size(&other).saturating_mul(one_of.variants.len())) {
                    return Some(Shape::Any);
                }
                let both = |variant| self.below(|reader| reader.both(variant, other.clone()));
                let variants = one_of.variants.into_iter().map(both).collect();
                Shape::OneOf(OneOf { variants, discriminator: one_of.discriminator })
            }
            _ => return None,
        })
    }

    fn both_objects(&mut self, a: Object, b: Object) -> Shape {
        // Each of many parts looks through the members of all before it.
        if !self.spend(a.properties.len()) {
            return Shape::Any;
        }
        let mut properties = a.properties;
        let mut places: HashMap<String, usize> =
            properties.iter().enumerate().map(|(place, property)| (property.name.clone(), place)).collect();
        for property in b.properties {
            let Some(&place) = places.get(&property.name) else {
                places.insert(property.name.clone(), properties.len());
                properties.push(property);
                continue;
            };
            let first = take(&mut properties[place]);
            properties[place] = Property {
                required: first.required || property.required,
                schema: self.below(|reader| reader.both(first.schema, property.schema)),
                name: first.name,
            };
        }
        let additional = match (a.additional, b.additional) {
            (Some(a), Some(b)) => Some(Box::new(self.below(|reader| reader.both(*a, *b)))),
            _ => None,
        };
        Shape::Object(Object { properties, additional, exactly_one: a.exactly_one || b.exactly_one })
    }
}

/// Schemas within a schema, itself and its texts among them.
fn size(schema: &Schema) -> usize {
    let within = match &schema.shape {
        Shape::Array(array) => size(&array.items),
        Shape::Object(object) => {
            let properties = object.properties.iter().map(|property| size(&property.schema));
            properties.chain(object.additional.as_deref().map(size)).sum()
        }
        Shape::OneOf(one_of) => one_of.variants.iter().map(size).sum(),
        _ => 0,
    };
    let values = [&schema.default, &schema.example].into_iter().flatten().chain(&schema.choices);
    let texts = schema.title.len() + schema.description.len() + values.map(bytes).sum::<usize>();
    1 + texts / BYTES_PER_NODE + within
}

fn says_nothing(schema: &Schema) -> bool {
    schema.shape == Shape::Any && schema.choices.is_empty()
}

/// `type: object` and no more, as it is often written beside `allOf`.
fn is_bare_object(schema: &Schema) -> bool {
    let Shape::Object(object) = &schema.shape else { return false };
    object.properties.is_empty() && object.additional.as_deref() == Some(&Schema::default())
}

/// Tells whether a bare object beside the schema adds nothing.
const fn is_structured(schema: &Schema) -> bool {
    matches!(schema.shape, Shape::Ref(_) | Shape::OneOf(_) | Shape::Object(_))
}

/// Titles and the like of `from` where `schema` has none, and its nullability if it is the only one to say so.
fn annotated(schema: Schema, from: Schema) -> Schema {
    let or = |own: String, other: String| if own.is_empty() { other } else { own };
    Schema {
        title: or(schema.title, from.title),
        description: or(schema.description, from.description),
        default: schema.default.or(from.default),
        example: schema.example.or(from.example),
        deprecated: schema.deprecated || from.deprecated,
        ..schema
    }
}

fn both_choices(a: Vec<Value>, b: Vec<Value>) -> Option<Vec<Value>> {
    if a.is_empty() || b.is_empty() {
        return Some(if a.is_empty() { b } else { a });
    }
    let texts: HashSet<String> = b.iter().map(Value::to_string).collect();
    let common: Vec<Value> = a.into_iter().filter(|choice| texts.contains(&choice.to_string())).collect();
    (!common.is_empty()).then_some(common)
}

fn both_bounds(a: NumberBounds, b: NumberBounds) -> NumberBounds {
    let (minimum, minimum_is_exclusive) =
        tighter((a.minimum, a.minimum_is_exclusive), (b.minimum, b.minimum_is_exclusive), |a, b| a > b);
    let (maximum, maximum_is_exclusive) =
        tighter((a.maximum, a.maximum_is_exclusive), (b.maximum, b.maximum_is_exclusive), |a, b| a < b);
    let format = if a.format.is_empty() { b.format } else { a.format };
    NumberBounds { format, minimum, maximum, minimum_is_exclusive, maximum_is_exclusive }
}

type Bound = (Option<Number>, bool);

fn tighter(a: Bound, b: Bound, is_tighter: impl Fn(f64, f64) -> bool) -> Bound {
    let value = |bound: &Bound| bound.0.as_ref().and_then(Number::as_f64);
    match (value(&a), value(&b)) {
        (Some(first), Some(second)) if is_tighter(first, second) => a,
        (Some(first), Some(second)) if is_tighter(second, first) => b,
        (Some(_), Some(_)) => (a.0, a.1 || b.1),
        (Some(_), None) => a,
        (None, _) => b,
    }
}

fn both_strings(a: StringBounds, b: StringBounds) -> StringBounds {
    StringBounds {
        format: if a.format.is_empty() { b.format } else { a.format },
        length_min: a.length_min.max(b.length_min),
        length_max: least(a.length_max, b.length_max),
        pattern: if a.pattern.is_empty() { b.pattern } else { a.pattern },
    }
}

fn least(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}
