//! Markup that may stand in a page as it is: only this module makes it, from strangers' text made harmless.

use std::fmt;

use askama::filters::HtmlSafe;

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

impl fmt::Display for Markup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Markup {}
