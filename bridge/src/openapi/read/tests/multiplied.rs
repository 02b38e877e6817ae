//! Large parts of a document that very many others name: they are not copied, and not looked through, for each.

use serde_json::{Map, Value, json};

use super::{
    super::{swagger::to_3_0, text::parse},
    read, says, schema, with_paths,
};
use crate::{
    description::Shape,
    limits::{DOCUMENT_TEXT_BYTES_MAX, SCHEMA_NODES_MAX},
    report::{Reading, Report},
    testing::timed,
};

fn read_value(document: &Value) -> Reading {
    read(document.to_string().as_bytes()).expect("it has operations")
}

/// A document of `count` paths, and components that they refer to.
fn of_paths(count: usize, item: &Value, components: &Value) -> Value {
    let paths: Map<String, Value> = (0..count).map(|i| (format!("/a{i}"), item.clone())).collect();
    let mut document = with_paths(&paths.into());
    document["components"] = components.clone();
    document
}

/// Copies of `bytes` bytes that there is room for.
const fn room_for(bytes: usize) -> usize {
    SCHEMA_NODES_MAX * 64 / bytes
}

#[test]
fn an_address_is_filled_in_up_to_a_length() {
    let with = |prefix: usize| {
        let mut document = of_paths(1, &json!({ "get": {} }), &json!({}));
        let url = format!("{}{}", "a".repeat(prefix), "{v}".repeat(30));
        let variables = json!({ "v": { "default": "x".repeat(60) } });
        document["servers"] = json!([{ "url": url, "variables": variables }]);
        read_value(&document)
    };
    assert_eq!(with(248).servers[0].len(), 2_048);
    let reading = with(249);
    assert!(reading.servers.is_empty() && says(&reading.report.warnings, "is too long; left out"));
}

#[test]
fn twenty_security_schemes_are_looked_at() {
    let with = |count: usize| {
        let scheme = |i| (format!("s{i}"), json!({ "type": "http", "scheme": format!("a{i}") }));
        let schemes: Map<String, Value> = (0..count).map(scheme).collect();
        read_value(&of_paths(1, &json!({ "get": {} }), &json!({ "securitySchemes": schemes })))
    };
    assert!(with(20).report.warnings.is_empty() && with(20).security.len() == 20);
    let reading = with(21);
    assert_eq!(reading.security.len(), 20);
    assert!(says(&reading.report.warnings, "the last 1 are left out"));
}

#[test]
fn the_first_place_of_a_key_that_is_given_twice_is_short() {
    let twice = vec!["\"k\":1"; 200].join(",");
    let text = format!("{{\"{}\":{{{twice}}}}}", "x".repeat(100_000));
    let duplicates = parse("OpenAPI", &text).expect("JSON").duplicates;
    assert_eq!(duplicates.len(), 199);
    assert!(duplicates.iter().all(|pointer| pointer.len() < 400));
}

#[test]
fn a_schema_of_very_many_types_has_eight() {
    let kinds: Vec<String> = (0..1_000).map(|i| format!("kind{i}")).collect();
    let Shape::OneOf(one_of) = schema(json!({ "type": kinds, "format": "f" })).shape else { panic!() };
    assert_eq!(one_of.variants.len(), 8);
}

#[test]
fn an_example_that_many_refer_to_is_copied_while_there_is_room() {
    let parameter =
        json!({ "name": "p", "in": "query", "examples": { "e": { "$ref": "#/components/examples/E" } } });
    let example = json!({ "E": { "value": "x".repeat(1_000_000) } });
    let item = json!({ "get": { "parameters": [parameter] } });
    let reading = read_value(&of_paths(200, &item, &json!({ "examples": example })));
    let parameters = reading.description.operations.iter().flat_map(|operation| &operation.parameters);
    let copies = parameters.filter(|parameter| parameter.example.is_some()).count();
    assert!((20..=room_for(1_000_000)).contains(&copies), "{copies}");
}

#[test]
fn a_path_item_that_many_refer_to_is_read_while_there_is_room() {
    let shared = json!({ "description": "x".repeat(1_000_000), "get": {} });
    let reading = read_value(&of_paths(
        200,
        &json!({ "$ref": "#/components/items/I" }),
        &json!({ "items": { "I": shared } }),
    ));
    assert!((10..=room_for(2_000_000)).contains(&reading.report.bridged), "{}", reading.report.bridged);
    assert!(says(&reading.report.skipped, "expands to too much"));
}

#[test]
fn what_a_path_says_is_repeated_for_its_operations_while_there_is_room() {
    let methods = ["get", "head", "post", "put", "patch", "delete"];
    let mut item: Map<String, Value> =
        methods.iter().map(|method| ((*method).to_owned(), json!({}))).collect();
    item.insert("description".into(), "x".repeat(10_000_000).into());
    let reading = read_value(&of_paths(1, &item.into(), &json!({})));
    assert_eq!(reading.report.bridged, room_for(10_000_000));
}

/// An answer and a body of very many media types.
fn of_many_kinds() -> Value {
    let kinds: Map<String, Value> = (0..2_000).map(|i| (format!("text/k{i}"), json!({}))).collect();
    json!({ "responses": { "R": { "content": kinds } }, "requestBodies": { "B": { "content": kinds } } })
}

#[test]
fn the_media_types_of_a_shared_answer_are_looked_through_while_there_is_room() {
    let answer = || json!({ "$ref": "#/components/responses/R" });
    let answers: Map<String, Value> = (100..500).map(|status| (status.to_string(), answer())).collect();
    let reading = read_value(&of_paths(2, &json!({ "get": { "responses": answers } }), &of_many_kinds()));
    let answers = reading.description.operations.iter().flat_map(|operation| &operation.responses);
    let read = answers.filter(|answer| answer.content.is_some()).count();
    assert!((200..=room_for(2_000 * 64)).contains(&read), "{read}");
}

#[test]
fn the_media_types_of_a_shared_body_are_looked_through_while_there_is_room() {
    let item = json!({ "post": { "requestBody": { "$ref": "#/components/requestBodies/B" } } });
    let read = read_value(&of_paths(800, &item, &of_many_kinds())).report.bridged;
    assert!((200..=room_for(2_000 * 64)).contains(&read), "{read}");
}

#[test]
fn a_path_item_of_very_many_values_is_measured_until_there_is_no_room() {
    let values: Value = (0..300_000).collect();
    let shared = json!({ "I": { "get": {}, "x-values": values } });
    let document = of_paths(300_000, &json!({ "$ref": "#/components/items/I" }), &json!({ "items": shared }));
    assert_eq!(timed(|| read_value(&document)).report.bridged, 3);
}

#[test]
fn a_path_of_very_many_parameters_is_refused_before_they_are_compared() {
    let digit = |i| char::from_digit(i, 36).unwrap();
    let names: String = (0..800).map(|i| format!("{{{}{}}}.", digit(i / 36), digit(i % 36))).collect();
    let paths: Map<String, Value> = (0..4_100)
        .map(|i| (format!("/p{i}/{names}"), json!({ "get": {} })))
        .chain([("/a".to_owned(), json!({ "get": {} }))])
        .collect();
    let reading = timed(|| read_value(&with_paths(&paths.into())));
    assert_eq!(reading.report.bridged, 1);
    assert!(says(&reading.report.skipped, "it requires more than 64 parameters"));
}

fn rewritten(paths: Value, members: Value) -> (Value, Report) {
    let mut document = json!({ "swagger": "2.0", "info": { "title": "T", "version": "1" }, "paths": paths });
    document.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    let mut report = Report::default();
    let document = to_3_0(document, &mut report);
    (document, report)
}

#[test]
fn an_address_of_swagger_is_made_once_for_each_scheme() {
    let schemes = [vec!["https"; 1_000], vec!["http"; 1_000]].concat();
    let (document, _) = rewritten(json!({}), json!({ "host": "a.example", "schemes": schemes }));
    assert_eq!(document["servers"], json!([{ "url": "https://a.example" }, { "url": "http://a.example" }]));
}

#[test]
fn form_parameters_of_a_path_and_an_operation_are_found_by_name() {
    let fields = |letter: char| -> Value {
        (0..70_000).map(|i| json!({ "in": "formData", "name": format!("{letter}{i}") })).collect()
    };
    let item = json!({ "parameters": fields('a'), "post": { "parameters": fields('b'), "responses": {} } });
    let (document, _) = timed(|| rewritten(json!({ "/a": item }), json!({})));
    let content = &document["paths"]["/a"]["post"]["requestBody"]["content"];
    let properties = &content["application/x-www-form-urlencoded"]["schema"]["properties"];
    assert!(properties["b69999"].is_object() && properties["a0"]["$ref"] == "#/paths/~1a/parameters/0");
}

#[test]
fn a_long_text_of_a_shared_parameter_is_copied_while_there_is_room() {
    let long = "x".repeat(1_000_000);
    let shared = json!({ "B": { "in": "body", "name": "b", "description": long } });
    let item = json!({ "post": { "parameters": [{ "$ref": "#/parameters/B" }], "responses": {} } });
    let paths: Map<String, Value> = (0..200).map(|i| (format!("/a{i}"), item.clone())).collect();
    let (document, report) = rewritten(paths.into(), json!({ "parameters": shared }));
    let bytes = document.to_string().len();
    assert!((30_000_000..DOCUMENT_TEXT_BYTES_MAX + 2_000_000).contains(&bytes), "{bytes}");
    assert!(says(&report.warnings, "expand to too much"));
}

#[test]
fn a_long_reference_to_a_parameter_of_a_path_is_copied_while_there_is_room() {
    let fields: Value = (0..10).map(|i| json!({ "in": "formData", "name": format!("f{i}") })).collect();
    let methods = ["get", "head", "post", "put", "patch", "delete"];
    let mut item: Map<String, Value> =
        methods.iter().map(|method| ((*method).to_owned(), json!({ "responses": {} }))).collect();
    item.insert("parameters".into(), fields);
    // The key of a path is in the reference to each of its parameters.
    let key = format!("/{}", "x".repeat(1_000_000));
    let (document, _) = rewritten(json!({ key: item }), json!({}));
    let bytes = document.to_string().len();
    assert!((20_000_000..DOCUMENT_TEXT_BYTES_MAX + 2_000_000).contains(&bytes), "{bytes}");
}

/// A Swagger document with so many answers, each of all these media types.
fn answering(count: u32, produces: &[String]) -> Value {
    let answer = || json!({ "description": "", "schema": { "type": "string" } });
    let answers: Map<String, Value> = (0..count).map(|i| (i.to_string(), answer())).collect();
    let item = json!({ "get": { "responses": answers } });
    rewritten(json!({ "/a": item }), json!({ "produces": produces })).0
}

fn kinds(count: u32) -> Vec<String> {
    (0..count).map(|i| format!("text/{i:0>100}")).collect()
}

#[test]
fn an_answer_of_swagger_has_nine_media_types_json_among_them() {
    let produces = [kinds(3_000), vec!["application/json".into()]].concat();
    let document = answering(1, &produces);
    let content = document["paths"]["/a"]["get"]["responses"]["0"]["content"].as_object().unwrap();
    assert_eq!(content.len(), 9);
    assert!(content["application/json"]["schema"].is_object());
}

#[test]
fn a_media_type_that_cannot_be_sent_is_not_repeated() {
    let produces = vec![format!("text/{}", "x".repeat(1_000)), "text/plain".into()];
    let document = answering(1, &produces);
    let content = document["paths"]["/a"]["get"]["responses"]["0"]["content"].as_object().unwrap();
    assert_eq!(content.keys().collect::<Vec<_>>(), ["text/plain"]);
}

#[test]
fn the_media_types_of_very_many_answers_are_repeated_while_there_is_room() {
    let bytes = answering(50_000, &kinds(9)).to_string().len();
    assert!((20_000_000..DOCUMENT_TEXT_BYTES_MAX).contains(&bytes), "{bytes}");
}
