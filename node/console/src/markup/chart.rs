//! Figures over time, or in another order: a picture with round numbers beside it, what its colours mean, and a table of the
//! same values for those who do not see pictures or want a number. All of it is made of whole numbers, without scripts; with one
//! (`chart.js`), arrow keys lead from value to value.
//!
//! The colours are the stylesheet's: it names one for each class of a band.

mod drawing;
mod numbers;
mod scale;

use std::fmt::Write as _;

use farthing_values::Usdc;

use self::drawing::drawn;
pub(crate) use self::numbers::Numbers;
use super::{Markup, push_escaped};
use crate::show;

/// Parts of a time in one chart: there is no room for more. The newest are shown.
const PARTS_MAX: usize = 120;

/// Values over time.
#[derive(Debug)]
pub(crate) struct Chart<'a> {
    /// Begins the ids of its parts. No other chart of the page has it.
    pub(crate) id: &'a str,
    /// `Spent and earned in 7 days, in USDC`
    pub(crate) title: &'a str,
    pub(crate) unit: Unit,
    pub(crate) form: ChartForm,
    /// Heads the names of the parts: `Time (UTC)`.
    pub(crate) over: &'a str,
    /// The earliest first.
    pub(crate) parts: &'a [TimePart],
    pub(crate) bands: Vec<Band>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct TimePart {
    /// Below the chart, where there is room; empty where it never stands there.
    pub(crate) label: String,
    pub(crate) name: String,
}

/// The values of one colour, one for each part of the time.
#[derive(Debug, Clone)]
pub(crate) struct Band {
    pub(crate) name: &'static str,
    /// By which the stylesheet knows its colour.
    pub(crate) class: &'static str,
    /// `None` where there is no value, which is a gap and not zero.
    pub(crate) values: Vec<Option<u64>>,
}

/// The meaning of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Micros of USDC.
    Usdc,
    Calls,
    /// Microseconds.
    Time,
    Bytes,
    /// Of a stranger, from a number on that need not be zero.
    Number(Numbers),
}

/// The form in which values are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChartForm {
    /// A bar for each band, side by side.
    Beside,
    /// One bar of all bands.
    Stacked,
    Lines,
}

impl Unit {
    /// A value as a table has it.
    fn shown(self, value: u64) -> String {
        match self {
            Self::Usdc => format!("{} USDC", show::usdc(Usdc::from_micros(value))),
            Self::Calls => show::grouped(&value.to_string()),
            Self::Time => show::duration(value),
            Self::Bytes => format!("{} bytes", show::grouped(&value.to_string())),
            Self::Number(numbers) => numbers.shown(value),
        }
    }

    /// Returns whether a value says that nothing was.
    const fn is_nothing(self, value: u64) -> bool {
        value == 0 && !matches!(self, Self::Number(_))
    }
}

impl Band {
    fn at(&self, part: usize) -> Option<u64> {
        self.values.get(part).copied().flatten()
    }

    fn is_empty(&self, unit: Unit) -> bool {
        self.values.iter().all(|value| value.is_none_or(|value| unit.is_nothing(value)))
    }
}

impl Chart<'_> {
    /// The whole: colours, picture, and table.
    pub(crate) fn shown(mut self) -> Markup {
        self.bound();
        let mut html = String::new();
        // What never happened needs no colour.
        let named = self.bands.iter().filter(|band| !band.is_empty(self.unit));
        let keys = named.map(|band| format!("<span class=\"key {}\">{}</span>", band.class, band.name));
        let keys = keys.collect::<Vec<_>>().join(" ");
        if !keys.is_empty() {
            let _ = write!(html, "<p class=\"legend\">{keys}</p>");
        }
        html.push_str("<div class=\"plot\">");
        html.push_str(&drawn(&self));
        html.push_str("</div>");
        self.push_table(&mut html);
        Markup(html)
    }

    /// Keeps the newest parts that have room.
    fn bound(&mut self) {
        let hidden = self.parts.len().saturating_sub(PARTS_MAX);
        self.parts = self.parts.get(hidden..).unwrap_or_default();
        for band in &mut self.bands {
            band.values = band.values.iter().skip(hidden).copied().collect();
        }
    }

    fn is_empty(&self) -> bool {
        self.bands.iter().all(|band| band.is_empty(self.unit))
    }

    /// The values of one part in words, without those that are zero: `Spent 0.20 USDC, Earned 0.30 USDC`.
    fn words_at(&self, part: usize) -> String {
        let words = self.bands.iter().filter_map(|band| {
            let value = band.at(part).filter(|value| !self.unit.is_nothing(*value))?;
            Some(format!("{} {}", band.name, self.unit.shown(value)))
        });
        let words = words.collect::<Vec<_>>().join(", ");
        if words.is_empty() { "none".to_owned() } else { words }
    }

    /// Every part in which something was, and every band that is not empty.
    fn push_table(&self, html: &mut String) {
        if self.is_empty() {
            return;
        }
        let bands: Vec<&Band> = self.bands.iter().filter(|band| !band.is_empty(self.unit)).collect();
        html.push_str("<details><summary>Show as table</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table: ");
        push_escaped(html, self.title);
        html.push_str("\"><table><thead><tr><th scope=\"col\">");
        push_escaped(html, self.over);
        html.push_str("</th>");
        for band in &bands {
            let _ = write!(html, "<th scope=\"col\" class=\"number\">{}</th>", band.name);
        }
        html.push_str("</tr></thead><tbody>");
        for (part, time) in self.parts.iter().enumerate() {
            if bands.iter().any(|band| band.at(part).is_some_and(|value| !self.unit.is_nothing(value))) {
                self.push_row(html, &bands, part, time);
            }
        }
        html.push_str("</tbody></table></div></details>");
    }

    fn push_row(&self, html: &mut String, bands: &[&Band], part: usize, time: &TimePart) {
        html.push_str("<tr><td>");
        push_escaped(html, &time.name);
        html.push_str("</td>");
        for band in bands {
            let value = band.at(part).map_or_else(|| "–".to_owned(), |value| self.unit.shown(value));
            let _ = write!(html, "<td class=\"number\">{value}</td>");
        }
        html.push_str("</tr>");
    }
}

/// A small picture of some values in a list, without numbers; `title` says what they come to. Nothing where all are zero.
pub(crate) fn sparkline(values: &[u64], title: &str) -> Markup {
    drawing::spark(values, title).map_or_else(Markup::default, Markup)
}

#[cfg(test)]
mod tests;
