//! `farthing bridge inspect URL`: running servers, searched for their descriptions.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use axum::{
    Router,
    body::{Body, Bytes},
    http::{StatusCode, header},
    response::{Html, IntoResponse, Redirect},
    routing::{MethodRouter, any, get, post},
};
use serde_json::{Value, json};

use crate::support::{PLANETS, inspect, introspection, serve, things};

/// `GET` with this JSON.
fn document(value: Value) -> MethodRouter {
    get(move || async move { axum::Json(value) })
}

fn page(text: &'static str) -> MethodRouter {
    get(move || async move { Html(text) })
}

/// The description that is found at `url`, and where.
async fn found(url: &str) -> Result<(String, Value)> {
    let report = inspect(&[url, "--json"]).await?.ok()?.json()?;
    let origin = report["origin"].as_str().unwrap_or_default();
    Ok((origin.strip_prefix(url).unwrap_or(origin).to_owned(), report))
}

#[tokio::test]
async fn every_framework_is_found_where_it_keeps_its_description() -> Result<()> {
    let not_found = || Router::new();
    let redoc = r#"<html><redoc spec-url="../hidden/api.yaml"></redoc></html>"#;
    let swagger = r#"<html><script src="./swagger-initializer.js"></script></html>"#;
    let initializer = r#"window.ui = SwaggerUIBundle({ "configUrl" : "/hidden/swagger-config" })"#;
    let script = move || async move { ([(header::CONTENT_TYPE, "text/javascript")], initializer) };
    let nest = format!("let options = {{ \"swaggerDoc\": {} }};", things());
    let nest = move || async move { ([(header::CONTENT_TYPE, "application/javascript")], nest) };
    let linkset = json!({ "linkset": [{ "anchor": "/", "service-desc": [{ "href": "/hidden/api.json" }] }] });
    let link =
        || async { ([(header::LINK, "</hidden/api.json>; rel=\"service-desc\"")], StatusCode::NOT_FOUND) };
    for (framework, router, place) in [
        ("FastAPI", not_found().route("/openapi.json", document(things())), "/openapi.json"),
        ("Spring", not_found().route("/v3/api-docs", document(things())), "/v3/api-docs"),
        (
            "ASP.NET",
            not_found().route("/swagger/v1/swagger.json", document(things())),
            "/swagger/v1/swagger.json",
        ),
        (
            "Swagger UI",
            not_found()
                .route("/swagger-ui.html", get(|| async { Redirect::to("/swagger-ui/index.html") }))
                .route("/swagger-ui/index.html", page(swagger))
                .route("/swagger-ui/swagger-initializer.js", get(script))
                .route("/hidden/swagger-config", document(json!({ "url": "/hidden/api.json" })))
                .route("/hidden/api.json", document(things())),
            "/hidden/api.json",
        ),
        (
            "NestJS",
            not_found()
                .route("/api", page(r#"<script src="./api/swagger-ui-init.js"></script>"#))
                .route("/api/swagger-ui-init.js", get(nest)),
            "/api/swagger-ui-init.js",
        ),
        (
            "Redoc",
            not_found().route("/redoc", page(redoc)).route("/hidden/api.yaml", document(things())),
            "/hidden/api.yaml",
        ),
        (
            "RFC 9727",
            not_found()
                .route("/.well-known/api-catalog", document(linkset))
                .route("/hidden/api.json", document(things())),
            "/hidden/api.json",
        ),
        (
            "RFC 8631",
            not_found().route("/", get(link)).route("/hidden/api.json", document(things())),
            "/hidden/api.json",
        ),
    ] {
        let (origin, report) = found(&serve(router).await?).await?;
        assert_eq!((origin.as_str(), &report["title"]), (place, &json!("Things")), "{framework}");
        assert_eq!(report["candidates"].as_array().map(Vec::len), Some(1), "{framework}");
    }
    Ok(())
}

#[tokio::test]
async fn a_graphql_server_tells_its_schema() -> Result<()> {
    for (path, arguments) in
        [("/graphql", &["--json"][..]), ("/v1/graphql", &["--json"]), ("/gql", &["--json", "--graphql"])]
    {
        let answer = |body: String| async move {
            if body.contains("__schema") {
                axum::Json(introspection()).into_response()
            } else {
                StatusCode::BAD_REQUEST.into_response()
            }
        };
        let url = serve(Router::new().route(path, post(answer))).await?;
        let report = inspect(&[&[url.as_str()], arguments].concat()).await?.ok()?.json()?;
        let endpoint = format!("{url}{path}");
        assert_eq!((&report["kind"], &report["origin"]), (&json!("graphql"), &json!(endpoint)));
        assert_eq!(report["upstreams"], json!([endpoint]));
        assert_eq!(report["operations"][0]["path"], "/planets");
        let sent = inspect(&[&url, "--operation", "GET /planets", "-p", "limit=3"]).await?.ok()?;
        ensure!(sent.out.starts_with(&format!("POST {endpoint}\n")), "{}", sent.out);
    }
    Ok(())
}

#[tokio::test]
async fn everything_found_is_shown_and_the_best_is_taken() -> Result<()> {
    let mut small = things();
    small["info"]["title"] = "Small".into();
    small["paths"] = json!({ "/one": { "get": { "responses": { "200": { "description": "It." } } } } });
    let router = Router::new()
        .route("/openapi.json", document(small))
        .route("/v3/api-docs", document(things()))
        .route("/schema.graphql", get(|| async { PLANETS }))
        .route("/graphql", post(|| async { axum::Json(json!({ "errors": [{ "message": "off" }] })) }));
    let url = serve(router).await?;
    let ran = inspect(&[&url]).await?.ok()?;
    ensure!(ran.out.contains("Things 1.2") && ran.err.contains("Found 3 descriptions"), "{ran:?}");
    ensure!(ran.err.contains("/openapi.json") && ran.err.contains("/schema.graphql"), "{}", ran.err);
    let (_, report) = found(&url).await?;
    let titles: Vec<_> =
        report["candidates"].as_array().into_iter().flatten().map(|one| one["operations"].clone()).collect();
    assert_eq!(titles, [json!(4), json!(1), json!(3)]);
    Ok(())
}

#[tokio::test]
async fn an_address_that_is_a_document_is_not_searched_further() -> Result<()> {
    let hits = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&hits);
    let router = Router::new().route("/some/where", document(things())).fallback(any(move || async move {
        count.fetch_add(1, Ordering::SeqCst);
        StatusCode::NOT_FOUND
    }));
    let url = format!("{}/some/where", serve(router).await?);
    let (_, report) = found(&url).await?;
    assert_eq!(report["title"], "Things");
    assert_eq!(hits.load(Ordering::SeqCst), 0);
    Ok(())
}

#[tokio::test]
async fn a_server_that_answers_everything_has_no_description_and_the_places_are_listed() -> Result<()> {
    for answer in
        [any(|| async { Html("<html>Welcome</html>") }), any(|| async { axum::Json(json!({ "ok": true })) })]
    {
        let url = serve(Router::new().fallback(answer)).await?;
        inspect(&[&url]).await?.fails(6, &["no API description", "/openapi.json", "/graphql"])?;
    }
    let url = serve(Router::new()).await?;
    inspect(&[&url]).await?.fails(6, &["status 404: ", "/v3/api-docs", "service file"])?;
    Ok(())
}

#[tokio::test]
async fn a_slow_server_costs_the_time_that_was_given_and_no_more() -> Result<()> {
    let slow = any(|| async { std::future::pending::<()>().await });
    let url = serve(Router::new().fallback(slow)).await?;
    let started = Instant::now();
    inspect(&[&url, "--timeout", "0.5"]).await?.fails(6, &["no answer in time", "the time was over"])?;
    ensure!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    Ok(())
}

#[tokio::test]
async fn a_redirect_to_another_host_is_refused_and_nothing_arrives_there() -> Result<()> {
    let hits = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&hits);
    let other = serve(Router::new().fallback(any(move || async move {
        count.fetch_add(1, Ordering::SeqCst);
        axum::Json(things())
    })))
    .await?;
    let away = Redirect::temporary(&format!("{other}/openapi.json"));
    let named: &'static str =
        Box::leak(format!("<redoc spec-url=\"{other}/openapi.json\">").into_boxed_str());
    let router =
        Router::new().route("/openapi.json", get(move || async move { away })).route("/redoc", page(named));
    let url = serve(router).await?;
    inspect(&[&url]).await?.fails(6, &["another server, and was not followed"])?;
    assert_eq!(hits.load(Ordering::SeqCst), 0);
    Ok(())
}

#[tokio::test]
async fn a_body_without_end_is_not_read_to_its_end() -> Result<()> {
    let endless = get(|| async {
        let part = Bytes::from(vec![b' '; 64 * 1024]);
        Body::from_stream(futures::stream::repeat_with(move || Ok::<_, std::io::Error>(part.clone())))
    });
    let url = serve(Router::new().route("/openapi.json", endless)).await?;
    inspect(&[&url]).await?.fails(6, &["larger than 16384 KiB"])?;
    Ok(())
}

#[tokio::test]
async fn the_owners_key_opens_a_closed_server_and_is_never_shown() -> Result<()> {
    let closed = get(|request: axum::extract::Request| async move {
        let key = request.headers().get("x-things-key").is_some_and(|key| key == "very-secret");
        if key { axum::Json(things()).into_response() } else { StatusCode::FORBIDDEN.into_response() }
    });
    let url = format!("{}/openapi.json", serve(Router::new().route("/openapi.json", closed)).await?);
    inspect(&[&url]).await?.fails(4, &["requires authentication"])?;
    let (_folder, key) = crate::support::file("key", "very-secret\n")?;
    let ran = inspect(&[&url, "-H", &format!("X-Things-Key=@{key}")]).await?.ok()?;
    ensure!(ran.out.contains("Things 1.2") && !format!("{ran:?}").contains("very-secret"), "{ran:?}");
    inspect(&[&url, "-H", "X-Things-Key=@/no/such/file"]).await?.fails(2, &["cannot be read"])?;
    Ok(())
}

#[tokio::test]
async fn addresses_that_belong_to_machines_alone_are_not_asked() -> Result<()> {
    for url in
        ["http://169.254.169.254/latest", "http://[fe80::1]/", "http://0.0.0.0/", "http://a:b@127.0.0.1/"]
    {
        inspect(&[url]).await?.fails(2, &[])?;
    }
    // Bound, so that nobody else is given the port, and not listened on.
    let socket = tokio::net::TcpSocket::new_v4()?;
    socket.bind("127.0.0.1:0".parse()?)?;
    let nobody = socket.local_addr()?;
    inspect(&[&format!("http://{nobody}/")]).await?.fails(3, &["check that the server runs"])?;
    Ok(())
}
