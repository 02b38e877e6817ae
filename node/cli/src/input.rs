//! Inputs of commands: files, standard input as `-`, and values that name a file after an `@`.

use std::{
    collections::BTreeMap,
    fmt::Display,
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use farthing_bridge::is_json;
use farthing_control::encoded;
use farthing_protocol::limits;
use serde_json::{Value, value::RawValue};
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

/// The body of a call, as requests in JSON have it: by its value or in base64.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) value: Option<Value>,
    pub(super) base64: Option<String>,
}

/// The body of a call, of which JSON or a file is given. JSON goes as it is written, with every digit, unless `headers` name
/// another media type.
pub(super) fn body(
    given: Option<&str>,
    file: Option<&Path>,
    headers: &mut BTreeMap<String, String>,
) -> Result<Body, Failure> {
    if let Some(file) = file {
        return Ok(Body { base64: Some(encoded::to_text(&bytes(file, BODY_BYTES_MAX)?)), value: None });
    }
    let Some(text) = given.map(json).transpose()? else { return Ok(Body::default()) };
    let is_named = |name: &str| name.eq_ignore_ascii_case("content-type");
    let media_type = headers.iter().find(|(name, _)| is_named(name)).map(|(_, value)| value.as_str());
    if media_type.is_some_and(|media_type| !is_json(media_type)) {
        return Ok(Body { value: Some(parsed(&text)?), base64: None });
    }
    if media_type.is_none() {
        headers.insert("content-type".to_owned(), "application/json".to_owned());
    }
    Ok(Body { base64: Some(encoded::to_text(text.as_bytes())), value: None })
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

/// The text of a body in JSON, which is given or in a file.
pub(super) fn json(body: &str) -> Result<String, Failure> {
    let text = value(body)?;
    match serde_json::from_str::<&RawValue>(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(match body.strip_prefix('@') {
            Some(file) if text.trim().is_empty() => {
                Failure::usage(format!("{file} is empty")).next("write JSON into it, or choose another file")
            }
            Some(file) => Failure::usage(format!("{file} is not JSON ({error})")).next("correct the file"),
            None => not_json(&error),
        }),
    }
}

/// The value of a body, which the node turns into another media type.
fn parsed(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| not_json(&error))
}

fn not_json(error: &serde_json::Error) -> Failure {
    Failure::usage(format!("the body is not JSON ({error})")).next("quote it as JSON, or use @FILE")
}

pub(super) fn unreadable(name: impl Display, error: &io::Error) -> Failure {
    Failure::usage(format!("{name} cannot be read ({error})")).next("check the path")
}

fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    Ok(if path.as_os_str() == "-" { Box::new(io::stdin()) } else { Box::new(File::open(path)?) })
}

/// The largest number of entries in a list.
pub(super) fn at_least_one(text: &str) -> Result<u64, &'static str> {
    text.parse().ok().filter(|number| *number > 0).ok_or("write a whole number from 1 on")
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
        assert_eq!(json(&file("right", "[1]")).unwrap(), "[1]");
    }

    #[test]
    fn every_json_text_is_a_body_and_a_text_is_plain_if_a_header_says_so() {
        let told = |given: &str, media_type: Option<&str>| {
            let named = media_type.map(|kind| ("Content-Type".to_owned(), kind.to_owned()));
            let mut headers = BTreeMap::from_iter(named);
            let body = body(Some(given), None, &mut headers).unwrap();
            (body, headers.into_values().next())
        };
        let value = |value: Value| Body { value: Some(value), base64: None };
        let base64 = |text: &str| Body { value: None, base64: Some(encoded::to_text(text.as_bytes())) };
        let json_type = Some("application/json");
        for (given, media_type, body, sent_as) in [
            ("\"hello\"", None, base64("\"hello\""), json_type),
            ("\"hello\"", json_type, base64("\"hello\""), json_type),
            ("null", None, base64("null"), json_type),
            ("\"hello\"", Some("text/plain"), value("hello".into()), Some("text/plain")),
            ("{\"a\": 1.10}", None, base64("{\"a\": 1.10}"), json_type),
            ("12345678901234567890123", json_type, base64("12345678901234567890123"), json_type),
            ("1e400", None, base64("1e400"), json_type),
            ("17", Some("text/plain"), value(17.into()), Some("text/plain")),
        ] {
            assert_eq!(told(given, media_type), (body, sent_as.map(str::to_owned)), "{given}");
        }
    }

    #[test]
    fn a_list_has_at_least_one_entry() {
        assert_eq!(at_least_one("1"), Ok(1));
        for wrong in ["0", "-1", "", "1.5"] {
            assert_eq!(at_least_one(wrong), Err("write a whole number from 1 on"), "{wrong}");
        }
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
