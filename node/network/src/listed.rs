//! The protocols that a connection takes, listed once until they may have changed.
//!
//! libp2p compares the list with the one before each time that a connection's task has nothing more to do, which is four
//! times for a call. It asks twenty handlers within each other for it, which took 4 percent of both nodes' processor time.
//! Here they are asked again after each event that may change what they take, and when a peer opens a stream.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{self, BoxFuture},
};
use libp2p::{
    core::{InboundUpgrade, UpgradeInfo},
    swarm::{
        ConnectionHandler, ConnectionHandlerEvent, NetworkBehaviour, Stream, SubstreamProtocol, THandler,
        handler::{
            ConnectionEvent, FullyNegotiatedInbound, InboundUpgradeSend, ListenUpgradeError, UpgradeInfoSend,
        },
    },
};
use parking_lot::{Mutex, MutexGuard};

use crate::forward::forward;

/// A behaviour whose connections keep the list of what they take.
pub(crate) struct ListedBehaviour<B>(B);

impl<B> ListedBehaviour<B> {
    pub(crate) const fn of(inner: B) -> Self {
        Self(inner)
    }
}

impl<B> Deref for ListedBehaviour<B> {
    type Target = B;

    fn deref(&self) -> &B {
        &self.0
    }
}

impl<B> DerefMut for ListedBehaviour<B> {
    fn deref_mut(&mut self) -> &mut B {
        &mut self.0
    }
}

impl<B: NetworkBehaviour> NetworkBehaviour for ListedBehaviour<B> {
    type ConnectionHandler = ListedHandler<THandler<B>>;
    type ToSwarm = B::ToSwarm;

    forward!(0: pending, inbound in ListedHandler::of, outbound in ListedHandler::of, events, poll);
}

/// The handlers of a connection, and the list of what they take.
pub(crate) struct ListedHandler<H> {
    inner: Arc<Mutex<H>>,
    /// `None` once they may take something else.
    listed: Mutex<Option<Listed>>,
}

impl<H> ListedHandler<H> {
    fn of(inner: H) -> Self {
        Self { inner: Arc::new(Mutex::new(inner)), listed: Mutex::default() }
    }

    /// The handlers, which may take something else afterwards.
    fn changing(&mut self) -> MutexGuard<'_, H> {
        *self.listed.get_mut() = None;
        self.inner.lock()
    }
}

/// The protocols that handlers take.
#[derive(Clone)]
struct Listed {
    names: Arc<[ProtocolName]>,
    /// For agreeing on one of them.
    timeout: Duration,
}

impl Listed {
    fn of<H: ConnectionHandler>(handler: &H) -> Self {
        let protocol = handler.listen_protocol();
        let names = UpgradeInfoSend::protocol_info(protocol.upgrade());
        let names = names.map(|name| ProtocolName(name.as_ref().into())).collect();
        Self { names, timeout: *protocol.timeout() }
    }
}

/// The name of a protocol, as peers ask for it.
#[derive(Clone)]
pub(crate) struct ProtocolName(Arc<str>);

impl AsRef<str> for ProtocolName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl<H: ConnectionHandler> ConnectionHandler for ListedHandler<H> {
    type FromBehaviour = H::FromBehaviour;
    type ToBehaviour = H::ToBehaviour;
    type InboundProtocol = ListedUpgrade<H>;
    type OutboundProtocol = H::OutboundProtocol;
    type InboundOpenInfo = ();
    type OutboundOpenInfo = H::OutboundOpenInfo;

    fn listen_protocol(&self) -> SubstreamProtocol<ListedUpgrade<H>, ()> {
        let mut listed = self.listed.lock();
        let Listed { names, timeout } = listed.get_or_insert_with(|| Listed::of(&*self.inner.lock())).clone();
        let upgrade = ListedUpgrade { names, handler: Arc::clone(&self.inner) };
        SubstreamProtocol::new(upgrade, ()).with_timeout(timeout)
    }

    fn connection_keep_alive(&self) -> bool {
        self.inner.lock().connection_keep_alive()
    }

    fn poll(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<ConnectionHandlerEvent<H::OutboundProtocol, H::OutboundOpenInfo, H::ToBehaviour>> {
        let polled = self.inner.lock().poll(context);
        if polled.is_ready() {
            *self.listed.get_mut() = None;
        }
        polled
    }

    fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<Option<H::ToBehaviour>> {
        self.inner.lock().poll_close(context)
    }

    fn on_behaviour_event(&mut self, event: H::FromBehaviour) {
        self.changing().on_behaviour_event(event);
    }

    fn on_connection_event(
        &mut self,
        event: ConnectionEvent<'_, ListedUpgrade<H>, H::OutboundProtocol, (), H::OutboundOpenInfo>,
    ) {
        let event: ConnectionEvent<'_, Inner<H>, H::OutboundProtocol, OpenInfo<H>, H::OutboundOpenInfo> =
            match event {
                ConnectionEvent::FullyNegotiatedInbound(opened) => {
                    let (protocol, info) = opened.protocol;
                    ConnectionEvent::FullyNegotiatedInbound(FullyNegotiatedInbound { protocol, info })
                }
                ConnectionEvent::ListenUpgradeError(failed) => {
                    // Of a protocol that is not taken any more, the handlers never hear, and the list is not that of now.
                    let Some((error, info)) = failed.error else {
                        *self.listed.get_mut() = None;
                        return;
                    };
                    ConnectionEvent::ListenUpgradeError(ListenUpgradeError { info, error })
                }
                ConnectionEvent::FullyNegotiatedOutbound(opened) => {
                    ConnectionEvent::FullyNegotiatedOutbound(opened)
                }
                ConnectionEvent::DialUpgradeError(failed) => ConnectionEvent::DialUpgradeError(failed),
                ConnectionEvent::AddressChange(change) => ConnectionEvent::AddressChange(change),
                ConnectionEvent::LocalProtocolsChange(change) => {
                    ConnectionEvent::LocalProtocolsChange(change)
                }
                ConnectionEvent::RemoteProtocolsChange(change) => {
                    ConnectionEvent::RemoteProtocolsChange(change)
                }
                _ => return,
            };
        self.changing().on_connection_event(event);
    }
}

/// A stream that a peer opens for one of the names on the list. The handlers are asked for the protocol itself once the
/// peer has chosen.
pub(crate) struct ListedUpgrade<H> {
    names: Arc<[ProtocolName]>,
    handler: Arc<Mutex<H>>,
}

impl<H> UpgradeInfo for ListedUpgrade<H> {
    type Info = ProtocolName;
    type InfoIter = Names;

    fn protocol_info(&self) -> Names {
        Names { names: Arc::clone(&self.names), next: 0 }
    }
}

/// The names on a list, one after the other.
pub(crate) struct Names {
    names: Arc<[ProtocolName]>,
    next: usize,
}

impl Iterator for Names {
    type Item = ProtocolName;

    fn next(&mut self) -> Option<ProtocolName> {
        let name = self.names.get(self.next)?;
        self.next += 1;
        Some(name.clone())
    }
}

type Inner<H> = <H as ConnectionHandler>::InboundProtocol;
type OpenInfo<H> = <H as ConnectionHandler>::InboundOpenInfo;

impl<H: ConnectionHandler> InboundUpgrade<Stream> for ListedUpgrade<H> {
    type Output = (<Inner<H> as InboundUpgradeSend>::Output, OpenInfo<H>);
    /// `None` for a protocol that was taken off the list while the peer chose it.
    type Error = Option<(<Inner<H> as InboundUpgradeSend>::Error, OpenInfo<H>)>;
    type Future = BoxFuture<'static, Result<Self::Output, Self::Error>>;

    fn upgrade_inbound(self, stream: Stream, name: ProtocolName) -> Self::Future {
        let (upgrade, info) = self.handler.lock().listen_protocol().into_upgrade();
        let mut protocols = UpgradeInfoSend::protocol_info(&upgrade);
        let Some(protocol) = protocols.find(|protocol| protocol.as_ref() == name.as_ref()) else {
            return future::ready(Err(None)).boxed();
        };
        let upgraded = InboundUpgradeSend::upgrade_inbound(upgrade, stream, protocol);
        upgraded
            .map(|upgraded| match upgraded {
                Ok(output) => Ok((output, info)),
                Err(error) => Err(Some((error, info))),
            })
            .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicU32, Ordering::Relaxed},
    };

    use libp2p::{
        StreamProtocol,
        core::upgrade::{DeniedUpgrade, ReadyUpgrade},
    };

    use super::*;

    /// Takes one protocol, and counts how often it is asked which.
    struct OneProtocol {
        name: StreamProtocol,
        asked: Arc<AtomicU32>,
    }

    impl ConnectionHandler for OneProtocol {
        type FromBehaviour = StreamProtocol;
        type ToBehaviour = Infallible;
        type InboundProtocol = ReadyUpgrade<StreamProtocol>;
        type OutboundProtocol = DeniedUpgrade;
        type InboundOpenInfo = ();
        type OutboundOpenInfo = ();

        fn listen_protocol(&self) -> SubstreamProtocol<ReadyUpgrade<StreamProtocol>> {
            self.asked.fetch_add(1, Relaxed);
            SubstreamProtocol::new(ReadyUpgrade::new(self.name.clone()), ())
        }

        fn poll(
            &mut self,
            _: &mut Context<'_>,
        ) -> Poll<ConnectionHandlerEvent<DeniedUpgrade, (), Infallible>> {
            Poll::Pending
        }

        fn on_behaviour_event(&mut self, name: StreamProtocol) {
            self.name = name;
        }

        fn on_connection_event(
            &mut self,
            _: ConnectionEvent<'_, ReadyUpgrade<StreamProtocol>, DeniedUpgrade, (), ()>,
        ) {
        }
    }

    #[test]
    fn handlers_are_asked_what_they_take_again_when_that_may_have_changed() {
        let asked = Arc::new(AtomicU32::new(0));
        let one = OneProtocol { name: StreamProtocol::new("/one"), asked: Arc::clone(&asked) };
        let mut handler = ListedHandler::of(one);
        let names = |handler: &ListedHandler<OneProtocol>| {
            let protocol = handler.listen_protocol();
            UpgradeInfo::protocol_info(protocol.upgrade()).map(|name| name.0.to_string()).collect::<Vec<_>>()
        };
        for _ in 0..3 {
            assert_eq!(names(&handler), ["/one"]);
        }
        assert_eq!(asked.load(Relaxed), 1, "nothing may have changed it");
        handler.on_behaviour_event(StreamProtocol::new("/other"));
        assert_eq!(names(&handler), ["/other"]);
        // A peer has chosen what was taken off the list meanwhile.
        handler.on_connection_event(ConnectionEvent::ListenUpgradeError(ListenUpgradeError {
            info: (),
            error: None,
        }));
        assert_eq!(names(&handler), ["/other"]);
        assert_eq!(asked.load(Relaxed), 3);
    }
}
