//! Names that look alike: what a person takes for the same name has the same or nearly the same skeleton.
//!
//! A skeleton (Unicode Technical Standard 39) replaces characters by those they look like; then case, spaces and
//! punctuation are dropped, and words that only say how true or what a thing it is, such as `official` and `API`.
//! Longer skeletons are also close when one letter is missing, added or another, or two neighbours are swapped. To
//! find those without comparing every pair, each name is kept under its skeleton and under every skeleton that
//! lacks one letter: two that differ so share such a key.

use std::{
    collections::BTreeSet,
    hash::{BuildHasher, RandomState},
    iter,
    sync::LazyLock,
};

/// Below this many letters, one letter makes another word: `bird` is not `bard`.
const CLOSE_CHARS_MIN: usize = 6;
/// Slots looked at under one key: thousands may be called `Weather`.
const CROWD_MAX: usize = 64;
/// Letters looked at; people do not compare more.
const CHARS_MAX: usize = 32;
/// A name is not cut down to less.
const LETTERS_MIN: usize = 3;
/// Words that claim to be the true one. Whoever adds them to another's name is taken for that other one.
const CLAIMS: [&str; 9] = [
    "official",
    "original",
    "genuine",
    "authentic",
    "verified",
    "trusted",
    "certified",
    "premium",
    "authorized",
];
/// Words that do not tell one service from another, ends of web addresses among them. Too short, or too common inside
/// of words, to be cut off a word.
const FILLERS: [&str; 11] =
    ["the", "api", "apis", "service", "services", "real", "true", "com", "net", "org", "io"];

/// The same words as skeletons, since they are compared with parts of skeletons.
static CLAIMED: LazyLock<Vec<Vec<char>>> =
    LazyLock::new(|| CLAIMS.iter().map(|word| looks_of(word)).collect());
static FILLED: LazyLock<Vec<Vec<char>>> =
    LazyLock::new(|| FILLERS.iter().map(|word| looks_of(word)).collect());

/// An index of names by how they look. Numbers are slots of the listings.
#[derive(Debug)]
pub(crate) struct Names {
    /// Four bytes of a hash find candidates, which are then compared.
    keys: BTreeSet<(u32, u32)>,
    /// Makes the hash this process's own, so that nobody can prepare names that meet under one hash.
    secret: u64,
}

impl Default for Names {
    fn default() -> Self {
        // Odd, so that no letter's weight vanishes.
        Self { keys: BTreeSet::new(), secret: RandomState::new().hash_one("names") | 1 }
    }
}

impl Names {
    /// Adds many at once, which packs them closer than one by one.
    pub(crate) fn fill<'a>(&mut self, names: impl Iterator<Item = (&'a str, u32)>) {
        let mut keys: Vec<(u32, u32)> = std::mem::take(&mut self.keys).into_iter().collect();
        for (name, slot) in names {
            keys.extend(self.keys_of(name).into_iter().map(|key| (key, slot)));
        }
        self.keys = keys.into_iter().collect();
    }

    pub(crate) fn add(&mut self, name: &str, slot: u32) {
        let keys = self.keys_of(name);
        self.keys.extend(keys.into_iter().map(|key| (key, slot)));
    }

    pub(crate) fn remove(&mut self, name: &str, slot: u32) {
        for key in self.keys_of(name) {
            self.keys.remove(&(key, slot));
        }
    }

    /// Slots whose name may look like `name`; compare them with [`alike`]. Of a crowd the lowest slots, which
    /// are mostly the oldest.
    pub(crate) fn candidates(&self, name: &str) -> BTreeSet<u32> {
        let keys = self.keys_of(name);
        let of_key = |key| self.keys.range((key, 0)..=(key, u32::MAX)).take(CROWD_MAX);
        let slots = keys.into_iter().flat_map(of_key);
        slots.map(|&(_, slot)| slot).collect()
    }

    /// Of the skeleton, and of the skeleton without each of its letters: a polynomial in the secret, so that
    /// each takes one step from the ends to the gap.
    fn keys_of(&self, name: &str) -> Vec<u32> {
        let skeleton = skeleton(name);
        let letters: Vec<u64> = skeleton.iter().map(|&letter| u64::from(letter) + 1).collect();
        let step = |hash: u64, letter: u64| hash.wrapping_mul(self.secret).wrapping_add(letter);
        let whole = letters.iter().fold(0, |hash, &letter| step(hash, letter));
        let mut keys = vec![self.key(whole)];
        if letters.len() >= CLOSE_CHARS_MIN {
            // From the last letter to the first: what stands behind the gap, and the weight of what stands before.
            let (mut behind, mut weight, mut before) = (0_u64, 1_u64, whole);
            let before_each: Vec<u64> = letters
                .iter()
                .scan(0, |hash, &letter| Some(std::mem::replace(hash, step(*hash, letter))))
                .collect();
            for (&letter, &ahead) in letters.iter().zip(&before_each).rev() {
                before = ahead;
                keys.push(self.key(before.wrapping_mul(weight).wrapping_add(behind)));
                behind = behind.wrapping_add(letter.wrapping_mul(weight));
                weight = weight.wrapping_mul(self.secret);
            }
            debug_assert_eq!((before, behind), (0, whole), "the ends have met");
        }
        keys
    }

    fn key(&self, hash: u64) -> u32 {
        // The upper half of a product depends on all of its factors.
        let mixed = (hash ^ hash >> 32).wrapping_mul(self.secret);
        let [a, b, c, d, ..] = mixed.to_be_bytes();
        u32::from_be_bytes([a, b, c, d])
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }
}

/// Tells whether a person may take one name for the other.
pub(crate) fn alike(one: &str, other: &str) -> bool {
    NameLook::of(one).resembles(&NameLook::of(other))
}

/// The look of a name, to compare it with many.
#[derive(Debug)]
pub struct NameLook(Vec<char>);

impl NameLook {
    /// Reduces a name to what it looks like.
    pub fn of(name: &str) -> Self {
        Self(skeleton(name))
    }

    /// Returns whether a person may take one of the two for the other.
    pub fn resembles(&self, other: &Self) -> bool {
        let (one, other) = (&self.0, &other.0);
        one == other || (one.len().max(other.len()) >= CLOSE_CHARS_MIN && one_apart(one, other))
    }
}

/// Reduces a name to what it looks like. A name of nothing but signs stands for itself.
fn skeleton(name: &str) -> Vec<char> {
    let looks = looks_of(name);
    let words: Vec<&[char]> = looks.split(|c| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let told = |word: &&&[char]| {
        !is_version(word) && !CLAIMED.iter().chain(FILLED.iter()).any(|other| other == *word)
    };
    let mut letters: Vec<char> = words.iter().filter(told).flat_map(|word| word.iter().copied()).collect();
    if letters.len() < LETTERS_MIN {
        letters = words.concat();
    }
    let mut letters = without_claims(&letters).to_vec();
    if letters.is_empty() {
        letters = looks.into_iter().filter(|c| !c.is_whitespace()).collect();
    }
    letters.truncate(CHARS_MAX);
    letters
}

/// `v2`: in a skeleton 0 and 1 have become letters.
fn is_version(word: &[char]) -> bool {
    let ['v', number @ ..] = word else { return false };
    let is_number = |c: &char| c.is_ascii_digit() || matches!(c, 'o' | 'l');
    matches!(number, [_] | [_, _]) && number.iter().all(is_number) && number != ['o', 'l']
}

/// Letters without the claims that are written together with them: `officialearthquakes`.
fn without_claims(mut letters: &[char]) -> &[char] {
    while let Some(shorter) = CLAIMED
        .iter()
        .filter_map(|claim| letters.strip_prefix(&**claim).or_else(|| letters.strip_suffix(&**claim)))
        .find(|shorter| shorter.len() >= LETTERS_MIN)
    {
        letters = shorter;
    }
    letters
}

fn looks_of(text: &str) -> Vec<char> {
    unicode_security::skeleton(text).flat_map(char::to_lowercase).flat_map(whatever_case).collect()
}

/// The two Latin letters whose skeleton depends on their case: `I` looks like `l`, and `m` like `rn`.
fn whatever_case(letter: char) -> impl Iterator<Item = char> {
    let (first, second) = match letter {
        'i' => ('l', None),
        'm' => ('r', Some('n')),
        other => (other, None),
    };
    iter::once(first).chain(second)
}

/// Tells whether one letter was replaced, added or left out, or two neighbours were swapped.
fn one_apart(one: &[char], other: &[char]) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let same = short.iter().zip(long).take_while(|(a, b)| a == b).count();
    match long.len() - short.len() {
        0 if same == long.len() => false,
        0 => {
            let (one, other) = (&short[same..], &long[same..]);
            one[1..] == other[1..]
                || matches!((one, other), ([a, b, one @ ..], [c, d, other @ ..]) if (a, b, one) == (d, c, other))
        }
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
            ("Mining Rigs", "MINING RIGS"),
            ("Climate Markets", "CLIMATE MARKETS"),
            ("Earthquakes", "Eatrhquakes"),
            ("Earthquakes", "Earthquakse"),
            ("Earthquakes", "Earth quakes - official"),
            ("Earthquakes", "The Real Earthquakes API"),
            ("Earthquakes", "OfficialEarthquakes"),
            ("Earthquakes", "E\u{430}rthquak\u{435}s API v2"),
            ("Earthquakes v1", "Earthquakes V10"),
            ("Earthquakes", "earthquakes.com"),
            ("Earthquakes", "earthquakes_0fficial_verified"),
            ("Official Earthquakes", "Verified Earthquake Service"),
        ] {
            assert!(alike(one, other), "{one} and {other}");
            let mut names = Names::default();
            names.add(one, 7);
            assert!(names.candidates(other).contains(&7), "{one} is found by {other}");
        }
    }

    #[test]
    fn other_names_are_left_alone() {
        for (one, other) in [
            ("bird", "bard"),
            ("Weather", "Whether"),
            ("Exoplanets", "Earthquakes"),
            ("🜁🜂", "🜃🜄"),
            ("Official", "Verified"),
            ("The API", "The Service"),
            ("Tides", "Tides of Earthquakes"),
            ("abcdef", "badcfe"),
        ] {
            assert!(!alike(one, other), "{one} and {other}");
        }
    }

    #[test]
    fn a_name_of_nothing_but_claims_and_signs_stands_for_itself() {
        assert!(alike("Official", "official!"));
        assert!(alike("The API", "THE API"));
        assert!(!skeleton("The").is_empty());
        assert_eq!(skeleton("☂ ☃"), skeleton("☂☃"));
        assert!(!alike("☂", "☃"));
        assert!(skeleton(&"official".repeat(20)).len() >= LETTERS_MIN);
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
