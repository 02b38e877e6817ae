//! With whom to compare catalogs, and when. Pure.
//!
//! A session works both ways, so of two nodes that meet, the one that dialled the other on purpose opens it; whom the
//! directory asks on its way is met for a moment and not worth a session. When both dialled, it is the one with the
//! lower wallet. After that a random neighbour is chosen every five minutes: that is what everything arrives by in the
//! end. In between, what is new here is passed on by sessions with a few neighbours, so that it travels fast even
//! where gossip does not.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, SystemTime},
};

use farthing_protocol::Address;
use tokio::time::Instant;

/// The average time after which a random neighbour is asked.
const REGULARLY: Duration = Duration::from_secs(300);
/// Several changes in a row make one round of sessions.
const GATHER: Duration = Duration::from_millis(400);
/// Neighbours that are told of a change: gossip has told the rest, or they are told by these.
const TOLD_OF_OWN: usize = 4;
const TOLD_OF_OTHERS: usize = 2;
/// Sessions that may wait; with more neighbours than this, the others are reached through these.
const WAITING_MAX: usize = 32;
/// Sessions of this node's own at once: each holds up to a megabyte.
const RUNNING_MAX: usize = 4;
/// A session that failed is tried again after this: the other side may have been busy with another.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// The most repeats in a row of a failed session; after that the regular sessions make up for it.
const AGAIN_MAX: u32 = 3;

/// The way in which a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// Both have what they could get; whether something was new here.
    Agreed { learned: bool },
    /// It ended early. When something was new all the same, as for a newcomer with much to learn, the rest is
    /// worth asking for at once.
    Broken { learned: bool },
}

/// A neighbour that is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    pub wallet: Address,
    /// True if this node dialled it on purpose, and not for a question of the directory.
    pub was_sought: bool,
    /// True if it dialled this node.
    pub came: bool,
    /// The time since which it has been connected without a gap.
    pub since: SystemTime,
}

/// The sessions that are still to be held.
#[derive(Debug)]
pub struct Agenda {
    own: Address,
    connected: HashMap<Address, SystemTime>,
    waiting: HashMap<Address, Instant>,
    running: HashSet<Address>,
    /// Failures in a row.
    failures: HashMap<Address, u32>,
    /// Neighbours that are still to be told of a change, because too few were there when it came.
    owed: usize,
    /// Peers that were behind, and when they were told so.
    told: HashMap<Address, Instant>,
    regular: Instant,
    random: u64,
}

impl Agenda {
    /// `seed` makes nodes differ in whom they choose.
    pub fn new(own: Address, seed: u64, now: Instant) -> Self {
        let mut agenda = Self {
            own,
            connected: HashMap::new(),
            waiting: HashMap::new(),
            running: HashSet::new(),
            failures: HashMap::new(),
            owed: 0,
            told: HashMap::new(),
            regular: now,
            random: seed | 1,
        };
        agenda.plan_regular(now);
        agenda
    }

    /// Takes note of who is connected now.
    pub fn connected(&mut self, neighbours: &[Neighbour], now: Instant) {
        for Neighbour { wallet, was_sought, came, since } in neighbours {
            let is_ours = *was_sought && (!came || self.own < *wallet);
            // Whoever came a moment before a change may have compared before it, and not be known here yet.
            let is_owed = self.owed > 0;
            // It may have gone and come back between two looks, and not be what it was.
            let is_new = self.connected.get(wallet) != Some(since);
            if is_new && (is_ours || is_owed) && self.waiting.len() < WAITING_MAX {
                self.waiting.entry(*wallet).or_insert(now);
                self.owed = self.owed.saturating_sub(1);
            }
        }
        let peers: HashMap<Address, SystemTime> =
            neighbours.iter().map(|neighbour| (neighbour.wallet, neighbour.since)).collect();
        self.waiting.retain(|peer, _| peers.contains_key(peer));
        self.failures.retain(|peer, _| peers.contains_key(peer));
        self.told.retain(|peer, _| peers.contains_key(peer));
        self.connected = peers;
    }

    /// This node's own listings changed.
    pub fn published(&mut self, now: Instant) {
        self.tell(None, TOLD_OF_OWN, now);
    }

    /// A session with `peer` brought something new.
    pub fn learned_from(&mut self, peer: Address, now: Instant) {
        self.tell(Some(peer), TOLD_OF_OTHERS, now);
    }

    /// `peer` offers less than is known here. It hears so soon, and not with every call that finds it.
    pub fn is_behind(&mut self, peer: Address, now: Instant) {
        let is_told = self.told.get(&peer).is_some_and(|told| now < *told + AGAIN_AFTER);
        if self.connected.contains_key(&peer) && !is_told {
            self.told.insert(peer, now);
            self.waiting.insert(peer, now);
        }
    }

    /// With whom to begin a session now. Say with [`Self::ended`] how it went.
    pub fn next(&mut self, now: Instant) -> Option<Address> {
        if self.regular <= now {
            self.plan_regular(now);
            for peer in self.choose(None, 1) {
                self.waiting.entry(peer).or_insert(now);
            }
        }
        if self.running.len() >= RUNNING_MAX {
            return None;
        }
        let due = self.waiting.iter().filter(|(peer, at)| **at <= now && !self.running.contains(*peer));
        let peer = due.min_by_key(|(peer, at)| (**at, **peer)).map(|(peer, _)| *peer)?;
        self.waiting.remove(&peer);
        self.running.insert(peer);
        Some(peer)
    }

    /// A session of [`Self::next`] is over.
    pub fn ended(&mut self, peer: Address, how: SessionEnd, now: Instant) {
        self.running.remove(&peer);
        match how {
            SessionEnd::Agreed { learned } => {
                self.failures.remove(&peer);
                if learned {
                    self.learned_from(peer, now);
                }
            }
            SessionEnd::Broken { learned } => {
                let failures = self.failures.entry(peer).or_default();
                *failures = if learned { 0 } else { *failures + 1 };
                let pause = if learned { GATHER } else { AGAIN_AFTER };
                if *failures <= AGAIN_MAX && self.connected.contains_key(&peer) {
                    self.waiting.entry(peer).or_insert(now + pause);
                }
            }
        }
    }

    /// Sessions that wait anyway will bring the change along.
    fn tell(&mut self, except: Option<Address>, count: usize, now: Instant) {
        let waiting = self.waiting.keys().filter(|peer| Some(**peer) != except).count();
        let chosen = self.choose(except, count.saturating_sub(waiting));
        self.owed = self.owed.max(count.saturating_sub(waiting + chosen.len()));
        for peer in chosen {
            self.waiting.entry(peer).or_insert(now + GATHER);
        }
    }

    /// Between three quarters and five quarters of the interval, so that nodes do not fall into step.
    fn plan_regular(&mut self, now: Instant) {
        let half = REGULARLY / 2;
        let part = u32::try_from(self.next_random() % 1_000).unwrap_or(0);
        self.regular = now + REGULARLY - half / 2 + half * part / 1_000;
    }

    fn choose(&mut self, except: Option<Address>, count: usize) -> Vec<Address> {
        let mut peers: Vec<Address> =
            self.connected.keys().copied().filter(|peer| Some(*peer) != except).collect();
        peers.sort_unstable();
        let mut chosen = Vec::new();
        while chosen.len() < count && !peers.is_empty() {
            let index = usize::try_from(self.next_random() % peers.len() as u64).unwrap_or(0);
            chosen.push(peers.swap_remove(index));
        }
        chosen
    }

    /// Xorshift (Marsaglia, 2003): choices need to differ, not to be unpredictable.
    const fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Address = Address::from_bytes([50; 20]);

    fn peer(n: u8) -> Address {
        Address::from_bytes([n; 20])
    }

    /// Dialled by this node.
    fn sought(n: u8) -> Neighbour {
        Neighbour { wallet: peer(n), was_sought: true, came: false, since: SystemTime::UNIX_EPOCH }
    }

    /// Has dialled this node.
    fn came(n: u8) -> Neighbour {
        Neighbour { wallet: peer(n), was_sought: false, came: true, since: SystemTime::UNIX_EPOCH }
    }

    fn with_peers(neighbours: impl IntoIterator<Item = Neighbour>, now: Instant) -> Agenda {
        let mut agenda = Agenda::new(OWN, 7, now);
        agenda.connected(&neighbours.into_iter().collect::<Vec<_>>(), now);
        agenda
    }

    /// Everybody whose turn it is, as if each session ended at once.
    fn due(agenda: &mut Agenda, now: Instant) -> Vec<Address> {
        let mut due = Vec::new();
        while let Some(peer) = agenda.next(now) {
            agenda.ended(peer, SessionEnd::Agreed { learned: false }, now);
            due.push(peer);
        }
        due.sort_unstable();
        due
    }

    #[test]
    fn whoever_dialled_on_purpose_opens_the_session_once() {
        let now = Instant::now();
        let contact = Neighbour { was_sought: false, ..sought(52) };
        assert_eq!(due(&mut with_peers([came(49), came(51), contact], now), now), []);
        let mut agenda = with_peers([sought(49), sought(51)], now);
        assert_eq!(due(&mut agenda, now), [peer(49), peer(51)]);
        agenda.connected(&[sought(51)], now);
        assert_eq!(due(&mut agenda, now), [], "once, as long as it stays");
        agenda.connected(&[], now);
        agenda.connected(&[sought(51)], now);
        assert_eq!(due(&mut agenda, now), [peer(51)], "and again when it comes back");
        let since = SystemTime::UNIX_EPOCH + Duration::from_millis(1);
        agenda.connected(&[Neighbour { since, ..sought(51) }], now);
        assert_eq!(due(&mut agenda, now), [peer(51)], "also when nobody looked meanwhile");
    }

    #[test]
    fn whoever_is_behind_is_told_at_once_and_not_with_every_call() {
        let now = Instant::now();
        let mut agenda = with_peers([came(51)], now);
        agenda.is_behind(peer(52), now);
        assert_eq!(due(&mut agenda, now), [], "it is gone");
        agenda.is_behind(peer(51), now);
        assert_eq!(due(&mut agenda, now), [peer(51)]);
        agenda.is_behind(peer(51), now);
        assert_eq!(due(&mut agenda, now), [], "it has just been told");
        agenda.is_behind(peer(51), now + AGAIN_AFTER);
        assert_eq!(due(&mut agenda, now + AGAIN_AFTER), [peer(51)]);
    }

    #[test]
    fn of_two_that_dialled_each_other_the_lower_wallet_opens_the_session() {
        let now = Instant::now();
        let both = |n| Neighbour { came: true, ..sought(n) };
        assert_eq!(due(&mut with_peers([both(49), both(51)], now), now), [peer(51)]);
    }

    #[test]
    fn a_random_neighbour_is_asked_regularly_whoever_met_whom() {
        let mut now = Instant::now();
        let mut agenda = with_peers((1..=40).map(came), now);
        let mut asked = HashSet::new();
        for _ in 0..60 {
            now = agenda.regular;
            let due = due(&mut agenda, now);
            assert_eq!(due.len(), 1);
            asked.extend(due);
        }
        assert!(asked.len() > 20, "{} different ones", asked.len());
    }

    #[test]
    fn a_change_is_told_to_a_few_and_never_back_to_its_teller() {
        let now = Instant::now();
        let mut agenda = with_peers((1..=20).map(came), now);
        agenda.published(now);
        agenda.published(now);
        assert_eq!(due(&mut agenda, now), [], "changes in a row are gathered");
        let told = due(&mut agenda, now + GATHER);
        assert_eq!(told.len(), TOLD_OF_OWN);
        for _ in 0..50 {
            agenda.learned_from(peer(3), now);
        }
        assert!(!due(&mut agenda, now + GATHER).contains(&peer(3)));
    }

    #[test]
    fn a_change_that_came_before_the_neighbours_is_told_to_those_who_come() {
        let now = Instant::now();
        let mut agenda = Agenda::new(OWN, 7, now);
        agenda.published(now);
        assert_eq!(due(&mut agenda, now + GATHER), []);
        agenda.connected(&[came(1)], now);
        assert_eq!(due(&mut agenda, now), [peer(1)], "it came, and would have to be waited for");
        agenda.connected(&(1..=20).map(came).collect::<Vec<_>>(), now);
        assert_eq!(due(&mut agenda, now).len(), TOLD_OF_OWN - 1, "a few are enough");
        agenda.connected(&(1..=30).map(came).collect::<Vec<_>>(), now);
        assert_eq!(due(&mut agenda, now), []);
    }

    #[test]
    fn whoever_left_is_not_asked_and_the_list_is_bounded() {
        let now = Instant::now();
        let mut agenda = with_peers([sought(60), sought(61)], now);
        agenda.connected(&[sought(61)], now);
        assert_eq!(due(&mut agenda, now), [peer(61)]);
        let mut agenda = with_peers((51..=255).map(sought), now);
        assert_eq!(due(&mut agenda, now).len(), WAITING_MAX);
    }

    #[test]
    fn a_few_sessions_run_at_once_and_never_two_with_one_neighbour() {
        let now = Instant::now();
        let mut agenda = with_peers((51..=70).map(sought), now);
        let running: Vec<_> = std::iter::from_fn(|| agenda.next(now)).collect();
        assert_eq!(running.len(), RUNNING_MAX);
        agenda.published(now);
        for peer in &running[1..] {
            agenda.ended(*peer, SessionEnd::Agreed { learned: false }, now);
        }
        let later: Vec<_> = std::iter::from_fn(|| agenda.next(now + GATHER)).collect();
        assert!(!later.contains(&running[0]));
    }

    #[test]
    fn a_session_that_fails_is_tried_a_few_times_again() {
        let mut now = Instant::now();
        let mut agenda = with_peers([sought(51)], now);
        for _ in 0..=AGAIN_MAX {
            assert_eq!(agenda.next(now), Some(peer(51)));
            agenda.ended(peer(51), SessionEnd::Broken { learned: false }, now);
            assert_eq!(agenda.next(now), None);
            now += AGAIN_AFTER;
        }
        assert_eq!(agenda.next(now), None);
        now += 2 * REGULARLY;
        assert_eq!(agenda.next(now), Some(peer(51)), "and regularly, whatever happened");
        for _ in 0..=2 * AGAIN_MAX {
            agenda.ended(peer(51), SessionEnd::Broken { learned: true }, now);
            now += GATHER;
            assert_eq!(agenda.next(now), Some(peer(51)), "as long as it brings something");
        }
    }
}
