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
