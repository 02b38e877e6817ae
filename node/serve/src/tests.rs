//! The promises of the HTTP ports, over real sockets.

mod floods;
mod goodbye;
mod http2;
mod names;

use std::time::Instant;

use axum::routing::{get, post};
use bytes::Bytes;
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use tokio::{io::AsyncReadExt, task::JoinHandle};

use super::*;

/// Short enough for a test. What must not happen within them does not depend on a fast machine.
fn limits() -> Limits {
    let short = Duration::from_millis(300);
    Limits { head: short, idle: short, body: short, handshake: short, wait: short, ..Limits::default() }
}

fn budget() -> ByteBudget {
    ByteBudget::new(16 * 1024 * 1024)
}

fn router() -> Router {
    Router::new()
        .route("/", get(|| async { "hello" }))
        .route(
            "/echo",
            post(|body: Result<Bytes, axum::extract::rejection::BytesRejection>| async move {
                match body {
                    Ok(body) => body.into_response(),
                    Err(rejection) => (StatusCode::REQUEST_TIMEOUT, rejection.body_text()).into_response(),
                }
            }),
        )
        .route(
            "/slow",
            get(|| async {
                tokio::time::sleep(Duration::from_millis(900)).await;
                "done"
            }),
        )
}

struct Running {
    address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

async fn start(limits: Limits) -> Running {
    start_port(Port {
        router: router(),
        tls: None,
        trusted_proxies: Vec::new(),
        limits,
        budget: budget(),
        wording,
    })
    .await
}

fn wording(what: TurnedAway) -> Response<Body> {
    let status = match what {
        TurnedAway::UnknownHost => StatusCode::MISDIRECTED_REQUEST,
        TurnedAway::FromWebPage => StatusCode::FORBIDDEN,
        TurnedAway::NoRoom => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, format!("{what:?}")).into_response()
}

async fn start_port(port: Port) -> Running {
    let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let task = tokio::spawn(port.serve(Listener::Tcp(listener), stop.clone()));
    Running { address, stop, task }
}

/// Sends `bytes` and reads until the other side closes.
async fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = String::new();
    // A reset is an end as well.
    let _ = stream.read_to_string(&mut answer).await;
    answer
}

fn get_request(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").into_bytes()
}

#[tokio::test]
async fn a_request_is_answered() {
    let running = start(limits()).await;
    let answer = exchange(running.address, &get_request("/")).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello"), "{answer}");
}

#[tokio::test]
async fn a_half_sent_head_is_closed() {
    let running = start(Limits { idle: Duration::from_secs(60), ..limits() }).await;
    let started = Instant::now();
    let answer = exchange(running.address, b"GET / HTTP/1.1\r\nhost: loc").await;
    assert_eq!(answer, "");
    assert!(started.elapsed() < Duration::from_secs(30), "closed by the limit for heads, not for idling");
}

#[tokio::test]
async fn a_head_that_trickles_is_closed() {
    let running = start(Limits { idle: Duration::from_secs(60), ..limits() }).await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let trickle = tokio::spawn(async move {
        while write.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut answer = Vec::new();
    let ended = timeout(Duration::from_secs(30), read.read_to_end(&mut answer)).await;
    assert!(ended.is_ok(), "the connection was still open");
    assert!(answer.is_empty());
    trickle.abort();
}

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let running = start(limits()).await;
    assert_eq!(exchange(running.address, b"").await, "");
}

#[tokio::test]
async fn a_kept_connection_is_closed_after_idling_but_not_while_its_request_runs() {
    let running = start(limits()).await;
    // The request takes three times what idling may.
    let answer = exchange(running.address, b"GET /slow HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert!(answer.ends_with("done"), "{answer}");
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_given_up() {
    let running = start(limits()).await;
    let answer =
        exchange(running.address, b"POST /echo HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\nab")
            .await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[tokio::test]
async fn a_body_that_finds_no_room_is_answered_so_and_all_room_is_given_back() {
    let budget = ByteBudget::new(1000);
    let port = Port {
        router: router(),
        tls: None,
        trusted_proxies: Vec::new(),
        limits: limits(),
        budget: budget.clone(),
        wording,
    };
    let running = start_port(port).await;
    let others = budget.take(900).unwrap();
    let post = |bytes: usize| {
        let head =
            format!("POST /echo HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {bytes}");
        exchange(running.address, format!("{head}\r\n\r\n{}", "x".repeat(bytes)).into_bytes().leak())
    };
    assert!(post(100).await.starts_with("HTTP/1.1 200"));
    let refused = post(101).await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.ends_with("NoRoom"), "{refused}");
    drop(others);
    assert!(post(1000).await.starts_with("HTTP/1.1 200"));
    let given_back = async {
        while budget.held() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(20), given_back).await.unwrap();
}

#[tokio::test]
async fn an_answer_arrives_although_nobody_read_the_body() {
    let running = start(Limits { idle: Duration::from_secs(60), ..limits() }).await;
    let body = "x".repeat(4_000_000);
    let head = format!(
        "POST /nothing HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let answer = exchange(running.address, (head + &body).as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
}

#[tokio::test]
async fn a_reader_that_takes_nothing_is_closed() {
    let body = Bytes::from(vec![b'x'; 64 * 1024 * 1024]);
    let router = Router::new().route("/", get(move || async move { body }));
    let port =
        Port { router, tls: None, trusted_proxies: Vec::new(), limits: limits(), budget: budget(), wording };
    let running = start_port(port).await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    stream.write_all(&get_request("/")).await.unwrap();
    // Wait for the answer to begin, then do not read for longer than the limit, then see that it broke off.
    stream.readable().await.unwrap();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(answer.len() < 64 * 1024 * 1024, "the whole answer was sent to a reader that did not read");
}

#[tokio::test]
async fn heads_are_held_to_their_limits() {
    let limits = Limits { head_bytes_max: 8192, headers_max: 10, uri_bytes_max: 100, ..limits() };
    let running = start(limits).await;
    // Two headers of our own: host and connection.
    for (what, headers, status) in [
        ("at the limit", "a: b\r\n".repeat(8), "200"),
        ("above the limit", "a: b\r\n".repeat(9), "431"),
        ("one huge header", format!("a: {}\r\n", "x".repeat(20_000)), "431"),
    ] {
        let request = format!("GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n");
        let answer = exchange(running.address, request.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{what}: {answer}");
    }
    for (bytes, status) in [(100, "404"), (101, "414")] {
        let answer = exchange(running.address, &get_request(&format!("/{}", "x".repeat(bytes - 1)))).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{bytes} bytes: {answer}");
    }
}

/// Requests that are worked on until somebody lets them end.
struct Held {
    running: Running,
    requests: Vec<JoinHandle<String>>,
    end: Arc<tokio::sync::Semaphore>,
}

/// A port on which so many requests are being worked on.
async fn held(limits: Limits, requests: usize) -> Held {
    let end = Arc::new(tokio::sync::Semaphore::new(0));
    let (begun, mut began) = tokio::sync::mpsc::channel(1);
    let wait = Arc::clone(&end);
    let hold = move || async move {
        begun.send(()).await.unwrap();
        wait.acquire().await.unwrap().forget();
        "held"
    };
    let router = router().route("/hold", get(hold));
    let port = Port { router, tls: None, trusted_proxies: Vec::new(), limits, budget: budget(), wording };
    let running = start_port(port).await;
    let address = running.address;
    let ask = move |_| tokio::spawn(async move { exchange(address, &get_request("/hold")).await });
    let requests: Vec<_> = (0..requests).map(ask).collect();
    for _ in &requests {
        began.recv().await.unwrap();
    }
    Held { running, requests, end }
}

impl Held {
    async fn end(self) {
        self.end.add_permits(self.requests.len());
        for request in self.requests {
            assert!(request.await.unwrap().ends_with("held"));
        }
    }
}

#[tokio::test]
async fn one_address_cannot_take_every_connection_and_waits_for_its_own() {
    let minute = Duration::from_secs(60);
    for (wait, is_served) in [(Duration::from_millis(300), false), (minute, true)] {
        let limits = Limits { connections_per_ip_max: 2, idle: minute, wait, ..limits() };
        let held = held(limits, 2).await;
        let address = held.running.address;
        let mut waiting = tokio::spawn(async move { exchange(address, &get_request("/")).await });
        if is_served {
            let early = timeout(Duration::from_millis(300), &mut waiting).await;
            assert!(early.is_err(), "both are at work: {early:?}");
            held.end().await;
            let answer = waiting.await.unwrap();
            assert!(answer.ends_with("hello"), "{answer}");
        } else {
            assert_eq!(waiting.await.unwrap(), "", "both are at work for longer than it may wait");
            held.end().await;
        }
    }
}

#[tokio::test]
async fn connections_above_the_limit_wait_for_those_at_work() {
    let held = held(Limits { connections_max: 1, idle: Duration::from_secs(60), ..limits() }, 1).await;
    let address = held.running.address;
    let mut waiting = tokio::spawn(async move { exchange(address, &get_request("/")).await });
    let early = timeout(Duration::from_millis(300), &mut waiting).await;
    assert!(early.is_err(), "there was room: {early:?}");
    held.end().await;
    let answer = waiting.await.unwrap();
    assert!(answer.ends_with("hello"), "{answer}");
}

#[tokio::test]
async fn silent_connections_make_room_for_one_that_asks() {
    let minute = Duration::from_secs(60);
    let patient = Limits { head: minute, idle: minute, handshake: minute, body: minute, ..Limits::default() };
    let setup = start_tls_with(b"http/1.1", patient.clone()).await;
    let plain = start(patient).await;
    let half_head = &b"GET / HTTP/1.1\r\nhost: loc"[..];
    let half_hello = &[22, 3, 1, 2, 0, 1][..];
    for (address, is_tls, sent) in [
        (plain.address, false, &b""[..]),
        (plain.address, false, half_head),
        (plain.address, false, b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"),
        (plain.address, false, b"POST /echo HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nx"),
        (setup.running.address, true, b""),
        (setup.running.address, true, half_hello),
    ] {
        let mut silent = Vec::new();
        for _ in 0..Limits::default().connections_per_ip_max {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(sent).await.unwrap();
            silent.push(stream);
        }
        for _ in 0..3 {
            let asked = async {
                if !is_tls {
                    return exchange(address, &get_request("/")).await;
                }
                let connector = tokio_rustls::TlsConnector::from(Arc::clone(&setup.client));
                let stream = TcpStream::connect(address).await.unwrap();
                let name = ServerName::try_from("localhost").unwrap();
                let mut stream = connector.connect(name, stream).await.unwrap();
                stream.write_all(&get_request("/")).await.unwrap();
                let mut answer = String::new();
                let _ = stream.read_to_string(&mut answer).await;
                answer
            };
            let answer = timeout(Duration::from_secs(20), asked).await.unwrap();
            assert!(answer.ends_with("hello"), "{} after {sent:?}: {answer}", silent.len());
        }
    }
}

#[tokio::test]
async fn only_trusted_proxies_may_connect_when_there_are_some() {
    for (proxy, answered) in [("127.0.0.1", true), ("10.0.0.7", false)] {
        let trusted_proxies = vec![proxy.parse().unwrap()];
        let port = Port {
            router: router(),
            tls: None,
            trusted_proxies,
            limits: limits(),
            budget: budget(),
            wording,
        };
        let running = start_port(port).await;
        let answer = exchange(running.address, &get_request("/")).await;
        assert_eq!(answer.ends_with("hello"), answered, "{proxy}");
    }
}

#[tokio::test]
async fn shutdown_lets_a_running_request_end_and_takes_no_other() {
    let running = start(Limits { idle: Duration::from_secs(60), ..limits() }).await;
    let address = running.address;
    let (begun, mut began) = tokio::sync::mpsc::channel(1);
    let request = tokio::spawn(async move {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&get_request("/slow")).await.unwrap();
        begun.send(()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    });
    began.recv().await.unwrap();
    // Until the server has the request; it runs for 900 ms.
    tokio::time::sleep(Duration::from_millis(300)).await;
    running.stop.cancel();
    let answer = request.await.unwrap();
    assert!(answer.ends_with("done"), "{answer}");
    timeout(Duration::from_secs(30), running.task).await.unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

struct TlsSetup {
    _folder: tempfile::TempDir,
    running: Running,
    client: Arc<rustls::ClientConfig>,
}

async fn start_tls(alpn: &[u8]) -> TlsSetup {
    start_tls_with(alpn, limits()).await
}

async fn start_tls_with(alpn: &[u8], limits: Limits) -> TlsSetup {
    start_tls_of(alpn, limits, router()).await
}

async fn start_tls_of(alpn: &[u8], limits: Limits, router: Router) -> TlsSetup {
    let folder = tempfile::tempdir().unwrap();
    let own = tls::own(folder.path(), &["node.example".into()]).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(own.ca_file.as_ref().unwrap()).unwrap() {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![alpn.to_vec()];
    let tls = Some(Tls { config: own.config, ca_file: own.ca_file });
    let router = guarded(router, Hosts::new(&["node.example".into()]), wording);
    let running =
        start_port(Port { router, tls, trusted_proxies: Vec::new(), limits, budget: budget(), wording })
            .await;
    TlsSetup { _folder: folder, running, client: Arc::new(client) }
}

#[tokio::test]
async fn every_name_of_the_node_is_served_over_tls_that_verifies() {
    let setup = start_tls(b"http/1.1").await;
    for name in ["localhost", "127.0.0.1", "::1", "node.example"] {
        let stream = TcpStream::connect(setup.running.address).await.unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::clone(&setup.client));
        let mut stream = connector.connect(ServerName::try_from(name).unwrap(), stream).await.unwrap();
        stream.write_all(&get_request("/")).await.unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        assert!(answer.ends_with("hello"), "{name}: {answer}");
    }
    let stream = TcpStream::connect(setup.running.address).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::clone(&setup.client));
    assert!(connector.connect(ServerName::try_from("other.example").unwrap(), stream).await.is_err());
}

#[tokio::test]
async fn http2_is_spoken_to_those_who_ask_for_it() {
    let setup = start_tls(b"h2").await;
    let stream = TcpStream::connect(setup.running.address).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::clone(&setup.client));
    let stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = |uri: &str| Request::get(uri).body(String::new()).unwrap();
    let answer = sender.send_request(request("https://localhost:3000/")).await.unwrap();
    assert_eq!((answer.status(), answer.version()), (StatusCode::OK, http::Version::HTTP_2));
    let answer = sender.send_request(request("https://evil.example/")).await.unwrap();
    assert_eq!(answer.status(), StatusCode::MISDIRECTED_REQUEST);
    // An answer that comes without a look at the body is an answer all the same.
    let unread = Request::post("https://localhost/nothing").body("x".repeat(1_000_000)).unwrap();
    let answer = sender.send_request(unread).await.unwrap();
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    drop(sender);
    timeout(Duration::from_secs(30), connection).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn plain_http_on_a_tls_port_is_told_what_to_do() {
    let setup = start_tls(b"http/1.1").await;
    let answer = exchange(setup.running.address, &get_request("/")).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains("use https://") && answer.contains("/tls/ca.pem"), "{answer}");
    for (from, is_told) in
        [("127.0.0.1", true), ("::1", true), ("::ffff:127.0.0.1", true), ("192.0.2.7", false)]
    {
        let told = use_https(Some(Path::new("/data/tls/ca.pem")), from.parse().unwrap());
        assert_eq!(told.contains("/data"), is_told, "{from}: {told}");
    }
}

#[tokio::test]
async fn a_handshake_that_does_not_come_is_closed() {
    let setup = start_tls(b"http/1.1").await;
    assert_eq!(exchange(setup.running.address, b"").await, "");
    // The beginning of a client hello, and no more.
    let mut stream = TcpStream::connect(setup.running.address).await.unwrap();
    stream.write_all(&[22, 3, 1, 2, 0, 1]).await.unwrap();
    let mut answer = Vec::new();
    let ended = timeout(Duration::from_secs(30), stream.read_to_end(&mut answer)).await;
    assert!(ended.is_ok(), "the connection was still open");
}
