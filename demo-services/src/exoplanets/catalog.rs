//! The planets of the archive's table, as it writes them, and the indexes by which they are looked up.
//!
//! A row of the table is read once into a [`Record`]. Everything a client sees is a view of records: a planet is one
//! record, its star is the stellar half of the same record, a facility is the records it discovered.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use thiserror::Error;

use super::discovery_method::DiscoveryMethod;

/// One row of the table. Field names say what the archive's column means, `rename` is the column.
#[derive(Debug, Deserialize)]
pub(super) struct Record {
    #[serde(rename = "pl_name")]
    pub(super) name: String,
    #[serde(rename = "hostname")]
    pub(super) host_star: String,
    #[serde(rename = "discoverymethod")]
    pub(super) discovery_method: DiscoveryMethod,
    #[serde(rename = "disc_year")]
    pub(super) discovery_year: Option<i32>,
    #[serde(rename = "disc_facility")]
    pub(super) facility: String,
    #[serde(rename = "pl_controv_flag", deserialize_with = "flag")]
    pub(super) controversial: bool,
    /// Earth masses.
    #[serde(rename = "pl_bmasse")]
    pub(super) mass: Option<f64>,
    /// Earth radii.
    #[serde(rename = "pl_rade")]
    pub(super) radius: Option<f64>,
    /// Days.
    #[serde(rename = "pl_orbper")]
    pub(super) orbital_period: Option<f64>,
    /// Astronomical units.
    #[serde(rename = "pl_orbsmax")]
    pub(super) semi_major_axis: Option<f64>,
    #[serde(rename = "pl_orbeccen")]
    pub(super) eccentricity: Option<f64>,
    /// Kelvin.
    #[serde(rename = "pl_eqt")]
    pub(super) equilibrium_temperature: Option<f64>,
    /// Times the Earth's.
    #[serde(rename = "pl_insol")]
    pub(super) insolation: Option<f64>,
    #[serde(rename = "st_spectype")]
    pub(super) spectral_type: Option<String>,
    /// Kelvin.
    #[serde(rename = "st_teff")]
    pub(super) star_temperature: Option<f64>,
    /// Solar radii.
    #[serde(rename = "st_rad")]
    pub(super) star_radius: Option<f64>,
    /// Solar masses.
    #[serde(rename = "st_mass")]
    pub(super) star_mass: Option<f64>,
    #[serde(rename = "sy_snum")]
    pub(super) star_count: i32,
    #[serde(rename = "sy_pnum")]
    pub(super) planet_count: i32,
    /// Parsecs.
    #[serde(rename = "sy_dist")]
    pub(super) distance: Option<f64>,
    #[serde(rename = "sy_vmag")]
    pub(super) visual_magnitude: Option<f64>,
    /// Degrees.
    pub(super) ra: f64,
    /// Degrees.
    pub(super) dec: f64,
    /// Position in the table, from 0.
    #[serde(skip)]
    pub(super) row: usize,
}

/// All planets, in the table's order, which is that of their names.
#[derive(Debug)]
pub struct PlanetCatalog {
    records: Vec<Arc<Record>>,
    by_name: HashMap<String, usize>,
    by_star: HashMap<String, Vec<usize>>,
    facilities: BTreeMap<String, FacilityEntry>,
}

/// The discoveries of one observatory or survey.
#[derive(Debug)]
pub(super) struct FacilityEntry {
    /// Year of its first discovery.
    pub(super) first_year: i32,
    rows: Vec<usize>,
}

/// The data is not the archive's table.
#[derive(Debug, Error)]
pub enum PlanetCatalogError {
    #[error("a line of the table is not a planet with the archive's columns")]
    Line(#[from] csv::Error),
    #[error("two lines of the table are about {0}")]
    Twice(String),
    #[error("no discovery of {0} has a year")]
    Undated(String),
}

impl PlanetCatalog {
    /// Reads the table: CSV with the archive's column names in the first line, in any order.
    pub(super) fn parse(table: &[u8]) -> Result<Self, PlanetCatalogError> {
        let mut catalog = Self {
            records: Vec::new(),
            by_name: HashMap::new(),
            by_star: HashMap::new(),
            facilities: BTreeMap::new(),
        };
        let mut undated: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (row, record) in csv::Reader::from_reader(table).into_deserialize().enumerate() {
            let record = Record { row, ..record? };
            if catalog.by_name.insert(record.name.clone(), row).is_some() {
                return Err(PlanetCatalogError::Twice(record.name));
            }
            catalog.by_star.entry(record.host_star.clone()).or_default().push(row);
            match record.discovery_year {
                Some(year) => catalog.dated(&record.facility, year, row),
                None => undated.entry(record.facility.clone()).or_default().push(row),
            }
            catalog.records.push(Arc::new(record));
        }
        for (facility, rows) in undated {
            let Some(entry) = catalog.facilities.get_mut(&facility) else {
                return Err(PlanetCatalogError::Undated(facility));
            };
            entry.rows.extend(rows);
            entry.rows.sort_unstable();
        }
        Ok(catalog)
    }

    fn dated(&mut self, facility: &str, year: i32, row: usize) {
        let entry = self
            .facilities
            .entry(facility.to_owned())
            .or_insert(FacilityEntry { first_year: year, rows: Vec::new() });
        entry.first_year = entry.first_year.min(year);
        entry.rows.push(row);
    }

    /// Number of planets.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn records(&self) -> &[Arc<Record>] {
        &self.records
    }

    /// The planet of that exact name.
    pub(super) fn find(&self, name: &str) -> Option<&Arc<Record>> {
        self.by_name.get(name).map(|&row| &self.records[row])
    }

    /// The planets of the star of that exact name; none for a star that is not in the table.
    pub(super) fn of_star(&self, name: &str) -> impl ExactSizeIterator<Item = &Arc<Record>> {
        self.by_star.get(name).map_or(&[][..], Vec::as_slice).iter().map(|&row| &self.records[row])
    }

    /// The names of all stars, in no order.
    pub(super) fn stars(&self) -> impl Iterator<Item = &str> {
        self.by_star.keys().map(String::as_str)
    }

    /// All facilities, by name.
    pub(super) fn facilities(&self) -> impl Iterator<Item = (&str, &FacilityEntry)> {
        self.facilities.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    pub(super) fn facility(&self, name: &str) -> Option<&FacilityEntry> {
        self.facilities.get(name)
    }

    /// Returns the planets that a facility discovered, in the table's order.
    pub(super) fn of_facility(&self, entry: &FacilityEntry) -> impl ExactSizeIterator<Item = &Arc<Record>> {
        entry.rows.iter().map(|&row| &self.records[row])
    }
}

impl FacilityEntry {
    pub(super) fn planet_count(&self) -> usize {
        self.rows.len()
    }
}

/// The archive writes a flag as 0 or 1.
fn flag<'de, D: Deserializer<'de>>(text: D) -> Result<bool, D::Error> {
    match u8::deserialize(text)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(serde::de::Error::custom(format!("{other} is not a flag, which is 0 or 1"))),
    }
}

#[cfg(test)]
mod tests;
