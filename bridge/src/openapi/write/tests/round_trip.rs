//! What is written can be read again, and says the same.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::{Version, WriteOptions, schemas::SchemaWriter, write};
use crate::{
    description::{ApiDescription, Operation, Parameter, Place, Schema, Style},
    openapi::read,
    share::share,
    testing,
};

/// What a caller can say, in a form that does not depend on how schemas are numbered.
fn said(description: &ApiDescription) -> Vec<Value> {
    let mut description = description.clone();
    share(&mut description);
    let mut schemas = SchemaWriter::new(&description, Version::V31);
    description.operations.iter().map(|operation| said_by(operation, &mut schemas)).collect()
}

fn said_by(operation: &Operation, schemas: &mut SchemaWriter<'_>) -> Value {
    let mut parameter = |parameter: &Parameter| {
        json!({
            "name": parameter.name,
            "in": parameter.place,
            "required": parameter.required,
            "deprecated": parameter.deprecated,
            "schema": schemas.write(&parameter.schema),
        })
    };
    let parameters: Vec<_> = operation.parameters.iter().map(&mut parameter).collect();
    json!({
        "method": operation.method,
        "path": operation.path,
        "tags": operation.tags,
        "deprecated": operation.deprecated,
        "parameters": parameters,
    })
}

fn again(description: &ApiDescription) -> ApiDescription {
    let document = write(description, &WriteOptions::default());
    let bytes = serde_json::to_vec(&document).expect("a document");
    read(&bytes).expect("a document of ours").description
}

#[test]
fn a_graphql_service_read_from_its_document_is_the_same_to_callers() {
    let description = testing::graphql();
    assert_eq!(said(&again(&description)), said(&description));
}

#[test]
fn styles_are_read_as_they_were_written() {
    let text = || Schema::array(Schema::string());
    let query = [Style::Comma, Style::Exploded, Style::Space, Style::Pipe, Style::Json];
    let simple = [Style::Comma, Style::Exploded];
    let query = query.into_iter().map(|style| (Place::Query, style, text()));
    let header = simple.into_iter().map(|style| (Place::Header, style, text()));
    let path = simple.into_iter().map(|style| (Place::Path, style, text()));
    for (place, style, schema) in query.chain(header).chain(path) {
        let json = json!({ "name": "a", "in": place, "style": style, "required": true, "schema": schema });
        let parameter: Parameter = serde_json::from_value(json).expect("a parameter");
        let path = if place == Place::Path { "/things/{a}" } else { "/things" };
        let operation = Operation { path: path.into(), parameters: vec![parameter], ..Operation::default() };
        let description = ApiDescription { operations: vec![operation], ..ApiDescription::default() };
        let again = again(&description);
        assert_eq!(again.operations[0].parameters[0].style, style, "{place:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_operation_survives_being_written_and_read(description in testing::descriptions()) {
        prop_assume!(!description.operations.is_empty());
        let names = |description: &ApiDescription| -> Vec<_> {
            let name = |operation: &Operation| (operation.method, operation.path.clone(), operation.parameters.len());
            description.operations.iter().map(name).collect()
        };
        prop_assert_eq!(names(&again(&description)), names(&description));
    }
}
