//! The query of `/v1/earthquakes/recent`: every parameter, what it accepts, and what to say when it does not.
//!
//! Names and meanings are those of the survey's own event service, so that a client of one can ask the other.

use std::fmt::Display;
use std::ops::RangeInclusive;

use axum::extract::Query as QueryText;
use axum::http::{StatusCode, Uri};

use super::time;
use crate::problem::Problem;

/// Every name a query may use; `openapi.json` describes the same ones, which a test compares.
pub(super) const PARAMETERS: [&str; 10] = [
    "format",
    "minmagnitude",
    "maxmagnitude",
    "starttime",
    "endtime",
    "minlatitude",
    "maxlatitude",
    "minlongitude",
    "maxlongitude",
    "limit",
];

pub(super) const LIMIT_DEFAULT: usize = 100;
/// More than a busy week, and about 1.5 MB: larger answers should be asked for in slices of time.
pub(super) const LIMIT_MAX: usize = 2_000;

/// Magnitudes are logarithms: small ones are below zero, and none above 9.5 was ever measured.
const MAGNITUDES: RangeInclusive<f64> = -10.0..=10.0;
const LATITUDES: RangeInclusive<f64> = -90.0..=90.0;
const LONGITUDES: RangeInclusive<f64> = -180.0..=180.0;

/// A name is suggested when it is at least this similar (Jaro-Winkler, 0 to 1), so that `magnitude` and `min_mag`
/// find theirs and `apikey` finds none.
const SIMILARITY_MIN: f64 = 0.7;
/// As much of a client's text as an error repeats, in characters.
const QUOTE_CHARS_MAX: usize = 60;

/// The events to look for. Without parameters: the newest hundred events.
#[derive(Debug, PartialEq)]
pub(super) struct EarthquakeQuery {
    pub(super) magnitude: Range<f64>,
    pub(super) time_ms: Range<i64>,
    pub(super) latitude: Range<f64>,
    pub(super) longitude: Range<f64>,
    pub(super) limit: usize,
}

/// Both ends included; an end that was not asked for is open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range<T> {
    min: Option<T>,
    max: Option<T>,
}

impl<T: PartialOrd> Range<T> {
    const OPEN: Self = Self { min: None, max: None };

    #[expect(clippy::needless_pass_by_value, reason = "T is a number")]
    pub(super) fn admits(&self, value: T) -> bool {
        self.min.as_ref().is_none_or(|min| *min <= value) && self.max.as_ref().is_none_or(|max| value <= *max)
    }

    /// Tells whether `value` is admitted; an unknown one is only admitted when nothing was asked.
    pub(super) fn admits_known(&self, value: Option<T>) -> bool {
        value.map_or(self.min.is_none() && self.max.is_none(), |value| self.admits(value))
    }
}

impl EarthquakeQuery {
    /// Reads a raw query string; the first thing wrong becomes the error.
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let mut query = Self {
            magnitude: Range::OPEN,
            time_ms: Range::OPEN,
            latitude: Range::OPEN,
            longitude: Range::OPEN,
            limit: LIMIT_DEFAULT,
        };
        let mut seen: Vec<String> = Vec::new();
        for (name, value) in pairs(text)? {
            if seen.contains(&name) {
                return Err(refuse(&name, "one value", "it was given twice"));
            }
            query.set(&name, &value)?;
            seen.push(name);
        }
        ordered(query.magnitude, "minmagnitude", "maxmagnitude")?;
        ordered(query.time_ms, "starttime", "endtime")?;
        ordered(query.latitude, "minlatitude", "maxlatitude")?;
        ordered(query.longitude, "minlongitude", "maxlongitude")?;
        Ok(query)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        match name {
            "format" if value == "geojson" => {}
            "format" => return Err(refuse_value(name, "geojson", value)),
            "minmagnitude" => self.magnitude.min = Some(number(name, value, MAGNITUDES)?),
            "maxmagnitude" => self.magnitude.max = Some(number(name, value, MAGNITUDES)?),
            "starttime" => self.time_ms.min = Some(moment(name, value)?),
            "endtime" => self.time_ms.max = Some(moment(name, value)?),
            "minlatitude" => self.latitude.min = Some(number(name, value, LATITUDES)?),
            "maxlatitude" => self.latitude.max = Some(number(name, value, LATITUDES)?),
            "minlongitude" => self.longitude.min = Some(number(name, value, LONGITUDES)?),
            "maxlongitude" => self.longitude.max = Some(number(name, value, LONGITUDES)?),
            "limit" => self.limit = limit(name, value)?,
            unknown => return Err(refuse_name(unknown)),
        }
        Ok(())
    }
}

/// Decodes `name=value&…`, in order.
fn pairs(text: &str) -> Result<Vec<(String, String)>, Problem> {
    let unreadable =
        |_| Problem::new(StatusCode::BAD_REQUEST, "Unreadable query", "write it as name=value&name=value");
    let uri: Uri = format!("/?{text}").parse().map_err(|_| unreadable(()))?;
    let QueryText(pairs) = QueryText::try_from_uri(&uri).map_err(|_| unreadable(()))?;
    Ok(pairs)
}

fn number(name: &str, value: &str, accepted: RangeInclusive<f64>) -> Result<f64, Problem> {
    let expected = || format!("a number from {} to {}", accepted.start(), accepted.end());
    value
        .parse()
        .ok()
        .filter(|number| accepted.contains(number))
        .ok_or_else(|| refuse_value(name, &expected(), value))
}

fn limit(name: &str, value: &str) -> Result<usize, Problem> {
    let expected = || format!("a whole number from 1 to {LIMIT_MAX}");
    let in_range = |limit: &usize| (1..=LIMIT_MAX).contains(limit);
    value.parse().ok().filter(in_range).ok_or_else(|| refuse_value(name, &expected(), value))
}

fn moment(name: &str, value: &str) -> Result<i64, Problem> {
    time::parse_ms(value).ok_or_else(|| refuse_value(name, time::EXPECTED, value))
}

fn ordered<T: PartialOrd + Display>(range: Range<T>, min: &str, max: &str) -> Result<(), Problem> {
    match (range.min, range.max) {
        (Some(low), Some(high)) if low > high => {
            Err(refuse(min, &format!("at most `{max}`, which is {high}"), &format!("it is {low}")))
        }
        _ => Ok(()),
    }
}

fn refuse_value(name: &str, expected: &str, value: &str) -> Problem {
    refuse(name, expected, &format!("it was `{}`", quoted(value)))
}

fn refuse(name: &str, expected: &str, but: &str) -> Problem {
    let detail = format!("`{name}` must be {expected}; {but}");
    Problem {
        parameter: Some(name.to_owned()),
        expected: Some(expected.to_owned()),
        ..Problem::new(StatusCode::BAD_REQUEST, "Invalid parameter", detail)
    }
}

fn refuse_name(name: &str) -> Problem {
    let nearest = nearest_name(name);
    let known = PARAMETERS.join(", ");
    let hint =
        nearest.map_or_else(|| format!("known are {known}"), |nearest| format!("did you mean `{nearest}`?"));
    Problem {
        parameter: Some(quoted(name)),
        expected: Some(format!("one of {known}")),
        did_you_mean: nearest,
        ..Problem::new(
            StatusCode::BAD_REQUEST,
            "Unknown parameter",
            format!("there is no parameter `{}`; {hint}", quoted(name)),
        )
    }
}

fn nearest_name(name: &str) -> Option<&'static str> {
    // Comparing costs the product of both lengths; a name this long is no slip of the hand.
    let name = (name.len() <= QUOTE_CHARS_MAX).then(|| name.to_lowercase())?;
    let similarity = |known: &str| strsim::jaro_winkler(&name, known);
    let (nearest, score) = PARAMETERS
        .iter()
        .map(|known| (*known, similarity(known)))
        .max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    (score >= SIMILARITY_MIN).then_some(nearest)
}

fn quoted(text: &str) -> String {
    let mut quote: String = text.chars().take(QUOTE_CHARS_MAX).collect();
    if quote.len() < text.len() {
        quote.push('…');
    }
    quote
}

#[cfg(test)]
mod tests;
