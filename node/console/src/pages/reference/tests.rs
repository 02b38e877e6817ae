//! The promises of a reference's page: what is described is there, and no description makes the page long.

use farthing_bridge::{description::ApiDescription, form::Form, outline};
use farthing_control::types::CallForm;
use farthing_values::{Method, Usdc};
use serde_json::json;

use super::*;

fn reference(document: &serde_json::Value) -> OperationReference {
    let reading = farthing_bridge::read(document.to_string().as_bytes()).unwrap();
    let description: ApiDescription = reading.description;
    let operation = &description.operations[0];
    OperationReference {
        call: CallForm {
            method: Method::Get.into(),
            path: operation.path.clone(),
            price: Usdc::from_micros(2_000).into(),
            deposit: None,
            summary: operation.summary.clone(),
            description: operation.description.clone(),
            deprecated: false,
            timeout_secs: None,
            form: Form::default(),
        },
        outline: outline::of(&description, operation),
    }
}

fn document(operation: &serde_json::Value) -> serde_json::Value {
    json!({ "openapi": "3.1.0", "info": { "title": "t", "version": "1" }, "paths": { "/things/{id}": { "get": operation } } })
}

fn panel(text: &str) -> CodeTabs {
    let code = |language: &str| sandbox::Code {
        language: language.to_owned(),
        title: language.to_owned(),
        text: format!("{language} {text}"),
    };
    CodeTabs {
        note: None,
        plain: vec![code("shell"), code("python")],
        clients: vec![code("client-rust")],
        chosen: "python".to_owned(),
    }
}

#[test]
fn a_page_has_parameters_by_place_answers_by_status_and_the_code_of_one_language() {
    let query =
        |name: &str| json!({ "name": name, "in": "query", "schema": { "type": "integer", "minimum": 1 } });
    let id = json!({ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } });
    let thing = json!({ "type": "object", "properties": { "size": { "type": "number" } } });
    let ok = json!({ "description": "The thing", "content": { "application/json": { "schema": thing, "example": { "size": 4.5 } } } });
    let reference = reference(&document(&json!({
        "summary": "One thing", "parameters": [query("limit"), id],
        "responses": { "200": ok, "404": { "description": "There is none" } },
    })));
    let shown = OperationShown::new("7", &reference, &panel("<call>"), None);
    assert_eq!((shown.title.as_str(), shown.path.as_str()), ("One thing", "/things/{id}"));
    assert_eq!(shown.sandbox, "/panel/catalog/7/sandbox?operation=GET+%2Fthings%2F%7Bid%7D&language=python");
    let places: Vec<&str> = shown.parameters.iter().map(|places| places.title).collect();
    assert_eq!(places, ["Path", "Query"]);
    assert!(shown.parameters[1].outline.to_string().contains("at least 1"));
    let statuses: Vec<_> =
        shown.answers.iter().map(|answer| (answer.status.as_str(), answer.is_success)).collect();
    assert_eq!(statuses, [("200", true), ("404", false)]);
    let content = shown.answers[0].content.as_ref().unwrap();
    assert_eq!((content.media_types.as_str(), content.kind.as_str()), ("application/json", "object"));
    assert!(content.outline.to_string().contains("<bdi>size</bdi>"));
    assert!(content.example.as_ref().unwrap().to_string().contains("4.5"));
    assert!(shown.answers[1].content.is_none());
    assert_eq!(shown.code.map(|code| code.to_string()).as_deref(), Some("python &#60;call&#62;"));
    let tabs: Vec<_> = shown.languages.iter().map(|tab| (tab.title.as_str(), tab.is_chosen)).collect();
    assert_eq!(tabs, [("shell", false), ("python", true), ("client-rust", false)]);
}

#[test]
fn a_description_of_any_size_takes_no_more_than_the_room_of_a_page() {
    let text = "<b>\"é🪐ש".repeat(100);
    let long = text.repeat(20);
    let members = |count: usize| -> serde_json::Value {
        let member = |at| {
            (
                format!("{at}{}", "🪐".repeat(200)),
                json!({ "type": "string", "description": text, "example": text }),
            )
        };
        json!({ "type": "object", "properties": (0..count).map(member).collect::<serde_json::Map<String, serde_json::Value>>() })
    };
    let content = json!({ "application/json": { "schema": members(60), "example": { "text": long } } });
    let answer = json!({ "description": text, "content": content });
    let responses: serde_json::Map<String, serde_json::Value> =
        (200..207).map(|status| (status.to_string(), answer.clone())).collect();
    let parameters: Vec<_> = (0..60)
        .map(|at| {
            json!({ "name": format!("{at}{}", "<".repeat(200)), "in": "query", "description": text,
            "schema": { "type": "string", "default": text } })
        })
        .chain([json!({ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } })])
        .collect();
    let reference = reference(&document(&json!({
        "summary": text, "description": long, "parameters": parameters,
        "requestBody": { "content": content }, "responses": responses,
    })));
    let sample = Sample {
        operation: String::new(),
        status: 200,
        origin: "",
        map: Markup::default(),
        table: crate::table::Table::default(),
        text: long.clone(),
        is_cut: true,
    };
    for code in ["short", long.as_str()] {
        let shown = OperationShown::new("7", &reference, &panel(code), Some(&sample));
        assert_eq!((shown.code.is_none(), shown.code_note.is_some()), (code != "short", code != "short"));
        let contents = shown.answers.iter().filter_map(|answer| answer.content.as_ref());
        let contents = contents.chain(shown.body.as_ref().map(|body| &body.content));
        let of_contents = contents.map(|own| own.outline.len() + own.example.as_ref().map_or(0, Markup::len));
        let others =
            [shown.code.as_ref(), Some(&shown.description), shown.sample.as_ref().map(|sample| &sample.text)];
        let bytes: usize = of_contents
            .chain(others.into_iter().flatten().map(Markup::len))
            .chain(shown.parameters.iter().map(|places| places.outline.len()))
            .sum();
        assert!((10_000..=ROOM_BYTES).contains(&bytes), "{bytes}");
        assert!(shown.answers_hidden > 0 && shown.is_description_cut);
    }
}
