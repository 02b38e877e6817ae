//! Paths, ids, bodies, answers, servers and security.

use serde_json::{Value, json};

use super::{get, read, reading, says, with_paths};
use crate::{
    description::{BodyKind, Method, Status},
    limits::OPERATIONS_MAX,
    report::SecurityScheme,
};

fn ok() -> Value {
    json!({ "responses": { "200": { "description": "ok" } } })
}

#[test]
fn paths_are_kept_repaired_or_skipped_with_the_reason() {
    let kept = ["/", "/a/", "/a/{id}.json", "/r/{x}-{y}", "/v{n}/x", "/a/{b.c}", "/a:verb"];
    for path in kept {
        let (operation, reading) = get(path, ok());
        assert_eq!(operation.path, path);
        assert!(reading.report.skipped.is_empty(), "{path}");
    }
    let (operation, reading) = get("users", ok());
    assert_eq!(operation.path, "/users");
    assert!(says(&reading.report.repaired, "users: a leading slash was added"));
    let table = [
        ("/a#b", "# or ?"),
        ("/a?b={c}", "# or ?"),
        ("/a//b", "empty segment"),
        ("/a/../b", "segment of dots"),
        ("/a/{x", "braces do not match"),
        ("/a/{x}{y}", "two parameters touch"),
        ("/a/{x}/{x}", "a parameter twice"),
        ("/a/{proxy+}", "parameter's name"),
    ];
    for (path, reason) in table {
        let reading = super::reading(&with_paths(&json!({ path: { "get": ok() }, "/ok": { "get": ok() } })));
        assert_eq!(reading.report.bridged, 1, "{path}");
        assert!(says(&reading.report.skipped, reason), "{path}: {:?}", reading.report.skipped);
    }
}

#[test]
fn of_two_operations_for_the_same_paths_the_first_is_offered() {
    let paths = json!({ "/a/{x}": { "get": ok(), "post": ok() }, "/a/{y}": { "get": ok(), "put": ok() } });
    let reading = reading(&with_paths(&paths));
    assert_eq!(reading.report.bridged, 3);
    assert!(says(&reading.report.skipped, "GET /a/{y}: another operation answers the same paths"));
}

#[test]
fn methods_that_cannot_be_sold_are_skipped() {
    let paths = json!({ "/a": { "get": ok(), "HEAD": ok(), "options": ok(), "trace": ok(), "x-other": ok(), "summary": "S" } });
    let reading = reading(&with_paths(&paths));
    let methods: Vec<_> = reading.description.operations.iter().map(|op| op.method).collect();
    assert_eq!(methods, [Method::Get, Method::Head]);
    assert_eq!(reading.report.skipped.count(), 2);
}

#[test]
fn ids_are_kept_made_and_made_unique() {
    let named = |id: &str| json!({ "operationId": id, "responses": {} });
    let paths = json!({
        "/users": { "get": named("list"), "post": ok() },
        "/users/{id}": { "get": named("list"), "delete": ok() },
        "/users/{id}.json": { "get": ok() },
        "/": { "get": ok() },
        "/pets": { "get": named("getRoot") },
    });
    let reading = reading(&with_paths(&paths));
    let ids: Vec<_> = reading.description.operations.iter().map(|op| op.id.as_str()).collect();
    assert_eq!(
        ids,
        ["list", "postUsers", "list2", "deleteUsersById", "getUsersByIdJson", "getRoot2", "getRoot"]
    );
    assert!(says(
        &reading.report.repaired,
        "GET /users/{id}: another operation has the id list; this one is list2"
    ));
    assert!(says(&reading.report.repaired, "4 operations had no id"));
}

#[test]
fn there_are_only_so_many_operations() {
    let paths = |n: usize| Value::Object((0..n).map(|i| (format!("/p{i}"), json!({ "get": {} }))).collect());
    for (n, skipped) in [(OPERATIONS_MAX - 1, 0), (OPERATIONS_MAX, 0), (OPERATIONS_MAX + 1, 1)] {
        let reading = reading(&with_paths(&paths(n)));
        assert_eq!(reading.report.bridged, n - skipped);
        assert_eq!(reading.report.skipped.count(), skipped);
    }
}

fn body(content: Value, required: bool) -> Value {
    json!({ "/": { "post": { "requestBody": { "required": required, "content": content } }, "get": ok() } })
}

#[test]
fn the_best_of_several_bodies_is_offered() {
    let table = [
        (
            json!({ "text/plain": {}, "application/json; charset=utf-8": {} }),
            BodyKind::Json,
            "application/json",
        ),
        (
            json!({ "application/x-www-form-urlencoded": {}, "application/vnd.api+json": {} }),
            BodyKind::Json,
            "application/vnd.api+json",
        ),
        (
            json!({ "multipart/form-data": {}, "application/x-www-form-urlencoded": {} }),
            BodyKind::Form,
            "application/x-www-form-urlencoded",
        ),
        (json!({ "text/csv": {} }), BodyKind::Text, "text/csv"),
        (json!({ "application/xml": {} }), BodyKind::Text, "application/xml"),
        (json!({ "*/*": {} }), BodyKind::Json, "application/json"),
        (json!({ "image/png": {} }), BodyKind::Text, "image/png"),
        (json!({ "image/*": {} }), BodyKind::Text, "image/*"),
        (
            json!({ "application/octet-stream": {}, "multipart/form-data": {} }),
            BodyKind::Text,
            "multipart/form-data",
        ),
        (json!({ "multipart/form-data": {}, "text/csv": {} }), BodyKind::Text, "text/csv"),
    ];
    for (content, kind, media_type) in table {
        let reading = reading(&with_paths(&body(content, true)));
        let body = reading.description.operations[0].body.clone().unwrap();
        assert_eq!((body.kind, body.media_type.as_str(), body.required), (kind, media_type, true));
    }
}

#[test]
fn every_media_type_of_a_body_is_kept() {
    let also = |content: Value| {
        let reading = reading(&with_paths(&body(content, true)));
        reading.description.operations[0].body.clone().unwrap().also
    };
    let several = json!({ "application/json; v=1": {}, "image/png": {}, "Image/JPEG": {}, "a b": {} });
    assert_eq!(also(several), ["image/png", "image/jpeg"]);
    assert_eq!(also(json!({ "application/json": {}, "*/*": {} })), ["*/*"]);
    assert!(also(json!({ "application/json": {} })).is_empty());
}

#[test]
fn a_body_that_cannot_be_sent_is_left_out_or_takes_the_operation_with_it() {
    for content in [json!({ "image*": {} }), json!({ "image/p*": {} }), json!({ "a b/c\r\n": {} })] {
        let optional = reading(&with_paths(&body(content.clone(), false)));
        assert_eq!(optional.description.operations[0].body, None);
        assert!(says(&optional.report.warnings, "cannot be sent; left out"));
        let required = reading(&with_paths(&body(content, true)));
        assert_eq!(required.report.bridged, 1);
        assert!(says(&required.report.skipped, "POST /: a body of"));
    }
    let (operation, reading) = get("/", json!({ "requestBody": { "content": { "application/json": {} } } }));
    assert_eq!(operation.body, None);
    assert!(says(&reading.report.warnings, "GET has no body"));
}

#[test]
fn answers_are_read_by_status_and_json_is_preferred() {
    let (operation, reading) = get(
        "/",
        json!({ "responses": {
        "200": { "description": "ok", "content": { "text/html": {}, "application/json": { "schema": { "type": "boolean" }, "examples": { "one": { "value": true } } } } },
        "204": { "description": "none" },
        "4XX": { "description": "c", "content": { "application/problem+json": {} } },
        "default": { "description": "d", "content": { "*/*": {} } },
        "5xx": { "description": "s", "content": { "text/plain": {} } },
        "999": { "description": "?" }, "x-note": {} , "teapot": {},
    } }),
    );
    let read: Vec<_> = operation
        .responses
        .iter()
        .map(|response| {
            (response.status, response.content.as_ref().map(|content| content.media_type.as_str()))
        })
        .collect();
    assert_eq!(
        read,
        [
            (Status::Code(200), Some("application/json")),
            (Status::Code(204), None),
            (Status::Class(4), Some("application/problem+json")),
            (Status::Default, Some("application/json")),
            (Status::Class(5), Some("text/plain")),
        ]
    );
    assert_eq!(operation.responses[0].content.clone().unwrap().example, Some(json!(true)));
    assert_eq!(reading.report.warnings.count(), 2);
}

#[test]
fn parts_may_be_shared_and_missing_ones_are_told() {
    let mut document = with_paths(&json!({
        "/a": { "$ref": "#/components/pathItems/A" },
        "/b": { "post": { "requestBody": { "$ref": "#/components/requestBodies/None" } } },
        "/c": { "get": { "parameters": [{ "$ref": "other.json#/P" }] } },
        "/d": { "$ref": "./d.yaml" },
        "/e": { "get": { "responses": { "200": { "$ref": "#/components/responses/None" } } } },
    }));
    document["components"] = json!({
        "pathItems": { "A": { "post": {
            "parameters": [{ "$ref": "#/components/parameters/P" }],
            "requestBody": { "$ref": "#/components/requestBodies/B" },
            "responses": { "200": { "$ref": "#/components/responses/R" } } } } },
        "parameters": { "P": { "$ref": "#/components/parameters/Q" }, "Q": { "name": "q", "in": "query" } },
        "requestBodies": { "B": { "content": { "text/plain": {} } } },
        "responses": { "R": { "description": "shared" } },
    });
    let reading = reading(&document);
    let first = &reading.description.operations[0];
    assert_eq!(
        (first.parameters.len(), first.body.is_some(), first.responses[0].description.as_str()),
        (1, true, "shared")
    );
    assert_eq!(reading.report.bridged, 2);
    for told in [
        "POST /b: its body is missing",
        "GET /c: a parameter is missing",
        "/d: `./d.yaml` refers to another document",
    ] {
        assert!(says(&reading.report.skipped, told), "{told}: {:?}", reading.report.skipped);
    }
    assert!(says(&reading.report.warnings, "GET /e: the answer 200 is missing"));
}

#[test]
fn servers_are_listed_with_their_variables_filled_in() {
    let mut document = with_paths(&json!({ "/": { "get": ok() } }));
    assert!(reading(&document).servers.is_empty());
    document["servers"] = json!([
        { "url": "https://{env}.example.org:{port}/v1", "variables": { "env": { "default": "api" }, "port": { "default": 8443 } } },
        { "url": "/relative" }, { "url": "" }, { "url": "https://{open}.example.org" }, { "nothing": 1 },
        { "url": "https://{first}.example.org", "variables": { "first": { "enum": ["eu", "us"] } } },
    ]);
    let reading = reading(&document);
    assert_eq!(reading.servers, ["https://api.example.org:8443/v1", "/relative", "https://eu.example.org"]);
    assert!(says(&reading.report.warnings, "leaves `open` open"));
}

#[test]
fn security_schemes_are_listed_and_their_parameters_are_not_offered() {
    let mut document = with_paths(&json!({ "/": { "get": { "parameters": [
        { "name": "x-api-key", "in": "header", "required": true }, { "name": "key", "in": "query", "required": true },
        { "name": "Key", "in": "query" } ] } } }));
    document["components"] = json!({ "securitySchemes": {
        "header": { "type": "apiKey", "in": "header", "name": "X-API-Key" },
        "query": { "type": "apiKey", "in": "query", "name": "key" },
        "cookie": { "type": "apiKey", "in": "cookie", "name": "sid" },
        "basic": { "type": "http", "scheme": "Basic" },
        "bearer": { "type": "http", "scheme": "bearer" },
        "digest": { "type": "http", "scheme": "digest" },
        "oauth": { "type": "oauth2", "flows": {} },
        "oidc": { "type": "openIdConnect" },
        "odd": { "type": "magic" },
    } });
    let reading = reading(&document);
    assert_eq!(
        reading.security,
        [
            SecurityScheme::ApiKeyHeader("X-API-Key".into()),
            SecurityScheme::ApiKeyQuery("key".into()),
            SecurityScheme::ApiKeyCookie("sid".into()),
            SecurityScheme::Basic,
            SecurityScheme::Bearer,
            SecurityScheme::Other("HTTP digest".into()),
            SecurityScheme::Other("OAuth 2".into()),
            SecurityScheme::Other("OpenID Connect".into()),
        ]
    );
    let names: Vec<_> =
        reading.description.operations[0].parameters.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["Key"]);
    assert!(says(&reading.report.warnings, "`x-api-key` is the owner's key"));
}

#[test]
fn what_is_not_part_of_a_call_is_told_once() {
    let operation = json!({ "callbacks": { "c": {} }, "responses": { "200": { "links": { "l": {} } } } });
    let mut document = with_paths(&json!({ "/a": { "post": operation }, "/b": { "post": operation } }));
    document["webhooks"] = json!({ "w": {} });
    let skipped: Vec<_> = reading(&document).report.skipped.list.iter().map(ToString::to_string).collect();
    assert_eq!(
        skipped,
        [
            "callbacks: 2 found; they are not part of a call",
            "links: 2 found; they are not part of a call",
            "webhooks: 1 found; they are not part of a call",
        ]
    );
}

#[test]
fn something_else_is_named() {
    let table = [
        (r#"{"asyncapi": "2.6.0"}"#, "AsyncAPI"),
        (r#"{"info": {"_postman_id": "1"}, "item": []}"#, "Postman"),
        (r#"{"swaggerVersion": "1.2"}"#, "Swagger 1"),
        (r#"{"swagger": "1.2"}"#, "Swagger 1.2 cannot be read"),
        (r#"{"openapi": "4.0.0"}"#, "OpenAPI 4.0.0 cannot be read"),
        (r#"{"data": {"__schema": {}}}"#, "introspection"),
        (r#"{"log": {"entries": []}}"#, "HAR"),
        (r#"{"$schema": "x", "type": "object"}"#, "JSON Schema"),
        (r#"{"detail": "Not Found"}"#, "error answer"),
        (r#"{"hello": 1}"#, "of no known kind"),
        ("[]", "not an object"),
        ("just text", "not an object"),
        (r#"{"openapi": "3.0.0", "paths": {}}"#, "no paths"),
        (r#"{"openapi": "3.0.0"}"#, "no paths"),
        (r#"{"openapi": "3.0.0", "paths": {"/a": {"trace": {}}}}"#, "TRACE /a: the method cannot be offered"),
    ];
    for (document, told) in table {
        let error = read(document.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(told), "{document}: {error}");
    }
}

#[test]
fn versions_are_recognised_however_they_are_written() {
    let table = [
        ("openapi: 3.0\npaths: {/a: {get: {}}}", "OpenAPI 3.0"),
        ("openapi: '3.0.3'\npaths: {/a: {get: {}}}", "OpenAPI 3.0.3"),
        ("openapi: 3.1.1\npaths: {/a: {get: {}}}", "OpenAPI 3.1.1"),
        ("openapi: 3.2.0\npaths: {/a: {get: {}}}", "OpenAPI 3.2.0"),
        ("swagger: 2.0\npaths: {/a: {get: {}}}", "Swagger 2.0"),
        ("basePath: /v1\npaths: {/a: {get: {}}}", "Swagger 2.0"),
        ("info: {}\npaths: {/a: {get: {}}}", "OpenAPI 3.0"),
    ];
    for (document, format) in table {
        assert_eq!(read(document.as_bytes()).unwrap().report.format, format, "{document}");
    }
}

#[test]
fn openapi_is_sniffed_without_reading_it() {
    use super::super::looks_like_openapi;
    for yes in [
        "openapi: 3.0.0",
        "# c\nswagger: '2.0'\n",
        "{\"info\": {}, \"openapi\" : \"3.1.0\"",
        "\u{feff}{\"swagger\":2.0}",
        "---\r\nopenapi: 3.1.0\r\n",
    ] {
        assert!(looks_like_openapi(yes.as_bytes()), "{yes}");
    }
    for no in [
        "",
        "<html>openapi: 3</html>",
        "type Query { a: Int }",
        "{\"openapi\": \"x\"}",
        "{\"__schema\": {}}",
        "a:\n  openapi: 3.0.0",
        "\u{feff}",
    ] {
        assert!(!looks_like_openapi(no.as_bytes()), "{no}");
    }
}
