//! Arguments from a caller's text or JSON to the JSON text of GraphQL variables.
//!
//! A [`Coercer`] goes along a value and its type together, writes what fits and collects everything that does
//! not. Nothing is guessed: every type has one text form, and JSON values need their own JSON type. Numbers are
//! text all the way, so that no digit is lost; strings and ids are never looked into.

mod leaf;
mod object;
#[cfg(test)]
mod tests;

use std::fmt::Display;

pub(super) use self::leaf::quote;
use super::schema::{GraphqlSchema, ScalarForm, TypeId, TypeKind, TypeRef};
use crate::{
    json::Json,
    limits::{CHECKS_MAX, PROBLEMS_MAX, VALUE_DEPTH_MAX},
    problem::Problem,
    steps::Steps,
    values::ValuePath,
};

/// Writes variables and keeps what is wrong with them.
pub(super) struct Coercer<'s> {
    schema: &'s GraphqlSchema,
    /// JSON, complete only when there are no problems.
    pub out: String,
    /// Required values that were not given, by their paths.
    missing: Vec<String>,
    problems: Vec<Problem>,
    steps: Steps,
}

impl<'s> Coercer<'s> {
    pub const fn new(schema: &'s GraphqlSchema, out: String) -> Self {
        Self { schema, out, missing: Vec::new(), problems: Vec::new(), steps: Steps::new(CHECKS_MAX) }
    }

    /// Adds a required value that was not given.
    pub fn miss(&mut self, place: impl Display) {
        if self.missing.len() < PROBLEMS_MAX {
            self.missing.push(place.to_string());
        }
    }

    /// Takes steps of looking at values. Without any left, nothing more is looked at.
    fn spend(&mut self, steps: usize) {
        self.steps.take(steps);
    }

    /// Adds a problem. Beyond a screenful nobody reads on.
    pub fn object(&mut self, problem: Problem) {
        if !self.is_full() {
            self.problems.push(problem);
        }
    }

    /// Returns the arguments as JSON.
    ///
    /// # Errors
    /// Everything that is wrong: first all that is missing.
    pub fn finish(mut self) -> Result<String, Vec<Problem>> {
        if !self.missing.is_empty() {
            self.problems.insert(0, Problem::Missing(self.missing));
        }
        if self.problems.is_empty() && self.steps.are_spent() {
            self.problems.push(Problem::Other("the arguments are too complex to check".into()));
        }
        if self.problems.is_empty() { Ok(self.out) } else { Err(self.problems) }
    }

    /// Tells whether nothing more is told.
    pub const fn is_full(&self) -> bool {
        self.problems.len() >= PROBLEMS_MAX || self.missing.len() >= PROBLEMS_MAX || self.steps.are_spent()
    }

    fn kind(&self, id: TypeId) -> Option<&'s TypeKind> {
        self.schema.get(id).map(|ty| &ty.kind)
    }

    pub fn text(&mut self, place: &ValuePath<'_>, ty: &TypeRef, text: &str) {
        if text == "null" && !self.is_verbatim(ty) {
            return self.null(place, ty);
        }
        match ty.nullable() {
            TypeRef::List(_) if text.trim_start().starts_with('[') => self.parsed(place, ty, text),
            TypeRef::List(item) => self.listed(place, ty, text, item),
            inner => match self.kind(inner.named()) {
                Some(TypeKind::Scalar(scalar)) => self.scalar_text(place, ty, text, scalar.form),
                Some(TypeKind::Enum(choices)) => self.choice(place, text, choices),
                Some(TypeKind::Input(_)) if text.trim_start().starts_with('{') => {
                    self.parsed(place, ty, text);
                }
                _ => self.refuse(place, ty, text),
            },
        }
    }

    pub fn json(&mut self, place: &ValuePath<'_>, ty: &TypeRef, value: &Json<'_>) {
        self.spend(1);
        if self.is_full() {
            return;
        }
        match (ty.nullable(), value) {
            (_, Json::Null) => self.null(place, ty),
            (TypeRef::List(item), Json::Array(items)) => {
                self.out.push('[');
                for (i, value) in items.iter().enumerate() {
                    self.comma(i);
                    self.json(&ValuePath::Item(place, i), item, value);
                }
                self.out.push(']');
            }
            (TypeRef::List(_), other) => self.refuse(place, ty, &other.to_text()),
            (inner, value) => match (self.kind(inner.named()), value) {
                (Some(TypeKind::Scalar(scalar)), value) => self.scalar_json(place, ty, value, scalar.form),
                (Some(TypeKind::Enum(choices)), Json::String(text)) => self.choice(place, text, choices),
                (Some(TypeKind::Input(input)), Json::Object(members)) => {
                    self.input_json(place, input, members);
                }
                _ => self.refuse(place, ty, &value.to_text()),
            },
        }
    }

    fn comma(&mut self, index: usize) {
        if index > 0 {
            self.out.push(',');
        }
    }

    /// Tells whether any text is a value of the type, even `null`.
    fn is_verbatim(&self, ty: &TypeRef) -> bool {
        let TypeRef::Named(id) = ty.nullable() else { return false };
        let Some(TypeKind::Scalar(scalar)) = self.kind(*id) else { return false };
        matches!(scalar.form, ScalarForm::String | ScalarForm::Id)
    }

    fn null(&mut self, place: &ValuePath<'_>, ty: &TypeRef) {
        if ty.is_non_null() {
            self.refuse(place, ty, "null");
        } else {
            self.out.push_str("null");
        }
    }

    /// Text that is JSON: a list, or an input object.
    fn parsed(&mut self, place: &ValuePath<'_>, ty: &TypeRef, text: &str) {
        match Json::parse(text, VALUE_DEPTH_MAX) {
            Ok(value) => self.json(place, ty, &value),
            Err(error) => self.refuse_json(place, ty, text, error),
        }
    }

    /// `a,b,c`, for lists of scalars and enums.
    fn listed(&mut self, place: &ValuePath<'_>, ty: &TypeRef, text: &str, item: &TypeRef) {
        if text.is_empty() || !self.takes_commas(item) {
            return self.refuse(place, ty, text);
        }
        self.out.push('[');
        for (i, text) in text.split(',').enumerate() {
            if self.is_full() {
                return;
            }
            self.comma(i);
            self.text(&ValuePath::Item(place, i), item, text);
        }
        self.out.push(']');
    }

    /// Tells whether a list of these may be written with commas: values without parts, whose text is not JSON.
    fn takes_commas(&self, item: &TypeRef) -> bool {
        let TypeRef::Named(id) = item.nullable() else { return false };
        match self.kind(*id) {
            Some(TypeKind::Scalar(scalar)) => scalar.form != ScalarForm::CustomJson,
            Some(TypeKind::Enum(_)) => true,
            _ => false,
        }
    }
}
