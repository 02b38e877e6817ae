//! Names that compile: of the right case, none twice, none that means something else.
//!
//! A stranger's name is written in ASCII ([`deunicode`]), split into words and joined in the language's case. One that
//! begins with a digit gets an `n` in front, one that is taken an underscore at its end, one that is given twice a number.

use std::collections::{BTreeMap, BTreeSet};

use deunicode::deunicode;
use farthing_bridge::shown;
use heck::{ToLowerCamelCase, ToPascalCase, ToShoutySnakeCase, ToSnakeCase};

use super::profile::Case;

/// Longer names are cut; a stranger chose them.
const NAME_CHARS_MAX: usize = 60;

/// Hands out names of one scope.
#[derive(Debug)]
pub(super) struct Scope {
    case: Case,
    ignores_case: bool,
    reserved: BTreeSet<String>,
    taken: BTreeSet<String>,
    /// The next number to try for a name that is given already.
    next: BTreeMap<String, usize>,
}

impl Scope {
    /// `reserved` are lists of names, apart by blanks.
    pub(super) fn new(case: Case, ignores_case: bool, reserved: &[&str]) -> Self {
        let key = |name: &str| if ignores_case { name.to_ascii_lowercase() } else { name.to_owned() };
        let reserved = reserved.iter().flat_map(|names| names.split_ascii_whitespace()).map(key).collect();
        Self { case, ignores_case, reserved, taken: BTreeSet::new(), next: BTreeMap::new() }
    }

    /// A name for `wanted`; `fallback` when nothing of it can be said in ASCII. `what` names it in a warning.
    pub(super) fn name(
        &mut self,
        wanted: &str,
        fallback: &str,
        what: &str,
        warnings: &mut Vec<String>,
    ) -> String {
        let plain = self.plain(wanted, fallback);
        let mut name = plain.clone();
        if self.reserved.contains(&self.key(&name)) {
            name.push('_');
        }
        if !self.taken.insert(self.key(&name)) {
            name = self.numbered(&name);
        }
        if name != written(wanted, self.case) {
            warnings.push(format!("{what} `{}` is called `{name}`", shown(wanted)));
        }
        name
    }

    fn plain(&self, wanted: &str, fallback: &str) -> String {
        let name = written(wanted, self.case);
        if name.is_empty() {
            return written(fallback, self.case);
        }
        // `1st` becomes `n1st`, `N1st` or `N1ST`.
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            let is_small = matches!(self.case, Case::Snake | Case::Camel);
            let letter = if is_small { 'n' } else { 'N' };
            return format!("{letter}{name}");
        }
        name
    }

    fn numbered(&mut self, name: &str) -> String {
        loop {
            let number = self.next.entry(name.to_owned()).or_insert(2);
            let apart = if name.ends_with(|c: char| c.is_ascii_digit()) { "_" } else { "" };
            let candidate = format!("{name}{apart}{number}");
            *number += 1;
            let key = self.key(&candidate);
            if !self.reserved.contains(&key) && self.taken.insert(key) {
                return candidate;
            }
        }
    }

    fn key(&self, name: &str) -> String {
        if self.ignores_case { name.to_ascii_lowercase() } else { name.to_owned() }
    }
}

/// The words of `text` in a case; may be empty or begin with a digit.
pub(super) fn written(text: &str, case: Case) -> String {
    let ascii: String = deunicode(text)
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '+' { c } else { ' ' })
        .collect();
    // `+1` and `-1` are different things.
    let sign = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    let words = match (ascii.strip_prefix('-'), ascii.strip_prefix('+')) {
        (Some(rest), _) if sign(rest) => format!("minus {rest}"),
        (_, Some(rest)) if sign(rest) => format!("plus {rest}"),
        _ => ascii,
    };
    let words: String = words.chars().take(NAME_CHARS_MAX).collect();
    match case {
        Case::Snake => words.to_snake_case(),
        Case::Camel => words.to_lower_camel_case(),
        Case::Pascal => words.to_pascal_case(),
        Case::PascalInitials => words.to_snake_case().split('_').map(initials_or_pascal).collect(),
        Case::Shouty => words.to_shouty_snake_case(),
    }
}

/// A word in small letters, for names as Go writes them.
fn initials_or_pascal(word: &str) -> String {
    // Those that Go's own linters ask for.
    const INITIALS: [&str; 24] = [
        "acl", "api", "ascii", "cpu", "css", "db", "dns", "eof", "html", "http", "https", "id", "ip", "json",
        "ram", "sql", "tcp", "tls", "udp", "ui", "uri", "url", "uuid", "xml",
    ];
    if INITIALS.contains(&word) { word.to_ascii_uppercase() } else { word.to_pascal_case() }
}
