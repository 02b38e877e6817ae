//! Lists: pages, filters, orders, search.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::support::{Exoplanets, Row, each, number, table};

const PAGE: &str = "query($first: Int, $after: String, $last: Int, $before: String) {
    planetsConnection(first: $first, after: $after, last: $last, before: $before, orderBy: DISTANCE, order: DESC) {
        totalCount
        edges { cursor node { name distance } }
        nodes { name }
        pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    }
}";

async fn page(service: &Exoplanets, variables: Value) -> Value {
    let page = service.ask_with(PAGE, variables).await["planetsConnection"].take();
    let names: Vec<&Value> = each(&page["edges"], "node").into_iter().map(|node| &node["name"]).collect();
    assert_eq!(names, each(&page["nodes"], "name"));
    let cursors = each(&page["edges"], "cursor");
    let at_end = |cursor: Option<&&Value>| cursor.map_or(Value::Null, |cursor| (*cursor).clone());
    assert_eq!(page["pageInfo"]["startCursor"], at_end(cursors.first()));
    assert_eq!(page["pageInfo"]["endCursor"], at_end(cursors.last()));
    assert_eq!(page["totalCount"], 6291);
    page
}

fn names(page: &Value) -> Vec<String> {
    each(&page["nodes"], "name").into_iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn pages_forwards_have_every_planet_exactly_once() {
    let service = Exoplanets::start().await;
    let (mut seen, mut after) = (Vec::new(), Value::Null);
    loop {
        let page = page(&service, json!({ "first": 700, "after": after })).await;
        assert_eq!(page["pageInfo"]["hasPreviousPage"], !seen.is_empty());
        seen.extend(names(&page));
        after = page["pageInfo"]["endCursor"].clone();
        if page["pageInfo"]["hasNextPage"] == false {
            break;
        }
    }
    assert_eq!(seen.len(), 6291);
    let in_table: HashSet<String> =
        table().into_iter().map(|mut row| row.remove("pl_name").unwrap()).collect();
    assert_eq!(seen.into_iter().collect::<HashSet<_>>(), in_table);
}

#[tokio::test]
async fn pages_backwards_are_the_same_list() {
    let service = Exoplanets::start().await;
    let forwards = page(&service, json!({ "first": 1000 })).await;
    let (mut backwards, mut before) = (Vec::new(), forwards["pageInfo"]["endCursor"].clone());
    loop {
        let page = page(&service, json!({ "last": 400, "before": before })).await;
        assert_eq!(page["pageInfo"]["hasNextPage"], true);
        backwards = [names(&page), backwards].concat();
        before = page["pageInfo"]["startCursor"].clone();
        if page["pageInfo"]["hasPreviousPage"] == false {
            break;
        }
    }
    assert_eq!(backwards, names(&forwards)[..999]);
}

#[tokio::test]
async fn a_page_has_a_hundred_planets_unless_asked_otherwise_and_may_be_empty() {
    let service = Exoplanets::start().await;
    assert_eq!(names(&page(&service, json!({})).await).len(), 100);
    let none = page(&service, json!({ "first": 0 })).await;
    assert_eq!(names(&none).len(), 0);
    assert_eq!(none["pageInfo"]["hasNextPage"], true);
}

#[tokio::test]
async fn a_page_between_two_cursors_has_what_lies_between() {
    let service = Exoplanets::start().await;
    let ten = page(&service, json!({ "first": 10 })).await;
    let cursor = |place: usize| ten["edges"][place]["cursor"].clone();
    let between = page(&service, json!({ "after": cursor(2), "before": cursor(6) })).await;
    assert_eq!(names(&between), names(&ten)[3..6]);
    let reversed = page(&service, json!({ "after": cursor(6), "before": cursor(2) })).await;
    assert_eq!(names(&reversed).len(), 0);
}

#[tokio::test]
async fn a_page_that_cannot_be_is_refused() {
    let service = Exoplanets::start().await;
    for (arguments, names) in [
        ("first: 1, last: 1", "`first` or `last`"),
        ("first: -1", "`first`"),
        ("first: 1001", "`first`"),
        ("last: 1001", "`last`"),
        (r#"after: "row-6291""#, "`after`"),
        (r#"after: "nonsense""#, "`after`"),
        (r#"before: """#, "`before`"),
        // A planet, and not one of this list.
        (r#"after: "row-0", filter: { hostStar: "Kepler-22" }"#, "`after`"),
    ] {
        let query = format!("{{ planetsConnection({arguments}) {{ totalCount }} }}");
        let (code, message) = service.refusal(&query).await;
        assert_eq!(code, "BAD_USER_INPUT", "{arguments}");
        assert!(message.contains(names), "{arguments}: {message}");
    }
}

/// How many planets of the table a filter should admit.
async fn assert_filtered(service: &Exoplanets, filter: Value, admits: impl Fn(&Row) -> bool) {
    let query = "query($filter: PlanetFilter) { planetsConnection(first: 1000, filter: $filter) {
        totalCount nodes { name }
    } }";
    let connection = service.ask_with(query, json!({ "filter": filter })).await["planetsConnection"].take();
    let expected: Vec<String> =
        table().into_iter().filter(admits).map(|mut row| row.remove("pl_name").unwrap()).collect();
    assert!(!expected.is_empty() && expected.len() < 6291, "{filter} must be a test: {}", expected.len());
    assert_eq!(connection["totalCount"], expected.len(), "{filter}");
    assert_eq!(names(&connection), expected[..expected.len().min(1000)], "{filter}");
}

#[tokio::test]
async fn each_condition_of_a_filter_narrows_as_it_says() {
    let service = Exoplanets::start().await;
    let within = |column: &'static str, admits: fn(f64) -> bool| {
        move |row: &Row| number(row, column).is_some_and(admits)
    };
    // 12.2 and 12.3 are values of the table, so that every bound is met exactly.
    let radius = |filter: Value| json!({ "radius": filter });
    assert_filtered(
        &service,
        radius(json!({ "gt": 12.2, "lt": 12.3 })),
        within("pl_rade", |it| it > 12.2 && it < 12.3),
    )
    .await;
    assert_filtered(
        &service,
        radius(json!({ "gte": 12.2, "lte": 12.3 })),
        within("pl_rade", |it| (12.2..=12.3).contains(&it)),
    )
    .await;
    assert_filtered(
        &service,
        radius(json!({ "gte": 12.2, "lte": 12.2 })),
        within("pl_rade", |it| it == 12.2),
    )
    .await;
    assert_filtered(&service, json!({ "mass": { "gt": 1 } }), within("pl_bmasse", |it| it > 1.0)).await;
    assert_filtered(&service, json!({ "orbitalPeriod": { "lt": 1 } }), within("pl_orbper", |it| it < 1.0))
        .await;
    assert_filtered(
        &service,
        json!({ "insolation": { "gt": 0.9, "lt": 1.1 } }),
        within("pl_insol", |it| it > 0.9 && it < 1.1),
    )
    .await;
    assert_filtered(&service, json!({ "distance": { "lte": 10 } }), within("sy_dist", |it| it <= 10.0)).await;
    assert_filtered(
        &service,
        json!({ "equilibriumTemperature": { "gte": 2500 } }),
        within("pl_eqt", |it| it >= 2500.0),
    )
    .await;
    assert_filtered(
        &service,
        json!({ "discoveryYear": { "gte": 2026 } }),
        within("disc_year", |it| it >= 2026.0),
    )
    .await;
    assert_filtered(&service, json!({ "hostStar": "TRAPPIST-1" }), |row| row["hostname"] == "TRAPPIST-1")
        .await;
    assert_filtered(&service, json!({ "facility": "La Silla Observatory" }), |row| {
        row["disc_facility"] == "La Silla Observatory"
    })
    .await;
    assert_filtered(&service, json!({ "nameContains": "kepler-22 " }), |row| {
        row["pl_name"].starts_with("Kepler-22 ")
    })
    .await;
    assert_filtered(&service, json!({ "controversial": true }), |row| row["pl_controv_flag"] == "1").await;
    let methods = ["Imaging", "Pulsar Timing"];
    assert_filtered(&service, json!({ "discoveryMethods": ["IMAGING", "PULSAR_TIMING"] }), |row| {
        methods.contains(&&*row["discoverymethod"])
    })
    .await;
}

#[tokio::test]
async fn all_conditions_of_a_filter_hold_together_and_null_asks_nothing() {
    let service = Exoplanets::start().await;
    let filter = json!({
        "mass": { "gt": 1, "lt": 10, "gte": null }, "discoveryMethods": ["TRANSIT"], "discoveryYear": { "lt": 2012 },
        "hostStar": null, "near": null,
    });
    assert_filtered(&service, filter, |row| {
        number(row, "pl_bmasse").is_some_and(|mass| mass > 1.0 && mass < 10.0)
            && row["discoverymethod"] == "Transit"
            && number(row, "disc_year").is_some_and(|year| year < 2012.0)
    })
    .await;
}

#[tokio::test]
async fn a_circle_on_the_sky_has_a_radius_of_one_degree_unless_given() {
    let service = Exoplanets::start().await;
    let query = "query($near: Cone!) { planetsConnection(filter: { near: $near }) { totalCount } }";
    // Across the meridian where right ascension begins again, on the equator, where a degree is a degree.
    let count = async |near: Value| {
        let answer = service.ask_with(query, json!({ "near": near })).await;
        answer["planetsConnection"]["totalCount"].as_i64().unwrap()
    };
    let by_hand = |radius: f64| {
        let near = |row: &Row| {
            let (ra, dec) =
                (number(row, "ra").unwrap().to_radians(), number(row, "dec").unwrap().to_radians());
            // The angle to (0, 0), by the dot product of the two directions.
            (dec.cos() * ra.cos()).acos().to_degrees() <= radius
        };
        i64::try_from(table().iter().filter(|row| near(row)).count()).unwrap()
    };
    assert_eq!(count(json!({ "ra": 0, "dec": "0" })).await, by_hand(1.0));
    assert_eq!(count(json!({ "ra": 0, "dec": 0, "radius": null })).await, by_hand(1.0));
    assert_eq!(count(json!({ "ra": 0, "dec": 0, "radius": 10 })).await, by_hand(10.0));
    assert!(by_hand(10.0) > by_hand(1.0));
    assert_eq!(count(json!({ "ra": 123, "dec": 45, "radius": 180 })).await, 6291);
}

#[tokio::test]
async fn a_filter_that_nothing_can_pass_is_refused() {
    let service = Exoplanets::start().await;
    for (filter, says) in [
        ("mass: { gt: 2, lt: 1 }", "`mass`: `gt` is 2, `lt` is 1"),
        ("mass: { gte: 1, lt: 1 }", "`mass`"),
        ("discoveryYear: { gt: 2020, lte: 2020 }", "`discoveryYear`"),
        ("near: { ra: 360.1, dec: 0 }", "`ra`"),
        ("near: { ra: 0, dec: -90.1 }", "`dec`"),
        ("near: { ra: 0, dec: 0, radius: 180.1 }", "`radius`"),
    ] {
        let query = format!("{{ planetsConnection(filter: {{ {filter} }}) {{ totalCount }} }}");
        let (code, message) = service.refusal(&query).await;
        assert_eq!(code, "BAD_USER_INPUT", "{filter}");
        assert!(message.contains(says), "{filter}: {message}");
    }
}

#[tokio::test]
async fn a_ranking_begins_at_the_asked_end_and_puts_the_unknown_last() {
    let service = Exoplanets::start().await;
    let known = |column: &str| {
        let mut known: Vec<f64> = table().iter().filter_map(|row| number(row, column)).collect();
        known.sort_by(f64::total_cmp);
        known
    };
    for (by, field, column) in [
        ("MASS", "mass", "pl_bmasse"),
        ("RADIUS", "radius", "pl_rade"),
        ("ORBITAL_PERIOD", "orbitalPeriod", "pl_orbper"),
        ("DISCOVERY_YEAR", "discoveryYear", "disc_year"),
        ("EQUILIBRIUM_TEMPERATURE", "equilibriumTemperature", "pl_eqt"),
        ("INSOLATION", "insolation", "pl_insol"),
        ("DISTANCE", "distance", "sy_dist"),
    ] {
        let query = format!(
            "{{ top: rankedPlanets(by: {by}) {{ {field} }}
                bottom: rankedPlanets(by: {by}, order: ASC, limit: 3) {{ {field} }}
                last: planetsConnection(orderBy: {by}, order: DESC, last: 1) {{ nodes {{ {field} }} }} }}"
        );
        let answer = service.ask(&query).await;
        let values =
            |list: &Value| -> Vec<f64> { each(list, field).iter().map(|it| it.as_f64().unwrap()).collect() };
        let known = known(column);
        assert_eq!(values(&answer["top"]), known.iter().rev().take(10).copied().collect::<Vec<_>>(), "{by}");
        assert_eq!(values(&answer["bottom"]), known[..3], "{by}");
        assert!(answer["last"]["nodes"][0][field].is_null(), "{by}");
    }
}

#[tokio::test]
async fn names_are_sorted_in_both_directions() {
    let service = Exoplanets::start().await;
    let answer = service.ask("{ rankedPlanets(by: NAME, limit: 1000) { name } }").await;
    let table = table();
    let expected: Vec<String> = table.iter().rev().take(1000).map(|row| row["pl_name"].clone()).collect();
    assert_eq!(each(&answer["rankedPlanets"], "name"), expected.iter().collect::<Vec<_>>());
}

#[tokio::test]
async fn a_search_finds_planets_stars_and_facilities_the_nearest_first() {
    let service = Exoplanets::start().await;
    let query = "query($text: String!) { search(text: $text, limit: 1000) {
        __typename
        ... on Planet { name year: discoveryYear }
        ... on Star { name planetCount }
        ... on Facility { name firstYear: discoveryYear planets(limit: 1) { name } }
    } }";
    let answer = service.ask_with(query, json!({ "text": " kepler " })).await;
    let found = answer["search"].as_array().unwrap();
    assert_eq!(found[0]["__typename"], "Facility");
    assert_eq!((&found[0]["name"], &found[0]["firstYear"]), (&json!("Kepler"), &json!(2009)));
    let kinds: HashSet<&str> = found.iter().map(|it| it["__typename"].as_str().unwrap()).collect();
    assert_eq!(kinds, HashSet::from(["Planet", "Star", "Facility"]));

    let one = service.ask_with(query, json!({ "text": "TRAPPIST-1" })).await;
    assert_eq!(one["search"][0], json!({ "__typename": "Star", "name": "TRAPPIST-1", "planetCount": 7 }));
    assert_eq!(one["search"][1]["name"], "TRAPPIST-1 b");
    assert_eq!(one["search"].as_array().unwrap().len(), 8);
    assert_eq!(service.ask_with(query, json!({ "text": "zzz" })).await["search"], json!([]));
}

#[tokio::test]
async fn methods_and_facilities_account_for_every_planet() {
    let service = Exoplanets::start().await;
    let answer = service
        .ask("{ discoveryMethods { method name planetCount } facilities { name planetCount discoveryYear } }")
        .await;
    let sum =
        |list: &Value| each(list, "planetCount").iter().map(|count| count.as_i64().unwrap()).sum::<i64>();
    assert_eq!(sum(&answer["discoveryMethods"]), 6291);
    assert_eq!(sum(&answer["facilities"]), 6291);
    assert_eq!(answer["facilities"].as_array().unwrap().len(), 73);
    for method in answer["discoveryMethods"].as_array().unwrap() {
        let name = method["name"].as_str().unwrap();
        assert_eq!(method["method"], name.to_uppercase().replace(' ', "_"));
        let count = table().iter().filter(|row| row["discoverymethod"] == name).count();
        assert_eq!(method["planetCount"], count, "{name}");
    }
}
