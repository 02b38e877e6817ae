//! Bytes as a hostile or broken peer sends them: valid ones, damaged in a few places.

use farthing_protocol::wire;

use crate::{examples, random::Random};

/// The bytes of every example.
pub fn valid() -> Vec<Vec<u8>> {
    let mut all = vec![
        wire::encode(&examples::node_record()),
        wire::encode(&examples::signed_record()),
        wire::encode(&examples::listing()),
        wire::encode(&examples::signed_listing()),
        wire::encode(&examples::details()),
        wire::encode(&examples::receipt()),
        wire::encode(&examples::channel_config()),
    ];
    all.extend(examples::call_messages().iter().map(|(_, value)| wire::encode(value)));
    all.extend(examples::call_replies().iter().map(|(_, value)| wire::encode(value)));
    all.extend(examples::refusals().iter().map(|(_, value)| wire::encode(value)));
    all.extend(examples::reach_requests().iter().map(|(_, value)| wire::encode(value)));
    all.extend(examples::reach_responses().iter().map(|(_, value)| wire::encode(value)));
    all.extend(examples::info_requests().iter().map(|(_, value)| wire::encode(value)));
    all.extend(examples::info_responses().iter().map(|(_, value)| wire::encode(value)));
    all.extend(examples::sync_messages().iter().map(|(_, value)| wire::encode(value)));
    all.extend(examples::records_messages().iter().map(|(_, value)| wire::encode(value)));
    all
}

/// One of `valid`, with one to four changes; or bytes of no meaning at all.
pub fn damaged(random: &mut Random, valid: &[Vec<u8>]) -> Vec<u8> {
    if random.chance(10) {
        let len = random.below(200);
        return (0..len).map(|_| byte(random)).collect();
    }
    let mut bytes = valid[random.below(valid.len())].clone();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        match random.below(5) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, byte(random)),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 => {
                let other = &valid[random.below(valid.len())];
                let from = random.below(other.len());
                let part = &other[from..(from + random.below(40)).min(other.len())];
                bytes.splice(at..at, part.iter().copied());
            }
            _ if at < bytes.len() => bytes[at] = byte(random),
            _ => {}
        }
    }
    bytes
}

/// Any byte, but often one that begins a length, a nesting or an end.
fn byte(random: &mut Random) -> u8 {
    const TELLING: [u8; 16] =
        [0x00, 0x17, 0x18, 0x1b, 0x3b, 0x40, 0x5b, 0x5f, 0x7b, 0x7f, 0x80, 0x9b, 0x9f, 0xbb, 0xbf, 0xff];
    if random.chance(50) { TELLING[random.below(TELLING.len())] } else { random.next().to_le_bytes()[0] }
}
