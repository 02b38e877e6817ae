//! The promises of the ports to those who speak HTTP/2, and to others in spite of them.

use axum::body::Body;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2;
use rustls::pki_types::ServerName;

use super::*;

type Sender = http2::SendRequest<Empty<Bytes>>;

/// A connection whose client sends a ping every few milliseconds, and what ends with it.
async fn pinging(setup: &TlsSetup) -> (Sender, JoinHandle<()>) {
    let stream = TcpStream::connect(setup.running.address).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::clone(&setup.client));
    let stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap();
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_millis(20))
        .keep_alive_while_idle(true)
        .initial_stream_window_size(16 * 1024)
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    (sender, tokio::spawn(async move { drop(connection.await) }))
}

async fn ask(sender: &mut Sender, path: &str) -> Response<Incoming> {
    let uri = format!("https://localhost{path}");
    sender.send_request(Request::get(uri).body(Empty::new()).unwrap()).await.unwrap()
}

const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn pings_are_no_reason_to_keep_a_connection() {
    let setup = start_tls(b"h2").await;
    let (sender, silent) = pinging(&setup).await;
    timeout(SOON, silent).await.expect("a connection that only pings is closed").unwrap();
    drop(sender);
    let (mut sender, idle) = pinging(&setup).await;
    assert_eq!(ask(&mut sender, "/").await.status(), StatusCode::OK);
    timeout(SOON, idle).await.expect("a connection that only pings after its answer is closed").unwrap();
}

#[tokio::test]
async fn a_reader_that_pings_and_takes_nothing_is_closed() {
    let body = Bytes::from(vec![b'x'; 4 * 1024 * 1024]);
    let setup =
        start_tls_of(b"h2", limits(), Router::new().route("/large", get(move || async move { body }))).await;
    let (mut sender, connection) = pinging(&setup).await;
    let answer = ask(&mut sender, "/large").await;
    timeout(SOON, connection).await.expect("nobody reads, and the connection stays").unwrap();
    drop(answer);
}

#[tokio::test]
async fn an_answer_that_comes_in_parts_arrives_whole() {
    let parts = || {
        // Longer in all than a connection may be silent.
        Body::from_stream(futures::stream::unfold(0, |part| async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            (part < 10).then(|| (Ok::<_, Infallible>(Bytes::from_static(b"part ")), part + 1))
        }))
    };
    let large = Bytes::from(vec![b'x'; 4 * 1024 * 1024]);
    let router = Router::new()
        .route("/parts", get(move || async move { parts() }))
        .route("/large", get(move || async move { large }));
    let setup = start_tls_of(b"h2", limits(), router).await;
    let (mut sender, _connection) = pinging(&setup).await;
    let answer = ask(&mut sender, "/parts").await.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(answer, "part ".repeat(10));
    let answer = ask(&mut sender, "/large").await;
    assert_eq!(answer.headers()["content-length"], "4194304");
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes().len(), 4 * 1024 * 1024);
}
