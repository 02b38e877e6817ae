//! Memory for bodies, counted over everything that holds them: one node, one budget.
//!
//! Whoever lets a body grow takes room first, and is refused when there is none. What was taken is given back when the
//! last copy of the body is dropped ([`HeldBytes::attach`]), wherever that happens.
//!
//! Invariant: a part never holds more than its own bound, and all parts together, with what was taken of the whole, no
//! more than the whole's; only what was [`ByteBudget::count`]ed may go beyond.

use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use parking_lot::Mutex;

/// Room for bytes. A cheap handle.
#[derive(Clone)]
pub struct ByteBudget(Arc<Level>);

struct Level {
    bytes_max: usize,
    held: AtomicUsize,
    /// The most that was held at once.
    most: AtomicUsize,
    whole: Option<ByteBudget>,
    /// True for a share: it holds no more than it leaves free of its whole.
    leaves_as_much: bool,
}

impl Level {
    fn new(bytes_max: usize, whole: Option<ByteBudget>) -> Self {
        let (held, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { bytes_max, held, most, whole, leaves_as_much: false }
    }
}

impl ByteBudget {
    pub fn new(bytes_max: usize) -> Self {
        Self(Arc::new(Level::new(bytes_max, None)))
    }

    /// A part of this budget with a bound of its own: who fills it leaves the rest to others.
    pub fn part(&self, bytes_max: usize) -> Self {
        Self(Arc::new(Level::new(bytes_max, Some(self.clone()))))
    }

    pub fn bytes_max(&self) -> usize {
        self.0.bytes_max
    }

    pub fn held(&self) -> usize {
        self.0.held.load(Ordering::Relaxed)
    }

    /// The most bytes that were held at once.
    pub fn most(&self) -> usize {
        self.0.most.load(Ordering::Relaxed)
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
        self.add(bytes, 0, true);
        HeldBytes { budget: self.clone(), bytes }
    }

    /// Adds `bytes` where that leaves `free` ones of the bound, and everywhere if they are there already.
    fn add(&self, bytes: usize, free: usize, is_there_already: bool) -> bool {
        let level = &*self.0;
        let sum = |held: usize| {
            let held = held.saturating_add(bytes);
            (is_there_already || held.saturating_add(free) <= level.bytes_max).then_some(held)
        };
        let Ok(before) = level.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum) else {
            return false;
        };
        let after = before.saturating_add(bytes);
        // Asked of the whole in the same step that takes of it: of two shares that grow at once, the second one finds what the
        // first has left.
        let free = if level.leaves_as_much { after } else { 0 };
        let added = level.whole.as_ref().is_none_or(|whole| whole.add(bytes, free, is_there_already));
        if added {
            level.most.fetch_max(after, Ordering::Relaxed);
        } else {
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

/// One budget for many, of whom each holds no more than it leaves free: the next one finds room, and no two hold all of it
/// (Choudhury and Hahne, "Dynamic queue length thresholds", 1998).
#[derive(Debug)]
pub struct SharedBudget<K> {
    whole: ByteBudget,
    shares: Mutex<HashMap<K, ByteBudget>>,
}

/// Shares that are remembered before those without bytes are forgotten.
const SHARES_KEPT: usize = 256;

impl<K: Eq + Hash> SharedBudget<K> {
    pub fn new(whole: ByteBudget) -> Self {
        Self { whole, shares: Mutex::default() }
    }

    pub fn of(&self, key: K) -> ByteBudget {
        let mut shares = self.shares.lock();
        if shares.len() >= SHARES_KEPT {
            shares.retain(|_, share| Arc::strong_count(&share.0) > 1);
        }
        let share = || {
            let level = Level::new(self.whole.bytes_max(), Some(self.whole.clone()));
            ByteBudget(Arc::new(Level { leaves_as_much: true, ..level }))
        };
        shares.entry(key).or_insert_with(share).clone()
    }
}

/// Room that was taken; dropping it gives it back.
#[derive(Debug)]
pub struct HeldBytes {
    budget: ByteBudget,
    bytes: usize,
}

impl HeldBytes {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes room for `more`; false, and nothing taken, when there is too little.
    #[must_use]
    pub fn grow(&mut self, more: usize) -> bool {
        let grown = self.budget.add(more, 0, false);
        if grown {
            self.bytes += more;
        }
        grown
    }

    /// Gives back what is held beyond `bytes`.
    pub fn keep(&mut self, bytes: usize) {
        let over = self.bytes.saturating_sub(bytes);
        self.budget.give_back(over);
        self.bytes -= over;
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
    fn what_was_taken_and_is_not_needed_is_given_back() {
        let budget = ByteBudget::new(10);
        let mut held = budget.take(8).unwrap();
        held.keep(20);
        assert_eq!((held.bytes(), budget.held()), (8, 8));
        held.keep(3);
        assert_eq!((held.bytes(), budget.held()), (3, 3));
        drop(held);
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn nobody_holds_more_than_it_leaves_free() {
        let whole = ByteBudget::new(64);
        let shared = SharedBudget::new(whole.clone());
        let fill = |key: u32| {
            let mut held = shared.of(key).nothing();
            while held.grow(1) {}
            held
        };
        let held: Vec<_> = (0..4).map(fill).collect();
        assert_eq!(held.iter().map(HeldBytes::bytes).collect::<Vec<_>>(), [32, 16, 8, 4]);
        assert!(shared.of(0).take(1).is_none(), "in a second body neither");
        assert!(shared.of(4).take(2).is_some(), "a newcomer");
        drop(held);
        assert_eq!(shared.of(1).take(32).map(|held| held.bytes()), Some(32));
        let _others = whole.take(40);
        assert!(shared.of(1).take(13).is_none(), "what others hold of the whole counts");
    }

    #[test]
    fn shares_that_hold_nothing_are_forgotten() {
        let shared = SharedBudget::new(ByteBudget::new(64));
        let held = shared.of(0).take(20);
        for key in 1..10_000 {
            assert!(shared.of(key).take(1).is_some());
        }
        assert!(shared.shares.lock().len() <= SHARES_KEPT);
        assert!(shared.of(0).take(20).is_none(), "{held:?} is remembered: 40 of it would leave 24");
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

    /// Numbers that a seed repeats (splitmix64).
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            usize::try_from((z ^ (z >> 31)) % bound as u64).unwrap()
        }
    }

    /// One thread's share: takes, grows, makes bodies, copies and cuts them, and drops all of it in any order.
    fn work(budgets: &[ByteBudget], mut random: Random) -> usize {
        let (mut held, mut bodies, mut refused) = (Vec::<HeldBytes>::new(), Vec::<Bytes>::new(), 0);
        for _ in 0..4_000 {
            let (budget, bytes) = (&budgets[random.below(budgets.len())], random.below(400));
            match random.below(8) {
                0 => match budget.take(bytes) {
                    Some(room) => held.push(room),
                    None => refused += 1,
                },
                1 => held.push(budget.nothing()),
                2 if !held.is_empty() => {
                    let one = random.below(held.len());
                    refused += usize::from(!held[one].grow(bytes));
                }
                3 if !held.is_empty() => {
                    let room = held.swap_remove(random.below(held.len()));
                    bodies.push(room.attach(vec![1; bytes].into()));
                }
                4 if !bodies.is_empty() => {
                    let body = &bodies[random.below(bodies.len())];
                    bodies.push(body.slice(body.len() / 2..));
                }
                5 if !held.is_empty() => drop(held.swap_remove(random.below(held.len()))),
                6 | 7 if !bodies.is_empty() => drop(bodies.swap_remove(random.below(bodies.len()))),
                _ => {}
            }
            let within = |budget: &ByteBudget| budget.held() <= budget.bytes_max();
            assert!(budgets.iter().all(within), "{budgets:?}");
        }
        refused
    }

    #[test]
    fn however_bodies_come_and_go_the_bound_holds_and_all_of_it_comes_back() {
        use std::hash::{BuildHasher, RandomState};
        let seed = RandomState::new().hash_one(0);
        println!("seed {seed}");
        let whole = ByteBudget::new(10_000);
        let half = whole.part(5_000);
        let budgets = [whole.clone(), half.clone(), half.part(2_000), whole.part(9_000)];
        let refused: usize = std::thread::scope(|scope| {
            let threads = [0, 1, 2, 3].map(|n| {
                let budgets = &budgets;
                scope.spawn(move || work(budgets, Random(seed.wrapping_add(n))))
            });
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert!(budgets.iter().all(|budget| budget.held() == 0), "{budgets:?}");
        assert!(
            refused > 0 && whole.most() <= whole.bytes_max() && whole.most() > 5_000,
            "{refused} {whole:?}"
        );
    }
}
