//! JSON in lines for people, of which no more is written than is shown.
//!
//! What lies deep is indented in each of its lines, so that half a megabyte would become a hundred.

use std::io::{self, Write};

use serde_json::Value;

/// The beginning of a JSON text in lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pretty {
    /// At most as many bytes as were asked for.
    pub text: String,
    pub is_cut: bool,
}

/// Writes `json` in lines, as far as `bytes_max`.
#[must_use]
pub fn pretty(json: &Value, bytes_max: usize) -> Pretty {
    let mut beginning = Beginning { bytes: Vec::new(), bytes_max };
    // The only error there is: it is full.
    let is_cut = serde_json::to_writer_pretty(&mut beginning, json).is_err();
    Pretty { text: whole_characters(beginning.bytes), is_cut }
}

/// Text without the half of a character that may stand at its end.
fn whole_characters(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let whole = error.utf8_error().valid_up_to();
        String::from_utf8_lossy(&error.as_bytes()[..whole]).into_owned()
    })
}

/// Takes what is written until it is full.
struct Beginning {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = &bytes[..bytes.len().min(self.bytes_max - self.bytes.len())];
        self.bytes.extend_from_slice(taken);
        // Nothing taken tells the writer to stop.
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
