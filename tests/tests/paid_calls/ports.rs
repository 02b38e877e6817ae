//! What a program of the same machine can do to a node's ports by opening connections and sending bodies.

use std::{fs, sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use farthing_control::endpoint;
use farthing_testnet::NodeProcess;
use farthing_tests::{
    calls::{cost, expect_served, fixed_owner, free_port, setting},
    command::farthing,
    wait::eventually,
    world::World,
};
use futures::{StreamExt, future::join_all, stream};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use reqwest::{Body, StatusCode};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::{io::AsyncReadExt, net::TcpStream, sync::watch, task::JoinSet, time::timeout};
use tokio_rustls::TlsConnector;

/// As many as one subscriber may have on the port of the network.
const SILENT: usize = 32;
/// Several times as many as it may have on the other ports. What happens in a full lobby is tested in the crate of the ports.
const FLOODING: usize = 300;
const SOON: Duration = Duration::from_secs(20);
/// A slow call takes three seconds, or finds no room.
const HELD_FOR_AT_MOST: Duration = Duration::from_secs(60);

/// `https://localhost:1/panel` → 1
fn port_of(url: &str) -> Result<u16> {
    let authority = url.split("://").nth(1).and_then(|rest| rest.split('/').next());
    Ok(authority.and_then(|authority| authority.rsplit(':').next()).context("no port")?.parse()?)
}

async fn silent(port: u16, connections: usize) -> Result<Vec<TcpStream>> {
    let connecting = (0..connections).map(|_| TcpStream::connect(("127.0.0.1", port)));
    Ok(join_all(connecting).await.into_iter().collect::<Result<_, _>>()?)
}

/// Connections that say nothing, and that are opened anew as they are closed, until this is dropped.
async fn flood(port: u16) -> Result<JoinSet<()>> {
    let mut open = JoinSet::new();
    for mut stream in silent(port, FLOODING).await? {
        open.spawn(async move {
            loop {
                let _ = stream.read(&mut [0]).await;
                match TcpStream::connect(("127.0.0.1", port)).await {
                    Ok(next) => stream = next,
                    Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            }
        });
    }
    Ok(open)
}

async fn console(node: &NodeProcess) -> Result<u16> {
    port_of(&node.control().ask(endpoint::ShowConsole).await?.url)
}

#[tokio::test]
async fn silent_connections_of_a_local_program_shut_nobody_out_of_any_port() -> Result<()> {
    farthing_os::process::allow_open_files();
    let (mut setup, plain) = (fixed_owner()?, free_port()?);
    setup.consumer_settings.extend(setting("gateway.plain", &format!("127.0.0.1:{plain}")));
    let mut world = World::with(setup).await?;
    let address = world.owner.loopback_address().await?;
    let network = address.split('/').nth(4).context("no port")?.parse()?;
    let on_network = silent(network, SILENT).await?;
    // Its connection to the owner is a new one, beside the silent ones.
    world.consumer.restart(Vec::new()).await?;
    let panel = console(&world.consumer).await?;
    let on_panel = flood(panel).await?;
    for _ in 0..8 {
        // A new connection each time.
        let client = world.consumer.https_client()?;
        let asked = client.get(format!("https://localhost:{panel}/panel/login")).send();
        let status = timeout(SOON, asked).await.context("the console does not answer")??.status();
        ensure!(status.is_success() || status.is_redirection(), "{status}");
    }
    let gateway = port_of(&world.consumer.status().await?.gateway_url)?;
    let on_gateway = flood(gateway).await?;
    let mut last = None;
    let served = eventually("a call is served", async || {
        let answer = timeout(SOON, world.get("/ok")).await.context("the gateway does not answer")??;
        let is_served = answer.status.is_success();
        last = Some(answer);
        Ok(is_served)
    });
    served.await.with_context(|| format!("{last:?}"))?;
    let on_plain = flood(plain).await?;
    for url in [world.consumer.status().await?.gateway_url, format!("http://localhost:{plain}")] {
        for call in 0..8 {
            let told = || format!("call {call} of {url}");
            let asked = program(&world.consumer)?.post(format!("{url}/internal/call"));
            let asked = asked.bearer_auth(&world.secret).body(world.body("GET", "/ok").to_string()).send();
            let answer = timeout(SOON, asked).await.with_context(|| told() + " is not answered")?;
            let status = answer.with_context(told)?.status();
            ensure!(status.is_success(), "{}: {status}", told());
        }
    }
    drop((on_network, on_panel, on_gateway, on_plain));
    world.settle_for(cost(17)).await
}

/// A client of its own connections, one for each request under way.
fn program(node: &NodeProcess) -> Result<reqwest::Client> {
    farthing_serve::tls::install_provider();
    let authority = reqwest::Certificate::from_pem(&fs::read(node.ca_file())?)?;
    Ok(reqwest::Client::builder().tls_certs_only([authority]).http1_only().no_proxy().build()?)
}

/// Posts calls of `body` with `secret` until it is told to stop, and counts what is served and what finds no room.
async fn hold(
    client: reqwest::Client,
    url: String,
    secret: String,
    body: String,
    stop: watch::Receiver<bool>,
    counts: watch::Sender<(usize, usize)>,
) -> Result<()> {
    while !*stop.borrow() {
        let sent = client.post(&url).bearer_auth(&secret).body(body.clone()).send();
        let sent = timeout(HELD_FOR_AT_MOST, sent).await.context("a slow call has no answer at all")?;
        let status = sent.map(|answer| answer.status());
        counts.send_modify(|(served, refused)| match status {
            Ok(status) if status.is_success() => *served += 1,
            Ok(StatusCode::SERVICE_UNAVAILABLE) => *refused += 1,
            _ => {}
        });
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_program_with_slow_calls_on_all_connections_shuts_no_other_program_out() -> Result<()> {
    const THREADS: usize = 40;
    let mut setup = fixed_owner()?;
    setup.consumer_settings.extend(setting("gateway.connections_per_ip_max", "16"));
    let world = World::with(setup).await?;
    expect_served(&world.get("/ok").await?)?;
    let service = world.api.id.to_string();
    let made = farthing(&world.consumer, &["secret", "create", "slow", "--service", &service]).await?;
    let secret = made.ends_with(0)?.out.trim().to_owned();
    let url = format!("{}/internal/call", world.consumer.status().await?.gateway_url);
    let ((stop, stopped), body) = (watch::channel(false), world.body("GET", "/slow/3000").to_string());
    let (counts, mut seen) = watch::channel((0, 0));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let client = program(&world.consumer)?;
            let held =
                hold(client, url.clone(), secret.clone(), body.clone(), stopped.clone(), counts.clone());
            Ok(tokio::spawn(held))
        })
        .collect::<Result<_>>()?;
    // Nobody waits for threads that have ended.
    drop(counts);
    seen.wait_for(|(_, refused)| *refused > THREADS).await?;
    for call in 0..20 {
        // Another program each time, on a connection that is not there yet.
        let asked = program(&world.consumer)?.post(&url).bearer_auth(&world.secret);
        let asked = asked.body(world.body("GET", "/ok").to_string()).send();
        let answer = timeout(SOON, asked).await.with_context(|| format!("call {call} is not answered"))?;
        let answer = answer.with_context(|| format!("call {call}"))?;
        ensure!(answer.status().is_success(), "call {call}: {}", answer.status());
    }
    let other = world.consumer.https_client()?.get(url.replace("/internal/call", "/healthz")).send();
    ensure!(timeout(SOON, other).await??.status().is_success());
    stop.send_replace(true);
    for ended in join_all(threads).await {
        ended??;
    }
    let (served, refused) = *seen.borrow();
    println!("{THREADS} threads: {served} slow calls served, {refused} found no room");
    ensure!(served > 0, "no slow call was served");
    Ok(())
}

#[tokio::test]
async fn a_secret_whose_calls_fail_at_one_operation_keeps_no_other_secret_from_the_rest() -> Result<()> {
    let world = World::with(fixed_owner()?).await?;
    expect_served(&world.get("/ok").await?)?;
    let service = world.api.id.to_string();
    let made = farthing(&world.consumer, &["secret", "create", "slow", "--service", &service]).await?;
    let secret = made.ends_with(0)?.out.trim().to_owned();
    let url = format!("{}/internal/call", world.consumer.status().await?.gateway_url);
    let client = program(&world.consumer)?;
    let call = async |secret: &str, path: &str| {
        let body = world.body("GET", path).to_string();
        anyhow::Ok(client.post(&url).bearer_auth(secret).body(body).send().await?)
    };
    for _ in 0..15 {
        call(&secret, "/status/500").await?.text().await?;
    }
    // One is tried each second from now on, and none waits for more than five.
    let told =
        join_all((0..12).map(|_| async { anyhow::Ok(call(&secret, "/status/500").await?.text().await?) }));
    let told = told.await.into_iter().collect::<Result<Vec<_>>>()?;
    ensure!(
        told.iter().any(|told| told.contains("the secret `slow` made too many uncharged calls")),
        "{told:?}"
    );
    // Nor at that operation: the owner would have served twenty in all.
    let other = call(&world.secret, "/status/500").await?.text().await?;
    ensure!(other.contains("upstream-failed"), "{other}");
    for _ in 0..25 {
        let answer = call(&world.secret, "/ok").await?;
        ensure!(answer.status().is_success(), "{}", answer.status());
    }
    world.settle_for(cost(26)).await
}

/// A body of so many bytes of which the end never comes.
fn endless(bytes: usize) -> Body {
    let parts = stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 16 * 1024])));
    Body::wrap_stream(parts.take(bytes / (16 * 1024)).chain(stream::pending()))
}

async fn http2(node: &NodeProcess, port: u16) -> Result<SendRequest<Body>> {
    farthing_serve::tls::install_provider();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(node.data_dir().join("tls/ca.pem"))?)?;
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let name = ServerName::try_from("localhost")?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

/// Memory of a node's process, in MiB.
fn memory(node: &NodeProcess) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", node.pid().context("it has ended")?))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no memory")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? / 1024)
}

#[tokio::test(flavor = "multi_thread")]
async fn log_in_bodies_of_strangers_are_neither_kept_nor_waited_for() -> Result<()> {
    const BODY: usize = 1_900 * 1024;
    let world = World::start().await?;
    let node = &world.consumer;
    let panel = console(node).await?;
    let before = memory(node)?;
    let (mut senders, mut answers) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let sender = http2(node, panel).await?;
        for place in 0..64 {
            let path = ["/api/v1/session", "/api/v1/setup", "/panel/login", "/panel/setup"][place % 4];
            let kind = if path.starts_with("/api") {
                "application/json"
            } else {
                "application/x-www-form-urlencoded"
            };
            let request = hyper::Request::post(format!("https://localhost:{panel}{path}"))
                .header("content-type", kind)
                .header("origin", format!("https://localhost:{panel}"))
                .header("sec-fetch-site", "same-origin")
                .body(endless(BODY))?;
            let mut sender = sender.clone();
            answers.push(tokio::spawn(async move {
                sender.send_request(request).await.map(|answer| answer.status())
            }));
        }
        senders.push(sender);
    }
    let mut peak = before;
    eventually("every log-in is answered", async || {
        peak = peak.max(memory(node)?);
        Ok(answers.iter().all(tokio::task::JoinHandle::is_finished))
    })
    .await
    .with_context(|| format!("{before} MiB before and {peak} MiB since"))?;
    for answer in answers {
        let status = answer.await?.context("no answer")?;
        ensure!(status == StatusCode::PAYLOAD_TOO_LARGE, "{status}");
    }
    println!("192 log-in bodies of 1.9 MB: {before} MiB before, {peak} MiB at most");
    ensure!(peak < before + 64, "{before} MiB before and {peak} MiB at most");
    Ok(())
}
