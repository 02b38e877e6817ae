//! Random numbers that a seed repeats (SplitMix64, Steele, Lea and Flood 2014), and the seeds to try.

#![allow(dead_code, reason = "no test program uses all of it")]

use std::{
    env,
    hash::{BuildHasher, RandomState},
};

/// A generator; the same seed gives the same numbers on every machine.
pub struct Random(u64);

impl Random {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The seed from which the numbers go on as they do here.
    pub const fn state(&self) -> u64 {
        self.0
    }

    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    pub const fn u64_below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Takes an item out of `items`; order is lost on purpose.
    pub fn take<T>(&mut self, items: &mut Vec<T>) -> Option<T> {
        if items.is_empty() {
            return None;
        }
        let index = self.below(items.len());
        Some(items.swap_remove(index))
    }
}

/// Seeds to run: `FARTHING_SEEDS` or `default` of them, from `FARTHING_FIRST_SEED` or 0 on.
pub fn seeds(default: u64) -> std::ops::Range<u64> {
    let number = |name: &str, otherwise: u64| {
        env::var(name).map_or(otherwise, |text| {
            text.parse().unwrap_or_else(|_| panic!("{name} is a whole number, such as 1000000"))
        })
    };
    let first = number("FARTHING_FIRST_SEED", 0);
    first..first + number("FARTHING_SEEDS", default)
}

/// The seed of this run, which is printed: `FARTHING_TEST_SEED`, or another one every time.
pub fn seed() -> u64 {
    let seed = env::var("FARTHING_TEST_SEED").map_or_else(
        |_| RandomState::new().hash_one("a seed"),
        |text| text.parse().expect("FARTHING_TEST_SEED is a whole number"),
    );
    println!("repeat this run with FARTHING_TEST_SEED={seed}");
    seed
}
