//! Filters for lists of planets.

use std::fmt::Display;
use std::sync::Arc;

use juniper::{DefaultScalarValue, GraphQLInputObject};

use super::Context;
use super::planet::Planet;
use super::sky::Cone;
use crate::exoplanets::catalog::Record;
use crate::exoplanets::discovery_method::DiscoveryMethod;
use crate::exoplanets::refusal::Refusal;

/// Which planets to choose: those for which everything given here holds. A planet whose value is not known is not
/// chosen when something is asked of that value.
#[derive(Debug, Default, GraphQLInputObject)]
#[graphql(scalar = DefaultScalarValue)]
pub(super) struct PlanetFilter {
    /// Part of the planet's name; capital letters do not matter.
    name_contains: Option<String>,
    /// The exact name of its star.
    host_star: Option<String>,
    /// Discovered by one of these methods.
    discovery_methods: Option<Vec<DiscoveryMethod>>,
    /// The exact name of the observatory or survey that discovered it.
    facility: Option<String>,
    /// Year of the discovery.
    discovery_year: Option<IntRange>,
    /// Mass in Earth masses.
    mass: Option<FloatRange>,
    /// Radius in Earth radii.
    radius: Option<FloatRange>,
    /// Time of one orbit, in days.
    orbital_period: Option<FloatRange>,
    /// Equilibrium temperature in kelvin.
    equilibrium_temperature: Option<FloatRange>,
    /// Light received, in units of what the Earth receives.
    insolation: Option<FloatRange>,
    /// Distance from Earth in parsecs.
    distance: Option<FloatRange>,
    /// Whether its existence has been questioned.
    controversial: Option<bool>,
    /// Within a circle on the sky.
    near: Option<Cone>,
}

/// Bounds of a number; what is not given is open.
#[derive(Debug, Clone, Copy, Default, GraphQLInputObject)]
#[graphql(scalar = DefaultScalarValue)]
struct FloatRange {
    /// Greater than this.
    gt: Option<f64>,
    /// Greater than this, or equal.
    gte: Option<f64>,
    /// Less than this.
    lt: Option<f64>,
    /// Less than this, or equal.
    lte: Option<f64>,
}

/// Bounds of a whole number; what is not given is open.
#[derive(Debug, Clone, Copy, Default, GraphQLInputObject)]
#[graphql(scalar = DefaultScalarValue)]
struct IntRange {
    /// Greater than this.
    gt: Option<i32>,
    /// Greater than this, or equal.
    gte: Option<i32>,
    /// Less than this.
    lt: Option<i32>,
    /// Less than this, or equal.
    lte: Option<i32>,
}

impl PlanetFilter {
    /// The records that match, in the table's order.
    pub(super) fn select<'c>(&self, context: &'c Context) -> Result<Vec<&'c Arc<Record>>, Refusal> {
        self.check()?;
        let catalog = context.look_through()?;
        let name = self.name_contains.as_deref().map(str::to_lowercase);
        let named =
            |record: &Record| name.as_ref().is_none_or(|part| record.name.to_lowercase().contains(part));
        Ok(catalog.records().iter().filter(|record| self.admits(record) && named(record)).collect())
    }

    fn check(&self) -> Result<(), Refusal> {
        for (name, range) in self.ranges() {
            range.check(name)?;
        }
        self.near.as_ref().map_or(Ok(()), Cone::check)
    }

    /// The ranges by name, whole numbers as numbers.
    fn ranges(&self) -> [(&'static str, FloatRange); 7] {
        [
            ("discoveryYear", self.discovery_year.unwrap_or_default().into()),
            ("mass", self.mass.unwrap_or_default()),
            ("radius", self.radius.unwrap_or_default()),
            ("orbitalPeriod", self.orbital_period.unwrap_or_default()),
            ("equilibriumTemperature", self.equilibrium_temperature.unwrap_or_default()),
            ("insolation", self.insolation.unwrap_or_default()),
            ("distance", self.distance.unwrap_or_default()),
        ]
    }

    fn admits(&self, record: &Record) -> bool {
        let values = [
            record.discovery_year.map(f64::from),
            record.mass,
            record.radius,
            record.orbital_period,
            record.equilibrium_temperature,
            record.insolation,
            record.distance,
        ];
        self.ranges().iter().zip(values).all(|((_, range), value)| range.admits(value))
            && self.host_star.as_ref().is_none_or(|name| *name == record.host_star)
            && self.facility.as_ref().is_none_or(|name| *name == record.facility)
            && self.discovery_methods.as_ref().is_none_or(|any| any.contains(&record.discovery_method))
            && self.controversial.is_none_or(|wanted| wanted == record.controversial)
            && self.near.is_none_or(|cone| cone.contains(Planet::place(record)))
    }
}

impl FloatRange {
    /// Tells whether `value` is admitted. An unknown one is only admitted when nothing was asked.
    fn admits(&self, value: Option<f64>) -> bool {
        let Some(value) = value else {
            return [self.gt, self.gte, self.lt, self.lte].iter().all(Option::is_none);
        };
        self.gt.is_none_or(|bound| value > bound)
            && self.gte.is_none_or(|bound| value >= bound)
            && self.lt.is_none_or(|bound| value < bound)
            && self.lte.is_none_or(|bound| value <= bound)
    }

    /// A range that nothing can be in is a slip, and better said than answered with nothing.
    fn check(&self, name: &str) -> Result<(), Refusal> {
        let low = [("gt", self.gt), ("gte", self.gte)];
        let high = [("lt", self.lt), ("lte", self.lte)];
        for (low_name, low) in low {
            for (high_name, high) in high {
                let (Some(low), Some(high)) = (low, high) else { continue };
                if low > high || (low == high && (low_name, high_name) != ("gte", "lte")) {
                    return Err(empty(name, low_name, &low, high_name, &high));
                }
            }
        }
        Ok(())
    }
}

impl From<IntRange> for FloatRange {
    fn from(range: IntRange) -> Self {
        Self {
            gt: range.gt.map(f64::from),
            gte: range.gte.map(f64::from),
            lt: range.lt.map(f64::from),
            lte: range.lte.map(f64::from),
        }
    }
}

fn empty(name: &str, low_name: &str, low: &dyn Display, high_name: &str, high: &dyn Display) -> Refusal {
    Refusal::BadInput(format!(
        "nothing is in the range of `{name}`: `{low_name}` is {low}, `{high_name}` is {high}"
    ))
}
