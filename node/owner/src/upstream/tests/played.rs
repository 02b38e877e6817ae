//! A server that is played is judged as any other.

use std::future::pending;

use super::*;
use crate::upstream::PlayedServer;

/// A server that says nothing to the first request, and answers the others.
fn silent_at_first(asked: &Arc<AtomicUsize>) -> PlayedServer {
    let asked = Arc::clone(asked);
    PlayedServer::new(move |request| {
        let number = asked.fetch_add(1, Ordering::Relaxed);
        assert_eq!(request.url.path(), "/items/7");
        Box::pin(async move { (number > 0).then(|| http::Response::new(Bytes::from_static(b"seven"))) })
    })
}

fn upstream_of(server: PlayedServer) -> Upstream {
    let options = UpstreamOptions { played: Some(server), ..impatient() };
    Upstream::new("http://127.0.0.1:9", UpstreamSecrets::default(), options).unwrap()
}

#[tokio::test]
async fn a_server_that_is_played_is_asked_and_judged_as_any_other() {
    let asked = Arc::new(AtomicUsize::new(0));
    let upstream = upstream_of(silent_at_first(&asked));
    let answer = upstream.fetch(&request(Method::Get, &[])).await;
    assert_eq!((answer.outcome, answer.status, &answer.body[..]), (Outcome::Answered, 200, &b"seven"[..]));
    assert_eq!(asked.load(Ordering::Relaxed), 2, "a read is sent again after a silent end");

    let asked = Arc::new(AtomicUsize::new(0));
    let upstream = upstream_of(silent_at_first(&asked));
    let answer = upstream.fetch(&request_with(Method::Post, &[], Bytes::from_static(b"{}"))).await;
    assert_eq!((answer.fault, asked.load(Ordering::Relaxed)), (Some(Fault::Silent), 1), "and a write is not");

    let slow = upstream_of(PlayedServer::new(|_| Box::pin(pending::<Option<http::Response<Bytes>>>())));
    assert_eq!(slow.fetch(&request(Method::Get, &[])).await.fault, Some(Fault::SlowHead));
}
