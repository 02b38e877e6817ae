//! The promises of parameters and URLs: tables, and properties over hostile input.

use proptest::prelude::*;
use url::Url;

use super::*;

fn spec(name: &str, place: Place, kind: Kind, required: bool) -> ParameterSpec {
    ParameterSpec { name: name.into(), place, kind, required, choices: Vec::new() }
}

fn earthquakes() -> Api {
    let mut format = spec("format", Place::Query, Kind::Text, true);
    format.choices = vec!["geojson".into(), "csv".into()];
    let recent = OperationSpec {
        method: "GET".into(),
        template: "/v1/earthquakes/recent".into(),
        parameters: vec![
            format,
            spec("minmagnitude", Place::Query, Kind::Number, false),
            spec("limit", Place::Query, Kind::Integer, true),
            spec("tsunami", Place::Query, Kind::Boolean, false),
            spec("X-Tenant", Place::Header, Kind::Text, false),
        ],
        any_params: false,
    };
    let one = OperationSpec {
        method: "GET".into(),
        template: "/v1/events/{id}".into(),
        ..OperationSpec::default()
    };
    let open = OperationSpec {
        method: "POST".into(),
        template: "/open/.{name}".into(),
        any_params: true,
        ..OperationSpec::default()
    };
    Api::new(vec![recent, one, open]).unwrap()
}

fn params(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn refusal(path: &str, pairs: &[(&str, &str)]) -> String {
    earthquakes().prepare("GET", path, &params(pairs)).unwrap_err().to_string()
}

const RECENT: &str = "/v1/earthquakes/recent";

#[test]
fn parameters_go_where_the_description_says() {
    let given =
        params(&[("format", "geojson"), ("limit", "5"), ("X-Tenant", "blue"), ("minmagnitude", "4.5")]);
    let prepared = earthquakes().prepare("get", RECENT, &given).unwrap();
    assert_eq!(prepared.operation, 0);
    assert_eq!(prepared.headers, [("x-tenant".to_owned(), "blue".to_owned())]);
    let url = prepared.url(&Url::parse("http://127.0.0.1:8080/base/").unwrap()).unwrap();
    assert_eq!(
        url.as_str(),
        "http://127.0.0.1:8080/base/v1/earthquakes/recent?format=geojson&limit=5&minmagnitude=4.5"
    );
}

#[test]
fn everything_wrong_is_told_at_once_with_the_nearest_right_name() {
    let refusal = refusal(RECENT, &[("fromat", "geojson"), ("minmagnitude", "4,5"), ("tsunami", "TRUE")]);
    assert_eq!(
        refusal,
        "missing `format`, `limit`; `fromat` is not a parameter of this operation; did you mean `format`?; \
         `minmagnitude` is `4,5`, expected a number such as 4.5; `tsunami` is `TRUE`, expected true or false"
    );
}

#[test]
fn a_wrong_choice_lists_the_right_ones() {
    let refusal = refusal(RECENT, &[("format", "xml"), ("limit", "5")]);
    assert_eq!(refusal, "`format` is `xml`, expected one of geojson, csv");
}

#[test]
fn an_unknown_name_without_a_similar_one_lists_what_there_is() {
    let refusal = refusal("/v1/events/7", &[("colour", "red")]);
    assert_eq!(refusal, "`colour` is not a parameter of this operation; it takes `id`");
}

#[test]
fn a_value_is_given_in_the_path_or_in_params() {
    let api = earthquakes();
    let concrete = api.prepare("GET", "/v1/events/us%207000", &params(&[])).unwrap();
    let template = api.prepare("GET", "/v1/events/{id}", &params(&[("id", "us 7000")])).unwrap();
    assert_eq!(concrete, template);
    assert_eq!(concrete.segments, ["v1", "events", "us 7000"]);
    assert_eq!(refusal("/v1/events/7", &[("id", "7")]), "`id` is already in the path; give it once");
    assert_eq!(refusal("/v1/events/{id}", &[]), "missing `id`");
}

#[test]
fn a_value_in_a_template_stays_one_segment() {
    let api = earthquakes();
    let base = Url::parse("https://api.example/x").unwrap();
    let url = |value| {
        let prepared = api.prepare("GET", "/v1/events/{id}", &params(&[("id", value)])).unwrap();
        prepared.url(&base).unwrap().to_string()
    };
    assert_eq!(url("a/b"), "https://api.example/x/v1/events/a%2Fb");
    assert_eq!(url("%2e%2e"), "https://api.example/x/v1/events/%252e%252e");
    assert_eq!(url("a?b#c"), "https://api.example/x/v1/events/a%3Fb%23c");
    assert_eq!(url("a\\b"), "https://api.example/x/v1/events/a%5Cb");
    for (value, expected) in [
        (".", "a value without the segments . and .."),
        ("..", "a value without the segments . and .."),
        ("..;a", "a value without the segments . and .."),
        ("a/../b", "a value without the segments . and .."),
        ("..\\b", "a value without the segments . and .."),
        ("", "a value that is not empty"),
        ("a\0", "text without control characters"),
        ("a\r\nb", "text without control characters"),
    ] {
        let refusal = refusal("/v1/events/{id}", &[("id", value)]);
        assert!(refusal.ends_with(expected), "{value:?}: {refusal}");
    }
    // A literal and a value that together are a segment of dots.
    let dots = api.prepare("POST", "/open/.{name}", &params(&[("name", ".")]));
    assert!(dots.is_err(), "{dots:?}");
}

#[test]
fn a_query_cannot_be_extended_by_a_value() {
    let given = params(&[("name", "n"), ("a&b", "1&admin=true#x"), ("ü", "a b+c")]);
    let prepared = earthquakes().prepare("POST", "/open/.{name}", &given).unwrap();
    let url = prepared.url(&Url::parse("http://h").unwrap()).unwrap();
    assert_eq!(url.as_str(), "http://h/open/.n?a%26b=1%26admin%3Dtrue%23x&%C3%BC=a%20b%2Bc");
}

#[test]
fn a_header_value_cannot_begin_a_new_header() {
    for value in ["a\r\nHost: x", "a\nb", "a\0", "ü"] {
        let refusal = refusal(RECENT, &[("format", "csv"), ("limit", "1"), ("X-Tenant", value)]);
        assert!(refusal.ends_with("expected printable ASCII"), "{refusal}");
    }
}

#[test]
fn values_have_one_spelling() {
    use Kind::{Boolean, Integer, Number, Text};
    for (kind, text, accepted) in [
        (Integer, "0", true),
        (Integer, "-7", true),
        (Integer, "9223372036854775807", true),
        (Integer, "18446744073709551615", true),
        (Integer, "18446744073709551616", false),
        (Integer, "-9223372036854775808", true),
        (Integer, "-9223372036854775809", false),
        (Integer, "7.0", false),
        (Integer, "1e3", false),
        (Integer, "+7", false),
        (Integer, "007", false),
        (Integer, " 7", false),
        (Integer, "", false),
        (Integer, "٣", false),
        (Number, "4.5", true),
        (Number, "-0.25e-3", true),
        (Number, "1E+2", true),
        (Number, "1e400", false),
        (Number, "NaN", false),
        (Number, "inf", false),
        (Number, "1,5", false),
        (Number, "0x1f", false),
        (Number, ".5", false),
        (Number, "5.", false),
        (Number, "1e", false),
        (Number, "1e+-2", false),
        (Number, "", false),
        (Boolean, "true", true),
        (Boolean, "false", true),
        (Boolean, "TRUE", false),
        (Boolean, "1", false),
        (Boolean, "yes", false),
        (Boolean, "", false),
        (Text, "", true),
        (Text, "007", true),
    ] {
        assert_eq!(kind.accepts(text), accepted, "{kind:?} {text:?}");
    }
}

#[test]
fn a_description_that_contradicts_itself_is_refused_at_registration() {
    let operation = |template: &str, parameters| OperationSpec {
        method: "GET".into(),
        template: template.into(),
        parameters,
        any_params: false,
    };
    let path = |name| spec(name, Place::Path, Kind::Text, true);
    let header = |name| spec(name, Place::Header, Kind::Text, false);
    for (template, parameters, reason) in [
        ("/a", vec![path("id")], "path template"),
        ("/{id}", vec![spec("id", Place::Query, Kind::Text, false)], "path template"),
        ("/{id}", vec![path("id"), path("id")], "declared twice"),
        ("/a", vec![spec("", Place::Query, Kind::Text, false)], "needs a name"),
        ("/a", vec![header("Authorization")], "never passed on"),
        ("/a", vec![header("X-Forwarded-For")], "never passed on"),
        ("/a", vec![header("x_tenant")], "never passed on"),
    ] {
        let error = Api::new(vec![operation(template, parameters)]).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_base_path_is_kept_with_and_without_its_slash() {
    let api = Api::new(vec![
        OperationSpec { method: "GET".into(), template: "/".into(), ..OperationSpec::default() },
        OperationSpec { method: "GET".into(), template: "/a/".into(), ..OperationSpec::default() },
    ])
    .unwrap();
    for (base, path, expected) in [
        ("http://h", "/", "http://h/"),
        ("http://h/", "/a/", "http://h/a/"),
        ("http://h/b", "/", "http://h/b/"),
        ("http://h/b/", "/a/", "http://h/b/a/"),
        ("http://h:8080/b/c%20d", "/a/", "http://h:8080/b/c%20d/a/"),
    ] {
        let prepared = api.prepare("GET", path, &params(&[])).unwrap();
        assert_eq!(prepared.url(&Url::parse(base).unwrap()).unwrap().as_str(), expected);
    }
}

/// Pieces that have fooled servers, and ordinary ones.
fn hostile() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "/",
        "//",
        "\\",
        ".",
        "..",
        "...",
        ";",
        "..;",
        "%2e",
        "%2E%2e",
        "%2f",
        "%5c",
        "%252e",
        "%00",
        "%0d%0a",
        "%",
        "%c0%ae",
        "?",
        "#",
        "@",
        ":",
        "http://",
        "evil.example",
        "{id}",
        "{",
        "}",
        "a",
        "é",
        " ",
        "\t",
        "\u{202e}",
        "&",
        "=",
        "+",
        "~",
        "users",
        "v1",
        "events",
    ]);
    prop::collection::vec(pieces, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn no_input_escapes_the_base_path(
        path in prop_oneof![hostile(), hostile().prop_map(|p| format!("/v1/events/{p}")), ".{0,20}"],
        value in prop_oneof![hostile(), ".{0,20}"],
        base in prop::sample::select(vec!["http://up.example/base/x", "http://up.example", "https://up.example:8443/b/"]),
    ) {
        let api = Api::new(vec![
            OperationSpec { method: "GET".into(), template: "/v1/events/{id}".into(), any_params: true, ..OperationSpec::default() },
            OperationSpec { method: "GET".into(), template: "/{a}/x.{b}".into(), any_params: true, ..OperationSpec::default() },
            OperationSpec { method: "GET".into(), template: "/{a}".into(), any_params: true, ..OperationSpec::default() },
        ]).unwrap();
        let base = Url::parse(base).unwrap();
        let given = params(&[("id", &value), ("a", &value), ("b", &value)]);
        for (path, given) in [(path.as_str(), &params(&[("q", &value)])), ("/v1/events/{id}", &given), ("/{a}/x.{b}", &given), ("/{a}", &given)] {
            let Ok(prepared) = api.prepare("GET", path, given) else { continue };
            let url = prepared.url(&base).unwrap();
            prop_assert_eq!(url.origin(), base.origin());
            prop_assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none());
            let below = url.path().strip_prefix(base.path().trim_end_matches('/')).unwrap();
            prop_assert!(below.starts_with('/'));
            prop_assert_eq!(below[1..].split('/').count(), prepared.segments.len());
            // What a server decodes is what we meant, and reading the URL again changes nothing.
            prop_assert_eq!(Url::parse(url.as_str()).unwrap(), url.clone());
            let lower = below.to_lowercase().replace("%2e", ".");
            prop_assert!(!lower.split('/').any(|s| s.split(';').next() == Some("..") || s == "."), "{}", url);
            prop_assert!(!url.as_str().contains(char::is_control) && !url.path().contains('\\'));
        }
    }

    #[test]
    fn no_template_panics_the_reader(template in prop_oneof![hostile(), ".{0,30}"]) {
        let _ = Routes::new(&[Route { method: "GET".into(), template }]);
    }
}
