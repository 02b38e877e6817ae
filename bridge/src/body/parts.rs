//! Bodies of several parts: read strictly, a form's parts checked as far as they are described, and passed on as they came.

use std::collections::BTreeMap;

use super::{FormValues, ROOT, SentBody, any_form, form_member, form_object, one_form};
use crate::{
    description::{Object, Schema, Shape},
    multipart::{self, MultipartError},
    problem::Problem,
    request::Payload,
    values::{Checker, ValuePath},
};

/// The values of a form under one name.
#[derive(Default)]
struct NamedValues {
    texts: Vec<String>,
    /// Files, and what is no text.
    files: usize,
}

type Members<'b> = BTreeMap<&'b str, NamedValues>;

/// Reads a body of this type, which `content_type` gives a boundary. `schema` is absent where the type is only named.
pub(super) fn read<'d>(
    checker: &mut Checker<'d>,
    schema: Option<&'d Schema>,
    (essence, content_type): (&str, &str),
    body: &[u8],
) -> SentBody {
    match checked(checker, schema, (essence, content_type), body) {
        Ok(media_type) => SentBody { payload: Payload::AsGiven, media_type: Some(media_type) },
        Err(error) => {
            checker.tell(Problem::Other(error.to_string()));
            SentBody { payload: Payload::Nothing, media_type: None }
        }
    }
}

/// The content type to send.
fn checked<'d>(
    checker: &mut Checker<'d>,
    schema: Option<&'d Schema>,
    (essence, content_type): (&str, &str),
    body: &[u8],
) -> Result<String, MultipartError> {
    let boundary = multipart::boundary(content_type)?;
    let parts = multipart::parts(content_type, body)?;
    if multipart::is_form(essence) {
        let mut members = Members::new();
        for part in parts {
            let given = members.entry(part.name).or_default();
            match std::str::from_utf8(part.content) {
                Ok(text) if !part.is_file => given.texts.push(text.to_owned()),
                _ => given.files += 1,
            }
        }
        check(checker, schema, &members);
    }
    Ok(multipart::sent_type(essence, boundary))
}

fn check<'d>(checker: &mut Checker<'d>, schema: Option<&'d Schema>, members: &Members<'_>) {
    let shape = schema.and_then(|schema| checker.resolved(schema)).map(|schema| &schema.shape);
    match shape {
        Some(Shape::Object(object)) => {
            form_object(checker, object, members);
        }
        Some(Shape::OneOf(one_of)) => {
            if !one_form(checker, one_of, members) {
                checker.tell(Problem::Other("the body's parts match none of the described forms".into()));
            }
        }
        _ => {
            any_form(checker, members);
        }
    }
}

impl FormValues for NamedValues {
    fn fit<'d>(&self, checker: &mut Checker<'d>, object: &'d Object, name: &str) -> bool {
        if self.files == 0 {
            return form_member(checker, object, name, &self.texts);
        }
        let Some(schema) = checker.member(&ROOT, object, name) else { return false };
        let at = ValuePath::Member(&ROOT, name);
        let (schema, count) = (checker.resolved(schema).unwrap_or(schema), self.files + self.texts.len());
        let (takes_files, list) = match &schema.shape {
            Shape::Array(array) => (takes_bytes(checker, &array.items), Some(array)),
            Shape::OneOf(one_of) => (one_of.variants.iter().any(|one| takes_bytes(checker, one)), None),
            _ => (takes_bytes(checker, schema), None),
        };
        if !takes_files {
            checker.refuse_for(&at, "a file", schema);
            return false;
        }
        match list {
            Some(array) => checker.count(&at, count, array),
            None if count == 1 => true,
            None => {
                checker.tell(Problem::Twice { name: at.to_string(), places: "in the form" });
                false
            }
        }
    }
}

/// Tells whether a file, whose bytes are nobody's to judge, may be a value of `schema`.
fn takes_bytes<'d>(checker: &Checker<'d>, schema: &'d Schema) -> bool {
    let shape = checker.resolved(schema).map(|schema| &schema.shape);
    matches!(shape, None | Some(Shape::Any | Shape::String(_)))
}
