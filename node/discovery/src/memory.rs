//! Memory for descriptions of strangers' services, counted wherever they are held: in the stores, and by each call and page under
//! way that works with one that its store gave up.
//!
//! Room is taken by an upper bound before a description is read, and given back when the last one who holds it lets go of it
//! ([`KnownService::keeping`](super::KnownService::keeping)). Nobody waits for room: the one thread that reads goes on with the next.

use farthing_bounds::{ByteBudget, HeldBytes};

/// The bytes of services that were paid for, by the upper bounds of their descriptions. A larger one is kept alone, here and below.
pub(super) const PAID_BYTES_MAX: usize = 128 * 1024 * 1024;
/// The bytes of guests, and of versions that are not in use.
pub(super) const UNPAID_BYTES_MAX: usize = PAID_BYTES_MAX / 2;
/// The bytes of all that is held: as much again for calls and pages. The largest description takes about half.
const HELD_BYTES_MAX: usize = 4 * PAID_BYTES_MAX;
/// The size of a hundred operations. What is no larger is counted and never refused: calls that hold large descriptions keep no
/// ordinary service out, and these are bounded by the calls under way.
const ORDINARY_BYTES_MAX: usize = 1024 * 1024;

#[derive(Debug)]
pub(super) struct DescriptionMemory(ByteBudget);

impl DescriptionMemory {
    pub(super) fn new() -> Self {
        Self(ByteBudget::new(HELD_BYTES_MAX))
    }

    /// Takes room for a description, unless there is too little for a large one.
    pub(super) fn take(&self, bytes: usize) -> Option<HeldBytes> {
        if bytes <= ORDINARY_BYTES_MAX { Some(self.0.count(bytes)) } else { self.0.take(bytes) }
    }

    /// Makes the room of a description as large as it turned out to be. False, and nothing taken, without room for a large one.
    pub(super) fn enlarge(&self, room: &mut HeldBytes, bytes: usize) -> bool {
        if bytes <= ORDINARY_BYTES_MAX {
            *room = self.0.count(bytes);
            return true;
        }
        room.grow(bytes.saturating_sub(room.bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_descriptions_that_are_held_keep_out_large_ones_and_no_ordinary_one() {
        let memory = DescriptionMemory::new();
        let half = HELD_BYTES_MAX / 2;
        let held = [memory.take(half), memory.take(half)];
        assert!(held.iter().all(Option::is_some));
        assert!(memory.take(ORDINARY_BYTES_MAX + 1).is_none(), "a large one");
        assert!(memory.take(ORDINARY_BYTES_MAX).is_some(), "an ordinary one");
        drop(held);
        assert!(memory.take(half).is_some(), "what was let go of");
    }

    #[test]
    fn a_description_takes_its_room_once_and_what_its_paths_add() {
        let memory = DescriptionMemory::new();
        let mut room = memory.take(HELD_BYTES_MAX - 10).unwrap();
        assert!(memory.enlarge(&mut room, HELD_BYTES_MAX), "beside itself there would be no room for it");
        assert!(!memory.enlarge(&mut room, HELD_BYTES_MAX + 1));
        assert_eq!((room.bytes(), memory.0.held()), (HELD_BYTES_MAX, HELD_BYTES_MAX));
        let mut small = memory.take(10).unwrap();
        assert!(memory.enlarge(&mut small, ORDINARY_BYTES_MAX), "an ordinary one is never refused");
        assert_eq!(memory.0.held(), HELD_BYTES_MAX + ORDINARY_BYTES_MAX);
    }
}
