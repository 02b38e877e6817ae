//! An operation as code sees it: parameters in the order of use, the body, and one type for all its successes.

use farthing_bridge::{
    description::{self, Content, Method, Response, Schema, Shape, Status, Style},
    is_json,
    media::is_text,
    multipart::is_form,
};

use super::{
    Answer, AnswerKind, Body, Declared, Kind, Operation, Parameter, Type, Union, Variant,
    types::{Builder, clip},
};

const SUMMARY_CHARS_MAX: usize = 160;
const DESCRIPTION_CHARS_MAX: usize = 400;
const PARAMETER_DOC_CHARS_MAX: usize = 160;
/// In the words of every GraphQL service's own document, which are longer.
const SELECTION_DOC: &str = "Fields of the answer instead of the usual ones: `name,host(name,mass)`.";

pub(super) fn read<'d>(operation: &'d description::Operation, types: &mut Builder<'d, '_>) -> Operation {
    let declared = operation.parameters.iter();
    let mut parameters: Vec<Parameter> = declared.map(|one| parameter(operation, one, types)).collect();
    parameters.sort_by_key(|parameter| !parameter.required);
    Operation {
        id: operation.id.clone(),
        method: operation.method,
        path: operation.path.clone(),
        summary: clip(&operation.summary, SUMMARY_CHARS_MAX),
        description: if operation.description.trim() == operation.summary.trim() {
            String::new()
        } else {
            clip(&operation.description, DESCRIPTION_CHARS_MAX)
        },
        deprecated: operation.deprecated,
        parameters,
        body: operation.body.as_ref().and_then(|declared| body(operation, declared, types)),
        answer: answer(operation, types),
        paging: None,
        example: None,
    }
}

fn parameter<'d>(
    operation: &description::Operation,
    parameter: &'d description::Parameter,
    types: &mut Builder<'d, '_>,
) -> Parameter {
    let selection = is_selection(operation, parameter);
    Parameter {
        wire: parameter.name.clone(),
        doc: if selection {
            SELECTION_DOC.to_owned()
        } else {
            clip(&parameter.description, PARAMETER_DOC_CHARS_MAX)
        },
        required: parameter.required,
        deprecated: parameter.deprecated,
        json: parameter.style == Style::Json,
        selection,
        of: if selection {
            Type::Text
        } else {
            // Nothing to send is how null is said here.
            types.of(&parameter.schema, &format!("{} {}", operation.id, parameter.name)).bare().clone()
        },
        default: parameter.schema.default.clone(),
    }
}

/// Returns whether it is the caller's own choice of fields, which is a language of its own: `name,host(name,mass)`.
fn is_selection(operation: &description::Operation, parameter: &description::Parameter) -> bool {
    operation.root.is_some()
        && parameter.name.ends_with("fields")
        && parameter.style == Style::Comma
        && matches!(parameter.schema.shape, Shape::Array(_))
}

fn body<'d>(
    operation: &description::Operation,
    body: &'d description::Body,
    types: &mut Builder<'d, '_>,
) -> Option<Body> {
    use farthing_bridge::description::BodyKind;
    let has_body = !matches!(operation.method, Method::Get | Method::Head | Method::Delete);
    // A body that nobody described is not worth a parameter where bodies are unusual.
    if body.kind == BodyKind::Any && !has_body {
        return None;
    }
    let of = match body.kind {
        BodyKind::Json | BodyKind::Form => types.of(&body.schema, &format!("{} request", operation.id)),
        BodyKind::Text if is_form(&body.media_type) => {
            types.form(&body.schema, &format!("{} form", operation.id))
        }
        BodyKind::Text if is_text(&body.media_type) => Type::Text,
        BodyKind::Text | BodyKind::Any => Type::Bytes,
    };
    let doc = clip(&body.description, PARAMETER_DOC_CHARS_MAX);
    Some(Body { kind: body.kind, media_type: body.media_type.clone(), required: body.required, doc, of })
}

/// All successes as one: their type if they share it, a union if all are JSON, otherwise bytes.
fn answer<'d>(operation: &'d description::Operation, types: &mut Builder<'d, '_>) -> Answer {
    let mut successes: Vec<&Response> =
        operation.responses.iter().filter(|response| response.status.is_success()).collect();
    if successes.is_empty() {
        successes =
            operation.responses.iter().filter(|response| response.status == Status::Default).collect();
    }
    let doc =
        successes.first().map_or_else(String::new, |first| clip(&first.description, PARAMETER_DOC_CHARS_MAX));
    if operation.method == Method::Head {
        return Answer { kind: AnswerKind::Nothing, of: Type::Any, doc };
    }
    let has_empty = successes.iter().any(|response| response.content.is_none());
    let contents: Vec<&Content> = successes.iter().filter_map(|response| response.content.as_ref()).collect();
    let kinds: Vec<AnswerKind> = contents.iter().map(|content| kind(content)).collect();
    let (kind, of) = match kinds.split_first() {
        None if successes.is_empty() => (AnswerKind::Mixed, Type::Any),
        None => (AnswerKind::Nothing, Type::Any),
        Some((first, others)) if others.iter().any(|kind| kind != first) => (AnswerKind::Mixed, Type::Any),
        Some((AnswerKind::Json, _)) => {
            let hint = format!("{} answer", operation.id);
            let mut union = Union::default();
            let mut is_nullable = has_empty;
            for (index, content) in contents.iter().enumerate() {
                let hint = if index == 0 { hint.clone() } else { format!("{hint} {}", index + 1) };
                let of = types.of(&content.schema, &hint);
                is_nullable |= matches!(of, Type::Nullable(_));
                let of = of.bare().clone();
                if union.variants.iter().all(|variant| variant.of != of) {
                    union.variants.push(Variant {
                        hint: name(&content.schema, types, &hint),
                        of,
                        tags: Vec::new(),
                    });
                }
            }
            let of = if union.variants.len() > 1 {
                types.declare(&format!("{hint} any"), Kind::Union(union))
            } else {
                union.variants.pop().map_or(Type::Any, |variant| variant.of)
            };
            (AnswerKind::Json, if is_nullable { of.or_null() } else { of })
        }
        Some((AnswerKind::Text, _)) => (AnswerKind::Text, Type::Text),
        Some((AnswerKind::Bytes, _)) => (AnswerKind::Bytes, Type::Bytes),
        Some((kind, _)) => (*kind, Type::Any),
    };
    Answer { kind, of, doc }
}

fn name(schema: &Schema, types: &Builder<'_, '_>, otherwise: &str) -> String {
    let named = match schema.shape {
        Shape::Ref(id) => types.description().schema(id),
        _ => None,
    };
    named.map_or_else(|| otherwise.to_owned(), |named| named.name.clone())
}

fn kind(content: &Content) -> AnswerKind {
    let media_type = &content.media_type;
    if is_json(media_type) {
        AnswerKind::Json
    } else if media_type.is_empty() || media_type.contains('*') {
        AnswerKind::Mixed
    } else if is_text(media_type) {
        AnswerKind::Text
    } else {
        AnswerKind::Bytes
    }
}

impl Builder<'_, '_> {
    /// A type that no schema declares.
    fn declare(&mut self, hint: &str, kind: Kind) -> Type {
        let doc = String::new();
        let (in_requests, in_answers, recursive) = (false, false, false);
        self.push(Declared { hint: hint.to_owned(), doc, kind, in_requests, in_answers, recursive })
    }
}
