//! Broken inputs out of good ones, by a generator with a fixed seed.

/// Longest input: mutations of mutations stay small, so that thousands take seconds.
const INPUT_BYTES_MAX: usize = 8 * 1024;

/// Calls `entry` with every input of the corpus and with `inputs` mutations of them.
///
/// `words` are what the format is made of: mutations insert them, because random bytes rarely get past a scanner. A
/// panic names the input that caused it.
pub(crate) fn survives(entry: fn(&[u8]), corpus: &[&[u8]], words: &[&str], inputs: u64) {
    for input in corpus {
        entry(input);
    }
    for seed in 0..inputs {
        let mut random = Random(seed);
        let input = mutated(&mut random, corpus, words);
        if std::panic::catch_unwind(|| entry(&input)).is_err() {
            panic!("seed {seed} makes it panic: {}", String::from_utf8_lossy(&input));
        }
    }
}

fn mutated(random: &mut Random, corpus: &[&[u8]], words: &[&str]) -> Vec<u8> {
    let mut input = random.pick(corpus).map(<[u8]>::to_vec).unwrap_or_default();
    for _ in 0..=random.below(8) {
        let at = random.below(input.len() + 1);
        let end = (at + random.below(24)).min(input.len());
        match random.below(8) {
            0 => drop(input.drain(at..end)),
            1 => input.truncate(at),
            2 => drop(input.splice(at..end, random.bytes(4))),
            3 => {
                let end_of_other = random.pick(corpus).and_then(|other| other.get(at..)).unwrap_or_default();
                input.splice(at.., end_of_other.iter().copied());
            }
            4 => {
                // The same again and again: nesting and repetition.
                let piece = input.get(at..end).unwrap_or_default().repeat(random.below(100));
                drop(input.splice(at..at, piece));
            }
            _ => {
                let word = random.pick(words).map(str::as_bytes).unwrap_or_default();
                let word = word.repeat(1 + random.below(3) * random.below(40));
                drop(input.splice(at..at, word));
            }
        }
        input.truncate(INPUT_BYTES_MAX);
    }
    input
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `bound`; 0 when that is 0.
    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        usize::try_from(self.next().checked_rem(bound).unwrap_or(0)).unwrap_or(0)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        from.get(self.below(from.len())).copied()
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most + 1)).map(|_| self.next().to_le_bytes()[0]).collect()
    }
}
