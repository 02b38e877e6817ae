//! The code is the same whatever the texts are, and holds them unharmed.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{Language, PlainCall, plain};

const SERVICE: &str = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";

fn of(language: Language, value: &str, body: Option<Value>) -> String {
    let params = [("name".to_owned(), value.to_owned())];
    let call = PlainCall {
        gateway: "https://localhost:3000",
        service: SERVICE,
        method: "GET",
        path: "/v1/things/{id}",
        params: &params,
        body,
        content_type: None,
    };
    plain(&call, language).unwrap().unwrap()
}

#[test]
fn every_language_has_the_call_the_secret_and_the_trust() {
    for language in Language::PLAIN {
        let code = of(language, "Ada", Some(json!({ "a": [1, true, null, {}] })));
        for part in
            [SERVICE, "/v1/things/{id}", "Ada", "CONSUMER_SECRET", "FARTHING_CA_FILE", "internal/call"]
        {
            assert!(code.contains(part), "{} has no {part}:\n{code}", language.name());
        }
    }
    let call = PlainCall {
        gateway: "http://localhost:3000",
        service: SERVICE,
        method: "GET",
        path: "/a",
        params: &[],
        body: None,
        content_type: None,
    };
    for language in Language::PLAIN {
        let code = plain(&call, language).unwrap().unwrap();
        assert!(!code.contains("FARTHING_CA_FILE") && !code.contains("params"), "{code}");
    }
}

#[test]
fn what_could_end_a_literal_is_escaped() {
    const HOSTILE: &str = "'\"`$(id)${x}\\\n\u{202e}*/#\"\"\"";
    for language in Language::PLAIN {
        let code = of(language, HOSTILE, None);
        assert!(!code.contains('\u{202e}'), "{code}");
        // A backtick chooses the other form of literal in Go.
        let harmless = of(language, "`", None);
        let lines = |code: &str| code.lines().count();
        assert_eq!(lines(&code), lines(&harmless), "{}:\n{code}", language.name());
    }
    assert!(of(Language::Shell, "it's", None).contains(r"it'\''s"));
    assert!(of(Language::Kotlin, "$x", None).contains("${'$'}x"));
    assert!(of(Language::Go, "`", None).contains("const call = \"{\\n"));
    assert!(of(Language::Rust, "\"#", None).contains("r##\"{"));
}

#[test]
fn literals_are_those_of_the_language() {
    let body = json!({ "__proto__": null, "b": [true, 1.5, "x"], "c": [] });
    let python = of(Language::Python, "x", Some(body.clone()));
    let written = "    \"body\": {\n        \"__proto__\": None,\n        \"b\": [\n            True,\n            1.5,\n            \
                   \"x\",\n        ],\n        \"c\": [],\n    },\n}\n";
    assert!(python.contains(written), "{python}");
    let code = of(Language::TypeScript, "x", Some(body));
    assert!(code.contains("[\"__proto__\"]: null"), "{code}");
}

proptest! {
    /// What a shell makes of the quotes is the JSON, and the JSON is the call.
    #[test]
    fn the_shell_gets_what_was_typed(value in any::<String>()) {
        let code = of(Language::Shell, &value, None);
        let quoted = code.split("--data-raw ").nth(1).unwrap().trim_end();
        let inner = quoted.strip_prefix('\'').unwrap().strip_suffix('\'').unwrap();
        prop_assert!(!inner.replace(r"'\''", "").contains('\''));
        let read: Value = serde_json::from_str(&inner.replace(r"'\''", "'")).unwrap();
        prop_assert_eq!(read["params"]["name"].as_str().unwrap(), value);
    }

    /// A raw string ends where it is meant to.
    #[test]
    fn raw_strings_end_once(value in any::<String>()) {
        let rust = of(Language::Rust, &value, None);
        let (hashes, rest) = rust.split_once("const CALL: &str = r").unwrap().1.split_once('"').unwrap();
        let end = format!("\"{hashes};");
        let inner = &rest[..rest.find(&format!("\"{hashes}")).unwrap()];
        prop_assert!(rest[inner.len()..].starts_with(&end));
        let read: Value = serde_json::from_str(inner).unwrap();
        prop_assert_eq!(read["params"]["name"].as_str().unwrap(), value.as_str());
        let kotlin = of(Language::Kotlin, &value, None);
        let raw = kotlin.split("\"\"\"").nth(1).unwrap().replace("${'$'}", "$");
        let read: Value = serde_json::from_str(&raw).unwrap();
        prop_assert_eq!(read["params"]["name"].as_str().unwrap(), value);
    }
}
