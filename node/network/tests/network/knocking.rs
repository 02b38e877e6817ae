//! What a record that leads nowhere, or to somebody else, makes a node do.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use farthing_network::{CallFailure, NetworkConfig, NotStarted};
use farthing_protocol::{
    Signed,
    info::{InfoRequest, InfoResponse},
};
use tokio::net::TcpListener;

use crate::support::{DEADLINE, Node, config, new_key, record, reserved_port, status_question, until};

/// Counts who connects, and says nothing.
fn count_knocks(listener: TcpListener) -> Arc<AtomicUsize> {
    let knocks = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&knocks);
    tokio::spawn(async move {
        while let Ok(knock) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            drop(knock);
        }
    });
    knocks
}

#[tokio::test]
async fn nobody_is_dialled_for_a_question_to_who_is_connected() {
    let (neighbour, node) = Node::pair().await;
    let nothing = || InfoRequest::Records(Vec::new());
    let answer = node.handle.ask_connected(neighbour.address, nothing()).await.unwrap();
    assert_eq!(answer, InfoResponse::Records(Vec::new()));
    let absent = new_key().address();
    let failure = node.handle.ask_connected(absent, nothing()).await.unwrap_err();
    assert_eq!(failure, CallFailure::NeverStarted(NotStarted::NotConnected(absent)));
}

#[tokio::test]
async fn an_owner_that_was_not_reached_is_not_dialled_for_questions_and_called_once_it_is_back() {
    // With so much company a node dials nobody of its own accord.
    let mut neighbours = Vec::new();
    for _ in 0..8 {
        neighbours.push(Node::start(config()).await);
    }
    let node = Node::joining(&neighbours.iter().collect::<Vec<_>>()).await;
    for neighbour in &neighbours {
        node.connected_to(neighbour.address).await;
        neighbour.connected_to(node.address).await;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let knocks = count_knocks(listener);
    let (elsewhere, owner) = (new_key(), new_key());
    let at = |key, seq, port: u16| {
        let record = record(key, seq, &[&format!("/ip4/127.0.0.1/tcp/{port}")]);
        InfoRequest::Push(vec![Signed::sign(&record, key).unwrap()])
    };
    let told = neighbours[0].handle.ask(node.address, at(&elsewhere, 1, port)).await.unwrap();
    assert_eq!(told, InfoResponse::Done);
    let question = || node.handle.ask(elsewhere.address(), InfoRequest::Records(Vec::new()));
    assert!(question().await.is_err());
    assert!(knocks.load(Ordering::SeqCst) > 0);
    // One of the next questions comes within the pause, which is twice as long after each that does not.
    let mut refused = false;
    for _ in 0..5 {
        let before = knocks.load(Ordering::SeqCst);
        let again = question().await.unwrap_err();
        if matches!(again, CallFailure::NeverStarted(NotStarted::NotReachedLately(..))) {
            assert_eq!(knocks.load(Ordering::SeqCst), before);
            refused = true;
            break;
        }
    }
    assert!(refused, "{} dials for questions", knocks.load(Ordering::SeqCst));
    let dials = knocks.load(Ordering::SeqCst);
    let call = || node.handle.call(elsewhere.address(), status_question(), Bytes::new(), DEADLINE);
    assert!(call().await.is_err());
    assert!(knocks.load(Ordering::SeqCst) > dials, "a call is worth a dial");

    // An owner that is away, and comes back under the record that led nowhere.
    let (_reserved, port) = reserved_port();
    let told = neighbours[0].handle.ask(node.address, at(&owner, 1, port)).await.unwrap();
    assert_eq!(told, InfoResponse::Done);
    for _ in 0..4 {
        let away = node.handle.call(owner.address(), status_question(), Bytes::new(), DEADLINE).await;
        assert!(matches!(away, Err(CallFailure::NeverStarted(_))), "{away:?}");
    }
    let listen = vec![format!("/ip4/127.0.0.1/tcp/{port}")];
    let mut back = Node::start(NetworkConfig { key: owner.clone(), listen, ..config() }).await;
    let called = node.handle.call(owner.address(), status_question(), Bytes::new(), DEADLINE);
    let answering = async {
        let call = back.calls.recv().await.unwrap();
        call.reply.send(crate::support::status_answer(), Bytes::new());
    };
    let (called, ()) = tokio::join!(called, answering);
    assert!(called.is_ok(), "{called:?}");
    until("nothing is left of the pauses", async || {
        node.handle.ask(owner.address(), InfoRequest::Records(Vec::new())).await.is_ok()
    })
    .await;
}
