//! Whom a port turns away.

use super::*;

#[tokio::test]
async fn names_that_are_not_ours_and_web_pages_are_refused() {
    let router = guarded(router(), Hosts::new(&[]), wording);
    let port =
        Port { router, tls: None, trusted_proxies: Vec::new(), limits: limits(), budget: budget(), wording };
    let running = start_port(port).await;
    for (headers, status) in [
        ("host: localhost\r\n", "200"),
        ("host: localhost:3000\r\n", "200"),
        ("host: evil.example\r\n", "421"),
        ("", "421"),
        ("host: localhost\r\nhost: localhost\r\n", "421"),
        ("host: localhost\r\norigin: https://localhost:3000\r\n", "403"),
        ("host: localhost\r\norigin: null\r\n", "403"),
    ] {
        let request = format!("GET / HTTP/1.1\r\nconnection: close\r\n{headers}\r\n");
        let answer = exchange(running.address, request.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{headers:?}: {answer}");
    }
    let absolute = "GET http://evil.example/ HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let answer = exchange(running.address, absolute.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 421"), "{answer}");
}
