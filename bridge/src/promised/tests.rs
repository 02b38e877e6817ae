//! What breaks a promise and what does not, in tables, and that judging anything ends and is cheap.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::steps::Steps;
use crate::{Api, openapi, testing};

/// `GET /x` with these answers.
fn api(responses: &Value, schemas: &Value) -> Api {
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "T", "version": "1" },
        "paths": { "/x": { "get": { "responses": responses } } },
        "components": { "schemas": schemas },
    });
    Api::new(openapi::read(document.to_string().as_bytes()).unwrap().description).unwrap()
}

fn answers(schema: &Value) -> Value {
    json!({ "200": { "description": "", "content": { "application/json": { "schema": schema } } } })
}

fn told(api: &Api, status: u16, body: &str) -> String {
    let answer = PromisedAnswer {
        status,
        body: body.as_bytes(),
        accept: None,
        media_type: None,
        is_conditional: false,
    };
    let operation = api.operation_at("GET", "/x").unwrap();
    breach(api.description(), operation, &answer).map(|breach| breach.to_string()).unwrap_or_default()
}

#[test]
fn a_body_breaks_its_promise_by_its_kind_and_by_what_it_lacks_and_never_by_details() {
    let planet = json!({
        "type": "object", "additionalProperties": false, "required": ["name", "radius", "moons"],
        "properties": {
            "name": { "type": "string", "minLength": 3 }, "radius": { "type": "number" },
            "moons": { "type": "array", "items": { "$ref": "#/components/schemas/Planet" } },
            "x-token": { "type": "string" },
        },
    });
    let schemas = json!({ "Planet": planet });
    let one = json!({ "$ref": "#/components/schemas/Planet" });
    let mars = r#"{"name":"Mars","radius":3389.5,"moons":[]}"#;
    let (kind, missing) = ("where an object is promised", "most other required members are missing");
    for (schema, body, expected) in [
        (&one, mars, ""),
        (&one, "", "empty"),
        (&one, " \n ", "empty"),
        (&one, "<h1>Sold</h1>", "not JSON"),
        (&one, "{\"name\":", "not JSON"),
        (&one, "{} {}", "not JSON"),
        (&one, "null", kind),
        (&one, "[]", kind),
        (&one, "true", kind),
        (&one, "{}", missing),
        (&one, r#"{"name":"Mars"}"#, missing),
        (&one, r#"{"garbage":1,"more":[]}"#, missing),
        (
            &one,
            r#"{"name":"Mars","radius":1,"moons":7}"#,
            "`moons` is a single value where an array is promised",
        ),
        (
            &one,
            r#"{"name":{},"radius":1,"moons":[]}"#,
            "`name` is an object where a single value is promised",
        ),
        (&one, r#"{"name":"Mars","radius":1,"moons":[[]]}"#, "`moons` is an array where an object"),
        // What descriptions are wrong about is not held against a service.
        (&one, r#"{"name":"Mars","radius":3389.5}"#, ""),
        (&one, r#"{"name":4,"radius":"large","moons":null,"new":{}}"#, ""),
        (&one, "\u{feff}{\"name\":\"M\",\"radius\":1,\"moons\":[]}", ""),
        (&one, r#"{"name":"M","radius":1e999,"moons":[]}"#, ""),
        (&json!({ "type": "array", "items": one }), &format!("[{mars},{mars}]"), ""),
        (&json!({ "type": "array", "items": one }), &format!("[{mars},{{}}]"), missing),
        (&json!({ "type": "array", "items": one }), mars, "an object where an array is promised"),
        (&json!({ "oneOf": [one, { "type": "array", "items": {} }] }), "[]", ""),
        (&json!({ "oneOf": [one, { "type": "array", "items": {} }] }), "5", "one of several kinds"),
        (&json!({ "type": ["object", "null"] }), "null", ""),
        (&json!({ "type": "object" }), "{}", ""),
        (&json!({ "type": "string" }), "plain words", ""),
        (&json!({ "type": "string" }), "[]", "an array where a single value"),
        (&json!({ "type": "integer" }), "\"5\"", ""),
        (&json!({ "unheardOf": { "strict": true } }), "5", ""),
        (&json!({ "unheardOf": { "strict": true } }), "garbage", "not JSON"),
    ] {
        let told = told(&api(&answers(schema), &schemas), 200, body);
        let fits = if expected.is_empty() { told.is_empty() } else { told.contains(expected) };
        assert!(fits, "{schema} {body}: `{told}` and not `{expected}`");
    }
}

#[test]
fn a_status_that_is_not_described_breaks_a_promise_unless_it_is_a_success_beside_another() {
    let json = |status: &str| (status.to_owned(), answers(&json!({ "type": "object" }))["200"].clone());
    let of = |statuses: &[&str]| Value::Object(statuses.iter().map(|status| json(status)).collect());
    let undescribed = "the description does not list status";
    for (described, status, body, expected) in [
        (of(&["200"]), 200, "{}", ""),
        (of(&["200"]), 201, "{}", ""),
        (of(&["200"]), 201, "garbage", "not JSON"),
        (of(&["200"]), 204, "", "empty"),
        (of(&["200"]), 418, "{}", undescribed),
        (of(&["200"]), 304, "", undescribed),
        (of(&["200", "4XX"]), 418, "{}", ""),
        (of(&["200", "default"]), 418, "{}", ""),
        (of(&["200", "default"]), 418, "garbage", "not JSON"),
        (of(&["404"]), 200, "garbage", ""),
        (of(&["404"]), 403, "{}", undescribed),
        (of(&[]), 418, "garbage", ""),
        (json!({ "200": { "description": "No body." } }), 200, "garbage", ""),
        (json!({ "200": { "description": "", "content": { "text/csv": {} } } }), 200, "<h1>", ""),
    ] {
        let told = told(&api(&described, &json!({})), status, body);
        let fits = if expected.is_empty() { told.is_empty() } else { told.contains(expected) };
        assert!(fits, "{described} {status} {body}: `{told}` and not `{expected}`");
    }
}

#[test]
fn another_media_type_that_is_described_is_judged_by_nobody() {
    let two = json!({ "application/json": { "schema": { "type": "object" } }, "text/csv": {} });
    let any = json!({ "*/*": { "schema": { "type": "object" } } });
    let one = json!({ "application/json": { "schema": { "type": "object" } } });
    for (content, media_type, keeps) in [
        (&two, Some("text/csv; charset=utf-8"), true),
        (&two, Some("Text/CSV"), true),
        (&two, Some("text/html"), false),
        (&two, Some("application/json"), false),
        (&two, None, false),
        (&any, Some("text/html"), true),
        (&any, Some("application/json"), false),
        (&one, Some("text/csv"), false),
    ] {
        let api = api(&json!({ "200": { "description": "", "content": content } }), &json!({}));
        let operation = api.operation_at("GET", "/x").unwrap();
        let plain =
            PromisedAnswer { status: 200, body: b"a,b", accept: None, media_type, is_conditional: false };
        assert_eq!(breach(api.description(), operation, &plain).is_none(), keeps, "{content} {media_type:?}");
    }
}

#[test]
fn what_the_call_asked_for_is_not_held_against_the_answer() {
    let api = api(&answers(&json!({ "type": "object" })), &json!({}));
    let operation = api.operation_at("GET", "/x").unwrap();
    let plain =
        PromisedAnswer { status: 200, body: b"a,b", accept: None, media_type: None, is_conditional: false };
    for (answer, keeps) in [
        (plain, false),
        (PromisedAnswer { accept: Some("text/csv"), ..plain }, true),
        (PromisedAnswer { accept: Some("text/csv, application/json;q=0.1"), ..plain }, false),
        (PromisedAnswer { accept: Some("*/*"), ..plain }, false),
        (PromisedAnswer { status: 304, body: b"", is_conditional: true, ..plain }, true),
    ] {
        assert_eq!(breach(api.description(), operation, &answer).is_none(), keeps, "{answer:?}");
    }
    let empty = |method, status| {
        let operation = Operation { method, ..operation.clone() };
        breach(api.description(), &operation, &PromisedAnswer { status, body: b"", ..plain })
    };
    assert_eq!((empty(Method::Head, 200), empty(Method::Delete, 204)), (None, None));
    assert_eq!(empty(Method::Delete, 200), Some(Breach::Empty));
}

#[test]
fn neither_a_large_answer_nor_a_large_schema_costs_more_than_its_bound() {
    let object = api(&answers(&json!({ "type": "object" })), &json!({}));
    let long = |first: char| format!("{first}{}", "[".repeat(BODY_BYTES_MAX));
    assert_eq!(told(&object, 200, &long('{')), "", "only the first byte of a long answer is looked at");
    assert!(told(&object, 200, &long('<')).contains("not JSON"));
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    assert!(told(&object, 200, &deep).contains("an array where an object"));

    // Alternatives within alternatives, each of which leads to all others.
    let names: Vec<String> = (0..40).map(|n| format!("S{n}")).collect();
    let all: Vec<Value> =
        names.iter().map(|name| json!({ "$ref": format!("#/components/schemas/{name}") })).collect();
    let schemas = names.iter().map(|name| (name.clone(), json!({ "oneOf": all }))).collect();
    let circles = api(&answers(&all[0]), &Value::Object(schemas));
    assert_eq!(told(&circles, 200, "{}"), "", "what cannot be told in time is kept");

    let many: serde_json::Map<_, _> = (0..5_000).map(|n| (format!("p{n}"), json!({}))).collect();
    let required: Vec<_> = many.keys().cloned().collect();
    let wide = api(
        &answers(&json!({ "type": "object", "properties": many.clone(), "required": required })),
        &json!({}),
    );
    assert_eq!(told(&wide, 200, &Value::Object(many).to_string()), "");
}

#[test]
fn the_name_of_what_is_missing_is_copied_once_and_cut() {
    let name = "n".repeat(5_000_000);
    let member = json!([{ "name": name, "required": true, "schema": { "shape": "any" } }]);
    let one = json!({ "shape": { "ref": 0 } });
    let either = json!({ "shape": { "oneOf": { "variants": vec![one.clone(); 60_000] } } });
    let told = |schema: &Value| {
        let content = json!({ "media_type": "application/json", "schema": schema });
        let response = json!({ "status": { "code": 200 }, "content": content });
        let operation = json!({ "method": "GET", "path": "/x", "id": "x", "responses": [response] });
        let description = json!({ "title": "", "operations": [operation],
            "schemas": [{ "name": "S", "schema": { "shape": { "object": { "properties": member } } } }] });
        let description: ApiDescription = serde_json::from_value(description).unwrap();
        let answer = PromisedAnswer {
            status: 200,
            body: b"{}",
            accept: None,
            media_type: None,
            is_conditional: false,
        };
        let judged = || breach(&description, &description.operations[0], &answer);
        testing::timed(|| (1..10).for_each(|_| drop(judged())));
        judged()
    };
    assert_eq!(told(&one), Some(Breach::Missing { name: name[..512].to_owned() }));
    assert_eq!(told(&either), None, "what cannot be told in time is kept");
}

proptest! {
    /// An answer made of the schema keeps it, and no answer and description together end the judge.
    #[test]
    fn whatever_is_described_and_answered_is_judged(
        description in testing::descriptions(), code in 100_u16..600, body in "[\\[{\"a:,0-9}\\] n]{0,60}"
    ) {
        for operation in &description.operations {
            let answer = PromisedAnswer { status: code, body: body.as_bytes(), accept: None, media_type: None, is_conditional: false };
            let _ = breach(&description, operation, &answer);
        }
    }

    #[test]
    fn a_made_up_answer_keeps_the_promise_that_it_was_made_from(description in testing::descriptions()) {
        for (index, operation) in description.operations.iter().enumerate() {
            let Some((Status::Code(200), _)) = crate::samples::shown_answer(operation) else { continue };
            let Some(value) = crate::samples::made_up(&description, index, &mut Steps::new(usize::MAX)) else { continue };
            if operation.responses.iter().filter(|r| r.status == Status::Code(200)).count() > 1 {
                continue;
            }
            let body = value.to_string();
            let answer = PromisedAnswer { status: 200, body: body.as_bytes(), accept: None, media_type: None, is_conditional: false };
            prop_assert_eq!(breach(&description, operation, &answer), None, "{}", body);
        }
    }
}
