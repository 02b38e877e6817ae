//! Aliases back to the fields' names, without touching any other value.

use std::{borrow::Cow, fmt};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::{
    graphql::{coerce::quote, selection::aliases::Renames},
    json::MemberName,
};

/// `json` with its keys renamed, in lists too. What is not where the selection says it is stays as it is.
pub(super) fn rename(json: &str, renames: &Renames) -> String {
    let mut out = String::with_capacity(json.len());
    write(json, renames, &mut out);
    out
}

/// Recursion ends with the selection's depth, and that of lists in [`lists`].
fn write(json: &str, renames: &Renames, out: &mut String) {
    match json.as_bytes().first() {
        Some(b'{') => object(json, renames, out),
        Some(b'[') => lists(json, renames, crate::graphql::schema::LIST_DEPTH_MAX, out),
        _ => out.push_str(json),
    }
}

fn object(json: &str, renames: &Renames, out: &mut String) {
    let Ok(Members(members)) = serde_json::from_str(json) else { return out.push_str(json) };
    out.push('{');
    for (i, (key, value)) in members.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        let rename = renames.get(key);
        quote(rename.map_or(key, |rename| &rename.name), out);
        out.push(':');
        match rename.and_then(|rename| rename.within.as_ref()) {
            Some(within) => write(value.get(), within, out),
            None => out.push_str(value.get()),
        }
    }
    out.push('}');
}

fn lists(json: &str, renames: &Renames, depth: usize, out: &mut String) {
    let items = serde_json::from_str::<Vec<&RawValue>>(json).ok().filter(|_| depth > 0);
    let Some(items) = items else { return out.push_str(json) };
    out.push('[');
    for (i, item) in items.iter().map(|item| item.get()).enumerate() {
        if i > 0 {
            out.push(',');
        }
        if item.starts_with('[') { lists(item, renames, depth - 1, out) } else { write(item, renames, out) }
    }
    out.push(']');
}

/// An object's members in their order, with their values as they are written.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((MemberName(key), value)) = map.next_entry()? {
            members.push((key, value));
        }
        Ok(Members(members))
    }
}
