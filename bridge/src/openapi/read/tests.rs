//! What the reader makes of documents: a table for every oddity, and snapshots of whole documents.

#![allow(clippy::needless_pass_by_value, reason = "tables are shorter to write with values")]

mod documents;
mod hostile;
mod multiplied;
mod operations;
mod parameters;
mod schemas;
mod swagger;
mod text;

use serde_json::{Value, json};

use super::read;
use crate::{
    Api,
    description::{Operation, Schema},
    report::{Findings, Reading},
};

/// Reads a document that must be readable, and holds it against what every description promises.
fn reading(document: &Value) -> Reading {
    read_bytes(document.to_string().as_bytes())
}

fn read_bytes(bytes: &[u8]) -> Reading {
    let reading = read(bytes).unwrap();
    assert_eq!(reading.report.bridged, reading.description.operations.len());
    Api::new(reading.description.clone()).unwrap();
    let packed = crate::document::encode(&reading.description).unwrap();
    assert_eq!(crate::document::decode(&packed).unwrap(), reading.description);
    reading
}

/// A 3.1 document of these paths.
fn with_paths(paths: &Value) -> Value {
    json!({ "openapi": "3.1.0", "info": { "title": "T", "version": "1" }, "paths": paths })
}

/// The one operation of a document whose `GET /` has these further members.
fn get(path: &str, members: Value) -> (Operation, Reading) {
    let mut reading = reading(&with_paths(&json!({ path: { "get": members } })));
    (reading.description.operations.remove(0), reading)
}

/// What a schema is read as, in a document of `version` with these named schemas.
fn schema_in(version: &str, schema: &Value, named: &Value) -> (Schema, Reading) {
    let mut document = with_paths(&json!({ "/": { "post": {
        "requestBody": { "content": { "application/json": { "schema": schema } } },
        "responses": { "200": { "description": "ok" } },
    } } }));
    document["openapi"] = version.into();
    document["components"] = json!({ "schemas": named });
    let reading = reading(&document);
    (reading.description.operations[0].body.clone().unwrap().schema, reading)
}

fn schema(schema: Value) -> Schema {
    schema_in("3.1.0", &schema, &json!({})).0
}

/// A schema in its serialised form, which is shorter to write in tables.
fn neutral(schema: &Schema) -> Value {
    serde_json::to_value(schema).unwrap()
}

fn says(findings: &Findings, part: &str) -> bool {
    findings.list.iter().any(|finding| finding.to_string().contains(part))
}
