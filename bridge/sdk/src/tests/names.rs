//! Names: cases, words that are taken, collisions, other alphabets, and what is said about it.

use super::*;
use crate::{names::Scope, profile::Case};

fn named(case: Case, wanted: &[&str]) -> (Vec<String>, Vec<String>) {
    let mut warnings = Vec::new();
    let mut scope = Scope::new(case, false, &[&["class", "Client", "list"]]);
    let names = wanted.iter().map(|name| scope.name(name, "value", "the thing", &mut warnings)).collect();
    (names, warnings)
}

#[test]
fn names_are_written_in_the_case_of_the_language() {
    for (case, expected) in [
        (Case::Snake, ["list_planets", "x_epoch", "http_url", "grosse", "n1st", "class_", "a"]),
        (Case::Camel, ["listPlanets", "xEpoch", "httpUrl", "grosse", "n1st", "class_", "a"]),
        (Case::Pascal, ["ListPlanets", "XEpoch", "HttpUrl", "Grosse", "N1st", "Class", "A"]),
        (Case::PascalInitials, ["ListPlanets", "XEpoch", "HTTPURL", "Grosse", "N1st", "Class", "A"]),
        (Case::Shouty, ["LIST_PLANETS", "X_EPOCH", "HTTP_URL", "GROSSE", "N1ST", "CLASS", "A"]),
    ] {
        let wanted = ["listPlanets", "X-Epoch", "HTTPUrl", "größe", "1st", "class", "__a__"];
        assert_eq!(named(case, &wanted).0, expected, "{case:?}");
    }
}

#[test]
fn each_rename_is_told_and_no_name_is_given_twice() {
    let (names, warnings) =
        named(Case::Snake, &["a-b", "a_b", "aB", "a b 2", "class", "+1", "-1", "\u{7}\"", "ok"]);
    assert_eq!(names, ["a_b", "a_b2", "a_b3", "a_b_2", "class_", "plus_1", "minus_1", "value", "ok"]);
    assert_eq!(
        warnings,
        [
            "the thing `a_b` is called `a_b2`",
            "the thing `aB` is called `a_b3`",
            "the thing `class` is called `class_`",
            "the thing `\"` is called `value`",
        ]
    );
}

#[test]
fn a_stranger_with_many_equal_names_is_served_in_time() {
    let names: Vec<String> = (0..20_000).map(|_| "x".repeat(200)).collect();
    let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
    let (names, _) = named(Case::Snake, &wanted);
    assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), 20_000);
    assert!(names.iter().all(|name| name.len() < 80));
}

#[test]
fn a_package_has_a_name_in_every_spelling() {
    let of = |name: &str, package: Option<&str>| {
        let options = Options {
            service_name: name.to_owned(),
            package: package.map(str::to_owned),
            ..Options::default()
        };
        let package = crate::names::Package::new(&options, &ApiDescription::default()).unwrap();
        [package.name, package.kebab, package.snake, package.pascal, package.flat].join(" ")
    };
    assert_eq!(
        of("USGS Earthquakes", None),
        "usgs-earthquakes usgs-earthquakes usgs_earthquakes UsgsEarthquakes usgsearthquakes"
    );
    assert_eq!(of("3 Größen!", None), "n3-grossen n3-grossen n3_grossen N3Grossen n3grossen");
    assert_eq!(of("", None), "service service service Service service");
    assert_eq!(of("Class", None), "class-sdk class-sdk class_sdk ClassSdk classsdk");
    assert_eq!(of("x", Some("@me/Quakes")), "@me/Quakes quakes quakes Quakes quakes");
}
