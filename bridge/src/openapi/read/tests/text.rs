//! Bytes to values: byte order marks, YAML's surprises, duplicates, bombs.

use serde_json::{Value, json};

use super::super::{
    FORMAT, read,
    text::{self, ParsedDocument},
};
use crate::{
    limits::{DOCUMENT_BYTES_MAX, DOCUMENT_DEPTH_MAX, DOCUMENT_VALUES_MAX},
    report::ReadError,
};

fn parse(bytes: &[u8]) -> Result<ParsedDocument, ReadError> {
    text::parse(FORMAT, text::decode(FORMAT, bytes)?)
}

fn value(text: &str) -> Value {
    parse(text.as_bytes()).unwrap().value
}

fn error(text: &str) -> String {
    parse(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn yaml_values_are_what_their_author_wrote() {
    let table = [
        ("no", json!("no")),
        ("off", json!("off")),
        ("Y", json!("Y")),
        ("true", json!(true)),
        ("012", json!("012")),
        ("0", json!(0)),
        ("0.5", json!(0.5)),
        ("1_000", json!("1_000")),
        ("12:30", json!("12:30")),
        ("2024-01-01", json!("2024-01-01")),
        ("~", Value::Null),
        ("", Value::Null),
        ("'7'", json!("7")),
        (".nan", json!(".nan")),
        ("18446744073709551615", json!(18_446_744_073_709_551_615_u64)),
        ("!!str 5", json!("5")),
    ];
    for (text, expected) in table {
        assert_eq!(value(&format!("key: {text}\n"))["key"], expected, "{text}");
    }
}

#[test]
fn yaml_keys_are_text() {
    assert_eq!(
        value("200: a\nno: b\n012: c\ntrue: d\n1.5: e\n"),
        json!({"200":"a","no":"b","012":"c","true":"d","1.5":"e"})
    );
}

#[test]
fn a_version_keeps_its_zero() {
    let yaml = "openapi: 3.0.0\ninfo: {title: T, version: 1.10}\n";
    assert_eq!(value(yaml)["info"]["version"], "1.10");
    assert_eq!(value("info:\n  version:\n")["info"]["version"], Value::Null);
    assert_eq!(value("version: 1.5\n")["version"], 1.5);
}

#[test]
fn a_byte_order_mark_and_windows_lines_do_not_matter() {
    let json = "\u{feff}{\r\n\"a\": 1\r\n}\r\n";
    assert_eq!(value(json), json!({ "a": 1 }));
    assert_eq!(value("\u{feff}a: 1\r\nb:\r\n  - 2\r\n"), json!({ "a": 1, "b": [2] }));
    assert_eq!(value("---\na: 1\n...\n"), json!({ "a": 1 }));
}

#[test]
fn anchors_and_merge_keys_are_unfolded() {
    let text = "base: &base {a: 1, b: 2}\nuse:\n  <<: *base\n  b: 3\nlist: [*base]\n";
    let expected = json!({"base": {"a": 1, "b": 2}, "use": {"b": 3, "a": 1}, "list": [{"a": 1, "b": 2}]});
    assert_eq!(value(text), expected);
}

#[test]
fn a_key_given_twice_is_refused_in_yaml_and_told_in_json() {
    let refused = error("a: 1\nb: 2\na: 3\n");
    assert!(refused.contains("line 3") && refused.contains("the key a is given twice"), "{refused}");
    let refused = error("'x, set y': 1\n'x, set y': 3\n");
    assert!(refused.contains("the key x, set y is given twice"), "{refused}");
    let parsed = parse(br#"{"a": {"b/c": 1, "b/c": 2}, "d": 1}"#).unwrap();
    assert_eq!(parsed.value["a"]["b/c"], 2);
    assert_eq!(parsed.duplicates, ["#/a/b~1c"]);
}

#[test]
fn alias_bombs_are_refused() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..10 {
        let before = i - 1;
        let ten = vec![format!("*a{before}"); 10].join(", ");
        text.push_str(&format!("a{i}: &a{i} [{ten}]\n"));
    }
    assert!(error(&text).contains("its aliases expand"), "{}", error(&text));
    let long = "x".repeat(100_000);
    let many = "  - *long\n".repeat(1_000);
    let refused = error(&format!("long: &long {long}\nlist:\n{many}"));
    assert!(refused.contains("texts expand"), "{refused}");
    assert!(error("a: &a [*a]\n").contains("not valid YAML"));
}

#[test]
fn depth_is_limited_below_at_and_above() {
    for (depth, fits) in
        [(DOCUMENT_DEPTH_MAX - 1, true), (DOCUMENT_DEPTH_MAX, true), (DOCUMENT_DEPTH_MAX + 1, false)]
    {
        let json = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(parse(json.as_bytes()).is_ok(), fits, "JSON of {depth}");
        let yaml = format!("# YAML\n{json}\n");
        assert_eq!(parse(yaml.as_bytes()).is_ok(), fits, "YAML of {depth}");
    }
    for depth in [5_000, 200_000] {
        assert!(parse("[".repeat(depth).as_bytes()).is_err());
        assert!(parse(format!("a: {}", "[".repeat(depth)).as_bytes()).is_err());
        assert!(parse("- ".repeat(depth).as_bytes()).is_err());
    }
}

#[test]
fn size_is_limited_in_bytes_and_values() {
    let mut text = b"{}".to_vec();
    text.resize(DOCUMENT_BYTES_MAX, b' ');
    assert!(parse(&text).is_ok());
    text.push(b' ');
    assert!(parse(&text).unwrap_err().to_string().contains("at most 16777216"));
    let values = |n: usize| format!("[{}1]", "1,".repeat(n - 2));
    assert!(parse(values(DOCUMENT_VALUES_MAX).as_bytes()).is_ok());
    assert!(error(&values(DOCUMENT_VALUES_MAX + 1)).contains("more than 2000000 values"));
}

#[test]
fn errors_say_where() {
    assert_eq!(error("{\"a\": 1,\n \"b\": }"), "OpenAPI: line 2, column 7: not valid JSON: expected value");
    assert!(error("a: 1\n b: 2\n").starts_with("OpenAPI: line 2, column"));
    let bytes = b"a: 1\nb: \xff\n";
    let refused = parse(bytes).unwrap_err().to_string();
    assert_eq!(refused, "OpenAPI: line 2, column 4: the document is not UTF-8; save it as UTF-8");
    assert!(read(b"\xff\xfe{\0}\0").unwrap_err().to_string().contains("UTF-16"));
    assert!(read(b"").is_err());
}
