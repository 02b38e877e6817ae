//! Lines that are played: the messages of a node without a swarm come out of a queue, and whoever plays decides what becomes of
//! each. A build has them with the feature `memory` alone.
//!
//! A message is lost before it leaves ([`PlayedCall::fail`]), or leaves ([`PlayedCall::leave`]). From then on its caller cannot
//! know whether it was delivered: it arrives at a node as often as somebody makes an [`InboundCall`] of it, late, twice or never,
//! and its answer comes back, breaks off, or does not come at all.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use farthing_protocol::{Address, CallMessage, CallReply};
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use crate::{CallFailure, InboundCall, Interrupted, NotStarted, Origin, Responder, partners::Partners};

/// The result of a call without the times that it took.
type Answer = Result<(CallReply, Bytes), CallFailure>;

/// The part of a node without a swarm that belongs to whoever plays its network. A cheap handle.
#[derive(Clone, Debug)]
pub struct Played(Arc<PlayedState>);

#[derive(Debug)]
struct PlayedState {
    calls: mpsc::Sender<PlayedCall>,
    partners: Partners,
    there: Mutex<BTreeSet<Address>>,
    accused: Mutex<Vec<Address>>,
}

impl Played {
    pub(crate) fn new(calls: mpsc::Sender<PlayedCall>, partners: Partners) -> Self {
        let (there, accused) = Default::default();
        Self(Arc::new(PlayedState { calls, partners, there, accused }))
    }

    /// Connects the node to these wallets, and to no others.
    pub fn connect_to(&self, wallets: impl IntoIterator<Item = Address>) {
        *self.0.there.lock() = wallets.into_iter().collect();
    }

    /// Returns whether the node keeps places for this wallet ([`crate::NetworkHandle::favour`]).
    #[must_use]
    pub fn favours(&self, wallet: Address) -> bool {
        self.0.partners.contains(&wallet)
    }

    /// Lists whom the node has accused, in order.
    #[must_use]
    pub fn accused(&self) -> Vec<Address> {
        self.0.accused.lock().clone()
    }

    pub(crate) fn there(&self) -> Vec<Address> {
        self.0.there.lock().iter().copied().collect()
    }

    /// Checks that a wallet is connected; nobody else can be found.
    pub(crate) fn check_there(&self, wallet: Address) -> Result<(), NotStarted> {
        if self.0.there.lock().contains(&wallet) { Ok(()) } else { Err(NotStarted::NotFound(wallet)) }
    }

    pub(crate) fn note_accused(&self, wallet: Address) {
        self.0.accused.lock().push(wallet);
    }

    /// Hands a message to whoever plays, and waits for what comes back.
    pub(crate) async fn carry(
        &self,
        owner: Address,
        message: CallMessage,
        body: Bytes,
        deadline: Duration,
    ) -> Answer {
        self.check_there(owner).map_err(CallFailure::NeverStarted)?;
        // A first poll would hand it over.
        if deadline.is_zero() {
            return Err(CallFailure::NeverStarted(NotStarted::Deadline));
        }
        let (way_back, answer) = oneshot::channel();
        let has_left = Arc::new(AtomicBool::new(false));
        let may_be_served = || has_left.load(Ordering::Relaxed);
        let exchange = PlayedExchange { message, body, way_back: Some(way_back) };
        let call = PlayedCall { owner, exchange, has_left: Arc::clone(&has_left) };
        let carried = async {
            if self.0.calls.send(call).await.is_err() {
                return Err(CallFailure::NeverStarted(NotStarted::Stopped));
            }
            // Nothing comes back from where a message was dropped.
            answer.await.unwrap_or_else(|_| match may_be_served() {
                true => Err(CallFailure::Unknown(Interrupted::NoAnswer)),
                false => Err(CallFailure::NeverStarted(NotStarted::NotConnected(owner))),
            })
        };
        timeout(deadline, carried).await.unwrap_or_else(|_| match may_be_served() {
            true => Err(CallFailure::Unknown(Interrupted::Deadline)),
            false => Err(CallFailure::NeverStarted(NotStarted::Deadline)),
        })
    }
}

/// A message that has not left yet. Dropped, it never does.
#[derive(Debug)]
pub struct PlayedCall {
    owner: Address,
    exchange: PlayedExchange,
    has_left: Arc<AtomicBool>,
}

impl PlayedCall {
    /// The wallet that it is for.
    #[must_use]
    pub const fn owner(&self) -> Address {
        self.owner
    }

    #[must_use]
    pub const fn message(&self) -> &CallMessage {
        &self.exchange.message
    }

    /// Ends it: nothing was sent.
    pub fn fail(mut self, why: NotStarted) {
        self.exchange.end(Err(CallFailure::NeverStarted(why)));
    }

    /// Sends it. From now on it may have been delivered.
    #[must_use]
    pub fn leave(self) -> PlayedExchange {
        self.has_left.store(true, Ordering::Relaxed);
        self.exchange
    }
}

/// A message that has left, and the way back of its answer. Dropped, its caller hears that there was none; kept, its caller hears
/// nothing until its own deadline.
#[derive(Debug)]
pub struct PlayedExchange {
    message: CallMessage,
    body: Bytes,
    /// None once its caller has heard how it ended.
    way_back: Option<oneshot::Sender<Answer>>,
}

impl PlayedExchange {
    #[must_use]
    pub const fn message(&self) -> &CallMessage {
        &self.message
    }

    /// The message as it arrives at a node, from `peer` over `origin`, and where its answer comes out. Each is a copy.
    #[must_use]
    pub fn arrive(
        &self,
        peer: Address,
        is_partner: bool,
        origin: Origin,
    ) -> (InboundCall, oneshot::Receiver<(CallReply, Bytes)>) {
        let (reply, answer) = Responder::pair();
        let (message, body) = (self.message.clone(), self.body.clone());
        (
            InboundCall { peer, is_partner, is_relayed: false, origin, range: None, message, body, reply },
            answer,
        )
    }

    /// Brings an answer to the caller, which may have gone.
    pub fn answer(mut self, reply: CallReply, body: Bytes) {
        self.end(Ok((reply, body)));
    }

    /// Breaks it off for its caller. The message may arrive yet, and nothing that is answered then is heard.
    pub fn break_off(&mut self, why: Interrupted) {
        self.end(Err(CallFailure::Unknown(why)));
    }

    fn end(&mut self, answer: Answer) {
        if let Some(way_back) = self.way_back.take() {
            // Who waited may have given up.
            let _ = way_back.send(answer);
        }
    }
}
