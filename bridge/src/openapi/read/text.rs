//! Bytes to a JSON value: byte order mark, JSON or YAML, everything bounded.
//!
//! One visitor builds the value for both languages. It counts depth, values and text, so that neither brackets
//! nor YAML's aliases can make a small document large, and it notices keys that are given twice: YAML forbids
//! them and such a document is refused; JSON leaves it open, the last one counts as with every JSON reader, and
//! the report says so.

use std::{
    cell::{Cell, RefCell},
    fmt,
};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Error as YamlError, budget::BudgetBreach};

use crate::{
    limits::{DOCUMENT_BYTES_MAX, DOCUMENT_DEPTH_MAX, DOCUMENT_TEXT_BYTES_MAX, DOCUMENT_VALUES_MAX},
    report::{FINDINGS_MAX, ReadError},
};

/// A document as a value.
#[derive(Debug)]
pub(super) struct ParsedDocument {
    pub value: Value,
    /// JSON pointers of keys that were given more than once; the first of them.
    pub duplicates: Vec<String>,
}

/// Reads JSON or YAML. `format` is what an error says it was taken for.
pub(super) fn parse(format: &'static str, text: &str) -> Result<ParsedDocument, ReadError> {
    if is_json(text) { json(format, text) } else { yaml(format, text) }
}

/// The text of a document, without its byte order mark.
pub(super) fn decode<'b>(format: &'static str, bytes: &'b [u8]) -> Result<&'b str, ReadError> {
    if bytes.len() > DOCUMENT_BYTES_MAX {
        let (length, most) = (bytes.len(), DOCUMENT_BYTES_MAX);
        return Err(ReadError::new(
            format,
            format!("the document has {length} bytes; at most {most} are read"),
        ));
    }
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        return Err(ReadError::new(format, "the document is UTF-16; save it as UTF-8"));
    }
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = before.split(|b| *b == b'\n').count() as u64;
        let column = before.iter().rev().take_while(|b| **b != b'\n').count() as u64 + 1;
        ReadError::at(format, (line, column), "the document is not UTF-8; save it as UTF-8")
    })
}

/// Tells whether a text is JSON: a flow mapping of YAML seldom begins with a quote.
fn is_json(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with('[')
        || text.strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with(['"', '}']))
}

fn json(format: &'static str, text: &str) -> Result<ParsedDocument, ReadError> {
    let tally = Tally::default();
    let mut source = serde_json::Deserializer::from_str(text);
    let value = tally.root(VersionText::AsItIs).deserialize(&mut source).and_then(|value| {
        source.end()?;
        Ok(value)
    });
    let value = value.map_err(|error| ReadError::of_json(format, "not valid JSON", &error))?;
    Ok(ParsedDocument { value, duplicates: tally.duplicates.into_inner() })
}

fn yaml(format: &'static str, text: &str) -> Result<ParsedDocument, ReadError> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            flow_nesting_limit: DOCUMENT_DEPTH_MAX,
            max_depth: DOCUMENT_DEPTH_MAX,
            max_documents: 1,
            // The visitor below counts values and texts; these only have to be more generous than it is.
            max_events: 3 * DOCUMENT_VALUES_MAX,
            max_nodes: 2 * DOCUMENT_VALUES_MAX,
            max_total_scalar_bytes: 2 * DOCUMENT_TEXT_BYTES_MAX,
            // Aliases are limited by what they unfold to, not by how often they are used.
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: ALIAS_EVENTS_MAX,
            max_replay_stack_depth: 32,
        },
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::AsString,
        ignore_binary_tag_for_string: true,
        with_snippet: false,
    };
    let tally = Tally::default();
    let value = serde_saphyr::with_deserializer_from_str_with_options(text, options, |source| {
        tally.root(VersionText::AsText).deserialize(source)
    });
    let value = value.map_err(|error| {
        let what = in_our_words(error.without_snippet());
        match error.location() {
            Some(at) => ReadError::at(format, (at.line(), at.column()), what),
            None => ReadError::new(format, what),
        }
    })?;
    Ok(ParsedDocument { value, duplicates: tally.duplicates.into_inner() })
}

/// The YAML reader's advice is for programmers, and its limits are ours.
fn in_our_words(error: &YamlError) -> String {
    let mut cause = error;
    while let YamlError::AliasError { error, .. } = cause {
        cause = error;
    }
    match cause {
        YamlError::DuplicateMappingKey { key, .. } => {
            let key = key.as_ref().map_or_else(|| "a key".to_owned(), |key| format!("the key {key}"));
            format!("{key} is given twice; keep one of them")
        }
        YamlError::Budget { breach: BudgetBreach::Depth { .. }, .. } => {
            format!("nested more than {DOCUMENT_DEPTH_MAX} levels deep")
        }
        YamlError::AliasReplayLimitExceeded { .. } | YamlError::AliasReplayStackDepthExceeded { .. } => {
            "its aliases expand to more than can be read; write the values out".to_owned()
        }
        YamlError::Budget { .. } => {
            "larger than can be read; remove operations that you do not sell".to_owned()
        }
        _ => format!("not valid YAML: {error}"),
    }
}

/// The most events that YAML's aliases may unfold to.
const ALIAS_EVENTS_MAX: usize = 500_000;

/// The way `info.version` is read. In YAML it is taken as text: `1.10` would lose its zero as a number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum VersionText {
    AsItIs,
    AsText,
}

/// A tally of what has been read so far.
#[derive(Debug)]
struct Tally {
    values_left: Cell<usize>,
    text_left: Cell<usize>,
    duplicates: RefCell<Vec<String>>,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            values_left: Cell::new(DOCUMENT_VALUES_MAX),
            text_left: Cell::new(DOCUMENT_TEXT_BYTES_MAX),
            duplicates: RefCell::default(),
        }
    }
}

impl Tally {
    fn root(&self, version: VersionText) -> Node<'_> {
        Node { tally: self, path: TextPath { key: "", parent: None, depth: 0 }, version }
    }

    fn count_value<E: Error>(&self) -> Result<(), E> {
        let left = self.values_left.get().checked_sub(1);
        let too_many = || E::custom(format_args!("it has more than {DOCUMENT_VALUES_MAX} values"));
        self.values_left.set(left.ok_or_else(too_many)?);
        Ok(())
    }

    fn count_text<E: Error>(&self, text: &str) -> Result<(), E> {
        let left = self.text_left.get().checked_sub(text.len());
        let too_much =
            || E::custom(format_args!("its texts expand to more than {DOCUMENT_TEXT_BYTES_MAX} bytes"));
        self.text_left.set(left.ok_or_else(too_much)?);
        Ok(())
    }
}

/// The value that is being read, and where it stands.
#[derive(Clone, Copy)]
struct Node<'a> {
    tally: &'a Tally,
    path: TextPath<'a>,
    version: VersionText,
}

#[derive(Clone, Copy)]
struct TextPath<'a> {
    key: &'a str,
    parent: Option<&'a TextPath<'a>>,
    depth: usize,
}

impl<'a> TextPath<'a> {
    fn child(&'a self, key: &'a str) -> TextPath<'a> {
        TextPath { key, parent: Some(self), depth: self.depth + 1 }
    }

    fn pointer(&self) -> String {
        /// A finding shows no more, and 200 of them may stand below one key of megabytes.
        const KEY_CHARS_MAX: usize = 300;
        let key: String = self.key.chars().take(KEY_CHARS_MAX).collect();
        let key = key.replace('~', "~0").replace('/', "~1");
        self.parent.map_or_else(|| "#".into(), |parent| format!("{}/{key}", parent.pointer()))
    }

    fn is_info_version(&self) -> bool {
        self.depth == 2 && self.key == "version" && self.parent.is_some_and(|parent| parent.key == "info")
    }
}

impl Node<'_> {
    fn enter<E: Error>(&self) -> Result<(), E> {
        if self.path.depth >= DOCUMENT_DEPTH_MAX {
            return Err(E::custom(format_args!("it is nested more than {DOCUMENT_DEPTH_MAX} levels deep")));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        self.tally.count_value()?;
        if self.version == VersionText::AsText && self.path.is_info_version() {
            return source.deserialize_option(self);
        }
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.tally.count_text(value)?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        self.tally.count_text(&value)?;
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        source.deserialize_string(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut list = Vec::new();
        let item = || Node { path: self.path.child("-"), ..self };
        while let Some(value) = items.next_element_seed(item())? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            self.tally.count_text(&key)?;
            let path = self.path.child(&key);
            if object.contains_key(&key) {
                let mut duplicates = self.tally.duplicates.borrow_mut();
                if duplicates.len() < FINDINGS_MAX {
                    duplicates.push(path.pointer());
                }
            }
            let value = members.next_value_seed(Node { path, ..self })?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}
