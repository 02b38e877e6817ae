//! The strength of a password: how many of its characters somebody would have to guess.
//!
//! Three kinds of characters are guessed with what stands before them, and count nothing: the third and later one of a
//! run (`aaa`, `abc`, `876`, `qwe`), and whatever follows another character as it did before (`abab`). A word that
//! guessers try first counts as one character, also where digits stand for its letters.
//!
//! Pure.

use std::collections::HashSet;

/// Rows of keys and of the alphabet, read in both directions.
const ROWS: [&str; 8] = [
    "abcdefghijklmnopqrstuvwxyz",
    "1234567890",
    "qwertyuiop",
    "qwertzuiop",
    "azertyuiop",
    "asdfghjkl",
    "qsdfghjklm",
    "zxcvbnm",
];

/// Words of this program, and what is most common in lists of passwords that became known.
const KNOWN: [&str; 40] = [
    "farthing",
    "console",
    "control",
    "gateway",
    "wallet",
    "network",
    "localhost",
    "node",
    "usdc",
    "ethereum",
    "bitcoin",
    "crypto",
    "password",
    "passwort",
    "passphrase",
    "passw",
    "secret",
    "admin",
    "administrator",
    "root",
    "user",
    "login",
    "letmein",
    "welcome",
    "changeme",
    "qwerty",
    "qwertz",
    "azerty",
    "iloveyou",
    "sunshine",
    "princess",
    "dragon",
    "monkey",
    "football",
    "baseball",
    "master",
    "superman",
    "summer",
    "winter",
    "default",
];

/// Counts the characters of a password that somebody would have to guess.
pub(super) fn chars_to_guess(text: &str) -> usize {
    let typed: Vec<char> = text.chars().flat_map(char::to_lowercase).collect();
    let read: Vec<char> = typed.iter().copied().map(letter_meant).collect();
    let (mut count, mut at, mut run) = (0, 0, 1);
    let (mut before, mut pairs) = (None, HashSet::new());
    while let (Some(here), Some(rest)) = (typed.get(at).copied(), read.get(at..)) {
        if let Some(length) = known_length(rest) {
            (count, at, run, before) = (count + 1, at + length, 1, None);
            continue;
        }
        run = if before.is_some_and(|before| is_step(before, here)) { run + 1 } else { 1 };
        let is_new = before.is_none_or(|before| pairs.insert((before, here)));
        count += usize::from(is_new && run < 3);
        (before, at) = (Some(here), at + 1);
    }
    count
}

/// Returns the length of the longest known word that a text begins with.
fn known_length(text: &[char]) -> Option<usize> {
    let begins = |word: &&str| {
        word.len() <= text.len() && word.chars().zip(text).all(|(letter, other)| letter == *other)
    };
    // Each is plain ASCII, a byte for a letter.
    KNOWN.into_iter().filter(begins).map(str::len).max()
}

/// Returns whether a character is the one before it again, or its neighbour in a row.
fn is_step(before: char, here: char) -> bool {
    let (forth, back) = (String::from_iter([before, here]), String::from_iter([here, before]));
    before == here || ROWS.iter().any(|row| row.contains(&forth) || row.contains(&back))
}

/// Returns the letter that a digit or sign often stands for.
const fn letter_meant(character: char) -> char {
    match character {
        '0' => 'o',
        '1' | '!' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' => 't',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_rows_and_known_words_count_for_little() {
        for (text, count) in [
            ("", 0),
            ("aaaaaaaaaa", 2),
            ("ababababab", 2),
            ("adadadadadad", 3),
            ("xyzkxyzkxyzkxyzk", 4),
            ("1234567890", 2),
            ("9876543210", 3),
            ("qwertzuiopasdf", 5),
            ("Passw0rd1234", 3),
            ("farthing-farthing", 3),
            ("F4rth1ng!F4rth1ng!", 4),
            ("dragon monkey sunshine", 5),
        ] {
            assert_eq!(chars_to_guess(text), count, "{text}");
        }
    }

    #[test]
    fn words_without_a_tie_and_random_signs_count_nearly_all() {
        for text in [
            "four random words",
            "correct horse battery",
            "x7Kq9mPz2r",
            "žlutý kůň skáče",
            "雨が降る日の猫と窓の音",
        ] {
            let all = text.chars().count();
            assert!(chars_to_guess(text) + all / 6 >= all, "{text}: {}", chars_to_guess(text));
        }
    }
}
