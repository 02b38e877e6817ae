//! Points of the key space, and how far apart they are.

use sha2::{Digest, Sha256};

/// The place of a peer or a record: the SHA-256 of its name, as libp2p's directory has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u128, u128);

/// The bitwise difference of two keys, read as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Distance(u128, u128);

impl Key {
    /// Returns the key of a peer's id or of a record's name.
    pub fn of(name: &[u8]) -> Self {
        let [high, low] = halves(Sha256::digest(name).into());
        Self(high, low)
    }

    /// Returns how far `other` is.
    pub const fn distance(self, other: Self) -> Distance {
        Distance(self.0 ^ other.0, self.1 ^ other.1)
    }
}

impl Distance {
    /// Returns how many bits the two keys share from the front: the number of the bucket.
    pub const fn shared_bits(self) -> u32 {
        if self.0 == 0 { 128 + self.1.leading_zeros() } else { self.0.leading_zeros() }
    }
}

fn halves(bytes: [u8; 32]) -> [u128; 2] {
    let half =
        |from: usize| bytes[from..from + 16].iter().fold(0, |number, byte| (number << 8) | u128::from(*byte));
    [half(0), half(16)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_sha_256_of_the_name_read_from_the_front() {
        // FIPS 180-2, B.1
        let abc = Key(0xba78_16bf_8f01_cfea_4141_40de_5dae_2223, 0xb003_61a3_9617_7a9c_b410_ff61_f200_15ad);
        assert_eq!(Key::of(b"abc"), abc);
    }

    #[test]
    fn the_first_bit_that_differs_weighs_most() {
        let (zero, far, near) = (Key(0, 0), Key(1 << 127, 0), Key(0, 1));
        assert!(zero.distance(near) < zero.distance(far));
        assert_eq!(zero.distance(far).shared_bits(), 0);
        assert_eq!(zero.distance(near).shared_bits(), 255);
        assert_eq!(zero.distance(zero).shared_bits(), 256);
        assert_eq!(near.distance(far), far.distance(near));
    }
}
