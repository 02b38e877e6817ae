//! What the reader makes of documents: a table for every oddity, and snapshots of whole documents.

use super::read;

#[test]
fn a_small_document_becomes_a_description() {
    let document = br#"{"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": {
        "/users/{id}": {"get": {"responses": {"200": {"description": "ok"}}}}}}"#;
    let reading = read(document).unwrap();
    assert_eq!(reading.description.operations[0].id, "getUsersById");
    assert_eq!(reading.report.bridged, 1);
}
