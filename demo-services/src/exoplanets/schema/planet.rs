//! A planet, as GraphQL shows it.

use std::sync::Arc;

use juniper::{DefaultScalarValue, GraphQLObject, ID, graphql_object};

use super::Context;
use super::body::CelestialBodyValue;
use super::discovery::Discovery;
use super::note::Note;
use super::sky::{Degrees, Position};
use super::star::Star;
use crate::exoplanets::catalog::Record;
use crate::exoplanets::refusal::Refusal;

#[derive(Debug, Clone)]
pub(super) struct Planet(pub(super) Arc<Record>);

/// How a planet moves around its star.
#[derive(Debug, GraphQLObject)]
#[graphql(scalar = DefaultScalarValue)]
pub(super) struct Orbit {
    /// Half the longest diameter of the orbit, in astronomical units.
    semi_major_axis: Option<f64>,
    /// How far the orbit is from a circle: 0 is a circle, and every ellipse is below 1.
    eccentricity: Option<f64>,
    /// Time of one orbit, in days.
    period: Option<f64>,
}

impl Planet {
    pub(super) fn new(record: &Arc<Record>) -> Self {
        Self(Arc::clone(record))
    }

    pub(super) fn place(record: &Record) -> Position {
        Position { ra: Degrees(record.ra), dec: Degrees(record.dec) }
    }
}

/// A confirmed planet of another star. A value that nobody has measured or derived is null.
#[graphql_object]
#[graphql(context = Context, scalar = DefaultScalarValue, impl = CelestialBodyValue)]
impl Planet {
    /// `planet:` before the name; stable as long as the archive does not rename the planet.
    fn id(&self) -> ID {
        format!("planet:{}", self.0.name).into()
    }

    /// The name the archive uses, such as `Kepler-22 b`.
    fn name(&self) -> &str {
        &self.0.name
    }

    /// Name of the star it orbits.
    fn host_star(&self) -> &str {
        &self.0.host_star
    }

    /// Name of the star it orbits, as the archive's column is called.
    #[graphql(deprecated = "Use `hostStar`.")]
    fn host_name(&self) -> &str {
        &self.0.host_star
    }

    /// The star it orbits, with the values that the archive gives together with this planet.
    fn star(&self) -> Star {
        Star(Arc::clone(&self.0))
    }

    /// Mass in Earth masses; where only a lower limit is known (mass times the sine of the inclination), that.
    fn mass(&self) -> Option<f64> {
        self.0.mass
    }

    /// Radius in Earth radii.
    fn radius(&self) -> Option<f64> {
        self.0.radius
    }

    /// Time of one orbit, in days.
    fn orbital_period(&self) -> Option<f64> {
        self.0.orbital_period
    }

    /// Its orbit; null when nothing is known of it.
    fn orbit(&self) -> Option<Orbit> {
        let Record { semi_major_axis, eccentricity, orbital_period: period, .. } = *self.0;
        let known = semi_major_axis.or(eccentricity).or(period).is_some();
        known.then_some(Orbit { semi_major_axis, eccentricity, period })
    }

    /// Temperature in kelvin that the planet would have as a black body heated by its star alone.
    fn equilibrium_temperature(&self) -> Option<f64> {
        self.0.equilibrium_temperature
    }

    /// Light received from its star, in units of what the Earth receives from the Sun.
    fn insolation(&self) -> Option<f64> {
        self.0.insolation
    }

    /// Year of the discovery.
    fn discovery_year(&self) -> Option<i32> {
        self.0.discovery_year
    }

    /// How it was discovered, in the archive's words, such as `Radial Velocity`; `planets` takes the same words.
    fn discovery_method(&self) -> &str {
        self.0.discovery_method.label()
    }

    /// Name of the observatory or survey that discovered it.
    fn discovery_facility(&self) -> &str {
        &self.0.facility
    }

    /// The discovery, in a form to follow further.
    fn discovery(&self) -> Discovery {
        Discovery(Arc::clone(&self.0))
    }

    /// Distance from Earth in parsecs.
    fn distance(&self) -> Option<f64> {
        self.0.distance
    }

    /// Where to look.
    fn position(&self) -> Position {
        Self::place(&self.0)
    }

    /// The angle on the sky between the planet and a place.
    fn angular_distance(
        &self,
        #[graphql(desc = "Right ascension of the place, from 0 to 360 degrees.")] ra: Degrees,
        #[graphql(desc = "Declination of the place, from -90 to 90 degrees.")] dec: Degrees,
    ) -> Result<Degrees, Refusal> {
        Ok(Self::place(&self.0).angle_to(Position::asked(ra, dec)?))
    }

    /// Whether its existence has been questioned in the literature.
    fn controversial(&self) -> bool {
        self.0.controversial
    }

    /// Notes that users of this service left, oldest first. They last until the service is restarted.
    fn notes(&self, context: &Context) -> Result<Vec<Note>, Refusal> {
        let notes = context.notes.of(&self.0);
        context.spend(notes.len())?;
        Ok(notes)
    }
}
