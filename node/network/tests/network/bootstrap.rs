//! Configured peers: what came of each is told, and what to do about it.

use farthing_network::{BootstrapState, NetworkConfig};
use farthing_protocol::wire::NetworkName;

use crate::support::{Node, config, network, new_key, reserved_port, until};

#[tokio::test]
async fn every_configured_address_is_told_of_with_what_came_of_it() {
    let good = Node::start(config()).await;
    let other_name = NetworkName::new("local-other").unwrap();
    let foreign = Node::start(NetworkConfig { network: other_name, ..config() }).await;
    let expected = new_key();
    let (_reserved, closed_port) = reserved_port();
    let (_own, own_port) = reserved_port();
    let bootstrap = vec![
        good.listening(),
        format!("/ip4/127.0.0.1/tcp/{closed_port}"),
        format!("{}/p2p/{}", good.listening(), expected.public_key().peer_id()),
        foreign.listening(),
        format!("/ip4/127.0.0.1/tcp/{own_port}"),
    ];
    let listen = vec![format!("/ip4/127.0.0.1/tcp/{own_port}")];
    let node = Node::start(NetworkConfig { listen, bootstrap: bootstrap.clone(), ..config() }).await;
    let states = || {
        let report = node.handle.status().borrow().bootstrap.clone();
        report.into_iter().map(|peer| peer.state).collect::<Vec<_>>()
    };
    until("every address was tried", async || {
        states().iter().all(|state| !matches!(state, BootstrapState::Trying | BootstrapState::Closed))
    })
    .await;
    let [first, refused, other_wallet, other_network, own] = &states()[..] else {
        panic!("{:?}", states());
    };
    assert_eq!(*first, BootstrapState::Connected { wallet: good.address });
    assert_eq!(*refused, BootstrapState::Refused);
    let (expected, found) = (expected.address(), good.address);
    assert_eq!(*other_wallet, BootstrapState::OtherWallet { expected, found });
    assert_eq!(*other_network, BootstrapState::OtherNetwork { name: Some("local-other".to_owned()) });
    assert_eq!(*own, BootstrapState::OwnWallet);
    let told: Vec<String> =
        node.handle.status().borrow().bootstrap.iter().map(|peer| peer.address.clone()).collect();
    assert_eq!(told, bootstrap);
}

#[tokio::test]
async fn an_address_where_the_own_wallet_answers_is_told_of_and_dialled_no_more() {
    let key = new_key();
    let first = Node::start(NetworkConfig { key: key.clone(), ..config() }).await;
    let bootstrap = vec![first.listening()];
    let copy = Node::start(NetworkConfig { key, network: network(), bootstrap, ..config() }).await;
    let mut status = copy.handle.status();
    let is_own = |peers: &[farthing_network::BootstrapPeer]| peers[0].state == BootstrapState::OwnWallet;
    status.wait_for(|status| is_own(&status.bootstrap)).await.unwrap();
    // Nobody dialled it meanwhile, so it did not meet itself.
    status.wait_for(|status| status.duplicate_identity).await.unwrap();
}

#[tokio::test]
async fn a_configured_peer_that_goes_away_is_told_of_and_taken_back() {
    let (_reserved, port) = reserved_port();
    let listen = vec![format!("/ip4/127.0.0.1/tcp/{port}")];
    let settings = NetworkConfig { listen: listen.clone(), ..config() };
    let peer = Node::start(settings.clone()).await;
    let node = Node::start(NetworkConfig { bootstrap: listen, ..config() }).await;
    let mut status = node.handle.status();
    let connected = BootstrapState::Connected { wallet: peer.address };
    status.wait_for(|status| status.bootstrap[0].state == connected).await.unwrap();
    peer.handle.shutdown().await;
    drop(peer);
    status.wait_for(|status| !status.bootstrap[0].state.is_connected()).await.unwrap();
    let _peer = Node::start(settings).await;
    status.wait_for(|status| status.bootstrap[0].state == connected).await.unwrap();
}
