//! The promises of calls and URLs: tables, and properties over hostile input.

use proptest::prelude::*;
use url::Url;

use super::*;
use crate::{
    description::{Method, Parameter, Schema, Style},
    routing::Route,
};

fn parameter(name: &str, place: Place, schema: Schema, required: bool) -> Parameter {
    Parameter {
        name: name.into(),
        place,
        style: Style::default(),
        required,
        schema,
        description: String::new(),
        deprecated: false,
        example: None,
    }
}

fn operation(method: Method, path: &str, parameters: Vec<Parameter>) -> Operation {
    Operation { method, path: path.into(), id: format!("{method}{path}"), parameters, ..Operation::default() }
}

fn described(operations: Vec<Operation>) -> ApiDescription {
    ApiDescription { operations, ..ApiDescription::default() }
}

fn earthquakes() -> Api {
    let formats = Schema { choices: vec!["geojson".into(), "csv".into()], ..Schema::string() };
    let recent = operation(
        Method::Get,
        "/v1/earthquakes/recent",
        vec![
            parameter("format", Place::Query, formats, true),
            parameter("limit", Place::Query, Schema::integer(), true),
            parameter("minmagnitude", Place::Query, Schema::number(), false),
            parameter("tsunami", Place::Query, Schema::boolean(), false),
            parameter("X-Tenant", Place::Header, Schema::string(), false),
        ],
    );
    let one = operation(Method::Get, "/v1/events/{id}", vec![]);
    let open = Operation { any_params: true, ..operation(Method::Post, "/open/.{name}", vec![]) };
    Api::new(described(vec![recent, one, open])).unwrap()
}

fn plan(
    api: &Api,
    method: &str,
    path: &str,
    params: &BTreeMap<String, String>,
) -> Result<HttpRequest, PlanError> {
    let Request::Http(request) =
        api.plan(&Call { method, path, params, content_type: None, body: &[] })?.request;
    Ok(request)
}

fn params(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn refusal(path: &str, pairs: &[(&str, &str)]) -> String {
    plan(&earthquakes(), "GET", path, &params(pairs)).unwrap_err().to_string()
}

const RECENT: &str = "/v1/earthquakes/recent";

#[test]
fn parameters_go_where_the_description_says() {
    let given =
        params(&[("format", "geojson"), ("limit", "5"), ("X-Tenant", "blue"), ("minmagnitude", "4.5")]);
    let prepared = plan(&earthquakes(), "get", RECENT, &given).unwrap();
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
    let concrete = plan(&api, "GET", "/v1/events/us%207000", &params(&[])).unwrap();
    let template = plan(&api, "GET", "/v1/events/{id}", &params(&[("id", "us 7000")])).unwrap();
    assert_eq!(concrete, template);
    assert_eq!(concrete.segments, ["v1", "events", "us%207000"]);
    assert_eq!(
        refusal("/v1/events/7", &[("id", "7")]),
        "`id` is given twice: in the path and in `params`; give it once"
    );
    assert_eq!(refusal("/v1/events/{id}", &[]), "missing `id`");
}

#[test]
fn a_value_in_a_template_stays_one_segment() {
    let api = earthquakes();
    let base = Url::parse("https://api.example/x").unwrap();
    let url = |value| {
        let prepared = plan(&api, "GET", "/v1/events/{id}", &params(&[("id", value)])).unwrap();
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
    let dots = plan(&api, "POST", "/open/.{name}", &params(&[("name", ".")]));
    assert!(dots.is_err(), "{dots:?}");
}

#[test]
fn a_query_cannot_be_extended_by_a_value() {
    let given = params(&[("name", "n"), ("a&b", "1&admin=true#x"), ("ü", "a b+c")]);
    let prepared = plan(&earthquakes(), "POST", "/open/.{name}", &given).unwrap();
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
fn a_description_that_contradicts_itself_is_refused_at_registration() {
    let path = |name| parameter(name, Place::Path, Schema::string(), true);
    let query = |name| parameter(name, Place::Query, Schema::string(), false);
    let header = |name| parameter(name, Place::Header, Schema::string(), false);
    for (template, parameters, reason) in [
        ("/a", vec![path("id")], "path template"),
        ("/{id}", vec![query("id")], "path template"),
        ("/{id}", vec![path("id"), path("id")], "declared twice"),
        ("/a", vec![query("")], "needs a name"),
        ("/a", vec![header("Authorization")], "never passed on"),
        ("/a", vec![header("X-Forwarded-For")], "never passed on"),
        ("/a", vec![header("x_tenant")], "never passed on"),
        ("/a", vec![header("Content-Type")], "never passed on"),
        ("/a", vec![header("X-A"), header("x-a")], "declared twice"),
    ] {
        let error =
            Api::new(described(vec![operation(Method::Get, template, parameters)])).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_base_path_is_kept_with_and_without_its_slash() {
    let api =
        Api::new(described(vec![operation(Method::Get, "/", vec![]), operation(Method::Get, "/a/", vec![])]))
            .unwrap();
    for (base, path, expected) in [
        ("http://h", "/", "http://h/"),
        ("http://h/", "/a/", "http://h/a/"),
        ("http://h/b", "/", "http://h/b/"),
        ("http://h/b/", "/a/", "http://h/b/a/"),
        ("http://h:8080/b/c%20d", "/a/", "http://h:8080/b/c%20d/a/"),
    ] {
        let prepared = plan(&api, "GET", path, &params(&[])).unwrap();
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
        let open = |path| Operation { any_params: true, ..operation(Method::Get, path, vec![]) };
        let api = Api::new(described(vec![
            open("/v1/events/{id}"),
            open("/{a}/x.{b}"),
            open("/{a}"),
        ])).unwrap();
        let base = Url::parse(base).unwrap();
        let given = params(&[("id", &value), ("a", &value), ("b", &value)]);
        for (path, given) in [(path.as_str(), &params(&[("q", &value)])), ("/v1/events/{id}", &given), ("/{a}/x.{b}", &given), ("/{a}", &given)] {
            let Ok(prepared) = plan(&api, "GET", path, given) else { continue };
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
        let _ = Routes::new(&[Route { method: Method::Get, template, operation: 0 }]);
    }
}
