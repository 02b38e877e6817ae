//! Calls between two honest nodes.

use bytes::Bytes;
use farthing_bounds::ByteBudget;
use farthing_network::{CallFailure, Interrupted, NetworkConfig, NetworkLimits, NotStarted};
use farthing_protocol::{
    CallMessage, CallReply, CallRequest, RefusalCode, Signed,
    info::{InfoRequest, InfoResponse},
    limits,
};

use crate::support::{
    DEADLINE, Node, QUIC, TCP, config, new_key, pattern, record, request, reserved_port, response,
    status_answer, status_question, until,
};

async fn echo_between(owner_listens: &str, consumer_listens: &str) {
    let owner = Node::start(NetworkConfig { listen: vec![owner_listens.into()], ..config() }).await;
    let consumer = Node::start(NetworkConfig {
        listen: vec![consumer_listens.into()],
        bootstrap: vec![owner.listening()],
        ..config()
    })
    .await;
    consumer.connected_to(owner.address).await;
    let address = owner.address;
    let _owner = owner.echo();
    for body_bytes in [0, 1, 1024, 100_000] {
        let body = pattern(body_bytes);
        let call = consumer.handle.call(address, request(body_bytes), body.clone(), DEADLINE);
        let (reply, answer, timing) = call.await.unwrap();
        assert_eq!(reply, response(body_bytes));
        assert_eq!(answer, body);
        assert!(timing.warm);
    }
}

#[tokio::test]
async fn a_call_is_answered_over_tcp() {
    echo_between(TCP, TCP).await;
}

#[tokio::test]
async fn a_call_is_answered_over_quic_alone() {
    echo_between(QUIC, QUIC).await;
}

#[tokio::test]
async fn a_call_whose_answer_would_find_no_memory_is_not_sent() {
    let owner = Node::start(config()).await;
    let (budget, bootstrap) = (ByteBudget::new(128 * 1024), vec![owner.listening()]);
    let consumer = Node::start(NetworkConfig { budget: budget.clone(), bootstrap, ..config() }).await;
    consumer.connected_to(owner.address).await;
    let (address, asked) = (owner.address, owner.handle.clone());
    let _owner = owner.echo();
    let call =
        async || consumer.handle.call(address, request(5), Bytes::from_static(b"hello"), DEADLINE).await;
    let held = budget.take(100 * 1024);
    assert_eq!(call().await.unwrap_err(), CallFailure::NeverStarted(NotStarted::NoRoom));
    assert_eq!(asked.counters().calls_received_directly, 0);
    drop(held);
    let (_, answer, _) = call().await.unwrap();
    assert_eq!(answer, "hello");
    assert_eq!(budget.held(), 5, "as long as somebody has the answer");
    drop(answer);
    assert_eq!(budget.held(), 0);
}

#[tokio::test]
async fn a_call_that_is_given_up_before_its_first_byte_is_not_sent() {
    let owner = Node::start(config()).await;
    let consumer = Node::joined(&owner).await;
    consumer.connected_to(owner.address).await;
    let (address, asked) = (owner.address, owner.handle.clone());
    let _owner = owner.echo();
    let given_up = std::future::ready(());
    let call = consumer.handle.call_unless(address, request(3), pattern(3), DEADLINE, given_up);
    assert_eq!(call.await.unwrap_err(), CallFailure::NeverStarted(NotStarted::GivenUp));
    assert_eq!(asked.counters().calls_received_directly, 0);
    let (_, answer, _) = consumer.handle.call(address, request(3), pattern(3), DEADLINE).await.unwrap();
    assert_eq!((answer, asked.counters().calls_received_directly), (pattern(3), 1));
}

#[tokio::test]
async fn a_call_whose_answer_found_no_memory_is_sent_again_when_there_is_enough_for_all_of_it() {
    const BYTES: usize = 300 * 1024;
    let owner = Node::start(config()).await;
    let (budget, bootstrap) = (ByteBudget::new(400 * 1024), vec![owner.listening()]);
    let consumer = Node::start(NetworkConfig { budget: budget.clone(), bootstrap, ..config() }).await;
    consumer.connected_to(owner.address).await;
    let (address, asked) = (owner.address, owner.handle.clone());
    let _owner = owner.echo();
    let call = async || consumer.handle.call(address, request(BYTES), pattern(BYTES), DEADLINE).await;
    let held = budget.take(200 * 1024);
    assert_eq!(call().await.unwrap_err(), CallFailure::Unknown(Interrupted::NoRoom { bytes: BYTES }));
    // There is room to begin another answer, and not enough for this one.
    for _ in 0..3 {
        assert_eq!(call().await.unwrap_err(), CallFailure::NeverStarted(NotStarted::NoRoom));
    }
    assert_eq!((asked.counters().calls_received_directly, budget.held()), (1, 200 * 1024));
    drop(held);
    let (_, answer, _) = call().await.unwrap();
    assert_eq!((answer == pattern(BYTES), budget.held()), (true, BYTES));
    drop(answer);
    assert_eq!(budget.held(), 0);
}

#[tokio::test]
async fn a_node_on_both_transports_is_reached_by_nodes_on_either() {
    let owner = Node::start(NetworkConfig { listen: vec![TCP.into(), QUIC.into()], ..config() }).await;
    let listening = owner.handle.status().borrow().listening.clone();
    assert_eq!(listening.len(), 2);
    let address = owner.address;
    let _owner = owner.echo();
    for (transport, bootstrap) in [(TCP, &listening[0]), (QUIC, &listening[1])] {
        let consumer = Node::start(NetworkConfig {
            listen: vec![transport.into()],
            bootstrap: vec![bootstrap.clone()],
            ..config()
        })
        .await;
        consumer.connected_to(address).await;
        consumer.handle.call(address, request(3), pattern(3), DEADLINE).await.unwrap();
    }
}

#[tokio::test]
async fn large_bodies_pass_intact_over_tcp() {
    large_bodies_pass_intact(TCP).await;
}

#[tokio::test]
async fn large_bodies_pass_intact_over_quic() {
    large_bodies_pass_intact(QUIC).await;
}

async fn large_bodies_pass_intact(transport: &str) {
    let mut owner = Node::start(NetworkConfig { listen: vec![transport.into()], ..config() }).await;
    let consumer = Node::joined(&owner).await;
    let (request_body, response_body) =
        (pattern(limits::REQUEST_BODY_BYTES_MAX), pattern(limits::RESPONSE_BODY_BYTES_DEFAULT));
    let (sent, answered) = (request_body.clone(), response_body.clone());
    let address = owner.address;
    let serving = tokio::spawn(async move {
        let call = owner.calls.recv().await.unwrap();
        assert_eq!(call.body, sent);
        call.reply.send(response(answered.len()), answered);
        owner
    });
    let call = consumer.handle.call(address, request(request_body.len()), request_body, DEADLINE);
    let (_, answer, _) = call.await.unwrap();
    assert_eq!(answer, response_body);
    serving.await.unwrap();
}

#[tokio::test]
async fn the_callers_wallet_is_proven_by_its_connection() {
    let (mut owner, consumer) = Node::pair().await;
    let handle = consumer.handle.clone();
    let call =
        tokio::spawn(
            async move { handle.call(owner.address, status_question(), Bytes::new(), DEADLINE).await },
        );
    let inbound = owner.calls.recv().await.unwrap();
    assert_eq!(inbound.peer, consumer.address);
    assert_eq!(inbound.message, status_question());
    inbound.reply.send(status_answer(), Bytes::new());
    assert_eq!(call.await.unwrap().unwrap().0, status_answer());
}

#[tokio::test]
async fn the_65th_concurrent_call_of_one_peer_gets_busy() {
    let (mut owner, consumer) = Node::pair().await;
    let call = || {
        let (handle, owner) = (consumer.handle.clone(), owner.address);
        tokio::spawn(async move { handle.call(owner, status_question(), Bytes::new(), DEADLINE).await })
    };
    let max = NetworkLimits::default().inbound_calls_per_peer_max;
    let held: Vec<_> = (0..max).map(|_| call()).collect();
    let mut inbound = Vec::new();
    while inbound.len() < max {
        inbound.push(owner.calls.recv().await.unwrap());
    }
    let (reply, _, _) = call().await.unwrap().unwrap();
    let CallReply::Refused(refusal) = reply else { panic!("{reply:?}") };
    assert_eq!(refusal.code, RefusalCode::Busy);
    assert!(refusal.retry_after_ms.is_some());
    assert!(owner.calls.try_recv().is_err(), "a refused call never reaches the node");

    // One answer makes room for one call.
    inbound.pop().unwrap().reply.send(status_answer(), Bytes::new());
    until("an answer arrived", async || held.iter().any(tokio::task::JoinHandle::is_finished)).await;
    let next = call();
    owner.calls.recv().await.unwrap().reply.send(status_answer(), Bytes::new());
    assert_eq!(next.await.unwrap().unwrap().0, status_answer());
    for call in inbound {
        call.reply.send(status_answer(), Bytes::new());
    }
    for call in held {
        assert_eq!(call.await.unwrap().unwrap().0, status_answer());
    }
}

#[tokio::test]
async fn an_owner_without_a_record_is_never_called() {
    let (_owner, consumer) = Node::pair().await;
    let nobody = new_key().address();
    let call = || consumer.handle.call(nobody, status_question(), Bytes::new(), DEADLINE);
    assert_eq!(call().await.unwrap_err(), CallFailure::NeverStarted(NotStarted::NotFound(nobody)));
    // The second look-up is spared.
    let again = call().await.unwrap_err();
    assert!(matches!(again, CallFailure::NeverStarted(NotStarted::NotFoundLately(..))), "{again:?}");
    let own = consumer.handle.call(consumer.address, status_question(), Bytes::new(), DEADLINE).await;
    assert_eq!(own.unwrap_err(), CallFailure::NeverStarted(NotStarted::OwnWallet(consumer.address)));
}

#[tokio::test]
async fn a_call_to_an_unreachable_owner_never_starts() {
    let (neighbour, consumer) = Node::pair().await;
    neighbour.connected_to(consumer.address).await;
    // A record whose node does not listen.
    let (_reserved, port) = reserved_port();
    let absent = new_key();
    let record = record(&absent, 1, &[&format!("/ip4/127.0.0.1/tcp/{port}")]);
    let push = InfoRequest::Push(vec![Signed::sign(&record, &absent).unwrap()]);
    let answer = neighbour.handle.ask(consumer.address, push).await.unwrap();
    assert_eq!(answer, InfoResponse::Done);
    let call = consumer.handle.call(absent.address(), status_question(), Bytes::new(), DEADLINE);
    let failure = call.await.unwrap_err();
    assert!(matches!(failure, CallFailure::NeverStarted(NotStarted::Unreachable { .. })), "{failure:?}");
}

#[tokio::test]
async fn a_message_out_of_bounds_is_not_sent() {
    let (owner, consumer) = Node::pair().await;
    let CallMessage::Call(asked) = request(0) else { panic!("no call") };
    let too_large = CallMessage::Call(CallRequest { path: "/".repeat(limits::CALL_HEAD_BYTES_MAX), ..asked });
    for (message, body) in
        [(too_large, Bytes::new()), (request(3), pattern(4)), (status_question(), pattern(1))]
    {
        let failure = consumer.handle.call(owner.address, message, body, DEADLINE).await.unwrap_err();
        assert!(matches!(failure, CallFailure::NeverStarted(NotStarted::Message(_))), "{failure:?}");
    }
}

#[tokio::test]
async fn an_answer_after_the_deadline_leaves_the_call_unknown() {
    let (mut owner, consumer) = Node::pair().await;
    let mut deadline = std::time::Duration::from_millis(300);
    let (failure, inbound) = loop {
        let call = consumer.handle.call(owner.address, status_question(), Bytes::new(), deadline);
        let failure = call.await.unwrap_err();
        if let Ok(inbound) = owner.calls.try_recv() {
            break (failure, inbound);
        }
        // It did not get to the owner in time, which shows nothing.
        deadline *= 2;
        assert!(deadline < DEADLINE, "no call gets to the owner: {failure:?}");
    };
    assert!(matches!(failure, CallFailure::Unknown(_)), "{failure:?}");
    inbound.reply.send(status_answer(), Bytes::new());
}

#[tokio::test]
async fn an_owner_that_does_not_answer_leaves_the_call_unknown() {
    let (mut owner, consumer) = Node::pair().await;
    let call = consumer.handle.call(owner.address, status_question(), Bytes::new(), DEADLINE);
    let dropping = async { drop(owner.calls.recv().await.unwrap()) };
    let (result, ()) = tokio::join!(call, dropping);
    assert!(matches!(result.unwrap_err(), CallFailure::Unknown(_)));
}

#[tokio::test]
async fn questions_reach_the_node_and_come_back() {
    let (mut owner, consumer) = Node::pair().await;
    let blob = pattern(limits::INFO_RESPONSE_BYTES_MAX - 64).to_vec();
    let answer = InfoResponse::Blob(Some(blob.into()));
    let question = InfoRequest::Blob([7; 32]);
    let asking = consumer.handle.ask(owner.address, question.clone());
    let answering = async {
        let inbound = owner.info.recv().await.unwrap();
        assert_eq!((inbound.peer, &inbound.request), (consumer.address, &question));
        inbound.reply.send(answer.clone());
    };
    assert_eq!(tokio::join!(asking, answering).0.unwrap(), answer);
    assert!(consumer.handle.ping(owner.address).await.is_ok());
}

#[tokio::test]
async fn calls_one_after_the_other_share_a_stream_and_many_at_once_open_no_more_than_that() {
    let (owner, consumer) = Node::pair().await;
    let address = owner.address;
    let owner = owner.echo();
    let call =
        async || consumer.handle.call(address, request(5), Bytes::from_static(b"hello"), DEADLINE).await;
    for _ in 0..100 {
        assert_eq!(call().await.unwrap().1, "hello");
    }
    assert_eq!(consumer.handle.counters().call_streams_opened, 1);
    for _ in 0..10 {
        let at_once = futures::future::join_all((0..16).map(|_| call())).await;
        assert!(at_once.into_iter().all(|answer| answer.unwrap().1 == "hello"));
    }
    assert!(consumer.handle.counters().call_streams_opened <= 16);
    assert_eq!(owner.counters().calls_received_directly, 260);
}

#[tokio::test]
async fn an_owner_that_ends_streams_at_rest_at_once_loses_no_call() {
    let limits =
        NetworkLimits { stream_rest_max: std::time::Duration::from_millis(1), ..NetworkLimits::default() };
    let owner = Node::start(NetworkConfig { limits, ..config() }).await;
    let consumer = Node::joined(&owner).await;
    let address = owner.address;
    let _owner = owner.echo();
    for _ in 0..20 {
        // Far longer than the owner waits, and than its end needs to come. In steps: where this machine stands still, the time of
        // one passes at once, and both sides are awake together at its end.
        for _ in 0..25 {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        consumer.handle.call(address, request(0), Bytes::new(), DEADLINE).await.unwrap();
    }
    assert_eq!(consumer.handle.counters().calls_unknown, 0);
    assert!(consumer.handle.counters().call_streams_opened > 1, "and the streams did end");
}
