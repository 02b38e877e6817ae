//! The promises of routing, as tables.

use super::*;

fn routes(list: &[(&str, &str)]) -> Routes {
    let routes: Vec<_> = list
        .iter()
        .enumerate()
        .map(|(operation, (method, template))| {
            let method = Method::parse(method).unwrap();
            Route { method, template: (*template).into(), operation }
        })
        .collect();
    Routes::new(&routes).unwrap()
}

/// What a path leads to: the operation, and the values in the path as `name=value` separated by blanks.
fn found(routes: &Routes, method: &str, path: &str) -> Option<(usize, String)> {
    let routed = routes.find(method, path).ok();
    let operation = routed.as_ref().map(|routed| routed.operation);
    assert_eq!(routes.operation_at(method, path), operation, "{method} {path}");
    let routed = routed?;
    let values = routed.path_values.map_or_else(
        || "template".to_owned(),
        |mut values| {
            values.sort();
            values.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        },
    );
    Some((routed.operation, values))
}

const SERVICE: &[(&str, &str)] = &[
    ("GET", "/users/{id}"),
    ("GET", "/users/me"),
    ("GET", "/users/{id}.json"),
    ("DELETE", "/users/{id}"),
    ("GET", "/v{n}/list"),
    ("GET", "/"),
    ("GET", "/files/{name}.{ext}"),
    ("GET", "/a/{x}-{y}/b"),
    ("GET", "/slash/"),
    ("POST", "/users"),
];

#[test]
fn the_most_specific_route_wins() {
    let routes = routes(SERVICE);
    for (method, path, expected) in [
        ("GET", "/users/42", Some((0, "id=42"))),
        ("get", "/users/me", Some((1, ""))),
        ("GET", "/users/42.json", Some((2, "id=42"))),
        ("GET", "/users/.json", Some((0, "id=.json"))),
        ("DELETE", "/users/me", Some((3, "id=me"))),
        ("GET", "/v2/list", Some((4, "n=2"))),
        ("GET", "/v/list", None),
        ("GET", "/", Some((5, ""))),
        ("GET", "/files/a.tar.gz", Some((6, "ext=tar.gz name=a"))),
        ("GET", "/files/..gz", Some((6, "ext=gz name=."))),
        ("GET", "/a/1-2/b", Some((7, "x=1 y=2"))),
        ("GET", "/a/1--2/b", Some((7, "x=1 y=-2"))),
        ("GET", "/a/-2/b", None),
        ("GET", "/slash/", Some((8, ""))),
        ("GET", "/slash", None),
        ("GET", "/users/", None),
        ("GET", "/users/a%20b", Some((0, "id=a b"))),
        ("GET", "/users/%7Bid%7D", Some((0, "id={id}"))),
        ("GET", "/users/ü", Some((0, "id=ü"))),
        ("GET", "/users/{id}", Some((0, "template"))),
        ("GET", "/a/{x}-{y}/b", Some((7, "template"))),
    ] {
        let expected = expected.map(|(operation, values)| (operation, values.to_owned()));
        assert_eq!(found(&routes, method, path), expected, "{method} {path}");
    }
}

#[test]
fn half_a_template_is_no_value() {
    let routes = routes(&[("GET", "/a/{x}/b/{y}")]);
    assert_eq!(found(&routes, "GET", "/a/{x}/b/7"), None);
    assert_eq!(found(&routes, "GET", "/a/6/b/7"), Some((0, "x=6 y=7".into())));
}

#[test]
fn a_path_with_more_than_one_meaning_is_refused() {
    let routes = routes(&[("GET", "/{a}"), ("GET", "/{a}/{b}"), ("GET", "/{a}/{b}/{c}")]);
    use BadPath::{BadEscape, Control, DotSegment, EmptySegment, EncodedSeparator, Forbidden, NotAbsolute};
    for (path, expected) in [
        ("", NotAbsolute),
        ("users", NotAbsolute),
        ("http://other/users", NotAbsolute),
        ("//other/users", EmptySegment),
        ("/a//b", EmptySegment),
        ("/a\\b", Forbidden('\\')),
        ("/a?x=1", Forbidden('?')),
        ("/a#b", Forbidden('#')),
        ("/a\n", Control),
        ("/a\u{7f}", Control),
        ("/a\u{85}", Control),
        ("/%", BadEscape("%".into())),
        ("/%2", BadEscape("%2".into())),
        ("/%zz", BadEscape("%zz".into())),
        ("/%+1", BadEscape("%+1".into())),
        ("/%ff", BadEscape("%ff".into())),
        ("/%c0%ae%c0%ae", BadEscape("%c0%ae%c0%ae".into())),
        ("/.", DotSegment),
        ("/..", DotSegment),
        ("/a/../b", DotSegment),
        ("/a/%2e%2E/b", DotSegment),
        ("/a/.%2e", DotSegment),
        ("/a/..;x=1/b", DotSegment),
        ("/a/..%3bx/b", DotSegment),
        ("/a%2fb", EncodedSeparator),
        ("/a%5Cb", EncodedSeparator),
        ("/a%00", EncodedSeparator),
        ("/a%0d%0aHost:x", EncodedSeparator),
    ] {
        assert_eq!(routes.find("GET", path), Err(RouteError::BadPath(expected)), "{path:?}");
    }
    // Decoded once, never twice: this is a name that contains a percent sign.
    assert_eq!(found(&routes, "GET", "/%252e%252e"), Some((0, "a=%2e%2e".into())));
}

#[test]
fn an_unknown_path_is_told_from_a_wrong_method() {
    let routes = routes(SERVICE);
    let error = routes.find("PUT", "/users/42").unwrap_err();
    let allowed = vec!["GET".to_owned(), "DELETE".to_owned()];
    assert_eq!(
        error,
        RouteError::MethodNotAllowed { method: "PUT".into(), path: "/users/{id}".into(), allowed }
    );
    assert_eq!(error.to_string(), "/users/{id} has no PUT, only GET, DELETE");
    // The path matches two templates, which both have GET: it is said once.
    let error = routes.find("PUT", "/users/me").unwrap_err();
    assert_eq!(error.to_string(), "/users/me has no PUT, only GET, DELETE");
    let error = routes.find("GET", "/user/42").unwrap_err();
    assert_eq!(error.to_string(), "no operation has the path /user/42; did you mean /users/{id}?");
    let error = routes.find("GET", "/entirely/other/things/here").unwrap_err();
    assert_eq!(error.to_string(), "no operation has the path /entirely/other/things/here");
}

#[test]
fn a_template_that_cannot_be_routed_is_refused_at_registration() {
    for template in [
        "users", "", "//", "/a//b", "/{", "/}", "/{}", "/{a", "/a}", "/{a}{b}", "/{a}/{a}", "/{a/b}", "/a?b",
        "/a#b", "/%41", "/..", "/a/./b", "/{+path}", "/{a b}", "/a\\b", "/..;x",
    ] {
        let route = Route { method: Method::Get, template: template.into(), operation: 0 };
        assert!(matches!(Routes::new(&[route]), Err(TemplateError::Malformed { .. })), "{template}");
    }
}

#[test]
fn two_operations_cannot_answer_the_same_paths() {
    let route = |template: &str| Route { method: Method::Get, template: template.into(), operation: 0 };
    assert!(matches!(
        Routes::new(&[route("/users/{id}"), route("/users/{name}")]),
        Err(TemplateError::Duplicate { .. })
    ));
    assert!(Routes::new(&[route("/users/{id}"), route("/users/{id}.json"), route("/users/x")]).is_ok());
}

#[test]
fn a_hint_is_looked_for_in_bounded_work() {
    let others: Vec<String> = (0..2_000).map(|n| format!("/some/path/of/another/kind/{n:04}")).collect();
    let alike = "/a/path/that/was/nearly/right/now";
    let all = || others.iter().map(String::as_str);
    let meant = "/a/path/that/was/nearly/wrong/now";
    assert_eq!(nearest(meant, all().take(200).chain([alike])), Some(alike));
    assert_ne!(
        nearest(meant, all().chain([alike])),
        Some(alike),
        "a million characters were compared before"
    );
    // What is far too long or short is not compared.
    let long: Vec<String> = (0..2_000).map(|n| format!("/{n:0100}")).collect();
    assert_eq!(nearest(meant, long.iter().map(String::as_str).chain([alike])), Some(alike));
}
