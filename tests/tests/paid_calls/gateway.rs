//! Port 3000 against everything a script can get wrong: refused in words, free, and never passed on.

use anyhow::{Result, ensure};
use farthing_control::{
    endpoint,
    types::{Charge, KindFile, OperationFile, ParameterFile, PlaceFile},
};
use farthing_tests::{
    calls::{cost, expect_free, expect_refused, expect_served, setting, with},
    world::{Answer, PRICE, Setup, World, service_file},
};
use farthing_values::{Method, Usdc};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// What is refused, the request, and the status, problem and detail that tell it.
type RefusedRequest = (&'static str, String, u16, &'static str, &'static str);

/// Requests that differ from a good one, or from one with parameters, in one thing.
fn refused_requests(good: &Value, searching: &Value) -> Vec<RefusedRequest> {
    let changed = |name: &str, value: Value| with(good.clone(), name, value).to_string();
    let search = |params: Value| with(searching.clone(), "params", params).to_string();
    let without = |name: &str| {
        let mut body = good.clone();
        body.as_object_mut().and_then(|members| members.remove(name));
        body.to_string()
    };
    // No value has a member twice: what is changed is the text.
    let twice = |member: &str, second: &str| {
        let good = with(good.clone(), "max_price", "1");
        let good = with(good, "headers", json!({ "accept": "application/json" })).to_string();
        good.replacen(member, &format!("{member},{second}"), 1)
    };
    let many: serde_json::Map<_, _> = (0..65).map(|n| (format!("p{n}"), json!("x"))).collect();
    let large = with(with(good.clone(), "method", "POST"), "body", "x".repeat(4 * 1024 * 1024 + 1));
    vec![
        ("no JSON", "{".into(), 400, "malformed", "not valid JSON"),
        ("nothing", String::new(), 400, "malformed", "not valid JSON"),
        ("an array", "[1]".into(), 400, "malformed", "an array, expected an object"),
        ("no service", without("api_id_public"), 400, "malformed", "`api_id_public`"),
        ("no path", without("path"), 400, "malformed", "`path`"),
        ("no method", without("method"), 400, "malformed", "`method`"),
        ("an id that is none", changed("api_id_public", json!("7")), 400, "malformed", "`api_id_public`"),
        ("a path of another type", changed("path", json!(7)), 400, "malformed", "`path` is a number"),
        ("a method that is none", changed("method", json!("BREW")), 400, "malformed", "`method`"),
        ("params as a list", changed("params", json!(["a"])), 400, "malformed", "`params` is an array"),
        (
            "a nested parameter",
            changed("params", json!({"a": {}})),
            400,
            "malformed",
            "`params.a` is an object",
        ),
        (
            "an unknown field",
            changed("parms", json!({})),
            400,
            "malformed",
            "unknown field `parms`; did you mean `params`?",
        ),
        ("a price as a number", changed("max_price", json!(1)), 400, "malformed", "`max_price` is a number"),
        (
            "two prices",
            twice(r#""max_price":"1""#, r#""max_price":"0.001""#),
            400,
            "malformed",
            "send `max_price` once",
        ),
        (
            "a header twice",
            twice(r#""accept":"application/json""#, r#""Accept":"text/html""#),
            400,
            "malformed",
            "send `accept` once",
        ),
        (
            "a parameter twice",
            search(json!({"min": "1"})).replacen(r#""min":"1""#, r#""min":"1","min":"2""#, 1),
            400,
            "malformed",
            "send `min` once",
        ),
        ("a negative price", changed("max_price", json!("-1")), 400, "malformed", "`max_price`"),
        ("an empty call id", changed("call_id", json!("")), 400, "malformed", "`call_id`"),
        ("a long call id", changed("call_id", json!("x".repeat(129))), 400, "malformed", "`call_id`"),
        ("a body for GET", changed("body", json!({})), 400, "bad-parameter", "takes no body"),
        (
            "a header that is not passed on",
            changed("headers", json!({"Cookie": "a"})),
            400,
            "bad-parameter",
            "`cookie`",
        ),
        (
            "a header with a line break",
            changed("headers", json!({"Accept": "a\r\nx: y"})),
            400,
            "bad-parameter",
            "`accept`",
        ),
        ("an unknown parameter", search(json!({"limt": "5", "min": "1"})), 400, "bad-parameter", "`limit`"),
        ("a missing parameter", search(json!({"limit": "5"})), 400, "bad-parameter", "`min`"),
        (
            "a parameter of another kind",
            search(json!({"limit": "many", "min": "1"})),
            400,
            "bad-parameter",
            "`limit` is `many`",
        ),
        (
            "an unknown service",
            changed("api_id_public", json!("0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b")),
            404,
            "unknown-service",
            "0b5f2a3e",
        ),
        ("an unknown path", changed("path", json!("/okk")), 404, "unknown-path", "mean /ok"),
        ("a path upwards", changed("path", json!("/../ok")), 400, "bad-parameter", "dots"),
        ("a method the path has not", changed("method", json!("DELETE")), 405, "method-not-allowed", "GET"),
        ("a body too large", large.to_string(), 413, "too-large", "4194304"),
        ("too many parameters", changed("params", Value::Object(many)), 413, "too-large", "64"),
        ("a value too long", changed("params", json!({"a": "x".repeat(8193)})), 413, "too-large", "8192"),
        (
            "a path too long",
            changed("path", json!(format!("/status/{}", "9".repeat(2048)))),
            413,
            "too-large",
            "2048",
        ),
        ("a price above the cap", changed("max_price", json!("0.001999")), 402, "price-above-cap", "0.002"),
    ]
}

#[tokio::test]
async fn a_refused_request_is_free_and_reaches_no_upstream() -> Result<()> {
    let world = World::start().await?;
    let good = world.body("GET", "/ok");
    for (what, body, status, problem, detail) in refused_requests(&good, &searchable(&world).await?) {
        let answer = world.post(body, |request| request).await?;
        expect_free(what, &answer, status, problem)?;
        let said = answer.json()["detail"].as_str().unwrap_or_default().to_owned();
        ensure!(said.contains(detail), "{what}: `{said}` does not name {detail}");
    }
    let answer = world.post(vec![b' '; 6 * 1024 * 1024], |request| request).await?;
    expect_free("a request too large", &answer, 413, "too-large")?;
    let told = answer.json()["detail"].to_string();
    ensure!(told.contains("the body of a call may have at most 4194304 bytes"), "{told}");
    let answer = world.call(&with(good.clone(), "call_id", "one")).await?;
    expect_served(&answer)?;
    let both =
        world.post(with(good, "call_id", "one").to_string(), |r| r.header("idempotency-key", "two")).await?;
    expect_free("two ids", &both, 400, "malformed")?;
    let body = world.body("GET", "/ok").to_string();
    let both =
        world.post(body.clone(), |r| r.header("idempotency-key", "one").header("idempotency-key", "two"));
    expect_free("two keys", &both.await?, 400, "malformed")?;
    let both = world.post(body, |r| r.header("authorization", "Bearer another")).await?;
    expect_refused("two secrets", &both, 401, "unauthorized")?;
    let next = both.json()["next"].as_str().unwrap_or_default().to_owned();
    ensure!(next.starts_with("Send exactly one `Authorization"), "{next}");
    assert_eq!(world.upstream.hits(), 1, "only the good call");
    world.settle_for(PRICE).await
}

#[tokio::test]
async fn a_misspelled_limit_buys_nothing_at_either_address() -> Result<()> {
    let world = World::start().await?;
    let body = world.body("GET", "/ok").to_string();
    let plain = format!("{}/services/{}/ok", world.consumer.status().await?.gateway_url, world.api.id);
    let asked = async |name: &str, value: &str| -> Result<[Answer; 2]> {
        let posted = world.post(body.clone(), |request| request.header(name, value)).await?;
        let request = world.client().get(&plain).bearer_auth(&world.secret).header(name, value);
        let response = request.send().await?;
        let (status, headers) = (response.status(), response.headers().clone());
        Ok([posted, Answer { status, headers, body: response.bytes().await? }])
    };
    for name in ["x-farthing-max-price-usdc", "X-Farthing-MaxPrice", "x-farthing-call-id"] {
        for answer in asked(name, "0.001").await? {
            expect_free(name, &answer, 400, "malformed")?;
            let said = String::from_utf8_lossy(&answer.body);
            ensure!(said.contains("`x-farthing-max-price`"), "{name}: {said}");
        }
    }
    for answer in asked("x-farthing-max-price", "0.001999").await? {
        expect_free("below the price", &answer, 402, "price-above-cap")?;
    }
    let both = with(world.body("GET", "/ok"), "max_price", "1").to_string();
    let both = world.post(both, |request| request.header("x-farthing-max-price", "0.001")).await?;
    expect_free("two limits", &both, 400, "malformed")?;
    assert_eq!(world.upstream.hits(), 0);
    for answer in asked("x-farthing-max-price", "0.002").await? {
        expect_served(&answer)?;
    }
    world.settle_for(cost(2)).await
}

#[tokio::test]
async fn without_the_current_secret_nothing_is_bought() -> Result<()> {
    let mut world = World::start().await?;
    let body = world.body("GET", "/ok").to_string();
    let url = format!("{}/internal/call", world.consumer.status().await?.gateway_url);
    let send = async |authorization: Option<String>| -> Result<Answer> {
        let mut request = world.client().post(&url).body(body.clone());
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        let response = request.send().await?;
        let (status, headers) = (response.status(), response.headers().clone());
        Ok(Answer { status, headers, body: response.bytes().await? })
    };
    let secret = world.secret.clone();
    let mut other = secret.clone();
    other.replace_range(20..21, if &secret[20..21] == "a" { "b" } else { "a" });
    for (what, authorization) in [
        ("none", None),
        ("empty", Some(String::new())),
        ("no scheme", Some(secret.clone())),
        ("another scheme", Some(format!("Basic {secret}"))),
        ("an empty secret", Some("Bearer ".to_owned())),
        ("one letter changed", Some(format!("Bearer {other}"))),
        ("one letter missing", Some(format!("Bearer {}", &secret[..secret.len() - 1]))),
        ("one letter more", Some(format!("Bearer {secret}a"))),
        ("another case", Some(format!("Bearer {}", secret.to_uppercase()))),
    ] {
        let answer = send(authorization).await?;
        expect_refused(what, &answer, 401, "unauthorized")?;
        ensure!(answer.header("www-authenticate").starts_with("Bearer"), "{what}");
        ensure!(
            !String::from_utf8_lossy(&answer.body).contains(&secret),
            "{what}: the secret is in the answer"
        );
    }
    assert_eq!(world.upstream.hits(), 0);

    expect_served(&send(Some(format!("bearer {secret}"))).await?)?;
    let fresh = world.consumer.control().ask(endpoint::RotateSecret).await?;
    expect_refused("the old secret", &send(Some(format!("Bearer {secret}"))).await?, 401, "unauthorized")?;
    expect_served(&send(Some(format!("Bearer {}", fresh.secret))).await?)?;
    world.secret = fresh.secret;
    ensure!(!world.consumer.log().contains(&world.secret), "the secret is in the log");
    world.settle_for(cost(2)).await
}

#[tokio::test]
async fn a_call_needs_no_content_type_and_its_answer_says_what_it_cost() -> Result<()> {
    let world = World::start().await?;
    let body = world.body("gEt", "/ok").to_string();
    for content_type in
        [None, Some("application/json"), Some("text/plain"), Some("application/x-www-form-urlencoded")]
    {
        let answer = world
            .post(body.clone(), |request| match content_type {
                Some(value) => request.header("content-type", value),
                None => request,
            })
            .await?;
        expect_served(&answer)?;
        assert_eq!(answer.header("content-type"), "application/json");
        assert_eq!(answer.header("x-farthing-price-usdc"), "0.002");
        assert_eq!(answer.header("x-farthing-charged"), "0.002");
        assert_eq!(answer.header("x-farthing-call-id").len(), 36);
        assert_eq!(answer.header("x-farthing-receipt").len(), 66);
        for part in ["gateway;dur=", "network;dur=", "owner;dur=", "upstream;dur="] {
            ensure!(answer.header("server-timing").contains(part), "{}", answer.header("server-timing"));
        }
    }
    let call = with(searchable(&world).await?, "params", json!({"min": 4.5, "limit": 7, "strict": true}));
    let answer = world.call(&call).await?;
    expect_served(&answer)?;
    assert_eq!(answer.json()["n"], json!(5));
    let posted = world.call(&with(world.body("POST", "/echo"), "body", json!({"a": [1, 2.5, "x"]}))).await?;
    assert_eq!(posted.json(), json!({"a": [1, 2.5, "x"]}));
    assert_eq!(world.upstream.hits(), 6);
    world.settle_for(cost(6)).await
}

#[tokio::test]
async fn the_port_describes_itself_and_refuses_strangers() -> Result<()> {
    let world = World::start().await?;
    let base = world.consumer.status().await?.gateway_url;
    let get = async |path: &str| world.client().get(format!("{base}{path}")).send().await;
    assert_eq!(get("/healthz").await?.status(), 200);
    let ready: Value = get("/readyz").await?.json().await?;
    assert_eq!(ready["ready"], true);
    expect_served(&world.get("/ok").await?)?;
    expect_free("no such path", &world.get("/nowhere").await?, 404, "unknown-path")?;
    let metrics = get("/metrics").await?;
    ensure!(metrics.headers()["content-type"].to_str()?.starts_with("application/openmetrics-text"));
    ensure!(metrics.status() == 200);
    let metrics = metrics.text().await?;
    for line in [
        "# TYPE farthing_ready gauge",
        "# TYPE farthing_ledger_commits counter",
        "# TYPE farthing_call_bought_seconds histogram",
        "farthing_ready 1",
        "farthing_call_bought_seconds_count{end=\"charged\"} 1",
        "farthing_call_bought_seconds_count{end=\"failed\"} 1",
        "# EOF",
    ] {
        ensure!(metrics.lines().any(|told| told == line), "{line}: {metrics}");
    }
    let described: Value = get("/openapi.json").await?.json().await?;
    ensure!(described["paths"]["/internal/call"]["post"].is_object(), "{described}");

    for method in [reqwest::Method::GET, reqwest::Method::HEAD, reqwest::Method::PUT, reqwest::Method::DELETE]
    {
        let request = world.client().request(method.clone(), format!("{base}/internal/call"));
        let answer = request.bearer_auth(&world.secret).send().await?;
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED, "{method}");
        let allow =
            answer.headers().get("allow").map(|value| value.to_str().map(str::to_owned)).transpose()?;
        assert_eq!(allow.as_deref(), Some("POST"), "{method}");
    }
    let nowhere = get("/nowhere").await?;
    assert_eq!(nowhere.status(), StatusCode::NOT_FOUND);

    let good = world.body("GET", "/ok").to_string();
    for (header, value, status, problem) in [
        ("host", "evil.example", 421, "unknown-host"),
        ("host", "localhost.evil.example:3000", 421, "unknown-host"),
        ("origin", "https://evil.example", 403, "origin-refused"),
        ("origin", "null", 403, "origin-refused"),
    ] {
        // A name that is not the connection's is only sent with HTTP/1.1.
        let answer =
            world.post(good.clone(), |r| r.version(reqwest::Version::HTTP_11).header(header, value)).await?;
        let expect = if status == 403 { expect_refused } else { expect_free };
        expect(value, &answer, status, problem)?;
    }

    let address = base.trim_start_matches("https://").to_owned();
    let mut plain = tokio::net::TcpStream::connect(&address).await?;
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await?;
    let mut said = String::new();
    plain.read_to_string(&mut said).await?;
    ensure!(
        said.starts_with("HTTP/1.1 400") && said.contains("https://") && said.contains("ca.pem"),
        "{said}"
    );

    assert_eq!(world.upstream.hits(), 1);
    world.settle_for(PRICE).await
}

#[tokio::test]
async fn a_spending_limit_is_held_to_the_micro() -> Result<()> {
    let limits = [setting("spending.per_day", "0.006"), setting("spending.price_max", "0.003")].concat();
    let world = World::with(Setup { consumer_settings: limits, ..Setup::default() }).await?;
    let mut dear = service_file(&world.upstream.url(), Charge::Success);
    dear.price = Usdc::from_micros(3_001).into();
    let dear = world.publish(&dear).await?;
    let answer = world.call_of(&dear, "GET", "/ok").await?;
    expect_free("above the limit per call", &answer, 402, "over-limit")?;
    ensure!(answer.json()["limit"] == "per-call", "{answer:?}");

    let calls = futures::future::join_all((0..8).map(|_| world.get("/ok"))).await;
    let calls = calls.into_iter().collect::<Result<Vec<_>>>()?;
    let (served, refused): (Vec<_>, Vec<_>) = calls.iter().partition(|answer| answer.status.is_success());
    assert_eq!((served.len(), refused.len()), (3, 5), "0.006 USDC a day buy three calls at 0.002");
    for answer in refused {
        expect_free("above the limit per day", answer, 402, "over-limit")?;
        ensure!(answer.json()["limit"] == "per-day", "{answer:?}");
    }
    assert_eq!(world.upstream.hits(), 3);
    world.settle_for(cost(3)).await
}

/// Publishes `GET /ok` with the parameters `min`, `limit` and `strict`, and answers a call without them.
async fn searchable(world: &World) -> Result<Value> {
    let parameter = |name: &str, kind: KindFile, required: bool| ParameterFile {
        name: name.to_owned(),
        place: PlaceFile::Query,
        kind,
        required,
        choices: Vec::new(),
        description: String::new(),
        example: None,
    };
    let mut file = service_file(&world.upstream.url(), Charge::Success);
    file.operations = vec![OperationFile {
        parameters: vec![
            parameter("min", KindFile::Number, true),
            parameter("limit", KindFile::Integer, false),
            parameter("strict", KindFile::Boolean, false),
        ],
        ..OperationFile::named(Method::Get, "/ok".to_owned())
    }];
    let api = world.publish(&file).await?;
    Ok(json!({ "api_id_public": api.id.to_string(), "path": "/ok", "method": "GET" }))
}
