//! The promises towards the owner's server, against servers that do not keep theirs.

use std::{
    future::Future,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use farthing_bounds::ByteBudget;
use farthing_bridge::{
    Api, Call,
    description::{ApiDescription, Body, Method, Operation, Parameter, Place, Schema},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::*;

mod passed_back;
mod paths;
#[cfg(feature = "played")]
mod played;
mod relayed;

/// Waits short enough for a test, long enough for a busy machine.
fn options() -> UpstreamOptions {
    UpstreamOptions { body_bytes_max: 1000, ..UpstreamOptions::default() }
}

fn impatient() -> UpstreamOptions {
    let wait = Duration::from_millis(200);
    UpstreamOptions { first_byte: wait, idle: wait, ..options() }
}

fn api() -> Api {
    let operation = |method: Method, parameters| Operation {
        method,
        path: "/items/{id}".into(),
        id: method.to_string(),
        parameters,
        body: (method == Method::Post).then(Body::default),
        any_params: true,
        ..Operation::default()
    };
    let header = Parameter {
        name: "x-tenant".into(),
        place: Place::Header,
        schema: Schema::string(),
        ..Parameter::default()
    };
    let operations = vec![operation(Method::Get, vec![header]), operation(Method::Post, vec![])];
    Api::new(ApiDescription { operations, ..ApiDescription::default() }).unwrap()
}

fn request(method: Method, params: &[(&str, &str)]) -> UpstreamRequest {
    request_with(method, params, Bytes::new())
}

fn request_with(method: Method, params: &[(&str, &str)], body: Bytes) -> UpstreamRequest {
    let params = params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let call =
        Call { method: method.as_str(), path: "/items/7", params: &params, content_type: None, body: &body };
    let request = api().plan(&call).unwrap().request;
    let (headers, deadline) = (BTreeMap::new(), Duration::from_secs(30));
    UpstreamRequest { request, headers, body, deadline, time: None, call: None, html: false }
}

fn secret_header_of(name: &str, value: &str) -> UpstreamSecrets {
    let headers = BTreeMap::from([(name.to_owned(), value.to_owned())]);
    UpstreamSecrets { headers, ..UpstreamSecrets::default() }
}

/// A server that hands each connection to `serve`.
async fn server<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
}

/// Reads one request head; `None` at the end of the connection.
async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(head).unwrap())
}

/// A server that answers every request with the same bytes, and keeps the connection open.
async fn scripted(answer: impl Into<Vec<u8>>) -> SocketAddr {
    let answer = Arc::new(answer.into());
    server(move |mut stream| {
        let answer = Arc::clone(&answer);
        async move {
            while read_head(&mut stream).await.is_some() {
                if stream.write_all(&answer).await.is_err() {
                    return;
                }
            }
        }
    })
    .await
}

async fn fetch_from(address: SocketAddr, options: UpstreamOptions) -> UpstreamAnswer {
    let upstream =
        Upstream::new(&format!("http://{address}/base"), UpstreamSecrets::default(), options).unwrap();
    upstream.fetch(&request(Method::Get, &[])).await
}

async fn fetch_scripted(answer: impl Into<Vec<u8>>) -> UpstreamAnswer {
    fetch_from(scripted(answer).await, options()).await
}

fn sized(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn an_answer_comes_back_with_the_headers_that_matter_only() {
    let headers = "content-type: application/json\r\netag: \"1\"\r\nset-cookie: a=b\r\nserver: x\r\nx-powered-by: y\r\n";
    let answer = fetch_scripted(sized("200 OK", headers, "{\"a\":1}")).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::Answered, 200));
    assert_eq!(&answer.body[..], b"{\"a\":1}");
    let names: Vec<_> = answer.headers.keys().map(String::as_str).collect();
    assert_eq!(names, ["content-type", "etag"]);
}

#[tokio::test]
async fn a_refused_connection_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let answer = fetch_from(address, options()).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::Unreachable, 0));
}

#[tokio::test]
async fn a_head_that_does_not_come_times_out() {
    let silent = server(|mut stream| async move {
        read_head(&mut stream).await;
        // Keeps the connection until the other side gives up.
        while stream.read_u8().await.is_ok() {}
    });
    let answer = fetch_from(silent.await, impatient()).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::TimedOut, 0));
}

#[tokio::test]
async fn a_body_that_stops_coming_times_out() {
    let stalled = scripted("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc").await;
    let answer = fetch_from(stalled, impatient()).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::TimedOut, 200));
    assert!(answer.body.is_empty());
}

#[tokio::test]
async fn a_body_that_trickles_ends_with_the_calls_deadline() {
    let trickle = server(|mut stream| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n").await;
        while stream.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let upstream =
        Upstream::new(&format!("http://{}", trickle.await), UpstreamSecrets::default(), options()).unwrap();
    let deadline = Duration::from_millis(300);
    let answer = upstream.fetch(&UpstreamRequest { deadline, ..request(Method::Get, &[]) }).await;
    assert_eq!(answer.outcome, Outcome::TimedOut);
    assert!(answer.elapsed >= deadline && answer.elapsed < Duration::from_secs(9), "{:?}", answer.elapsed);
}

#[tokio::test]
async fn a_body_shorter_than_its_head_promises_is_a_bad_answer() {
    let short = server(|mut stream| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc").await;
    });
    assert_eq!(fetch_from(short.await, options()).await.outcome, Outcome::BadAnswer);
    let cut_chunk = server(|mut stream| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabc").await;
    });
    assert_eq!(fetch_from(cut_chunk.await, options()).await.outcome, Outcome::BadAnswer);
}

#[tokio::test]
async fn bytes_behind_a_body_never_become_the_next_answer() {
    let smuggled = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil";
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    let address = server(move |mut stream| {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            while read_head(&mut stream).await.is_some() {
                let own = sized("200 OK", "", &format!("own {number}"));
                let _ = stream.write_all(format!("{own}{smuggled}").as_bytes()).await;
            }
        }
    })
    .await;
    let upstream =
        Upstream::new(&format!("http://{address}"), UpstreamSecrets::default(), options()).unwrap();
    for _ in 0..20 {
        let answer = upstream.fetch(&request(Method::Get, &[])).await;
        assert_eq!((answer.outcome, answer.fault), (Outcome::Answered, None));
        assert!(answer.body.starts_with(b"own "), "{:?}", answer.body);
    }
}

#[tokio::test]
async fn the_body_is_held_to_its_limit() {
    for (bytes, outcome) in [(999, Outcome::Answered), (1000, Outcome::Answered), (1001, Outcome::Oversize)] {
        let body = "x".repeat(bytes);
        let answer = fetch_scripted(sized("200 OK", "", &body)).await;
        assert_eq!((answer.outcome, answer.status), (outcome, 200), "{bytes} bytes, announced");
        assert_eq!(answer.body.is_empty(), outcome == Outcome::Oversize);
        let half = bytes / 2;
        let (first, second) = body.split_at(half);
        let chunked = format!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
            first.len(),
            second.len()
        );
        let answer = fetch_scripted(chunked).await;
        assert_eq!(answer.outcome, outcome, "{bytes} bytes, in chunks");
        if outcome == Outcome::Answered {
            assert_eq!(&answer.body[..], body.as_bytes());
        }
    }
    let huge = "HTTP/1.1 200 OK\r\ncontent-length: 9223372036854775807\r\n\r\n";
    assert_eq!(fetch_scripted(huge).await.outcome, Outcome::Oversize);
}

#[tokio::test]
async fn an_answer_that_finds_no_room_is_given_up_and_one_that_is_passed_on_gives_its_room_back() {
    let budget = ByteBudget::new(1000);
    let within = || UpstreamOptions { budget: budget.clone(), ..options() };
    let answer = || scripted(sized("200 OK", "", &"x".repeat(600)));
    let first = fetch_from(answer().await, within()).await;
    assert_eq!((first.outcome, budget.held()), (Outcome::Answered, 600));
    let second = fetch_from(answer().await, within()).await;
    assert_eq!((second.outcome, second.body.len(), budget.held()), (Outcome::Oversize, 0, 600));
    assert_eq!(second.fault, Some(Fault::NoRoom));
    drop(first);
    assert_eq!(budget.held(), 0);
    assert_eq!(fetch_from(answer().await, within()).await.outcome, Outcome::Answered);
}

#[tokio::test]
async fn statuses_become_outcomes() {
    for (status, outcome) in [
        ("200 OK", Outcome::Answered),
        ("204 No Content", Outcome::Answered),
        ("301 Moved", Outcome::BadAnswer),
        ("302 Found", Outcome::BadAnswer),
        ("304 Not Modified", Outcome::BadAnswer),
        ("307 Temporary", Outcome::BadAnswer),
        ("400 Bad Request", Outcome::Declined),
        ("404 Not Found", Outcome::Declined),
        ("429 Too Many", Outcome::Declined),
        ("500 Oops", Outcome::ServerError),
        ("503 Busy", Outcome::ServerError),
        ("600 What", Outcome::BadAnswer),
        ("101 Switching Protocols", Outcome::BadAnswer),
    ] {
        let answer = fetch_scripted(sized(status, "location: http://169.254.169.254/\r\n", "")).await;
        assert_eq!(answer.outcome, outcome, "{status}");
        assert_eq!(answer.status.to_string(), status[..3], "{status}");
        assert!(!answer.headers.contains_key("location"));
    }
}

#[tokio::test]
async fn what_is_not_http_is_a_bad_answer() {
    for answer in [
        "SSH-2.0-OpenSSH_9.9\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nbad header\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd".to_owned(),
        sized("200 OK", "content-encoding: gzip\r\n", "abc"),
        format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(ANSWER_HEADERS_MAX + 1)),
    ] {
        assert_eq!(fetch_scripted(answer.clone()).await.outcome, Outcome::BadAnswer, "{answer}");
    }
}

#[tokio::test]
async fn only_declared_headers_reach_the_upstream_and_the_owners_secret_wins() {
    let (heard, mut hear) = tokio::sync::mpsc::channel(4);
    let address = server(move |mut stream| {
        let heard = heard.clone();
        async move {
            while let Some(head) = read_head(&mut stream).await {
                heard.send(head).await.unwrap();
                stream.write_all(sized("200 OK", "", "").as_bytes()).await.unwrap();
            }
        }
    })
    .await;
    let secret = secret_header_of("X-Api-Key", "owners-own");
    let upstream = Upstream::new(&format!("http://{address}/base/"), secret, options()).unwrap();
    let mut request = request(Method::Get, &[("x-tenant", "blue"), ("q", "a b")]);
    for (name, value) in [
        ("accept", "application/json"),
        ("authorization", "Bearer farthing_sk_x"),
        ("cookie", "a=b"),
        ("host", "evil.example"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-http-method-override", "DELETE"),
        ("x-api-key", "callers"),
        ("transfer-encoding", "chunked"),
        ("content-length", "5"),
        ("x_tenant", "y"),
        ("x-undeclared", "z"),
        ("accept-encoding", "nonsense, GZIP;q=0.5"),
        ("content-type", "a\r\nx-smuggled: 1"),
    ] {
        request.headers.insert(name.into(), value.into());
    }
    // Even a description that declares it does not get it through.
    if let Request::Http(http) = &mut request.request {
        http.headers.push(("x-forwarded-for".into(), "127.0.0.1".into()));
    }
    assert_eq!(upstream.fetch(&request).await.outcome, Outcome::Answered);
    let head = hear.recv().await.unwrap();
    let (line, headers) = head.split_once("\r\n").unwrap();
    assert_eq!(line, "GET /base/items/7?q=a%20b HTTP/1.1");
    let mut headers: Vec<_> = headers.trim_end().split("\r\n").map(str::to_lowercase).collect();
    headers.sort();
    let expected = [
        "accept-encoding: gzip".to_owned(),
        "accept: application/json".to_owned(),
        format!("host: {address}"),
        concat!("user-agent: farthing/", env!("CARGO_PKG_VERSION")).to_owned(),
        "x-api-key: owners-own".to_owned(),
        "x-tenant: blue".to_owned(),
    ];
    assert_eq!(headers, expected);
}

#[tokio::test]
async fn a_body_is_sent_with_its_length() {
    let (heard, mut hear) = tokio::sync::mpsc::channel(1);
    let address = server(move |mut stream| {
        let heard = heard.clone();
        async move {
            let head = read_head(&mut stream).await.unwrap();
            let mut body = vec![0; 5];
            stream.read_exact(&mut body).await.unwrap();
            heard.send((head, body)).await.unwrap();
            stream.write_all(sized("201 Created", "", "ok").as_bytes()).await.unwrap();
        }
    })
    .await;
    let upstream =
        Upstream::new(&format!("http://{address}"), UpstreamSecrets::default(), options()).unwrap();
    let body = Bytes::from_static(b"hello");
    let answer = upstream.fetch(&request_with(Method::Post, &[], body)).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::Answered, 201));
    let (head, body) = hear.recv().await.unwrap();
    assert!(head.contains("content-length: 5\r\n"), "{head}");
    assert_eq!(body, b"hello");
}

#[tokio::test]
async fn a_connection_closed_without_an_answer_is_tried_once_more_for_safe_methods_only() {
    for (method, requests) in [(Method::Get, 2), (Method::Post, 1)] {
        let seen = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&seen);
        let address = server(move |mut stream| {
            let counted = Arc::clone(&counted);
            async move {
                if read_head(&mut stream).await.is_some() {
                    counted.fetch_add(1, Ordering::SeqCst);
                }
            }
        })
        .await;
        let upstream =
            Upstream::new(&format!("http://{address}"), UpstreamSecrets::default(), options()).unwrap();
        let answer = upstream.fetch(&request(method, &[])).await;
        assert_eq!(answer.outcome, Outcome::BadAnswer);
        assert_eq!(seen.load(Ordering::SeqCst), requests, "{method}");
    }
}

#[tokio::test]
async fn a_port_that_becomes_this_node_s_own_is_not_connected_to_any_more() {
    let address = scripted("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let (network, status) = tokio::sync::watch::channel(farthing_network::NetworkStatus::default());
    let own_ports = OwnPorts::new([]);
    own_ports.follow(status);
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
        network.send_modify(|status| status.ports.clear());
        let options = UpstreamOptions { own_ports: own_ports.clone(), ..options() };
        let url = format!("http://{host}:{}", address.port());
        let upstream = Upstream::new(&url, UpstreamSecrets::default(), options).unwrap();
        assert_eq!(upstream.fetch(&request(Method::Get, &[])).await.outcome, Outcome::Answered, "{host}");
        network.send_modify(|status| status.ports = [address.port()].into());
        let answer = upstream.fetch(&request(Method::Get, &[])).await;
        assert_eq!(answer.outcome, Outcome::Unreachable, "{host}");
        assert_eq!(answer.fault, Some(Fault::LeadsHere));
        // The connection that is kept is not used either.
        assert!(upstream.leads_here().await, "{host}");
    }
}

#[test]
fn an_address_that_cannot_be_an_upstream_is_refused_at_registration() {
    let make = |url: &str| {
        let options = UpstreamOptions { own_ports: OwnPorts::new([3000]), ..options() };
        check_base(url, &options)?;
        Upstream::new(url, UpstreamSecrets::default(), options).map(|upstream| upstream.class())
    };
    assert_eq!(make("http://localhost:8080/api").unwrap(), Some(AddressClass::SameMachine));
    assert_eq!(make("http://192.168.1.9").unwrap(), Some(AddressClass::Lan));
    assert_eq!(make("http://api.example").unwrap(), None);
    for (url, expected) in [
        ("api.example", UpstreamError::Malformed("api.example".into())),
        ("file:///etc/passwd", UpstreamError::Malformed("file:///etc/passwd".into())),
        ("http://user@api.example", UpstreamError::Credentials),
        ("http://:pw@api.example", UpstreamError::Credentials),
        ("http://api.example/?key=1", UpstreamError::Query),
        ("http://api.example/#x", UpstreamError::Query),
        ("http://169.254.169.254/latest", UpstreamError::ForbiddenAddress([169, 254, 169, 254].into())),
        ("http://0x7f000001:3000", UpstreamError::OwnPort(3000)),
        ("http://2852039166/", UpstreamError::ForbiddenAddress([169, 254, 169, 254].into())),
        ("http://0.0.0.0:8080", UpstreamError::ForbiddenAddress([0, 0, 0, 0].into())),
        ("http://[fd20:ce::254]/", UpstreamError::ForbiddenAddress("fd20:ce::254".parse().unwrap())),
        (
            "http://[::ffff:0:169.254.169.254]/",
            UpstreamError::ForbiddenAddress("::ffff:0:169.254.169.254".parse().unwrap()),
        ),
        ("http://localhost:3000", UpstreamError::OwnPort(3000)),
        ("http://any.localhost:3000", UpstreamError::OwnPort(3000)),
        ("http://[::1]:3000", UpstreamError::OwnPort(3000)),
        ("http://127.9.9.9:3000", UpstreamError::OwnPort(3000)),
    ] {
        assert_eq!(make(url).unwrap_err(), expected, "{url}");
    }
    for name in ["host", "content-length", "bad name", "x\r\ny"] {
        let secrets = secret_header_of(name, "v");
        assert!(
            matches!(Upstream::new("http://h", secrets, options()), Err(UpstreamError::Header(_))),
            "{name}"
        );
    }
}

#[test]
fn the_owners_secret_is_never_printed() {
    let mut secrets = secret_header_of("x-api-key", "owners-own");
    secrets.query.insert("appid".to_owned(), "owners-own".to_owned());
    let shown = format!("{secrets:?}");
    let upstream = Upstream::new("http://h", secrets, options()).unwrap();
    assert!(!format!("{shown} {upstream:?} {:?}", upstream.secret_headers).contains("owners-own"));
}

#[test]
fn a_parameter_that_would_meet_the_owners_own_is_found() {
    let mut secrets = UpstreamSecrets::default();
    secrets.query.insert("appid".to_owned(), "owners-own".to_owned());
    let upstream = Upstream::new("http://h", secrets, options()).unwrap();
    for (name, is_met) in
        [("appid", true), ("AppId", true), ("appid[]", true), ("appid.x", true), ("app", false)]
    {
        let found = upstream.secret_in(&request(Method::Get, &[(name, "v")]).request, &[]);
        assert_eq!(found.is_some(), is_met, "{name}");
    }
}
