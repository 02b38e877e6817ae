//! What a query accepts, and what it says when it does not.

use serde_json::Value;

use super::{EarthquakeQuery, LIMIT_DEFAULT, LIMIT_MAX, PARAMETERS, Range};
use crate::problem::Problem;

fn parse(text: &str) -> EarthquakeQuery {
    EarthquakeQuery::parse(text).unwrap_or_else(|problem| panic!("`{text}` was refused: {}", problem.detail))
}

fn refused(text: &str) -> Problem {
    EarthquakeQuery::parse(text).expect_err(text)
}

#[test]
fn no_parameters_mean_the_newest_hundred() {
    let query = parse("");
    assert_eq!(query.limit, LIMIT_DEFAULT);
    assert_eq!((query.magnitude, query.time_ms), (Range::OPEN, Range::OPEN));
}

#[test]
fn every_documented_parameter_is_accepted_and_every_accepted_one_documented() {
    let document: Value = serde_json::from_str(crate::earthquakes::OPENAPI).unwrap();
    let described = document["paths"]["/v1/earthquakes/recent"]["get"]["parameters"].as_array().unwrap();
    let names: Vec<_> = described.iter().map(|parameter| parameter["name"].as_str().unwrap()).collect();
    assert_eq!(names, PARAMETERS);
    for parameter in described {
        let example = match &parameter["example"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        parse(&format!("{}={example}", parameter["name"].as_str().unwrap()));
    }
}

#[test]
fn documented_bounds_are_the_bounds() {
    let document: Value = serde_json::from_str(crate::earthquakes::OPENAPI).unwrap();
    let described = document["paths"]["/v1/earthquakes/recent"]["get"]["parameters"].as_array().unwrap();
    let mut bounded = 0;
    for parameter in described {
        let name = parameter["name"].as_str().unwrap();
        let (Some(min), Some(max)) =
            (parameter["schema"]["minimum"].as_i64(), parameter["schema"]["maximum"].as_i64())
        else {
            continue;
        };
        parse(&format!("{name}={min}"));
        parse(&format!("{name}={max}"));
        refused(&format!("{name}={}", min - 1));
        refused(&format!("{name}={}", max + 1));
        bounded += 1;
    }
    assert_eq!(bounded, 7, "limit, two magnitudes, four sides of the box");
}

#[test]
fn a_wrong_value_is_answered_with_the_parameter_and_what_it_expects() {
    for (text, parameter, expected) in [
        ("limit=0", "limit", "a whole number from 1 to 2000"),
        ("limit=5.0", "limit", "a whole number from 1 to 2000"),
        ("limit=", "limit", "a whole number from 1 to 2000"),
        ("minmagnitude=big", "minmagnitude", "a number from -10 to 10"),
        ("maxmagnitude=NaN", "maxmagnitude", "a number from -10 to 10"),
        ("minlatitude=inf", "minlatitude", "a number from -90 to 90"),
        ("format=csv", "format", "geojson"),
        ("starttime=today", "starttime", super::time::EXPECTED),
        ("limit=1&limit=2", "limit", "one value"),
    ] {
        let problem = refused(text);
        assert_eq!(problem.parameter.as_deref(), Some(parameter), "{text}");
        assert_eq!(problem.expected.as_deref(), Some(expected), "{text}");
        assert_eq!(problem.status, 400, "{text}");
    }
    assert_eq!(LIMIT_MAX, 2000);
}

#[test]
fn a_range_that_holds_nothing_names_its_other_end() {
    let problem = refused("minmagnitude=5&maxmagnitude=4.5");
    assert_eq!(problem.detail, "`minmagnitude` must be at most `maxmagnitude`, which is 4.5; it is 5");
    parse("minmagnitude=4.5&maxmagnitude=4.5");
    refused("starttime=2018-02-07&endtime=2018-02-06");
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest_right_one() {
    for (wrong, right) in [
        ("minMagnitude", "minmagnitude"),
        ("min_magnitude", "minmagnitude"),
        ("minmag", "minmagnitude"),
        ("maxmag", "maxmagnitude"),
        ("start", "starttime"),
        ("end_time", "endtime"),
        ("limits", "limit"),
        ("formt", "format"),
        ("minlat", "minlatitude"),
    ] {
        assert_eq!(refused(&format!("{wrong}=1")).did_you_mean, Some(right), "{wrong}");
    }
    for unlike in ["apikey", "q", "", &"minmagnitude".repeat(1000)] {
        assert_eq!(refused(&format!("{unlike}=1")).did_you_mean, None, "{unlike}");
    }
}

#[test]
fn errors_repeat_only_the_beginning_of_what_was_sent() {
    let long = "é".repeat(5_000);
    assert!(refused(&format!("limit={long}")).detail.len() < 300);
    assert!(refused(&format!("{long}=1")).detail.len() < 500);
}

#[test]
fn encoded_values_are_decoded() {
    assert_eq!(parse("starttime=2018-02-06T04%3A00%3A00-08%3A00"), parse("starttime=1517918400000"));
    assert_eq!(parse("starttime=2018-02-06+12:00:00"), parse("starttime=1517918400000"));
}

#[test]
fn an_unknown_magnitude_matches_only_a_query_that_does_not_ask() {
    assert!(parse("").magnitude.admits_known(None));
    assert!(!parse("minmagnitude=-10").magnitude.admits_known(None));
    assert!(!parse("maxmagnitude=10").magnitude.admits_known(None));
}
