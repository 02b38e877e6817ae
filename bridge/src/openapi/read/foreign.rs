//! Documents of other formats, told by their first lines.

use crate::graphql::sdl::begins_definition;

/// The format of a text that no reader here understands, where its first line tells.
pub(super) fn foreign(text: &str) -> Option<&'static str> {
    const TELLING: &[(&str, &str)] = &[
        ("<!doctype html", "an HTML page; give the address of the document itself, often /openapi.json"),
        ("<html", "an HTML page; give the address of the document itself, often /openapi.json"),
        ("<", "XML, such as WSDL or WADL; convert it to OpenAPI first"),
        ("#%raml", "RAML; convert it to OpenAPI first"),
        ("format: 1a", "an API Blueprint; convert it to OpenAPI first"),
        ("syntax = \"proto", "a description of gRPC messages; use the OpenAPI document of its HTTP gateway"),
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
