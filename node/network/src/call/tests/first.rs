//! First calls to an owner whose record is known, over a connection on which it has not said yet who it is.

use farthing_protocol::{NodeRecord, Signed, limits, record::FLAG_CALL_STREAMS};

use super::*;
use crate::NotStarted;

/// A peer that takes the question who it is, and says nothing to it.
#[derive(NetworkBehaviour)]
struct Unidentified {
    identify: StreamsBehaviour,
    call: StreamsBehaviour,
}

fn taking(protocol: String, lines: mpsc::Sender<Line>) -> StreamsBehaviour {
    let protocol = StreamProtocol::try_from_owned(protocol).unwrap();
    let accept = Arc::new(move |_, stream| drop(lines.try_send(stream)));
    StreamsBehaviour::new(protocol, accept, Usage::default())
}

/// One that takes streams of this protocol beside.
async fn unidentified(number: u8, protocol: String) -> Stranger {
    let (questions, held) = mpsc::channel(16);
    let (line, opened) = mpsc::channel(16);
    let (openings, _) = mpsc::channel(1);
    let behaviour = Unidentified {
        identify: taking(identify::PROTOCOL_NAME.to_string(), questions),
        call: taking(protocol, line),
    };
    let mut swarm = SwarmBuilder::with_existing_identity(identity::keypair(&key(number)).unwrap())
        .with_tokio()
        .with_tcp(tcp::Config::new(), noise::Config::new, yamux::Config::default)
        .unwrap()
        .with_behaviour(|_| behaviour)
        .unwrap()
        .with_swarm_config(|config| config.with_idle_connection_timeout(PATIENCE))
        .build();
    swarm.listen_on("/ip4/127.0.0.1/tcp/0".parse().unwrap()).unwrap();
    while swarm.listeners().next().is_none() {
        swarm.select_next_some().await;
    }
    let address = swarm.listeners().next().unwrap().to_string();
    tokio::spawn(async move {
        let _held = held;
        loop {
            swarm.select_next_some().await;
        }
    });
    Stranger { wallet: key(number).address(), address, opened: Mutex::new(opened), openings }
}

/// A node that has the owner's record, which says that it takes calls on streams that are kept.
async fn knowing(owner: &Stranger, owner_number: u8, number: u8) -> (NetworkHandle, Inbound) {
    let (node, inbound) = Network::start(config(number)).await.unwrap();
    let now_secs = crate::now_secs();
    let record = NodeRecord {
        network: network().as_str().to_owned(),
        public_key: key(owner_number).public_key(),
        net_key: None,
        seq: 1,
        issued_secs: now_secs,
        expires_secs: now_secs + 3600,
        flags: FLAG_CALL_STREAMS,
        protocol_min: 1,
        protocol_max: 1,
        addresses: vec![owner.address.parse::<Multiaddr>().unwrap().to_vec().into()],
        listings_count: 0,
        listings_root: [0; 32],
        agent: String::new(),
    };
    node.0.remember(&Signed::sign(&record, &key(owner_number)).unwrap().verify().unwrap());
    (node, inbound)
}

#[tokio::test]
async fn a_first_call_by_a_valid_record_does_not_wait_until_the_owner_has_said_who_it_is() {
    let owner = unidentified(40, network().call_stream_protocol()).await;
    let (node, _inbound) = knowing(&owner, 40, 41).await;
    let (answer, _line) = tokio::join!(ask(&node, &owner), answer_one(&owner));
    assert_eq!(answer.unwrap(), CallReply::Status(CallStatus::Unknown));
    assert!(node.connected_peers().await.is_empty(), "it has not said so by now");
}

#[tokio::test]
async fn what_was_sent_ahead_to_an_owner_that_takes_no_such_calls_was_never_started() {
    let owner = unidentified(42, "/another/1".to_owned()).await;
    let (node, _inbound) = knowing(&owner, 42, 43).await;
    // The second one is being written when the owner says so.
    for body in [Vec::new(), vec![7; limits::REQUEST_BODY_BYTES_MAX]] {
        let message = request(1, &body);
        let failure = node.call(owner.wallet, message, body.into(), PATIENCE).await.unwrap_err();
        assert_eq!(failure, CallFailure::NeverStarted(NotStarted::Unsupported));
    }
}
