//! Bodies of requests and answers: the one media type of several that is described, JSON before all others, and the names
//! of the others.

use serde_json::Value;

use super::{
    DocumentReader,
    values::{BYTES_PER_NODE, Members, cost, flag, is_json, object, text},
};
use crate::{
    description::{ANYTHING, Body, BodyKind, Content, Method, Response, Schema, Status},
    media::{essence, is_text},
    multipart::is_multipart,
    shown,
};

/// Media types of one answer that are kept beside the one that is described.
const ALSO_MAX: usize = 8;

impl<'d> DocumentReader<'d> {
    /// The body of a request; `Err` says why the operation cannot be offered.
    pub(super) fn body(&mut self, method: Method, source: Option<&'d Value>) -> Result<Option<Body>, String> {
        let Some(source) = source else { return Ok(None) };
        let source =
            self.document.follow(source).map_err(|problem| format!("its body is missing: {problem}"))?;
        let Some(source) = source.as_object() else { return Ok(None) };
        let Some(contents) = object(source, "content").filter(|contents| !contents.is_empty()) else {
            return Ok(None);
        };
        if matches!(method, Method::Get | Method::Head) {
            self.warn(&format!("{method} has no body; what is declared is left out"));
            return Ok(None);
        }
        if !self.spend_on(|| 1 + cost(source) + names_cost(contents)) {
            return Err(TOO_MUCH.into());
        }
        let required = flag(source, "required");
        let offered = contents.iter().filter_map(|(kind, content)| Some((body_kind(kind)?, content)));
        let best = offered.min_by_key(|((kind, media_type), _)| rank(*kind, media_type));
        let Some(((kind, media_type), content)) = best else {
            let kinds: Vec<_> = contents.keys().take(3).map(|kind| shown(kind)).collect();
            let what = format!("a body of {} cannot be sent", kinds.join(", "));
            if required {
                return Err(format!("{what}, and it is required"));
            }
            self.warn(&format!("{what}; left out"));
            return Ok(None);
        };
        let (schema, example) = self.schema_and_example(content);
        let description = text(source, "description");
        let also = also(contents, &media_type);
        Ok(Some(Body { kind, media_type, also, required, schema, description, example }))
    }

    /// Answers by status.
    pub(super) fn responses(&mut self, source: Option<&'d Value>) -> Vec<Response> {
        let mut responses: Vec<Response> = Vec::new();
        let sources = source.and_then(Value::as_object);
        for (key, source) in sources.into_iter().flatten().filter(|(key, _)| !key.starts_with("x-")) {
            let Some(status) = status(key) else {
                self.warn(&format!("`{}` is not the status of an answer; left out", shown(key)));
                continue;
            };
            if responses.iter().any(|response| response.status == status) {
                self.warn(&format!("the answer {status} is described twice; the first one counts"));
                continue;
            }
            match self.document.follow(source) {
                Ok(Value::Object(source)) if self.spend_on(|| 1 + cost(source)) => {
                    let content = self.content(source);
                    responses.push(Response { status, description: text(source, "description"), content });
                }
                Ok(_) => {}
                Err(problem) => self.warn(&format!("the answer {status} is missing: {problem}; left out")),
            }
        }
        responses
    }

    fn content(&mut self, source: &'d Members) -> Option<Content> {
        let contents = object(source, "content")?;
        if !self.spend_on(|| names_cost(contents)) {
            return None;
        }
        let preferred = contents.iter().find(|(kind, _)| is_json(&essence(kind)));
        let any = || contents.iter().find(|(kind, _)| is_anything(&essence(kind)));
        let (kind, content) = preferred.or_else(any).or_else(|| contents.iter().next())?;
        let kind = essence(kind);
        let also = also(contents, &kind);
        let media_type = if is_anything(&kind) { "application/json".into() } else { shown(&kind) };
        let (schema, example) = self.schema_and_example(content);
        Some(Content { media_type, schema, example, also })
    }

    fn schema_and_example(&mut self, content: &'d Value) -> (Schema, Option<Value>) {
        let Some(content) = content.as_object() else { return (Schema::default(), None) };
        let schema = content.get("schema").map_or_else(Schema::default, |schema| self.schema(schema));
        let example = if self.spend_on(|| cost(content)) { self.example(content) } else { None };
        (schema, example)
    }
}

/// The reason why an operation is skipped that would repeat too much.
pub(super) const TOO_MUCH: &str = "the document expands to too much before it";

/// Computes the cost of looking through the names of media types, counted in schemas: many may refer to one body.
fn names_cost(contents: &Members) -> usize {
    contents.keys().map(|kind| BYTES_PER_NODE + kind.len()).sum::<usize>() / BYTES_PER_NODE
}

/// Lists the media types that may come instead of `chosen`.
fn also(contents: &Members, chosen: &str) -> Vec<String> {
    if contents.keys().any(|kind| is_anything(&essence(kind))) {
        return vec![ANYTHING.to_owned()];
    }
    let others = contents.keys().map(|kind| essence(kind)).filter(|kind| kind != chosen);
    others.filter(|kind| is_plain(kind)).take(ALSO_MAX).collect()
}

/// Returns the kind of a body of this media type, and the media type to send; `None` when it cannot be sent.
fn body_kind(kind: &str) -> Option<(BodyKind, String)> {
    let kind = essence(kind);
    if is_anything(&kind) {
        Some((BodyKind::Json, "application/json".into()))
    } else if !is_plain(&kind) {
        None
    } else if is_json(&kind) {
        Some((BodyKind::Json, kind))
    } else if kind == "application/x-www-form-urlencoded" {
        Some((BodyKind::Form, kind))
    } else {
        // Text, or bytes.
        Some((BodyKind::Text, kind))
    }
}

/// A media type for whatever there is; in practice that is JSON.
fn is_anything(media_type: &str) -> bool {
    matches!(media_type, "*/*" | "application/*" | "json" | "*")
}

/// Tells whether a media type can stand in a header.
fn is_plain(media_type: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/.+-_!#$&^".contains(c);
    // A range of types, such as `image/*`.
    let named = media_type.strip_suffix('*').filter(|range| range.ends_with('/')).unwrap_or(media_type);
    media_type.len() <= 128 && media_type.split('/').count() == 2 && named.chars().all(plain)
}

/// The order in which bodies are preferred: those of which most can be checked, then those that can be typed in.
fn rank(kind: BodyKind, media_type: &str) -> u8 {
    match kind {
        BodyKind::Json => 0,
        BodyKind::Form => 1,
        BodyKind::Text if is_text(media_type) => 2,
        BodyKind::Text if is_multipart(media_type) => 3,
        BodyKind::Text => 4,
        BodyKind::Any => 5,
    }
}

fn status(key: &str) -> Option<Status> {
    let key = key.trim();
    if key.eq_ignore_ascii_case("default") {
        return Some(Status::Default);
    }
    let class = |text: &str| text.parse::<u8>().ok().filter(|class| (1..=5).contains(class));
    match key.strip_suffix("XX").or_else(|| key.strip_suffix("xx")) {
        Some(digit) => class(digit).map(Status::Class),
        None => key.parse::<u16>().ok().filter(|code| (100..=599).contains(code)).map(Status::Code),
    }
}
