//! What an owner's own server can do wrong, and who pays for it.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{Api, Charge, ServiceFile},
};
use farthing_tests::{
    calls::{cost, expect_free, expect_served, setting, with},
    nodes::counted,
    upstream,
    wait::eventually,
    world::{Answer, FUNDS, Setup, World, service_file},
};
use farthing_values::{Method, limits};
use futures::future::{try_join, try_join_all};
use serde_json::{Value, json};
use tokio::net::TcpSocket;

/// Copies of calls that an owner refused, in its `/metrics`.
const REFUSED: &str = r#"farthing_calls_total{side="owner",outcome="refused"}"#;

/// An owner that passes on answers of at most 4 MiB, and gives its server the usual time, which a busy machine keeps.
fn of_4_mib() -> Setup {
    let owner_settings = setting("limits.response_bytes_max", "4194304");
    Setup { owner_settings, ..Setup::default() }
}

#[tokio::test]
async fn an_operation_has_the_time_that_its_listing_says() -> Result<()> {
    let owner_settings = setting("limits.upstream_first_byte_ms", "400");
    let world = World::with(Setup { owner_settings, ..Setup::default() }).await?;
    let mut file = service_file(&world.upstream.url(), Charge::Success);
    file.timeout_secs = Some(25);
    for operation in &mut file.operations {
        let is_short = operation.method.0 == Method::Get && operation.path.starts_with("/slow/");
        operation.timeout_secs = is_short.then_some(1);
    }
    let api = world.publish(&file).await?;
    // Longer than the owner's limits allow others.
    expect_served(&world.call_of(&api, "POST", "/slow/2000").await?)?;
    let short = world.call_of(&api, "GET", "/slow/3000").await?;
    expect_free("more than the operation's own second", &short, 504, "upstream-timeout")?;
    expect_free("without a time of its own", &world.get("/slow/1000").await?, 504, "upstream-timeout")?;
    let shown = world.consumer.control().ask(endpoint::CatalogService.of(api.id)).await?;
    let told = |method: Method, path: &str| {
        let found = shown.offers.iter().find(|offer| offer.method.0 == method && offer.path == path);
        found.and_then(|offer| offer.timeout_secs)
    };
    assert_eq!(told(Method::Get, "/ok"), Some(25));
    assert_eq!(told(Method::Get, "/slow/{millis}"), Some(1));
    world.settle_for(cost(1)).await
}

#[tokio::test]
async fn a_caller_waits_as_long_as_the_listing_says_of_an_operation() -> Result<()> {
    let consumer_settings = setting("limits.call_total_ms", "1500");
    let world = World::with(Setup { consumer_settings, ..Setup::default() }).await?;
    let usual = service_file(&world.upstream.url(), Charge::Success);
    let api = world.publish(&ServiceFile { timeout_secs: Some(25), ..usual }).await?;
    // Longer than for others.
    expect_served(&world.call_of(&api, "POST", "/slow/2000").await?)?;
    world.settle_for(cost(1)).await
}

/// An owner that does so much for nothing, and then tries a call every so many milliseconds.
fn patient_for(uncharged: u32, trial_ms: &str) -> Setup {
    let owner_settings = [
        setting("limits.uncharged_per_minute", &uncharged.to_string()),
        setting("limits.uncharged_trial_ms", trial_ms),
    ];
    Setup { owner_settings: owner_settings.concat(), ..Setup::default() }
}

#[tokio::test]
async fn a_failed_upstream_costs_nothing() -> Result<()> {
    let world = World::with(of_4_mib()).await?;
    for (path, status, problem, why) in [
        ("/status/500", 502, "upstream-failed", "answered with status 500"),
        ("/status/503", 502, "upstream-failed", "answered with status 503"),
        ("/redirect", 502, "upstream-failed", "redirects (status 307)"),
        ("/html", 502, "upstream-failed", "a web page that the service does not describe"),
        ("/large/4194305", 502, "answer-too-large", "larger than its owner passes on"),
    ] {
        let answer = world.get(path).await?;
        expect_free(path, &answer, status, problem)?;
        let told = String::from_utf8_lossy(&answer.body);
        ensure!(told.contains(why), "{path}: {told}");
    }
    // A limit of its own, so that no other is exceeded.
    let usual = service_file(&world.upstream.url(), Charge::Success);
    let impatient = world.publish(&ServiceFile { timeout_secs: Some(1), ..usual }).await?;
    let answer = world.call_of(&impatient, "GET", "/slow/5000").await?;
    expect_free("it is slow", &answer, 504, "upstream-timeout")?;
    let told = String::from_utf8_lossy(&answer.body);
    ensure!(told.contains("did not answer the owner's node in time"), "{told}");
    assert_eq!(world.upstream.hits(), 6, "each was tried once");

    let (_taken, refusing) = refusing()?;
    for (what, url) in [
        ("it refuses connections", refusing),
        (
            "it promises more than it sends",
            upstream::raw(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"n\":1}").await?,
        ),
        ("it says nothing", upstream::raw(b"").await?),
        ("it speaks no HTTP", upstream::raw(b"hello, I am a database\r\n").await?),
        (
            "its length is no number",
            upstream::raw(b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n{}").await?,
        ),
        (
            "its chunks are broken",
            upstream::raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}").await?,
        ),
        (
            "it compresses",
            upstream::raw(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}")
                .await?,
        ),
    ] {
        let api = publish(&world, &url, Charge::Success).await?;
        expect_free(what, &world.call_of(&api, "GET", "/ok").await?, 502, "upstream-failed")?;
    }
    let url = upstream::raw(b"HTTP/1.1 200 OK\r\ncontent-length: 9999999999\r\n\r\n{}").await?;
    let api = publish(&world, &url, Charge::Success).await?;
    let answer = world.call_of(&api, "GET", "/ok").await?;
    expect_free("it names a length beyond reason", &answer, 502, "answer-too-large")?;
    expect_served(&world.get("/ok").await?)?;
    assert_eq!(world.settle_and_check(FUNDS).await?, cost(1), "only the answer");
    Ok(())
}

#[tokio::test]
async fn an_answer_arrives_byte_for_byte() -> Result<()> {
    let world = World::with(of_4_mib()).await?;
    for bytes in [0, 1, 3 * 1024 * 1024, 4 * 1024 * 1024] {
        let answer = world.get(&format!("/large/{bytes}")).await?;
        expect_served(&answer)?;
        ensure!(
            answer.body.len() == bytes && answer.body.iter().all(|byte| *byte == 7),
            "{bytes} bytes differ"
        );
    }
    // Every byte there is, in an answer that says how many come and one that does not.
    let every: Vec<u8> = (0..=255).collect();
    let binary =
        [b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: 256\r\n\r\n", &every[..]].concat();
    let unsized_binary =
        [b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\nconnection: close\r\n\r\n", &every[..]].concat();
    for answer in [binary, unsized_binary] {
        let api = publish(&world, &upstream::raw(answer.leak()).await?, Charge::Success).await?;
        let answer = world.call_of(&api, "GET", "/ok").await?;
        expect_served(&answer)?;
        assert_eq!(answer.header("content-type"), "image/png");
        assert_eq!(answer.body, every);
    }
    // More than the length that was named is not part of the answer, nor of the next one.
    let chatty =
        upstream::raw(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}HTTP/1.1 500 No\r\n\r\n").await?;
    let api = publish(&world, &chatty, Charge::Success).await?;
    for _ in 0..2 {
        let answer = world.call_of(&api, "GET", "/ok").await?;
        expect_served(&answer)?;
        assert_eq!(answer.body, "{}");
    }
    let no_content = upstream::raw(
        b"HTTP/1.1 204 No Content\r\nset-cookie: a=b\r\nx-internal: 10.0.0.1\r\netag: \"7\"\r\n\r\n",
    )
    .await?;
    let api = publish(&world, &no_content, Charge::Success).await?;
    let answer = world.call_of(&api, "GET", "/ok").await?;
    assert_eq!((answer.status.as_u16(), answer.body.len()), (204, 0));
    assert_eq!(answer.header("etag"), "\"7\"");
    ensure!(
        answer.header("set-cookie").is_empty() && answer.header("x-internal").is_empty(),
        "{:?}",
        answer.headers
    );

    let echoed = with(world.body("POST", "/echo"), "body", json!({ "text": "é\u{1F30D}\0\n" }));
    assert_eq!(world.call(&echoed).await?.json(), echoed["body"]);
    world.settle_for(cost(10)).await
}

#[tokio::test]
async fn a_declined_call_is_free_unless_the_listing_says_otherwise() -> Result<()> {
    let world = World::start().await?;
    let declined = |answer: &Answer, status: u16, charged: &str| -> Result<()> {
        ensure!(answer.status == status && answer.body == "said so", "{answer:?}");
        ensure!(
            answer.header("x-farthing-charged") == charged,
            "charged {}",
            answer.header("x-farthing-charged")
        );
        Ok(())
    };
    declined(&world.get("/status/404").await?, 404, "0.00")?;
    declined(&world.get("/status/429").await?, 429, "0.00")?;
    let charging = publish(&world, &world.upstream.url(), Charge::Answered).await?;
    declined(&world.call_of(&charging, "GET", "/status/404").await?, 404, "0.002")?;
    expect_free("charging", &world.call_of(&charging, "GET", "/status/500").await?, 502, "upstream-failed")?;
    assert_eq!(world.upstream.hits(), 4);
    world.settle_for(cost(1)).await
}

#[tokio::test]
async fn an_answer_that_nothing_has_changed_is_free_to_a_read_that_names_one_thing() -> Result<()> {
    let world = World::start().await?;
    let unchanged = upstream::raw(b"HTTP/1.1 304 Not Modified\r\netag: \"7\"\r\n\r\n").await?;
    let if_none_match = |body: Value, tag: &str| with(body, "headers", json!({ "If-None-Match": tag }));
    let (one, several) = (json!({ "If-None-Match": "\"7\"" }), json!({ "If-None-Match": "\"6\", \"7\"" }));
    let date = json!({ "If-Modified-Since": "Sat, 29 Oct 1994 19:43:31 GMT" });
    for charge in [Charge::Success, Charge::Answered] {
        let api = publish(&world, &unchanged, charge).await?;
        for (method, headers, charged, tag) in [
            ("GET", &one, "0.00", "\"7\""),
            // Its tag would tell what the answer is.
            ("GET", &date, "0.00", ""),
            ("GET", &several, "0.002", "\"7\""),
            ("POST", &one, "0.002", "\"7\""),
        ] {
            let body = with(world.body(method, "/ok"), "api_id_public", api.id.to_string());
            let answer = world.call(&with(body, "headers", headers.clone())).await?;
            assert_eq!((answer.status.as_u16(), answer.body.len()), (304, 0));
            assert_eq!(answer.header("x-farthing-price-usdc"), "0.002");
            assert_eq!(answer.header("x-farthing-charged"), charged, "{charge:?}, {method} with {headers}");
            assert_eq!(answer.header("etag"), tag, "{method} with {headers}");
        }
        // It has nothing that could be unchanged.
        for method in ["GET", "POST"] {
            let answer = world.call_of(&api, method, "/ok").await?;
            expect_free(&format!("{method} that names nothing"), &answer, 502, "upstream-failed")?;
            let told = String::from_utf8_lossy(&answer.body);
            ensure!(told.contains("the service says that nothing has changed"), "{told}");
        }
    }
    let any = world.call(&if_none_match(world.body("GET", "/ok"), "*")).await?;
    expect_free("whatever it is", &any, 400, "bad-parameter")?;
    assert_eq!(world.upstream.hits(), 0);
    let changed = world.call(&if_none_match(world.body("GET", "/ok"), "\"7\"")).await?;
    expect_served(&changed)?;
    world.settle_for(cost(2 * 2 + 1)).await
}

#[tokio::test]
async fn uncharged_work_is_limited_and_the_limit_says_when_to_come_back() -> Result<()> {
    let world = World::with(patient_for(5, "60000")).await?;
    for n in 0..5 {
        let answer = world.get("/status/500").await?;
        expect_free(&format!("failure {n}"), &answer, 502, "upstream-failed")?;
    }
    let answer = world.get("/status/500").await?;
    expect_free("after five failures in a minute", &answer, 429, "owner-busy")?;
    let wait: u64 = answer.header("retry-after").parse()?;
    ensure!((1..=60).contains(&wait), "retry-after {wait}");
    assert_eq!(world.upstream.hits(), 5);
    ensure!(world.get("/ok").await?.status == 200, "other operations go on");
    world.settle_for(cost(1)).await
}

#[tokio::test]
async fn after_an_outage_of_the_upstream_the_very_next_call_is_served_and_charged() -> Result<()> {
    // The owner's limit is met first, and then the consumer's own.
    let consumer_settings = setting("limits.uncharged_per_minute", "8");
    let world = World::with(Setup { consumer_settings, ..patient_for(3, "400") }).await?;
    expect_served(&world.get("/ok").await?)?;
    world.upstream.fail(true);
    for n in 0..8 {
        let answer = world.get("/ok").await?;
        expect_free(&format!("failure {n}: each is tried"), &answer, 502, "upstream-failed")?;
    }
    world.upstream.fail(false);
    for _ in 0..4 {
        expect_served(&world.get("/ok").await?)?;
    }
    world.settle_for(cost(5)).await
}

/// A call waits for a place for a third of its time, two seconds here, and longer for a trial.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_wait_for_a_trial_leave_their_places_to_the_owners_other_services() -> Result<()> {
    let room = ["gateway.connections_max", "gateway.connections_per_ip_max"].map(|name| setting(name, "400"));
    let consumer_settings = [room.concat(), setting("limits.call_total_ms", "6000")].concat();
    let world = World::with(Setup { consumer_settings, ..patient_for(1, "4500") }).await?;
    let other = publish(&world, &world.upstream.url(), Charge::Success).await?;
    expect_served(&world.call_of(&other, "GET", "/ok").await?)?;
    let places = limits::CALLS_PER_PEER_MAX;
    let (mut served, mut is_late) = (1, true);
    // On a busy machine their waits may be over before the other call is made. Then it shows nothing, and is made again.
    while is_late && served < 3 {
        eventually("a call is tried", async || Ok(world.get("/status/500").await?.status == 502)).await?;
        let before = counted(&world.owner, REFUSED).await?;
        let has_ended = AtomicBool::new(false);
        let waiting = (0..places).map(|_| async {
            let answer = world.get("/status/500").await;
            has_ended.store(true, Ordering::SeqCst);
            answer
        });
        let meanwhile = async {
            let all = before + u64::try_from(places)?;
            eventually("as many calls wait as there are places", async || {
                Ok(counted(&world.owner, REFUSED).await? >= all)
            })
            .await?;
            let answer = world.call_of(&other, "GET", "/ok").await?;
            anyhow::Ok((answer, has_ended.load(Ordering::SeqCst)))
        };
        let (waited, (answer, ended_before)) = try_join(try_join_all(waiting), meanwhile).await?;
        expect_served(&answer)?;
        (served, is_late) = (served + 1, ended_before);
        ensure!(waited.iter().all(|answer| answer.charged() == json!(false)), "{waited:?}");
    }
    ensure!(!is_late, "no call of the other service was served while the {places} waited");
    world.settle_for(cost(served)).await
}

#[tokio::test]
async fn headers_that_no_reply_has_room_for_are_a_failed_upstream_free_and_counted() -> Result<()> {
    let world = World::with(patient_for(5, "60000")).await?;
    let names = ["etag", "last-modified", "cache-control", "retry-after", "content-language"];
    for bytes in [6_300, 6_530, 8_000] {
        let headers: String = names.iter().map(|name| format!("{name}: {}\r\n", "a".repeat(bytes))).collect();
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n{headers}\r\n{{}}").into_bytes();
        let api = publish(&world, &upstream::raw(answer.leak()).await?, Charge::Success).await?;
        for method in ["GET", "POST"] {
            let (answer, what) =
                (world.call_of(&api, method, "/ok").await?, format!("{method} with five of {bytes} bytes"));
            if bytes == 6_300 {
                expect_served(&answer).context(what)?;
            } else {
                expect_free(&what, &answer, 502, "answer-too-large")?;
            }
        }
        if bytes == 8_000 {
            for n in 1..5 {
                expect_free(
                    &n.to_string(),
                    &world.call_of(&api, "GET", "/ok").await?,
                    502,
                    "answer-too-large",
                )?;
            }
            let answer = world.call_of(&api, "GET", "/ok").await?;
            expect_free("after five in a minute", &answer, 429, "owner-busy")?;
        }
    }
    world.settle_for(cost(2)).await
}

async fn publish(world: &World, url: &str, charge: Charge) -> Result<Api> {
    world.publish(&service_file(url, charge)).await
}

/// An address at which nobody listens, and the socket that keeps the port from everybody else.
fn refusing() -> Result<(TcpSocket, String)> {
    let socket = TcpSocket::new_v4()?;
    socket.bind("127.0.0.1:0".parse()?)?;
    let url = format!("http://{}", socket.local_addr()?);
    Ok((socket, url))
}
