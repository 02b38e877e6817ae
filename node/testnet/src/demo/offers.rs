//! Services that the demo's owners sell, and questions that its consumer asks.

use farthing_control::types::{Api, OperationFile, ServiceFile, SourceFile, SourceKind};
use farthing_values::{Method, Usdc};
use serde_json::{Value, json};

pub(super) const EARTHQUAKES_PRICE: Usdc = Usdc::from_micros(2_000);
pub(super) const PLANETS_PRICE: Usdc = Usdc::from_micros(3_000);
const EARTHQUAKES_PATH: &str = "/v1/earthquakes/recent";

/// The service describes itself; its health is nobody's business.
pub fn earthquakes(service_url: &str) -> ServiceFile {
    ServiceFile {
        name: "Earthquakes".to_owned(),
        summary: "Recent earthquakes worldwide, as GeoJSON (USGS)".to_owned(),
        category: "geology".to_owned(),
        tags: vec!["earthquakes".to_owned(), "geojson".to_owned()],
        source: Some(SourceFile::at(SourceKind::Openapi, format!("{service_url}/openapi.json"))),
        operations: vec![OperationFile {
            exclude: true,
            ..OperationFile::named(Method::Get, "/healthz".to_owned())
        }],
        ..ServiceFile::priced(EARTHQUAKES_PRICE)
    }
}

/// The bridge reads the GraphQL server itself; nothing is written by hand.
pub(crate) fn planets(service_url: &str) -> ServiceFile {
    ServiceFile {
        name: "Exoplanets".to_owned(),
        summary: "Confirmed planets of other stars (NASA Exoplanet Archive)".to_owned(),
        category: "astronomy".to_owned(),
        tags: vec!["planets".to_owned(), "stars".to_owned()],
        source: Some(SourceFile::at(SourceKind::Graphql, format!("{service_url}/graphql"))),
        ..ServiceFile::priced(PLANETS_PRICE)
    }
}

/// A call of the earthquake service.
pub fn recent_earthquakes(api: &Api) -> Value {
    json!({
        "api_id_public": api.id.to_string(),
        "path": EARTHQUAKES_PATH,
        "method": "GET",
        "params": { "format": "geojson", "minmagnitude": "4.5", "limit": "5" },
    })
}

/// A call of the planet service: plain REST on this side, GraphQL on the other.
pub fn transiting_planets(api: &Api) -> Value {
    json!({
        "api_id_public": api.id.to_string(),
        "path": "/planets",
        "method": "GET",
        "params": { "discoveryMethod": "Transit", "limit": "5" },
    })
}
