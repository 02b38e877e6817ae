//! A sample answer, as a map, a table and text.
//!
//! The answer is a stranger's. GeoJSON becomes a map, a list of objects a table; anything else stays text. All of it
//! is bounded and escaped by the template.

use farthing_bridge::{pretty::pretty, samples::Origin};
use farthing_control::types::OperationSample;
use serde_json::Value;

use crate::{
    markup::{Markup, map_of},
    show,
    table::{self, Table},
};

const ROWS_MAX: usize = 12;
const TEXT_CHARS_MAX: usize = 4_000;

/// One sample as the template shows it.
pub(in crate::pages) struct Sample {
    pub(in crate::pages) operation: String,
    pub(in crate::pages) status: u16,
    pub(in crate::pages) origin: &'static str,
    pub(in crate::pages) map: Markup,
    pub(in crate::pages) table: Table,
    pub(in crate::pages) text: String,
    pub(in crate::pages) is_cut: bool,
}

impl Sample {
    pub(in crate::pages) fn new(named: &OperationSample) -> Self {
        let sample = &named.sample;
        let json: Option<Value> = serde_json::from_str(&sample.body).ok();
        let text =
            json.as_ref().map_or_else(|| sample.body.clone(), |json| pretty(json, 5 * TEXT_CHARS_MAX).text);
        Self {
            operation: show::visible(&named.operation),
            status: sample.status,
            origin: origin_words(sample.origin),
            map: json.as_ref().map(map_of).unwrap_or_default(),
            table: json.as_ref().map(|json| table::of(json, ROWS_MAX)).unwrap_or_default(),
            is_cut: text.chars().nth(TEXT_CHARS_MAX).is_some(),
            text: text.chars().filter(|c| !show::is_invisible(*c)).take(TEXT_CHARS_MAX).collect(),
        }
    }
}

pub(crate) const fn origin_words(origin: Origin) -> &'static str {
    match origin {
        Origin::Recorded => "Recorded from the owner's server",
        Origin::MediaExample | Origin::SchemaExample => "An example from the description",
        Origin::Synthesised => "Generated from the schema: the format is right, but the values are not real",
    }
}
