//! The text of `fields`: `*`, names, `name.below` and `name(below,below)`, separated by commas.
//!
//! Names that occur again are put together: `host.name,host.mass` is `host(name,mass)`.

use crate::{
    limits::{FIELDS_BYTES_MAX, FIELDS_DEPTH_MAX, FIELDS_MAX},
    shown,
};

/// The fields that are wanted of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RequestedFields<'a> {
    /// `*`
    pub all: bool,
    /// In the caller's order; every text once.
    pub names: Vec<Name<'a>>,
}

/// A name as the caller wrote it, not yet looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name<'a> {
    pub text: &'a str,
    /// Counted in characters, from 1.
    pub position: usize,
    /// True if it was written without anything below it.
    pub alone: bool,
    pub below: Option<RequestedFields<'a>>,
}

/// Reads the text, or says where it goes wrong.
pub(super) fn parse(text: &str) -> Result<RequestedFields<'_>, String> {
    if text.len() > FIELDS_BYTES_MAX {
        return Err(format!("`fields` has {} bytes, {FIELDS_BYTES_MAX} are allowed", text.len()));
    }
    let mut parser = Parser { text, at: 0, names: 0 };
    parser.skip_blanks();
    if parser.peek().is_none() {
        return Err("`fields` is empty; name at least one field, or leave it out".into());
    }
    let mut wanted = RequestedFields::default();
    parser.list(&mut wanted, 1)?;
    if parser.peek().is_some() {
        return Err(parser.unexpected("a comma or the end"));
    }
    Ok(wanted)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    names: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn position(&self) -> usize {
        self.text[..self.at].chars().count() + 1
    }

    fn skip_blanks(&mut self) {
        self.at += self.text[self.at..].bytes().take_while(|b| *b == b' ').count();
    }

    /// Reads `c` and the blanks behind it, if it is next.
    fn take(&mut self, c: char) -> bool {
        let taken = self.peek() == Some(c);
        if taken {
            self.at += c.len_utf8();
            self.skip_blanks();
        }
        taken
    }

    fn unexpected(&self, expected: &str) -> String {
        let found = self.peek().map_or_else(|| "ends".into(), |c| format!("has `{}`", shown(&c.to_string())));
        format!("`fields`, position {}: expected {expected}, but it {found}", self.position())
    }

    fn list(&mut self, into: &mut RequestedFields<'a>, depth: usize) -> Result<(), String> {
        loop {
            self.item(into, depth)?;
            if !self.take(',') {
                return Ok(());
            }
        }
    }

    fn item(&mut self, into: &mut RequestedFields<'a>, depth: usize) -> Result<(), String> {
        if depth > FIELDS_DEPTH_MAX {
            return Err(format!(
                "`fields`, position {}: {FIELDS_DEPTH_MAX} levels are allowed",
                self.position()
            ));
        }
        if self.take('*') {
            into.all = true;
            return Ok(());
        }
        let name = self.name()?;
        if self.take('.') {
            self.item(name.below(into), depth + 1)
        } else if self.take('(') {
            self.list(name.below(into), depth + 1)?;
            if self.take(')') { Ok(()) } else { Err(self.unexpected("a comma or `)`")) }
        } else {
            name.entry(into).alone = true;
            Ok(())
        }
    }

    fn name(&mut self) -> Result<Name<'a>, String> {
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        if length == 0 {
            return Err(self.unexpected("a name or `*`"));
        }
        self.names += 1;
        if self.names > FIELDS_MAX {
            return Err(format!("`fields` names more than {FIELDS_MAX} fields; choose fewer"));
        }
        let name = Name { text: &rest[..length], position: self.position(), alone: false, below: None };
        self.at += length;
        self.skip_blanks();
        Ok(name)
    }
}

impl<'a> Name<'a> {
    /// Its place in `into`, made if it is new there.
    fn entry<'w>(self, into: &'w mut RequestedFields<'a>) -> &'w mut Self {
        let index = into.names.iter().position(|name| name.text == self.text).unwrap_or_else(|| {
            into.names.push(self);
            into.names.len() - 1
        });
        &mut into.names[index]
    }

    /// Returns the fields that are wanted below it, none at first.
    fn below<'w>(self, into: &'w mut RequestedFields<'a>) -> &'w mut RequestedFields<'a> {
        self.entry(into).below.get_or_insert_default()
    }
}
