//! Values that travel and are stored as text: amounts, ids, addresses.

use std::{borrow::Cow, fmt, str::FromStr};

use farthing_values::{Address, CallId, ChannelId, Method, ServiceId, Usdc};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Visitor};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, Type},
};

use crate::eth::Eth;

/// The error for a text that is none of those expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is none of {}", .expected.join(", "))]
pub struct NoneOf {
    given: String,
    expected: &'static [&'static str],
}

impl NoneOf {
    pub(crate) fn new(given: &str, expected: &'static [&'static str]) -> Self {
        Self { given: given.chars().take(40).collect(), expected }
    }
}

/// A value as the text that its `Display` writes and its `FromStr` reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Text<T>(pub T);

/// Texts of values under names of their own, and what the description of the endpoints says of each.
macro_rules! texts {
    ($($text:ident = $value:ident: $about:literal,)+) => {
        $(pub type $text = Text<$value>;

        impl PartialSchema for Text<$value> {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new().schema_type(Type::String).description(Some($about)).into()
            }
        }

        impl ToSchema for Text<$value> {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($value))
            }
        })+
    };
}

texts! {
    UsdcText = Usdc: "An amount of USDC: a decimal with at most 6 decimals, such as 0.002",
    EthText = Eth: "An amount of ETH: a decimal with at most 18 decimals, such as 0.001",
    AddressText = Address: "A wallet: 0x and 40 hexadecimal digits",
    ServiceIdText = ServiceId: "A service: a UUID",
    CallIdText = CallId: "A call: a UUID",
    ChannelIdText = ChannelId: "A channel: 0x and 64 hexadecimal digits",
    MethodText = Method: "An HTTP method: GET, HEAD, POST, PUT, PATCH or DELETE",
}

impl<T> From<T> for Text<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T: fmt::Display> fmt::Display for Text<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: FromStr> FromStr for Text<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl<T: fmt::Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = deserializer.deserialize_string(InQuotes)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

/// A reader of texts. If a number stands there, its error names the quotes.
struct InQuotes;

impl Visitor<'_> for InQuotes {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string in quotes")
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_string<E>(self, text: String) -> Result<String, E> {
        Ok(text)
    }
}
