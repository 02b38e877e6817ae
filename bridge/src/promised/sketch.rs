//! The sketch of a JSON text that a judge looks at: the kinds of its outermost values, and the names of their members.
//!
//! The text is read without being kept; only where that fails it is read again, to see whether it is JSON at all. What lies
//! deeper than [`DEPTH_MAX`], or beyond [`VALUES_MAX`], is passed over, so a sketch is small whatever the text is.

use std::{borrow::Cow, fmt};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::json::MemberName;

/// Arrays and objects within each other that are looked into.
const DEPTH_MAX: usize = 3;
/// Values that are kept.
const VALUES_MAX: usize = 512;
/// A longer name is passed over.
const NAME_BYTES_MAX: usize = 256;

/// A value, as far as it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sketch<'t> {
    Null,
    /// A boolean, number or text.
    Single,
    /// The first of its items.
    Array(Vec<Sketch<'t>>),
    Object {
        members: Vec<(Cow<'t, str>, Sketch<'t>)>,
        /// True if all members are there.
        is_whole: bool,
    },
}

/// The sketch of a text; `None` when it is not JSON. The inner one is `None` where readers disagree about the text,
/// such as about a number without end.
pub(super) fn of(text: &[u8]) -> Option<Option<Sketch<'_>>> {
    let mut values_left = VALUES_MAX;
    let mut reader = serde_json::Deserializer::from_slice(text);
    let sketch = Sketching { depth: 0, values_left: &mut values_left }.deserialize(&mut reader);
    match sketch.and_then(|sketch| reader.end().map(|()| sketch)) {
        Ok(sketch) => Some(Some(sketch)),
        Err(_) => serde_json::from_slice::<IgnoredAny>(text).ok().map(|_| None),
    }
}

/// A value is about to be read, this deep.
struct Sketching<'b> {
    depth: usize,
    values_left: &'b mut usize,
}

impl Sketching<'_> {
    /// For a value inside; `None` when nothing more is kept.
    fn inside(&mut self) -> Option<Sketching<'_>> {
        *self.values_left = self.values_left.checked_sub(1)?;
        (self.depth < DEPTH_MAX)
            .then_some(Sketching { depth: self.depth + 1, values_left: &mut *self.values_left })
    }
}

impl<'de> DeserializeSeed<'de> for Sketching<'_> {
    type Value = Sketch<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Sketch<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Sketching<'_> {
    type Value = Sketch<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Sketch<'de>, E> {
        Ok(Sketch::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Sketch<'de>, E> {
        Ok(Sketch::Single)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Sketch<'de>, E> {
        Ok(Sketch::Single)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Sketch<'de>, E> {
        Ok(Sketch::Single)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Sketch<'de>, E> {
        Ok(Sketch::Single)
    }

    fn visit_str<E>(self, _: &str) -> Result<Sketch<'de>, E> {
        Ok(Sketch::Single)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Sketch<'de>, A::Error> {
        let mut kept = Vec::new();
        while let Some(inside) = self.inside() {
            match items.next_element_seed(inside)? {
                Some(item) => kept.push(item),
                None => return Ok(Sketch::Array(kept)),
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Sketch::Array(kept))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Sketch<'de>, A::Error> {
        let (mut members, mut is_whole) = (Vec::new(), true);
        while let Some(MemberName(name)) = map.next_key()? {
            let inside = (name.len() <= NAME_BYTES_MAX).then(|| self.inside()).flatten();
            match inside {
                Some(inside) => {
                    let value = map.next_value_seed(inside)?;
                    members.push((name, value));
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                    is_whole = false;
                }
            }
        }
        Ok(Sketch::Object { members, is_whole })
    }
}
