//! Rewrites a definition that the parser would refuse although it is common, or correct.
//!
//! The parser (async-graphql-parser 7.2.1) does not know: a description on `schema`, a schema without queries,
//! spaces inside `[Int!]`, names that begin with `true`, `false` or `null`, `\u{…}` and surrogate pairs in strings;
//! and it leaves `\"""` in block strings as it is. Common though wrong are: commas between interfaces, empty
//! brackets, a description on `extend`, unknown escapes. What the owner may want to mend is reported.

use std::borrow::Cow;

use super::{
    position::{self, Anchor, Anchors},
    scan::{Kind, Token},
    split::Definition,
    strings,
};
use crate::{graphql::draft, report::Report};

/// Precedes names that the parser would cut after `true`, `false` or `null`, and those that begin with it already.
const ESCAPE: &str = "farthing__";

/// A definition as the parser takes it.
#[derive(Debug)]
pub(super) struct Repaired<'a> {
    pub text: Cow<'a, str>,
    pub anchors: Anchors,
}

/// The owner's name for one that comes from the parser.
pub(super) fn unescape(name: &str) -> &str {
    name.strip_prefix(ESCAPE).unwrap_or(name)
}

/// Rewrites a definition; `source_at` is where its first token stands.
///
/// Extensions lose their `extend`, because the parser allows more without; `schema` always gets one, for the same
/// reason.
pub(super) fn repair<'a>(
    text: &'a str,
    definition: &Definition<'_>,
    source_at: (u64, u64),
    report: &mut Report,
) -> Repaired<'a> {
    let (Some(first), Some(last)) = (definition.tokens.first(), definition.tokens.last()) else {
        return Repaired { text: Cow::Borrowed(""), anchors: Anchors(Vec::new()) };
    };
    let mut edits = Edits { text, list: Vec::new(), notes: Vec::new() };
    edits.head(definition);
    edits.implements(definition.tokens);
    edits.body(definition.tokens);
    if !edits.notes.is_empty() {
        let keyword_start = definition.keyword.map_or(first.start, |keyword| keyword.start);
        let at = position::advance(source_at, text.get(first.start..keyword_start).unwrap_or_default());
        let place = draft::place(definition.keyword_text(text), definition.name(text), Some(at));
        edits.notes.iter().for_each(|note| report.repaired.add(&place, note));
    }
    edits.apply(first.start..last.end, source_at)
}

struct Edit {
    start: usize,
    end: usize,
    by: Cow<'static, str>,
}

struct Edits<'a> {
    text: &'a str,
    list: Vec<Edit>,
    /// Each once.
    notes: Vec<&'static str>,
}

impl<'a> Edits<'a> {
    fn replace(&mut self, start: usize, end: usize, by: impl Into<Cow<'static, str>>) {
        self.list.push(Edit { start, end, by: by.into() });
    }

    fn note(&mut self, what: &'static str) {
        if !self.notes.contains(&what) {
            self.notes.push(what);
        }
    }

    fn head(&mut self, definition: &Definition<'_>) {
        let is_schema = definition.keyword_text(self.text) == "schema";
        if let Some(description) = definition.description
            && (is_schema || definition.extend.is_some())
        {
            self.replace(description.start, description.end, "");
            self.note("a description is not used here and was left out");
        }
        match (definition.extend, definition.keyword) {
            (Some(extend), _) if !is_schema => self.replace(extend.start, extend.end, ""),
            (None, Some(keyword)) if is_schema => self.replace(keyword.start, keyword.start, "extend "),
            _ => {}
        }
    }

    /// `implements A, B` and `implements A B`.
    fn implements(&mut self, tokens: &[Token]) {
        // Keyword, name and `implements` of a definition without description come first.
        let names = tokens
            .iter()
            .take_while(|token| !token.is(b'{') && !token.is(b'@'))
            .skip_while(|token| token.kind != Kind::Name || token.text(self.text) != "implements")
            .skip(1);
        let mut before: Option<Token> = None;
        for token in names {
            if let Some(before) = before
                && before.kind == Kind::Name
                && token.kind == Kind::Name
            {
                self.replace(before.end, token.start, " & ");
                self.note("interfaces are separated by `&`; it was put between them");
            }
            before = Some(*token);
        }
    }

    fn body(&mut self, tokens: &[Token]) {
        let mut depth = 0_usize;
        for (index, token) in tokens.iter().enumerate() {
            let next = tokens.get(index + 1).copied();
            match token.kind {
                Kind::Punctuator(b'{' | b'(') => {
                    if let Some(next) = next
                        && (token.is(b'(') && next.is(b')') || depth == 0 && next.is(b'}'))
                    {
                        self.replace(token.start, next.end, " ");
                        self.note("empty brackets were left out");
                    }
                    depth += 1;
                }
                Kind::Punctuator(b'[') => {
                    depth += 1;
                    self.join(*token, next.filter(|next| next.is(b'[') || next.kind == Kind::Name));
                }
                Kind::Punctuator(b']') => {
                    depth = depth.saturating_sub(1);
                    self.join(*token, next.filter(|next| next.is(b']') || next.is(b'!')));
                }
                Kind::Punctuator(b'}' | b')') => depth = depth.saturating_sub(1),
                Kind::Punctuator(b'!') => self.join(*token, next.filter(|next| next.is(b']'))),
                Kind::Name => {
                    self.name(*token);
                    self.join(*token, next.filter(|next| next.is(b']') || next.is(b'!')));
                }
                Kind::String => self.string(*token),
                Kind::Block => self.block(*token),
                Kind::Number | Kind::Punctuator(_) => {}
            }
        }
    }

    /// Removes what is between two tokens of a type such as `[ Int ! ]`. In values it changes nothing.
    fn join(&mut self, token: Token, next: Option<Token>) {
        if let Some(next) = next
            && next.start > token.end
        {
            self.replace(token.end, next.start, "");
        }
    }

    fn name(&mut self, token: Token) {
        let name = token.text(self.text);
        let is_cut = ["true", "false", "null"].iter().any(|word| name.starts_with(word) && name != *word);
        if is_cut || name.starts_with(ESCAPE) {
            self.replace(token.start, token.start, ESCAPE);
        }
    }

    fn string(&mut self, token: Token) {
        let source = token.text(self.text);
        if source.contains('\\')
            && let Some(better) = strings::escapes(source)
        {
            self.replace(token.start, token.end, better.text);
            if better.is_wrong {
                self.note("a backslash in a string begins no escape; it was taken literally");
            } else {
                self.note("`\\u{…}` or a surrogate pair in a string was replaced by its character");
            }
        }
    }

    fn block(&mut self, token: Token) {
        let source = token.text(self.text);
        if source.contains(r#"\""""#) {
            let raw = source.get(3..source.len() - 3).unwrap_or_default();
            self.replace(token.start, token.end, strings::quoted(&strings::block_value(raw)));
        }
    }

    fn apply(mut self, range: std::ops::Range<usize>, source_at: (u64, u64)) -> Repaired<'a> {
        let anchor = Anchor { repaired: (1, 1), source: source_at };
        let mut anchors = vec![anchor];
        if self.list.is_empty() {
            let text = self.text.get(range).unwrap_or_default();
            return Repaired { text: Cow::Borrowed(text), anchors: Anchors(anchors) };
        }
        // Head, interfaces and body were looked at one after the other. Of two edits of the same bytes the first
        // stays; they are a left out description and its own repair.
        self.list.sort_by_key(|edit| edit.start);
        let mut text = String::with_capacity(range.len() + 16 * self.list.len());
        let mut at = range.start;
        let Anchor { mut repaired, source: mut source_position } = anchor;
        for edit in self.list.iter().filter(|edit| edit.end <= range.end) {
            if edit.start < at {
                continue;
            }
            let (kept, replaced) =
                (self.text.get(at..edit.start).unwrap_or_default(), self.text.get(edit.start..edit.end));
            text.push_str(kept);
            text.push_str(&edit.by);
            repaired = position::advance(position::advance(repaired, kept), &edit.by);
            source_position =
                position::advance(position::advance(source_position, kept), replaced.unwrap_or_default());
            anchors.push(Anchor { repaired, source: source_position });
            at = edit.end;
        }
        text.push_str(self.text.get(at..range.end).unwrap_or_default());
        Repaired { text: Cow::Owned(text), anchors: Anchors(anchors) }
    }
}
