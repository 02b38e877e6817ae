//! Names: cases, words that are taken, collisions, other alphabets, and what is said about it.

use super::*;
use crate::{names::Scope, profile::Case};

fn named(case: Case, wanted: &[&str]) -> (Vec<String>, Vec<String>) {
    let mut warnings = Vec::new();
    let mut scope = Scope::new(case, false, &["class Client list"]);
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

fn package(language: Language, service: &str, given: Option<&str>) -> (package::Package, Vec<String>) {
    let options =
        Options { service_name: service.to_owned(), package: given.map(str::to_owned), ..Options::default() };
    let mut warnings = Vec::new();
    let description = ApiDescription::default();
    let package = package::Package::new(&options, &description, language.profile(), &mut warnings);
    (package.unwrap(), warnings)
}

#[test]
fn a_package_has_a_name_in_every_spelling() {
    let of = |name: &str, given: Option<&str>| {
        let (package, _) = package(Language::JavaScript, name, given);
        [package.name, package.kebab, package.snake, package.pascal, package.flat].join(" ")
    };
    assert_eq!(
        of("USGS Earthquakes", None),
        "usgs-earthquakes usgs-earthquakes usgs_earthquakes UsgsEarthquakes usgsearthquakes"
    );
    assert_eq!(of("3 Größen!", None), "n3-grossen n3-grossen n3_grossen N3Grossen n3grossen");
    assert_eq!(of("", None), "service service service Service service");
    assert_eq!(of("Class", None), "class-sdk class-sdk class_sdk ClassSdk classsdk");
    assert_eq!(of("x", Some("@me/my_quakes")), "@me/my_quakes my-quakes my_quakes MyQuakes myquakes");
}

#[test]
fn a_package_is_called_what_its_language_and_registry_take_and_a_rename_is_told() {
    use Language::{CSharp, Go, Java, JavaScript, Kotlin, Php, Python, Ruby, Rust, Shell, Swift, TypeScript};
    for (language, given, name, snake) in [
        // Capitals, slashes and Node's own modules are no names in npm; scopes are.
        (JavaScript, "quakes", "quakes", "quakes"),
        (JavaScript, "my_quakes", "my_quakes", "my_quakes"),
        (JavaScript, "@me/quakes", "@me/quakes", "quakes"),
        (JavaScript, "@Me/Quakes", "@me/quakes", "quakes"),
        (TypeScript, "UPPER", "upper", "upper"),
        (TypeScript, "a/b", "b", "b"),
        (TypeScript, "fs", "fs-sdk", "fs_sdk"),
        (TypeScript, "@me/http", "@me/http-sdk", "http_sdk"),
        // Go's own modules have no dot in their first part.
        (Go, "quakes", "quakes", "quakes"),
        (Go, "example.com/quakes", "example.com/quakes", "quakes"),
        (Go, "example.com/Me/quakes", "example.com/Me/quakes", "quakes"),
        (Go, "example.com/quakes/v2", "example.com/quakes/v2", "quakes"),
        (Go, "example.com/range", "example.com/range-sdk", "range_sdk"),
        (Go, "std", "std-sdk", "std_sdk"),
        (Go, "net/quakes", "quakes", "quakes"),
        (Go, "@me/quakes", "me/quakes", "quakes"),
        (Java, "switch", "switch-sdk", "switch_sdk"),
        (Java, "example.com/quakes", "quakes", "quakes"),
        (Kotlin, "object", "object-sdk", "object_sdk"),
        (Kotlin, "type-alias", "type-alias-sdk", "type_alias_sdk"),
        (Rust, "crate", "crate-sdk", "crate_sdk"),
        (Rust, "serde_json", "serde-json-sdk", "serde_json_sdk"),
        (Rust, "my_quakes", "my-quakes", "my_quakes"),
        (Python, "json", "json-sdk", "json_sdk"),
        (Python, "asyncio", "asyncio-sdk", "asyncio_sdk"),
        (Python, "lambda", "lambda-sdk", "lambda_sdk"),
        (Python, "Quakes", "quakes", "quakes"),
        (Ruby, "set", "set-sdk", "set_sdk"),
        (Ruby, "net/http", "http-sdk", "http_sdk"),
        // Composer's names have a vendor.
        (Php, "quakes", "farthing-client/quakes", "quakes"),
        (Php, "me/quakes", "me/quakes", "quakes"),
        (Php, "Me/Quakes", "me/quakes", "quakes"),
        (Php, "@me/quakes", "farthing-client/quakes", "quakes"),
        (CSharp, "System", "system-sdk", "system_sdk"),
        (CSharp, "quakes", "quakes", "quakes"),
        (Swift, "Foundation", "foundation-sdk", "foundation_sdk"),
        // Its script would be the example's.
        (Shell, "example", "example-sdk", "example_sdk"),
    ] {
        let (package, warnings) = package(language, "x", Some(given));
        assert_eq!((&*package.name, &*package.snake), (name, snake), "{language} {given}");
        let kept = ["quakes", "my_quakes", "@me/quakes", "me/quakes"].contains(&given) || given == name;
        let expected = format!("the package `{given}` is called `{name}`");
        let is_quiet = kept && !(given.contains('@') && given != name);
        let is_quiet = is_quiet || language == Python && given == "Quakes";
        assert_eq!(warnings, if is_quiet { vec![] } else { vec![expected] }, "{language} {given}");
    }
}
