//! Signs that a line of plain text may hold, so that nobody reads something else than what is written. Pure.
//!
//! A sign that leaves no ink makes two names look like one, or a name look like none. Names, tags and categories
//! therefore hold only what can be seen, and the plain blank between it. A summary is prose in any script: there,
//! joiners within words, other blanks and the marks that choose a sign's form stay. What hides or reorders text
//! has no place in either.

/// The purpose of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// Names, tags, categories: compared by eye.
    Name,
    /// Summaries: read.
    Prose,
}

/// The reason that a text is no line of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPlain {
    /// Positions count from 1, in characters.
    #[error("has U+{code:04X} as its character {position}; write {}", .line.wanted(), code = u32::from(*.sign))]
    Sign { sign: char, position: usize, line: Line },
    #[error("begins or ends with a blank; leave it out")]
    Edge,
}

impl Line {
    const fn wanted(self) -> &'static str {
        match self {
            Self::Name => "only what can be seen, with plain blanks between",
            Self::Prose => "nothing that hides or reorders text",
        }
    }

    /// Returns whether a line of this kind may hold `sign`.
    #[must_use]
    pub fn holds(self, sign: char) -> bool {
        match self {
            Self::Name => sign == ' ' || !(sign.is_whitespace() || leaves_no_ink(sign)),
            Self::Prose => shapes_its_neighbours(sign) || !leaves_no_ink(sign),
        }
    }

    /// Checks every sign, and that no blank stands at either end.
    pub fn check(self, text: &str) -> Result<(), NotPlain> {
        if let Some((index, sign)) = text.chars().enumerate().find(|(_, sign)| !self.holds(*sign)) {
            return Err(NotPlain::Sign { sign, position: index + 1, line: self });
        }
        if text.trim() == text { Ok(()) } else { Err(NotPlain::Edge) }
    }

    /// `text` without the signs that a line of this kind cannot hold, and without blanks at its ends.
    #[must_use]
    pub fn of(self, text: &str) -> String {
        let plain: String = text.chars().filter(|sign| self.holds(*sign)).collect();
        plain.trim().to_owned()
    }
}

/// Signs that belong into words of some scripts, or choose how their neighbour looks: the joiners of Persian and
/// Hindi, the variation selectors of Mongolian, of ideographs and of emoji.
const fn shapes_its_neighbours(sign: char) -> bool {
    matches!(
        sign,
        '\u{200c}' | '\u{200d}' | '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}'
    )
}

/// Signs that nobody sees: control characters; line and paragraph separators; every code point that Unicode calls
/// `Default_Ignorable_Code_Point` (`DerivedCoreProperties.txt` of Unicode 16), among them what reorders text; the
/// few outside that property which are drawn as nothing; and those for private use, about whose looks nobody
/// agrees.
fn leaves_no_ink(sign: char) -> bool {
    let is_ignorable = matches!(
        sign,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    // Braille without dots, a musical note without a head, blanks among Egyptian hieroglyphs, the filler of the
    // Khitan script, the anchors of annotations, and the place of an object that is not there.
    let is_blank = matches!(
        sign,
        '\u{2800}' | '\u{1d159}' | '\u{13441}'..='\u{13442}' | '\u{16fe4}' | '\u{fff9}'..='\u{fffc}'
    );
    let is_private = matches!(sign, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}');
    sign.is_control() || matches!(sign, '\u{2028}' | '\u{2029}') || is_ignorable || is_blank || is_private
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_holds_only_what_can_be_seen() {
        for seen in
            ["Earthquakes", "Wetter für Köln", "地震", "हिन्दी", "فارسی", "Café №1", "🌍 Earth", "a  b", "ᄒᆞᆫ"]
        {
            assert_eq!(Line::Name.check(seen), Ok(()), "{seen}");
        }
        for unseen in [
            '\n',
            '\u{7f}',
            '\u{85}',
            '\u{a0}',
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{1160}',
            '\u{1680}',
            '\u{17b4}',
            '\u{180e}',
            '\u{2003}',
            '\u{200b}',
            '\u{200c}',
            '\u{200d}',
            '\u{2028}',
            '\u{202e}',
            '\u{202f}',
            '\u{205f}',
            '\u{2060}',
            '\u{2066}',
            '\u{206f}',
            '\u{2800}',
            '\u{3000}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{fffc}',
            '\u{e000}',
            '\u{1d159}',
            '\u{1d173}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e007f}',
            '\u{e0100}',
            '\u{10fffd}',
        ] {
            let refused = NotPlain::Sign { sign: unseen, position: 3, line: Line::Name };
            assert_eq!(
                Line::Name.check(&format!("é!{unseen}b")),
                Err(refused),
                "U+{:04X}",
                u32::from(unseen)
            );
        }
    }

    #[test]
    fn prose_keeps_what_its_script_needs_and_hides_nothing() {
        for prose in [
            "می‌خواهم",
            "क्‍ष",
            "Météo\u{a0}: 5 °C",
            "天気　予報",
            "\u{26a1}\u{fe0f} fast",
            "葛\u{e0100}",
            "👩\u{200d}🔬",
            "",
        ] {
            assert_eq!(Line::Prose.check(prose), Ok(()), "{prose}");
        }
        for hidden in
            ['\n', '\u{ad}', '\u{200b}', '\u{202e}', '\u{2066}', '\u{2800}', '\u{3164}', '\u{e0041}']
        {
            assert!(Line::Prose.check(&format!("a{hidden}b")).is_err(), "U+{:04X}", u32::from(hidden));
        }
    }

    #[test]
    fn no_line_begins_or_ends_with_a_blank() {
        for edged in [" a", "a ", " "] {
            assert_eq!(Line::Name.check(edged), Err(NotPlain::Edge), "{edged:?}");
            assert_eq!(Line::Prose.check(edged), Err(NotPlain::Edge), "{edged:?}");
        }
        assert_eq!(Line::Prose.check("\u{a0}a"), Err(NotPlain::Edge));
    }

    #[test]
    fn what_is_wrong_is_said_with_the_sign_and_its_place() {
        let error = Line::Name.check("Pay\u{3164}Pal").unwrap_err().to_string();
        assert_eq!(
            error,
            "has U+3164 as its character 4; write only what can be seen, with plain blanks between"
        );
    }

    #[test]
    fn what_is_left_of_any_text_is_a_line() {
        for text in ["\u{26a1}\u{fe0f} Weather \u{a0}", "\u{3164}", " a\u{2028}b ", "plain"] {
            for line in [Line::Name, Line::Prose] {
                assert_eq!(line.check(&line.of(text)), Ok(()), "{text:?}");
            }
        }
        assert_eq!(Line::Name.of("\u{26a1}\u{fe0f} Weather"), "\u{26a1} Weather");
    }
}
