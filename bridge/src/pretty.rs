//! JSON in lines for people, of which no more is written than is shown.
//!
//! What lies deep is indented in each of its lines, so that half a megabyte would become a hundred.

use serde_json::Value;

use crate::cut::beginning;

/// The beginning of a JSON text in lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pretty {
    /// At most as many bytes as were asked for.
    pub text: String,
    pub is_cut: bool,
}

/// Writes `json` in lines, as far as `bytes_max`.
pub fn pretty(json: &Value, bytes_max: usize) -> Pretty {
    let (text, is_whole) = beginning(&format_args!("{json:#}"), bytes_max);
    Pretty { text, is_cut: !is_whole }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_lies_deep_is_written_as_far_as_it_is_shown() {
        let deep = format!("{}{}{}", "[".repeat(120), vec!["1"; 400_000].join(","), "]".repeat(120));
        let seen = pretty(&serde_json::from_str(&deep).unwrap(), 10_000);
        assert!(seen.is_cut && seen.text.len() == 10_000);
    }

    #[test]
    fn a_text_ends_behind_a_whole_character() {
        let json = json!({ "é": "é" });
        assert_eq!(pretty(&json, 100), Pretty { text: "{\n  \"é\": \"é\"\n}".to_owned(), is_cut: false });
        assert_eq!(pretty(&json, 6), Pretty { text: "{\n  \"".to_owned(), is_cut: true });
        assert_eq!(pretty(&json, 7).text, "{\n  \"é");
    }
}
