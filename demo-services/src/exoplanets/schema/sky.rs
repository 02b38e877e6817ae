//! Places on the sky: the scalar for angles, the position of a body, and how far two places are apart.

use juniper::{
    DefaultScalarValue, GraphQLInputObject, GraphQLObject, GraphQLScalar, ParseScalarResult,
    ParseScalarValue, Scalar, ScalarToken, ScalarValue,
};

use crate::exoplanets::refusal::Refusal;

/// An angle in decimal degrees, such as `185.1787793`. It is answered as a number; a client may also send it as the
/// text of a number. Hours, minutes and seconds are not accepted.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, GraphQLScalar)]
#[graphql(with = Self)]
pub(super) struct Degrees(pub(super) f64);

impl Degrees {
    #[expect(clippy::wrong_self_convention, reason = "the signature that the derive calls")]
    fn to_output<S: ScalarValue>(&self) -> S {
        self.0.into()
    }

    fn from_input(input: &Scalar<impl ScalarValue>) -> Result<Self, Box<str>> {
        input
            .try_to_float()
            .or_else(|| input.try_to_string()?.parse().ok())
            .filter(|degrees: &f64| degrees.is_finite())
            .map(Self)
            .ok_or_else(|| "`Degrees` must be a decimal number of degrees, such as 185.18".into())
    }

    fn parse_token<S: ScalarValue>(token: ScalarToken<'_>) -> ParseScalarResult<S> {
        <f64 as ParseScalarValue<S>>::from_str(token)
            .or_else(|_| <String as ParseScalarValue<S>>::from_str(token))
    }
}

/// A place on the sky, in equatorial coordinates.
#[derive(Debug, Clone, Copy, GraphQLObject)]
#[graphql(scalar = DefaultScalarValue)]
pub(super) struct Position {
    /// Right ascension, from 0 to 360 degrees.
    pub(super) ra: Degrees,
    /// Declination, from -90 to 90 degrees.
    pub(super) dec: Degrees,
}

impl Position {
    /// A place that a client named.
    pub(super) fn asked(ra: Degrees, dec: Degrees) -> Result<Self, Refusal> {
        within("ra", ra, 0.0, 360.0)?;
        within("dec", dec, -90.0, 90.0)?;
        Ok(Self { ra, dec })
    }

    /// The angle between two places as seen from Earth, by the haversine formula, which stays exact for small ones.
    pub(super) fn angle_to(self, other: Self) -> Degrees {
        let [ra, dec, other_ra, other_dec] =
            [self.ra, self.dec, other.ra, other.dec].map(|degrees| degrees.0.to_radians());
        let haversine = |angle: f64| (angle / 2.0).sin().powi(2);
        let of_angle = haversine(other_dec - dec) + dec.cos() * other_dec.cos() * haversine(other_ra - ra);
        Degrees((2.0 * of_angle.sqrt().min(1.0).asin()).to_degrees())
    }
}

/// Twice the width of the full moon.
const RADIUS_DEFAULT: Degrees = Degrees(1.0);

/// A circle on the sky.
#[derive(Debug, Clone, Copy, GraphQLInputObject)]
#[graphql(scalar = DefaultScalarValue)]
pub(super) struct Cone {
    /// Right ascension of the centre, from 0 to 360 degrees.
    ra: Degrees,
    /// Declination of the centre, from -90 to 90 degrees.
    dec: Degrees,
    /// Angle between the centre and the edge, from 0 to 180 degrees.
    // Not `Degrees!`: juniper refuses an object in a variable that leaves out a non-null field with a default.
    #[graphql(default = Some(RADIUS_DEFAULT))]
    radius: Option<Degrees>,
}

impl Cone {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        Position::asked(self.ra, self.dec)?;
        within("radius", self.radius(), 0.0, 180.0)
    }

    /// A client may also say null.
    fn radius(&self) -> Degrees {
        self.radius.unwrap_or(RADIUS_DEFAULT)
    }

    pub(super) fn contains(&self, place: Position) -> bool {
        Position { ra: self.ra, dec: self.dec }.angle_to(place) <= self.radius()
    }
}

fn within(name: &str, angle: Degrees, least: f64, most: f64) -> Result<(), Refusal> {
    if (least..=most).contains(&angle.0) {
        return Ok(());
    }
    Err(Refusal::BadInput(format!("`{name}` must be from {least} to {most} degrees; it was {}", angle.0)))
}
