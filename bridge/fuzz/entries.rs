//! Fuzzed entries: each takes any bytes, must not panic, and checks what must hold for what was accepted.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::OnceLock,
};

use farthing_bridge::{Api, Call, Request, document, graphql, openapi};
use url::Url;

/// SDL; what is accepted is printed as a schema that reads the same.
pub fn sdl(bytes: &[u8]) {
    if let Ok(reading) = graphql::sdl::read(bytes) {
        prints_the_same(&reading.schema);
    }
}

/// An answer to the introspection query; likewise.
pub fn introspection(bytes: &[u8]) {
    let _ = graphql::introspection::looks_like_introspection(bytes);
    if let Ok(reading) = graphql::introspection::read(bytes) {
        prints_the_same(&reading.schema);
    }
}

fn prints_the_same(schema: &graphql::GraphqlSchema) {
    let printed = graphql::print::sdl(schema);
    match graphql::sdl::read(printed.as_bytes()) {
        Ok(again) => assert_eq!(&again.schema, schema, "{printed}"),
        Err(error) => panic!("what was printed is refused: {error}\n{printed}"),
    }
}

/// A call as three lines: path, query, body. What is accepted stays below the upstream's address, and its query says
/// what was given.
pub fn paths(bytes: &[u8]) {
    const BASE: &str = "http://upstream.example:8080/base/x";
    static PLANNED: OnceLock<(Api, Url)> = OnceLock::new();
    let (api, base) = PLANNED.get_or_init(|| {
        let description = openapi::read(CALLED).expect("the document is valid").description;
        (Api::new(description).expect("the description is valid"), BASE.parse().expect("it is a URL"))
    });
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.splitn(3, '\n').chain(std::iter::repeat(""));
    let mut line = || lines.next().unwrap_or_default();
    let (path, query, body) = (line(), line(), line());
    for method in ["GET", "POST"] {
        let plan = |params: &BTreeMap<String, String>| {
            let call = Call { method, path, params, content_type: None, body: body.as_bytes() };
            match api.plan(&call).map(|planned| planned.request) {
                Ok(Request::Http(request)) => Some(request),
                _ => None,
            }
        };
        let Ok(params) = api.params_of(method, path, query) else { continue };
        let Some(request) = plan(&params) else { continue };
        let url = request.url(base).expect("a planned request stays below its base");
        assert_eq!(url.origin(), base.origin());
        assert!(url.path().starts_with("/base/x/"), "{url}");
        let segments = url.path().to_lowercase().replace("%2e", ".").replace("%3b", ";");
        assert!(
            !segments.split('/').any(|segment| matches!(segment.split(';').next(), Some("." | ".."))),
            "{url}"
        );
        assert_eq!(Url::parse(url.as_str()).as_ref(), Ok(&url), "it is read differently");
        let mut again = api.params_of(method, path, &request.query).expect("what is written can be read");
        let elsewhere = |name: &str| matches!(name, "id" | "part" | "x-tenant");
        again.extend(
            params.iter().filter(|(name, _)| elsewhere(name)).map(|(n, text)| (n.clone(), text.clone())),
        );
        let written = plan(&again).expect("what is read can be planned");
        // Members are read in the order of the description, whatever order they came in.
        let pairs = |query: &str| BTreeSet::from_iter(query.split('&').map(ToOwned::to_owned));
        assert_eq!(pairs(&written.query), pairs(&request.query), "the query says something else: {params:?}");
        assert_eq!(written.segments, request.segments);
    }
}

/// The calls of [`paths`]: every style, and parameters in all places.
const CALLED: &[u8] = br#"{
    "openapi": "3.1.0",
    "info": {"title": "Things", "version": "1"},
    "paths": {
        "/things/{id}": {"get": {
            "parameters": [
                {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}},
                {"name": "x-tenant", "in": "header", "schema": {"type": "string"}},
                {"name": "limit", "in": "query", "schema": {"type": "integer"}},
                {"name": "ids", "in": "query", "schema": {"type": "array", "items": {"type": "integer"}}},
                {"name": "words", "in": "query", "explode": false, "schema": {"type": "array", "items": {"type": "string"}}},
                {"name": "piped", "in": "query", "style": "pipeDelimited", "explode": false, "schema": {"type": "array", "items": {"type": "string"}}},
                {"name": "filter", "in": "query", "style": "deepObject", "schema": {"type": "object", "additionalProperties": false, "properties": {
                    "mass": {"type": "object", "additionalProperties": false, "properties": {"gt": {"type": "number"}}},
                    "tags": {"type": "array", "items": {"type": "string"}}
                }}},
                {"name": "json", "in": "query", "content": {"application/json": {"schema": {}}}}
            ],
            "responses": {"200": {"description": "Done"}}
        }},
        "/things/{id}/parts/.{part}.json": {"post": {
            "parameters": [
                {"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}},
                {"name": "part", "in": "path", "required": true, "schema": {"type": "array", "items": {"type": "string"}}}
            ],
            "requestBody": {"content": {"application/json": {"schema": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}}}},
            "responses": {"200": {"description": "Done"}}
        }}
    }
}"#;

/// OpenAPI in JSON or YAML; what is accepted can be called, packed and unpacked.
pub fn openapi(bytes: &[u8]) {
    let _ = openapi::looks_like_openapi(bytes);
    let Ok(reading) = openapi::read(bytes) else { return };
    if let Ok(packed) = document::encode(&reading.description) {
        document::decode(&packed).expect("what is packed can be unpacked");
    }
    Api::new(reading.description).expect("what is read can be called");
}

/// The same, and the text is always taken for YAML.
pub fn yaml(bytes: &[u8]) {
    openapi(&[b"# YAML\n", bytes].concat());
}

/// A caller's own selection. What is accepted makes a query within its limit, of the schema's words only.
pub fn fields(bytes: &[u8]) {
    const SCHEMA: &str = "type Query { sky: Sky } union Sky = Star | Moon \
        type Star { id: ID! name: String size: Float moons: [Moon!] sky: Sky } type Moon { id: ID! name: [String] star: Star }";
    const WORDS: [&str; 16] = [
        "query",
        "sky",
        "on",
        "Star",
        "Moon",
        "id",
        "name",
        "size",
        "moons",
        "star",
        "__typename",
        "name_String",
        "name_String_",
        "moons_Moon",
        "star_Star",
        "sky_Sky",
    ];
    static PLANNED: OnceLock<Api> = OnceLock::new();
    let api = PLANNED.get_or_init(|| {
        let mut reading = graphql::sdl::read(SCHEMA.as_bytes()).expect("the schema is valid");
        Api::new(graphql::describe(reading.schema, "Sky", &mut reading.report))
            .expect("so is the description")
    });
    let text = String::from_utf8_lossy(bytes).into_owned();
    let params = BTreeMap::from([("fields".to_owned(), text)]);
    let call = Call { method: "GET", path: "/sky", params: &params, content_type: None, body: b"" };
    if let Ok(Request::Graphql(request)) = api.plan(&call).map(|planned| planned.request) {
        assert!(request.query.len() <= farthing_bridge::limits::QUERY_BYTES_MAX);
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        for word in request.query.split(|c| !is_word(c)).filter(|word| !word.is_empty()) {
            assert!(WORDS.contains(&word), "{word} in {}", request.query);
        }
        assert!(request.query.chars().all(|c| is_word(c) || "{}.: ".contains(c)), "{}", request.query);
    }
}
