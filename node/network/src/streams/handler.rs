//! The part of a behaviour of streams that lives in one connection's task.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future, option,
    task::{Context, Poll},
    time::Duration,
};

use farthing_protocol::Address;
use libp2p::{
    StreamProtocol,
    core::{InboundUpgrade, UpgradeInfo, upgrade::ReadyUpgrade},
    swarm::{
        ConnectionHandler, ConnectionHandlerEvent, StreamUpgradeError, SubstreamProtocol,
        handler::ConnectionEvent,
    },
};

use super::{Accept, Opening, Order};
use crate::{NotStarted, command::NoStream, line::ConnectionStreams};

/// The protocol of streams that peers open, which is spoken or not.
#[derive(Clone, Debug)]
pub(crate) struct ServedProtocol {
    pub(super) protocol: StreamProtocol,
    pub(super) serves: bool,
}

impl UpgradeInfo for ServedProtocol {
    type Info = StreamProtocol;
    type InfoIter = option::IntoIter<StreamProtocol>;

    fn protocol_info(&self) -> Self::InfoIter {
        self.serves.then(|| self.protocol.clone()).into_iter()
    }
}

impl<C> InboundUpgrade<C> for ServedProtocol {
    type Output = C;
    type Error = Infallible;
    type Future = future::Ready<Result<C, Infallible>>;

    fn upgrade_inbound(self, stream: C, _: StreamProtocol) -> Self::Future {
        future::ready(Ok(stream))
    }
}

/// Negotiates the protocol on each stream and hands the stream over.
pub(crate) struct StreamsHandler {
    peer: Address,
    /// Of this connection's streams, which end with it.
    source: ConnectionStreams,
    served: ServedProtocol,
    accept: Accept,
    /// The time for which the connection is kept after a stream was used.
    kept: Duration,
    openings: VecDeque<Opening>,
}

impl StreamsHandler {
    pub(super) fn new(
        peer: Address,
        source: ConnectionStreams,
        served: ServedProtocol,
        accept: Accept,
        kept: Duration,
    ) -> Self {
        Self { peer, source, served, accept, kept, openings: VecDeque::new() }
    }
}

type Event<'a> = ConnectionEvent<'a, ServedProtocol, ReadyUpgrade<StreamProtocol>, (), Opening>;
type Action = ConnectionHandlerEvent<ReadyUpgrade<StreamProtocol>, Opening, Infallible>;

impl ConnectionHandler for StreamsHandler {
    type FromBehaviour = Order;
    type ToBehaviour = Infallible;
    type InboundProtocol = ServedProtocol;
    type OutboundProtocol = ReadyUpgrade<StreamProtocol>;
    type InboundOpenInfo = ();
    type OutboundOpenInfo = Opening;

    fn listen_protocol(&self) -> SubstreamProtocol<Self::InboundProtocol> {
        SubstreamProtocol::new(self.served.clone(), ())
    }

    fn connection_keep_alive(&self) -> bool {
        self.source.last_used().is_some_and(|used| used.elapsed() < self.kept)
    }

    fn on_behaviour_event(&mut self, order: Order) {
        match order {
            Order::Open(opening) => self.openings.push_back(opening),
            Order::Serve(serves) => self.served.serves = serves,
        }
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<Action> {
        while let Some(opening) = self.openings.pop_front() {
            // Whoever asked may have given up since.
            if !opening.0.is_closed() {
                let upgrade = ReadyUpgrade::new(self.served.protocol.clone());
                let protocol = SubstreamProtocol::new(upgrade, opening);
                return Poll::Ready(ConnectionHandlerEvent::OutboundSubstreamRequest { protocol });
            }
        }
        Poll::Pending
    }

    fn on_connection_event(&mut self, event: Event<'_>) {
        match event {
            ConnectionEvent::FullyNegotiatedInbound(inbound) => {
                (self.accept)(self.peer, self.source.line(inbound.protocol));
            }
            ConnectionEvent::FullyNegotiatedOutbound(outbound) => {
                // An asker that gave up drops the stream, which resets it before a byte was sent.
                let _ = outbound.info.0.send(Ok(self.source.line(outbound.protocol)));
            }
            ConnectionEvent::DialUpgradeError(failed) => {
                let _ = failed.info.0.send(Err(NoStream::Refused(self.describe(failed.error))));
            }
            _ => {}
        }
    }
}

impl StreamsHandler {
    fn describe(&self, error: StreamUpgradeError<Infallible>) -> NotStarted {
        let reason = match error {
            StreamUpgradeError::NegotiationFailed => return NotStarted::Unsupported,
            StreamUpgradeError::Timeout => "the stream was not opened in time".to_owned(),
            StreamUpgradeError::Io(error) => format!("the stream could not be opened: {error}"),
            StreamUpgradeError::Apply(never) => match never {},
        };
        NotStarted::Unreachable { peer: self.peer, reason }
    }
}
