//! Swagger 2.0, rewritten as OpenAPI 3.0.
//!
//! Definitions, shared parameters and shared responses stay where they are, so references to them keep their
//! meaning; what is in them, and every operation, is rewritten in place. A body that an operation shares with
//! others is referred to and not copied, so a document cannot grow.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{
    refs::Document,
    values::{Members, array, bytes, is_json, scalar, text},
};
use crate::{limits::DOCUMENT_TEXT_BYTES_MAX, media::essence, report::Report, steps::Steps};

/// Media types of one answer that are kept beside the one that is described; the reader keeps as many.
const ALSO_MAX: usize = 8;
/// The longest media type that can be sent.
const MEDIA_TYPE_BYTES_MAX: usize = 128;
/// About what a copy takes beside its text.
const COPY_BYTES: usize = 128;

/// A parameter that becomes part of a body, and a reference to it if it is shared.
#[derive(Clone)]
struct BodyPart {
    source: Value,
    reference: Option<String>,
}

impl BodyPart {
    /// About what a copy takes.
    fn bytes(&self) -> usize {
        COPY_BYTES + bytes(&self.source) + self.reference.as_deref().map_or(0, str::len)
    }
}

/// Media types of one body that are read; a description keeps no more.
const CONSUMED_MAX: usize = 9;

/// Media types that the document declares for all operations.
struct Defaults {
    consumes: Vec<String>,
    produces: Vec<String>,
    /// Bytes that may still be copied of what is shared: many operations may refer to one long text.
    copies: Steps,
}

/// Rewrites a document.
pub(super) fn to_3_0(mut root: Value, report: &mut Report) -> Value {
    let servers = servers(&root, report);
    let Some(members) = root.as_object_mut() else { return root };
    let mut defaults = Defaults {
        consumes: media_types(members, "consumes"),
        produces: produced(members),
        copies: Steps::new(DOCUMENT_TEXT_BYTES_MAX),
    };
    let mut paths = members.remove("paths").unwrap_or_default();
    for (key, item) in paths.as_object_mut().into_iter().flatten() {
        if let Some(item) = item.as_object_mut() {
            let pointer = format!("#/paths/{}", key.replace('~', "~0").replace('/', "~1"));
            path_item(item, &pointer, Document { root: &root }, &mut defaults, report);
        }
    }
    let Some(members) = root.as_object_mut() else { return root };
    members.insert("paths".into(), paths);
    for (_, source) in members.get_mut("parameters").and_then(Value::as_object_mut).into_iter().flatten() {
        if let Some(source) = source.as_object_mut().filter(|source| part_of_body(source).is_none()) {
            parameter(source);
        }
    }
    for (_, source) in members.get_mut("responses").and_then(Value::as_object_mut).into_iter().flatten() {
        response(source, &defaults.produces, &mut defaults.copies);
    }
    let schemes = members.remove("securityDefinitions").unwrap_or_else(|| json!({}));
    members.insert("components".into(), json!({ "securitySchemes": schemes }));
    members.insert("servers".into(), servers);
    root
}

/// Scheme, host and base path as addresses.
fn servers(root: &Value, report: &mut Report) -> Value {
    let Some(members) = root.as_object() else { return json!([]) };
    let (host, base) = (text(members, "host"), text(members, "basePath"));
    let base = base.trim_end_matches('/');
    let base = if base.is_empty() || base.starts_with('/') { base.to_owned() } else { format!("/{base}") };
    if host.is_empty() {
        return if base.is_empty() { json!([]) } else { json!([{ "url": base }]) };
    }
    let mut schemes: Vec<&str> = array(members, "schemes").iter().filter_map(Value::as_str).collect();
    schemes.retain(|scheme| matches!(*scheme, "http" | "https"));
    // The first is preferred, and it should be the encrypted one.
    schemes.sort_unstable_by(|a, b| b.cmp(a));
    schemes.dedup();
    if schemes.is_empty() {
        report.repaired.add("schemes", "the document has no scheme for its host; https is assumed");
        schemes.push("https");
    }
    schemes.iter().map(|scheme| json!({ "url": format!("{scheme}://{host}{base}") })).collect()
}

fn path_item(
    item: &mut Members,
    pointer: &str,
    document: Document<'_>,
    defaults: &mut Defaults,
    report: &mut Report,
) {
    const METHODS: &[&str] = &["get", "head", "post", "put", "patch", "delete", "options"];
    let copies = &mut defaults.copies;
    let shared = split(item, &format!("{pointer}/parameters"), document, true, copies);
    for method in METHODS {
        let Some(operation) = item.get_mut(*method).and_then(Value::as_object_mut) else { continue };
        let mut parts = split(operation, "", document, false, copies);
        let own: HashSet<Option<&Value>> = parts.iter().map(|part| part.source.get("name")).collect();
        let others = shared.iter().filter(|part| !own.contains(&part.source.get("name")));
        let others: Vec<_> = others.take_while(|part| copies.take(part.bytes())).cloned().collect();
        parts.extend(others);
        if copies.are_spent() {
            report.warnings.add(pointer, "the shared parts expand to too much; some are left out");
        }
        let consumes = Some(media_types(operation, "consumes")).filter(|types| !types.is_empty());
        if let Some(body) = body(parts, consumes.as_ref().unwrap_or(&defaults.consumes)) {
            operation.insert("requestBody".into(), body);
        }
        let produces = Some(produced(operation)).filter(|types| !types.is_empty());
        let produces = produces.as_ref().unwrap_or(&defaults.produces);
        for (_, source) in operation.get_mut("responses").and_then(Value::as_object_mut).into_iter().flatten()
        {
            response(source, produces, copies);
        }
        if operation.contains_key("schemes") {
            report.warnings.add(format!("{method} {pointer}"), "schemes of its own are ignored");
        }
    }
}

/// Rewrites the parameters of an operation or path and takes those of the body out. Shared ones
/// stay where they are, for references; the reader passes over them.
fn split(
    owner: &mut Members,
    pointer: &str,
    document: Document<'_>,
    is_shared: bool,
    copies: &mut Steps,
) -> Vec<BodyPart> {
    let Some(Value::Array(sources)) = owner.get_mut("parameters") else { return Vec::new() };
    let mut parts = Vec::new();
    let mut others = Vec::new();
    for (i, mut source) in std::mem::take(sources).into_iter().enumerate() {
        let reference = source.get("$ref").and_then(Value::as_str).map(ToOwned::to_owned);
        let meant = reference.as_deref().and_then(|reference| document.target(reference).ok());
        match part_of_body(meant.unwrap_or(&source).as_object().unwrap_or(&Map::new())) {
            Some(_) if reference.is_some() || is_shared => {
                // What is shared may be large; its name, place and flags are all that is needed.
                let outline = outline(meant.unwrap_or(&source));
                let referring = reference.as_ref().map_or(pointer.len(), String::len);
                if copies.take(
                    COPY_BYTES + referring + outline.iter().map(|(_, value)| bytes(value)).sum::<usize>(),
                ) {
                    let outline = outline.into_iter().map(|(key, value)| (key.clone(), value.clone()));
                    let reference = reference.unwrap_or_else(|| format!("{pointer}/{i}"));
                    parts.push(BodyPart { source: outline.collect(), reference: Some(reference) });
                }
            }
            Some(_) => {
                parts.push(BodyPart { source, reference: None });
                continue;
            }
            None => {
                if let Some(source) = source.as_object_mut().filter(|_| reference.is_none()) {
                    parameter(source);
                }
            }
        }
        others.push(source);
    }
    *sources = others;
    parts
}

fn part_of_body(source: &Members) -> Option<&str> {
    source.get("in").and_then(Value::as_str).filter(|place| matches!(*place, "body" | "formData"))
}

/// The members of a shared parameter that its operations need.
fn outline(source: &Value) -> Vec<(&String, &Value)> {
    const KEPT: &[&str] = &["name", "in", "required", "type", "description"];
    let members = KEPT.iter().filter_map(|key| source.as_object()?.get_key_value(*key));
    members.filter(|(_, value)| !value.is_array() && !value.is_object()).collect()
}

/// `requestBody` of the parts; a `body` parameter or a form.
fn body(parts: Vec<BodyPart>, consumes: &[String]) -> Option<Value> {
    let is_body = |part: &BodyPart| part.source.get("in").is_some_and(|place| place == "body");
    let is_required = |part: &BodyPart| part.source.get("required") == Some(&Value::Bool(true));
    if let Some(part) = parts.iter().position(is_body) {
        let mut part = parts.into_iter().nth(part)?;
        let required = is_required(&part);
        let description = part.source.get("description").and_then(scalar).unwrap_or_default();
        let schema = match part.reference {
            Some(reference) => json!({ "$ref": format!("{reference}/schema") }),
            None => part.source.as_object_mut()?.remove("schema").unwrap_or_else(|| json!({})),
        };
        let media_type = preferred(consumes).unwrap_or("application/json").to_owned();
        let others = consumes.iter().filter(|kind| kind.len() <= MEDIA_TYPE_BYTES_MAX).take(CONSUMED_MAX);
        let mut content: Members = others.map(|kind| (kind.clone(), json!({}))).collect();
        content.insert(media_type, json!({ "schema": schema }));
        return Some(json!({ "required": required, "description": description, "content": content }));
    }
    if parts.is_empty() {
        return None;
    }
    let is_file = |part: &BodyPart| part.source.get("type").is_some_and(|kind| kind == "file");
    let form = "application/x-www-form-urlencoded";
    let takes_form = consumes.is_empty() || consumes.iter().any(|kind| kind == form);
    let media_type = if parts.iter().any(is_file) || !takes_form { "multipart/form-data" } else { form };
    let required: Vec<Value> = parts
        .iter()
        .filter(|part| is_required(part))
        .filter_map(|part| part.source.get("name").cloned())
        .collect();
    let needed = !required.is_empty();
    let mut properties = Map::new();
    for mut part in parts {
        let Some(name) = part.source.get("name").and_then(scalar) else { continue };
        let schema = match part.reference {
            Some(reference) => json!({ "$ref": reference }),
            None => {
                let members = part.source.as_object_mut()?;
                let keywords = ["name", "in", "required", "collectionFormat", "allowEmptyValue"];
                members.retain(|key, _| !keywords.contains(&key.as_str()));
                part.source
            }
        };
        properties.insert(name, schema);
    }
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    let content = Value::Object(Map::from_iter([(media_type.to_owned(), json!({ "schema": schema }))]));
    Some(json!({ "required": needed, "content": content }))
}

/// A parameter's type becomes its schema, its `collectionFormat` a style.
fn parameter(source: &mut Members) {
    const OUTSIDE: &[&str] =
        &["name", "in", "required", "description", "allowEmptyValue", "example", "x-example", "deprecated"];
    let place = text(source, "in");
    let (style, explode) = match (text(source, "collectionFormat").as_str(), place.as_str()) {
        ("multi", "query") => ("form", true),
        ("ssv", "query") => ("spaceDelimited", false),
        ("pipes", "query") => ("pipeDelimited", false),
        ("csv" | "", "query") => ("form", false),
        ("csv" | "", _) => ("simple", false),
        // Not a style of OpenAPI 3, so the reader says why it is not offered.
        ("tsv", _) => ("tabDelimited", false),
        (_, _) => ("unknown collectionFormat", false),
    };
    let is_list = text(source, "type") == "array";
    let inner = std::mem::take(source);
    let (outside, mut schema): (Members, Members) =
        inner.into_iter().partition(|(key, _)| OUTSIDE.contains(&key.as_str()));
    schema.remove("collectionFormat");
    *source = outside;
    if is_list {
        source.insert("style".into(), style.into());
        source.insert("explode".into(), explode.into());
    }
    // A parameter with a schema is 3.0 already.
    let schema = schema.remove("schema").unwrap_or(Value::Object(schema));
    source.insert("schema".into(), schema);
}

/// `schema` and `examples` of a response move below a media type.
fn response(source: &mut Value, produces: &[String], copies: &mut Steps) {
    let Some(source) = source.as_object_mut() else { return };
    let (schema, examples) = (source.remove("schema"), source.remove("examples"));
    if schema.is_none() && examples.is_none() {
        return;
    }
    let is_file = schema.as_ref().is_some_and(|schema| schema.get("type").is_some_and(|kind| kind == "file"));
    let fallback = if is_file { "application/octet-stream" } else { "application/json" };
    let media_type = preferred(produces).unwrap_or(fallback).to_owned();
    let others = produces.iter().filter(|kind| **kind != media_type).take(ALSO_MAX);
    let others = others.take_while(|kind| copies.take(COPY_BYTES + kind.len()));
    let mut contents: Map<String, Value> = others.map(|kind| (kind.clone(), json!({}))).collect();
    let mut content = Map::new();
    content.extend(schema.map(|schema| ("schema".to_owned(), schema)));
    let example = examples.and_then(|examples| match examples {
        Value::Object(mut examples) => {
            examples.remove(&media_type).or_else(|| examples.into_iter().next().map(|(_, e)| e))
        }
        _ => None,
    });
    content.extend(example.map(|example| ("example".to_owned(), example)));
    contents.insert(media_type, Value::Object(content));
    source.insert("content".into(), Value::Object(contents));
}

fn media_types(members: &Members, key: &str) -> Vec<String> {
    array(members, key).iter().filter_map(Value::as_str).map(essence).collect()
}

/// The media types that answers may have.
fn produced(members: &Members) -> Vec<String> {
    let mut types = media_types(members, "produces");
    types.retain(|kind| kind.len() <= MEDIA_TYPE_BYTES_MAX);
    types
}

/// JSON if it is among them, otherwise the first.
fn preferred(types: &[String]) -> Option<&str> {
    types.iter().find(|kind| is_json(kind)).or_else(|| types.first()).map(String::as_str)
}
