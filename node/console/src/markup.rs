//! Markup that may stand in a page as it is: only this module makes it, from strangers' text made harmless.

use std::fmt;

use askama::filters::{self, HtmlSafe};

mod chart;
mod code;
mod map;
mod markdown;
mod outline;
mod qr;
mod tree;

pub(super) use chart::{Band, Chart, ChartForm, Numbers, TimePart, Unit, sparkline};
pub(super) use code::of as code_of;
pub(super) use map::of as map_of;
pub(super) use markdown::{
    Passage, heading_id, own as own_markdown, passages, strangers as strangers_markdown,
};
pub(super) use outline::{Room, of as outline_of, text_in};
pub(super) use qr::code as qr_code;
pub(super) use tree::{JsonTree, of as tree_of};

/// HTML or SVG without scripts, handlers, styles or anything loaded from elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Markup(String);

impl Markup {
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }
}

/// One of our own texts, in which commands and settings stand between backticks, as they do where texts are printed.
/// What it quotes of others stays text.
pub(super) fn ticked(text: impl AsRef<str>) -> Markup {
    let text = text.as_ref();
    let mut html = String::with_capacity(text.len() + 32);
    let mut rest = text;
    while let Some((before, code, after)) = next_code(rest) {
        push_escaped(&mut html, before);
        html.push_str("<code>");
        push_escaped(&mut html, code);
        html.push_str("</code>");
        rest = after;
    }
    push_escaped(&mut html, rest);
    Markup(html)
}

/// Characters of what follows the first line of a problem and is shown at once.
const REST_CHARS: usize = 240;

/// A sentence of our own about what went wrong, and the step to take next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProblemText {
    /// A list may follow its first line.
    detail: String,
    /// A sentence; empty where there is no such step.
    next: String,
}

impl ProblemText {
    pub(super) fn new(detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), next: String::new() }
    }

    /// Adds the step to take next.
    pub(super) fn with_next(self, next: String) -> Self {
        Self { next, ..self }
    }
}

impl fmt::Display for ProblemText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let between = if self.next.is_empty() { "" } else { " " };
        write!(f, "{}{between}{}", self.detail.trim_end(), self.next)
    }
}

/// A problem with its next step: in the same line, or below the list, which is folded where it is long.
pub(super) fn problem(problem: &ProblemText) -> Markup {
    let Some((first, list)) = problem.detail.trim_end().split_once('\n') else {
        return Markup(paragraph(&problem.to_string()));
    };
    let list = if list.chars().count() <= REST_CHARS { paragraph(list) } else { folded(list) };
    Markup(format!("{}{list}{}", paragraph(first), paragraph(&problem.next)))
}

/// Nothing where nothing is said.
fn paragraph(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("<p>{}</p>", ticked(text)) }
}

fn folded(text: &str) -> String {
    format!("<details><summary>Details</summary>{}</details>", paragraph(text))
}

/// Characters of a name that a row of a table has room for.
pub(super) const NAME_CHARS: usize = 32;
/// Characters of anything longer in a row.
pub(super) const LINE_CHARS: usize = 72;

/// A stranger's name in one line, cut where it is longer than `chars_max`. The whole of it is shown to a pointer, and by
/// [`whole`] to everybody.
pub(super) fn cut(text: impl AsRef<str>, chars_max: usize) -> Markup {
    let text = text.as_ref();
    let mut html = String::new();
    match text.char_indices().nth(chars_max) {
        None => {
            html.push_str("<bdi>");
            push_escaped(&mut html, text);
        }
        Some((end, _)) => {
            html.push_str("<bdi title=\"");
            push_escaped(&mut html, text);
            html.push_str("\">");
            push_escaped(&mut html, text.get(..end).unwrap_or(text).trim_end());
            html.push('…');
        }
    }
    html.push_str("</bdi>");
    Markup(html)
}

/// A name that [`cut`] shortens, whole, behind a small button; nothing where it shortens nothing.
pub(super) fn whole(text: impl AsRef<str>, chars_max: usize) -> Markup {
    let text = text.as_ref();
    if text.chars().nth(chars_max).is_none() {
        return Markup::default();
    }
    let mut html = "<details class=\"whole\"><summary>Show all</summary><bdi>".to_owned();
    push_escaped(&mut html, text);
    html.push_str("</bdi></details>");
    Markup(html)
}

/// A path, whose lines break behind its slashes where it is too long for one.
pub(super) fn path(text: impl AsRef<str>) -> Markup {
    let mut html = String::new();
    push_escaped(&mut html, text.as_ref());
    Markup(html.replace('/', "/<wbr>"))
}

/// Splits a text into what stands before, in and behind the first pair of backticks.
fn next_code(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('`')?;
    let (code, after) = rest.split_once('`')?;
    Some((before, code, after))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// As templates escape it.
fn push_escaped(html: &mut String, text: &str) {
    let escaped = filters::escape(text, filters::Html);
    html.push_str(&escaped.map_or_else(|_| String::new(), |escaped| escaped.to_string()));
}

impl fmt::Display for Markup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Markup {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_and_all_of_it_is_there_on_demand() {
        assert_eq!(cut("Tides & <i>", 32).to_string(), "<bdi>Tides &#38; &#60;i&#62;</bdi>");
        assert!(whole("Tides", 5).is_empty());
        assert_eq!(cut("Tidés of", 6).to_string(), "<bdi title=\"Tidés of\">Tidés…</bdi>");
        let html = "<details class=\"whole\"><summary>Show all</summary><bdi>a&#34;b</bdi></details>";
        assert_eq!(whole("a\"b", 2).to_string(), html);
    }

    #[test]
    fn a_path_may_break_behind_each_slash_and_is_no_markup() {
        assert_eq!(path("/v1/{id}").to_string(), "/<wbr>v1/<wbr>{id}");
        assert_eq!(path("/<b>").to_string(), "/<wbr>&#60;b&#62;");
    }

    #[test]
    fn the_first_line_of_a_problem_is_seen_and_a_long_rest_is_folded() {
        assert_eq!(shown_problem("Not `so`.", ""), "<p>Not <code>so</code>.</p>");
        assert_eq!(shown_problem("Tried:\n  <a>\n", ""), "<p>Tried:</p><p>  &#60;a&#62;</p>");
        let long = shown_problem(&format!("Tried:\n{}", "/path ".repeat(75)), "");
        assert!(long.starts_with("<p>Tried:</p><details><summary>Details</summary><p>/path "), "{long}");
        assert!(long.ends_with("/path</p></details>"), "{long}");
    }

    #[test]
    fn the_next_step_stands_behind_one_line_and_below_a_list() {
        assert_eq!(shown_problem("So.", "Use `this`."), "<p>So. Use <code>this</code>.</p>");
        assert_eq!(shown_problem("Tried:\n/a.", "Use this."), "<p>Tried:</p><p>/a.</p><p>Use this.</p>");
        let long = shown_problem(&format!("Tried:\n{}", "/path ".repeat(75)), "Use this.");
        assert!(long.ends_with("<p>Use this.</p>"), "it is seen: {long}");
    }

    fn shown_problem(detail: &str, next: &str) -> String {
        problem(&ProblemText::new(detail).with_next(next.to_owned())).to_string()
    }

    #[test]
    fn commands_in_a_text_are_marked_and_nothing_else_becomes_markup() {
        for (text, html) in [
            ("run `farthing doctor`.", "run <code>farthing doctor</code>."),
            ("`a` and `b`", "<code>a</code> and <code>b</code>"),
            ("one ` alone", "one ` alone"),
            ("`<b>` \"it's\" & <i>", "<code>&#60;b&#62;</code> &#34;it&#39;s&#34; &#38; &#60;i&#62;"),
        ] {
            assert_eq!(ticked(text).to_string(), html);
        }
    }
}
