//! The events of one edition: each one's own JSON, and the few fields that queries look at.

use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use super::query::EarthquakeQuery;

/// A GeoJSON feature collection of the survey, newest event first.
#[derive(Debug)]
pub struct EarthquakeCatalog {
    pub(super) metadata: Metadata,
    events: Vec<Event>,
}

/// The facts that the survey states about the collection.
#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    /// Time at which the survey wrote this collection, in Unix milliseconds.
    pub(super) generated: i64,
    pub(super) url: String,
    pub(super) title: String,
    pub(super) api: String,
}

/// One earthquake.
#[derive(Debug)]
pub(super) struct Event {
    /// The feature exactly as the survey wrote it.
    pub(super) json: Box<RawValue>,
    pub(super) longitude: f64,
    pub(super) latitude: f64,
    /// Unknown for a few events.
    pub(super) depth_km: Option<f64>,
    id: String,
    /// Unknown until someone has measured it.
    magnitude: Option<f64>,
    time_ms: i64,
}

/// The data is not a feature collection of the survey.
#[derive(Debug, Error)]
pub enum EarthquakeCatalogError {
    #[error("the data is not a GeoJSON feature collection with USGS metadata")]
    Collection(#[source] serde_json::Error),
    #[error("feature {index} is not a USGS event with an id, a time and a point")]
    Feature { index: usize, source: serde_json::Error },
}

impl EarthquakeCatalog {
    /// Reads a feature collection, in any order. The only place where events are parsed.
    pub fn parse(json: &[u8]) -> Result<Self, EarthquakeCatalogError> {
        let collection: Collection =
            serde_json::from_slice(json).map_err(EarthquakeCatalogError::Collection)?;
        let read = |(index, json)| {
            Event::parse(json).map_err(|source| EarthquakeCatalogError::Feature { index, source })
        };
        let mut events =
            collection.features.into_iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
        events.sort_by(|one, other| other.time_ms.cmp(&one.time_ms).then_with(|| one.id.cmp(&other.id)));
        Ok(Self { metadata: collection.metadata, events })
    }

    /// Number of events.
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// The newest events that match, newest first, at most `query.limit`.
    pub(super) fn select<'a>(&'a self, query: &'a EarthquakeQuery) -> impl Iterator<Item = &'a Event> {
        self.events.iter().filter(|event| event.matches(query)).take(query.limit)
    }

    pub(super) fn find(&self, id: &str) -> Option<&Event> {
        self.events.iter().find(|event| event.id == id)
    }
}

impl Event {
    fn parse(json: Box<RawValue>) -> Result<Self, serde_json::Error> {
        let feature: Feature = serde_json::from_str(json.get())?;
        let Point { coordinates: (longitude, latitude, depth_km) } = feature.geometry;
        let Properties { mag: magnitude, time: time_ms } = feature.properties;
        Ok(Self { json, longitude, latitude, depth_km, id: feature.id, magnitude, time_ms })
    }

    fn matches(&self, query: &EarthquakeQuery) -> bool {
        query.magnitude.admits_known(self.magnitude)
            && query.time_ms.admits(self.time_ms)
            && query.latitude.admits(self.latitude)
            && query.longitude.admits(self.longitude)
    }
}

#[derive(Deserialize)]
struct Collection {
    metadata: Metadata,
    features: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Feature {
    id: String,
    properties: Properties,
    geometry: Point,
}

#[derive(Deserialize)]
struct Properties {
    mag: Option<f64>,
    time: i64,
}

#[derive(Deserialize)]
struct Point {
    coordinates: (f64, f64, Option<f64>),
}
