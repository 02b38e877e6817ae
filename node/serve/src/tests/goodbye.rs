//! How a connection ends that did nothing.

use super::*;

#[tokio::test]
async fn an_idle_connection_is_closed_with_a_goodbye() {
    let setup = start_tls_with(b"http/1.1", limits()).await;
    let connector = tokio_rustls::TlsConnector::from(Arc::clone(&setup.client));
    let stream = TcpStream::connect(setup.running.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = connector.connect(name, stream).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    // Without close_notify this is an error: the answer may have been cut off.
    let ended = timeout(Duration::from_secs(30), stream.read_to_end(&mut answer)).await.unwrap();
    assert!(ended.is_ok() && answer.ends_with(b"hello"), "{ended:?}");
}

#[tokio::test]
async fn whoever_ends_before_it_has_asked_is_not_waited_for() {
    let minute = Duration::from_secs(60);
    let running = start(Limits { handshake: minute, head: minute, idle: minute, ..limits() }).await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    stream.write_all(b"G").await.unwrap();
    stream.shutdown().await.unwrap();
    // A reset is an end as well.
    let ended = timeout(Duration::from_secs(20), stream.read(&mut [0])).await;
    assert!(ended.is_ok(), "it is waited for");
}
