//! The exoplanets service as its clients meet it: a real server, real sockets, the real binary, the archive's table.

mod errors;
mod lists;
mod notes;
mod schema;
#[path = "../common/service.rs"]
mod service;
mod support;

use serde_json::{Value, json};

use service::get_json;
use support::{Exoplanets, Row, each, number, table};

#[tokio::test]
async fn planets_of_a_method_are_the_first_of_the_table() {
    let service = Exoplanets::start().await;
    let query = "query($method: String, $limit: Int) {
        planets(discoveryMethod: $method, limit: $limit) {
            name hostStar mass radius orbitalPeriod discoveryYear discoveryMethod
        }
    }";
    for (method, limit) in [("Transit", 5), ("Radial Velocity", 1), ("Disk Kinematics", 5), ("Imaging", 1000)]
    {
        let answer = service.ask_with(query, json!({ "method": method, "limit": limit })).await;
        let of_method = |row: &Row| {
            (row["discoverymethod"] == method).then(|| {
                json!({
                    "name": row["pl_name"],
                    "hostStar": row["hostname"],
                    "mass": number(row, "pl_bmasse"),
                    "radius": number(row, "pl_rade"),
                    "orbitalPeriod": number(row, "pl_orbper"),
                    "discoveryYear": row["disc_year"].parse::<i32>().ok(),
                    "discoveryMethod": method,
                })
            })
        };
        let expected: Vec<Value> = table().iter().filter_map(of_method).take(limit).collect();
        assert!(!expected.is_empty());
        assert_eq!(answer["planets"], json!(expected), "{method}");
    }
}

#[tokio::test]
async fn without_arguments_there_are_a_hundred_planets_of_all_methods() {
    let service = Exoplanets::start().await;
    let planets = &service.ask("{ planets { name } }").await["planets"];
    let table = table();
    let expected: Vec<Value> = table.iter().take(100).map(|row| json!(row["pl_name"])).collect();
    assert_eq!(each(planets, "name"), expected.iter().collect::<Vec<_>>());
}

#[tokio::test]
async fn a_methods_capital_letters_do_not_matter() {
    let service = Exoplanets::start().await;
    let answer = service.ask(r#"{ planets(discoveryMethod: "radial velocity", limit: 1) { name } }"#).await;
    assert_eq!(answer["planets"][0]["name"], "11 Com b");
}

/// Every value of every planet, compared as text: a number is written with the digits that the archive gives.
#[tokio::test]
async fn every_planet_has_the_archives_values_without_rounding_and_null_where_there_is_none() {
    let service = Exoplanets::start().await;
    let query = "query($after: String) { planetsConnection(first: 1000, after: $after) {
        pageInfo { hasNextPage endCursor }
        nodes {
            pl_name: name hostname: hostStar discoverymethod: discoveryMethod disc_year: discoveryYear
            disc_facility: discoveryFacility controversial pl_bmasse: mass pl_rade: radius
            pl_orbper: orbitalPeriod pl_eqt: equilibriumTemperature pl_insol: insolation sy_dist: distance
            position { ra dec }
            orbit { pl_orbsmax: semiMajorAxis pl_orbeccen: eccentricity pl_orbper: period }
            star {
                hostname: name st_spectype: spectralType st_teff: temperature st_rad: radius st_mass: mass
                sy_snum: starCount sy_pnum: planetCount sy_vmag: visualMagnitude sy_dist: distance
                position { ra dec }
            }
            discovery { disc_year: year facility { disc_facility: name } }
        }
    } }";
    let table = table();
    let mut rows = table.iter();
    let mut after = Value::Null;
    loop {
        let page = service.ask_with(query, json!({ "after": after })).await;
        for planet in page["planetsConnection"]["nodes"].as_array().unwrap() {
            let row = rows.next().unwrap();
            assert_values(row, planet);
            assert_eq!(planet["controversial"], row["pl_controv_flag"] == "1");
            let orbit_known =
                ["pl_orbsmax", "pl_orbeccen", "pl_orbper"].iter().any(|it| !row[*it].is_empty());
            assert_eq!(planet["orbit"].is_object(), orbit_known, "{planet}");
        }
        let info = &page["planetsConnection"]["pageInfo"];
        if info["hasNextPage"] == false {
            break;
        }
        after = info["endCursor"].clone();
    }
    assert_eq!(rows.next(), None);
}

/// Compares every value whose name is a column.
fn assert_values(row: &Row, object: &Value) {
    for (name, value) in object.as_object().unwrap() {
        match (row.get(name), value) {
            (Some(text), Value::Null) => assert_eq!(text, "", "{name} of {row:?}"),
            (Some(text), Value::String(value)) => assert_eq!(text, value, "{name}"),
            (Some(text), Value::Number(value)) => {
                assert_eq!(digits(text), digits(&value.to_string()), "{name} of {row:?}");
            }
            (_, Value::Object(_)) => assert_values(row, value),
            _ => {}
        }
    }
}

/// A decimal without zeros that say nothing.
fn digits(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[tokio::test]
async fn a_planet_is_found_by_its_exact_name_and_null_otherwise() {
    let service = Exoplanets::start().await;
    let answer =
        service.ask(r#"{ is: planet(name: "14 Her b") { id mass } not: planet(name: "14 her b") { id } }"#);
    assert_eq!(answer.await, json!({ "is": { "id": "planet:14 Her b", "mass": 2828.6728223 }, "not": null }));
}

#[tokio::test]
async fn a_star_knows_its_planets_and_they_know_their_star() {
    let service = Exoplanets::start().await;
    let query = r#"{ star(name: "TRAPPIST-1") { planetCount planets { hostName star { id name } } } }"#;
    let star = &service.ask(query).await["star"];
    let planets = star["planets"].as_array().unwrap();
    assert_eq!(star["planetCount"], planets.len());
    let expected =
        json!({ "hostName": "TRAPPIST-1", "star": { "id": "star:TRAPPIST-1", "name": "TRAPPIST-1" } });
    assert!(planets.iter().all(|planet| *planet == expected), "{star}");
}

#[tokio::test]
async fn a_body_of_either_kind_is_found_by_its_id() {
    let service = Exoplanets::start().await;
    let query = "query($id: ID!) { body(id: $id) { __typename name ... on Star { spectralType } } }";
    for (id, expected) in [
        ("star:11 Com", json!({ "__typename": "Star", "name": "11 Com", "spectralType": "G8 III" })),
        ("planet:11 Com b", json!({ "__typename": "Planet", "name": "11 Com b" })),
        ("planet:11 Com", Value::Null),
        ("moon:11 Com b", Value::Null),
        ("11 Com b", Value::Null),
    ] {
        assert_eq!(service.ask_with(query, json!({ "id": id })).await["body"], expected, "{id}");
    }
}

#[tokio::test]
async fn an_angle_on_the_sky_is_that_between_the_planet_and_the_place() {
    let service = Exoplanets::start().await;
    let query = r#"query($dec: Degrees!) { planet(name: "11 Com b") {
        toPole: angularDistance(ra: 0, dec: 90)
        toItself: angularDistance(ra: "185.1787793", dec: $dec)
        across: angularDistance(ra: 5.1787793, dec: -17.7932516)
    } }"#;
    let planet = &service.ask_with(query, json!({ "dec": 17.793_251_6 })).await["planet"];
    let near = |field: &str, expected: f64| (planet[field].as_f64().unwrap() - expected).abs() < 1e-9;
    assert!(near("toPole", 90.0 - 17.793_251_6), "{planet}");
    assert!(near("toItself", 0.0), "{planet}");
    assert!(near("across", 180.0), "{planet}");
}

#[tokio::test]
async fn health_says_how_much_there_is_and_where_it_comes_from() {
    let service = Exoplanets::start().await;
    let health = get_json(&service.server.url("/healthz")).await;
    assert_eq!((&health["status"], &health["planets"]), (&json!("ok"), &json!(6291)));
    assert_eq!(health["source"]["date"], "2026-06-02");
}

#[test]
fn the_program_names_its_port_answers_and_ends_cleanly_on_sigterm() {
    service::assert_names_its_port_answers_and_ends(env!("CARGO_BIN_EXE_exoplanets"));
}

#[test]
fn a_taken_port_is_reported_with_what_to_do() {
    service::assert_reports_a_taken_port(env!("CARGO_BIN_EXE_exoplanets"));
}
