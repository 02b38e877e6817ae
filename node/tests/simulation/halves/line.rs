//! The network between the two nodes: a message is lost before it leaves or after, overtakes one of another call, comes late over a
//! connection that its sender has given up, or waits for a dead one; an answer is lost; nothing gets through for minutes. A stranger
//! that has seen a message sends the same before it, and gets nothing by it. Nothing else happens between them, unless one side breaks the rules (`hostile.rs`).

use std::time::Duration;

use bytes::Bytes;
use farthing_network::{Interrupted, NotStarted, Origin, PlayedCall, PlayedExchange};
use farthing_protocol::{
    Address, CallMessage, CallReply, CallRequest,
    call::{CallStatus, ChannelSync, Payment},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep, sleep_until},
};

use super::{
    hostile::ask_for_another,
    state::{Shared, State, number},
};

/// Until a line that says nothing is found dead.
const FOUND_DEAD: Duration = Duration::from_secs(9);

/// A wallet without a channel.
const STRANGER: Address = Address::from_bytes([0x7e; 20]);

/// What becomes of one message.
enum Fate {
    Unsent,
    /// The connection breaks, as its sender sees after a while. The message arrives then, or never.
    Broken {
        seen: Duration,
        arrives: Option<Duration>,
    },
    Silent,
    Carried {
        arrives: Instant,
        back: Duration,
        is_answer_lost: bool,
    },
}

impl Shared {
    /// The usual time of a message on its way.
    fn way(&mut self) -> Duration {
        self.millis(1, self.usual.way_ms_max)
    }

    /// Of a message of a call, or of none.
    fn fate(&mut self, call: Option<u64>) -> Fate {
        if self.is_cut {
            return Fate::Unsent;
        }
        let kind = if self.has_faults { self.choices.below(100) } else { 100 };
        match kind {
            0..4 => Fate::Unsent,
            4..10 => Fate::Broken { seen: self.millis(20, 500), arrives: None },
            10..16 => Fate::Broken { seen: self.millis(20, 500), arrives: Some(self.millis(0, 4_400)) },
            16..19 => Fate::Silent,
            _ => {
                let takes = if kind < 24 { self.millis(500, 3_000) } else { self.way() };
                let (arrives, back) = (self.arrival(call, takes), self.way());
                Fate::Carried { arrives, back, is_answer_lost: (24..34).contains(&kind) }
            }
        }
    }
}

/// Carries what one run of the consumer sends.
pub async fn carry(state: State, caller: Address, run: u64, mut messages: mpsc::Receiver<PlayedCall>) {
    while let Some(message) = messages.recv().await {
        tokio::spawn(Passage::begin(&state, caller, run, call_of(message.message())).deliver(message));
    }
}

/// One message on its way.
struct Passage {
    state: State,
    caller: Address,
    /// Of the consumer, to tell one start of it from the next.
    run: u64,
    origin: Origin,
    /// The owner that it left for; one that starts later never hears of it.
    owner_run: u64,
    is_owner_there: bool,
    fate: Fate,
}

impl Passage {
    fn begin(state: &State, caller: Address, run: u64, call: Option<u64>) -> Self {
        let mut shared = state.lock();
        let (origin, owner_run, is_owner_there) =
            (shared.connection.origin, shared.run, shared.owner.is_some());
        let fate = shared.fate(call);
        drop(shared);
        Self { state: state.clone(), caller, run, origin, owner_run, is_owner_there, fate }
    }

    fn tell(&self, what: &str, message: &str) {
        self.state.tell(format!("{message} of run {}: {what}", self.run));
    }

    async fn deliver(self, message: PlayedCall) {
        let (words, owner) = (said(message.message()), message.owner());
        if !self.is_owner_there {
            self.tell("the owner is away", &words);
            return message.fail(NotStarted::Offline(owner));
        }
        match self.fate {
            Fate::Unsent => {
                self.tell("is not sent", &words);
                message.fail(NotStarted::NotConnected(owner));
            }
            Fate::Broken { seen, arrives } => {
                let mut exchange = message.leave();
                sleep(seen).await;
                self.tell("its connection breaks", &words);
                self.reconnect();
                exchange.break_off(broken());
                let Some(arrives) = arrives else { return };
                sleep(arrives).await;
                if let Some(answer) = self.arrive(&exchange, &words).await {
                    // Nobody hears it. What came of the call is seen where it is asked for.
                    drop(answer.await);
                }
            }
            Fate::Silent => {
                let mut exchange = message.leave();
                sleep(FOUND_DEAD).await;
                self.tell("nothing came back", &words);
                self.reconnect();
                exchange.break_off(broken());
            }
            Fate::Carried { arrives, back, is_answer_lost } => {
                let mut exchange = message.leave();
                sleep_until(arrives).await;
                let answer = match self.arrive(&exchange, &words).await {
                    Some(answer) => answer.await.ok(),
                    None => None,
                };
                sleep(back).await;
                let is_heard = !is_answer_lost && !self.state.lock().is_cut;
                match answer {
                    Some((mut reply, mut body)) if is_heard => {
                        {
                            let mut shared = self.state.lock();
                            if let CallReply::Channel(ChannelSync { close, .. }) = &reply {
                                shared.closes.extend(close);
                            }
                            shared.answer_otherwise(&mut reply, &mut body);
                        }
                        self.tell(&format!("brings {}", answered(&reply)), &words);
                        exchange.answer(reply, body);
                    }
                    Some((reply, _)) => {
                        self.tell(&format!("{} is lost", answered(&reply)), &words);
                        self.reconnect();
                        exchange.break_off(Interrupted::NoAnswer);
                    }
                    None => {
                        self.tell("nobody answers", &words);
                        exchange.break_off(broken());
                    }
                }
            }
        }
    }

    /// Where the answer comes out, unless the owner that it left for is gone.
    async fn arrive(
        &self,
        exchange: &PlayedExchange,
        words: &str,
    ) -> Option<oneshot::Receiver<(CallReply, Bytes)>> {
        let calls = {
            let shared = self.state.lock();
            let is_reached = shared.run == self.owner_run && !shared.is_cut;
            let owner = shared.owner.as_ref().filter(|_| is_reached);
            owner.map(|owner| owner.calls.clone())
        }?;
        self.tell("arrives", words);
        let (stolen, told) = exchange.arrive(STRANGER, false, self.origin);
        calls.send(stolen).await.ok()?;
        tokio::spawn(nothing_given(self.state.clone(), words.to_owned(), told));
        let (mut call, answer) = exchange.arrive(self.caller, true, self.origin);
        let has_another = {
            let mut shared = self.state.lock();
            let has_another = shared.ask_otherwise(&mut call.message);
            if let CallMessage::Call(CallRequest {
                call_id, payment: Payment::Channel { channel, .. }, ..
            }) = &call.message
            {
                shared.note_arrival(number(*call_id), *channel);
            }
            has_another
        };
        calls.send(call).await.ok()?;
        if has_another {
            let (mut other, unheard) = exchange.arrive(self.caller, true, self.origin);
            ask_for_another(&mut other);
            calls.send(other).await.ok()?;
            tokio::spawn(async move { drop(unheard.await) });
        }
        Some(answer)
    }

    fn reconnect(&self) {
        let mut shared = self.state.lock();
        // Others have seen the same.
        if shared.connection.origin == self.origin {
            shared.reconnect();
        }
    }
}

/// Notes if a stranger is told more than that the owner knows nothing of its call.
async fn nothing_given(state: State, words: String, told: oneshot::Receiver<(CallReply, Bytes)>) {
    let Ok((reply, _)) = told.await else { return };
    let is_given = match &reply {
        CallReply::Refused(_) | CallReply::Sponsor(_) => false,
        CallReply::Status(status) => matches!(status, CallStatus::Done { .. }),
        CallReply::Calls(page) => !page.records.is_empty(),
        CallReply::Response(_) | CallReply::Channel(_) => true,
    };
    if is_given {
        state.lock().broken.push(format!("a stranger sends a {words} and gets {}", answered(&reply)));
    }
}

fn broken() -> Interrupted {
    Interrupted::ConnectionLost("it broke".to_owned())
}

/// The number of the call that a message is about.
fn call_of(message: &CallMessage) -> Option<u64> {
    match message {
        CallMessage::Call(request) => Some(number(request.call_id)),
        CallMessage::Status(id) => Some(number(*id)),
        CallMessage::Sync(..) | CallMessage::Close(..) | CallMessage::Calls(_) | CallMessage::Sponsor(_) => {
            None
        }
    }
}

fn said(message: &CallMessage) -> String {
    match message {
        CallMessage::Call(request) => format!("copy of {}", number(request.call_id)),
        CallMessage::Status(id) => format!("question about {}", number(*id)),
        CallMessage::Sync(..) => "question about the books".to_owned(),
        CallMessage::Close(..) => "request to close".to_owned(),
        CallMessage::Calls(_) => "question about all calls".to_owned(),
        CallMessage::Sponsor(_) => "request to pay gas".to_owned(),
    }
}

fn answered(reply: &CallReply) -> String {
    match reply {
        CallReply::Response(response) => format!("an answer, {} charged", response.receipt.charged),
        CallReply::Status(CallStatus::Done { receipt, .. }) => format!("a receipt of {}", receipt.charged),
        CallReply::Status(status) => format!("{status:?}"),
        CallReply::Refused(refusal) => refusal.code.name().to_owned(),
        CallReply::Channel(_) | CallReply::Calls(_) => "books".to_owned(),
        CallReply::Sponsor(_) => "an end of a request to pay gas".to_owned(),
    }
}
