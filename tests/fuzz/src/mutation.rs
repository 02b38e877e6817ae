//! Broken inputs out of good ones, by a generator that a number repeats.

use crate::random::Random;

/// Longest input: mutations of mutations stay small, so that thousands take seconds.
const INPUT_BYTES_MAX: usize = 8 * 1024;
/// Bytes that begin a length, a nesting or an end in CBOR, protobuf and frames.
const TELLING: [u8; 16] =
    [0x00, 0x17, 0x18, 0x1b, 0x3b, 0x40, 0x5b, 0x5f, 0x7b, 0x7f, 0x80, 0x9b, 0x9f, 0xbb, 0xbf, 0xff];
/// Numbers at which lengths and sums turn over.
const EDGES: [u64; 8] =
    [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x7fff_ffff_ffff_ffff, 0x8000_0000_0000_0000, u64::MAX];

/// The broken input of this number. `words` are what the format is made of: they are put in, because random bytes rarely get
/// past a scanner.
pub(crate) fn broken(number: u64, known: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let mut random = Random::new(number);
    if known.is_empty() || random.chance(2) {
        let bytes = random.below(200);
        return (0..bytes).map(|_| byte(&mut random)).collect();
    }
    let mut input = known[random.below(known.len())].clone();
    for _ in 0..=random.below(8) {
        change(&mut input, &mut random, known, words);
        input.truncate(INPUT_BYTES_MAX);
    }
    input
}

fn change(input: &mut Vec<u8>, random: &mut Random, known: &[Vec<u8>], words: &[&str]) {
    let at = random.below(input.len() + 1);
    let end = (at + random.below(24)).min(input.len());
    match random.below(10) {
        0 => drop(input.drain(at..end)),
        1 => input.truncate(at),
        2 => {
            let bytes: Vec<u8> = (0..random.below(5)).map(|_| byte(random)).collect();
            input.splice(at..end, bytes);
        }
        3 => {
            let end_of_other = known[random.below(known.len())].get(at..).unwrap_or_default();
            input.splice(at.., end_of_other.iter().copied());
        }
        4 => {
            // The same again and again: nesting and repetition.
            let piece = input.get(at..end).unwrap_or_default().repeat(random.below(100));
            drop(input.splice(at..at, piece));
        }
        5 => {
            let other = &known[random.below(known.len())];
            let from = random.below(other.len() + 1);
            let piece = &other[from..(from + random.below(80)).min(other.len())];
            drop(input.splice(at..at, piece.iter().copied()));
        }
        6 => {
            let number = EDGES[random.below(EDGES.len())].to_be_bytes();
            let over = &number[number.len() - (1 << random.below(4))..];
            let end = (at + over.len()).min(input.len());
            drop(input.splice(at..end, over.iter().copied()));
        }
        _ if words.is_empty() => {
            let byte = byte(random);
            if let Some(place) = input.get_mut(at) {
                *place = byte;
            }
        }
        _ => {
            let word = words[random.below(words.len())].as_bytes();
            let word = word.repeat(1 + random.below(3) * random.below(40));
            drop(input.splice(at..at, word));
        }
    }
}

/// Any byte, but often a telling one.
fn byte(random: &mut Random) -> u8 {
    if random.chance(50) { TELLING[random.below(TELLING.len())] } else { random.next().to_le_bytes()[0] }
}
