//! Inputs of commands: files, standard input as `-`, and values that name a file after an `@`.

use std::{
    collections::BTreeMap,
    fmt::Display,
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use farthing_control::encoded;
use farthing_protocol::limits;
use zeroize::Zeroizing;

use super::failure::Failure;

/// One byte more than the node passes on, so that it says so.
const BODY_BYTES_MAX: u64 = limits::REQUEST_BODY_BYTES_MAX as u64 + 1;

/// The first `bytes_max` bytes of a text, which may be a secret and is wiped when dropped.
pub(super) fn text(path: &Path, bytes_max: u64) -> Result<Zeroizing<String>, Failure> {
    let mut text = Zeroizing::new(String::new());
    let read = open(path).and_then(|file| file.take(bytes_max).read_to_string(&mut text));
    read.map_err(|error| unreadable(path.display(), &error))?;
    Ok(text)
}

/// The first `bytes_max` bytes.
pub(super) fn bytes(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = open(path).and_then(|file| file.take(bytes_max).read_to_end(&mut bytes));
    read.map_err(|error| unreadable(path.display(), &error))?;
    Ok(bytes)
}

/// The body of a call in a file, as requests in JSON have it.
pub(super) fn body_base64(file: &Path) -> Result<String, Failure> {
    Ok(encoded::to_text(&bytes(file, BODY_BYTES_MAX)?))
}

/// A value, or what is in the file that it names after an `@`: the list of processes shows a secret that is given otherwise.
pub(super) fn value(given: &str) -> Result<String, Failure> {
    let Some(path) = given.strip_prefix('@') else { return Ok(given.to_owned()) };
    fs::read_to_string(path).map_err(|error| unreadable(path, &error))
}

/// Names and their values, none of which is given twice.
pub(super) fn unique(pairs: Vec<(String, String)>) -> Result<BTreeMap<String, String>, Failure> {
    let mut map = BTreeMap::new();
    for (name, value) in pairs {
        if map.contains_key(&name) {
            return Err(Failure::usage(format!("{name} is given more than once")).next("give it once"));
        }
        map.insert(name, value);
    }
    Ok(map)
}

/// A body of a call, as text or in a file.
pub(super) fn json(body: &str) -> Result<serde_json::Value, Failure> {
    let text = value(body)?;
    serde_json::from_str(&text).map_err(|error| match body.strip_prefix('@') {
        Some(file) if text.trim().is_empty() => {
            Failure::usage(format!("{file} is empty")).next("write JSON into it, or choose another file")
        }
        Some(file) => Failure::usage(format!("{file} is not JSON ({error})")).next("correct the file"),
        None => {
            Failure::usage(format!("the body is not JSON ({error})")).next("quote it as JSON, or use @FILE")
        }
    })
}

pub(super) fn unreadable(name: impl Display, error: &io::Error) -> Failure {
    Failure::usage(format!("{name} cannot be read ({error})")).next("check the path")
}

fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    Ok(if path.as_os_str() == "-" { Box::new(io::stdin()) } else { Box::new(File::open(path)?) })
}

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
    fn a_body_that_is_no_json_says_where_it_came_from() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            format!("@{}", path.display())
        };
        for (body, told) in [
            (file("empty", "\n"), "empty is empty; write JSON into it"),
            (file("broken", "{a"), "broken is not JSON ("),
            ("{a".to_owned(), "the body is not JSON ("),
        ] {
            let refused = json(&body).unwrap_err().to_string();
            assert!(refused.contains(told), "{refused}");
        }
        assert_eq!(json(&file("right", "[1]")).unwrap(), serde_json::json!([1]));
    }

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
