//! One call as code, from the same templates as the client: what the console shows beside a form.

use std::collections::BTreeMap;

use minijinja::{Value, context, value::Serde};
use serde_json::Value as Json;

use super::{
    Language, Options, SdkError, UploadPart,
    context::{Writer, named::NameTable},
    escape::Foreign,
    model::{Declared, Enum, Example, Kind, Model, Operation, Type, value_of},
    package::Package,
    render,
};
use farthing_bridge::description::ApiDescription;

/// The body of a call that is shown with the client.
#[derive(Debug, Clone, Copy)]
pub enum SnippetBody<'a> {
    /// JSON, or any other text.
    Text(&'a str),
    /// The name of a file that is all of it.
    File(&'a str),
    /// `multipart/form-data`
    Parts(&'a [UploadPart]),
}

/// A call of one operation with these parameter texts and body, as code that uses the generated client; for the
/// shell, a call of `curl`, unless files are sent.
///
/// Values that fit their parameters are written in the language's types. If one does not, or the body is JSON, the call
/// is written with the client's untyped `call`, which takes texts. Files have no such form: `None` where a value beside them
/// does not fit, or the operation takes none.
///
/// # Errors
/// [`SdkError`] when there is no such operation.
pub fn snippet(
    description: &ApiDescription,
    operation: usize,
    values: &BTreeMap<String, String>,
    body: Option<SnippetBody<'_>>,
    language: Language,
    options: &Options,
) -> Result<Option<String>, SdkError> {
    let profile = language.profile();
    let package = Package::new(options, description, profile, &mut Vec::new())?;
    let model = Model::new(description, &mut Vec::new());
    let shown = model.operations.get(operation).ok_or(SdkError::NoOperation(operation))?;
    let named = NameTable::new(&model, profile, &mut Vec::new());
    let writer = Writer::new(&model, profile, &named);
    let (text, has_files) = match body {
        None => (None, false),
        Some(SnippetBody::Text(text)) => (Some(text), false),
        Some(SnippetBody::File(_) | SnippetBody::Parts(_)) => (None, true),
    };
    let upload = match body {
        Some(SnippetBody::File(name)) => file(shown, name),
        Some(SnippetBody::Parts(parts)) if language != Language::Shell || parts.iter().all(is_argument) => {
            form(shown, parts, &model)
        }
        _ => None,
    };
    let typed = if text.is_none() { typed(shown, values, upload.is_some(), &model) } else { None };
    if has_files && (upload.is_none() || typed.is_none()) {
        return Ok(None);
    }
    let arguments = typed.as_ref().map(|typed| {
        typed.iter().map(|(at, value)| writer.argument(operation, *at, value)).collect::<Vec<_>>()
    });
    let upload = shown.body.as_ref().zip(upload).map(|(body, value)| writer.body_argument(body, &value));
    let texts: Vec<Value> = values
        .iter()
        .map(|(name, text)| context! { name => Foreign::value(&**name), text => Foreign::value(&**text) })
        .collect();
    let is_json = text.is_some_and(|body| serde_json::from_str::<Json>(body).is_ok());
    let request = serde_json::json!({
        "api_id_public": options.service_id, "path": shown.path, "method": shown.method.as_str(), "params": values,
    });
    let request = match text {
        Some(body) => with_body(request, body),
        None => request,
    };
    let context = context! {
        service => context! {
            id => Foreign::value(&*options.service_id),
            name => Foreign::value(&*options.service_name),
        },
        package => Value::from(Serde(&package)),
        base_url => Foreign::value(&*options.base_url),
        operation => Value::from(Serde(writer.operation(operation, options))),
        typed => arguments.is_some(),
        arguments => Value::from(Serde(arguments.unwrap_or_default())),
        upload => Value::from(Serde(upload)),
        texts => texts,
        body => text.map(Foreign::value),
        body_is_json => is_json,
        request => Foreign::value(format!("{request:#}")),
    };
    render::one(profile, &profile.snippet, &context, options).map(Some)
}

fn with_body(mut request: Json, body: &str) -> Json {
    let value = serde_json::from_str(body).unwrap_or_else(|_| Json::from(body));
    request["body"] = value;
    request
}

/// All values in the types of their parameters; `None` when one does not fit or a required one is missing.
fn typed(
    operation: &Operation,
    values: &BTreeMap<String, String>,
    has_body: bool,
    model: &Model,
) -> Option<Vec<(usize, Example)>> {
    let is_known = |name: &String| operation.parameters.iter().any(|parameter| parameter.wire == *name);
    let needs_body = operation.body.as_ref().is_some_and(|body| body.required);
    if !values.keys().all(is_known) || (needs_body && !has_body) {
        return None;
    }
    let mut typed = Vec::new();
    for (index, parameter) in operation.parameters.iter().enumerate() {
        match values.get(&parameter.wire) {
            Some(_) if parameter.json => return None,
            Some(text) => typed.push((index, example(text, &parameter.of, &model.types)?)),
            None if parameter.required => return None,
            None => {}
        }
    }
    Some(typed)
}

/// A text as a literal of this type.
fn example(text: &str, of: &Type, types: &[Declared]) -> Option<Example> {
    if *of == Type::Text {
        return Some(Example::Text(text.to_owned()));
    }
    let is_text_choice = match *of {
        Type::Declared(index) => matches!(types.get(index)?.kind, Kind::Enum(Enum::Texts(_))),
        _ => false,
    };
    let given = if is_text_choice { Json::from(text) } else { serde_json::from_str(text).ok()? };
    value_of(&given, of, types)
}

/// The file as the body of an operation that takes bytes.
fn file(operation: &Operation, name: &str) -> Option<Example> {
    let takes_bytes = operation.body.as_ref().is_some_and(|body| body.of == Type::Bytes);
    takes_bytes.then(|| Example::File(name.to_owned()))
}

/// The parts in the types of the form's members; `None` when one does not fit or a required one is missing.
fn form(operation: &Operation, parts: &[UploadPart], model: &Model) -> Option<Example> {
    let declared = model.types.get(operation.body.as_ref()?.of.declared()?)?;
    let Kind::Parts(form) = &declared.kind else { return None };
    let is_known = |part: &UploadPart| form.members.iter().any(|member| member.wire == part.name);
    if !parts.iter().all(is_known) {
        return None;
    }
    let mut members = Vec::new();
    for (at, member) in form.members.iter().enumerate() {
        let given: Vec<&UploadPart> = parts.iter().filter(|part| part.name == member.wire).collect();
        let value = match (&member.of, &given[..]) {
            (_, []) if member.required => return None,
            (_, []) => continue,
            (Type::Array(of), given) => {
                let items = given.iter().map(|part| value_of_part(part, of, &model.types));
                Example::List(items.collect::<Option<_>>()?)
            }
            (of, [one]) => value_of_part(one, of, &model.types)?,
            (_, _) => return None,
        };
        members.push((at, value));
    }
    Some(Example::Form(members))
}

fn value_of_part(part: &UploadPart, of: &Type, types: &[Declared]) -> Option<Example> {
    match (of, part.is_file) {
        (Type::Upload, true) => Some(Example::File(part.value.clone())),
        (Type::Upload, false) | (_, true) => None,
        (of, false) => example(&part.value, of, types),
    }
}

/// Returns whether the shell's client reads the part as it is meant: `NAME=TEXT` or `NAME=@FILE;type=TYPE`.
fn is_argument(part: &UploadPart) -> bool {
    let is_read = if part.is_file { !part.value.contains(";type=") } else { !part.value.starts_with('@') };
    is_read && !part.name.contains('=')
}
