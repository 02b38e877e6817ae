//! Sentences for people, made of parts that others wrote.

/// Begins with a capital and ends with a full stop.
pub fn sentence(text: &str) -> String {
    let end = if text.ends_with(['.', '!', '?', '…']) { "" } else { "." };
    format!("{}{end}", capital(text))
}

/// Begins with a capital, unless it begins with an address.
pub fn capital(text: &str) -> String {
    if text.starts_with("http") {
        return text.to_owned();
    }
    let mut chars = text.chars();
    let first = chars.next().map_or_else(String::new, |first| first.to_uppercase().collect());
    format!("{first}{}", chars.as_str())
}
