//! Markup that may stand in a page as it is: only this module makes it, from strangers' text made harmless.

use std::fmt;

use askama::filters::{self, HtmlSafe};

mod chart;
mod code;
mod map;
mod markdown;
mod qr;

pub(super) use chart::days as chart_of_days;
pub(super) use code::of as code_of;
pub(super) use map::of as map_of;
pub(super) use markdown::{own as own_markdown, strangers as strangers_markdown};
pub(super) use qr::code as qr_code;

/// HTML or SVG without scripts, handlers, styles or anything loaded from elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Markup(String);

impl Markup {
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
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
