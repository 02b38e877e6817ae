//! The methods by which planets are discovered, in the archive's words.

use juniper::{DefaultScalarValue, GraphQLEnum};
use serde::Deserialize;

use super::refusal::Refusal;

/// How a planet was first noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, GraphQLEnum)]
#[graphql(scalar = DefaultScalarValue)]
#[serde(try_from = "String")]
pub(super) enum DiscoveryMethod {
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
