//! Chance that is the same for the same seed (SplitMix64), for a machine that has none of its own and those who simulate it.

/// A sequence of numbers, the same for the same seed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns any number.
    pub const fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`, which is not zero.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.throw() % bound
    }

    /// Returns a place in a list of this length, which is not zero.
    pub fn index(&mut self, length: usize) -> usize {
        let bound = u64::try_from(length).unwrap_or(u64::MAX);
        usize::try_from(self.below(bound)).unwrap_or_default()
    }

    /// Returns true in `permille` of a thousand cases.
    pub const fn happens(&mut self, permille: u64) -> bool {
        self.below(1000) < permille
    }
}
