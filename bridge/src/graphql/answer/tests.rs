//! The table of bridge.md, "Answers", row by row.

use super::{ERRORS_MAX, GraphqlAnswer, Unwrap, Verdict, WARNINGS_BYTES_MAX, answer};
use crate::graphql::testing::{api, sky};

fn unwrap(body: &str) -> GraphqlAnswer<'_> {
    answer(&Unwrap::new("planets", None), 200, "application/json; charset=utf-8", body.as_bytes())
}

fn text<'a>(answer: &'a GraphqlAnswer<'_>) -> &'a str {
    std::str::from_utf8(&answer.body).unwrap()
}

#[test]
fn data_without_errors_is_passed_on_byte_by_byte() {
    for (body, expected) in [
        (
            r#"{"data":{"planets":[ {"mass":0.10000000000000000000001,"id":12345678901234567890} ]}}"#,
            r#"[ {"mass":0.10000000000000000000001,"id":12345678901234567890} ]"#,
        ),
        (r#"{"data":{"planets":null}}"#, "null"),
        (r#"{"data":{"planets":[]},"errors":[]}"#, "[]"),
        (r#"{"data":{"planets":7},"errors":null,"extensions":{"cost":{"a":[1]}}}"#, "7"),
        (r#" {"extensions":1,"data":{"other":{"planets":1},"planets":"x"}} "#, r#""x""#),
        (r#"{"da\u0074a":{"planet\u0073":1}}"#, "1"),
    ] {
        let answer = unwrap(body);
        assert_eq!((answer.status, answer.verdict, text(&answer)), (200, Verdict::Ok, expected), "{body}");
        assert_eq!(answer.warnings(), None);
        assert!(matches!(answer.body, std::borrow::Cow::Borrowed(_)));
    }
}

#[test]
fn the_body_counts_and_not_only_the_status() {
    let data = br#"{"data":{"planets":1}}"#;
    let answer = answer(&Unwrap::new("planets", None), 500, "application/graphql-response+json", data);
    assert_eq!((answer.status, answer.verdict), (200, Verdict::Ok));
}

#[test]
fn data_beside_errors_is_charged_and_carries_warnings() {
    let answer = unwrap(
        r#"{"errors":[{"message":"no mass\n  at mass.js:1","path":["planets",3,"mass"],"extensions":{"code":"X","stacktrace":["secret"]},"locations":[]}],"data":{"planets":[1]}}"#,
    );
    assert_eq!((answer.status, answer.verdict, text(&answer)), (200, Verdict::Partial, "[1]"));
    assert!(answer.verdict.is_charged());
    assert_eq!(answer.warnings().unwrap(), r#"[{"message":"no mass","path":"planets[3].mass","code":"X"}]"#);
}

#[test]
fn errors_alone_become_the_status_they_stand_for() {
    for (extensions, status) in [
        (r#"{"http":{"status":418}}"#, 418),
        (r#"{"status":404}"#, 404),
        (r#"{"http":{"status":404},"status":500,"code":"FORBIDDEN"}"#, 404),
        (r#"{"status":200}"#, 502),
        (r#"{"status":302,"code":"NOT_FOUND"}"#, 404),
        (r#"{"status":600}"#, 502),
        (r#"{"status":"404"}"#, 502),
        (r#"{"code":"BAD_USER_INPUT"}"#, 400),
        (r#"{"code":"GRAPHQL_VALIDATION_FAILED"}"#, 400),
        (r#"{"code":"NOT_FOUND"}"#, 404),
        (r#"{"code":"PLANET_NOT_FOUND"}"#, 404),
        (r#"{"code":"not_found"}"#, 404),
        (r#"{"code":"EDIT_CONFLICT"}"#, 409),
        (r#"{"code":"FORBIDDEN"}"#, 403),
        (r#"{"code":"RATE_LIMITED"}"#, 429),
        (r#"{"code":"RATE_LIMITED_BY_DAY"}"#, 429),
        (r#"{"code":"UNAUTHENTICATED"}"#, 502),
        (r#"{"code":"NOT_FOUND_TODAY"}"#, 502),
        (r#"{"code":7}"#, 502),
        ("{}", 502),
        ("7", 502),
    ] {
        for data in ["", r#","data":null"#, r#","data":{}"#, r#","data":{"planets":null}"#] {
            let body = format!(r#"{{"errors":[{{"message":"no","extensions":{extensions}}}]{data}}}"#);
            let answer = unwrap(&body);
            assert_eq!((answer.status, answer.verdict), (status, Verdict::Failed), "{body}");
            assert!(!answer.verdict.is_charged());
        }
    }
}

#[test]
fn a_failure_is_a_problem_document() {
    let answer = unwrap(
        r#"{"errors":[{"message":"no \"such\" planet","path":["planets"],"type":"NOT_FOUND"}],"data":{"planets":null}}"#,
    );
    assert_eq!(answer.content_type, "application/problem+json");
    insta::assert_snapshot!(text(&answer));
    let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(body["status"], 404);
    assert_eq!(answer.warnings(), None);
}

#[test]
fn what_is_no_graphql_answer_is_a_bad_gateway() {
    let mut lines = Vec::new();
    let cases: [&[u8]; 16] = [
        b"",
        b"<html>",
        b"[]",
        b"7",
        b"null",
        b"{",
        b"{}",
        br#"{"message":"Bad credentials"}"#,
        br#"{"data":null}"#,
        br#"{"data":{}}"#,
        br#"{"data":[1]}"#,
        br#"{"data":"x"}"#,
        br#"{"data":{"planets":1}} x"#,
        br#"{"data":{"planets":1}"#,
        b"{\"data\":{\"planets\":\"\xff\"}}",
        br#"{"errors":[]}"#,
    ];
    for body in cases {
        let answer = answer(&Unwrap::new("planets", None), 200, "text/html; charset=utf-8", body);
        assert_eq!((answer.status, answer.verdict), (502, Verdict::Failed), "{body:?}");
        let problem: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        lines.push(problem["detail"].as_str().unwrap().to_owned());
    }
    lines.dedup();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn odd_errors_are_errors() {
    for errors in ["7", "{}", r#""x""#, "[7]", "[null]", r#"["x"]"#, "[{}]", r#"[{"message":7,"path":"x"}]"#]
    {
        let body = format!(r#"{{"errors":{errors},"data":null}}"#);
        assert_eq!(unwrap(&body).status, 502, "{errors}");
        let body = format!(r#"{{"errors":{errors},"data":{{"planets":1}}}}"#);
        assert_eq!(unwrap(&body).verdict, Verdict::Partial, "{errors}");
    }
}

#[test]
fn few_and_short_errors_are_carried_in_ascii() {
    let errors = |count: usize, message: &str| {
        let error = format!(r#"{{"message":"{message}","path":["é"]}}"#);
        format!(r#"{{"errors":[{}],"data":{{"planets":1}}}}"#, vec![error; count].join(","))
    };
    assert_eq!(unwrap(&errors(ERRORS_MAX, "m")).errors.len(), ERRORS_MAX);
    assert_eq!(unwrap(&errors(ERRORS_MAX + 1, "m")).errors.len(), ERRORS_MAX);
    let body = errors(9, &"\u{1F600}".repeat(10_000));
    let answer = unwrap(&body);
    let warnings = answer.warnings().unwrap();
    assert!(warnings.len() <= WARNINGS_BYTES_MAX && warnings.bytes().all(|b| matches!(b, b' '..=b'~')));
    assert!(serde_json::from_str::<serde_json::Value>(&warnings).is_ok());
    assert!(answer.errors.iter().all(|error| error.message.chars().count() <= 300));
    let huge = format!(
        r#"{{"errors":[{{"message":"m","extensions":{{"trace":"{}"}}}}],"data":{{"planets":1}}}}"#,
        "t".repeat(1_000_000)
    );
    assert_eq!(unwrap(&huge).errors.len(), 1);
}

#[test]
fn aliases_are_renamed_back_and_nothing_else_is_touched() {
    let sky = sky();
    let request =
        sky.plan("search", &[("text", "x"), ("_fields", "name,size,star(name,galaxy.name)")], "").unwrap();
    assert!(request.query.contains("size_String:size"), "{}", request.query);
    let body = br#"{"data":{"search":[
        {"name_String":"a","size_String":"1\u0030","star_Star":[{"name":"s","galaxy":{"name":"g"}}]},
        {"name":"b","size":1.50,"star":{"name":"t"}}, null, 7, {"x":{"size_String":1}}]}}"#;
    let answer = answer(&request.unwrap, 200, "application/json", body);
    assert_eq!(
        text(&answer),
        r#"[{"name":"a","size":"1\u0030","star":[{"name":"s","galaxy":{"name":"g"}}]},{"name":"b","size":1.50,"star":{"name":"t"}},null,7,{"x":{"size_String":1}}]"#
    );
    let body =
        br#"{"data":{"search":[1]},"errors":[{"message":"m","path":["search",0,"star_Star",1,"name"]}]}"#;
    let partial = super::answer(&request.unwrap, 200, "application/json", body);
    assert_eq!(partial.errors[0].path, "search[0].star[1].name");
}

#[test]
fn aliases_deep_below_are_found() {
    let api = api(
        "type Query { a: A } type A { list: [[B!]!] } type B { u: U } union U = X | Y type X { v: Int } type Y { v: String }",
    );
    let request = api.plan("a", &[], "").unwrap();
    assert_eq!(request.query, "query{a{list{u{__typename...on X{v}...on Y{v_String:v}}}}}");
    let body = br#"{"data":{"a":{"list":[[{"u":{"__typename":"Y","v_String":"1"}}],[]]}}}"#;
    let answer = answer(&request.unwrap, 200, "application/json", body);
    assert_eq!(text(&answer), r#"{"list":[[{"u":{"__typename":"Y","v":"1"}}],[]]}"#);
}

#[test]
fn a_deeply_nested_answer_overflows_nothing() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let body = format!(r#"{{"data":{{"search":{deep}}}}}"#);
    let request = sky().plan("search", &[("text", "x"), ("_fields", "size")], "").unwrap();
    let answer = answer(&request.unwrap, 200, "application/json", body.as_bytes());
    assert!(matches!(answer.status, 200 | 502));
    assert!(!unwrap(&body.replace("search", "planets")).body.is_empty());
}
