//! Schemas to types: named ones once, inline objects, enums and unions under names made from where they stand.
//!
//! What an object or union holds is read later, from a queue: a stranger's types may stand in a chain of thousands.

use std::collections::{BTreeSet, HashMap, VecDeque};

use farthing_bridge::{
    description::{self, ApiDescription, NumberBounds, OneOf, Schema, SchemaId, Shape},
    shown,
};
use serde_json::{Number, Value};

use super::{Declared, Enum, Kind, Member, Object, Type, Union, Variant, Width};

/// Documentation of a member.
const MEMBER_DOC_CHARS_MAX: usize = 160;
/// Documentation of a type.
const TYPE_DOC_CHARS_MAX: usize = 300;
/// Schemas that are looked at to see whether something can be null.
const NULL_STEPS_MAX: usize = 100;
/// Lists within lists; deeper there is any JSON.
const DEPTH_MAX: usize = 32;
/// Alternatives of a union; further ones are any JSON.
const VARIANTS_MAX: usize = 100;
/// The largest whole number that a double holds with all below it: 2^53 - 1.
const EXACT_MAX: i64 = (1 << 53) - 1;

pub(super) struct Builder<'d, 'w> {
    description: &'d ApiDescription,
    warnings: &'w mut Vec<String>,
    declared: Vec<Declared>,
    named: HashMap<SchemaId, NamedSchema>,
    /// Named schemas as the parts of a form.
    forms: HashMap<SchemaId, Type>,
    /// Inline enums by the last word of their name and their choices.
    enums: HashMap<(String, String), usize>,
    /// Declarations whose content is still to be read.
    waiting: VecDeque<(usize, String, Declares<'d>)>,
    depth: usize,
}

/// The progress in reading a named schema.
enum NamedSchema {
    Begun,
    Done(Type),
}

impl<'d, 'w> Builder<'d, 'w> {
    pub(super) fn new(description: &'d ApiDescription, warnings: &'w mut Vec<String>) -> Self {
        let (declared, waiting) = (Vec::new(), VecDeque::new());
        let (named, forms, enums) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { description, warnings, declared, named, forms, enums, waiting, depth: 0 }
    }

    /// Reads what is still to be read; every declared type is complete then.
    pub(super) fn finish(mut self) -> Vec<Declared> {
        while let Some((index, hint, declares)) = self.waiting.pop_front() {
            let kind = self.kind(declares, &hint);
            if let Some(declared) = self.declared.get_mut(index) {
                declared.kind = kind;
            }
        }
        self.declared
    }

    pub(super) const fn description(&self) -> &'d ApiDescription {
        self.description
    }

    pub(super) fn push(&mut self, declared: Declared) -> Type {
        self.declared.push(declared);
        Type::Declared(self.declared.len() - 1)
    }

    /// The type of a schema; `hint` is the name that a declaration gets.
    pub(super) fn of(&mut self, schema: &'d Schema, hint: &str) -> Type {
        if self.depth >= DEPTH_MAX {
            self.warnings.push(format!("`{}` is nested too deeply, and any JSON here", shown(hint)));
            return Type::Any;
        }
        self.depth += 1;
        let of = self.bare(schema, hint);
        self.depth -= 1;
        if self.is_nullable(schema) { of.or_null() } else { of }
    }

    /// The type of a form with files. It is declared for itself, because a text of JSON may be a file here; a form of which
    /// no parts are described takes files under any names.
    pub(super) fn form(&mut self, schema: &'d Schema, hint: &str) -> Type {
        let (id, hint) = match schema.shape {
            Shape::Ref(id) => (Some(id), self.description.schema(id).map_or(hint, |named| &named.name)),
            _ => (None, hint),
        };
        if let Some(known) = id.and_then(|id| self.forms.get(&id)) {
            return known.clone();
        }
        let of = match self.description.resolve(schema).map(|resolved| (resolved, &resolved.shape)) {
            Some((resolved, Shape::Object(object))) if !object.properties.is_empty() => {
                self.declared(resolved, hint, Declares::Parts(object))
            }
            _ => Type::Map(Box::new(Type::Upload)),
        };
        if let Some(id) = id {
            self.forms.insert(id, of.clone());
        }
        of
    }

    fn is_nullable(&self, schema: &Schema) -> bool {
        let mut waiting = vec![schema];
        for _ in 0..NULL_STEPS_MAX {
            let Some(schema) = waiting.pop() else { return false };
            if schema.nullable {
                return true;
            }
            match &schema.shape {
                Shape::Ref(id) => waiting.extend(self.description.schema(*id).map(|named| &named.schema)),
                Shape::OneOf(one_of) => waiting.extend(&one_of.variants),
                _ => {}
            }
        }
        false
    }

    fn bare(&mut self, schema: &'d Schema, hint: &str) -> Type {
        if let Shape::Ref(id) = schema.shape {
            return self.named(id);
        }
        let hint = match &schema.shape {
            Shape::Object(_) | Shape::OneOf(_) if !schema.title.is_empty() => &schema.title,
            _ => hint,
        };
        match declaration(schema) {
            Some(Declares::Enum(choices)) => {
                let word = hint.rsplit(' ').next().unwrap_or(hint).to_owned();
                let key = (word, Value::from(schema.choices.clone()).to_string());
                if let Some(index) = self.enums.get(&key) {
                    return Type::Declared(*index);
                }
                self.enums.insert(key, self.declared.len());
                self.declared(schema, hint, Declares::Enum(choices))
            }
            Some(declares) => self.declared(schema, hint, declares),
            None => self.used(schema, hint),
        }
    }

    /// Declares a type, whose parts are read later.
    fn declared(&mut self, schema: &Schema, hint: &str, declares: Declares<'d>) -> Type {
        let doc = clip(&schema.description, TYPE_DOC_CHARS_MAX);
        let (in_requests, in_answers, recursive) = (false, false, false);
        let kind = match declares {
            Declares::Enum(choices) => Kind::Enum(choices),
            declares => {
                self.waiting.push_back((self.declared.len(), hint.to_owned(), declares));
                Kind::Object(Object::default())
            }
        };
        self.push(Declared { hint: hint.to_owned(), doc, kind, in_requests, in_answers, recursive })
    }

    fn named(&mut self, id: SchemaId) -> Type {
        match self.named.get(&id) {
            Some(NamedSchema::Done(of)) => return of.clone(),
            Some(NamedSchema::Begun) => {
                let name = self.description.schema(id).map_or("", |named| &named.name);
                self.warnings.push(format!("`{}` is a list of itself, and any JSON here", shown(name)));
                return Type::Any;
            }
            None => {}
        }
        let Some(named) = self.description.schema(id) else { return Type::Any };
        let of = if let Some(declares) = declaration(&named.schema) {
            self.declared(&named.schema, &named.name, declares)
        } else {
            self.named.insert(id, NamedSchema::Begun);
            self.of(&named.schema, &named.name)
        };
        self.named.insert(id, NamedSchema::Done(of.clone()));
        of
    }

    /// A type that is written where it is used.
    fn used(&mut self, schema: &'d Schema, hint: &str) -> Type {
        match &schema.shape {
            // What has choices of several kinds is none of them.
            Shape::Boolean => Type::Boolean,
            _ if !schema.choices.is_empty() && schema.choices.iter().all(Value::is_boolean) => Type::Boolean,
            Shape::String(_) => Type::Text,
            Shape::Number(_) => Type::Number,
            Shape::Integer(bounds) => Type::Integer(width(bounds)),
            _ if !schema.choices.is_empty() && schema.choices.iter().all(Value::is_number) => Type::Number,
            Shape::Array(array) => Type::Array(Box::new(self.of(&array.items, hint))),
            Shape::Object(object) => {
                let of = object.additional.as_ref().map_or(Type::Any, |additional| self.of(additional, hint));
                Type::Map(Box::new(of))
            }
            Shape::Ref(id) => self.named(*id),
            Shape::Any | Shape::OneOf(_) => Type::Any,
        }
    }

    fn kind(&mut self, declares: Declares<'d>, hint: &str) -> Kind {
        match declares {
            Declares::Enum(choices) => Kind::Enum(choices),
            Declares::Object(object) => Kind::Object(self.object(object, hint)),
            Declares::Parts(object) => Kind::Parts(self.parts(object, hint)),
            Declares::Union(one_of) => Kind::Union(self.union(one_of, hint)),
        }
    }

    fn object(&mut self, object: &'d description::Object, hint: &str) -> Object {
        let member = |property: &'d description::Property| {
            let of = self.of(&property.schema, &format!("{hint} {}", property.name));
            Member {
                wire: property.name.clone(),
                doc: clip(&property.schema.description, MEMBER_DOC_CHARS_MAX),
                required: property.required,
                deprecated: property.schema.deprecated,
                of,
            }
        };
        let members = object.properties.iter().map(member).collect();
        let additional =
            object.additional.as_ref().map(|additional| self.of(additional, &format!("{hint} value")));
        Object { members, additional, exactly_one: object.exactly_one }
    }

    fn parts(&mut self, object: &'d description::Object, hint: &str) -> Object {
        let mut parts = self.object(object, hint);
        for (member, property) in parts.members.iter_mut().zip(&object.properties) {
            member.of = self.part(&property.schema, &member.of);
        }
        if let (Some(of), Some(schema)) = (&mut parts.additional, &object.additional) {
            *of = if matches!(of, Type::Any) { Type::Upload } else { self.part(schema, of) };
        }
        parts
    }

    /// The type of a part, or of several under one name, which is `of` in JSON.
    fn part(&self, schema: &Schema, of: &Type) -> Type {
        let is_file = |schema: &Schema| {
            let shape = self.description.resolve(schema).map(|schema| &schema.shape);
            matches!(shape, Some(Shape::String(bounds)) if bounds.format == "binary")
        };
        match self.description.resolve(schema).map(|schema| &schema.shape) {
            _ if is_file(schema) => Type::Upload,
            Some(Shape::Array(array)) if is_file(&array.items) => Type::Array(Box::new(Type::Upload)),
            _ => of.bare().clone(),
        }
    }

    fn union(&mut self, one_of: &'d OneOf, hint: &str) -> Union {
        let mut union = Union::default();
        if let Some(discriminator) = &one_of.discriminator {
            for (index, schema) in one_of.variants.iter().enumerate().take(VARIANTS_MAX) {
                let mapped = |(_, variant): &&(String, u32)| usize::try_from(*variant) == Ok(index);
                let tags = discriminator.mapping.iter().filter(mapped).map(|(tag, _)| tag.clone()).collect();
                self.variant(&mut union, schema, hint, tags);
            }
            let is_told =
                |variant: &Variant| !variant.tags.is_empty() && matches!(variant.of, Type::Declared(_));
            if union.variants.iter().all(is_told) {
                union.discriminator = Some(discriminator.property.clone());
            }
            return union;
        }
        let mut seen = BTreeSet::new();
        let mut waiting: Vec<&'d Schema> = one_of.variants.iter().rev().collect();
        while let Some(schema) = waiting.pop() {
            if union.variants.len() >= VARIANTS_MAX {
                self.warnings.push(format!("`{}` has too many alternatives; some are any JSON", shown(hint)));
                union.variants.push(Variant { hint: "any".to_owned(), of: Type::Any, tags: Vec::new() });
                break;
            }
            // Alternatives within alternatives are alternatives.
            let resolved = self.description.resolve(schema);
            if let Some(Schema { shape: Shape::OneOf(inner), .. }) = resolved
                && inner.discriminator.is_none()
            {
                if seen.insert(std::ptr::from_ref(inner)) && seen.len() < VARIANTS_MAX {
                    waiting.extend(inner.variants.iter().rev());
                }
                continue;
            }
            self.variant(&mut union, schema, hint, Vec::new());
        }
        union
    }

    fn variant(&mut self, union: &mut Union, schema: &'d Schema, hint: &str, tags: Vec<String>) {
        let own = match schema.shape {
            Shape::Ref(id) => self.description.schema(id).map(|named| named.name.clone()),
            _ => None,
        };
        let own = own.or_else(|| (!schema.title.is_empty()).then(|| schema.title.clone()));
        let number = union.variants.len() + 1;
        let of = self.of(schema, own.as_deref().unwrap_or(&format!("{hint} {number}"))).bare().clone();
        let hint = own.unwrap_or_else(|| words(&of, hint, number));
        match union.variants.iter_mut().find(|variant| variant.of == of) {
            Some(same) => same.tags.extend(tags),
            None => union.variants.push(Variant { hint, of, tags }),
        }
    }
}

/// The type that a schema declares, if it declares anything.
enum Declares<'d> {
    Object(&'d description::Object),
    Parts(&'d description::Object),
    Enum(Enum),
    Union(&'d OneOf),
}

fn declaration(schema: &Schema) -> Option<Declares<'_>> {
    match &schema.shape {
        Shape::Object(object) if !object.properties.is_empty() => return Some(Declares::Object(object)),
        Shape::OneOf(one_of) if !one_of.variants.is_empty() => return Some(Declares::Union(one_of)),
        Shape::Object(_) | Shape::OneOf(_) | Shape::Array(_) | Shape::Ref(_) => return None,
        _ if schema.choices.is_empty() => return None,
        _ => {}
    }
    let mut seen = BTreeSet::new();
    let mut choices = schema.choices.iter().filter(|choice| seen.insert(choice.to_string()));
    let texts = || schema.choices.iter().all(Value::is_string);
    if texts() {
        return Some(Declares::Enum(Enum::Texts(
            choices.filter_map(|choice| choice.as_str().map(str::to_owned)).collect(),
        )));
    }
    let integers: Option<Vec<i64>> = choices.by_ref().map(Value::as_i64).collect();
    integers.map(|integers| Declares::Enum(Enum::Integers(integers)))
}

/// Returns the words that name an inline variant.
fn words(of: &Type, hint: &str, number: usize) -> String {
    match of {
        Type::Any => "any".to_owned(),
        Type::Boolean => "boolean".to_owned(),
        Type::Integer(_) => "integer".to_owned(),
        Type::Number => "number".to_owned(),
        Type::Text => "text".to_owned(),
        Type::Bytes => "bytes".to_owned(),
        Type::Upload => "file".to_owned(),
        Type::Array(of) => format!("{} list", words(of, hint, number)),
        Type::Map(of) => format!("{} map", words(of, hint, number)),
        Type::Nullable(of) => words(of, hint, number),
        Type::Declared(_) => format!("{hint} {number}"),
    }
}

fn width(bounds: &NumberBounds) -> Width {
    let whole = |bound: &Option<Number>| bound.as_ref().and_then(Number::as_i64);
    let range = (whole(&bounds.minimum), whole(&bounds.maximum));
    match (&*bounds.format, range) {
        ("int8" | "int16" | "int32" | "uint8" | "uint16", _) => Width::I32,
        (_, (Some(min), Some(max))) if min >= i64::from(i32::MIN) && max <= i64::from(i32::MAX) => Width::I32,
        ("uint32", _) => Width::I53,
        (_, (Some(min), Some(max))) if min >= -EXACT_MAX && max <= EXACT_MAX => Width::I53,
        ("uint64", _) => Width::U64,
        _ => Width::I64,
    }
}

/// A text of at most `chars_max` characters; a longer one ends in an ellipsis.
pub(crate) fn clip(text: &str, chars_max: usize) -> String {
    let text = text.trim();
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let cut: String = text.chars().take(chars_max.saturating_sub(1)).collect();
    format!("{}…", cut.trim_end())
}
