//! Code with its parts told apart: comments, texts, keywords, numbers and names, each a class of the stylesheet.
//!
//! The code may hold strangers' texts; everything is escaped, and what is long stays plain.

use std::sync::LazyLock;

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

use super::{Markup, escaped};
use crate::show;

/// Of HTML. Beyond this a page would be large and slow; the rest is in the download.
const HTML_BYTES_MAX: usize = 36 * 1024;

/// Of many languages, read when code is first shown.
static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

/// Scopes that have a class of their own, the most telling first.
static CLASSES: LazyLock<Vec<(Scope, &'static str)>> = LazyLock::new(|| {
    let named = [
        ("comment", "c"),
        ("string", "s"),
        ("constant.numeric", "n"),
        ("constant.language", "n"),
        ("keyword", "k"),
        ("storage", "k"),
        ("entity.name", "f"),
        ("support.function", "f"),
        ("markup.heading", "k"),
        ("markup.raw", "s"),
    ];
    named.iter().filter_map(|(name, class)| Some((Scope::new(name).ok()?, *class))).collect()
});

/// The beginning of a file's text, in whole lines, and whether there is more.
pub(crate) fn of(path: &str, text: &str) -> (Markup, bool) {
    let extension = path.rsplit(['.', '/']).next().unwrap_or_default();
    let syntax = SYNTAXES.find_syntax_by_extension(extension);
    let mut state = ParseState::new(syntax.unwrap_or_else(|| SYNTAXES.find_syntax_plain_text()));
    let mut stack = ScopeStack::new();
    let mut html = CodeWriter::default();
    for line in text.split_inclusive('\n') {
        // A character takes six bytes at most, and its element as many again three times.
        if html.text.len() + line.len() * 24 > HTML_BYTES_MAX {
            return (html.end(), true);
        }
        // A line that cannot be parsed is shown without colours.
        let changes = state.parse_line(line, &SYNTAXES).unwrap_or_default();
        let mut from = 0;
        for (at, change) in changes {
            html.push(line.get(from..at).unwrap_or_default(), &stack);
            from = at;
            if stack.apply(&change).is_err() {
                stack = ScopeStack::new();
            }
        }
        html.push(line.get(from..).unwrap_or_default(), &stack);
    }
    (html.end(), false)
}

/// The HTML written so far. Neighbours of one class share an element.
#[derive(Default)]
struct CodeWriter {
    text: String,
    open: Option<&'static str>,
}

impl CodeWriter {
    fn push(&mut self, text: &str, stack: &ScopeStack) {
        let of_scope = |scope: &Scope| CLASSES.iter().find(|(known, _)| known.is_prefix_of(*scope));
        let class = stack.as_slice().iter().rev().find_map(of_scope).map(|(_, class)| *class);
        // Nobody sees the colour of a space.
        if !text.trim().is_empty() && class != self.open {
            self.close();
            if let Some(class) = class {
                self.text.push_str("<i class=\"");
                self.text.push_str(class);
                self.text.push_str("\">");
            }
            self.open = class;
        }
        self.text.push_str(&escaped(&show::visible_lines(text)));
    }

    fn close(&mut self) {
        if self.open.take().is_some() {
            self.text.push_str("</i>");
        }
    }

    fn end(mut self) -> Markup {
        self.close();
        Markup(self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_code_are_told_apart_and_nothing_in_it_is_alive() {
        let (html, more) = of("a/client.py", "# <script>\nname = \"a\u{202e}b\"\nreturn 1\n");
        let html = html.to_string();
        assert!(!more);
        for part in ["<i class=\"c\">", "&lt;script&gt;", "ab", "<i class=\"s\">", "<i class=\"k\">return"] {
            assert!(html.contains(part), "no {part} in {html}");
        }
        assert!(!html.contains("<script>") && !html.contains('\u{202e}'));
    }

    #[test]
    fn what_is_unknown_or_long_is_plain_or_cut() {
        assert_eq!(of("go.mod.unknown", "a < b").0.to_string(), "a &lt; b");
        let (html, more) = of("a.py", &"x = {1: \"a\"}\n".repeat(10_000));
        let html = html.to_string();
        assert!(more && html.len() <= HTML_BYTES_MAX, "{}", html.len());
        assert_eq!(html.matches("<i ").count(), html.matches("</i>").count());
    }
}
