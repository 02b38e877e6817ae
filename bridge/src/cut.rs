//! Text of which no more is written than is kept: what a stranger wrote may be a thousand times as long.

use std::fmt::{self, Display, Write as _};

/// The beginning of the text of `value`, at most `bytes_max` long; and whether that is all of it.
pub(crate) fn beginning(value: &impl Display, bytes_max: usize) -> (String, bool) {
    let mut beginning = Beginning { text: String::new(), bytes_max };
    // The only error there is: it is full.
    let is_whole = write!(beginning, "{value}").is_ok();
    (beginning.text, is_whole)
}

/// The text of `value`, if it is at most `bytes_max` long.
pub(crate) fn whole(value: &impl Display, bytes_max: usize) -> Option<String> {
    let (text, is_whole) = beginning(value, bytes_max);
    is_whole.then_some(text)
}

/// Takes what is written until it is full.
struct Beginning {
    text: String,
    bytes_max: usize,
}

impl fmt::Write for Beginning {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let taken = text.floor_char_boundary(self.bytes_max - self.text.len());
        self.text.push_str(&text[..taken]);
        // An error tells the writer to stop.
        if taken == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_behind_a_whole_character() {
        let seen = |bytes_max| beginning(&"aé", bytes_max);
        assert_eq!(seen(3), ("aé".into(), true));
        assert_eq!(seen(2), ("a".into(), false));
        assert_eq!((whole(&"aé", 3), whole(&"aé", 2)), (Some("aé".into()), None));
    }

    #[test]
    fn nothing_is_written_behind_the_end() {
        struct Endless;
        impl Display for Endless {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                loop {
                    f.write_str("ab")?;
                }
            }
        }
        assert_eq!(beginning(&Endless, 5), ("ababa".into(), false));
    }
}
