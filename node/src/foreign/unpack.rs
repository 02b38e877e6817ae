//! Answers that a server packs by gzip although it was asked for none that is packed: they are paid, so they are unpacked.
//!
//! An answer could unpack to any size, so it is read in parts, each of which is held against a bound and this node's room. One that is
//! damaged, too large or packed by something else stays as it came, with its `content-encoding`: no answer that may be paid is lost.

use std::{collections::BTreeMap, io::Read};

use bytes::{Bytes, BytesMut};
use farthing_bounds::{ByteBudget, HeldBytes};
use farthing_shared::blocking::run_blocking;
use flate2::bufread::MultiGzDecoder;
use http::header;

const PART_BYTES: usize = 16 * 1_024;

/// The body without its gzip, and its headers without the word on it; both as they came if it cannot be unpacked within the bound.
pub(super) async fn readable(
    body: Bytes,
    headers: &mut BTreeMap<String, String>,
    (bytes_max, budget): (usize, &ByteBudget),
) -> Bytes {
    let coding = headers.get(header::CONTENT_ENCODING.as_str()).map_or("", String::as_str);
    if !is_gzip(coding) {
        return body;
    }
    let (packed, room) = (body.clone(), budget.nothing());
    let Some(whole) = run_blocking(move || unpacked(&packed, bytes_max, room)).await else { return body };
    headers.remove(header::CONTENT_ENCODING.as_str());
    whole
}

/// Returns whether a `content-encoding` names gzip.
fn is_gzip(coding: &str) -> bool {
    ["gzip", "x-gzip"].iter().any(|name| coding.eq_ignore_ascii_case(name))
}

/// Unpacks every member, and compares its checksum and its size. `None` if one is damaged or cut short, and if all are more than
/// `bytes_max` or than there is room for.
fn unpacked(packed: &[u8], bytes_max: usize, mut room: HeldBytes) -> Option<Bytes> {
    let (mut reader, mut part, mut whole) =
        (MultiGzDecoder::new(packed), [0_u8; PART_BYTES], BytesMut::new());
    loop {
        let bytes = reader.read(&mut part).ok()?;
        if bytes == 0 {
            return Some(room.attach(whole.freeze()));
        }
        if whole.len() + bytes > bytes_max || !room.grow(bytes) {
            return None;
        }
        whole.extend_from_slice(&part[..bytes]);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    const TEXT: &[u8] = b"{\"sold\":true}";
    /// The same, as Python packs a file of the name `a.json`.
    const PACKED: &str = "1f8b08080000000002ff612e6a736f6e00ab562acecf4951b22a292a4dad0500826d3a5b0d000000";

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut packing = GzEncoder::new(Vec::new(), Compression::default());
        packing.write_all(text).unwrap();
        packing.finish().unwrap()
    }

    /// The body of an answer with this `content-encoding` as it is handed out, and what is left of the header.
    async fn handed_out(
        coding: &str,
        body: &[u8],
        (bytes_max, budget): (usize, &ByteBudget),
    ) -> (Bytes, Option<String>) {
        let mut headers = BTreeMap::from([("content-encoding".to_owned(), coding.to_owned())]);
        let body = readable(Bytes::copy_from_slice(body), &mut headers, (bytes_max, budget)).await;
        (body, headers.remove("content-encoding"))
    }

    #[tokio::test]
    async fn an_answer_is_unpacked_with_all_its_members() {
        let budget = ByteBudget::new(1_000_000);
        let in_two = [packed(&TEXT[..5]), packed(&TEXT[5..])].concat();
        for whole in
            [hex::decode(PACKED).unwrap(), packed(TEXT), in_two, [packed(b""), packed(TEXT)].concat()]
        {
            for coding in ["gzip", "x-gzip", "GZIP"] {
                let (body, left) = handed_out(coding, &whole, (TEXT.len(), &budget)).await;
                assert_eq!((&*body, left), (TEXT, None), "{coding} {}", hex::encode(&whole));
            }
        }
        let long = vec![b'x'; 3 * PART_BYTES + 1];
        let (body, left) = handed_out("gzip", &packed(&long), (long.len(), &budget)).await;
        assert_eq!((&*body, left), (&*long, None));
        assert_eq!(budget.held(), long.len(), "its room is held as long as it is");
    }

    #[tokio::test]
    async fn an_answer_that_is_damaged_cut_short_or_packed_otherwise_is_handed_out_as_it_came() {
        let budget = ByteBudget::new(1_000_000);
        let whole = packed(TEXT);
        let mut cases: Vec<_> = (0..whole.len()).map(|bytes| ("gzip", whole[..bytes].to_vec())).collect();
        // Checksum and size.
        for place in whole.len() - 8..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 1;
            cases.push(("gzip", [packed(b"first"), damaged].concat()));
        }
        cases.push(("gzip", [&*whole, b"{}"].concat()));
        cases.extend(["br", "zstd", "gzip, br", "identity"].map(|coding| (coding, whole.clone())));
        for (coding, body) in cases {
            let (as_is, left) = handed_out(coding, &body, (1_000, &budget)).await;
            assert_eq!((&*as_is, left.as_deref()), (&*body, Some(coding)), "{}", hex::encode(&body));
        }
        assert_eq!(budget.held(), 0);
    }

    #[tokio::test]
    async fn an_answer_that_unpacks_to_more_than_the_bound_or_the_room_is_handed_out_as_it_came() {
        let text = vec![b'x'; 5 * PART_BYTES];
        let whole = packed(&text);
        let (enough, too_little) = (ByteBudget::new(text.len()), ByteBudget::new(text.len() - 1));
        let (body, left) = handed_out("gzip", &whole, (text.len(), &enough)).await;
        assert_eq!((&*body, left), (&*text, None));
        drop(body);
        for (bytes_max, budget) in [(text.len() - 1, &enough), (text.len(), &too_little)] {
            let (body, left) = handed_out("gzip", &whole, (bytes_max, budget)).await;
            assert_eq!((&*body, left.as_deref()), (&*whole, Some("gzip")), "{bytes_max} {budget:?}");
            assert_eq!(budget.held(), 0);
        }
    }

    #[test]
    fn no_damage_to_an_answer_makes_another_one_of_it() {
        let (whole, budget) = (hex::decode(PACKED).unwrap(), ByteBudget::new(1_000_000));
        for place in 0..whole.len() {
            for byte in 0..=u8::MAX {
                let mut other = whole.clone();
                other[place] = byte;
                let found = unpacked(&other, 1_000, budget.nothing());
                assert!(found.is_none_or(|body| &*body == TEXT), "{place} {byte}");
            }
        }
    }
}
