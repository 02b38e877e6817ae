//! What is refused, with which status and code.

use serde_json::{Value, json};

use super::service::{client, get};
use super::support::{Exoplanets, Reply};

const JSON: &str = "application/json";
const CURRENT: &str = "application/graphql-response+json";

#[tokio::test]
async fn a_limit_is_from_one_to_a_thousand_everywhere() {
    let service = Exoplanets::start().await;
    for field in [
        "planets(limit: $) { name }",
        "rankedPlanets(by: MASS, limit: $) { name }",
        r#"search(text: "a", limit: $) { __typename }"#,
        "facilities { planets(limit: $) { name } }",
    ] {
        let with = |limit: i32| format!("{{ {} }}", field.replace('$', &limit.to_string()));
        service.ask(&with(1)).await;
        if !field.starts_with("facilities") {
            service.ask(&with(1000)).await;
        }
        for limit in [-1, 0, 1001, i32::MAX] {
            let (code, message) = service.refusal(&with(limit)).await;
            assert_eq!(code, "BAD_USER_INPUT", "{field}");
            let expected = format!("`limit` must be a whole number from 1 to 1000; it was {limit}");
            assert_eq!(message, expected, "{field}");
        }
    }
}

#[tokio::test]
async fn an_unknown_method_is_refused_with_those_there_are() {
    let service = Exoplanets::start().await;
    let (code, message) = service.refusal(r#"{ planets(discoveryMethod: "Dowsing") { name } }"#).await;
    assert_eq!(code, "BAD_USER_INPUT");
    assert!(message.contains("Transit Timing Variations") && !message.contains("Dowsing"), "{message}");
}

#[tokio::test]
async fn a_search_text_has_from_one_to_a_hundred_characters() {
    let service = Exoplanets::start().await;
    let query = |text: &str| format!("{{ search(text: {}) {{ __typename }} }}", json!(text));
    for good in ["b", &"é".repeat(100)] {
        service.ask(&query(good)).await;
    }
    for bad in ["", "  ", &"é".repeat(101)] {
        assert_eq!(service.refusal(&query(bad)).await.0, "BAD_USER_INPUT", "{bad:?}");
    }
}

#[tokio::test]
async fn a_field_that_must_be_there_and_is_not_leaves_no_data() {
    let service = Exoplanets::start().await;
    let reply = service.request(&json!({ "query": r#"{ star(name: "Sun") { name } }"# })).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.body["data"], Value::Null);
    let error = &reply.body["errors"][0];
    assert_eq!(error["extensions"], json!({ "code": "NOT_FOUND", "http": { "status": 404 } }));
    assert_eq!(error["path"], json!(["star"]));
}

#[tokio::test]
async fn an_angle_is_a_number_or_the_text_of_one() {
    let service = Exoplanets::start().await;
    let query = r#"query($ra: Degrees!) { planet(name: "11 Com b") { angularDistance(ra: $ra, dec: 0) } }"#;
    let angle = |ra: Value| service.request_with(query, json!({ "ra": ra }));
    assert_eq!(angle(json!(185)).await.body, angle(json!("185.0")).await.body);
    for wrong in
        [json!("12h20m"), json!(""), json!("NaN"), json!("inf"), json!(true), json!([1]), Value::Null]
    {
        let reply = angle(wrong.clone()).await;
        assert!(reply.body["errors"][0]["message"].is_string(), "{wrong}: {reply:?}");
    }
}

#[tokio::test]
async fn what_is_no_question_of_this_schema_has_a_code_for_each_reason() {
    let service = Exoplanets::start().await;
    for (body, code) in [
        (json!({ "query": "{ planets { name }" }), "GRAPHQL_PARSE_FAILED"),
        (json!({ "query": "{ planets { nmae } }" }), "GRAPHQL_VALIDATION_FAILED"),
        (json!({ "query": r#"{ planets(limit: "5") { name } }"# }), "GRAPHQL_VALIDATION_FAILED"),
        (json!({ "query": "query($n: Int!) { planets(limit: $n) { name } }" }), "GRAPHQL_VALIDATION_FAILED"),
        (
            json!({ "query": "query($n: Int) { planets(limit: $n) { name } }", "variables": { "n": 3_000_000_000_u32 } }),
            "GRAPHQL_VALIDATION_FAILED",
        ),
        (json!({ "query": "{ a: __typename } query B { __typename }" }), "GRAPHQL_VALIDATION_FAILED"),
        (json!({ "query": "query A { __typename } query B { __typename }" }), "OPERATION_RESOLUTION_FAILURE"),
        (json!({ "query": "query A { __typename }", "operationName": "B" }), "OPERATION_RESOLUTION_FAILURE"),
        (json!({ "query": "" }), "GRAPHQL_PARSE_FAILED"),
    ] {
        let current = service.post(body.to_string(), JSON, CURRENT).await;
        assert_eq!(current.body["errors"][0]["extensions"]["code"], code, "{body}: {current:?}");
        assert_eq!(current.body.get("data"), None, "{body}");
        assert_eq!((current.status, &*current.content_type), (400, CURRENT), "{body}");
        let legacy = service.post(body.to_string(), JSON, JSON).await;
        assert_eq!((legacy.status, &*legacy.content_type), (200, JSON), "{body}");
        assert_eq!(legacy.body, current.body);
    }
}

#[tokio::test]
async fn the_named_operation_is_the_one_that_is_answered() {
    let service = Exoplanets::start().await;
    let query = "query A { a: __typename } query B { b: __typename }";
    let reply = service.request(&json!({ "query": query, "operationName": "B", "variables": null })).await;
    assert_eq!(reply.body, json!({ "data": { "b": "Query" } }));
}

#[tokio::test]
async fn an_answer_comes_in_the_media_type_that_was_asked_for() {
    let service = Exoplanets::start().await;
    let body = json!({ "query": "{ __typename }" }).to_string();
    for (accept, expected) in [
        (JSON, JSON),
        ("*/*", JSON),
        (CURRENT, CURRENT),
        ("application/graphql-response+json, application/json;q=0.9", CURRENT),
        ("Application/GraphQL-Response+JSON; charset=utf-8", CURRENT),
    ] {
        let reply = service.post(body.clone(), "application/json; charset=utf-8", accept).await;
        assert_eq!((reply.status, &*reply.content_type), (200, expected), "{accept}");
    }
}

#[tokio::test]
async fn a_body_that_is_no_request_is_a_400_in_json() {
    let service = Exoplanets::start().await;
    for body in [
        "",
        "{",
        "null",
        "[]",
        r#"[{ "query": "{ __typename }" }]"#,
        "{}",
        r#"{ "query": 5 }"#,
        r#"{ "query": "{ __typename }", "variables": [] }"#,
        r#"{ "query": "{ __typename }", "variables": "x" }"#,
        r#"{ "query": "{ __typename }", "operationName": 1 }"#,
        "{ planets { name } }",
    ] {
        for accept in [JSON, CURRENT] {
            let reply = service.post(body.to_owned(), JSON, accept).await;
            assert_eq!((reply.status, code(&reply)), (400, "BAD_REQUEST"), "{body}: {reply:?}");
        }
    }
    let reply = service.post("{ __typename }".to_owned(), "application/graphql", JSON).await;
    assert_eq!((reply.status, code(&reply)), (415, "UNSUPPORTED_MEDIA_TYPE"));
}

#[tokio::test]
async fn a_body_has_at_most_64_kibibytes() {
    let service = Exoplanets::start().await;
    let body = |length: usize| {
        let request = r#"{"query":"{ __typename }"}"#;
        format!("{request}{}", " ".repeat(length - request.len()))
    };
    assert_eq!(service.post(body(65_535), JSON, JSON).await.status, 200);
    assert_eq!(service.post(body(65_536), JSON, JSON).await.status, 200);
    let reply = service.post(body(65_537), JSON, JSON).await;
    assert_eq!((reply.status, code(&reply)), (413, "PAYLOAD_TOO_LARGE"));
}

fn code(reply: &Reply) -> &str {
    reply.body["errors"][0]["extensions"]["code"].as_str().unwrap_or_else(|| panic!("{reply:?}"))
}

#[tokio::test]
async fn an_answer_has_at_most_two_hundred_thousand_fields() {
    let service = Exoplanets::start().await;
    let query = |fields: usize, planets: usize| {
        // The list is a field too.
        let names: String = (1..fields).map(|field| format!("f{field}: name ")).collect();
        format!("{{ planets(limit: {planets}) {{ {names} }} }}")
    };
    let planets = |answer: Value| answer["planets"].as_array().unwrap().len();
    assert_eq!(planets(service.ask(&query(200, 999)).await), 999);
    assert_eq!(planets(service.ask(&query(200, 1000)).await), 1000);
    let (code, message) = service.refusal(&query(201, 1000)).await;
    assert_eq!(code, "QUERY_TOO_COMPLEX");
    assert!(message.contains("fewer"), "{message}");
}

#[tokio::test]
async fn a_thousand_planets_with_everything_are_an_answer() {
    let service = Exoplanets::start().await;
    let planets = "{ planets(limit: 1000) {
        id name hostStar mass radius orbitalPeriod discoveryYear discoveryMethod discoveryFacility
        equilibriumTemperature insolation distance controversial
        position { ra dec } orbit { semiMajorAxis eccentricity period }
        discovery { method year facility { name discoveryYear planetCount } }
        star {
            id name spectralType temperature radius mass visualMagnitude distance starCount planetCount
            position { ra dec } planets { id name }
        }
        notes { id text }
    } }";
    assert_eq!(service.ask(planets).await["planets"].as_array().unwrap().len(), 1000);
}

#[tokio::test]
async fn recursion_repetition_and_depth_are_bounded() {
    let service = Exoplanets::start().await;
    let nested =
        |levels: usize| format!("{}name{}", "star { planets { ".repeat(levels), " } }".repeat(levels));
    let (code, _) = service.refusal(&format!("{{ planets(limit: 1000) {{ {} }} }}", nested(8))).await;
    assert_eq!(code, "QUERY_TOO_COMPLEX");
    let (code, message) = service.refusal(&format!("{{ planets {{ {} }} }}", nested(12))).await;
    assert_eq!(code, "GRAPHQL_PARSE_FAILED", "{message}");

    // The same list twice: one selection is small, and the answer has both.
    let names: String = (0..400).map(|field| format!("f{field}: name ")).collect();
    let twice = format!("{{ planets(limit: 1000) {{ name }} planets(limit: 1000) {{ {names} }} }}");
    assert_eq!(service.refusal(&twice).await.0, "QUERY_TOO_COMPLEX");

    // Many searches that find nothing.
    let searches: String =
        (0..300).map(|it| format!("s{it}: search(text: \"zzz\") {{ __typename }} ")).collect();
    assert_eq!(service.refusal(&format!("{{ {searches} }}")).await.0, "QUERY_TOO_COMPLEX");

    // Fragments that double at each of ten levels.
    let doubling: String = (0..10)
        .map(|it| format!("fragment F{it} on Planet {{ ...F{next} ...F{next} }} ", next = it + 1))
        .collect();
    let doubling = format!("{{ planets {{ ...F0 }} }} {doubling} fragment F10 on Planet {{ name }}");
    assert_eq!(service.refusal(&doubling).await.0, "GRAPHQL_PARSE_FAILED");
}

#[tokio::test]
async fn introspection_is_bounded_too() {
    let service = Exoplanets::start().await;
    service.ask("{ __type(name: \"Planet\") { fields { type { fields { name } } } } }").await;
    let third = "{ __type(name: \"Planet\") { fields { type { fields { type { fields { name } } } } } } }";
    assert_eq!(service.refusal(third).await.0, "QUERY_TOO_COMPLEX");
    let roots = |count: usize| -> String {
        let roots: String = (0..count).map(|it| format!("r{it}: __schema {{ types {{ name }} }} ")).collect();
        format!("{{ {roots} }}")
    };
    service.ask(&roots(4)).await;
    assert_eq!(service.refusal(&roots(5)).await.0, "QUERY_TOO_COMPLEX");
}

#[tokio::test]
async fn unknown_paths_and_wrong_methods_say_what_there_is() {
    let service = Exoplanets::start().await;
    let (status, problem) = get(&service.server.url("/v1/planets")).await;
    assert_eq!(status, 404);
    assert!(problem["detail"].as_str().unwrap().contains("/graphql"), "{problem}");

    let read = client().get(service.server.url("/graphql?query={__typename}")).send().await.unwrap();
    assert_eq!((read.status().as_u16(), &read.headers()["allow"]), (405, &"POST".parse().unwrap()));
    assert_eq!(read.headers()["content-type"], "application/problem+json");
    let posted = client().post(service.server.url("/schema.graphql")).send().await.unwrap();
    assert_eq!(posted.status().as_u16(), 405);
    assert!(posted.text().await.unwrap().contains("with GET"));
}

#[tokio::test]
async fn more_questions_at_once_than_are_executed_at_once_are_all_answered() {
    let service = Exoplanets::start().await;
    let question = || service.ask("{ planets(limit: 200) { name mass radius star { name } } }");
    let answers = tokio::join!(
        question(),
        question(),
        question(),
        question(),
        question(),
        question(),
        question(),
        question(),
        question(),
        question(),
        question(),
        question(),
    );
    assert_eq!(answers.0, answers.11);
    assert_eq!(answers.11["planets"].as_array().unwrap().len(), 200);
}
