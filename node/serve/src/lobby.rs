//! A lobby where a connection waits until it has asked for something, and then for its place.
//!
//! A place is for whoever asks: with the first line of a request, or with the hello of TLS. A connection that has sent less
//! costs a file descriptor and nothing else. When the lobby is full, the one that has not asked for longest goes, of the
//! subscriber with the most of them; a client asks at once. Those that have asked stay until they get a place.

use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use farthing_bounds::subscriber;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Connections in the lobby of one port.
const LOBBY_MAX: usize = 512;
/// After one had to go, the next is let in so much later: whoever opens connections anew as fast as they are closed
/// gets no more than a thousand a second.
const BREATH: Duration = Duration::from_millis(1);
/// As much of what a connection says first as is looked at.
pub(super) const OPENING_BYTES: usize = 1024;
/// The head of a TLS record: its type, its version and its length (RFC 8446, 5.1).
const RECORD_HEAD_BYTES: usize = 5;
/// The sizes of a record that begins a hello: the head of that at least.
const RECORD_BYTES: std::ops::RangeInclusive<usize> = 4..=16 * 1024;

/// Returns whether the first line of a request has come, or as much as is looked at.
pub(super) fn has_asked(said: &[u8]) -> bool {
    said.len() >= OPENING_BYTES || said.contains(&b'\n')
}

/// Returns whether the record with a client's hello has come, or as much as is looked at; whoever speaks plain HTTP on a
/// port of TLS is told so once it [has asked](has_asked).
pub(super) fn has_greeted(said: &[u8]) -> bool {
    match said {
        [22, 3, _, high, low, record @ ..] => {
            let bytes = usize::from(u16::from_be_bytes([*high, *low]));
            RECORD_BYTES.contains(&bytes) && record.len() >= bytes.min(OPENING_BYTES - RECORD_HEAD_BYTES)
        }
        [22, ..] => false,
        _ => has_asked(said),
    }
}

#[derive(Debug)]
pub(super) struct Lobby {
    room: Arc<Semaphore>,
    /// The one that came first is in front.
    silent: Mutex<VecDeque<Arc<Silent>>>,
}

#[derive(Debug)]
struct Silent {
    subscriber: IpAddr,
    gone: CancellationToken,
}

/// A connection's stay, until dropped.
#[derive(Debug)]
pub(super) struct Stay {
    lobby: Arc<Lobby>,
    one: Arc<Silent>,
    _room: OwnedSemaphorePermit,
}

impl Lobby {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { room: Arc::new(Semaphore::new(LOBBY_MAX)), silent: Mutex::default() })
    }

    /// Lets a connection in; another one goes when there is no room.
    pub(super) async fn enter(self: &Arc<Self>, ip: IpAddr) -> Stay {
        let room = match Arc::clone(&self.room).try_acquire_owned() {
            Ok(room) => room,
            Err(_) => {
                self.evict();
                tokio::time::sleep(BREATH).await;
                Arc::clone(&self.room).acquire_owned().await.expect("the semaphore is never closed")
            }
        };
        let one = Arc::new(Silent { subscriber: subscriber(ip), gone: CancellationToken::new() });
        self.silent.lock().push_back(Arc::clone(&one));
        Stay { lobby: Arc::clone(self), one, _room: room }
    }

    fn evict(&self) {
        let mut silent = self.silent.lock();
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for one in &*silent {
            *counts.entry(one.subscriber).or_default() += 1;
        }
        let Some((most, _)) = counts.into_iter().max_by_key(|(_, count)| *count) else { return };
        let first = silent.iter().position(|one| one.subscriber == most);
        if let Some(going) = first.and_then(|place| silent.remove(place)) {
            going.gone.cancel();
        }
    }
}

impl Stay {
    /// It has asked for something.
    pub(super) fn speaks(&self) {
        self.lobby.silent.lock().retain(|one| !Arc::ptr_eq(one, &self.one));
    }

    /// Returns when it has to go.
    pub(super) async fn evicted(&self) {
        self.one.gone.cancelled().await;
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.speaks();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::time::timeout;

    use super::*;

    const SOON: Duration = Duration::from_secs(20);
    const FEW: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(9, 9, 9, 9));
    const MANY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(8, 8, 8, 8));

    #[test]
    fn who_has_sent_less_than_a_line_or_a_hello_has_not_asked() {
        let long = [b'x'; OPENING_BYTES];
        for (said, asked, greeted) in [
            (&b""[..], false, false),
            (b"G", false, false),
            (b"GET / HTTP/1.1\r", false, false),
            (b"GET / HTTP/1.1\r\n", true, true),
            (&long[1..], false, false),
            (&long, true, true),
            (&[22], false, false),
            (&[22, 3, 1, 2, 0], false, false),
            (&[22, 3, 1, 0, 5, 1, 0, 0, b'\n'], true, false),
            (&[22, 3, 1, 0, 5, 1, 0, 0, 1, 0], false, true),
            (&[22, 3, 1, 0, 0], false, false),
            (&[22, 9, 1, 0, 4, 1, 0, 0, 0], false, false),
        ] {
            assert_eq!((has_asked(said), has_greeted(said)), (asked, greeted), "{said:?}");
        }
        let large = [&[22, 3, 1, 0x40, 0][..], &long[RECORD_HEAD_BYTES..]].concat();
        assert!(has_greeted(&large) && !has_greeted(&large[..OPENING_BYTES - 1]));
        let too_large = [&[22, 3, 1, 0x40, 1][..], &long[..]].concat();
        assert!(!has_greeted(&too_large));
    }

    fn must_go(stay: &Stay) -> bool {
        stay.evicted().now_or_never().is_some()
    }

    #[tokio::test]
    async fn in_a_full_lobby_the_longest_silent_goes_of_whoever_has_most_and_those_that_spoke_stay() {
        let lobby = Lobby::new();
        let (first, spoke) = (lobby.enter(FEW).await, lobby.enter(MANY).await);
        spoke.speaks();
        let mut crowd = Vec::new();
        for _ in 2..LOBBY_MAX {
            crowd.push(lobby.enter(MANY).await);
        }
        assert!(!crowd.iter().chain([&first, &spoke]).any(must_go), "there is room for all");
        let mut entering = Box::pin(lobby.enter(FEW));
        assert!((&mut entering).now_or_never().is_none(), "nobody has left yet");
        assert!(must_go(&crowd[0]), "the one that came first goes");
        assert!(!crowd[1..].iter().chain([&first, &spoke]).any(must_go), "and no other");
        crowd.remove(0);
        crowd.push(timeout(SOON, entering).await.unwrap());

        // Nobody is silent, so nobody goes: the next one waits until one has left.
        crowd.iter().chain([&first]).for_each(Stay::speaks);
        let mut entering = Box::pin(lobby.enter(FEW));
        assert!((&mut entering).now_or_never().is_none(), "it is full");
        assert!(!crowd.iter().chain([&first, &spoke]).any(must_go), "all of them have spoken");
        drop(spoke);
        timeout(SOON, entering).await.unwrap();
    }
}
