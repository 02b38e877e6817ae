//! The promises of outlines: everything that is described is named, circles end, and nothing makes one long.

use serde_json::json;

use super::*;
use crate::read;

/// The outline of the one operation of a document with these schemas.
fn outline(schemas: &Value, operation: &Value) -> OperationOutline {
    let document = json!({ "openapi": "3.1.0", "info": { "title": "t", "version": "1" },
        "components": { "schemas": schemas }, "paths": { "/a/{id}": { "post": operation } } });
    let reading = read(document.to_string().as_bytes()).unwrap();
    of(&reading.description, &reading.description.operations[0])
}

/// The answer's value, where that is all there is.
fn of_schema(schemas: &Value, schema: &Value) -> Outline {
    let answer = json!({ "description": "ok", "content": { "application/json": { "schema": schema } } });
    let mut outline = outline(schemas, &json!({ "responses": { "200": answer } }));
    outline.answers.remove(0).content.unwrap().value
}

/// Each value on a line: how deep it is, its name, its kind, and why there is no more.
fn lines(value: &Outline, depth: usize, lines: &mut Vec<String>) {
    let end = value.end.map_or_else(String::new, |end| format!(" {end:?}"));
    lines.push(format!("{depth} {} {}{end}", value.name, value.kind));
    for part in &value.parts {
        self::lines(part, depth + 1, lines);
    }
}

#[test]
fn a_parameter_says_its_kind_its_bounds_its_default_and_an_example() {
    let query = |name: &str, schema: Value| json!({ "name": name, "in": "query", "schema": schema });
    let outline = outline(
        &json!({}),
        &json!({
            "responses": { "200": { "description": "ok" } },
            "parameters": [
                query("limit", json!({ "type": "integer", "minimum": 1, "maximum": 100, "default": 20 })),
                query("share", json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 })),
                query("word", json!({ "type": "string", "minLength": 3, "maxLength": 40, "pattern": "^[a-z]+$" })),
                query("key", json!({ "type": ["string", "null"], "minLength": 8, "maxLength": 8 })),
                query("ids", json!({ "type": "array", "maxItems": 5, "items": { "type": "integer" } })),
                query("day", json!({ "type": "string", "enum": ["a", "b", "c", "d", "e", "f", "g"] })),
                { "name": "id", "in": "path", "required": true, "example": "x7", "schema": { "type": "string" } },
            ],
        }),
    );
    let shown: Vec<_> = outline
        .parameters
        .iter()
        .map(|one| (one.value.name.as_str(), one.value.kind.as_str(), one.value.bounds.join(", ")))
        .collect();
    let expected = [
        ("id", "string", ""),
        ("limit", "integer", "at least 1, at most 100"),
        ("share", "number", "above 0, below 1"),
        ("word", "string", "3 to 40 characters, matches ^[a-z]+$"),
        ("key", "string", "8 characters, or null"),
        ("ids", "array of integer", "at most 5 items"),
        ("day", "one of a, b, c, d, e, f, …", ""),
    ]
    .map(|(name, kind, bounds)| (name, kind, bounds.to_owned()));
    assert_eq!(shown, expected);
    let named = |name: &str| outline.parameters.iter().find(|one| one.value.name == name).unwrap();
    assert_eq!((named("id").value.required, named("id").value.example.as_deref()), (true, Some("x7")));
    assert_eq!(named("limit").value.default.as_deref(), Some("20"));
    assert_eq!(named("day").value.choices.len(), 7);
}

#[test]
fn answers_say_what_is_in_them_and_successes_have_an_example() {
    let planet = json!({ "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string", "example": "Kepler" },
        "star": { "type": "object", "properties": { "mass": { "type": "number" } } },
    } });
    let list = json!({ "type": "array", "items": { "$ref": "#/components/schemas/Planet" } });
    let content = json!({ "application/json": { "schema": list } });
    let outline = outline(
        &json!({ "Planet": planet }),
        &json!({ "responses": {
            "200": { "description": "All of them", "content": content },
            "404": { "description": "None", "content": content },
            "204": { "description": "Nothing to say" },
        } }),
    );
    let answer = |status: &str| outline.answers.iter().find(|answer| answer.status == status).unwrap();
    let value = &answer("200").content.as_ref().unwrap().value;
    let mut seen = Vec::new();
    lines(value, 0, &mut seen);
    assert_eq!(seen, ["0  array of Planet", "1 name string", "1 star object", "2 mass number"]);
    assert!(value.parts[0].required && !value.parts[1].required);
    let example = |status: &str| answer(status).content.as_ref().and_then(|content| content.example.clone());
    assert!(example("200").is_some_and(|example| example.contains("Kepler")), "{:?}", example("200"));
    assert_eq!((example("404"), answer("204").content.is_none()), (None, true));
}

#[test]
fn a_schema_that_leads_back_into_itself_ends_there() {
    let node = json!({ "type": "object", "properties": {
        "next": { "$ref": "#/components/schemas/Node" },
        "leaf": { "type": "string" },
        "others": { "type": "array", "items": { "$ref": "#/components/schemas/Node" } },
    } });
    let mut seen = Vec::new();
    lines(
        &of_schema(&json!({ "Node": node }), &json!({ "$ref": "#/components/schemas/Node" })),
        0,
        &mut seen,
    );
    assert_eq!(seen, ["0  Node", "1 next Node Circle", "1 leaf string", "1 others array of Node Circle"]);
}

#[test]
fn deep_and_wide_schemas_end_and_what_is_beside_comes_before_what_is_within() {
    let level = |at: usize| {
        let next = json!({ "$ref": format!("#/components/schemas/Level{}", at + 1) });
        (format!("Level{at}"), json!({ "type": "object", "properties": { "a": next } }))
    };
    let mut levels: serde_json::Map<String, Value> = (0..60).map(level).collect();
    levels.insert("Level60".to_owned(), json!({ "type": "string" }));
    let mut seen = Vec::new();
    lines(&of_schema(&levels.into(), &json!({ "$ref": "#/components/schemas/Level0" })), 0, &mut seen);
    assert_eq!(seen.len(), DEPTH_MAX + 1);
    assert!(seen.last().is_some_and(|last| last.ends_with(" Deep")), "{seen:?}");

    let members = |count: usize, schema: &Value| {
        let named = |at| (format!("m{at}"), schema.clone());
        json!({ "type": "object", "properties": (0..count).map(named).collect::<serde_json::Map<String, Value>>() })
    };
    let wide = of_schema(&json!({}), &members(20, &members(50, &json!({ "type": "string" }))));
    assert_eq!(wide.parts.len(), 20, "none of the first level is left out");
    let within: usize = wide.parts.iter().map(|part| part.parts.len()).sum();
    assert_eq!((within, wide.parts[19].end), (VALUES_MAX - 20, Some(OutlineEnd::Long)));
}

#[test]
fn long_texts_are_cut() {
    let long = "é".repeat(100_000);
    let value = of_schema(
        &json!({}),
        &json!({ "type": "string", "description": long, "default": long, "example": long }),
    );
    let texts = [Some(&value.description), value.default.as_ref(), value.example.as_ref()];
    for text in texts {
        assert!(
            text.is_some_and(|text| text.len() <= DESCRIPTION_BYTES_MAX + 3 && text.ends_with('…')),
            "{text:?}"
        );
    }
}
