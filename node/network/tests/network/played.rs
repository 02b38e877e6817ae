//! Lines that are played: they say of each call what real ones say, and what becomes of a message is up to whoever plays.

use std::time::Duration;

use bytes::Bytes;
use farthing_bounds::ByteBudget;
use farthing_network::{
    CallFailure, CallTiming, InboundCall, Interrupted, NetworkConfig, NetworkHandle, NetworkLimits,
    NotStarted, Origin, PlayedCall,
};
use farthing_protocol::{Address, CallReply};
use tokio::{sync::mpsc, time::Instant};

use crate::support::{
    DEADLINE, Node, config, new_key, pattern, request, response, status_answer, status_question,
};

const BUDGET_BYTES: usize = 400 * 1024;
const LARGE_BYTES: usize = 300 * 1024;

/// A caller with room for one call at once, and the calls that arrive at an owner.
struct Line {
    consumer: NetworkHandle,
    owner: Address,
    calls: mpsc::Receiver<InboundCall>,
    budget: ByteBudget,
    _nodes: Vec<Node>,
}

fn modest(budget: &ByteBudget) -> NetworkConfig {
    let limits = NetworkLimits { outbound_calls_per_peer_max: 1, ..NetworkLimits::default() };
    NetworkConfig { budget: budget.clone(), limits, ..config() }
}

async fn real() -> Line {
    let mut owner = Node::start(config()).await;
    let budget = ByteBudget::new(BUDGET_BYTES);
    let bootstrap = vec![owner.listening()];
    let consumer = Node::start(NetworkConfig { bootstrap, ..modest(&budget) }).await;
    consumer.connected_to(owner.address).await;
    let calls = std::mem::replace(&mut owner.calls, mpsc::channel(1).1);
    let (handle, address) = (consumer.handle.clone(), owner.address);
    Line { consumer: handle, owner: address, calls, budget, _nodes: vec![owner, consumer] }
}

fn played() -> Line {
    let (budget, owner) = (ByteBudget::new(BUDGET_BYTES), new_key().address());
    let (consumer, line, messages) = NetworkHandle::played(&modest(&budget));
    line.connect_to([owner]);
    let (arriving, calls) = mpsc::channel(16);
    tokio::spawn(carry(consumer.own_address(), messages, arriving));
    Line { consumer, owner, calls, budget, _nodes: Vec::new() }
}

/// A network that does what it should.
async fn carry(
    caller: Address,
    mut messages: mpsc::Receiver<PlayedCall>,
    arriving: mpsc::Sender<InboundCall>,
) {
    let origin = Origin { number: 0, since: Instant::now() };
    while let Some(message) = messages.recv().await {
        let arriving = arriving.clone();
        tokio::spawn(async move {
            let exchange = message.leave();
            let (call, answer) = exchange.arrive(caller, false, origin);
            if arriving.send(call).await.is_ok()
                && let Ok((reply, body)) = answer.await
            {
                exchange.answer(reply, body);
            }
        });
    }
}

/// The kind of a call's end, in so many words.
fn end(words: usize, result: Result<(CallReply, Bytes, CallTiming), CallFailure>) -> String {
    let Err(failure) = result else { return "answered".to_owned() };
    let text = format!("{failure:?}");
    let all = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    all.take(words).collect::<Vec<_>>().join(" ")
}

/// The ends of one call of each kind.
async fn ends(line: &mut Line) -> Vec<(&'static str, String)> {
    let Line { consumer, owner, calls, budget, .. } = line;
    let (owner, nothing) = (*owner, Bytes::new);
    let ask = async || consumer.call(owner, status_question(), nothing(), DEADLINE).await;
    let mut ends = Vec::new();

    let own = consumer.call(consumer.own_address(), status_question(), nothing(), DEADLINE).await;
    ends.push(("to its own wallet", end(2, own)));
    let nobody = consumer.call(new_key().address(), status_question(), nothing(), DEADLINE).await;
    ends.push(("to nobody", end(2, nobody)));
    let other_body = consumer.call(owner, request(3), pattern(4), DEADLINE).await;
    ends.push(("with another body", end(2, other_body)));
    let too_late = consumer.call(owner, status_question(), nothing(), Duration::ZERO).await;
    ends.push(("without time", end(2, too_late)));

    let held = budget.take(BUDGET_BYTES - 50 * 1024).unwrap();
    ends.push(("without memory", end(2, ask().await)));
    drop(held);

    let answering = async {
        let call = calls.recv().await.unwrap();
        // The only place is taken.
        let second = ask().await;
        call.reply.send(status_answer(), nothing());
        second
    };
    let (first, second) = tokio::join!(ask(), answering);
    ends.push(("beside another", end(2, second)));
    ends.push(("answered", end(2, first)));

    let dropping = async { drop(calls.recv().await.unwrap()) };
    let (dropped, ()) = tokio::join!(ask(), dropping);
    // Real ones tell an end from a break, which is all the same to who asked.
    ends.push(("without an answer", end(1, dropped)));

    let held = budget.take(BUDGET_BYTES / 2).unwrap();
    let call = async || consumer.call(owner, request(0), nothing(), DEADLINE).await;
    let answering = async {
        let call = calls.recv().await.unwrap();
        call.reply.send(response(LARGE_BYTES), pattern(LARGE_BYTES));
    };
    let (missed, ()) = tokio::join!(call(), answering);
    ends.push(("with an answer that is too large", end(2, missed)));
    ends.push(("the same again", end(2, call().await)));
    drop(held);

    let mut deadline = Duration::from_millis(300);
    let (silent, _unanswered) = loop {
        let silent = consumer.call(owner, status_question(), nothing(), deadline).await;
        if let Ok(call) = calls.try_recv() {
            break (silent, call);
        }
        // It did not get to the owner in time, which shows nothing.
        deadline *= 2;
        assert!(deadline < DEADLINE, "no call gets to the owner: {silent:?}");
    };
    ends.push(("to a silent owner", end(2, silent)));
    ends
}

#[tokio::test]
async fn a_line_that_is_played_says_of_each_call_what_a_real_one_says() {
    let of_real = ends(&mut real().await).await;
    let of_played = ends(&mut played()).await;
    assert_eq!(of_played, of_real);
    let of = |what: &str| of_real.iter().find(|(kind, _)| *kind == what).map(|(_, end)| end.as_str());
    assert_eq!(of("to a silent owner"), Some("Unknown Deadline"));
    assert_eq!(of("without time"), Some("NeverStarted Deadline"));
    assert_eq!(of("with an answer that is too large"), Some("Unknown NoRoom"));
    assert_eq!(of("the same again"), Some("NeverStarted NoRoom"));
}

#[tokio::test]
async fn a_message_is_lost_before_or_after_it_left_and_arrives_as_often_as_it_is_played() {
    let owner = new_key().address();
    let (consumer, line, mut messages) = NetworkHandle::played(&config());
    let ask = async || consumer.call(owner, status_question(), Bytes::new(), DEADLINE).await;
    assert_eq!(consumer.connect(owner).await, Err(NotStarted::NotFound(owner)));
    line.connect_to([owner]);
    assert_eq!(consumer.connect(owner).await, Ok(()));
    assert_eq!(consumer.connected_peers().await, [owner]);

    let (dropped, ()) = tokio::join!(ask(), async { drop(messages.recv().await.unwrap()) });
    assert_eq!(dropped.unwrap_err(), CallFailure::NeverStarted(NotStarted::NotConnected(owner)));
    let (failed, ()) =
        tokio::join!(ask(), async { messages.recv().await.unwrap().fail(NotStarted::Offline(owner)) });
    assert_eq!(failed.unwrap_err(), CallFailure::NeverStarted(NotStarted::Offline(owner)));
    let (lost, ()) = tokio::join!(ask(), async {
        let mut exchange = messages.recv().await.unwrap().leave();
        exchange.break_off(Interrupted::NoAnswer);
        let (late, _) =
            exchange.arrive(consumer.own_address(), false, Origin { number: 6, since: Instant::now() });
        assert_eq!(late.message, status_question(), "it may still arrive");
    });
    assert_eq!(lost.unwrap_err(), CallFailure::Unknown(Interrupted::NoAnswer));

    let (answered, ()) = tokio::join!(ask(), async {
        let message = messages.recv().await.unwrap();
        assert_eq!((message.owner(), message.message()), (owner, &status_question()));
        let exchange = message.leave();
        let origin = Origin { number: 7, since: Instant::now() };
        let [(first, _), (second, answer)] =
            [(); 2].map(|()| exchange.arrive(consumer.own_address(), true, origin));
        assert_eq!((first.message, first.peer), (second.message, second.peer));
        assert!(second.reply.send(status_answer(), Bytes::new()));
        let (reply, body) = answer.await.unwrap();
        exchange.answer(reply, body);
    });
    assert_eq!(answered.unwrap().0, status_answer());

    consumer.accuse(owner);
    consumer.favour([owner]);
    assert_eq!((line.accused(), line.favours(owner)), (vec![owner], true));
}
