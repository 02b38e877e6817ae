//! Fields that planets and stars have in common.

use juniper::{DefaultScalarValue, ID, graphql_interface};

use super::sky::Position;
use super::{Context, Planet, Star};

/// Something in the sky that is in the archive: a planet or the star it orbits. Beware of the units, which follow
/// the custom for each kind of body.
#[graphql_interface]
#[graphql(for = [Planet, Star], context = Context, scalar = DefaultScalarValue)]
pub(super) struct CelestialBody {
    /// `planet:` or `star:` before the body's name.
    id: ID,
    /// The name the archive uses.
    name: String,
    /// In masses of the Earth for a planet, of the Sun for a star.
    mass: Option<f64>,
    /// In radii of the Earth for a planet, of the Sun for a star.
    radius: Option<f64>,
    /// Distance from Earth in parsecs.
    distance: Option<f64>,
    /// Where to look.
    position: Position,
}

/// The body of an id, as [`CelestialBody`] describes ids.
pub(super) fn find(id: &ID, context: &Context) -> Option<CelestialBodyValue> {
    match id.split_once(':')? {
        ("planet", name) => context.catalog.find(name).map(|record| Planet::new(record).into()),
        ("star", name) => Star::find(name, context).map(Into::into),
        _ => None,
    }
}
