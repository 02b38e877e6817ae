//! What the bridge costs: a call planned, a path routed, an answer unwrapped, a description read.
//!
//! Budgets: a request with text and five coercions 5 µs, routing among 500 operations 1 µs, unwrapping 500 KB
//! 1 ms, reading a 4 MB OpenAPI document 0.5 s.

use std::{collections::BTreeMap, fmt::Write as _, hint::black_box, time::Duration};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use farthing_bridge::{
    Api, Call, Request, Route, Routes,
    description::{ApiDescription, Method, Operation, Parameter, Place, Schema, Style},
    graphql, openapi,
    report::Report,
};
use serde_json::json;

const OPERATIONS: usize = 500;
const ANSWER_BYTES: usize = 500 * 1024;
const DOCUMENT_BYTES: usize = 4 * 1024 * 1024;

/// `/v1/things7/{id}`, `/v1/things7/{id}/parts` and so on.
fn paths() -> impl Iterator<Item = (Method, String)> {
    (0..OPERATIONS).map(|i| {
        let (method, tail) = match i % 5 {
            0 => (Method::Get, ""),
            1 => (Method::Get, "/{id}"),
            2 => (Method::Delete, "/{id}"),
            3 => (Method::Get, "/{id}/parts"),
            _ => (Method::Get, "/{id}/parts/{part}.json"),
        };
        (method, format!("/v1/things{}{tail}", i / 5))
    })
}

fn parameter(name: &str, place: Place, style: Style, schema: Schema) -> Parameter {
    Parameter { name: name.into(), place, style, schema, ..Parameter::default() }
}

fn rest() -> Api {
    let operations = paths().enumerate().map(|(i, (method, path))| Operation {
        method,
        path,
        id: format!("operation{i}"),
        parameters: vec![
            parameter("method", Place::Query, Style::Comma, Schema::string()),
            parameter("limit", Place::Query, Style::Comma, Schema::integer()),
            parameter("minmagnitude", Place::Query, Style::Comma, Schema::number()),
            parameter("tsunami", Place::Query, Style::Comma, Schema::boolean()),
            parameter(
                "format",
                Place::Query,
                Style::Comma,
                Schema { choices: vec!["geojson".into(), "csv".into()], ..Schema::string() },
            ),
            parameter("ids", Place::Query, Style::Exploded, Schema::array(Schema::integer())),
        ],
        ..Operation::default()
    });
    Api::new(ApiDescription { operations: operations.collect(), ..ApiDescription::default() })
        .expect("the paths differ")
}

fn params(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn routing(criterion: &mut Criterion) {
    let route = |(operation, (method, template))| Route { method, template, operation };
    let routes = Routes::new(&paths().enumerate().map(route).collect::<Vec<_>>()).expect("the paths differ");
    criterion.bench_function("route among 500", |bencher| {
        bencher.iter(|| routes.find("GET", black_box("/v1/things77/us7000/parts/12.json")));
    });
}

fn requests(criterion: &mut Criterion) {
    let api = rest();
    let given = params(&[
        ("method", "Transit & more"),
        ("limit", "5"),
        ("minmagnitude", "4.5"),
        ("tsunami", "true"),
        ("format", "geojson"),
        ("ids", "1,2,3"),
    ]);
    let call =
        Call { method: "GET", path: "/v1/things77/us7000", params: &given, content_type: None, body: &[] };
    api.plan(&call).expect("the call fits");
    criterion.bench_function("request with text and five coercions", |bencher| {
        bencher.iter(|| api.plan(black_box(&call)));
    });

    let api = planets();
    let given = params(&[
        ("method", "Transit"),
        ("limit", "5"),
        ("massMin", "0.5"),
        ("named", "true"),
        ("order", "MASS"),
        ("years", "2019,2020"),
    ]);
    let call = Call { method: "GET", path: "/planets", params: &given, content_type: None, body: &[] };
    api.plan(&call).expect("the call fits");
    criterion.bench_function("GraphQL request with text and five coercions", |bencher| {
        bencher.iter(|| api.plan(black_box(&call)));
    });
}

fn planets() -> Api {
    let sdl = "enum Order { MASS NAME }
        type Query {
            planets(method: String, limit: Int, massMin: Float, named: Boolean, order: Order, years: [Int!]): [Planet!]!
        }
        type Planet { name: String! hostStar: String mass: Float radius: Float orbitalPeriod: Float }";
    let schema = graphql::sdl::read(sdl.as_bytes()).expect("the schema is valid").schema;
    Api::new(graphql::describe(schema, "planets", &mut Report::default())).expect("the schema is valid")
}

fn unwrapping(criterion: &mut Criterion) {
    let api = planets();
    let call = Call { method: "GET", path: "/planets", params: &params(&[]), content_type: None, body: &[] };
    let Ok(Request::Graphql(request)) = api.plan(&call).map(|planned| planned.request) else {
        panic!("planets is a GraphQL field");
    };
    let mut answer = String::from("{\"data\":{\"planets\":[{}");
    for i in 0.. {
        if answer.len() >= ANSWER_BYTES {
            break;
        }
        write!(
            answer,
            ",{{\"name\":\"Kepler-{i} b\",\"hostStar\":\"Kepler-{i}\",\"mass\":{i}.25,\"radius\":null}}"
        )
        .expect("writing to memory succeeds");
    }
    answer.push_str("]}}");
    let mut group = criterion.benchmark_group("answers");
    group.throughput(Throughput::Bytes(answer.len() as u64));
    group.bench_function("unwrap 500 KB", |bencher| {
        bencher.iter(|| {
            graphql::answer(&request.unwrap, 200, "application/json", black_box(answer.as_bytes())).body.len()
        });
    });
}

fn reading(criterion: &mut Criterion) {
    let document = document();
    let mut group = criterion.benchmark_group("descriptions");
    group.throughput(Throughput::Bytes(document.len() as u64));
    group.bench_function("read 4 MB of OpenAPI", |bencher| {
        bencher.iter(|| openapi::read(black_box(document.as_bytes())).map(|reading| reading.description));
    });
}

fn document() -> String {
    described(1_500)
}

/// Operations with parameters, bodies and answers, and as many schemas, padded with descriptions.
fn described(operations: usize) -> String {
    let (mut paths, mut schemas) = (serde_json::Map::new(), serde_json::Map::new());
    let prose = "What it is, what it is for, and when to use something else. ";
    for i in 0..operations {
        let parameter =
            |name: &str, kind: &str| json!({"name": name, "in": "query", "schema": {"type": kind}});
        let reference = json!({"$ref": format!("#/components/schemas/Thing{i}")});
        let properties: serde_json::Map<_, _> = (0..8)
            .map(|p| (format!("property{p}"), json!({"type": "string", "description": prose})))
            .collect();
        schemas.insert(
            format!("Thing{i}"),
            json!({"type": "object", "required": ["property0"], "properties": properties}),
        );
        let operation = json!({
            "operationId": format!("operation{i}"),
            "summary": prose,
            "description": prose.repeat(10),
            "parameters": [
                {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}},
                parameter("limit", "integer"), parameter("after", "string"), parameter("all", "boolean"),
            ],
            "requestBody": {"content": {"application/json": {"schema": reference}}},
            "responses": {"200": {"description": "Done", "content": {"application/json": {"schema": reference}}}},
        });
        paths.insert(format!("/things{i}/{{id}}"), json!({"post": operation}));
    }
    let info =
        |padding: usize| json!({"title": "Things", "version": "1", "description": "x".repeat(padding)});
    let mut whole =
        json!({"openapi": "3.1.0", "info": info(0), "paths": paths, "components": {"schemas": schemas}});
    let bytes = whole.to_string().len();
    whole["info"] = info(DOCUMENT_BYTES.saturating_sub(bytes));
    whole.to_string()
}

/// Short, because the whole must end within a minute; the medians are steady.
fn short() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .without_plots()
}

criterion_group! {
    name = plan;
    config = short();
    targets = routing, requests, unwrapping, reading
}
criterion_main!(plan);
