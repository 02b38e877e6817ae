//! Strangers' texts on their way to an agent, and the arguments that an agent sends.

use farthing_bridge::is_deceptive;
use farthing_mcp::{
    arguments::{CallArguments, read},
    text::{bounded, clean, whole_value},
    tools::ToolName,
};
use serde_json::Value;

const TEXT_BYTES_MAX: usize = 200;
const ROOM: usize = 1_000;

pub(super) const WORDS: &[&str] = &[
    "{", "}", "[", "]", "[],", "\"", ",", ":", "null", "1e308", "\\u001b", "\\u202e", "\\\"", "\\n",
    "\u{200b}", "é",
];

/// A text, and the same as JSON and as the arguments of a call.
pub(super) fn told(bytes: &[u8]) -> bool {
    let shown = clean(&String::from_utf8_lossy(bytes), TEXT_BYTES_MAX);
    assert!(shown.len() <= TEXT_BYTES_MAX + "…".len());
    assert!(is_harmless(&shown), "{shown:?}");
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return false };
    check_texts(&whole_value(value.clone()));
    let mut room = ROOM;
    let cut = bounded(value.clone(), &mut room);
    check_texts(&cut);
    // Quotation marks are written with a backslash.
    assert!(cut.to_string().len() <= 4 * ROOM, "{cut}");
    if let Value::Object(arguments) = value
        && let Ok(arguments) = read::<CallArguments>(ToolName::CallService, Some(arguments))
        && let Ok(request) = arguments.request()
    {
        assert!(request.max_price.is_some(), "no call without a highest price");
    }
    true
}

pub(super) fn known_texts() -> Vec<Vec<u8>> {
    let texts = [
        r#"{"service":"0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b","method":"GET","path":"/a","params":{"n":5,"b":true},"max_price":"0.01","body":{"a":[1.5,null]}}"#,
        "{\"place\":\"Taiwan\\u001b[2J\",\"rows\":[[],{},[\"\u{202e}\"]]}",
        "plain text",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}

fn is_harmless(text: &str) -> bool {
    !text.chars().any(|c| !matches!(c, '\n' | '\t') && is_deceptive(c))
}

fn check_texts(value: &Value) {
    match value {
        Value::String(text) => assert!(is_harmless(text), "{text:?}"),
        Value::Array(items) => items.iter().for_each(check_texts),
        Value::Object(members) => {
            for (name, member) in members {
                assert!(is_harmless(name), "{name:?}");
                check_texts(member);
            }
        }
        _ => (),
    }
}
