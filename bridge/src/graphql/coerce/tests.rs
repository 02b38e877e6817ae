//! The table of bridge.md, "Arguments", row by row.

use super::Coercer;
use crate::{
    graphql::testing::{api, sky},
    limits::{CHECKS_MAX, PROBLEMS_MAX},
    problem::Problem,
    testing::timed,
};

/// Accepted text and the variable it becomes.
const ACCEPTED: &[(&str, &str, &str)] = &[
    ("int", "0", "0"),
    ("int", "-7", "-7"),
    ("int", "2147483647", "2147483647"),
    ("int", "-2147483648", "-2147483648"),
    ("int", "null", "null"),
    ("float", "4.5", "4.5"),
    ("float", "7", "7"),
    ("float", "-1e3", "-1e3"),
    ("float", "0.10000000000000000000001", "0.10000000000000000000001"),
    ("flag", "true", "true"),
    ("flag", "null", "null"),
    ("text", "", r#""""#),
    ("text", "null", r#""null""#),
    ("text", "a\"b\\c\n\u{1}\u{7f}é\u{1F600}", "\"a\\\"b\\\\c\\n\\u0001\u{7f}é\u{1F600}\""),
    ("id", "007", r#""007""#),
    ("id", "12345678901234567890", r#""12345678901234567890""#),
    ("id", "null", r#""null""#),
    ("sort", "MASS", r#""MASS""#),
    ("at", "2026-01-01T00:00:00Z", r#""2026-01-01T00:00:00Z""#),
    ("at", "null", "null"),
    ("big", "12345678901234567890123", "12345678901234567890123"),
    ("big", "0.10", "0.10"),
    ("any", r#"{"a": [1.0, null]}"#, r#"{"a": [1.0, null]}"#),
    ("any", r#""x""#, r#""x""#),
    ("any", "null", "null"),
    ("ints", "1,2,3", "[1,2,3]"),
    ("ints", "1", "[1]"),
    ("ints", "[]", "[]"),
    ("ints", " [1, null] ", "[1,null]"),
    ("ints", "1,null", "[1,null]"),
    ("ids", "7,a", r#"["7","a"]"#),
    ("ids", r#"[7, "a", 12345678901234567890]"#, r#"["7","a","12345678901234567890"]"#),
    ("ids", "null", "null"),
    ("texts", "a,,b", r#"["a","","b"]"#),
    ("texts", r#"["a,b"]"#, r#"["a,b"]"#),
    ("grid", "[[1,2],[]]", "[[1,2],[]]"),
    ("anys", "[1,[2]]", "[1,[2]]"),
    ("filter", "{}", "{}"),
    (
        "filter",
        r#"{"mass":{"gt":1,"unit":"EARTH"},"method":null}"#,
        r#"{"mass":{"gt":1,"unit":"EARTH"},"method":null}"#,
    ),
    ("filters", r#"[{"name":"\u00e9"}]"#, r#"[{"name":"é"}]"#),
    ("pick", r#"{"name":"a"}"#, r#"{"name":"a"}"#),
    ("pick", "null", "null"),
];

#[test]
fn every_accepted_text_becomes_its_variable_digit_by_digit() {
    let sky = sky();
    for (name, text, expected) in ACCEPTED {
        assert_eq!(
            sky.variables("values", &[(name, text)], ""),
            format!("{{\"{name}\":{expected}}}"),
            "{text}"
        );
    }
}

#[test]
fn dotted_names_are_members_of_input_objects() {
    let sky = sky();
    let params = [
        ("filter.mass.gt", "1e2"),
        ("filter.mass.unit", "EARTH"),
        ("filter.name", "null"),
        ("filter.and", "[]"),
    ];
    assert_eq!(
        sky.variables("values", &params, ""),
        r#"{"filter":{"mass":{"gt":1e2,"unit":"EARTH"},"name":"null","and":[]}}"#
    );
    let whole = [("filter.mass", r#"{"unit":"EARTH"}"#), ("filter.method", "null")];
    assert_eq!(sky.variables("values", &whole, ""), r#"{"filter":{"mass":{"unit":"EARTH"},"method":null}}"#);
    assert_eq!(sky.variables("values", &[("pick.name", "null")], ""), r#"{"pick":{"name":"null"}}"#);
}

#[test]
fn every_refused_text_is_refused_with_its_name_and_what_was_expected() {
    let sky = sky();
    let deep = format!("{}1{}", "[".repeat(33), "]".repeat(33));
    let refused: &[(&str, &[&str])] = &[
        (
            "int",
            &[
                "7.0",
                "1e3",
                "3000000000",
                "2147483648",
                "-2147483649",
                "+7",
                "",
                " 7",
                "07",
                "-",
                "seven",
                "0x1",
                "\"7\"",
                "٣",
            ],
        ),
        ("float", &["NaN", "Infinity", "1,5", "0x1p3", "1e999", ".5", "5.", "", "+1", "1_0"]),
        ("flag", &["TRUE", "1", "yes", ""]),
        ("sort", &["MAS", "mass", "", "NAME "]),
        ("big", &["1n", "", "x", "0x10"]),
        ("any", &["", "{a: 1}", "x", "{\"a\":1,\"a\":2}", &deep]),
        ("ints", &["", "1,,2", "1,x", "[1", "[1.0]", "[\"1\"]", "1 2", "{}"]),
        ("ids", &["[null]", "[1.5]", "[true]", "[[1]]"]),
        ("texts", &["[1]", "[null]"]),
        ("grid", &["1,2", "[1]", "[[null]]", "null,1"]),
        ("anys", &["1,2", "[null]"]),
        (
            "filter",
            &[
                "",
                "x",
                "[]",
                "{\"nme\":\"a\"}",
                "{\"mass\":{}}",
                "{\"mass\":1}",
                "{\"strict\":null}",
                "{\"and\":[{\"mass\":{\"gt\":\"1\",\"unit\":\"EART\"}}]}",
                "{\"name\":\"a\",\"name\":\"b\"}",
            ],
        ),
        ("filters", &["{}", "[1]", "[null]", "a,b"]),
        ("pick", &["{}", "{\"id\":\"1\",\"name\":\"a\"}", "{\"id\":null}", "{\"x\":1}"]),
    ];
    let mut lines = Vec::new();
    for (name, texts) in refused {
        for text in *texts {
            lines.push(sky.refused("values", &[(name, text)], ""));
        }
    }
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn null_is_refused_where_a_value_is_needed() {
    let sky = sky();
    let names = ["int", "float", "flag", "sort", "at", "any", "ids", "filter", "text", "id"];
    let all = names.map(|name| (name, "null"));
    insta::assert_snapshot!(sky.refused("must", &all, ""));
    let body = r#"{"int":null,"float":null,"flag":null,"text":null,"id":null,"sort":null,"at":null,"any":null,"ids":null,"filter":null}"#;
    insta::assert_snapshot!(sky.refused("must", &[], body));
}

#[test]
fn wrong_dotted_names_are_refused() {
    let sky = sky();
    let refused: &[&[(&str, &str)]] = &[
        &[("filter.mas.gt", "1")],
        &[("filter.mass.gte", "1"), ("filter.mass.unit", "EARTH")],
        &[("filter.mass.gt", "heavy"), ("filter.mass.unit", "EARTH")],
        &[("filter.mass.gt", "1")],
        &[("filter.mass", "{\"unit\":\"EARTH\"}"), ("filter.mass.gt", "1")],
        &[("filter.", "1")],
        &[("filter.mass..gt", "1")],
        &[("filter.and.mass", "1")],
        &[("int.x", "1")],
        &[("ids.0", "1")],
        &[("pick.id", "1"), ("pick.name", "2")],
        &[("pick.id.x", "1")],
        &[("pick.range.gt", "1")],
    ];
    let lines: Vec<_> = refused.iter().map(|params| sky.refused("values", params, "")).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn json_needs_the_type_of_the_schema() {
    let sky = sky();
    for (body, expected) in [
        (r#"{"int": 7}"#, r#"{"int":7}"#),
        (r#"{"float": 1.50}"#, r#"{"float":1.50}"#),
        (r#"{"id": 7, "text": "\ud83d\ude00"}"#, "{\"text\":\"\u{1F600}\",\"id\":\"7\"}"),
        (r#"{"big": 12345678901234567890}"#, r#"{"big":12345678901234567890}"#),
        (r#"{"big": "12345678901234567890"}"#, r#"{"big":"12345678901234567890"}"#),
        (r#"{"any": {"b": 1.0, "a": []}}"#, r#"{"any":{"b":1.0,"a":[]}}"#),
        (r#"{"text": null, "id": null}"#, r#"{"text":null,"id":null}"#),
        ("  ", "{}"),
    ] {
        assert_eq!(sky.variables("values", &[], body), expected);
    }
    let refused = [
        r#"{"int": "7"}"#,
        r#"{"int": 7.0}"#,
        r#"{"int": 3000000000}"#,
        r#"{"int": [7]}"#,
        r#"{"float": "1"}"#,
        r#"{"float": 1e999}"#,
        r#"{"flag": "true"}"#,
        r#"{"flag": 1}"#,
        r#"{"text": 7}"#,
        r#"{"text": ["a"]}"#,
        r#"{"text": "\ud83d"}"#,
        r#"{"id": 1.5}"#,
        r#"{"id": true}"#,
        r#"{"sort": 1}"#,
        r#"{"sort": "NAM"}"#,
        r#"{"at": 20260101}"#,
        r#"{"big": "x"}"#,
        r#"{"big": true}"#,
        r#"{"ids": "a"}"#,
        r#"{"ids": {"0": "a"}}"#,
        r#"{"ids": ["a", null, 1.5]}"#,
        r#"{"filter": "{}"}"#,
        r#"{"filter": {"mass": {"gt": true}}}"#,
        r#"{"grid": [[1, 2], [3, "x"]]}"#,
    ];
    let lines: Vec<_> = refused.iter().map(|body| sky.refused("values", &[], body)).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn problems_are_bounded_and_so_is_what_they_repeat() {
    let sky = sky();
    let many = vec!["x"; 100_000].join(",");
    let problems = sky.plan("values", &[("ints", &many)], "").unwrap_err();
    assert_eq!(problems.len(), PROBLEMS_MAX);
    let long = "y".repeat(1_000_000);
    for name in ["int", "sort", "filter", "any"] {
        assert!(sky.refused("values", &[(name, &long)], "").len() < 500, "{name}");
    }
}

#[test]
fn what_is_missing_and_the_steps_of_looking_at_values_are_bounded() {
    let list = |n: usize, item: &dyn Fn(usize) -> String| (0..n).map(item).collect::<Vec<_>>().join(" ");
    let (needed, wide) = (list(6, &|i| format!("n{i}: Int!")), list(50_000, &|i| format!("o{i}: Int")));
    let api = api(&format!(
        "type Query {{ a(needed: [Needed], wide: [Wide]): Int }} input Needed {{ {needed} }} input Wide {{ {wide} }}"
    ));
    let empty = vec!["{}"; 100_000].join(",");
    let refused = timed(|| api.plan("a", &[("needed", &format!("[{empty}]"))], "").unwrap_err());
    let [Problem::Missing(names)] = &refused[..] else { panic!("{refused:?}") };
    assert_eq!(names.len(), PROBLEMS_MAX);
    let refused = timed(|| api.refused("a", &[("wide", &format!("[{empty}]"))], ""));
    assert_eq!(refused, "the arguments are too complex to check");
    let few = vec!["{}"; 20].join(",");
    assert_eq!(api.plan("a", &[("wide", &format!("[{few}]"))], "").unwrap().variables.len(), 10 + 3 * 20);
}

#[test]
fn variables_that_were_not_looked_at_to_their_end_are_not_sent() {
    let schema = sky().description.graphql.as_ref().unwrap();
    let coerced = |steps| {
        let mut coercer = Coercer::new(schema, String::new());
        coercer.spend(steps);
        coercer.finish()
    };
    assert!(coerced(CHECKS_MAX - 1).is_ok());
    assert!(coerced(CHECKS_MAX).is_err());
}
