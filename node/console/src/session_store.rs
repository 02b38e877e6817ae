//! Work that somebody began in the console and has not finished: in memory, bounded, and gone with a restart.
//!
//! Each thing belongs to one session and is found by a random name in the page's address. The oldest makes room
//! for a new one; what nobody looked at for two hours goes by itself.

use std::{
    io,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};

use super::access::SessionId;

/// A long lunch.
const IDLE_MAX: Duration = Duration::from_secs(2 * 3600);

/// Limits of what is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) entries_max: usize,
    pub(super) per_session_max: usize,
    /// Of all entries together.
    pub(super) bytes_max: usize,
}

/// Things of one kind, by session and name.
#[derive(Debug)]
pub(super) struct SessionStore<T> {
    entries: Mutex<Vec<StoreEntry<T>>>,
    bounds: Bounds,
}

#[derive(Debug)]
struct StoreEntry<T> {
    name: String,
    session: SessionId,
    seen: Instant,
    bytes: usize,
    value: T,
}

impl<T: Clone> SessionStore<T> {
    pub(super) const fn new(bounds: Bounds) -> Self {
        Self { entries: Mutex::new(Vec::new()), bounds }
    }

    /// Keeps `value`, which takes about `bytes`, and names it.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub(super) fn put(&self, session: SessionId, bytes: usize, value: T) -> io::Result<String> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::from)?;
        let name = hex::encode(random);
        let mut entries = self.entries();
        let Bounds { entries_max, per_session_max, bytes_max } = self.bounds;
        let of_session = |entry: &StoreEntry<T>| entry.session == session;
        while entries.iter().filter(|entry| of_session(entry)).count() >= per_session_max {
            remove_oldest(&mut entries, of_session);
        }
        let total = |entries: &[StoreEntry<T>]| entries.iter().map(|entry| entry.bytes).sum::<usize>();
        while !entries.is_empty() && (entries.len() >= entries_max || total(&entries) + bytes > bytes_max) {
            remove_oldest(&mut entries, |_| true);
        }
        entries.push(StoreEntry { name: name.clone(), session, seen: Instant::now(), bytes, value });
        Ok(name)
    }

    /// The session's thing of that name.
    pub(super) fn get(&self, session: SessionId, name: &str) -> Option<T> {
        self.change(session, name, |value| value.clone())
    }

    /// Does something with it.
    pub(super) fn change<R>(
        &self,
        session: SessionId,
        name: &str,
        change: impl FnOnce(&mut T) -> R,
    ) -> Option<R> {
        let mut entries = self.entries();
        let entry = entries.iter_mut().find(|entry| entry.session == session && entry.name == name)?;
        entry.seen = Instant::now();
        Some(change(&mut entry.value))
    }

    /// Hands it out and forgets it: of two who ask at once, one gets it.
    pub(super) fn take(&self, session: SessionId, name: &str) -> Option<T> {
        let mut entries = self.entries();
        let index = entries.iter().position(|entry| entry.session == session && entry.name == name)?;
        Some(entries.swap_remove(index).value)
    }

    /// All of a session, the newest first.
    pub(super) fn of(&self, session: SessionId) -> Vec<(String, T)> {
        let entries = self.entries();
        let mut own: Vec<&StoreEntry<T>> = entries.iter().filter(|entry| entry.session == session).collect();
        own.sort_by_key(|entry| std::cmp::Reverse(entry.seen));
        own.into_iter().map(|entry| (entry.name.clone(), entry.value.clone())).collect()
    }

    fn entries(&self) -> MutexGuard<'_, Vec<StoreEntry<T>>> {
        let mut entries = self.entries.lock();
        entries.retain(|entry| entry.seen.elapsed() < IDLE_MAX);
        entries
    }
}

fn remove_oldest<T>(entries: &mut Vec<StoreEntry<T>>, of: impl Fn(&StoreEntry<T>) -> bool) {
    let candidates = (0..entries.len()).filter(|&index| of(&entries[index]));
    if let Some(oldest) = candidates.min_by_key(|&index| entries[index].seen) {
        entries.remove(oldest);
    }
}

#[cfg(test)]
mod tests {
    use crate::access::{Session, Token};

    use super::*;

    const BOUNDS: Bounds = Bounds { entries_max: 3, per_session_max: 2, bytes_max: 100 };

    fn session() -> SessionId {
        Session::of_token(&Token::generate().unwrap())
    }

    #[test]
    fn a_thing_is_its_sessions_alone_and_is_taken_once() {
        let kept = SessionStore::new(BOUNDS);
        let (one, other) = (session(), session());
        let name = kept.put(one, 1, "draft").unwrap();
        assert_eq!(kept.get(other, &name), None);
        assert_eq!(kept.take(other, &name), None);
        assert_eq!(kept.change(one, &name, |value| *value = "changed"), Some(()));
        assert_eq!(kept.take(one, &name), Some("changed"));
        assert_eq!(kept.take(one, &name), None);
    }

    #[test]
    fn the_oldest_makes_room() {
        let kept = SessionStore::new(BOUNDS);
        let (one, other, third) = (session(), session(), session());
        let first = kept.put(one, 40, 1).unwrap();
        let second = kept.put(one, 40, 2).unwrap();
        let newest = kept.put(one, 10, 3).unwrap();
        assert_eq!(kept.get(one, &first), None, "two of a session");
        assert_eq!(kept.of(one).len(), 2);
        let of_other = kept.put(other, 60, 4).unwrap();
        assert_eq!(kept.get(one, &second), None, "a hundred bytes in all");
        kept.put(third, 1, 5).unwrap();
        let names = |session| kept.of(session).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!((names(one), names(other)), (vec![newest], vec![of_other]));
        kept.put(third, 1, 6).unwrap();
        assert_eq!(kept.of(third).len(), 2, "three in all");
        assert_eq!(kept.of(one).len() + kept.of(other).len(), 1);
    }
}
