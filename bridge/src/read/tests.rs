//! Each kind of document finds its reader.

use super::read;

#[test]
fn every_kind_of_document_finds_its_reader() {
    let introspection = r#"{"data": {"__schema": {"queryType": {"name": "Query"}, "types": [
        {"kind": "OBJECT", "name": "Query", "fields": [{"name": "planets", "args": [], "type": {"kind": "SCALAR", "name": "Int"}}]},
        {"kind": "SCALAR", "name": "Int"}]}}}"#;
    let table = [
        (r#"{"openapi": "3.1.0", "paths": {"/planets": {"get": {}}}}"#, "OpenAPI 3.1.0", "getPlanets"),
        ("# of ours\nswagger: '2.0'\npaths: {/planets: {get: {}}}", "Swagger 2.0", "getPlanets"),
        ("paths: {/planets: {get: {}}}\ninfo: {title: T}\nopenapi: 3.0.0\n", "OpenAPI 3.0.0", "getPlanets"),
        (
            "# a schema\n\"\"\"\nAll of it.\n\"\"\"\ntype Query {\n  planets: Int\n}\n",
            "GraphQL SDL",
            "planets",
        ),
        ("\u{feff}schema { query: Q }\r\ntype Q { planets: Int }", "GraphQL SDL", "planets"),
        ("extend type Query { planets: Int }", "GraphQL SDL", "planets"),
        (introspection, "GraphQL introspection", "planets"),
    ];
    for (document, format, id) in table {
        let reading = read(document.as_bytes()).unwrap();
        assert_eq!((reading.report.format.as_str(), reading.report.bridged), (format, 1), "{document}");
        assert_eq!(reading.description.operations[0].id, id);
    }
}

#[test]
fn what_is_no_description_is_named() {
    let table = [
        ("<!DOCTYPE html><html></html>", "an HTML page"),
        ("\n  <?xml version='1.0'?><definitions/>", "XML"),
        ("#%RAML 1.0\ntitle: T", "RAML"),
        ("FORMAT: 1A\n# T", "API Blueprint"),
        ("syntax = \"proto3\";", "gRPC"),
        (r#"{"asyncapi": "3.0.0"}"#, "AsyncAPI"),
        ("asyncapi: 2.6.0\nchannels: {}", "AsyncAPI"),
        (r#"{"info": {"_postman_id": "x"}, "item": []}"#, "Postman"),
        ("", "empty"),
        ("hello", "not an object"),
    ];
    for (document, told) in table {
        let error = read(document.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(told), "{document}: {error}");
    }
    let error = crate::openapi::read(b"# c\ntype Query { a: Int }").unwrap_err().to_string();
    assert!(error.contains("a GraphQL schema; register it as GraphQL"), "{error}");
}
