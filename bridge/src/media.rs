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

/// Tells whether a media type, in lower case, is of text: other bodies are bytes.
pub(crate) fn is_text(media_type: &str) -> bool {
    /// Texts that are not called so.
    const TEXTS: &[&str] = &[
        "application/xml",
        "application/x-ndjson",
        "application/yaml",
        "application/x-yaml",
        "application/graphql",
    ];
    media_type.starts_with("text/") || media_type.ends_with("+xml") || TEXTS.contains(&media_type)
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
}
