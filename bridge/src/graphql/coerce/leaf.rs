//! Values without parts: scalars and enums, and what an error says was expected.

use std::fmt::Write as _;

use super::Coercer;
use crate::{
    graphql::schema::{Enum, ScalarForm, TypeKind, TypeRef},
    json::{Json, JsonError, is_integer, is_number},
    limits::VALUE_DEPTH_MAX,
    nearest,
    problem::Problem,
    shown,
    values::ValuePath,
};

/// Members of an enum that an error lists.
const LISTED_MAX: usize = 20;
/// Members of an enum, and bytes of a text, that are compared when looking for the nearest.
const COMPARED_MAX: usize = 500;
const COMPARED_BYTES_MAX: usize = 64;

impl Coercer<'_> {
    pub(super) fn scalar_text(&mut self, place: &ValuePath<'_>, ty: &TypeRef, text: &str, form: ScalarForm) {
        let is_literal = match form {
            ScalarForm::String | ScalarForm::Id | ScalarForm::CustomString => {
                return quote(text, &mut self.out);
            }
            ScalarForm::Int => is_int(text),
            ScalarForm::Float => is_float(text),
            ScalarForm::Boolean => matches!(text, "true" | "false"),
            ScalarForm::CustomNumber => is_number(text),
            ScalarForm::CustomJson => match Json::parse(text, VALUE_DEPTH_MAX) {
                Ok(_) => true,
                Err(error) => return self.refuse_json(place, ty, text, error),
            },
        };
        if is_literal { self.out.push_str(text) } else { self.refuse(place, ty, text) }
    }

    pub(super) fn scalar_json(
        &mut self,
        place: &ValuePath<'_>,
        ty: &TypeRef,
        value: &Json<'_>,
        form: ScalarForm,
    ) {
        match (form, value) {
            (ScalarForm::String | ScalarForm::CustomString | ScalarForm::Id, Json::String(text)) => {
                quote(text, &mut self.out);
            }
            // As text, because an id is text and may have more digits than a number holds.
            (ScalarForm::Id, Json::Number(text)) if is_integer(text) => quote(text, &mut self.out),
            (ScalarForm::Int, Json::Number(text)) if is_int(text) => self.out.push_str(text),
            (ScalarForm::Float, Json::Number(text)) if is_float(text) => self.out.push_str(text),
            (ScalarForm::CustomNumber, Json::Number(text)) => self.out.push_str(text),
            // Many clients write numbers of more than 53 bits as text; the service knows whether it likes that.
            (ScalarForm::CustomNumber, Json::String(text)) if is_number(text) => quote(text, &mut self.out),
            (ScalarForm::Boolean, Json::Boolean(_)) | (ScalarForm::CustomJson, _) => {
                self.out.push_str(&value.to_text());
            }
            _ => self.refuse(place, ty, &value.to_text()),
        }
    }

    pub(super) fn choice(&mut self, place: &ValuePath<'_>, text: &str, choices: &Enum) {
        if choices.values.iter().any(|value| value.name == text) {
            return quote(text, &mut self.out);
        }
        let names = || choices.values.iter().take(COMPARED_MAX).map(|value| value.name.as_str());
        let nearest = match text.len() {
            0..=COMPARED_BYTES_MAX => {
                names().find(|name| name.eq_ignore_ascii_case(text)).or_else(|| nearest(text, names()))
            }
            _ => None,
        };
        let nearest = nearest.map(ToOwned::to_owned);
        let expected = members(choices);
        self.object(Problem::Value { name: place.to_string(), value: shown(text), expected, nearest });
    }

    /// Says that `value` is not of type `ty`.
    pub(super) fn refuse(&mut self, place: &ValuePath<'_>, ty: &TypeRef, value: &str) {
        let mut expected = self.expected(ty);
        if value == "null" {
            expected.push_str(", not null");
        }
        self.object(Problem::value(&place.to_string(), value, expected));
    }

    /// Says that `text` is not the JSON it should be.
    pub(super) fn refuse_json(&mut self, place: &ValuePath<'_>, ty: &TypeRef, text: &str, error: JsonError) {
        let expected = format!("{}; as JSON, {error}", self.expected(ty));
        self.object(Problem::value(&place.to_string(), text, expected));
    }

    /// A value of the type in a few words.
    pub(super) fn expected(&self, ty: &TypeRef) -> String {
        let id = match ty.nullable() {
            TypeRef::List(item) if self.takes_commas(item) => {
                return "a list, as a JSON array or separated by commas".into();
            }
            TypeRef::List(_) => return "a list, as a JSON array".into(),
            inner => inner.named(),
        };
        match self.kind(id) {
            Some(TypeKind::Scalar(scalar)) => match scalar.form {
                ScalarForm::Int => "a whole number of 32 bits, such as 7".into(),
                ScalarForm::Float => "a number such as 4.5".into(),
                ScalarForm::Boolean => "true or false".into(),
                ScalarForm::String | ScalarForm::CustomString => "text".into(),
                ScalarForm::Id => "an id, as text".into(),
                ScalarForm::CustomJson => "JSON".into(),
                ScalarForm::CustomNumber => "a number such as 4".into(),
            },
            Some(TypeKind::Enum(choices)) => members(choices),
            _ => "an object, as JSON or member by member with dotted names".into(),
        }
    }
}

fn members(choices: &Enum) -> String {
    let listed: Vec<_> = choices.values.iter().take(LISTED_MAX).map(|value| value.name.as_str()).collect();
    let mut text = format!("one of {}", listed.join(", "));
    if choices.values.len() > LISTED_MAX {
        let _ = write!(text, ", … ({} in all)", choices.values.len());
    }
    text
}

fn is_int(text: &str) -> bool {
    is_integer(text) && text.parse::<i32>().is_ok()
}

fn is_float(text: &str) -> bool {
    is_number(text) && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Appends `text` as a JSON string.
pub(in crate::graphql) fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            // Writing to a string cannot fail.
            c if c < ' ' => write!(out, "\\u{:04x}", u32::from(c)).unwrap_or_default(),
            c => out.push(c),
        }
    }
    out.push('"');
}
