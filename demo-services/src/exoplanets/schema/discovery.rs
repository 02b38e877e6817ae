//! Discoveries: the methods, the facilities, and what each planet's discovery was.

use std::sync::Arc;

use juniper::{DefaultScalarValue, GraphQLEnum, GraphQLObject, graphql_object};
use serde::Deserialize;

use super::planet::Planet;
use super::{Context, bounded, int};
use crate::exoplanets::catalog::{FacilityEntry, Record};
use crate::exoplanets::refusal::Refusal;

/// How a planet was first noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, GraphQLEnum)]
#[graphql(scalar = DefaultScalarValue)]
#[serde(try_from = "String")]
pub(in crate::exoplanets) enum DiscoveryMethod {
    /// The star's place on the sky wobbles.
    Astrometry,
    /// The gas around the star is disturbed.
    DiskKinematics,
    /// The eclipses of a double star come early and late.
    EclipseTimingVariations,
    /// Seen beside its star.
    Imaging,
    /// Its gravity bent the light of a star behind it.
    Microlensing,
    /// The star's light changes with the planet's phases or pull.
    OrbitalBrightnessModulation,
    /// The pulses of a pulsar come early and late.
    PulsarTiming,
    /// The pulsations of a star come early and late.
    PulsationTimingVariations,
    /// The star moves towards us and away.
    RadialVelocity,
    /// It dims its star when it passes in front.
    Transit,
    /// It makes the transits of another planet come early and late.
    TransitTimingVariations,
}

impl DiscoveryMethod {
    pub(super) const ALL: [Self; 11] = [
        Self::Astrometry,
        Self::DiskKinematics,
        Self::EclipseTimingVariations,
        Self::Imaging,
        Self::Microlensing,
        Self::OrbitalBrightnessModulation,
        Self::PulsarTiming,
        Self::PulsationTimingVariations,
        Self::RadialVelocity,
        Self::Transit,
        Self::TransitTimingVariations,
    ];

    /// The archive's words.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Astrometry => "Astrometry",
            Self::DiskKinematics => "Disk Kinematics",
            Self::EclipseTimingVariations => "Eclipse Timing Variations",
            Self::Imaging => "Imaging",
            Self::Microlensing => "Microlensing",
            Self::OrbitalBrightnessModulation => "Orbital Brightness Modulation",
            Self::PulsarTiming => "Pulsar Timing",
            Self::PulsationTimingVariations => "Pulsation Timing Variations",
            Self::RadialVelocity => "Radial Velocity",
            Self::Transit => "Transit",
            Self::TransitTimingVariations => "Transit Timing Variations",
        }
    }

    /// The method that a client named in the archive's words; capital letters do not matter.
    pub(super) fn named(label: &str) -> Result<Self, Refusal> {
        Self::ALL.into_iter().find(|method| method.label().eq_ignore_ascii_case(label)).ok_or_else(|| {
            let known = Self::ALL.map(Self::label).join(", ");
            Refusal::BadInput(format!("there is no such `discoveryMethod`; known are {known}"))
        })
    }
}

impl TryFrom<String> for DiscoveryMethod {
    type Error = String;

    fn try_from(label: String) -> Result<Self, String> {
        let known = |method: &Self| method.label() == label;
        Self::ALL.into_iter().find(known).ok_or_else(|| format!("the discovery method {label} is not known"))
    }
}

/// A method, and how far it got.
#[derive(Debug, GraphQLObject)]
#[graphql(scalar = DefaultScalarValue)]
pub(super) struct DiscoveryMethodCount {
    /// As filters take it.
    method: DiscoveryMethod,
    /// In the archive's words, as `planets` takes it.
    name: &'static str,
    /// Number of planets it discovered.
    planet_count: i32,
}

impl DiscoveryMethodCount {
    pub(super) fn of(method: DiscoveryMethod, context: &Context) -> Self {
        let by_method = |record: &&Arc<Record>| record.discovery_method == method;
        let planet_count = int(context.catalog.records().iter().filter(by_method).count());
        Self { method, name: method.label(), planet_count }
    }
}

#[derive(Debug)]
pub(super) struct Discovery(pub(super) Arc<Record>);

/// How, when and by whom a planet was discovered.
#[graphql_object]
#[graphql(context = Context, scalar = DefaultScalarValue)]
impl Discovery {
    /// How.
    fn method(&self) -> DiscoveryMethod {
        self.0.discovery_method
    }

    /// In which year.
    fn year(&self) -> Option<i32> {
        self.0.discovery_year
    }

    /// By which observatory or survey.
    fn facility(&self) -> Facility {
        Facility { name: self.0.facility.clone() }
    }
}

#[derive(Debug)]
pub(super) struct Facility {
    name: String,
}

impl Facility {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned() }
    }

    fn entry<'c>(&self, context: &'c Context) -> &'c FacilityEntry {
        context.catalog.facility(&self.name).expect("facilities are only made from names in the catalog")
    }
}

/// An observatory, telescope or survey that discovered planets.
#[graphql_object]
#[graphql(context = Context, scalar = DefaultScalarValue)]
impl Facility {
    /// The name the archive uses, such as `Kepler`.
    fn name(&self) -> &str {
        &self.name
    }

    /// Year of its first discovery.
    fn discovery_year(&self, context: &Context) -> i32 {
        self.entry(context).first_year
    }

    /// Number of planets it discovered.
    fn planet_count(&self, context: &Context) -> i32 {
        int(self.entry(context).planet_count())
    }

    /// Some of the planets it discovered, by name.
    fn planets(
        &self,
        context: &Context,
        #[graphql(desc = "How many planets at most, from 1 to 1000.", default = 10)] limit: i32,
    ) -> Result<Vec<Planet>, Refusal> {
        let planets = context.catalog.of_facility(self.entry(context)).take(bounded("limit", limit, 1)?);
        context.spend(planets.len())?;
        Ok(planets.map(Planet::new).collect())
    }
}
