//! Names with values in one argument.

/// `NAME=VALUE`
pub(super) fn pair(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// A header as curl takes it, `Name: value`, or as a pair. No name has either mark, so the first of them decides.
pub(super) fn header(text: &str) -> Result<(String, String), &'static str> {
    let marked = |at: usize| (text[..at].trim(), text[at..].starts_with(':'), &text[at + 1..]);
    match text.find([':', '=']).map(marked) {
        Some((name, is_curls, value)) if !name.is_empty() => {
            let value = if is_curls { value.trim() } else { value };
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("write 'Name: value' or NAME=VALUE"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_written_as_curl_takes_it_or_as_a_pair() {
        let of = |text: &str| header(text).ok();
        let read = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
        for (text, read) in [
            ("Accept: application/json", read("Accept", "application/json")),
            ("accept:text/csv; q=0.5", read("accept", "text/csv; q=0.5")),
            ("If-None-Match: \"a=b\"", read("If-None-Match", "\"a=b\"")),
            ("Accept=application/json", read("Accept", "application/json")),
            ("X-Time=12:30", read("X-Time", "12:30")),
            ("X-Key= kept ", read("X-Key", " kept ")),
            ("X-Key: @key.txt", read("X-Key", "@key.txt")),
            ("X-Empty:", read("X-Empty", "")),
            ("Accept", None),
            (": value", None),
            ("=value", None),
            ("", None),
        ] {
            assert_eq!(of(text), read, "{text}");
        }
    }
}
