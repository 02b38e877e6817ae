//! Tokens into definitions: one by one they are repaired and parsed, so that a mistake in one does not hide those in
//! others, and a large schema needs no more memory than its largest type.

use super::scan::{Kind, Token};

/// The tokens of one definition, and what its first ones say.
#[derive(Debug)]
pub(super) struct Definition<'a> {
    pub tokens: &'a [Token],
    pub description: Option<Token>,
    pub extend: Option<Token>,
    /// `type`, `schema`, …; absent when there is something else.
    pub keyword: Option<Token>,
}

/// Tells whether a word is one that a definition begins with.
fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "schema" | "scalar" | "type" | "interface" | "union" | "enum" | "input" | "directive" | "extend"
    )
}

/// The definitions of a document. Keywords are also allowed as names, so the word before decides.
pub(super) fn definitions<'a>(text: &str, tokens: &'a [Token]) -> Vec<Definition<'a>> {
    let mut starts = Vec::new();
    let mut depth = 0_usize;
    // The next word is a name, whatever it looks like.
    let mut expects_name = false;
    // A description or `extend` has begun the definition that a keyword now continues.
    let mut has_begun = false;
    for (index, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Punctuator(b'(' | b'[' | b'{') => (depth, expects_name) = (depth + 1, false),
            Kind::Punctuator(b')' | b']' | b'}') => depth = depth.saturating_sub(1),
            _ if depth > 0 => continue,
            Kind::String | Kind::Block => {
                starts.push(index);
                (expects_name, has_begun) = (false, true);
                continue;
            }
            Kind::Name if !expects_name => {
                let word = token.text(text);
                if is_keyword(word) {
                    if !has_begun {
                        starts.push(index);
                    }
                    has_begun = word == "extend";
                    expects_name = !matches!(word, "extend" | "schema" | "directive");
                    continue;
                }
                expects_name = matches!(word, "implements" | "on");
            }
            Kind::Punctuator(b'@' | b'=' | b'|' | b'&') => expects_name = true,
            Kind::Name | Kind::Number | Kind::Punctuator(_) => expects_name = false,
        }
        has_begun = false;
    }
    // What comes before the first definition is one too, and refused as such.
    if starts.first() != Some(&0) {
        starts.insert(0, 0);
    }
    let ends = starts.iter().skip(1).copied().chain([tokens.len()]);
    starts
        .iter()
        .zip(ends)
        .filter_map(|(start, end)| tokens.get(*start..end))
        .filter(|tokens| !tokens.is_empty())
        .map(|tokens| head(text, tokens))
        .collect()
}

fn head<'a>(text: &str, tokens: &'a [Token]) -> Definition<'a> {
    let mut rest = tokens.iter().copied().peekable();
    let description = rest.next_if(|token| matches!(token.kind, Kind::String | Kind::Block));
    let extend = rest.next_if(|token| token.kind == Kind::Name && token.text(text) == "extend");
    let keyword = rest.next_if(|token| token.kind == Kind::Name && is_keyword(token.text(text)));
    Definition { tokens, description, extend, keyword }
}

impl Definition<'_> {
    /// The word it begins with, or nothing.
    pub fn keyword_text<'t>(&self, text: &'t str) -> &'t str {
        self.keyword.map_or("", |keyword| keyword.text(text))
    }

    /// Returns the name of what it defines; empty when there is none.
    pub fn name<'t>(&self, text: &'t str) -> &'t str {
        let mut tokens = self.tokens.iter();
        tokens.find(|token| self.keyword.is_some_and(|keyword| keyword.start == token.start));
        match tokens.next() {
            Some(token) if token.kind == Kind::Name => token.text(text),
            _ => "",
        }
    }
}
