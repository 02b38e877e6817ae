//! In which order lists of planets come.

use std::cmp::Ordering;
use std::sync::Arc;

use juniper::{DefaultScalarValue, GraphQLEnum};

use crate::exoplanets::catalog::Record;

/// What planets are sorted by.
#[derive(Debug, Clone, Copy, GraphQLEnum)]
#[graphql(scalar = DefaultScalarValue)]
pub(super) enum PlanetField {
    /// Its name, letter by letter.
    Name,
    /// Its mass.
    Mass,
    /// Its radius.
    Radius,
    /// The time of its orbit.
    OrbitalPeriod,
    /// The year of its discovery.
    DiscoveryYear,
    /// Its equilibrium temperature.
    EquilibriumTemperature,
    /// The light it receives.
    Insolation,
    /// Its distance from Earth.
    Distance,
}

/// A direction. Planets whose value is not known come last in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, GraphQLEnum)]
#[graphql(scalar = DefaultScalarValue)]
pub(super) enum SortOrder {
    /// The smallest first.
    Asc,
    /// The largest first.
    Desc,
}

/// Sorts records that are in the table's order, which decides between equals.
pub(super) fn sort(records: &mut [&Arc<Record>], by: PlanetField, order: SortOrder) {
    let value = |record: &Record| match by {
        PlanetField::Name => None,
        PlanetField::Mass => record.mass,
        PlanetField::Radius => record.radius,
        PlanetField::OrbitalPeriod => record.orbital_period,
        PlanetField::DiscoveryYear => record.discovery_year.map(f64::from),
        PlanetField::EquilibriumTemperature => record.equilibrium_temperature,
        PlanetField::Insolation => record.insolation,
        PlanetField::Distance => record.distance,
    };
    let directed = |ordering: Ordering| if order == SortOrder::Asc { ordering } else { ordering.reverse() };
    if let PlanetField::Name = by {
        return records.sort_by(|one, other| directed(one.name.cmp(&other.name)));
    }
    records.sort_by(|one, other| match (value(one), value(other)) {
        (Some(one), Some(other)) => directed(one.total_cmp(&other)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    });
}
