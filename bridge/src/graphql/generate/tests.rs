//! Made-up calls: they cover every operation, stay within limits, and repeat with the seed.

use std::collections::BTreeMap;

use async_graphql_parser::parse_query;
use proptest::prelude::*;

use super::requests;
use crate::{graphql::testing::sky, limits::QUERY_BYTES_MAX};

#[test]
fn generated_requests_go_round_all_operations_and_are_valid() {
    let sky = sky();
    let operations = sky.description.operations.len();
    let all: Vec<_> = requests(&sky.planner, &sky.description, 40 * operations, 7).collect();
    assert_eq!(all.len(), 40 * operations);
    for (i, generated) in all.iter().enumerate() {
        let operation = &sky.description.operations[i % operations];
        assert_eq!(generated.operation, format!("{} {}", operation.method, operation.path));
        assert!(parse_query(&generated.query).is_ok(), "{}", generated.query);
        assert!(generated.query.len() <= QUERY_BYTES_MAX);
        let variables: BTreeMap<String, serde_json::Value> =
            serde_json::from_str(&generated.variables).unwrap();
        for name in variables.keys() {
            assert!(generated.query.contains(&format!("${name}: ")), "{}", generated.query);
            assert!(generated.query.contains(&format!("{name}:${name}")), "{}", generated.query);
        }
    }
    assert!(all.iter().any(|generated| generated.variables.contains("filter")));
}

#[test]
fn the_same_seed_makes_the_same_requests() {
    let sky = sky();
    let of = |seed| requests(&sky.planner, &sky.description, 100, seed).collect::<Vec<_>>();
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

proptest! {
    /// The only letters of a query are those of the schema, whatever a caller sends.
    #[test]
    fn no_text_from_a_caller_appears_in_a_query(
        operation in 0_usize..10,
        text in "(zq[a-z]{6}|[\\PC]{0,12}zqx|\\{\"zqy\":1\\}|zqz[,.(*)]+)",
        name in "(text|name|filter|sort|at|ids|fields|_fields|any|big|id|zq[a-z]{3})(\\.zq)?",
        in_body in any::<bool>(),
    ) {
        let sky = sky();
        let operation = operation % sky.description.operations.len();
        let quoted = serde_json::to_string(&BTreeMap::from([(&name, &text)])).unwrap();
        let mut params = BTreeMap::from([("text".to_owned(), text.clone()), ("name".to_owned(), text.clone())]);
        let body = if in_body { params.clear(); quoted } else { params.insert(name, text); String::new() };
        for params in [params, BTreeMap::new()] {
            if let Ok(request) = sky.planner.plan(&sky.description, operation, &params, body.as_bytes()) {
                prop_assert!(!request.query.contains("zq"), "{}", request.query);
                prop_assert!(parse_query(&request.query).is_ok());
                prop_assert!(serde_json::from_str::<serde_json::Value>(&request.variables).is_ok());
            }
        }
    }

    #[test]
    fn any_fields_are_planned_or_refused(fields in "[a-z*.,() _]{0,40}|(name|star|\\*|galaxy|id|[.,()]){0,20}") {
        let sky = sky();
        if let Ok(request) = sky.plan("planets", &[("fields", &fields)], "") {
            prop_assert!(parse_query(&request.query).is_ok(), "{}", request.query);
        }
    }
}
