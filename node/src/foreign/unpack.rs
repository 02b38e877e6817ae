//! Answers that a server packs by gzip although it was asked for none that is packed: they are paid, so they are unpacked.
//!
//! An answer could unpack to any size. It says its own, which is held against a bound first, and must be its size in the end.

/// Magic, method, flags, time, system (RFC 1952, 2.3).
const HEAD_BYTES: usize = 10;
/// Checksum and size.
const TAIL_BYTES: usize = 8;
const HAS_CHECK: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;

/// Returns whether a `content-encoding` names gzip.
pub(super) fn is_gzip(coding: &str) -> bool {
    ["gzip", "x-gzip"].iter().any(|name| coding.eq_ignore_ascii_case(name))
}

/// Returns the size that packed bytes say they have; `None` if they are no gzip.
pub(super) fn size_said(packed: &[u8]) -> Option<usize> {
    parts(packed).map(|(_, bytes)| bytes)
}

/// Unpacks the first member; `None` if it is cut short or has another size than the end says. The checksum is not compared.
pub(super) fn unpacked(packed: &[u8]) -> Option<Vec<u8>> {
    let (deflated, bytes) = parts(packed)?;
    // One more shows what is longer than it says.
    let whole = miniz_oxide::inflate::decompress_to_vec_with_limit(deflated, bytes.saturating_add(1)).ok()?;
    (whole.len() == bytes).then_some(whole)
}

/// The packed bytes, and their size in the end.
fn parts(packed: &[u8]) -> Option<(&[u8], usize)> {
    let (head, rest) = packed.split_at_checked(HEAD_BYTES)?;
    let [0x1f, 0x8b, 8, flags, ..] = head else { return None };
    let (mut rest, tail) = rest.split_at_checked(rest.len().checked_sub(TAIL_BYTES)?)?;
    if flags & HAS_EXTRA != 0 {
        let (length, after) = rest.split_first_chunk::<2>()?;
        rest = after.get(usize::from(u16::from_le_bytes(*length))..)?;
    }
    for text in [HAS_NAME, HAS_COMMENT] {
        if flags & text != 0 {
            let end = rest.iter().position(|byte| *byte == 0)?;
            rest = rest.get(end + 1..)?;
        }
    }
    if flags & HAS_CHECK != 0 {
        rest = rest.get(2..)?;
    }
    let bytes = u32::from_le_bytes(*tail.last_chunk::<4>()?);
    Some((rest, usize::try_from(bytes).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `{"sold":true}`, as Python packs a file of the name `a.json`.
    const PACKED: &str = "1f8b08080000000002ff612e6a736f6e00ab562acecf4951b22a292a4dad0500826d3a5b0d000000";

    #[test]
    fn what_is_packed_by_gzip_is_unpacked_and_what_is_damaged_is_not() {
        let packed = hex::decode(PACKED).unwrap();
        assert_eq!(size_said(&packed), Some(13));
        assert_eq!(unpacked(&packed).as_deref(), Some(&b"{\"sold\":true}"[..]));
        for bytes in 0..packed.len() {
            assert_eq!(unpacked(&packed[..bytes]), None, "{bytes}");
        }
        for size in [0, 12, 14, 0xff] {
            let mut other = packed.clone();
            other[packed.len() - 4] = size;
            assert_eq!(unpacked(&other), None, "it says {size}");
        }
        // Every other byte in every place: an end, and none that is longer than it says.
        for place in 0..packed.len() {
            for byte in 0..=u8::MAX {
                let mut other = packed.clone();
                other[place] = byte;
                let size = size_said(&other).unwrap_or_default();
                assert!(unpacked(&other).is_none_or(|whole| whole.len() == size), "{place} {byte}");
            }
        }
        assert!(is_gzip("GZIP") && is_gzip("x-gzip") && !is_gzip("br") && !is_gzip("gzip, br"));
    }
}
