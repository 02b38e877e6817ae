//! A star with planets, as GraphQL shows it.

#![expect(clippy::misnamed_getters, reason = "a record's `name` and `mass` are the planet's")]

use std::sync::Arc;

use juniper::{DefaultScalarValue, ID, graphql_object};

use super::sky::Position;
use super::{CelestialBodyValue, Context, Planet};
use crate::exoplanets::catalog::Record;
use crate::exoplanets::refusal::Refusal;

/// The stellar half of a planet's record.
///
/// For 214 of 4,709 stars the archive's composite table has other values with each of their planets, because
/// it takes planet and star from one publication where it can. A star found by itself shows those of its first
/// planet.
#[derive(Debug, Clone)]
pub(super) struct Star(pub(super) Arc<Record>);

impl Star {
    pub(super) fn find(name: &str, context: &Context) -> Option<Self> {
        context.catalog.of_star(name).next().map(|record| Self(Arc::clone(record)))
    }
}

/// A star with at least one confirmed planet. Reached from a planet, it has the values that the archive gives together
/// with that planet; otherwise those given with the first of its planets. They differ for one star in twenty.
#[graphql_object]
#[graphql(context = Context, scalar = DefaultScalarValue, impl = CelestialBodyValue)]
impl Star {
    /// `star:` before the name.
    fn id(&self) -> ID {
        format!("star:{}", self.0.host_star).into()
    }

    /// The name the archive uses, such as `Kepler-22`.
    fn name(&self) -> &str {
        &self.0.host_star
    }

    /// Morgan-Keenan class, such as `G8 III`, as it was published.
    fn spectral_type(&self) -> Option<&str> {
        self.0.spectral_type.as_deref()
    }

    /// Effective temperature in kelvin.
    fn temperature(&self) -> Option<f64> {
        self.0.star_temperature
    }

    /// Radius in solar radii.
    fn radius(&self) -> Option<f64> {
        self.0.star_radius
    }

    /// Mass in solar masses.
    fn mass(&self) -> Option<f64> {
        self.0.star_mass
    }

    /// Apparent brightness in the Johnson V band, in magnitudes: smaller is brighter.
    fn visual_magnitude(&self) -> Option<f64> {
        self.0.visual_magnitude
    }

    /// Distance from Earth in parsecs.
    fn distance(&self) -> Option<f64> {
        self.0.distance
    }

    /// Where to look.
    fn position(&self) -> Position {
        Planet::place(&self.0)
    }

    /// Number of stars in its system.
    fn star_count(&self) -> i32 {
        self.0.star_count
    }

    /// Number of planets in its system, as the archive counts them: around all of its stars, and controversial ones
    /// too.
    fn planet_count(&self) -> i32 {
        self.0.planet_count
    }

    /// Its planets, by name.
    fn planets(&self, context: &Context) -> Result<Vec<Planet>, Refusal> {
        let planets = context.catalog.of_star(&self.0.host_star);
        context.spend(planets.len())?;
        Ok(planets.map(Planet::new).collect())
    }
}
