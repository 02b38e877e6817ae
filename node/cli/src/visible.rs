//! Text that deceives nobody on a terminal.

use std::fmt::Write as _;

use farthing_bridge::is_deceptive;

/// `text` with every character that would move a cursor, reorder text or hide written as `\u202e`: seen by people,
/// and in JSON the same character as before. Ends of lines and tabs stay.
pub(super) fn visible(text: &str) -> String {
    escaped(&text.replace("\r\n", "\n"), &['\n', '\t'])
}

/// As [`visible`], on one line: for a cell, which must not begin a new row.
pub(super) fn one_line(text: &str) -> String {
    escaped(text, &[])
}

fn escaped(text: &str, kept: &[char]) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if kept.contains(&c) || !is_deceptive(c) {
            shown.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to memory does not fail.
            let _ = write!(shown, "\\u{unit:04x}");
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_deceive_is_seen_and_json_stays_what_it_was() {
        let hostile = "a\u{202e}b\u{1b}[31m\u{9b}\u{200b}\u{e0041}\u{61c}\tc\r\nd\r";
        let seen = visible(hostile);
        assert_eq!(seen, "a\\u202eb\\u001b[31m\\u009b\\u200b\\udb40\\udc41\\u061c\tc\nd\\u000d");
        assert_eq!(visible(&seen), seen, "nothing is escaped twice");
        assert_eq!(one_line("a\nb\tc"), "a\\u000ab\\u0009c");
        assert_eq!(visible("Erdbeben, 地震, زلزال"), "Erdbeben, 地震, زلزال");
        for pretty in [true, false] {
            let value = serde_json::json!({ "k\u{202e}": [hostile, { "n": 1 }] });
            let text = if pretty { format!("{value:#}") } else { value.to_string() };
            let shown = visible(&text);
            assert!(!shown.chars().any(|c| c != '\n' && is_deceptive(c)), "{shown}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        }
    }
}
