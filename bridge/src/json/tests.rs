//! The promises of reading JSON: what is refused, and that nothing else changes.

use proptest::prelude::*;

use super::*;

#[test]
fn what_readers_disagree_about_is_refused_with_its_place() {
    for (text, reason, at) in [
        ("", "the text ends too early", 0),
        ("{\"a\":1,\"a\":2}", "a name occurs twice", 7),
        ("{\"a\":1,\"\\u0061\":2}", "a name occurs twice", 7),
        ("[[[[]]]]", "values are nested too deeply", 3),
        ("[1,]", "no JSON value begins", 3),
        ("[1 2]", "a comma or ] is missing", 3),
        ("{\"a\" 1}", "a colon is missing", 5),
        ("{a:1}", "a name in quotes is missing", 1),
        ("{\"a\":1;}", "a comma or } is missing", 6),
        ("01", "no JSON number begins", 0),
        ("1.", "no JSON number begins", 0),
        ("+1", "no JSON value begins", 0),
        ("NaN", "no JSON value begins", 0),
        ("nul", "no JSON value begins", 0),
        ("true false", "something follows the value", 5),
        ("\"a", "a string does not end", 0),
        ("\"\\q\"", "a string has a bad escape", 0),
        ("\"\\ud800\"", "a string has a bad escape", 0),
        ("\"a\nb\"", "a string has a control character", 0),
    ] {
        assert_eq!(Json::parse(text, 3), Err(JsonError { reason, at }), "{text:?}");
    }
    assert!(Json::parse("[[[]]]", 3).is_ok());
}

#[test]
fn a_name_that_occurs_twice_is_found_in_large_objects_too() {
    let names = |last: &str| {
        let members: Vec<_> = (0..40).map(|i| format!("\"n{i}\":{i}")).collect();
        format!("{{{},\"{last}\":0}}", members.join(","))
    };
    assert!(Json::parse(&names("n40"), 1).is_ok());
    for last in ["n0", "n7", "n8", "n9", "n39"] {
        assert_eq!(Json::parse(&names(last), 1).unwrap_err().reason, "a name occurs twice", "{last}");
    }
}

#[test]
fn digits_stay_as_they_were() {
    let text = r#"{"a":[1.10,1e2,-0,123456789012345678901234567890],"b":"ü\n\"","c":null,"d":true}"#;
    assert_eq!(Json::parse(text, 9).unwrap().to_text(), text);
}

#[test]
fn equality_is_of_values() {
    for (text, value, equal) in [
        ("1", "1", true),
        ("1.0", "1", true),
        ("9007199254740993", "9007199254740992", false),
        ("\"1\"", "1", false),
        ("{\"b\":1,\"a\":[null,true]}", "{\"a\":[null,true],\"b\":1.0}", true),
        ("{\"a\":1}", "{\"a\":1,\"b\":1}", false),
        ("[1]", "[1,2]", false),
    ] {
        let value: Value = serde_json::from_str(value).unwrap();
        assert_eq!(Json::parse(text, 9).unwrap().is(&value), equal, "{text} {value}");
    }
}

proptest! {
    #[test]
    fn it_agrees_with_serde_json(text in r#"[\[\]{}:, \t\n"a-c\\u0-9eE.+\-]{0,24}|\PC{0,12}"#) {
        match Json::parse(&text, 64) {
            Ok(json) => {
                // Numbers beyond floating point are the upstream's business.
                if let Ok(value) = serde_json::from_str::<Value>(&text) {
                    prop_assert!(json.is(&value), "{text}");
                    let written = json.to_text();
                    prop_assert_eq!(Json::parse(&written, 64).unwrap(), json);
                }
            }
            Err(error) if error.reason == "a name occurs twice" => {}
            Err(_) => prop_assert!(serde_json::from_str::<Value>(&text).is_err(), "{text}"),
        }
    }
}
