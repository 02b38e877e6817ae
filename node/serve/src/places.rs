//! Places for the connections of a port, and who makes room for a newcomer.
//!
//! A connection costs nothing to whoever opens it, so none is held by being first. When there is no room, the one that
//! is least of use goes ([`Standing`]): of the newcomer's own when its [`subscriber`] has as many as it may, of all when
//! the port has. Whose requests are being worked on stays: a call that is cut off may have been charged.
//!
//! So that those at work do not hold all places, whoever presents one secret works on a part of them ([`Desk`]), and a
//! newcomer waits for its turn ([`NewcomerTurn`]).

use std::{collections::VecDeque, net::IpAddr, sync::Arc, time::Duration};

use farthing_bounds::subscriber;
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

use super::activity::{Activity, Standing};

/// A connection that is at work now may be idle soon, which nobody tells.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Newcomers of one subscriber that wait for a place; the lobby bounds those of all. They are served in their order, so that
/// one comes to its turn beside any number that are opened anew as they are closed. When one more comes than may wait, the first
/// of them goes: it has waited for nearly as long as it may, and its client may have given up. To send the newcomer away
/// would leave the queue to whoever filled it once, and to serve the last first would leave it to whoever comes most often.
const WAITING_PER_SUBSCRIBER_MAX: usize = 384;
/// A secret has at most so many times the connections that are left to others: three quarters when it is alone, and the less
/// the more others have.
const SHARE: usize = 3;

/// The places of one port.
#[derive(Debug)]
pub(super) struct Places {
    connections_max: usize,
    per_subscriber_max: usize,
    held: Mutex<HeldPlaces>,
    left: Notify,
}

#[derive(Debug, Default)]
struct HeldPlaces {
    next: u64,
    connections: Vec<Connection>,
    /// In the order in which they came, which is that of their numbers.
    waiting: VecDeque<(u64, IpAddr)>,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    /// `None` for a proxy, behind which there are many.
    subscriber: Option<IpAddr>,
    activity: Arc<Activity>,
    /// For whom requests are being worked on, with how many of each.
    works_for: Vec<(String, usize)>,
}

/// A connection or a newcomer, by its number.
#[derive(Debug, Clone)]
pub(super) struct Numbered {
    places: Arc<Places>,
    number: u64,
}

/// A connection's place, until dropped.
#[derive(Debug)]
pub(super) struct Place(Numbered);

/// A newcomer's turn, until dropped.
#[derive(Debug)]
pub(super) struct NewcomerTurn(Numbered);

/// The reason that there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// All of the port's are at work.
    All,
    /// All of this subscriber's are at work or have just come, or others of it wait for one.
    Subscriber,
    /// It waited, and so many of its subscriber came since that it may wait no longer.
    Displaced,
}

impl Places {
    pub(super) fn new(connections_max: usize, per_subscriber_max: usize) -> Arc<Self> {
        Arc::new(Self { connections_max, per_subscriber_max, held: Mutex::default(), left: Notify::new() })
    }

    /// A place for a connection from `ip`, or from a trusted proxy; another one goes when there is no room. `turn`: of
    /// one that waited.
    pub(super) fn enter(
        self: &Arc<Self>,
        ip: Option<IpAddr>,
        activity: &Arc<Activity>,
        turn: Option<&NewcomerTurn>,
        now: Instant,
    ) -> Result<Place, Full> {
        let subscriber = ip.map(subscriber);
        let turn = turn.map(|turn| turn.0.number);
        let mut held = self.held.lock();
        if turn.is_some_and(|turn| !held.waits(turn)) {
            return Err(Full::Displaced);
        }
        let first = held.waiting.iter().find(|(_, waits)| Some(*waits) == subscriber);
        if first.is_some_and(|(number, _)| Some(*number) != turn) {
            return Err(Full::Subscriber);
        }
        let is_own = |connection: &Connection| subscriber.is_some() && connection.subscriber == subscriber;
        let own = held.connections.iter().filter(|connection| is_own(connection)).count();
        if own >= self.per_subscriber_max {
            // One that has just come would never get to its request if the next one took its place.
            held.evict(is_own, now, |standing| standing != Standing::Arriving).ok_or(Full::Subscriber)?;
        } else if held.connections.len() >= self.connections_max {
            held.evict(|_| true, now, |_| true).ok_or(Full::All)?;
        }
        let number = held.number();
        let activity = Arc::clone(activity);
        held.connections.push(Connection { number, subscriber, activity, works_for: Vec::new() });
        Ok(Place(Numbered { places: Arc::clone(self), number }))
    }

    /// A turn for a newcomer from `ip`, behind the others of its subscriber; the first of them goes when too many wait.
    pub(super) fn wait(self: &Arc<Self>, ip: IpAddr) -> NewcomerTurn {
        let subscriber = subscriber(ip);
        let mut held = self.held.lock();
        let own = held.waiting.iter().enumerate().filter(|(_, (_, waits))| *waits == subscriber);
        let own: Vec<usize> = own.map(|(place, _)| place).collect();
        if own.len() >= WAITING_PER_SUBSCRIBER_MAX {
            // It notices when it looks for room next.
            held.waiting.remove(own[0]);
        }
        let number = held.number();
        held.waiting.push_back((number, subscriber));
        NewcomerTurn(Numbered { places: Arc::clone(self), number })
    }

    /// Returns when there may be room again.
    pub(super) async fn room(&self) {
        // Looking is cheap, and only a port whose connections all work does it.
        let _ = timeout(LOOK_AGAIN, self.left.notified()).await;
    }

    fn works_for(&self, number: u64, party: &str) -> bool {
        let mut held = self.held.lock();
        let Some(own) = held.connections.iter().find(|connection| connection.number == number) else {
            // Its place went to another.
            return false;
        };
        let subscriber = own.subscriber;
        let is_allowed = own.is_for(party)
            || held.leaves_room(own, party, self.connections_max, |_| true)
                && (subscriber.is_none()
                    || held.leaves_room(own, party, self.per_subscriber_max, |other| {
                        other.subscriber == subscriber
                    }));
        if is_allowed {
            held.count(number, party, true);
        }
        is_allowed
    }
}

impl Connection {
    fn is_for(&self, party: &str) -> bool {
        self.works_for.iter().any(|(whom, _)| whom == party)
    }
}

impl HeldPlaces {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn waits(&self, number: u64) -> bool {
        self.waiting.binary_search_by_key(&number, |(waiting, _)| *waiting).is_ok()
    }

    fn evict(
        &mut self,
        among: impl Fn(&Connection) -> bool,
        now: Instant,
        may_go: impl Fn(Standing) -> bool,
    ) -> Option<()> {
        let standing = |(place, connection): (usize, &Connection)| {
            let standing: (Standing, _) = connection.activity.standing(now)?;
            Some((standing, place))
        };
        let candidates = self.connections.iter().enumerate().filter(|(_, connection)| among(connection));
        let (_, place) = candidates.filter_map(standing).min().filter(|((least, _), _)| may_go(*least))?;
        self.connections.swap_remove(place).activity.evict();
        Some(())
    }

    /// Returns whether one connection more may work for `party`, of the `max` that `among` may have.
    fn leaves_room(
        &self,
        own: &Connection,
        party: &str,
        max: usize,
        among: impl Fn(&Connection) -> bool,
    ) -> bool {
        let at_work = |other: &&Connection| other.number != own.number && !other.works_for.is_empty();
        let (mut busy, mut of_party) = (0, 0);
        for other in self.connections.iter().filter(at_work).filter(|other| among(other)) {
            busy += 1;
            of_party += usize::from(other.is_for(party));
        }
        of_party < SHARE * max.saturating_sub(busy)
    }

    fn count(&mut self, number: u64, party: &str, begins: bool) {
        let Some(own) = self.connections.iter_mut().find(|own| own.number == number) else { return };
        let works_for = &mut own.works_for;
        match works_for.iter_mut().find(|(whom, _)| whom == party) {
            Some((_, requests)) if begins => *requests += 1,
            Some((_, requests)) => *requests -= 1,
            None => works_for.push((party.to_owned(), 1)),
        }
        works_for.retain(|(_, requests)| *requests > 0);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Numbered { places, number } = &self.0;
        places.held.lock().connections.retain(|connection| connection.number != *number);
        places.left.notify_waiters();
    }
}

impl Drop for NewcomerTurn {
    fn drop(&mut self) {
        let Numbered { places, number } = &self.0;
        places.held.lock().waiting.retain(|(waiting, _)| waiting != number);
        places.left.notify_waiters();
    }
}

/// The desk at which one request is worked on, among its extensions.
#[derive(Debug, Clone)]
pub struct Desk(Arc<DeskState>);

#[derive(Debug)]
struct DeskState {
    connection: Numbered,
    party: Mutex<Option<String>>,
}

impl Place {
    /// Returns the maker of this connection's desks.
    pub(super) fn desks(&self) -> Numbered {
        self.0.clone()
    }
}

impl Numbered {
    pub(super) fn desk(&self) -> Desk {
        Desk(Arc::new(DeskState { connection: self.clone(), party: Mutex::default() }))
    }
}

impl Desk {
    /// Returns whether the request may be worked on for `party`, such as who has a certain secret: not when the
    /// connections that work for it leave too few to others; nothing may be begun then. It counts until it is answered.
    #[must_use]
    pub fn works_for(&self, party: &str) -> bool {
        let mut kept = self.0.party.lock();
        let Numbered { places, number } = &self.0.connection;
        let is_allowed = kept.is_none() && places.works_for(*number, party);
        if is_allowed {
            *kept = Some(party.to_owned());
        }
        is_allowed
    }
}

impl Drop for DeskState {
    fn drop(&mut self) {
        if let Some(party) = self.party.get_mut().take() {
            self.connection.places.held.lock().count(self.connection.number, &party, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    impl Places {
        /// As [`Places::enter`], when the others are not new any more.
        fn enter_late(self: &Arc<Self>, ip: Option<IpAddr>, activity: &Arc<Activity>) -> Result<Place, Full> {
            self.enter(ip, activity, None, Instant::now() + Duration::from_secs(20))
        }
    }

    fn connection() -> Arc<Activity> {
        Activity::new(&Limits::default())
    }

    /// Returns whether it was told to go.
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
            held.push(places.enter_late(ip(), activity).unwrap());
        }
        drop(Activity::work(&idle));
        let _work = (Activity::work(&working), Activity::work(&sending), Activity::wait(&sending));
        let _answer = Activity::answer(&answering);
        for going in [&silent, &idle, &answering, &sending] {
            assert!(!is_gone(going), "{going:?}");
            let at_work = connection();
            held.push(places.enter_late(ip(), &at_work).unwrap());
            assert!(is_gone(going), "{going:?}");
            std::mem::forget(Activity::work(&at_work));
        }
        assert_eq!(places.enter_late(ip(), &connection()).unwrap_err(), Full::Subscriber);
        assert!(!is_gone(&working));
        // Others come in until the port is full.
        let other = || Some("10.0.0.1".parse().unwrap());
        let others: [_; 4] = std::array::from_fn(|_| connection());
        held.extend(others.iter().map(|activity| places.enter_late(other(), activity).unwrap()));
        held.push(places.enter_late(Some("10.0.0.2".parse().unwrap()), &connection()).unwrap());
        assert!(is_gone(&others[0]) && !is_gone(&others[1]), "who was silent for longest goes first");
        drop(held);
        assert!(places.held.lock().connections.is_empty());
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
                places.enter_late(Some(ip.parse().unwrap()), &activity)
            };
            let _first = (enter(together[0]).unwrap(), enter(together[1]).unwrap());
            assert_eq!(enter(together[2]).unwrap_err(), Full::Subscriber, "{together:?}");
            assert!(enter("2620:fe:0:2::1").is_ok());
        }
        let places = Places::new(3, 1);
        let activities: [_; 3] = std::array::from_fn(|_| connection());
        let proxies: Vec<_> =
            activities.iter().map(|activity| places.enter_late(None, activity).unwrap()).collect();
        assert!(!activities.iter().any(|activity| is_gone(activity)));
        drop(proxies);
    }

    #[test]
    fn who_has_just_come_stays_before_whoever_has_its_answers() {
        let places = Places::new(9, 2);
        let ip = || Some("9.9.9.9".parse().unwrap());
        let (arriving, idle) = (connection(), connection());
        let _held = (places.enter_late(ip(), &arriving).unwrap(), places.enter_late(ip(), &idle).unwrap());
        drop(Activity::work(&idle));
        let enter = || places.enter(ip(), &connection(), None, Instant::now());
        let _next = enter().unwrap();
        assert!(is_gone(&idle) && !is_gone(&arriving));
        assert_eq!(enter().unwrap_err(), Full::Subscriber, "both have just come");
        assert!(places.enter_late(ip(), &connection()).is_ok() && is_gone(&arriving));
    }

    #[test]
    fn who_takes_long_to_come_stays_before_whoever_has_its_answers_until_its_time_is_up() {
        let places = Places::new(9, 2);
        let ip = || Some("9.9.9.9".parse().unwrap());
        let (slow, idle) = (connection(), connection());
        let _held = (places.enter_late(ip(), &slow).unwrap(), places.enter_late(ip(), &idle).unwrap());
        drop(Activity::work(&idle));
        let after =
            |secs| places.enter(ip(), &connection(), None, Instant::now() + Duration::from_secs(secs));
        let _next = after(3).unwrap();
        assert!(is_gone(&idle) && !is_gone(&slow));
        let _next = after(3).unwrap();
        assert!(is_gone(&slow), "nobody else can go");
        let (silent, idle) = (connection(), connection());
        let places = Places::new(9, 2);
        let _held = (places.enter_late(ip(), &silent).unwrap(), places.enter_late(ip(), &idle).unwrap());
        drop(Activity::work(&idle));
        let _next = places.enter_late(ip(), &connection()).unwrap();
        assert!(is_gone(&silent) && !is_gone(&idle));
    }

    #[test]
    fn a_secret_leaves_some_places_to_others() {
        let here = || Some("127.0.0.1".parse().unwrap());
        let places = Places::new(1_000, 16);
        let enter = || {
            let activity = connection();
            let place = places.enter_late(here(), &activity).unwrap();
            (Activity::work(&activity), place)
        };
        let mut held: Vec<(Desk, _)> = Vec::new();
        let mut begin = |party: &str| {
            let connection = enter();
            let desk = connection.1.desks().desk();
            let is_allowed = desk.works_for(party);
            if is_allowed {
                held.push((desk, connection));
            }
            is_allowed
        };
        assert_eq!((0..16).filter(|_| begin("one")).count(), 12, "three quarters");
        assert!(!begin("one") && begin("two") && begin("two"));
        assert!(!begin("one") && begin("three") && begin("four"), "each of them finds one");
        // Another request on a connection of its own takes nothing from anybody.
        let (desk, (_, place)) = &held[0];
        let next = place.desks().desk();
        assert!(next.works_for("one") && !next.works_for("one"), "each request counts once");
        drop(next);
        assert!(desk.0.connection.places.held.lock().connections.iter().any(|own| own.is_for("one")));
        held.clear();
        assert!(places.held.lock().connections.is_empty());
        let places = Places::new(4, 4);
        let proxied: Vec<_> = (0..4).map(|_| places.enter_late(None, &connection()).unwrap()).collect();
        let desks: Vec<_> = proxied.iter().map(|place| place.desks().desk()).collect();
        assert_eq!(desks.iter().filter(|desk| desk.works_for("one")).count(), 3, "behind a proxy, too");
    }

    #[test]
    fn newcomers_of_a_subscriber_wait_in_their_order_and_in_a_bounded_number() {
        let places = Places::new(9, 1);
        let (here, other) = (IpAddr::from([127, 0, 0, 1]), Some("9.9.9.9".parse().unwrap()));
        let working = connection();
        let place = places.enter_late(Some(here), &working).unwrap();
        let work = Activity::work(&working);
        let enter =
            |turn: Option<&NewcomerTurn>| places.enter(Some(here), &connection(), turn, Instant::now());
        let stranger = places.wait("9.9.9.9".parse().unwrap());
        let mut turns: Vec<_> = (0..WAITING_PER_SUBSCRIBER_MAX).map(|_| places.wait(here)).collect();
        assert_eq!(enter(Some(&turns[0])).unwrap_err(), Full::Subscriber, "all may wait");
        turns.push(places.wait(here));
        assert_eq!(enter(Some(&turns[0])).unwrap_err(), Full::Displaced, "one more came");
        turns.remove(0);
        assert_eq!(places.held.lock().waiting.len(), turns.len() + 1, "no other goes");
        drop(stranger);
        assert_eq!(enter(Some(&turns[0])).unwrap_err(), Full::Subscriber, "it is at work still");
        assert!(places.enter_late(other, &connection()).is_ok(), "others wait for nothing");
        drop((work, place));
        assert_eq!(enter(None).unwrap_err(), Full::Subscriber, "others came before");
        assert_eq!(enter(Some(&turns[1])).unwrap_err(), Full::Subscriber);
        assert!(enter(Some(&turns[0])).is_ok());
        drop(turns);
        assert!(places.held.lock().waiting.is_empty());
        assert!(places.enter(Some(here), &connection(), None, Instant::now()).is_ok());
    }
}
