//! Memory for bodies, counted over everything that holds them: one node, one budget.
//!
//! Whoever lets a body grow takes room first, and is refused when there is none. What was taken is given back when the
//! last copy of the body is dropped ([`HeldBytes::attach`]), wherever that happens.
//!
//! Invariant: a part never holds more than its own bound, and all parts together, with what was taken of the whole, no
//! more than the whole's; only what was [`ByteBudget::count`]ed may go beyond.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;

/// Room for bytes. A cheap handle.
#[derive(Clone)]
pub struct ByteBudget(Arc<Level>);

struct Level {
    bytes_max: usize,
    held: AtomicUsize,
    whole: Option<ByteBudget>,
}

impl ByteBudget {
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self(Arc::new(Level { bytes_max, held: AtomicUsize::new(0), whole: None }))
    }

    /// A part of this budget with a bound of its own: who fills it leaves the rest to others.
    #[must_use]
    pub fn part(&self, bytes_max: usize) -> Self {
        Self(Arc::new(Level { bytes_max, held: AtomicUsize::new(0), whole: Some(self.clone()) }))
    }

    #[must_use]
    pub fn bytes_max(&self) -> usize {
        self.0.bytes_max
    }

    /// Bytes that are held now.
    #[must_use]
    pub fn held(&self) -> usize {
        self.0.held.load(Ordering::Relaxed)
    }

    /// Nothing yet, to be grown.
    #[must_use]
    pub fn nothing(&self) -> HeldBytes {
        HeldBytes { budget: self.clone(), bytes: 0 }
    }

    /// Room for `bytes`, unless there is too little.
    #[must_use]
    pub fn take(&self, bytes: usize) -> Option<HeldBytes> {
        let mut held = self.nothing();
        held.grow(bytes).then_some(held)
    }

    /// Counts bytes that are there already and cannot be refused any more, such as an answer that was paid: whoever
    /// asks for room later finds less of it.
    #[must_use]
    pub fn count(&self, bytes: usize) -> HeldBytes {
        self.add(bytes, true);
        HeldBytes { budget: self.clone(), bytes }
    }

    fn add(&self, bytes: usize, is_there_already: bool) -> bool {
        let level = &*self.0;
        let sum = |held: usize| {
            let held = held.saturating_add(bytes);
            (is_there_already || held <= level.bytes_max).then_some(held)
        };
        if level.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).is_err() {
            return false;
        }
        let added = level.whole.as_ref().is_none_or(|whole| whole.add(bytes, is_there_already));
        if !added {
            level.held.fetch_sub(bytes, Ordering::Relaxed);
        }
        added
    }

    fn give_back(&self, bytes: usize) {
        self.0.held.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(whole) = &self.0.whole {
            whole.give_back(bytes);
        }
    }
}

impl fmt::Debug for ByteBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ByteBudget({} of {})", self.held(), self.bytes_max())
    }
}

/// Room that was taken; dropping it gives it back.
#[derive(Debug)]
pub struct HeldBytes {
    budget: ByteBudget,
    bytes: usize,
}

impl HeldBytes {
    /// Takes room for `more`; false, and nothing taken, when there is too little.
    #[must_use]
    pub fn grow(&mut self, more: usize) -> bool {
        let grown = self.budget.add(more, false);
        if grown {
            self.bytes += more;
        }
        grown
    }

    /// `body`, which gives the room back when its last copy is dropped.
    #[must_use]
    pub fn attach(self, body: Bytes) -> Bytes {
        if body.is_empty() { body } else { Bytes::from_owner(Attached { body, _held: self }) }
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

struct Attached {
    body: Bytes,
    _held: HeldBytes,
}

impl AsRef<[u8]> for Attached {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_up_to_the_bound_and_none_above() {
        let budget = ByteBudget::new(10);
        let mut held = budget.take(4).unwrap();
        assert!(held.grow(6));
        assert!(!held.grow(1));
        assert!(budget.take(1).is_none());
        assert!(budget.take(usize::MAX).is_none());
        drop(held);
        assert_eq!(budget.held(), 0);
        assert!(budget.take(10).is_some());
    }

    #[test]
    fn who_fills_a_part_leaves_the_rest_to_others() {
        let whole = ByteBudget::new(10);
        let part = whole.part(6);
        let held = part.take(6).unwrap();
        assert!(part.take(1).is_none(), "the part's own bound");
        let rest = whole.take(4).unwrap();
        assert!(whole.take(1).is_none());
        drop(held);
        assert_eq!((part.held(), whole.held()), (0, 4));
        let other = whole.take(5).unwrap();
        assert!(part.take(2).is_none(), "the whole's bound");
        assert_eq!((part.held(), whole.held()), (0, 9), "what did not fit is not counted");
        drop((rest, other));
    }

    #[test]
    fn what_is_there_already_is_counted_and_keeps_others_out() {
        let budget = ByteBudget::new(10);
        let answer = budget.count(12);
        assert!(budget.take(1).is_none());
        drop(answer);
        assert!(budget.take(10).is_some());
    }

    #[test]
    fn room_is_given_back_with_the_last_copy_of_a_body() {
        let budget = ByteBudget::new(10);
        let body = budget.take(5).unwrap().attach(Bytes::from_static(b"hello"));
        let (copy, part) = (body.clone(), body.slice(1..2));
        assert_eq!(copy, "hello");
        drop((body, copy));
        assert_eq!(budget.held(), 5, "a slice holds the whole");
        drop(part);
        assert_eq!(budget.held(), 0);
    }
}
