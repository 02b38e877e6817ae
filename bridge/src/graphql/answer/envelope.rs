//! The outermost object of a GraphQL response, read in one pass: the root field's value and the errors as they
//! are written, everything else skipped.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::json::MemberName;

/// A response. Of a key that comes twice, the last counts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Envelope<'a> {
    /// JSON of `data.<field>`; absent when there is no data or no such field.
    pub value: Option<&'a str>,
    /// JSON of `errors`.
    pub errors: Option<&'a str>,
}

impl<'a> Envelope<'a> {
    /// `None` when the text is not a JSON object, or its `data` neither an object nor null.
    pub fn read(text: &'a str, field: &str) -> Option<Self> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let envelope = Outer { field }.deserialize(&mut deserializer).ok()?;
        deserializer.end().ok()?;
        Some(envelope)
    }
}

struct Outer<'f> {
    field: &'f str,
}

impl<'de> DeserializeSeed<'de> for Outer<'_> {
    type Value = Envelope<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Outer<'_> {
    type Value = Envelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a GraphQL response")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut envelope = Envelope::default();
        while let Some(MemberName(key)) = map.next_key()? {
            match &*key {
                "data" => envelope.value = map.next_value_seed(DataMember { field: self.field })?,
                "errors" => envelope.errors = Some(map.next_value::<&RawValue>()?.get()),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(envelope)
    }
}

struct DataMember<'f> {
    field: &'f str,
}

impl<'de> DeserializeSeed<'de> for DataMember<'_> {
    type Value = Option<&'de str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for DataMember<'_> {
    type Value = Option<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or null")
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut value = None;
        while let Some(MemberName(key)) = map.next_key()? {
            if key == self.field {
                value = Some(map.next_value::<&RawValue>()?.get());
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(value)
    }
}
