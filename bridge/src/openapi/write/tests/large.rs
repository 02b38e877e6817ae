//! A stranger's large description becomes a document that is about as large.

use serde_json::{Map, Value, json};

use super::{options, references};
use crate::{
    description::ApiDescription,
    openapi::write::{Version, write},
};

fn service(operations: impl Iterator<Item = Value>) -> ApiDescription {
    let described = json!({ "title": "", "operations": operations.collect::<Value>() });
    serde_json::from_value(described).expect("a description")
}

#[test]
fn a_large_answer_for_all_other_statuses_is_written_once() {
    let property = |i: u32| json!({ "name": format!("p{i}"), "schema": { "shape": "boolean" } });
    let schema =
        json!({ "shape": { "object": { "properties": (0..3_000).map(property).collect::<Value>() } } });
    let content = json!({ "media_type": "application/json", "schema": schema });
    let responses = json!([{ "status": "default", "description": "Any", "content": content }]);
    let description =
        service([json!({ "method": "GET", "path": "/a", "id": "getA", "responses": responses })].into_iter());
    for version in [Version::V31, Version::V30] {
        let document = write(&description, &options(version));
        let text = document.to_string();
        assert_eq!(text.matches("\"p2999\"").count(), 1);
        let answers = document["paths"]["/a"]["get"]["responses"].as_object().expect("answers");
        let pointer = json!({ "$ref": "#/components/responses/default_getA" });
        assert!(["400", "401", "414", "504", "default"].iter().all(|status| answers[*status] == pointer));
        for target in references(&document) {
            assert!(document.pointer(target.trim_start_matches('#')).is_some(), "{target}");
        }
        let answer = &document["components"]["responses"]["default_getA"];
        let kinds: Vec<_> = answer["content"].as_object().into_iter().flat_map(Map::keys).collect();
        assert_eq!(kinds, ["application/json", "application/problem+json", "text/plain"]);
        assert!(answer["description"].as_str().is_some_and(|text| text.starts_with("Any. Or: ")));
    }
}

#[test]
fn the_answers_of_many_operations_are_said_again_while_there_is_room() {
    let text = "x".repeat(3_000);
    let operation = |i: u32| {
        let responses = json!([{ "status": "default", "description": text }]);
        json!({ "method": "GET", "path": format!("/a{i}"), "id": format!("get{i}"), "responses": responses })
    };
    let document = write(&service((0..500).map(operation)), &options(Version::V31));
    // Once each, and two megabytes of them again: the thirteen network statuses would be 19.5 MB.
    let bytes = document.to_string().len();
    assert!((3_500_000..5_000_000).contains(&bytes), "{bytes}");
    let again = &document["paths"]["/a0"]["get"]["responses"]["404"]["description"];
    assert!(again.as_str().is_some_and(|again| again.starts_with("xxx")));
}
