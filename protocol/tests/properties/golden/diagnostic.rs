//! CBOR for people: diagnostic notation (RFC 8949, section 8), one map entry per line.

use std::fmt::Write as _;

use minicbor::{Decoder, data::Type};

/// Writes the one value in `bytes`, which this crate encoded: no tags, floats or indefinite lengths.
pub fn diagnostic(bytes: &[u8]) -> String {
    let mut out = String::new();
    let mut decoder = Decoder::new(bytes);
    value(&mut decoder, 0, &mut out);
    assert_eq!(decoder.position(), bytes.len(), "exactly one value");
    out
}

fn value(decoder: &mut Decoder<'_>, depth: usize, out: &mut String) {
    match decoder.datatype().unwrap() {
        Type::Map => {
            let entries = decoder.map().unwrap().expect("definite length");
            nested(out, depth, '{', '}', entries, |out| {
                value(decoder, depth + 1, out);
                out.push_str(": ");
                value(decoder, depth + 1, out);
            });
        }
        Type::Array => {
            let items = decoder.array().unwrap().expect("definite length");
            nested(out, depth, '[', ']', items, |out| value(decoder, depth + 1, out));
        }
        Type::Bytes => write!(out, "h'{}'", super::hex(decoder.bytes().unwrap())).unwrap(),
        Type::String => write!(out, "{:?}", decoder.str().unwrap()).unwrap(),
        Type::Bool => write!(out, "{}", decoder.bool().unwrap()).unwrap(),
        Type::Null => {
            decoder.null().unwrap();
            out.push_str("null");
        }
        Type::U8 | Type::U16 | Type::U32 | Type::U64 => write!(out, "{}", decoder.u64().unwrap()).unwrap(),
        other => panic!("{other} has no place in a message"),
    }
}

fn nested(
    out: &mut String,
    depth: usize,
    open: char,
    close: char,
    count: u64,
    mut item: impl FnMut(&mut String),
) {
    out.push(open);
    for _ in 0..count {
        write!(out, "\n{:indent$}", "", indent = 2 * (depth + 1)).unwrap();
        item(out);
    }
    if count > 0 {
        write!(out, "\n{:indent$}", "", indent = 2 * depth).unwrap();
    }
    out.push(close);
}
