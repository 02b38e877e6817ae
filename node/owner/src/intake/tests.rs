//! The intake against real servers on this machine.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use axum::{
    Router,
    extract::Request,
    http::header,
    response::{Html, IntoResponse, Redirect},
    routing::{any, get, post},
};
use serde_json::{Value, json};

use super::*;

const SDL: &str = "type Query { planets(limit: Int = 5): [Planet!]! } type Planet { name: String! }";

fn openapi() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Things", "version": "1" },
        "paths": { "/things": { "get": { "responses": { "200": { "description": "All." } } } } },
    })
}

async fn serve(router: Router) -> Url {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    Url::parse(&url).unwrap()
}

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn options() -> IntakeOptions {
    IntakeOptions::default()
}

async fn fetch(url: Url) -> Result<Intake, IntakeError> {
    read(Source::OpenApiUrl(url), options()).await
}

#[test]
fn the_upstream_is_what_the_document_names_seen_from_where_it_came_from() {
    let origin = url("http://h:8080/api/openapi.json");
    for (servers, from_url, from_file) in [
        (&[][..], &["http://h:8080/"][..], &[][..]),
        (&["/"], &["http://h:8080/"], &[]),
        (&["/v1"], &["http://h:8080/v1"], &[]),
        (&["v1/"], &["http://h:8080/api/v1/"], &[]),
        (&["https://x/a"], &["https://x/a"], &["https://x/a"]),
        (
            &["https://x", "http://h:8080/b"],
            &["http://h:8080/b", "https://x/"],
            &["https://x/", "http://h:8080/b"],
        ),
        (&["ws://x", "https://u:p@x", "http://169.254.169.254"], &["http://h:8080/"], &[]),
        (&["https://x", "https://x/"], &["https://x/"], &["https://x/"]),
    ] {
        let servers: Vec<_> = servers.iter().map(|server| (*server).to_owned()).collect();
        let texts = |urls: Vec<Url>| urls.into_iter().map(String::from).collect::<Vec<_>>();
        assert_eq!(texts(upstreams(&servers, Some(&origin))), from_url, "{servers:?}");
        assert_eq!(texts(upstreams(&servers, None)), from_file, "{servers:?}");
    }
}

#[tokio::test]
async fn what_a_search_finds_is_sold_from_the_server_that_was_searched() {
    for (servers, path, named) in [
        (&["https://api.example/"][..], "", &["", "https://api.example/"][..]),
        (&["https://api.example/v2"], "v2", &["v2", "", "https://api.example/v2"]),
        (&["/v1"], "v1", &["v1"]),
        (&["/v1", "https://api.example/v2"], "v1", &["v1", "https://api.example/v2"]),
        (&[], "", &[""]),
    ] {
        let mut document = openapi();
        document["servers"] = servers.iter().map(|server| json!({ "url": server })).collect();
        let page = get(move || async move { axum::Json(document) });
        let host = serve(Router::new().route("/openapi.json", page)).await;
        let absolute = |address: &&str| host.join(address).unwrap();
        let found = read(Source::ScanUrl(host.clone()), options()).await.unwrap();
        assert_eq!(found.upstream(), Some(&absolute(&path)), "{servers:?}");
        assert_eq!(found.upstreams, named.iter().map(absolute).collect::<Vec<_>>(), "{servers:?}");
        let is_told = found.reading.report.warnings.list.iter().any(|one| one.what.contains("api.example"));
        assert_eq!(is_told, servers.first().is_some_and(|first| first.starts_with("https")), "{servers:?}");
        // A document that is named itself may lie anywhere.
        let address = host.join("openapi.json").unwrap();
        for source in [Source::OpenApiUrl(address.clone()), Source::ScanUrl(address)] {
            let kept = read(source, options()).await.unwrap();
            let first = servers.first().map_or_else(|| host.clone(), &absolute);
            assert_eq!(kept.upstream().map(Url::origin), Some(first.origin()), "{servers:?}");
        }
    }
}

#[tokio::test]
async fn addresses_that_nobody_may_ask_are_refused_before_anything_is_sent() {
    for address in [
        "http://169.254.169.254/latest/meta-data",
        "http://[fe80::1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://0.0.0.0:1/",
        "http://user:password@127.0.0.1/",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "http://127.0.0.1:3002/openapi.json",
    ] {
        let options = IntakeOptions { own_ports: OwnPorts::new([3002]), ..options() };
        for source in [
            Source::OpenApiUrl(url(address)),
            Source::GraphqlUrl(url(address)),
            Source::ScanUrl(url(address)),
        ] {
            let error = read(source, options.clone()).await.unwrap_err();
            assert!(matches!(error, IntakeError::Address(_)), "{address}: {error}");
            assert!(!error.to_string().contains("password@"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_document_has_its_memory_from_that_of_all_bodies_and_gives_it_back() {
    let document = openapi().to_string();
    let bytes = document.len();
    let host = serve(Router::new().route("/openapi.json", get(|| async move { document }))).await;
    let budget = ByteBudget::new(2 * bytes);
    let asked = || IntakeOptions { budget: budget.clone(), ..options() };
    let sources = [
        Source::OpenApiUrl(host.join("openapi.json").unwrap()),
        Source::ScanUrl(host.join("openapi.json").unwrap()),
        Source::ScanUrl(host),
    ];
    for source in sources {
        let others = budget.take(bytes + 1).unwrap();
        let error = read(source.clone(), asked()).await.unwrap_err().to_string();
        assert!(error.contains("limits.bodies_bytes_max"), "{error}");
        assert_eq!(budget.held(), bytes + 1, "what is given up holds nothing");
        drop(others);
        read(source, asked()).await.unwrap();
        assert_eq!(budget.held(), 0);
    }
}

#[tokio::test]
async fn a_redirect_is_followed_on_the_same_host_three_times_at_most() {
    let hop = |to: &'static str| get(move || async move { Redirect::temporary(to) });
    let router = Router::new()
        .route("/4", hop("/3"))
        .route("/3", hop("/2"))
        .route("/2", hop("/1"))
        .route("/1", hop("/openapi.json"))
        .route("/openapi.json", get(|| async { axum::Json(openapi()) }));
    let host = serve(router).await;
    assert!(fetch(host.join("3").unwrap()).await.is_ok());
    let error = fetch(host.join("4").unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("redirects more than 3 times"), "{error}");
}

#[tokio::test]
async fn a_redirect_elsewhere_is_not_followed_and_the_owners_headers_stay_where_they_belong() {
    static ELSEWHERE: AtomicU64 = AtomicU64::new(0);
    let elsewhere = serve(Router::new().fallback(any(|| async {
        ELSEWHERE.fetch_add(1, Ordering::SeqCst);
        axum::Json(openapi())
    })))
    .await;
    let target = elsewhere.to_string();
    let host = serve(Router::new().fallback(any(move || {
        let target = target.clone();
        async move { Redirect::temporary(&target) }
    })))
    .await;
    let options =
        IntakeOptions { headers: vec![("x-api-key".into(), SecretText::new("very-secret"))], ..options() };
    for source in [Source::OpenApiUrl(host.clone()), Source::ScanUrl(host.clone()), Source::GraphqlUrl(host)]
    {
        let error = read(source, options.clone()).await.unwrap_err();
        assert!(!format!("{error} {error:?} {options:?}").contains("very-secret"));
    }
    assert_eq!(ELSEWHERE.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn the_owners_headers_open_a_closed_server() {
    let open = |request: Request| async move {
        let key = request.headers().get("x-api-key").is_some_and(|key| key == "very-secret");
        if key {
            axum::Json(openapi()).into_response()
        } else {
            http::StatusCode::UNAUTHORIZED.into_response()
        }
    };
    let host = serve(Router::new().route("/openapi.json", get(open))).await;
    let error = read(Source::OpenApiUrl(host.join("openapi.json").unwrap()), options()).await.unwrap_err();
    assert!(matches!(error, IntakeError::Status { status: 401, .. }), "{error}");
    assert!(error.next_step().unwrap().contains("API key"));
    let error = read(Source::ScanUrl(host.clone()), options()).await.unwrap_err();
    assert!(error.next_step().unwrap().contains("requires authentication"), "{error}");
    let headers = vec![("X-Api-Key".into(), SecretText::new("very-secret"))];
    let intake = read(Source::ScanUrl(host), IntakeOptions { headers, ..options() }).await.unwrap();
    assert_eq!(intake.reading.description.title, "Things");
    let headers = vec![("Host".into(), SecretText::new("very-secret"))];
    let refused =
        read(Source::ScanUrl(url("http://127.0.0.1:1/")), IntakeOptions { headers, ..options() }).await;
    assert!(!refused.unwrap_err().to_string().contains("very-secret"));
}

#[tokio::test]
async fn a_page_is_read_up_to_its_limit() {
    const MIB: usize = 1024 * 1024;
    for (bytes, fits) in [(MIB - 1, true), (MIB, true), (MIB + 1, false)] {
        let page = move || async move { Html("<html>".to_owned() + &" ".repeat(bytes - 6)) };
        let host = serve(Router::new().route("/", get(page))).await;
        let scan = scan(&host, &options()).await.unwrap();
        let came = scan.tried[0].came.to_string();
        assert_eq!(came.contains("larger than 1024 KiB"), !fits, "{bytes}: {came}");
    }
}

#[tokio::test]
async fn a_slow_server_costs_no_more_than_the_time_that_was_given() {
    let slow = any(|| async { std::future::pending::<()>().await });
    let host = serve(Router::new().fallback(slow)).await;
    let milliseconds = Duration::from_millis;
    let options = IntakeOptions { each: milliseconds(100), total: milliseconds(300), ..options() };
    let started = Instant::now();
    let scan = scan(&host, &options).await.unwrap();
    // Ninety places at 100 ms each would take more than two seconds, four at a time.
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    assert_eq!(scan.tried[0].came, ScanOutcome::Missed("no answer in time".into()));
    let last = &scan.tried.last().unwrap().came;
    assert_eq!(*last, ScanOutcome::Missed("not asked, because the time was over".into()));
    assert!(matches!(scan.into_best(), Err(IntakeError::NothingFound { .. })));
}

#[tokio::test]
async fn a_compressed_answer_is_refused_rather_than_unfolded() {
    let zipped = get(|| async { ([(header::CONTENT_ENCODING, "gzip")], vec![0_u8; 64]) });
    let host = serve(Router::new().route("/openapi.json", zipped)).await;
    let error = fetch(host.join("openapi.json").unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("compressed"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_said_so_at_once() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let nobody = url(&format!("http://{free}/"));
    for source in
        [Source::OpenApiUrl(nobody.clone()), Source::GraphqlUrl(nobody.clone()), Source::ScanUrl(nobody)]
    {
        let error = read(source, options()).await.unwrap_err();
        assert!(matches!(error, IntakeError::Unreachable { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_graphql_server_with_introspection_switched_off_is_told_from_no_graphql_server() {
    let refuse = post(|| async {
        axum::Json(json!({ "errors": [{ "message": "introspection is not allowed" }], "data": null }))
    });
    let host = serve(Router::new().route("/api/graphql", refuse)).await;
    for source in [Source::GraphqlUrl(host.clone()), Source::ScanUrl(host)] {
        let error = read(source, options()).await.unwrap_err();
        assert!(matches!(&error, IntakeError::Silent { url } if url.contains("/api/graphql")), "{error}");
        assert!(error.next_step().unwrap().contains("give the schema as a file"));
    }
    let rest =
        serve(Router::new().fallback(any(|| async { axum::Json(json!({ "data": { "a": 1 } })) }))).await;
    let error = read(Source::GraphqlUrl(rest), options()).await.unwrap_err();
    assert!(matches!(error, IntakeError::NothingFound { .. }), "{error}");
}

#[tokio::test]
async fn a_federated_service_hands_out_its_schema_where_introspection_is_off() {
    let federated = post(|body: String| async move {
        let sdl = body.contains("_service").then(|| json!({ "data": { "_service": { "sdl": SDL } } }));
        axum::Json(sdl.unwrap_or_else(|| json!({ "errors": [{ "message": "switched off" }] })))
    });
    let host = serve(Router::new().route("/graphql", federated)).await;
    let intake = read(Source::GraphqlUrl(host.clone()), options()).await.unwrap();
    assert_eq!(intake.kind(), Kind::Graphql);
    assert_eq!(intake.upstream(), Some(&host.join("graphql").unwrap()));
    assert_eq!(intake.reading.description.operations[0].path, "/planets");
}

#[tokio::test]
async fn a_schema_that_lies_as_text_gets_the_endpoint_beside_it() {
    let refuse = post(|| async { axum::Json(json!({ "errors": [{ "message": "switched off" }] })) });
    let router = Router::new().route("/schema.graphql", get(|| async { SDL })).route("/query", refuse);
    let host = serve(router).await;
    let endpoint = host.join("query").unwrap();
    for source in [Source::GraphqlUrl(host.join("schema.graphql").unwrap()), Source::ScanUrl(host)] {
        let intake = read(source, options()).await.unwrap();
        assert_eq!(intake.upstream(), Some(&endpoint));
    }
}

#[tokio::test]
async fn the_best_candidate_is_what_the_server_declares_and_the_same_document_counts_once() {
    let document = |path: &str| {
        let mut document = openapi();
        document["info"]["title"] = path.into();
        document
    };
    let old = document("old");
    let mut declared = document("declared");
    declared["paths"] = json!({ "/one": { "get": { "responses": {} } } });
    let mut larger = old.clone();
    larger["info"]["title"] = "larger".into();
    larger["paths"]["/more"] = larger["paths"]["/things"].clone();
    let front = ([(header::LINK, "</spec/here>; rel=\"service-desc\"")], "hello");
    let json = |value: Value| get(move || async move { axum::Json(value) });
    let router = Router::new()
        .route("/", get(move || async move { front }))
        .route("/spec/here", json(declared))
        .route("/openapi.json", json(old.clone()))
        .route("/swagger.json", json(old))
        .route("/v3/api-docs", json(larger));
    let scan = scan(&serve(router).await, &options()).await.unwrap();
    let titles: Vec<_> =
        scan.candidates.iter().map(|one| one.intake.reading.description.title.as_str()).collect();
    assert_eq!(titles, ["declared", "larger", "old"]);
    assert_eq!(scan.candidates[0].found, Found::Declared);
}

#[tokio::test]
async fn what_cannot_be_read_is_named_with_file_line_and_column() {
    let source = Source::Document { bytes: "type Query { a: [String }".into(), name: "api.graphql".into() };
    let error = read(source, options()).await.unwrap_err().to_string();
    assert!(error.contains("\n  api.graphql:1:"), "{error}");
    let host =
        serve(Router::new().route("/openapi.json", get(|| async { "{\"openapi\": \"3.1.0\",\n oops" })))
            .await;
    let address = host.join("openapi.json").unwrap();
    for source in [Source::OpenApiUrl(address.clone()), Source::ScanUrl(address.clone())] {
        let error = read(source, options()).await.unwrap_err().to_string();
        assert!(error.contains(&format!("\n  {address}:2:")), "{error}");
    }
}
