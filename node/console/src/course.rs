//! A course of numbers in strangers' JSON, over time or by their places in a list: what a chart is made of. Pure, and bounded on
//! every side.
//!
//! Looked for in this order, near the top: columns side by side (`{"time": […], "height": […]}`), rows of objects with a time,
//! pairs of a time and a number, and plain lists of numbers.

use serde_json::{Map, Value};

use super::{show, table};

/// Fewer are no course of anything.
const POINTS_MIN: usize = 4;
const POINTS_MAX: usize = 500;
/// The greatest depth at which a course is looked for.
const DEPTH_MAX: usize = 4;
const NAME_CHARS_MAX: usize = 60;
/// A time with its zone.
const TIME_CHARS_MAX: usize = 32;
/// Members whose numbers are places on a map.
const PLACES: [&str; 7] = ["coordinates", "geometry", "bbox", "latitude", "longitude", "lat", "lon"];

/// Numbers in the order of the document.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Course {
    /// As the document calls the numbers; empty for a list without a name.
    pub(super) name: String,
    /// True if every point has a time, and false if it has its place in the list.
    pub(super) is_over_time: bool,
    pub(super) points: Vec<CoursePoint>,
    /// Points that are left out.
    pub(super) hidden: usize,
}

/// One number, and the time or the place that it stands at.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CoursePoint {
    pub(super) at: String,
    pub(super) value: f64,
}

/// The first course of numbers in a document.
pub(super) fn of(json: &Value) -> Option<Course> {
    found(json, "", DEPTH_MAX)
}

fn found(json: &Value, name: &str, depth: usize) -> Option<Course> {
    match json {
        Value::Array(list) => {
            of_rows(list).or_else(|| of_pairs(list, name)).or_else(|| of_numbers(list, name))
        }
        Value::Object(object) => of_columns(object).or_else(|| {
            let mut members = object.iter().filter(|(name, _)| depth > 0 && !is_place(name));
            members.find_map(|(name, value)| found(value, name, depth - 1))
        }),
        _ => None,
    }
}

/// A list of times beside a list of as many numbers.
fn of_columns(object: &Map<String, Value>) -> Option<Course> {
    let lists = || object.iter().filter_map(|(name, value)| Some((name, value.as_array()?)));
    let times = |name: &str, list: &[Value]| -> Option<Vec<String>> {
        list.iter().map(|value| moment(name, value)).collect()
    };
    let (timed, times) = lists().find_map(|(name, list)| Some((name, times(name, list)?)))?;
    let is_column = |(name, list): &(&String, &Vec<Value>)| {
        *name != timed && !is_place(name) && list.len() == times.len() && list.iter().any(Value::is_number)
    };
    let (name, list) = lists().find(is_column)?;
    let values = list.iter().map(Value::as_f64);
    course(name, true, times.into_iter().zip(values).filter_map(|(at, value)| Some((at, value?))))
}

/// Objects that have a time and a number each, also in GeoJSON's `properties`.
fn of_rows(list: &[Value]) -> Option<Course> {
    let first: Vec<(&String, &Value)> = members(list.first()?).collect();
    let (timed, _) = first.iter().find(|(name, value)| moment(name, value).is_some())?;
    let is_measure = |(name, value): &&(&String, &Value)| {
        value.is_number() && name != timed && !is_place(name) && !name.to_ascii_lowercase().ends_with("id")
    };
    let (name, _) = first.iter().find(is_measure)?;
    let point = |row| Some((moment(timed, member(row, timed)?)?, member(row, name)?.as_f64()?));
    course(name, true, list.iter().filter_map(point))
}

fn members(row: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let own = row.as_object();
    let inner = own.and_then(|own| own.get("properties")).and_then(Value::as_object);
    own.into_iter().chain(inner).flatten()
}

fn member<'v>(row: &'v Value, wanted: &str) -> Option<&'v Value> {
    members(row).find(|(name, _)| *name == wanted).map(|(_, value)| value)
}

/// `[[time, number], …]`
fn of_pairs(list: &[Value], name: &str) -> Option<Course> {
    let pair = |value: &Value| match value.as_array()?.as_slice() {
        [at, number] => Some((moment("time", at)?, number.as_f64()?)),
        _ => None,
    };
    course(name, true, list.iter().filter_map(pair))
}

fn of_numbers(list: &[Value], name: &str) -> Option<Course> {
    let are_numbers = list.iter().all(|value| value.is_number() || value.is_null());
    let values = list.iter().enumerate().filter_map(|(at, value)| Some((at.to_string(), value.as_f64()?)));
    if are_numbers { course(name, false, values) } else { None }
}

fn course(name: &str, is_over_time: bool, points: impl Iterator<Item = (String, f64)>) -> Option<Course> {
    let mut points: Vec<CoursePoint> = points.map(|(at, value)| CoursePoint { at, value }).collect();
    if points.len() < POINTS_MIN {
        return None;
    }
    let hidden = points.len().saturating_sub(POINTS_MAX);
    points.truncate(POINTS_MAX);
    let name = show::visible(name).chars().take(NAME_CHARS_MAX).collect();
    Some(Course { name, is_over_time, points, hidden })
}

fn is_place(name: &str) -> bool {
    PLACES.iter().any(|place| name.eq_ignore_ascii_case(place))
}

/// The time that a value is: a date as text, or a count of seconds or milliseconds under the name of a time.
fn moment(name: &str, value: &Value) -> Option<String> {
    if let Some(text) = value.as_str() {
        return is_date(text).then(|| show::visible(text).chars().take(TIME_CHARS_MAX).collect());
    }
    table::secs_of(name, value).map(show::utc)
}

/// `2026-11-22`, and whatever follows it.
fn is_date(text: &str) -> bool {
    let mut signs = text.bytes();
    "0000-00-00".bytes().all(|form| match (form, signs.next()) {
        (b'0', Some(sign)) => sign.is_ascii_digit(),
        (form, sign) => sign == Some(form),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    type Seen = (String, bool, Vec<(String, f64)>);

    fn seen(json: &Value) -> Option<Seen> {
        let Course { name, is_over_time, points, .. } = of(json)?;
        Some((name, is_over_time, points.into_iter().map(|point| (point.at, point.value)).collect()))
    }

    const DAYS: [&str; 4] = ["2026-11-01", "2026-11-02", "2026-11-03", "2026-11-04"];

    #[test]
    fn numbers_over_time_are_found_as_columns_rows_and_pairs() {
        let values = [1.5, -2.0, 0.0, 4.25];
        let expected = Some((
            "height".to_owned(),
            true,
            DAYS.iter().zip(values).map(|(day, value)| ((*day).to_owned(), value)).collect::<Vec<_>>(),
        ));
        let rows: Vec<Value> = DAYS
            .iter()
            .zip(values)
            .map(|(day, value)| json!({ "gauge_id": 7, "day": day, "height": value, "lat": 1 }))
            .collect();
        let features: Vec<Value> = rows
            .iter()
            .map(|row| json!({ "type": "Feature", "properties": row, "geometry": { "coordinates": [1, 2, 3, 4] } }))
            .collect();
        let pairs: Vec<Value> = DAYS.iter().zip(values).map(|(day, value)| json!([day, value])).collect();
        for document in [
            json!({ "latitude": 1, "hourly": { "time": DAYS, "height": values } }),
            json!(rows),
            json!({ "data": rows }),
            json!({ "type": "FeatureCollection", "features": features }),
            json!({ "height": pairs }),
        ] {
            assert_eq!(seen(&document), expected, "{document}");
        }
    }

    #[test]
    fn counts_of_seconds_are_times_under_the_name_of_one() {
        let rows: Vec<Value> =
            (0..4_u64).map(|n| json!({ "time": 1_517_960_631_840 + n, "mag": n })).collect();
        let (name, is_over_time, points) = seen(&json!(rows)).unwrap();
        assert_eq!((name.as_str(), is_over_time), ("mag", true));
        assert_eq!(points[0], ("2018-02-06 23:43:51 UTC".to_owned(), 0.0));
    }

    #[test]
    fn a_plain_list_of_numbers_is_a_course_by_its_places() {
        let (name, is_over_time, points) = seen(&json!({ "noise": [3, null, 5, 1, 2] })).unwrap();
        assert_eq!((name.as_str(), is_over_time), ("noise", false));
        assert_eq!(
            points,
            [("0", 3.0), ("2", 5.0), ("3", 1.0), ("4", 2.0)].map(|(at, v)| (at.to_owned(), v))
        );
    }

    #[test]
    fn what_is_no_course_of_numbers_is_none() {
        for document in [
            json!([1, 2, 3]),
            json!([1, 2, 3, "4"]),
            json!({ "a": 1, "b": 2, "c": 3, "d": 4 }),
            json!([{ "name": "a", "mass": 1 }, { "name": "b", "mass": 2 }, { "name": "c", "mass": 3 }, { "name": "d", "mass": 4 }]),
            json!({ "type": "LineString", "coordinates": [[1, 2], [3, 4], [5, 6], [7, 8]] }),
            json!({ "bbox": [1, 2, 3, 4] }),
            json!({ "time": DAYS, "name": ["a", "b", "c", "d"] }),
            json!("2026-11-01"),
            json!(null),
        ] {
            assert_eq!(of(&document), None, "{document}");
        }
        let mut deep = json!([1, 2, 3, 4]);
        for _ in 0..DEPTH_MAX {
            deep = json!({ "a": deep });
        }
        assert!(of(&deep).is_some());
        assert_eq!(of(&json!({ "a": deep })), None, "too deep");
    }

    #[test]
    fn a_long_course_is_bounded_and_says_so() {
        let found = of(&json!((0..POINTS_MAX + 7).collect::<Vec<_>>())).unwrap();
        assert_eq!((found.points.len(), found.hidden), (POINTS_MAX, 7));
        let name = "\u{202e}".to_owned() + &"x".repeat(1_000);
        let found = of(&json!({ name: [1, 2, 3, 4] })).unwrap();
        assert_eq!(found.name, "x".repeat(NAME_CHARS_MAX));
    }
}
