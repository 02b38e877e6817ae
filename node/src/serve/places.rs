//! Who holds the connections of a port, and who makes room for a newcomer.
//!
//! A connection costs nothing to whoever opens it, so none is held by being first. When there is no room, the one that
//! is least of use goes ([`Standing`]): of the newcomer's own when its [`subscriber`] has as many as it may, of all when
//! the port has. Whose requests are being worked on stays.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use farthing_bounds::subscriber;
use tokio::{sync::Notify, time::timeout};

use super::activity::{Activity, Standing};

/// A connection that is at work now may be idle soon, which nobody tells.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The places of one port.
#[derive(Debug)]
pub(super) struct Places {
    connections_max: usize,
    per_subscriber_max: usize,
    held: Mutex<Held>,
    left: Notify,
}

#[derive(Debug, Default)]
struct Held {
    next: u64,
    connections: Vec<Connection>,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    /// `None` for a proxy, behind which there are many.
    subscriber: Option<IpAddr>,
    activity: Arc<Activity>,
}

/// A connection's place, until dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    number: u64,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// All of the port's are at work.
    All,
    /// All of this subscriber's are.
    Subscriber,
}

impl Places {
    pub(super) fn new(connections_max: usize, per_subscriber_max: usize) -> Arc<Self> {
        Arc::new(Self { connections_max, per_subscriber_max, held: Mutex::default(), left: Notify::new() })
    }

    /// A place for a connection from `ip`, or from a trusted proxy; another one goes when there is no room.
    pub(super) fn enter(
        self: &Arc<Self>,
        ip: Option<IpAddr>,
        activity: &Arc<Activity>,
    ) -> Result<Place, Full> {
        let subscriber = ip.map(subscriber);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let is_own = |connection: &Connection| subscriber.is_some() && connection.subscriber == subscriber;
        let own = held.connections.iter().filter(|connection| is_own(connection)).count();
        if own >= self.per_subscriber_max {
            held.evict(is_own).ok_or(Full::Subscriber)?;
        } else if held.connections.len() >= self.connections_max {
            held.evict(|_| true).ok_or(Full::All)?;
        }
        let number = held.next;
        held.next += 1;
        held.connections.push(Connection { number, subscriber, activity: Arc::clone(activity) });
        Ok(Place { places: Arc::clone(self), number })
    }

    /// Returns when there may be room again.
    pub(super) async fn room(&self) {
        // Looking is cheap, and only a port whose connections all work does it.
        let _ = timeout(LOOK_AGAIN, self.left.notified()).await;
    }
}

impl Held {
    fn evict(&mut self, among: impl Fn(&Connection) -> bool) -> Option<()> {
        let standing = |(place, connection): (usize, &Connection)| {
            let standing: (Standing, _) = connection.activity.standing()?;
            Some((standing, place))
        };
        let candidates = self.connections.iter().enumerate().filter(|(_, connection)| among(connection));
        let (_, place) = candidates.filter_map(standing).min()?;
        self.connections.swap_remove(place).activity.evict();
        Some(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.places.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.connections.retain(|connection| connection.number != self.number);
        drop(held);
        self.places.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn connection() -> Arc<Activity> {
        Activity::new(LONG, LONG)
    }

    /// Whether it was told to go.
    fn is_gone(activity: &Activity) -> bool {
        futures::FutureExt::now_or_never(activity.evicted()).is_some()
    }

    #[test]
    fn the_least_of_use_goes_first_and_whoever_is_at_work_stays() {
        let places = Places::new(9, 5);
        let ip = || Some("9.9.9.9".parse().unwrap());
        let [silent, idle, answering, sending, working] = std::array::from_fn(|_| connection());
        let mut held: Vec<Place> = Vec::new();
        for activity in [&working, &sending, &answering, &idle, &silent] {
            held.push(places.enter(ip(), activity).unwrap());
        }
        drop(Activity::work(&idle));
        let _work = (Activity::work(&working), Activity::work(&sending), Activity::wait(&sending));
        let _answer = Activity::answer(&answering);
        for going in [&silent, &idle, &answering, &sending] {
            assert!(!is_gone(going), "{going:?}");
            let at_work = connection();
            held.push(places.enter(ip(), &at_work).unwrap());
            assert!(is_gone(going), "{going:?}");
            std::mem::forget(Activity::work(&at_work));
        }
        assert_eq!(places.enter(ip(), &connection()).unwrap_err(), Full::Subscriber);
        assert!(!is_gone(&working));
        // Others come in until the port is full.
        let other = || Some("10.0.0.1".parse().unwrap());
        let others: [_; 4] = std::array::from_fn(|_| connection());
        held.extend(others.iter().map(|activity| places.enter(other(), activity).unwrap()));
        held.push(places.enter(Some("10.0.0.2".parse().unwrap()), &connection()).unwrap());
        assert!(is_gone(&others[0]) && !is_gone(&others[1]), "who was silent for longest goes first");
        drop(held);
        assert!(places.held.lock().unwrap().connections.is_empty());
    }

    #[test]
    fn addresses_that_belong_together_share_their_places_and_a_proxy_has_all() {
        for together in
            [["127.0.0.1", "127.9.9.9", "::1"], ["2620:fe:0:1::1", "2620:fe:0:1::2", "2620:fe:0:1:ffff::3"]]
        {
            let places = Places::new(9, 2);
            let enter = |ip: &str| {
                let activity = connection();
                std::mem::forget(Activity::work(&activity));
                places.enter(Some(ip.parse().unwrap()), &activity)
            };
            let _first = (enter(together[0]).unwrap(), enter(together[1]).unwrap());
            assert_eq!(enter(together[2]).unwrap_err(), Full::Subscriber, "{together:?}");
            assert!(enter("2620:fe:0:2::1").is_ok());
        }
        let places = Places::new(3, 1);
        let activities: [_; 3] = std::array::from_fn(|_| connection());
        let proxies: Vec<_> =
            activities.iter().map(|activity| places.enter(None, activity).unwrap()).collect();
        assert!(!activities.iter().any(|activity| is_gone(activity)));
        drop(proxies);
    }
}
