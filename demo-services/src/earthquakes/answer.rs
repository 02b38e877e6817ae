//! One answer: the chosen events' own JSON, under metadata that says which data they come from.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use super::catalog::{EarthquakeCatalog, Event};
use super::query::EarthquakeQuery;

/// The data being served, and where it comes from.
#[derive(Debug, Clone)]
pub struct Edition {
    pub(super) catalog: Arc<EarthquakeCatalog>,
    pub source: Source,
}

/// The source of an answer's data. All times are Unix milliseconds, as everywhere in the survey's format.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Source {
    /// The week that is part of this program.
    Snapshot {
        /// Address at which the survey published it.
        url: String,
        /// Time at which the survey wrote it.
        since: i64,
    },
    /// A feed that is looked at regularly.
    Feed {
        url: String,
        /// Time at which this data arrived.
        since: i64,
        /// Time of the feed's last answer that this data is current.
        checked: i64,
        /// Time at which the feed stopped answering; the data above is the last that was good.
        #[serde(skip_serializing_if = "Option::is_none")]
        failing_since: Option<i64>,
    },
}

impl Edition {
    pub(super) fn embedded(catalog: EarthquakeCatalog) -> Self {
        let source =
            Source::Snapshot { url: catalog.metadata.url.clone(), since: catalog.metadata.generated };
        Self { catalog: Arc::new(catalog), source }
    }

    /// The answer to `query`, as JSON text in the survey's own shape.
    pub(super) fn answer(&self, query: &EarthquakeQuery) -> String {
        let events: Vec<&Event> = self.catalog.select(query).collect();
        let metadata = &self.catalog.metadata;
        let answer = GeoJsonAnswer {
            kind: "FeatureCollection",
            metadata: AnswerMetadata {
                generated: metadata.generated,
                url: &metadata.url,
                title: &metadata.title,
                status: 200,
                api: &metadata.api,
                count: events.len(),
                source: &self.source,
            },
            features: events.iter().map(|event| &*event.json).collect(),
            bbox: bounding_box(&events),
        };
        serde_json::to_string(&answer)
            .expect("strings, numbers and JSON that was parsed can always be written")
    }
}

#[derive(Serialize)]
struct GeoJsonAnswer<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    metadata: AnswerMetadata<'a>,
    features: Vec<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bbox: Option<[f64; 6]>,
}

#[derive(Serialize)]
struct AnswerMetadata<'a> {
    generated: i64,
    url: &'a str,
    title: &'a str,
    status: u16,
    api: &'a str,
    count: usize,
    source: &'a Source,
}

/// West, south, shallowest, east, north, deepest (RFC 7946 §5, with the survey's depth downwards). Nothing for no
/// events.
fn bounding_box(events: &[&Event]) -> Option<[f64; 6]> {
    let corner = |event: &&Event| [event.longitude, event.latitude, event.depth_km.unwrap_or(0.0)];
    let mut corners = events.iter().map(corner);
    let first = corners.next()?;
    let (mut low, mut high) = (first, first);
    for corner in corners {
        for axis in 0..3 {
            low[axis] = low[axis].min(corner[axis]);
            high[axis] = high[axis].max(corner[axis]);
        }
    }
    Some([low[0], low[1], low[2], high[0], high[1], high[2]])
}
