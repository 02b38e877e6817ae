//! The promises of calls and URLs: tables, and properties over hostile input.

mod bounds;

use proptest::prelude::*;
use url::Url;

use super::*;
use crate::{
    description::{Body, BodyKind, Method, Object, Parameter, Property, Schema, Shape, Style},
    report::Report,
    routing::Route,
};

fn parameter(name: &str, place: Place, schema: Schema, required: bool) -> Parameter {
    Parameter { name: name.into(), place, required, schema, ..Parameter::default() }
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

#[test]
fn whoever_may_read_a_path_may_ask_for_its_head() {
    let api = earthquakes();
    let none = BTreeMap::new();
    let asked = plan(&api, "head", "/v1/events/7", &none).unwrap();
    assert_eq!(asked.method, Method::Head);
    assert_eq!(api.operation_at("HEAD", "/v1/events/7"), api.operation_at("GET", "/v1/events/7"));
    assert!(api.params_of("HEAD", "/v1/events/7", "").unwrap().is_empty());
    let told = plan(&api, "HEAD", "/open/.a", &none).unwrap_err().to_string();
    assert!(told.contains("only POST"), "{told}");
    assert_eq!(api.operation_at("HEAD", "/open/.a"), None);
    let own = operation(Method::Head, "/v1/events/{id}", vec![]);
    let both = Api::new(described(vec![operation(Method::Get, "/v1/events/{event}", vec![]), own])).unwrap();
    assert_eq!(
        both.operation_at("HEAD", "/v1/events/7").unwrap().method,
        Method::Head,
        "its own, at its own price"
    );
}

fn plan(
    api: &Api,
    method: &str,
    path: &str,
    params: &BTreeMap<String, String>,
) -> Result<HttpRequest, PlanError> {
    match api.plan(&Call { method, path, params, content_type: None, body: &[] })?.request {
        Request::Http(request) => Ok(request),
        Request::Graphql(_) => panic!("this is no GraphQL field"),
    }
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

/// Said of a path value with a slash, where the owner shows none.
const SLASHES: &str = "unless the parameter's example has one";

#[test]
fn a_value_in_a_template_stays_one_segment() {
    let api = earthquakes();
    let base = Url::parse("https://api.example/x").unwrap();
    let url = |value| {
        let prepared = plan(&api, "GET", "/v1/events/{id}", &params(&[("id", value)])).unwrap();
        prepared.url(&base).unwrap().to_string()
    };
    assert_eq!(url("a?b#c"), "https://api.example/x/v1/events/a%3Fb%23c");
    for (value, expected) in [
        (".", "a value without the segments . and .., encoded or not"),
        ("..", "a value without the segments . and .., encoded or not"),
        ("..;a", "a value without the segments . and .., encoded or not"),
        ("a/../b", "a value without the segments . and .., encoded or not"),
        ("..\\b", "a value without the segments . and .., encoded or not"),
        ("%2e%2e", "a value without the segments . and .., encoded or not"),
        ("a%2F%2E.", "a value without the segments . and .., encoded or not"),
        ("%zz%2f.%2e", "a value without the segments . and .., encoded or not"),
        ("%252e%252e%252fb", "a value without the segments . and .., encoded or not"),
        ("a/b", SLASHES),
        ("a\\b", SLASHES),
        ("%2f", SLASHES),
        ("a%255Cb", SLASHES),
        ("", "a value that is not empty"),
        ("a\0", "text without control characters"),
        ("a\r\nb", "text without control characters"),
    ] {
        let refusal = refusal("/v1/events/{id}", &[("id", value)]);
        assert!(refusal.ends_with(expected), "{value:?}: {refusal}");
    }
    // A literal and a value that together are a segment of dots.
    for dot in [".", "%2e", ";%2e", "%252E;a"] {
        let dots = plan(&api, "POST", "/open/.{name}", &params(&[("name", dot)]));
        assert!(dots.is_err(), "{dots:?}");
    }
}

#[test]
fn a_value_in_a_template_makes_no_request_of_another_operation() {
    let get = |path: &str| operation(Method::Get, path, vec![]);
    let mut description = described(vec![
        get("/users/{id}"),
        get("/users/export"),
        get("/users/{id}/admin"),
        get("/files/{name}"),
        get("/files/{name}.json"),
        get("/r/{a}-{b}"),
        get("/r/{a}-full-{b}"),
    ]);
    // Its owner knows of values with slashes.
    for operation in &mut description.operations {
        let names = operation.path.split('{').skip(1).filter_map(|part| part.split('}').next());
        let shown = |name| Parameter {
            example: Some("a/b".into()),
            ..parameter(name, Place::Path, Schema::string(), true)
        };
        operation.parameters = names.map(shown).collect();
    }
    let api = Api::new(description).unwrap();
    for (path, given, other) in [
        ("/users/{id}", [("id", "export")].as_slice(), "/users/export"),
        ("/users/{id}", &[("id", "7/admin")], "/users/{id}/admin"),
        ("/users/{id}", &[("id", "export/")], "/users/export"),
        ("/users/{id}", &[("id", "/export")], "/users/export"),
        ("/users/{id}", &[("id", "7//admin;x=1")], "/users/{id}/admin"),
        ("/users/{id}", &[("id", "7%2Fadmin")], "/users/{id}/admin"),
        ("/users/{id}", &[("id", "7\\admin")], "/users/{id}/admin"),
        ("/users/7%252Fadmin", &[], "/users/{id}/admin"),
        ("/files/{name}", &[("name", "x.json")], "/files/{name}.json"),
        ("/r/{a}-{b}", &[("a", "1"), ("b", "full-2")], "/r/{a}-full-{b}"),
    ] {
        let refused = plan(&api, "GET", path, &params(given)).unwrap_err().to_string();
        assert!(refused.contains(&format!("as {other}, which has its own price")), "{refused}");
    }
    for (path, given) in [
        ("/users/{id}", [("id", "exports")].as_slice()),
        ("/users/{id}", &[("id", "7/export")]),
        ("/files/{name}.json", &[("name", "x")]),
        ("/r/{a}-full-{b}", &[("a", "1"), ("b", "2")]),
    ] {
        assert!(plan(&api, "GET", path, &params(given)).is_ok(), "{path} {given:?}");
    }
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
fn a_choice_with_a_slash_lets_it_into_a_path() {
    let units = Schema { choices: vec!["km".into(), "km/h".into()], ..Schema::string() };
    let unit = parameter("unit", Place::Path, units, true);
    let api = Api::new(described(vec![operation(Method::Get, "/speeds/{unit}", vec![unit])])).unwrap();
    let prepared = plan(&api, "GET", "/speeds/{unit}", &params(&[("unit", "km/h")])).unwrap();
    assert!(prepared.url(&Url::parse("http://h").unwrap()).unwrap().as_str().ends_with("/speeds/km%2Fh"));
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

fn planets() -> Api {
    let sdl = b"type Query { planets(limit: Int, names: [String!]): [Planet!]! notes: [String!] }
        type Mutation { notes(text: String!): String }
        type Planet { name: String! mass: Float }";
    let mut report = Report::default();
    let schema = graphql::sdl::read(sdl).unwrap().schema;
    let mut description = graphql::describe(schema, "planets", &mut report);
    description.operations.push(operation(Method::Get, "/about", vec![]));
    Api::new(description).unwrap()
}

#[test]
fn fields_chosen_in_a_query_string_are_those_of_the_query() {
    let api = planets();
    for query in
        ["fields=name,mass", "fields=name%2Cmass", "fields=name&fields=mass", "fields[]=name&fields[]=mass"]
    {
        let params = api.params_of("GET", "/planets", query).unwrap();
        let call = Call { method: "GET", path: "/planets", params: &params, content_type: None, body: b"" };
        let Request::Graphql(request) = api.plan(&call).unwrap().request else { panic!("{query}") };
        assert_eq!(request.query, "query{planets{name mass}}", "{query}");
    }
}

#[test]
fn a_graphql_query_is_reached_by_get_and_by_post_with_a_body() {
    let api = planets();
    let plan = |method, path, pairs: &[(&str, &str)], content_type, body: &[u8]| {
        let params = params(pairs);
        let planned = api.plan(&Call { method, path, params: &params, content_type, body })?;
        match planned.request {
            Request::Graphql(request) => {
                Ok::<_, PlanError>((api.description().operations[planned.operation].id.clone(), request))
            }
            Request::Http(_) => panic!("this is a GraphQL field"),
        }
    };
    let by_get = plan("GET", "/planets", &[("limit", "5")], None, b"").unwrap();
    let by_post =
        plan("POST", "/planets", &[], Some("application/json; charset=utf-8"), b"{\"limit\":5}").unwrap();
    assert_eq!(by_get, by_post);
    assert_eq!(by_get.1.query, "query($limit: Int){planets(limit:$limit){name mass}}");
    assert_eq!(by_get.1.variables, "{\"limit\":5}");
    // A mutation has the path: its method is its own.
    let posted = plan("POST", "/notes", &[], None, b"{\"text\":\"a\"}").unwrap();
    assert!(posted.1.query.starts_with("mutation"), "{}", posted.1.query);
    assert!(plan("GET", "/notes", &[], None, b"").unwrap().1.query.starts_with("query"));
    for (method, path, pairs, content_type, body, expected) in [
        ("GET", "/planets", &[][..], None, &b"{}"[..], "GET takes no body"),
        ("POST", "/planets", &[], Some("text/plain"), b"{}", "must be application/json"),
        ("POST", "/about", &[], None, b"", "/about has no POST, only GET"),
        ("PUT", "/planets", &[], None, b"", "/planets has no PUT, only GET, POST"),
        ("GET", "/planets", &[("limt", "5")], None, b"", "did you mean `limit`?"),
        ("GET", "/planets", &[("limit", "7.0")], None, b"", "`limit` is `7.0`, expected"),
        ("GET", "/planet", &[], None, b"", "did you mean /planets?"),
    ] {
        let error = plan(method, path, pairs, content_type, body).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let params = api.params_of("GET", "/planets", "limit=5&names=a,b&names=c").unwrap();
    assert_eq!(params["names"], r#"["a","b","c"]"#);
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
    fn what_a_url_says_is_what_was_given(
        text in prop_oneof![hostile(), "\\PC{0,12}"],
        words in prop::collection::vec(prop_oneof![hostile(), "\\PC{0,6}"], 1..4),
        number in any::<i64>(),
        style in prop::sample::select(vec![Style::Comma, Style::Exploded, Style::Space, Style::Pipe, Style::DeepObject, Style::Json]),
    ) {
        let property = |name: &str, schema| Property { name: name.into(), required: false, schema };
        let object = Object {
            properties: vec![property("text", Schema::string()), property("n", Schema::integer())],
            ..Object::default()
        };
        let mut parameters = vec![
            parameter("one", Place::Query, Schema::string(), false),
            parameter("words", Place::Query, Schema::array(Schema::string()), false),
            parameter("object", Place::Query, Schema::of(Shape::Object(object)), false),
        ];
        for parameter in &mut parameters[1..] {
            parameter.style = style;
        }
        let api = Api::new(described(vec![operation(Method::Get, "/a", parameters)])).unwrap();
        let list = serde_json::to_string(&words).unwrap();
        let number = number.to_string();
        let given = params(&[("one", &text), ("words", &list), ("object.text", &text), ("object.n", &number)]);
        // Items that hold a delimiter which cannot be told apart are refused.
        if let Ok(request) = plan(&api, "GET", "/a", &given) {
            let read = api.params_of("GET", "/a", &request.query).unwrap();
            prop_assert_eq!(&read["one"], &text);
            prop_assert_eq!(&read["words"], &list);
            if style != Style::Json {
                prop_assert_eq!(&read["object.text"], &text);
                prop_assert_eq!(&read["object.n"], &number);
            }
            prop_assert_eq!(plan(&api, "GET", "/a", &read).unwrap(), request);
        } else {
            let delimiter = match style { Style::Space => ' ', Style::Pipe => '|', _ => '\0' };
            prop_assert!(words.concat().contains(delimiter) || text.contains(delimiter), "{words:?} {text}");
        }
    }

    #[test]
    fn no_query_string_panics_the_reader(query in prop_oneof![hostile(), "[a-f&=\\[\\]%.,+0-9]{0,40}", "\\PC{0,30}"]) {
        let api = earthquakes();
        let _ = api.params_of("GET", RECENT, &query);
    }

    #[test]
    fn no_template_panics_the_reader(template in prop_oneof![hostile(), ".{0,30}"]) {
        let _ = Routes::new(&[Route { method: Method::Get, template, operation: 0 }]);
    }
}
