//! Sentences for people, made of parts that others wrote.

use std::fmt::Display;

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

/// Counts things by their name: `1 call`, `2 calls`.
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(count: N, thing: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {thing}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_counted_without_an_s() {
        assert_eq!([0_u64, 1, 2].map(|count| counted(count, "call")), ["0 calls", "1 call", "2 calls"]);
    }
}
