//! The methods by which planets are discovered, in the archive's words.

use juniper::{DefaultScalarValue, GraphQLEnum};
use serde::Deserialize;

use super::refusal::Refusal;

/// Each method with what it sees, and the archive's words for it.
macro_rules! methods {
    ($($(#[$about:meta])* $method:ident = $label:literal,)+) => {
        /// How a planet was first noticed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, GraphQLEnum)]
        #[graphql(scalar = DefaultScalarValue)]
        #[serde(try_from = "String")]
        pub(super) enum DiscoveryMethod {
            $($(#[$about])* $method,)+
        }

        impl DiscoveryMethod {
            pub(super) const ALL: [Self; [$($label),+].len()] = [$(Self::$method),+];

            /// The archive's words.
            pub(super) fn label(self) -> &'static str {
                match self {
                    $(Self::$method => $label,)+
                }
            }
        }
    };
}

methods! {
    /// The star's place on the sky wobbles.
    Astrometry = "Astrometry",
    /// The gas around the star is disturbed.
    DiskKinematics = "Disk Kinematics",
    /// The eclipses of a double star come early and late.
    EclipseTimingVariations = "Eclipse Timing Variations",
    /// Seen beside its star.
    Imaging = "Imaging",
    /// Its gravity bent the light of a star behind it.
    Microlensing = "Microlensing",
    /// The star's light changes with the planet's phases or pull.
    OrbitalBrightnessModulation = "Orbital Brightness Modulation",
    /// The pulses of a pulsar come early and late.
    PulsarTiming = "Pulsar Timing",
    /// The pulsations of a star come early and late.
    PulsationTimingVariations = "Pulsation Timing Variations",
    /// The star moves towards us and away.
    RadialVelocity = "Radial Velocity",
    /// It dims its star when it passes in front.
    Transit = "Transit",
    /// It makes the transits of another planet come early and late.
    TransitTimingVariations = "Transit Timing Variations",
}

impl DiscoveryMethod {
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
