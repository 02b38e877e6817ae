//! What generated code promises in every language; that it compiles and runs is shown by the tests of the whole.

#[path = "../../src/testing/arbitrary.rs"]
mod arbitrary;
mod hostile;
mod names;
mod plain;
#[path = "../../src/testing/samples.rs"]
mod samples;
mod texts;
mod types;
mod upload;

use farthing_bridge::openapi;

use super::*;

const ID: &str = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";

fn options() -> Options {
    Options {
        service_id: ID.to_owned(),
        service_name: "Quakes & more".to_owned(),
        price: "0.002".to_owned(),
        ..Options::default()
    }
}

/// Everything that makes generators stumble.
fn nasty() -> ApiDescription {
    openapi::read(include_bytes!("tests/nasty.json")).expect("it is valid").description
}

/// The same with operations up to this number.
fn many(count: usize) -> ApiDescription {
    texts::many(nasty(), count)
}

fn all_text(sdk: &Sdk) -> String {
    sdk.files.iter().map(|file| format!("# {}\n{}", file.path, file.text)).collect()
}

#[test]
fn every_language_makes_a_package_and_a_single_file_of_every_description() {
    for description in [nasty(), samples::rest(), samples::graphql(), ApiDescription::default()] {
        for language in Language::all() {
            let package = generate(&description, language, &options()).unwrap();
            assert!(package.files.iter().any(|file| file.path == "README.md"), "{language}");
            assert!(all_text(&package).contains(ID), "{language} lacks the service");
            let single =
                generate(&description, language, &Options { single_file: true, ..options() }).unwrap();
            assert_eq!(single.files.len(), 1, "{language}");
            assert!(single.files[0].text.contains(ID), "{language}");
        }
    }
}

#[test]
fn the_same_description_gives_the_same_bytes() {
    for language in Language::all() {
        assert_eq!(
            generate(&nasty(), language, &options()),
            generate(&nasty(), language, &options()),
            "{language}"
        );
    }
}

#[test]
fn the_code_of_300_operations_and_of_the_demos_services_stays_small() {
    const OPERATIONS: usize = 300;
    let quakes = include_bytes!("../../../demo-services/src/earthquakes/openapi.json");
    let planets = include_bytes!("../benches/planets.graphql");
    let described = |text: &[u8]| farthing_bridge::read(text).expect("it is valid").description;
    // What changes something is not for sale in the demo.
    let mut planets = described(planets);
    planets.operations.retain(|operation| operation.method == description::Method::Get);
    assert_eq!(planets.operations.len(), 9);
    assert_eq!(many(OPERATIONS).operations.len(), OPERATIONS);
    for description in [many(OPERATIONS), nasty(), described(quakes), planets] {
        for language in Language::all() {
            let sdk = generate(&description, language, &options()).unwrap();
            let bytes: usize = sdk.files.iter().map(|file| file.text.len()).sum();
            // Kilobytes of a thousand bytes, one of them since bodies are bytes; what walks through the pages of an operation is no further one.
            let bytes_max = 61_000 + description.operations.len() * 1_500;
            assert!(
                bytes <= bytes_max,
                "{language}, {}: {bytes} bytes, at most {bytes_max}",
                description.title
            );
        }
    }
}

#[test]
fn every_language_walks_through_pages_and_has_nothing_for_it_where_there_are_none() {
    let quakes = include_bytes!("../../../demo-services/src/earthquakes/openapi.json");
    let quakes = farthing_bridge::read(quakes).expect("it is valid").description;
    let speaks_of_pages = |description: &ApiDescription, language| {
        let text = all_text(&generate(description, language, &options()).unwrap()).to_lowercase();
        let words = ["iterate", "maxpages", "max_pages", "pageoptions", "page_options"];
        words.into_iter().filter(|word| text.contains(word)).collect::<Vec<_>>()
    };
    for language in Language::all() {
        assert!(speaks_of_pages(&nasty(), language).len() > 1, "{language}");
        assert_eq!(speaks_of_pages(&quakes, language), [""; 0], "{language}");
    }
}

#[test]
fn a_file_has_its_place_below_the_folder() {
    for package in [None, Some("@scope/quakes"), Some("example.com/quakes"), Some("Quakes")] {
        let options = Options { package: package.map(str::to_owned), ..options() };
        for language in Language::all() {
            for file in generate(&nasty(), language, &options).unwrap().files {
                let steps: Vec<_> = file.path.split('/').collect();
                assert!(!steps.iter().any(|step| matches!(*step, "" | "." | "..")), "{}", file.path);
                assert!(file.text.is_empty() || file.text.ends_with('\n'), "{} of {language}", file.path);
            }
        }
    }
}

#[test]
fn a_package_cannot_be_called_just_anything() {
    for name in ["", "..", "a/../b", "/a", "a b", "1st", "a/1", "a\"", "größe", "a/", "-a", &"x".repeat(101)]
    {
        let options = Options { package: Some(name.to_owned()), ..options() };
        let refused = generate(&nasty(), Language::Python, &options);
        assert_eq!(refused, Err(SdkError::Package(farthing_bridge::shown(name))), "{name}");
    }
}

#[test]
fn a_template_can_be_replaced_and_its_mistakes_are_named() {
    let with = |name: &str, text: &str| {
        let templates = [(name.to_owned(), text.to_owned())].into();
        generate(&nasty(), Language::Python, &Options { templates, ..options() })
    };
    let sdk = with("README.md", "# {{ service.name|md }}\n").unwrap();
    assert_eq!(sdk.files.iter().find(|file| file.path == "README.md").unwrap().text, "# Quakes \\& more\n");
    let unknown = with("readme.md", "").unwrap_err().to_string();
    assert!(unknown.contains("`readme.md`") && unknown.contains("README.md"), "{unknown}");
    for (text, expected) in [
        ("{{ service.name }}", "without a filter"),
        ("{{ service.nam|md }}", "undefined"),
        ("{% for %}", "README.md:1"),
        ("{{ nothing() }}", "nothing"),
    ] {
        let wrong = with("README.md", text).unwrap_err().to_string();
        assert!(wrong.starts_with("the template `README.md`") && wrong.contains(expected), "{wrong}");
    }
}

#[test]
fn every_profile_is_read_and_has_the_templates_that_it_names() {
    for language in Language::all() {
        let profile = language.profile();
        let plain = profile.plain.as_ref().map(|plain| &plain.template);
        let files = profile.files.iter().chain([&profile.single_file]).map(|file| &file.template);
        for named in files.chain([&profile.snippet]).chain(plain) {
            let is_there = profile.templates.iter().any(|template| template.name == *named);
            assert!(is_there, "{language} has no template {named}");
        }
        assert_eq!(profile.plain.is_some(), Language::PLAIN.contains(&language), "{language}");
    }
}

#[test]
fn a_language_is_found_by_its_names_in_any_case() {
    assert_eq!(Language::parse("PYTHON"), Some(Language::Python));
    assert_eq!(Language::parse("cobol"), None);
    for (name, language) in [
        ("c#", Language::CSharp),
        ("cs", Language::CSharp),
        ("py", Language::Python),
        ("ts", Language::TypeScript),
        ("JS", Language::JavaScript),
        ("golang", Language::Go),
        ("rs", Language::Rust),
        ("kt", Language::Kotlin),
        ("rb", Language::Ruby),
        ("sh", Language::Shell),
    ] {
        assert_eq!(Language::parse(name), Some(language), "{name}");
    }
    assert!(Language::all().all(|language| Language::parse(language.name()) == Some(language)));
}

#[test]
fn a_snippet_is_typed_where_the_values_fit_and_text_otherwise() {
    let description = samples::rest();
    let index = description.operations.iter().position(|operation| operation.id == "listPlanets").unwrap();
    let snippet = |values: &[(&str, &str)], body: Option<&str>| {
        let values = values.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let body = body.map(SnippetBody::Text);
        snippet(&description, index, &values, body, Language::Python, &options()).unwrap().unwrap()
    };
    assert!(snippet(&[("limit", "5")], None).contains("client.list_planets(limit=5)"));
    let untyped = snippet(&[("limit", "5"), ("names", "a,\"b\"")], None);
    assert!(untyped.contains("client.call(\n    \"GET\",\n    \"/planets\","), "{untyped}");
    assert!(untyped.contains("\"names\": \"a,\\\"b\\\"\","), "{untyped}");
    for language in Language::all() {
        for index in 0..description.operations.len() {
            let body = Some(SnippetBody::Text("{}"));
            let code = super::snippet(&description, index, &BTreeMap::new(), body, language, &options());
            assert!(code.unwrap().is_some(), "{language}");
        }
    }
}

#[test]
fn a_readme_shows_code_as_code_and_everything_else_as_text() {
    let with = |text: &str, filter: &str| {
        let templates = [("README.md".to_owned(), format!("{{{{ service.name|{filter} }}}}\n"))].into();
        let options = Options { templates, service_name: text.to_owned(), ..options() };
        generate(&nasty(), Language::Python, &options).unwrap().files[0].text.clone()
    };
    for (text, filter, expected) in [
        ("see `metadata.source` and `a_b|c` *now*", "md", "see `metadata.source` and `a_b\\|c` \\*now\\*\n"),
        ("one ` alone", "md", "one \\` alone\n"),
        ("two `` in a row", "md", "two \\`\\` in a row\n"),
        ("`a``b`", "md", "\\`a\\`\\`b\\`\n"),
        ("`a` <b>", "md", "`a` \\<b\\>\n"),
        ("/things/{id}|x", "code", "`/things/{id}\\|x`\n"),
        ("a`b", "code", "a\\`b\n"),
    ] {
        assert_eq!(with(text, filter), expected, "{text}");
    }
}
