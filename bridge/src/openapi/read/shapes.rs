//! A schema's own keywords: type, bounds, members, items, choices.
//!
//! A missing type is inferred from the keywords that only make sense with one. `not`, `if`, `patternProperties`
//! and the like have no place in the description and are left to the upstream.

use std::collections::HashSet;

use serde_json::{Number, Value};

use super::{
    DocumentReader,
    values::{Members, array, flag, kept, scalar, text},
};
use crate::{
    description::{ArrayOf, NumberBounds, Object, OneOf, Property, Schema, Shape, StringBounds},
    shown,
};

impl<'d> DocumentReader<'d> {
    /// The shape that `members` describe apart from references and combinations.
    pub(super) fn own_shape(&mut self, members: &'d Members) -> Schema {
        let kinds = kinds(members);
        let mut schema = match &kinds[..] {
            [] => Schema::of(self.shape_of_kind(inferred_kind(members), members)),
            [kind] => Schema::of(self.shape_of_kind(kind, members)),
            several => {
                let variants = several.iter().map(|kind| Schema::of(self.shape_of_kind(kind, members)));
                Schema::of(Shape::OneOf(OneOf { variants: variants.collect(), discriminator: None }))
            }
        };
        self.choose(&mut schema, members);
        schema
    }

    fn shape_of_kind(&mut self, kind: &str, members: &'d Members) -> Shape {
        let format = text(members, "format");
        let (shape, meant) = match kind {
            "" | "null" => return Shape::Any,
            "boolean" => return Shape::Boolean,
            "integer" => return Shape::Integer(number_bounds(members, format)),
            "number" => return Shape::Number(number_bounds(members, format)),
            "string" => return Shape::String(string_bounds(members, format)),
            "array" => return Shape::Array(Box::new(self.array_of(members))),
            "object" => return Shape::Object(self.object_of(members)),
            "file" => return Shape::String(string_bounds(members, "binary".into())),
            // Not types at all, and still met with.
            "bool" => (Shape::Boolean, "boolean"),
            "int" | "int32" | "int64" | "long" => (Shape::Integer(number_bounds(members, format)), "integer"),
            "float" | "double" | "decimal" => (Shape::Number(number_bounds(members, format)), "number"),
            "date" | "date-time" | "uuid" => (Shape::String(string_bounds(members, kind.into())), "string"),
            "datetime" => (Shape::String(string_bounds(members, "date-time".into())), "string"),
            "any" => (Shape::Any, "any JSON"),
            _ => {
                self.warn(&format!("`{}` is not a type; taken as any JSON", shown(kind)));
                return Shape::Any;
            }
        };
        let what = format!("`{kind}` is not a type of JSON Schema; taken as {meant}");
        self.report.repaired.add(&self.place, what);
        shape
    }

    fn array_of(&mut self, members: &'d Members) -> ArrayOf {
        let count = |key| members.get(key).and_then(Value::as_u64);
        // A tuple's items differ by position, which the description cannot say.
        let is_tuple = members.contains_key("prefixItems");
        let (items, items_max) = match members.get("items") {
            Some(Value::Bool(false)) if !is_tuple => (Schema::default(), Some(0)),
            Some(items @ Value::Object(_)) if !is_tuple => (self.inner(items), count("maxItems")),
            _ => (Schema::default(), count("maxItems")),
        };
        ArrayOf { items, items_min: count("minItems"), items_max }
    }

    fn object_of(&mut self, members: &'d Members) -> Object {
        let required: HashSet<&str> = array(members, "required").iter().filter_map(Value::as_str).collect();
        let sources = members.get("properties").and_then(Value::as_object);
        let mut properties = Vec::new();
        for (name, source) in sources.into_iter().flatten() {
            if *source == Value::Bool(false) {
                self.warn(&format!("the member `{}` may never be given, which is not checked", shown(name)));
                continue;
            }
            // Requests would otherwise have to hold what only answers do.
            let read_only = source.get("readOnly") == Some(&Value::Bool(true));
            let required = required.contains(name.as_str()) && !read_only;
            properties.push(Property { name: name.clone(), required, schema: self.inner(source) });
        }
        for name in array(members, "required").iter().filter_map(Value::as_str) {
            let declared = sources.is_some_and(|sources| sources.contains_key(name));
            if !declared && self.spend(1) {
                let property = Property { name: name.into(), required: true, schema: Schema::default() };
                properties.push(property);
            }
        }
        dedup_by_name(&mut properties);
        let additional = match members.get("additionalProperties") {
            Some(Value::Bool(false)) => None,
            Some(source @ Value::Object(_)) => Some(self.inner(source)),
            _ => Some(Schema::default()),
        };
        Object { properties, additional: additional.map(Box::new), exactly_one: false }
    }

    /// `enum` and `const`. Values that differ from the type only in how they are written are put right: in YAML
    /// `1.0` is a number even where the type says string.
    fn choose(&mut self, schema: &mut Schema, members: &'d Members) {
        let constant = members.get("const").map(std::slice::from_ref);
        let Some(values) = constant.or_else(|| Some(array(members, "enum")).filter(|list| !list.is_empty()))
        else {
            return;
        };
        if values.iter().any(Value::is_null) {
            schema.nullable = true;
        }
        let mut repaired = false;
        let mut choices: Vec<Value> = Vec::new();
        for value in values.iter().filter(|value| !value.is_null()) {
            let Some(value) = &kept(value) else {
                self.warn("a choice is nested too deeply; all values are allowed");
                return;
            };
            let fitting = fitting(&schema.shape, value);
            repaired |= fitting.is_some();
            choices.push(fitting.unwrap_or_else(|| value.clone()));
        }
        let mut seen = HashSet::new();
        choices.retain(|choice| seen.insert(choice.to_string()));
        if repaired {
            self.report
                .repaired
                .add(&self.place, "choices that did not fit the type were read as if they did");
        }
        if schema.shape == Shape::Any {
            schema.shape = shape_of_values(&choices);
        }
        schema.choices = choices;
    }
}

/// Types of one schema that are read, more than JSON has: each repeats the schema's texts.
const KINDS_MAX: usize = 8;

/// Types but `null`; `integer` goes without saying beside `number`.
fn kinds(members: &Members) -> Vec<&str> {
    let mut kinds: Vec<&str> = match members.get("type") {
        Some(Value::String(kind)) => vec![kind.as_str()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let has_number = kinds.contains(&"number");
    let mut seen = HashSet::new();
    kinds.retain(|kind| *kind != "null" && !(has_number && *kind == "integer") && seen.insert(*kind));
    kinds.truncate(KINDS_MAX);
    kinds
}

fn inferred_kind(members: &Members) -> &'static str {
    const TELLING: &[(&str, &[&str])] = &[
        ("object", &["properties", "additionalProperties", "required", "maxProperties", "minProperties"]),
        ("array", &["items", "prefixItems", "minItems", "maxItems", "uniqueItems"]),
        ("string", &["pattern", "minLength", "maxLength"]),
        ("number", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    ];
    // Swagger 2.0's parameters are schemas whose `required` is a flag.
    let tells = |key: &&str| members.get(*key).is_some_and(|value| *key != "required" || value.is_array());

    let found = TELLING.iter().find(|(_, keys)| keys.iter().any(tells));
    found.map_or("", |(kind, _)| kind)
}

fn number_bounds(members: &Members, format: String) -> NumberBounds {
    let (minimum, minimum_is_exclusive) = bound(members, "minimum", "exclusiveMinimum", |a, b| a >= b);
    let (maximum, maximum_is_exclusive) = bound(members, "maximum", "exclusiveMaximum", |a, b| a <= b);
    NumberBounds { format, minimum, maximum, minimum_is_exclusive, maximum_is_exclusive }
}

/// A bound and whether it is exclusive: a flag beside the bound until 3.0, a bound of its own since 3.1. Of two
/// the `tighter` counts.
fn bound(
    members: &Members,
    inclusive: &str,
    exclusive: &str,
    tighter: impl Fn(f64, f64) -> bool,
) -> (Option<Number>, bool) {
    let number = |key| members.get(key).and_then(Value::as_number);
    match (number(inclusive), number(exclusive)) {
        (None, None) => (None, false),
        (Some(bound), None) => (Some(bound.clone()), flag(members, exclusive)),
        (None, Some(bound)) => (Some(bound.clone()), true),
        (Some(inclusive), Some(exclusive)) => {
            let is_tighter = exclusive.as_f64().zip(inclusive.as_f64()).is_some_and(|(a, b)| tighter(a, b));
            (Some(if is_tighter { exclusive } else { inclusive }.clone()), is_tighter)
        }
    }
}

fn string_bounds(members: &Members, format: String) -> StringBounds {
    let length = |key| members.get(key).and_then(Value::as_u64);
    let format = match (text(members, "contentEncoding").as_str(), format.is_empty()) {
        ("base64" | "base64url", true) => "byte".into(),
        _ if format.is_empty() && text(members, "contentMediaType") == "application/octet-stream" => {
            "binary".into()
        }
        _ => format,
    };
    StringBounds {
        format,
        length_min: length("minLength"),
        length_max: length("maxLength"),
        pattern: text(members, "pattern"),
    }
}

/// `value` as the shape wants it written, when it is not written so already and can be.
fn fitting(shape: &Shape, value: &Value) -> Option<Value> {
    match (shape, value) {
        (Shape::String(_), Value::Number(_) | Value::Bool(_)) => scalar(value).map(Value::String),
        (Shape::Integer(_), Value::String(text)) => text.parse::<i64>().ok().map(Value::from),
        (Shape::Number(_), Value::String(text)) => {
            serde_json::from_str::<Number>(text).ok().map(Value::Number)
        }
        (Shape::Boolean, Value::String(text)) => text.parse::<bool>().ok().map(Value::Bool),
        _ => None,
    }
}

fn shape_of_values(values: &[Value]) -> Shape {
    let all = |test: fn(&Value) -> bool| !values.is_empty() && values.iter().all(test);
    if all(Value::is_string) {
        Shape::String(StringBounds::default())
    } else if all(Value::is_boolean) {
        Shape::Boolean
    } else if all(|value| value.is_i64() || value.is_u64()) {
        Shape::Integer(NumberBounds::default())
    } else if all(Value::is_number) {
        Shape::Number(NumberBounds::default())
    } else {
        Shape::Any
    }
}

fn dedup_by_name(properties: &mut Vec<Property>) {
    let mut seen = HashSet::new();
    properties.retain(|property| seen.insert(property.name.clone()));
}
