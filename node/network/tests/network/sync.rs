//! Sessions between catalogs: frames in both directions, within bounds.

use std::time::Duration;

use bytes::Bytes;
use farthing_network::{NetworkConfig, NetworkLimits, SyncEnded};
use farthing_protocol::limits::SYNC_FRAME_BYTES_MAX;

use crate::{
    raw::{self, raw_peer, wallet_keypair},
    support::{DEADLINE, Node, config, network, new_key, pattern, until},
};

async fn pair(limits: NetworkLimits) -> (Node, Node) {
    let answering = Node::start(NetworkConfig { limits, ..config() }).await;
    let asking = Node::joined(&answering).await;
    (asking, answering)
}

#[tokio::test]
async fn a_session_carries_frames_both_ways_until_one_side_closes_it() {
    let (asking, mut answering) = pair(NetworkLimits::default()).await;
    let mut session = asking.handle.sync(answering.address).await.unwrap();
    let frames = [0, 1, 1000, SYNC_FRAME_BYTES_MAX].map(pattern);
    session.send(frames[0].clone()).await.unwrap();
    let inbound = answering.syncs.recv().await.unwrap();
    assert_eq!(inbound.peer, asking.address);
    let echo = tokio::spawn(async move {
        let mut stream = inbound.stream;
        while let Some(frame) = stream.recv().await {
            stream.send(frame).await.unwrap();
        }
        stream.close().await;
    });
    assert_eq!(session.recv().await, Some(frames[0].clone()));
    for frame in &frames[1..] {
        session.send(frame.clone()).await.unwrap();
        assert_eq!(session.recv().await.as_ref(), Some(frame));
    }
    session.close().await;
    echo.await.unwrap();
}

#[tokio::test]
async fn a_frame_above_the_limit_is_not_sent() {
    let (asking, answering) = pair(NetworkLimits::default()).await;
    let mut session = asking.handle.sync(answering.address).await.unwrap();
    let frame = Bytes::from(vec![0; SYNC_FRAME_BYTES_MAX + 1]);
    assert_eq!(session.send(frame).await, Err(SyncEnded));
}

#[tokio::test]
async fn one_session_per_peer_and_so_many_in_all() {
    // Half of them are for peers with open channels, and nobody has to make room.
    let limits = NetworkLimits {
        inbound_syncs_max: 4,
        sync_quiet_max: Duration::from_secs(600),
        sync_turn_max: Duration::from_secs(600),
        ..NetworkLimits::default()
    };
    let (first, mut answering) = pair(limits).await;
    let second = Node::joining(&[&answering]).await;
    let third = Node::joining(&[&answering]).await;
    let mut kept = Vec::new();
    for (node, has_a_place) in [(&first, true), (&first, false), (&second, true), (&third, false)] {
        node.connected_to(answering.address).await;
        let mut session = node.handle.sync(answering.address).await.unwrap();
        // A stream that was refused may be reset before or after the first frame.
        let _ = session.send(pattern(1)).await;
        if has_a_place {
            let inbound = answering.syncs.recv().await.unwrap();
            assert_eq!(inbound.peer, node.address);
            kept.push((session, inbound));
        } else {
            assert_eq!(session.recv().await, None);
        }
    }
    // A session that ends makes room.
    kept.clear();
    let mut again = third.handle.sync(answering.address).await.unwrap();
    again.send(pattern(1)).await.unwrap();
    assert_eq!(answering.syncs.recv().await.unwrap().peer, third.address);
}

#[tokio::test]
async fn eight_silent_wallets_keep_nobody_from_comparing_catalogs() {
    // Nothing but their silence ends their sessions while the test waits.
    let limits = NetworkLimits {
        sync_quiet_max: Duration::from_millis(100),
        sync_turn_max: Duration::from_secs(600),
        sync_idle_max: Duration::from_secs(600),
        sync_session_max: Duration::from_secs(600),
        ..NetworkLimits::default()
    };
    let mut answering = Node::start(NetworkConfig { limits, ..config() }).await;
    let mut silent = Vec::new();
    for _ in 0..8 {
        let wallet = Node::joined(&answering).await;
        let mut session = wallet.handle.sync(answering.address).await.unwrap();
        session.send(pattern(1)).await.unwrap();
        let mut inbound = answering.syncs.recv().await.unwrap();
        assert!(inbound.stream.recv().await.is_some());
        // The node waits for what comes next, which never does.
        let waiting = tokio::spawn(async move { inbound.stream.recv().await });
        silent.push((wallet, session, waiting));
    }
    let honest = Node::joined(&answering).await;
    let (peer, address) = (honest.handle.clone(), answering.address);
    let asking = tokio::spawn(async move {
        loop {
            let mut session = peer.sync(address).await.unwrap();
            // Ends at once without a place, and never with one.
            let _ = session.send(pattern(2)).await;
            session.recv().await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let inbound = tokio::time::timeout(DEADLINE, answering.syncs.recv()).await.expect("it has a place");
    assert_eq!(inbound.unwrap().peer, honest.address);
    asking.abort();
}

#[tokio::test]
async fn silence_and_endless_talk_both_end_a_session() {
    let limits = NetworkLimits {
        sync_idle_max: Duration::from_millis(100),
        sync_session_max: Duration::from_millis(400),
        ..NetworkLimits::default()
    };
    let (asking, mut answering) = pair(limits).await;
    let mut late = 0;
    let (session, mut silent) = loop {
        let mut session = asking.handle.sync(answering.address).await.unwrap();
        session.send(pattern(1)).await.unwrap();
        let mut inbound = answering.syncs.recv().await.unwrap().stream;
        // Where this machine stands still for so long, what was sent comes too late as well, and it is sent again.
        if inbound.recv().await.is_some() {
            break (session, inbound);
        }
        late += 1;
        assert!(late < 10, "no frame arrives");
    };
    assert_eq!(silent.recv().await, None, "nothing came for a while");
    drop((session, silent));

    let mut session = asking.handle.sync(answering.address).await.unwrap();
    let talking = tokio::spawn(async move {
        while session.send(pattern(1)).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let mut talkative = answering.syncs.recv().await.unwrap().stream;
    while talkative.recv().await.is_some() {}
    drop(talkative);
    talking.await.unwrap();
}

#[tokio::test]
async fn a_frame_that_announces_too_much_is_not_read_and_held_against_its_sender() {
    let mut node = Node::start(config()).await;
    let mut stranger = raw_peer(wallet_keypair(&new_key()), network().identify_version(), &[]);
    raw::connect(&mut stranger, &node.listening()).await;
    let serving = tokio::spawn(async move {
        let mut unread = 0;
        while unread < 5
            && let Some(mut inbound) = node.syncs.recv().await
        {
            assert_eq!(inbound.stream.recv().await, None);
            unread += 1;
        }
        node
    });
    let length = u32::try_from(SYNC_FRAME_BYTES_MAX + 1).unwrap().to_be_bytes();
    for _ in 0..5 {
        raw::synchronise(&mut stranger, length.to_vec()).await;
    }
    let node = serving.await.unwrap();
    until("it is blocked", async || node.handle.counters().peers_blocked == 1).await;
}
