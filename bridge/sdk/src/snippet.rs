//! One call as code, from the same templates as the client: what the console shows beside a form.

use std::collections::BTreeMap;

use minijinja::{Value, context};
use serde_json::Value as Json;

use super::{
    Language, Options, SdkError,
    context::{Writer, named::NameTable},
    escape::Foreign,
    model::{Example, Kind, Model, Operation, Parameter, Type, value_of},
    package::Package,
    render,
};
use farthing_bridge::description::ApiDescription;

/// A call of one operation with these parameter texts and body, as code that uses the generated client; for the
/// shell, a call of `curl`.
///
/// Values that fit their parameters are written in the language's types. If one does not, or the body is JSON, the call
/// is written with the client's untyped `call`, which takes texts.
///
/// # Errors
/// [`SdkError`] when there is no such operation.
pub fn snippet(
    description: &ApiDescription,
    operation: usize,
    values: &BTreeMap<String, String>,
    body: Option<&str>,
    language: Language,
    options: &Options,
) -> Result<String, SdkError> {
    let profile = language.profile();
    let package = Package::new(options, description, profile, &mut Vec::new())?;
    let model = Model::new(description, &mut Vec::new());
    let shown = model.operations.get(operation).ok_or(SdkError::NoOperation(operation))?;
    let named = NameTable::new(&model, profile, &mut Vec::new());
    let writer = Writer::new(&model, profile, &named);
    let typed = if body.is_none() { typed(shown, values, &model) } else { None };
    let arguments = typed.as_ref().map(|typed| {
        typed.iter().map(|(at, value)| writer.argument(operation, *at, value)).collect::<Vec<_>>()
    });
    let texts: Vec<Value> = values
        .iter()
        .map(|(name, text)| context! { name => Foreign::value(&**name), text => Foreign::value(&**text) })
        .collect();
    let is_json = body.is_some_and(|body| serde_json::from_str::<Json>(body).is_ok());
    let request = serde_json::json!({
        "api_id_public": options.service_id, "path": shown.path, "method": shown.method.as_str(), "params": values,
    });
    let request = match body {
        Some(body) => with_body(request, body),
        None => request,
    };
    let context = context! {
        service => context! {
            id => Foreign::value(&*options.service_id),
            name => Foreign::value(&*options.service_name),
        },
        package => Value::from(minijinja::value::Serde(&package)),
        base_url => Foreign::value(&*options.base_url),
        operation => Value::from(minijinja::value::Serde(writer.operation(operation, options))),
        typed => arguments.is_some(),
        arguments => Value::from(minijinja::value::Serde(arguments.unwrap_or_default())),
        texts => texts,
        body => body.map(Foreign::value),
        body_is_json => is_json,
        request => Foreign::value(format!("{request:#}")),
    };
    render::one(profile, &profile.snippet, &context, options)
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
    model: &Model,
) -> Option<Vec<(usize, Example)>> {
    let is_known = |name: &String| operation.parameters.iter().any(|parameter| parameter.wire == *name);
    if !values.keys().all(is_known) || operation.body.as_ref().is_some_and(|body| body.required) {
        return None;
    }
    let mut typed = Vec::new();
    for (index, parameter) in operation.parameters.iter().enumerate() {
        match values.get(&parameter.wire) {
            Some(text) => typed.push((index, example(text, parameter, model)?)),
            None if parameter.required => return None,
            None => {}
        }
    }
    Some(typed)
}

fn example(text: &str, parameter: &Parameter, model: &Model) -> Option<Example> {
    if parameter.of == Type::Text && !parameter.json {
        return Some(Example::Text(text.to_owned()));
    }
    let is_text_choice = match parameter.of {
        Type::Declared(index) => {
            matches!(&model.types.get(index)?.kind, Kind::Enum(super::model::Enum::Texts(_)))
        }
        _ => false,
    };
    let given = if is_text_choice { Json::from(text) } else { serde_json::from_str(text).ok()? };
    value_of(&given, parameter, &model.types)
}
