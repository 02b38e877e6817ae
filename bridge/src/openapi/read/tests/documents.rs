//! Whole documents as frameworks write them, and what becomes of them.

use std::fmt::Write;

use super::read_bytes;

/// Description, servers, security and report as text.
fn shown(document: &str) -> String {
    let reading = read_bytes(document.as_bytes());
    let mut text = serde_json::to_string_pretty(&reading.description).unwrap();
    let report = &reading.report;
    write!(text, "\n\n{}: {} operations\n", report.format, report.bridged).unwrap();
    for (kind, findings) in
        [("repaired", &report.repaired), ("skipped", &report.skipped), ("warning", &report.warnings)]
    {
        for finding in &findings.list {
            writeln!(text, "{kind}: {finding}").unwrap();
        }
    }
    writeln!(text, "servers: {:?}\nsecurity: {:?}", reading.servers, reading.security).unwrap();
    text
}

#[test]
fn a_document_as_fastapi_writes_it() {
    insta::assert_snapshot!(shown(include_str!("documents/fastapi.json")));
}

#[test]
fn a_document_as_springdoc_writes_it() {
    insta::assert_snapshot!(shown(include_str!("documents/spring.json")));
}

#[test]
fn a_swagger_document_of_a_shop() {
    insta::assert_snapshot!(shown(include_str!("documents/shop.yaml")));
}
