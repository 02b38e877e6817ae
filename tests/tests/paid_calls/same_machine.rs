//! Scripts on the node's own machine: TLS that is not begun anew for each call, and the two ways to call without it.

use std::{os::unix::fs::PermissionsExt, path::Path};

use anyhow::{Context, Result, ensure};
use farthing_tests::{
    calls::{cost, setting},
    world::{FUNDS, Setup, World},
};
use serde_json::Value;
use tokio::process::Command;

/// Connects twice, asks twice on the second connection, and prints what was resumed and what was answered.
const RESUMES: &str = "
import http.client, socket, ssl, sys
port, authority = int(sys.argv[1]), sys.argv[2]
context = ssl.create_default_context(cafile=authority)
def connect(session):
    stream = context.wrap_socket(socket.create_connection(('localhost', port)), server_hostname='localhost', session=session)
    client = http.client.HTTPConnection('localhost', port)
    client.sock = stream
    return stream, client
def ask(client):
    client.request('GET', '/healthz')
    answer = client.getresponse()
    return answer.status, answer.read(), answer.will_close
first, client = connect(None)
ask(client)
second, client = connect(first.session)
print(first.session_reused, second.session_reused, ask(client), ask(client), client.sock is second)
";

async fn said(command: &mut Command) -> Result<String> {
    let output = command.output().await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_resumes_its_tls_session_and_keeps_its_connection() -> Result<()> {
    let world = World::start().await?;
    let url = world.consumer.status().await?.gateway_url;
    let port = url.rsplit(':').next().context("no port")?;
    let authority = world.consumer.data_dir().join("tls/ca.pem");
    let found = said(Command::new("python3").args(["-c", RESUMES, port]).arg(&authority)).await?;
    assert_eq!(found.trim(), r"False True (200, b'ok\n', False) (200, b'ok\n', False) True");

    let mut curl = Command::new("curl");
    curl.args(["-sS", "-w", "%{num_connects}\n", "--cacert"]).arg(&authority);
    let opened = said(curl.args([format!("{url}/healthz"), format!("{url}/healthz")])).await?;
    assert_eq!(opened, "ok\n1\nok\n0\n", "curl opens one connection for both");
    Ok(())
}

/// `curl` of a paid call, with what leads it to the node; gives its status and the answer.
async fn call(world: &World, secret: Option<&str>, way: &[&str]) -> Result<(String, Value)> {
    let mut command = Command::new("curl");
    command.args(["-sS", "-w", "\n%{http_code}", "--data", &world.body("GET", "/ok").to_string()]);
    if let Some(secret) = secret {
        command.args(["-H", &format!("authorization: Bearer {secret}")]);
    }
    let answer = said(command.args(way)).await?;
    let (body, status) = answer.rsplit_once('\n').context("no status")?;
    Ok((status.to_owned(), serde_json::from_str(body)?))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_of_this_machine_call_without_tls_and_with_the_same_secret() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("call.sock");
    let path = socket.to_str().context("a path")?;
    let settings = [setting("gateway.plain", "127.0.0.1:0"), setting("gateway.socket", path)].concat();
    let world = World::with(Setup { consumer_settings: settings, ..Setup::default() }).await?;
    let log = world.consumer.log();
    let plain =
        log.lines().find_map(|line| line.trim().strip_prefix("Plain ")).context("no plain address")?;
    ensure!(plain.trim().starts_with("http://localhost:"), "{plain}");
    ensure!(log.contains(path), "the socket is not told: {log}");
    let mode = std::fs::metadata(&socket)?.permissions().mode() & 0o777;
    ensure!(mode == 0o660, "{mode:o}");

    let by_socket = ["--unix-socket", path, "http://localhost/internal/call"];
    for way in [&[plain.trim()][..], &by_socket] {
        let (status, answer) = call(&world, Some(&world.secret), way).await?;
        ensure!(status == "200" && answer["n"].is_u64(), "{way:?}: {status} {answer}");
        let (status, _) = call(&world, None, way).await?;
        ensure!(status == "401", "{way:?}: {status} without a secret");
        let from_a_page = [&["-H", "origin: http://localhost"], way].concat();
        let (status, _) = call(&world, Some(&world.secret), &from_a_page).await?;
        ensure!(status == "403", "{way:?}: {status} from a web page");
        let by_another_name = [&["-H", "host: example.com"], way].concat();
        let (status, _) = call(&world, Some(&world.secret), &by_another_name).await?;
        ensure!(status != "200", "{way:?}: {status} under another name");
    }
    assert_eq!(world.settle_and_check(FUNDS).await?, cost(2));
    ensure!(Path::new(path).exists());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_node_counts_is_not_shown_through_a_proxy_on_the_same_machine() -> Result<()> {
    let settings = [setting("gateway.tls", "off"), setting("gateway.trusted_proxies", "127.0.0.1")].concat();
    let world = World::with(Setup { consumer_settings: settings, ..Setup::default() }).await?;
    let url = format!("{}/metrics", world.consumer.status().await?.gateway_url);
    assert_eq!(world.client().get(&url).send().await?.status(), 401);
    assert_eq!(world.client().get(&url).bearer_auth(&world.secret).send().await?.status(), 200);
    Ok(())
}

#[tokio::test]
async fn what_a_node_counts_is_not_shown_to_what_a_proxy_that_nobody_named_passes_on() -> Result<()> {
    let world = World::start().await?;
    let url = format!("{}/metrics", world.consumer.status().await?.gateway_url);
    assert_eq!(world.client().get(&url).send().await?.status(), 200);
    for header in ["forwarded", "x-forwarded-for", "x-real-ip"] {
        let asked = |secret| world.client().get(&url).header(header, "192.0.2.7").bearer_auth(secret);
        assert_eq!(asked("").send().await?.status(), 401, "{header}");
        assert_eq!(asked(&world.secret).send().await?.status(), 200, "{header}");
    }
    Ok(())
}
