//! A limit on how fast peers gossip and ask: counted in frames and in questions, before they are read. Pure.
//!
//! What the library of gossip takes, it keeps for a while, whatever it is worth: the id of each object, and each object until
//! it was judged. So what it takes is bounded here, and with it the library's memory and time. A question is free, and its
//! answer may take a read of the disk and a megabyte of the line.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::neighbour_origin::NeighbourOrigin;

/// From one frame to the next, of one origin, in the long run: 960 a minute. A neighbour of a network of a million
/// services tells of a hundred objects a minute, so nine such neighbours in one address range are not held up. A node
/// asks a neighbour about each service that it reads ahead, four at a time, and waits without harm.
const FRAME_EVERY: Duration = Duration::from_micros(62_500);
/// Frames at once: an owner's 64 listings, changed twice, and what others had to tell meanwhile. As many questions.
const FRAMES_AT_ONCE: u32 = 256;
/// The longest that one connection waits for its next frame, however many others its range has: the messages to a
/// neighbour wait as long as those from it, and a flood in the neighbourhood must not silence an honest node.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Origins that are counted: more than can be connected. Those that owe nothing are forgotten first.
const ORIGINS_MAX: usize = 1024;

/// The frames, or the questions, that every origin has left. A cheap handle, shared by all connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pace(Arc<Mutex<HashMap<NeighbourOrigin, Instant>>>);

impl Pace {
    /// Counts one of `origin`, and says how long the next one is not to be read.
    pub(crate) fn spend(&self, origin: NeighbourOrigin, now: Instant) -> Duration {
        let mut whole_at = self.0.lock();
        if whole_at.len() >= ORIGINS_MAX && !whole_at.contains_key(&origin) {
            make_room(&mut whole_at, now);
        }
        let (spent, wait) = spend(whole_at.get(&origin).copied(), now);
        whole_at.insert(origin, spent);
        wait
    }
}

/// An origin is described by the moment from which on it has all of its frames again.
fn spend(whole_at: Option<Instant>, now: Instant) -> (Instant, Duration) {
    let before = whole_at.unwrap_or(now).max(now);
    let at_once = FRAME_EVERY.saturating_mul(FRAMES_AT_ONCE);
    let after = (before + FRAME_EVERY).min(now + at_once + WAIT_MAX);
    (after, after.saturating_duration_since(now + at_once))
}

/// Forgets those that have all of their frames, or else the one that would have them soonest: it loses least.
fn make_room(whole_at: &mut HashMap<NeighbourOrigin, Instant>, now: Instant) {
    whole_at.retain(|_, at| *at > now);
    if whole_at.len() >= ORIGINS_MAX
        && let Some(soonest) = whole_at.iter().min_by_key(|(_, at)| **at).map(|(origin, _)| *origin)
    {
        whole_at.remove(&soonest);
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::Address;

    use super::*;

    fn range(third: u8) -> NeighbourOrigin {
        NeighbourOrigin::Range([9, 9, third, 0].into())
    }

    /// Counts the frames read in this time from `connections` that always have another one.
    fn read_in(seconds: u64, connections: usize) -> usize {
        let (frames, start) = (Pace::default(), Instant::now());
        let mut next = vec![start; connections];
        let end = start + Duration::from_secs(seconds);
        let mut read = 0;
        while let Some(at) = next.iter_mut().min().filter(|at| **at < end) {
            let now = *at;
            *at = now + frames.spend(range(1), now);
            read += 1;
        }
        read
    }

    #[test]
    fn a_burst_passes_at_once_and_what_follows_at_a_steady_pace() {
        for connections in [1, 3, 16] {
            let read = read_in(60, connections);
            assert!((1_216..=1_216 + 2 * connections).contains(&read), "{connections}: {read}");
        }
        // Each has one a second at least, so that no crowd of one range silences one of them.
        let read = read_in(60, 64);
        assert!((64 * 59..=256 + 64 * 61).contains(&read), "{read}");
    }

    #[test]
    fn what_neighbours_tell_of_on_a_busy_day_waits_for_nothing() {
        let (frames, start) = (Pace::default(), Instant::now());
        // Nine in one range, a hundred objects a minute each, and 256 of one owner at once.
        for n in 0..9 * 100 {
            assert_eq!(frames.spend(range(1), start + n * Duration::from_micros(66_667)), Duration::ZERO);
        }
        let waits = (0..256).map(|_| frames.spend(range(2), start));
        assert_eq!(waits.max(), Some(Duration::ZERO));
        assert!(frames.spend(range(2), start) > Duration::ZERO);
        assert_eq!(frames.spend(range(3), start), Duration::ZERO, "others are not affected");
        let later = start + Duration::from_secs(16);
        let waits = (0..255).map(|_| frames.spend(range(2), later));
        assert_eq!(waits.max(), Some(Duration::ZERO), "and it has them all again");
    }

    #[test]
    fn the_count_of_origins_is_bounded_and_who_owes_is_not_forgotten() {
        let (frames, start) = (Pace::default(), Instant::now());
        for _ in 0..300 {
            frames.spend(range(1), start);
        }
        for n in 0..2 * ORIGINS_MAX {
            let mut wallet = [0; 20];
            wallet[..8].copy_from_slice(&n.to_be_bytes());
            frames.spend(NeighbourOrigin::Wallet(Address::from_bytes(wallet)), start);
        }
        assert!(frames.0.lock().len() <= ORIGINS_MAX);
        assert!(frames.spend(range(1), start) > Duration::ZERO);
    }
}
