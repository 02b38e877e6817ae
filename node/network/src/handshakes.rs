//! Handshakes that others began: so many from one subscriber and in all. When there is no room for one more, the
//! subscriber with most of them makes it: whoever connects and says nothing keeps nobody elsewhere out. Those of one
//! subscriber wait for each other, until the silent ones run out of time.

use std::{
    io,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll},
};

use futures::{
    FutureExt,
    future::{AbortHandle, BoxFuture, abortable},
};
use libp2p::{
    Multiaddr, Transport, TransportError,
    core::transport::{Boxed, DialOpts, ListenerId, TransportEvent},
};

use crate::{
    NetworkLimits,
    addresses::{self, circuit},
    outbound::Connected,
};

/// `inner`, with its inbound handshakes bounded.
pub(crate) fn bounded(inner: Boxed<Connected>, limits: &NetworkLimits) -> Boxed<Connected> {
    Handshakes { inner, waiting: HandshakeQueue::new(limits) }.boxed()
}

struct Handshakes {
    inner: Boxed<Connected>,
    waiting: HandshakeQueue,
}

/// Handshakes under way, the oldest first. Pure but for the handles.
struct HandshakeQueue {
    all_max: usize,
    per_ip_max: usize,
    per_private_ip_max: usize,
    begun: Vec<BegunHandshake>,
}

struct BegunHandshake {
    from: IpAddr,
    end: AbortHandle,
    /// Gone when the handshake is over.
    alive: Weak<()>,
}

impl HandshakeQueue {
    fn new(limits: &NetworkLimits) -> Self {
        Self {
            all_max: limits.connections_pending_max as usize,
            per_ip_max: limits.connections_pending_per_ip_max as usize,
            per_private_ip_max: limits.connections_pending_per_private_ip_max as usize,
            begun: Vec::new(),
        }
    }

    /// Notes one more, and ends the one that makes room for it, or the new one itself.
    fn begin(&mut self, ip: IpAddr, end: AbortHandle, alive: Weak<()>) {
        self.begun.retain(|other| other.alive.strong_count() > 0);
        let from = farthing_bounds::subscriber(ip);
        let of_one_max = if addresses::is_global(ip) { self.per_ip_max } else { self.per_private_ip_max };
        let of_one = self.count(from);
        if of_one >= of_one_max || self.begun.len() >= self.all_max && !self.busiest_yields(of_one) {
            return end.abort();
        }
        self.begun.push(BegunHandshake { from, end, alive });
    }

    fn count(&self, from: IpAddr) -> usize {
        self.begun.iter().filter(|other| other.from == from).count()
    }

    /// The oldest handshake of the subscriber with most of them makes room, unless the newcomer's would then have as
    /// many: whoever comes alone keeps its place, and equals do not end each other's for ever.
    fn busiest_yields(&mut self, of_newcomer: usize) -> bool {
        let counts = self.begun.iter().map(|begun| (self.count(begun.from), begun.from));
        let busiest = counts.max().filter(|(count, _)| *count > of_newcomer + 1);
        let oldest = busiest.and_then(|(_, from)| self.begun.iter().position(|begun| begun.from == from));
        oldest.map(|oldest| self.begun.remove(oldest).end.abort()).is_some()
    }
}

type Upgrade = BoxFuture<'static, io::Result<Connected>>;

impl Transport for Handshakes {
    type Output = Connected;
    type Error = io::Error;
    type ListenerUpgrade = Upgrade;
    type Dial = <Boxed<Connected> as Transport>::Dial;

    fn listen_on(&mut self, id: ListenerId, address: Multiaddr) -> Result<(), TransportError<io::Error>> {
        self.inner.listen_on(id, address)
    }

    fn remove_listener(&mut self, id: ListenerId) -> bool {
        self.inner.remove_listener(id)
    }

    fn dial(
        &mut self,
        address: Multiaddr,
        options: DialOpts,
    ) -> Result<Self::Dial, TransportError<io::Error>> {
        self.inner.dial(address, options)
    }

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<TransportEvent<Upgrade, io::Error>> {
        let this = &mut *self;
        let from = |event: &TransportEvent<_, _>| match event {
            TransportEvent::Incoming { local_addr, send_back_addr, .. } => {
                addresses::ip(circuit::came_from(local_addr, send_back_addr))
            }
            _ => None,
        };
        Pin::new(&mut this.inner).poll(context).map(|event| {
            let from = from(&event);
            event.map_upgrade(|upgrade| match from {
                Some(ip) => this.waiting.bound(ip, upgrade),
                None => upgrade.boxed(),
            })
        })
    }
}

impl HandshakeQueue {
    fn bound(
        &mut self,
        ip: IpAddr,
        upgrade: impl Future<Output = io::Result<Connected>> + Send + 'static,
    ) -> Upgrade {
        let alive = Arc::new(());
        let (upgrade, end) = abortable(upgrade);
        self.begin(ip, end, Arc::downgrade(&alive));
        async move {
            let _alive = alive;
            upgrade.await.unwrap_or_else(|_| Err(io::Error::other("it made room for a newer handshake")))
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that says nothing for as long as the returned value lives.
    fn begin(waiting: &mut HandshakeQueue, from: &str) -> (Arc<()>, AbortHandle) {
        let (alive, (end, _)) = (Arc::new(()), AbortHandle::new_pair());
        waiting.begin(from.parse().unwrap(), end.clone(), Arc::downgrade(&alive));
        (alive, end)
    }

    #[test]
    fn one_subscriber_has_so_many_and_ends_none_that_is_under_way() {
        let limits = NetworkLimits::default();
        for (from, same, max) in [
            ("9.9.9.9", "9.9.9.9", limits.connections_pending_per_ip_max),
            ("2620:fe::1", "2620:fe::2", limits.connections_pending_per_ip_max),
            ("127.0.0.1", "127.0.0.2", limits.connections_pending_per_private_ip_max),
        ] {
            let mut waiting = HandshakeQueue::new(&limits);
            let held: Vec<_> = (0..max).map(|_| begin(&mut waiting, from)).collect();
            let newer = begin(&mut waiting, same);
            assert!(newer.1.is_aborted(), "{from}");
            let other = begin(&mut waiting, "9.9.9.10");
            assert!(!other.1.is_aborted(), "{from}: another subscriber");
            assert!(held.iter().all(|(_, end)| !end.is_aborted()), "{from}");
        }
    }

    #[test]
    fn when_there_is_no_room_at_all_the_busiest_subscriber_makes_it() {
        let limits = NetworkLimits::default();
        let mut waiting = HandshakeQueue::new(&limits);
        let single = begin(&mut waiting, "9.9.8.8");
        let many: Vec<_> = (1..limits.connections_pending_max)
            .map(|n| begin(&mut waiting, &format!("9.9.9.{}", n / limits.connections_pending_per_ip_max)))
            .collect();
        let late = begin(&mut waiting, "9.9.7.7");
        assert!(!single.1.is_aborted() && !late.1.is_aborted());
        assert_eq!(many.iter().filter(|(_, end)| end.is_aborted()).count(), 1);
    }

    #[test]
    fn newcomers_from_everywhere_do_not_end_each_other() {
        let limits = NetworkLimits::default();
        let mut waiting = HandshakeQueue::new(&limits);
        let held: Vec<_> =
            (0..limits.connections_pending_max).map(|n| begin(&mut waiting, &format!("9.9.{n}.9"))).collect();
        assert!(begin(&mut waiting, "8.8.8.8").1.is_aborted());
        assert!(held.iter().all(|(_, end)| !end.is_aborted()));
    }

    #[test]
    fn handshakes_that_are_over_take_no_room() {
        let limits = NetworkLimits::default();
        let mut waiting = HandshakeQueue::new(&limits);
        for _ in 0..100 {
            let (alive, end) = begin(&mut waiting, "9.9.9.9");
            drop(alive);
            assert!(!end.is_aborted());
        }
        assert!(waiting.begun.len() <= 1);
    }
}
