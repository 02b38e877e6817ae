//! A peer that falls silent on its streams: before it has said anything, or within a frame.

use futures::future::join_all;

use super::*;

const OWNER: u8 = 30;
/// As many as one peer may have under way here.
const STREAMS: usize = 8;
/// The node's patience: a whole frame comes in time on a busy machine, too.
const SOON: Duration = Duration::from_secs(4);

/// A stream whose first call was answered, so that it rests.
async fn after_its_first_call(stranger: &Stranger) -> Line {
    let mut line = stranger.open(OWNER).await;
    send(&mut line, &frame(FrameKind::Request, false, 1, &wire::encode(&question(1)), &[])).await;
    let (beginning, answer) = read_reply(&mut line).await.unwrap();
    assert_eq!((beginning.is_last, answer), (false, CallReply::Status(CallStatus::Unknown)));
    line
}

#[tokio::test]
async fn eight_streams_that_say_nothing_or_half_a_frame_are_given_up_and_serve_nothing() {
    let limits = NetworkLimits {
        inbound_streams_per_peer_max: STREAMS,
        inbound_streams_max: 2 * STREAMS,
        head_deadline: SOON,
        body_idle_max: SOON,
        ..NetworkLimits::default()
    };
    let (node, Inbound { mut calls, .. }) =
        Network::start(NetworkConfig { limits, ..config(OWNER) }).await.unwrap();
    let (seen, mut served) = mpsc::channel(64);
    tokio::spawn(async move {
        while let Some(call) = calls.recv().await {
            seen.try_send(call.message).unwrap();
            call.reply.send(CallReply::Status(CallStatus::Unknown), Bytes::new());
        }
    });
    let address = node.status().borrow().listening[0].clone();
    let stranger = Stranger::start(31, Some(&address)).await;

    let mut silent = Vec::new();
    for _ in 0..STREAMS {
        silent.push(stranger.open(OWNER).await);
    }
    let ends = join_all(silent.iter_mut().map(read_frame)).await;
    assert!(ends.iter().all(Option::is_none), "{ends:?}");

    // Their places are free again. A stream that rests takes none, nor does half of the beginning of a frame.
    let mut rested = Vec::new();
    for _ in 0..STREAMS {
        rested.push(after_its_first_call(&stranger).await);
    }
    let (body, begun) = (b"body", FrameHead::BYTES / 2);
    let head = wire::encode(&request(7, body));
    let whole = frame(FrameKind::Request, false, 2, &head, body);
    for line in &mut rested {
        send(line, &whole[..begun]).await;
    }
    drop(after_its_first_call(&stranger).await);

    let (head_begins, body_begins) = (FrameHead::BYTES, FrameHead::BYTES + head.len());
    let cuts = [
        head_begins,
        head_begins + 1,
        head_begins + head.len() / 2,
        body_begins - 1,
        body_begins,
        body_begins + 1,
        body_begins + 2,
        body_begins + 3,
    ];
    for (line, cut) in rested.iter_mut().zip(cuts) {
        send(line, &whole[begun..cut]).await;
    }
    for (line, cut) in rested.iter_mut().zip(cuts) {
        let (beginning, answer) = read_reply(line).await.unwrap_or_else(|| panic!("no word after {cut}"));
        assert_eq!((beginning.number, beginning.is_last), (2, true), "{cut}");
        let is_refused = matches!(&answer, CallReply::Refused(why) if why.code == RefusalCode::Malformed);
        assert!(is_refused, "{cut}: {answer:?}");
        assert!(read_reply(line).await.is_none(), "{cut}: the stream goes on");
    }
    assert_eq!(node.counters().requests_unread, 2 * STREAMS as u64);
    drop(after_its_first_call(&stranger).await);
    while let Ok(message) = served.try_recv() {
        assert_eq!(message, question(1), "nothing that came in part");
    }
}
