//! Values that are bytes of a fixed length: how they are made, travel, and are read from hexadecimal.

/// A type of `$length` bytes, which travels as these bytes.
macro_rules! byte_array {
    ($(#[$about:meta])* $name:ident[$length:literal]) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(minicbor::Encode, minicbor::Decode, minicbor::CborLen)]
        #[cbor(transparent)]
        pub struct $name(#[cbor(n(0), with = "minicbor::bytes")] [u8; $length]);

        impl $name {
            pub const fn from_bytes(bytes: [u8; $length]) -> Self {
                Self(bytes)
            }

            pub const fn as_bytes(&self) -> &[u8; $length] {
                &self.0
            }
        }
    };
}
pub(crate) use byte_array;

/// The bytes that exactly `2 * N` hexadecimal digits stand for.
pub(crate) fn from_hex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    if digits.len() != 2 * N || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(bytes)
}
