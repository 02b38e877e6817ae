//! Fuzzed entries: each takes any bytes, must not panic, and checks what must hold for what was accepted. True if it was.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::OnceLock,
};

use farthing_bridge::{
    Api, Call, Request, document, form, graphql,
    limits::{PARTS_MAX, QUERY_BYTES_MAX},
    multipart::{self, NewFile, NewPart, Part},
    openapi,
    outline::{self, OperationOutline, Outline},
};
use miniz_oxide::deflate::compress_to_vec;
use serde_json::value::RawValue;
use url::Url;

/// SDL; what is accepted is printed as a schema that reads the same.
pub fn sdl(bytes: &[u8]) -> bool {
    let read = graphql::sdl::read(bytes);
    read.map(|reading| prints_the_same(&reading.schema)).is_ok()
}

/// An answer to the introspection query; likewise.
pub fn introspection(bytes: &[u8]) -> bool {
    let _ = graphql::introspection::looks_like_introspection(bytes);
    let read = graphql::introspection::read(bytes);
    read.map(|reading| prints_the_same(&reading.schema)).is_ok()
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
pub fn paths(bytes: &[u8]) -> bool {
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
    let mut is_any_planned = false;
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
        is_any_planned = true;
    }
    is_any_planned
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
pub fn openapi(bytes: &[u8]) -> bool {
    let _ = openapi::looks_like_openapi(bytes);
    let Ok(reading) = openapi::read(bytes) else { return false };
    if let Ok(packed) = document::encode(&reading.description) {
        document::decode(&packed).expect("what is packed can be unpacked");
    }
    Api::new(reading.description).expect("what is read can be called");
    true
}

/// The same, and the text is always taken for YAML.
pub fn yaml(bytes: &[u8]) -> bool {
    openapi(&[b"# YAML\n", bytes].concat())
}

/// A caller's own selection. What is accepted makes a query within its limit, of the schema's words only.
pub fn fields(bytes: &[u8]) -> bool {
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
    let Some(request) = query_for(&String::from_utf8_lossy(bytes)) else { return false };
    assert!(request.query.len() <= QUERY_BYTES_MAX);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for word in request.query.split(|c| !is_word(c)).filter(|word| !word.is_empty()) {
        assert!(WORDS.contains(&word), "{word} in {}", request.query);
    }
    assert!(request.query.chars().all(|c| is_word(c) || "{}.: ".contains(c)), "{}", request.query);
    true
}

/// The query for a selection; `None` if it is refused.
fn query_for(fields: &str) -> Option<graphql::GraphqlRequest> {
    const SCHEMA: &str = "type Query { sky: Sky } union Sky = Star | Moon \
        type Star { id: ID! name: String size: Float moons: [Moon!] sky: Sky } type Moon { id: ID! name: [String] star: Star }";
    static PLANNED: OnceLock<Api> = OnceLock::new();
    let api = PLANNED.get_or_init(|| {
        let mut reading = graphql::sdl::read(SCHEMA.as_bytes()).expect("the schema is valid");
        Api::new(graphql::describe(reading.schema, "Sky", &mut reading.report))
            .expect("so is the description")
    });
    let params = BTreeMap::from([("fields".to_owned(), fields.to_owned())]);
    let call = Call { method: "GET", path: "/sky", params: &params, content_type: None, body: b"" };
    match api.plan(&call).map(|planned| planned.request) {
        Ok(Request::Graphql(request)) => Some(request),
        _ => None,
    }
}

/// An upstream's answer to a query whose members were renamed. What the caller gets is JSON, and what is charged has data.
pub fn answer(bytes: &[u8]) -> bool {
    static ASKED: OnceLock<graphql::GraphqlRequest> = OnceLock::new();
    let asked = ASKED.get_or_init(|| {
        query_for("id,name,moons(id,star.name)").expect("the selection is of the schema's words")
    });
    let answer = graphql::answer(&asked.unwrap, 200, "application/json", bytes);
    assert!(serde_json::from_slice::<&RawValue>(&answer.body).is_ok(), "what is passed on is JSON");
    assert!(answer.errors.len() <= graphql::answer::ERRORS_MAX);
    assert_eq!(
        answer.verdict.is_charged(),
        answer.status == 200,
        "a failure has a status of one, and no other"
    );
    let fits_a_header = |line: &String| {
        line.len() <= graphql::answer::WARNINGS_BYTES_MAX
            && line.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
    };
    assert!(answer.warnings().as_ref().is_none_or(fits_a_header));
    answer.verdict.is_charged()
}

/// A content type, and behind its line a body of parts. Parts that are accepted are read the same when they are written.
pub fn form(bytes: &[u8]) -> bool {
    let (head, body) = match bytes.iter().position(|byte| *byte == b'\n') {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &[][..]),
    };
    let Ok(parts) = multipart::parts(&String::from_utf8_lossy(head), body) else { return false };
    assert!(parts.len() <= PARTS_MAX);
    let file = |part: &Part<'_>| part.is_file.then_some(NewFile { name: "file", media_type: "image/png" });
    let given: Vec<NewPart<'_>> = parts
        .iter()
        .map(|part| NewPart { name: part.name, file: file(part), content: part.content })
        .collect();
    if let Ok((content_type, written)) = multipart::written("farthing", &given) {
        assert!(multipart::is_form(&content_type));
        assert_eq!(multipart::parts(&content_type, &written).as_ref(), Ok(&parts));
    }
    true
}

/// A description as a listing pins it, or its text, which is then packed as one. What is unpacked can be packed and called,
/// or is refused with a reason.
pub fn document(bytes: &[u8]) -> bool {
    let packed = match bytes.starts_with(document::MAGIC) {
        true => bytes.to_vec(),
        false => [document::MAGIC, &compress_to_vec(bytes, 1)].concat(),
    };
    let Ok(description) = document::decode(&packed) else { return false };
    if let Ok(again) = document::encode(&description) {
        document::decode(&again).expect("what is packed can be unpacked");
    }
    Api::new(description).is_ok()
}

/// A description of any kind, as people read it. Outlines are bounded, and the same on the other side of the control socket.
pub fn outline(bytes: &[u8]) -> bool {
    /// Three parts of 300 each, and what they are the parts of.
    const VALUES_MAX: usize = 1_100;
    const OPERATIONS_SHOWN: usize = 4;
    let Ok(reading) = farthing_bridge::read(bytes) else { return false };
    let Ok(api) = Api::new(reading.description) else { return false };
    let description = api.description();
    for operation in description.operations.iter().take(OPERATIONS_SHOWN) {
        let shown = outline::of(description, operation);
        let parameters = shown.parameters.iter().map(|parameter| &parameter.value);
        let body = shown.body.iter().map(|body| &body.content.value);
        let answers = shown.answers.iter().filter_map(|answer| answer.content.as_ref());
        let values = parameters.chain(body).chain(answers.map(|content| &content.value));
        assert!(values.map(values_in).sum::<usize>() <= VALUES_MAX);
        let json = serde_json::to_string(&shown).expect("an outline is text");
        assert_eq!(serde_json::from_str::<OperationOutline>(&json).ok(), Some(shown));
        let _ = form::of(description, operation);
    }
    let _ = openapi::write(description, &openapi::WriteOptions::default());
    true
}

fn values_in(outline: &Outline) -> usize {
    1 + outline.parts.iter().map(values_in).sum::<usize>()
}
