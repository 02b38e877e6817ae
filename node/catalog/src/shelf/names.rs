//! Names that look alike: what a person takes for the same name has the same or nearly the same skeleton.
//!
//! A skeleton (Unicode Technical Standard 39) replaces characters by those they look like; then case, spaces and
//! punctuation are dropped. Longer skeletons are also close when one letter is missing, added or another. To
//! find those without comparing every pair, each name is kept under its skeleton and under every skeleton that
//! lacks one letter: two that differ by one letter share such a key.

use std::{
    collections::BTreeSet,
    hash::{BuildHasher, RandomState},
};

/// Below this many letters, one letter makes another word: `bird` is not `bard`.
const CLOSE_CHARS_MIN: usize = 6;
/// Letters looked at; people do not compare more.
const CHARS_MAX: usize = 32;

/// Where names are found by how they look. Numbers are slots of the shelf.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Four bytes of a keyed hash find candidates, which are then compared. The key is this process's own, so
    /// nobody can prepare names that meet under one hash.
    keys: BTreeSet<(u32, u32)>,
    hasher: RandomState,
}

impl Names {
    pub(crate) fn add(&mut self, name: &str, slot: u32) {
        let keys: Vec<u32> = self.keys_of(name);
        self.keys.extend(keys.into_iter().map(|key| (key, slot)));
    }

    pub(crate) fn remove(&mut self, name: &str, slot: u32) {
        for key in self.keys_of(name) {
            self.keys.remove(&(key, slot));
        }
    }

    /// Slots whose name may look like `name`; compare them with [`alike`].
    pub(crate) fn candidates(&self, name: &str) -> BTreeSet<u32> {
        let keys = self.keys_of(name);
        keys.into_iter()
            .flat_map(|key| self.keys.range((key, 0)..=(key, u32::MAX)))
            .map(|&(_, slot)| slot)
            .collect()
    }

    fn keys_of(&self, name: &str) -> Vec<u32> {
        let skeleton = skeleton(name);
        let mut keys = vec![self.key(&skeleton)];
        if skeleton.len() >= CLOSE_CHARS_MIN {
            keys.extend((0..skeleton.len()).map(|gap| {
                let shorter: Vec<char> =
                    [&skeleton[..gap], &skeleton[gap + 1..]].into_iter().flatten().copied().collect();
                self.key(&shorter)
            }));
        }
        keys
    }

    fn key(&self, skeleton: &[char]) -> u32 {
        // The lower half of a good hash is a good hash.
        let [a, b, c, d, ..] = self.hasher.hash_one(skeleton).to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }
}

/// Whether a person may take one name for the other.
pub(crate) fn alike(one: &str, other: &str) -> bool {
    let (one, other) = (skeleton(one), skeleton(other));
    one == other || (one.len().max(other.len()) >= CLOSE_CHARS_MIN && one_apart(&one, &other))
}

/// What a name looks like. A name of nothing but signs stands for itself.
fn skeleton(name: &str) -> Vec<char> {
    let looks: String = unicode_security::skeleton(name).collect();
    let letters: Vec<char> =
        looks.chars().flat_map(char::to_lowercase).filter(|c| c.is_alphanumeric()).take(CHARS_MAX).collect();
    if letters.is_empty() {
        looks.chars().filter(|c| !c.is_whitespace()).take(CHARS_MAX).collect()
    } else {
        letters
    }
}

/// Whether one letter was replaced, added or left out.
fn one_apart(one: &[char], other: &[char]) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let same = short.iter().zip(long).take_while(|(a, b)| a == b).count();
    match long.len() - short.len() {
        0 => same < long.len() && short[same + 1..] == long[same + 1..],
        1 => short[same..] == long[same + 1..],
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_are_recognised() {
        for (one, other) in [
            ("Earthquakes", "Earthquakes"),
            ("Earthquakes", "EARTH QUAKES!"),
            ("Earthquakes", "\u{415}arthquakes"),
            ("Earthquakes", "Earthquake"),
            ("Earthquakes", "Earthquokes"),
            ("PayPal", "PayPaI"),
            ("Google", "G00gle"),
            ("Cafe Prices", "Café Prices"),
        ] {
            assert!(alike(one, other), "{one} and {other}");
            let mut names = Names::default();
            names.add(one, 7);
            assert!(names.candidates(other).contains(&7), "{one} is found by {other}");
        }
    }

    #[test]
    fn other_names_are_left_alone() {
        for (one, other) in
            [("bird", "bard"), ("Weather", "Whether"), ("Exoplanets", "Earthquakes"), ("🜁🜂", "🜃🜄")]
        {
            assert!(!alike(one, other), "{one} and {other}");
        }
    }

    #[test]
    fn a_name_that_left_is_not_found() {
        let mut names = Names::default();
        names.add("Earthquakes", 1);
        names.add("Earthquake", 2);
        names.remove("Earthquakes", 1);
        assert_eq!(names.candidates("Earthquakes").into_iter().collect::<Vec<_>>(), [2]);
        names.remove("Earthquake", 2);
        assert_eq!(names.len(), 0);
    }
}
