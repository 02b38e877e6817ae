//! Media types (RFC 9110, 8.3.1): descriptions and content types name the same one in several ways.

/// Returns the media type that a content type names, without its parameters and as it is written.
pub fn without_parameters(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Returns the same in lower case, in which media types are compared.
pub fn essence(content_type: &str) -> String {
    without_parameters(content_type).to_ascii_lowercase()
}

/// Tells whether a body of this content type is JSON: `application/json`, or of a type that is written as JSON (RFC 6839,
/// 3.1).
pub fn is_json(content_type: &str) -> bool {
    let essence = essence(content_type);
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// Tells whether a body of this content type is text: one that is neither text nor JSON is bytes.
pub fn is_text(content_type: &str) -> bool {
    /// Texts that are not called so.
    const TEXTS: &[&str] = &[
        "application/xml",
        "application/x-ndjson",
        "application/yaml",
        "application/x-yaml",
        "application/graphql",
    ];
    let essence = essence(content_type);
    essence.starts_with("text/") || essence.ends_with("+xml") || TEXTS.contains(&essence.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_is_the_same_in_every_case_and_with_every_parameter() {
        for (written, media_type, json) in [
            ("application/json", "application/json", true),
            (" Application/Problem+JSON ; charset=utf-8", "application/problem+json", true),
            ("text/html; charset=\"a;b\"", "text/html", false),
            ("image/svg+json", "image/svg+json", false),
            ("", "", false),
        ] {
            assert_eq!((essence(written).as_str(), is_json(written)), (media_type, json), "{written}");
        }
        assert_eq!(without_parameters("Text/HTML;q=1"), "Text/HTML");
    }

    #[test]
    fn texts_are_told_from_bytes_however_their_type_is_written() {
        for written in
            ["Text/CSV; charset=utf-8", "image/svg+xml", "application/XML", "Application/YAML; v=1"]
        {
            assert!(is_text(written), "{written}");
        }
        for written in ["image/png", "application/octet-stream", "multipart/form-data; boundary=text/x", ""] {
            assert!(!is_text(written), "{written}");
        }
    }
}
