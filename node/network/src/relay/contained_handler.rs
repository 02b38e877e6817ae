//! A library's part of a connection whose panic costs that part alone.
//!
//! The part that asks relays for places panics over an answer by which a place lasts longer than clocks count, and with it
//! the connection's task would end: the swarm never hears of that end, and the connection keeps its place for ever.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    task::{Context, Poll},
};

use libp2p::swarm::{ConnectionHandler, ConnectionHandlerEvent, SubstreamProtocol, handler::ConnectionEvent};

/// `inner`, which is asked for nothing any more once it panicked.
pub(crate) struct ContainedHandler<H> {
    inner: H,
    fell: bool,
}

impl<H> ContainedHandler<H> {
    pub(super) const fn new(inner: H) -> Self {
        Self { inner, fell: false }
    }
}

impl<H: ConnectionHandler> ConnectionHandler for ContainedHandler<H> {
    type FromBehaviour = H::FromBehaviour;
    type ToBehaviour = H::ToBehaviour;
    type InboundProtocol = H::InboundProtocol;
    type OutboundProtocol = H::OutboundProtocol;
    type InboundOpenInfo = H::InboundOpenInfo;
    type OutboundOpenInfo = H::OutboundOpenInfo;

    fn listen_protocol(&self) -> SubstreamProtocol<H::InboundProtocol, H::InboundOpenInfo> {
        self.inner.listen_protocol()
    }

    fn connection_keep_alive(&self) -> bool {
        !self.fell && self.inner.connection_keep_alive()
    }

    fn poll(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<ConnectionHandlerEvent<H::OutboundProtocol, H::OutboundOpenInfo, H::ToBehaviour>> {
        if self.fell {
            return Poll::Pending;
        }
        let polled = catch_unwind(AssertUnwindSafe(|| self.inner.poll(context)));
        polled.unwrap_or_else(|_| {
            tracing::warn!("a relay's answer is not valid; it is not asked again on this connection");
            self.fell = true;
            Poll::Pending
        })
    }

    fn on_behaviour_event(&mut self, event: H::FromBehaviour) {
        if !self.fell {
            self.inner.on_behaviour_event(event);
        }
    }

    fn on_connection_event(
        &mut self,
        event: ConnectionEvent<
            '_,
            H::InboundProtocol,
            H::OutboundProtocol,
            H::InboundOpenInfo,
            H::OutboundOpenInfo,
        >,
    ) {
        if !self.fell {
            self.inner.on_connection_event(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use libp2p::core::upgrade::DeniedUpgrade;

    use super::*;

    /// Counts how often it is told something, and panics when it is polled.
    struct Falling(u32);

    impl ConnectionHandler for Falling {
        type FromBehaviour = ();
        type ToBehaviour = Infallible;
        type InboundProtocol = DeniedUpgrade;
        type OutboundProtocol = DeniedUpgrade;
        type InboundOpenInfo = ();
        type OutboundOpenInfo = ();

        fn listen_protocol(&self) -> SubstreamProtocol<DeniedUpgrade> {
            SubstreamProtocol::new(DeniedUpgrade, ())
        }

        fn connection_keep_alive(&self) -> bool {
            true
        }

        fn poll(
            &mut self,
            _: &mut Context<'_>,
        ) -> Poll<ConnectionHandlerEvent<DeniedUpgrade, (), Infallible>> {
            panic!("a place that lasts for ever")
        }

        fn on_behaviour_event(&mut self, (): ()) {
            self.0 += 1;
        }

        fn on_connection_event(&mut self, _: ConnectionEvent<'_, DeniedUpgrade, DeniedUpgrade>) {}
    }

    #[test]
    fn a_panic_ends_what_panicked_and_not_its_connection() {
        let mut handler = ContainedHandler::new(Falling(0));
        handler.on_behaviour_event(());
        assert!(handler.connection_keep_alive());
        let mut context = Context::from_waker(futures::task::noop_waker_ref());
        assert!(handler.poll(&mut context).is_pending());
        assert!(handler.poll(&mut context).is_pending(), "it is not polled again");
        handler.on_behaviour_event(());
        assert_eq!(handler.inner.0, 1, "nor told anything");
        assert!(!handler.connection_keep_alive());
    }
}
