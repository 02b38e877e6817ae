//! What strangers send neither panics a reader nor makes it take much more memory than was sent.
//!
//! The allocator counts, so this program has one test and nothing runs beside it.

#[path = "support/damage.rs"]
mod damage;
#[path = "support/examples.rs"]
#[allow(dead_code, reason = "this program needs a part of the examples")]
mod examples;
#[path = "support/random.rs"]
mod random;
#[path = "support/readers.rs"]
mod readers;

use std::alloc::System;

use random::{Random, seeds};
use readers::READERS;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// All that one reading may ever take, freed parts included, per byte read: an empty text is one byte on the
/// wire and 24 in memory, and a list that has just grown is half empty.
const BYTES_PER_BYTE: usize = 64;
/// Error texts, and the first block of a list.
const BYTES_BASE: usize = 4 * 1024;

#[test]
fn reading_takes_memory_in_proportion_to_what_was_sent() {
    let valid = damage::valid();
    for bytes in &valid {
        read_within_bounds(bytes);
    }
    for seed in seeds(20_000) {
        read_within_bounds(&damage::damaged(&mut Random::new(seed), &valid));
    }
    for bytes in worst_cases() {
        read_within_bounds(&bytes);
    }
}

fn read_within_bounds(bytes: &[u8]) {
    for (name, read) in READERS {
        let region = Region::new(ALLOCATOR);
        read(bytes);
        let taken = region.change().bytes_allocated;
        let allowed = BYTES_BASE + BYTES_PER_BYTE * bytes.len();
        assert!(
            taken <= allowed,
            "{name} took {taken} bytes for {} bytes read, at most {allowed} are allowed: {:02x?}",
            bytes.len(),
            &bytes[..bytes.len().min(64)]
        );
    }
}

/// Inputs that do the most with the least: lists of empty things, deep nesting under an unknown key, and
/// lengths that nothing follows.
fn worst_cases() -> Vec<Vec<u8>> {
    /// Just above a power of two, where a list has grown in vain.
    const COUNT: u16 = 32_800;
    let many = |prefix: &[u8], item: &[u8]| {
        let mut bytes = prefix.to_vec();
        bytes.push(0x99);
        bytes.extend(COUNT.to_be_bytes());
        bytes.extend(item.repeat(COUNT.into()));
        bytes
    };
    let mut all = vec![
        // InfoRequest::Records, Push, Services; InfoResponse::Records, Listings.
        many(&[0x82, 0x00, 0x81], &[0x40]),
        many(&[0x82, 0x01, 0x81], &[0xa0]),
        many(&[0x82, 0x02, 0x81], &[0x50; 17]),
        many(&[0x82, 0x01, 0x81], &[0xa2, 0x00, 0x40, 0x01, 0x40]),
        // NodeRecord.addresses of empty addresses, Listing.tags of empty tags, Details.prices.
        many(&[0xa1, 0x09], &[0x40]),
        many(&[0xa1, 0x07], &[0x60]),
        many(&[0xa1, 0x01], &[0xa0]),
        // A map of empty names: each replaces the one before.
        [&[0x82, 0x00, 0x81, 0xa1, 0x05, 0xb9, 0xea, 0x60][..], &[0x60; 2 * 0xea60]].concat(),
    ];
    for opening in [0x81, 0x9f, 0xa1, 0xbf, 0xc0] {
        // Nesting below an unknown key is skipped; a reader that recursed would run out of stack.
        all.push([&[0xa1, 0x18, 0x63][..], &vec![opening; 200_000]].concat());
        all.push([&[0x82, 0x00, 0x81, 0xa1, 0x18, 0x63, 0x82, 0x00][..], &vec![opening; 200_000]].concat());
    }
    for header in [0x5b, 0x7b, 0x9b, 0xbb_u8] {
        for key in 0..20 {
            for announced in [1_u64 << 20, 1 << 40, 1 << 62, u64::MAX] {
                let header = [&[header][..], &announced.to_be_bytes()].concat();
                all.push([&[0xa1, key][..], &header].concat());
                all.push([&[0x82, key, 0x81][..], &header].concat());
                all.push([&[0x82, 0x00, 0x81, 0xa1, key][..], &header].concat());
            }
        }
    }
    all
}
