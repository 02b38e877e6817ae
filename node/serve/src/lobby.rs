//! A lobby where a connection waits until it has said something, and then for its place.
//!
//! A place is for whoever asks, and a connection that has not sent a byte has asked nothing: it costs a file descriptor and
//! nothing else. When the lobby is full, the one that has been silent for longest goes, of the subscriber with the most of
//! them; a client sends its first bytes at once. Those that have spoken stay until they get a place.

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
    /// It has sent its first byte.
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
