//! Upstreams that are ports of the node itself: when they are named, and when the node is told to listen there later.

use anyhow::{Context, Result, ensure};
use axum::{Router, routing::any};
use farthing_control::{
    endpoint,
    types::{AlertKind, Api, Charge},
};
use farthing_tests::{
    calls::{cost, expect_free, expect_served, fixed_owner, free_port},
    command::farthing,
    wait::eventually,
    world::{World, service_file},
};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::names::{Names, found};

/// A server of the owner's, until it is stopped.
async fn serve(port: u16) -> Result<JoinHandle<()>> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let router = Router::new().route("/ok", any(|| async { "served" }));
    Ok(tokio::spawn(async move {
        let _ = axum::serve(listener, router).await;
    }))
}

/// `https://localhost:1` or `/ip4/127.0.0.1/tcp/1/p2p/…` → 1
fn port_in(text: &str, before: char) -> Result<u16> {
    let mut parts = text.trim_end_matches("/panel").split(before).rev();
    parts.find_map(|part| part.parse().ok()).with_context(|| format!("no port in {text}"))
}

#[tokio::test]
async fn no_port_of_a_node_is_named_for_an_upstream_by_any_name_or_address() -> Result<()> {
    let names = Names::new().await?;
    let mut world = World::start().await?;
    let (quic, plain) = (free_port()?, free_port()?);
    let listen = format!("/ip4/127.0.0.1/tcp/0,/ip4/127.0.0.1/udp/{quic}/quic-v1");
    let environment = [
        ("FARTHING_NETWORK__LISTEN".to_owned(), listen),
        ("FARTHING_GATEWAY__PLAIN".to_owned(), format!("127.0.0.1:{plain}")),
    ];
    world.owner.restart([names.environment(), environment.to_vec()].concat()).await?;
    let console = world.owner.control().ask(endpoint::ShowConsole).await?;
    let tcp = world.owner.loopback_address().await?;
    let own = [
        ("gateway", port_in(&world.owner.status().await?.gateway_url, ':')?),
        ("gateway without TLS", plain),
        ("console", port_in(&console.url, ':')?),
        ("network, TCP", port_in(&tcp, '/')?),
        ("network, QUIC", quic),
    ];
    for (what, port) in own {
        for host in ["127.0.0.1", "127.9.8.7", "[::1]", "[::ffff:127.0.0.1]", "localhost", "shop.test"] {
            names.lead(&[("shop.test", "127.0.0.1")])?;
            let url = format!("http://{host}:{port}");
            let refused = world.publish(&service_file(&url, Charge::Success)).await.err();
            let refused = refused.with_context(|| format!("{what}: {url} is accepted"))?.to_string();
            ensure!(
                refused.contains("of this node") || refused.contains("belongs to this node"),
                "{what}, {url}: {refused}"
            );
        }
    }
    let apis = world.owner.control().ask(endpoint::Apis).await?;
    ensure!(apis.len() == 1, "nothing was published: {apis:?}");
    Ok(())
}

#[tokio::test]
async fn a_node_that_is_told_to_listen_where_its_upstream_was_serves_no_call_with_itself_and_says_so()
-> Result<()> {
    let names = Names::new().await?;
    names.lead(&[("shop.test", "127.0.0.1")])?;
    let setup = fixed_owner()?;
    let listens = setup.owner_settings[0].1.clone();
    let mut world = World::with(setup).await?;
    world.owner.restart_until_ready(names.environment()).await?;
    let port = free_port()?;
    let mut server = serve(port).await?;
    let literal = world.publish(&service_file(&format!("http://127.0.0.1:{port}"), Charge::Success)).await?;
    let named = world.publish(&service_file(&format!("http://shop.test:{port}"), Charge::Success)).await?;
    let mut served = 0;
    for (key, listen) in [
        ("FARTHING_GATEWAY__LISTEN", format!("127.0.0.1:{port}")),
        ("FARTHING_PANEL__LISTEN", format!("127.0.0.1:{port}")),
        ("FARTHING_NETWORK__LISTEN", format!("{listens},/ip4/127.0.0.1/tcp/{port}")),
    ] {
        for api in [&literal, &named] {
            expect_served(&found(&world, api).await?).with_context(|| key.to_owned())?;
            served += 1;
        }
        server.abort();
        let _ = server.await;
        let before = world.owner.log().len();
        world.owner.restart([names.environment(), vec![(key.to_owned(), listen)]].concat()).await?;
        world.owner.wait_until_ready().await?;
        for api in [&literal, &named] {
            let what = format!("{key}, {}", api.upstream);
            expect_free(&what, &found(&world, api).await?, 502, "upstream-failed")?;
            expect_told(&world, api, before).await.context(what)?;
        }
        // What leads elsewhere is served.
        expect_served(&found(&world, &world.api).await?)?;
        served += 1;
        if key == "FARTHING_NETWORK__LISTEN" {
            // And what leads here can be paused until it has a server again.
            farthing(&world.owner, &["api", "pause", &literal.id.to_string()]).await?.ends_with(0)?;
        }
        world.owner.restart_until_ready(names.environment()).await?;
        server = serve(port).await?;
    }
    expect_served(&found(&world, &named).await?)?;
    world.settle_for(cost(served + 1)).await
}

/// The owner hears of it at start, of each call, in the service's health and among the alerts. Where servers lead is looked up
/// beside everything else that a start does, so that a call may be answered before it is told.
async fn expect_told(world: &World, api: &Api, log_before: usize) -> Result<()> {
    let (mut told, mut last) = ([false; 4], None);
    eventually("it is told everywhere", async || {
        let log = world.owner.log().split_off(log_before);
        let is_start = |line: &str| line.contains("server is a port of this node");
        let of_start = log.lines().any(is_start) && log.contains(&api.id.to_string());
        let is_call = |line: &&str| line.contains("gave no answer") && line.contains(&api.upstream);
        let of_call = log.lines().find(is_call).is_some_and(|line| line.contains("a port of this node"));
        let health = world.owner.control().ask(endpoint::ShowApi.of(api.id)).await?.api.health;
        let in_health = health.as_ref().is_some_and(|health| {
            !health.upstream_good && health.upstream.contains("leads to a port of this node")
        });
        let alerts = world.owner.control().ask(endpoint::Alerts).await?;
        let among_alerts = alerts.iter().any(|alert| {
            alert.kind == AlertKind::ServerDown
                && alert.cause.contains("port of this node")
                && alert.action.contains("your own server")
        });
        told = [of_start, of_call, in_health, among_alerts];
        last = Some((health, alerts));
        Ok(told == [true; 4])
    })
    .await
    .with_context(|| {
        format!(
            "at start, of the call, in its health, among the alerts: {told:?}; {last:?}\n{}",
            world.owner.log()
        )
    })
}
