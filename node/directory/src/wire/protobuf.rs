//! As much of protobuf as the directory's messages need: numbers, and bytes with their length before them.

use super::Malformed;

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Of a kind that no message of ours has.
    Other,
}

impl<'a> Value<'a> {
    pub(super) const fn bytes(self) -> Result<&'a [u8], Malformed> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(Malformed::Kind),
        }
    }

    pub(super) const fn number(self) -> Result<u64, Malformed> {
        match self {
            Self::Number(number) => Ok(number),
            _ => Err(Malformed::Kind),
        }
    }
}

/// Reads a message field by field. Nothing is allocated.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Result<(u64, Value<'a>), Malformed> {
        let tag = self.number()?;
        let value = match tag & 7 {
            0 => Value::Number(self.number()?),
            1 => self.take(8).map(|_| Value::Other)?,
            2 => {
                let length = self.number()?;
                Value::Bytes(self.take(usize::try_from(length).map_err(|_| Malformed::Short)?)?)
            }
            5 => self.take(4).map(|_| Value::Other)?,
            _ => return Err(Malformed::Kind),
        };
        Ok((tag >> 3, value))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0_u64;
        for place in 0..10 {
            let (byte, rest) = self.0.split_first().ok_or(Malformed::Short)?;
            self.0 = rest;
            // The tenth byte has one bit left of 64.
            if place == 9 && *byte > 1 {
                return Err(Malformed::Number);
            }
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed::Number)
    }
}

/// Writes a number; nothing if it is zero, which is the default.
pub(super) fn put_number(out: &mut Vec<u8>, field: u64, number: u64) {
    if number != 0 {
        put_varint(out, field << 3);
        put_varint(out, number);
    }
}

/// Writes bytes with their length; nothing if there are none.
pub(super) fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    if !bytes.is_empty() {
        put_message(out, field, bytes);
    }
}

/// The same for what is there even when it is empty: a message, or one of many.
pub(super) fn put_message(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(out, field << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            return out.push(low & 0x7f);
        }
        out.push(low | 0x80);
    }
}
