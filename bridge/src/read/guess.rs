//! What a document is, by its beginning.

use crate::{graphql::introspection::looks_like_introspection, openapi::looks_like_openapi};

/// What is looked at. Comments and descriptions may come before the first definition.
const HEAD_BYTES: usize = 64 * 1024;

/// The reader that is to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guess {
    OpenApi,
    Introspection,
    Sdl,
    Unknown,
}

pub(super) fn guess(bytes: &[u8]) -> Guess {
    if looks_like_openapi(bytes) {
        return Guess::OpenApi;
    }
    if looks_like_introspection(bytes) {
        return Guess::Introspection;
    }
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD_BYTES)]);
    let is_json_or_markup = head.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[', '<']);
    if !is_json_or_markup && head.lines().any(begins_definition) { Guess::Sdl } else { Guess::Unknown }
}

/// Whether a line begins a definition of GraphQL.
fn begins_definition(line: &str) -> bool {
    const KEYWORDS: &[&str] =
        &["type", "schema", "extend", "interface", "union", "enum", "input", "scalar", "directive"];
    let line = line.trim_start_matches('\u{feff}').trim_start();
    KEYWORDS.iter().any(|keyword| {
        let Some(rest) = line.strip_prefix(keyword) else { return false };
        let next = rest.trim_start();
        let is_word =
            rest.len() > next.len() && next.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        is_word || next.starts_with(['{', '@'])
    })
}

/// What a text is that no reader here understands, where its first line tells.
pub(crate) fn foreign(text: &str) -> Option<&'static str> {
    const TELLING: &[(&str, &str)] = &[
        ("<!doctype html", "an HTML page; give the address of the document itself, often /openapi.json"),
        ("<html", "an HTML page; give the address of the document itself, often /openapi.json"),
        ("<", "XML, such as WSDL or WADL; convert it to OpenAPI first"),
        ("#%raml", "RAML; convert it to OpenAPI first"),
        ("format: 1a", "an API Blueprint; convert it to OpenAPI first"),
        (
            "syntax = \"proto",
            "a description of gRPC messages; bring the OpenAPI document of its HTTP gateway",
        ),
    ];
    let head: String = text.trim_start().chars().take(64).collect::<String>().to_lowercase();
    if let Some((_, what)) = TELLING.iter().find(|(beginning, _)| head.starts_with(beginning)) {
        return Some(what);
    }
    let is_sdl = || text.lines().take(1_000).find(|line| !is_comment(line)).is_some_and(begins_definition);
    is_sdl().then_some("a GraphQL schema; register it as GraphQL")
}

fn is_comment(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with(['#', '"'])
}
