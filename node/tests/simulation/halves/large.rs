//! Large bodies on their way through both halves: each half hands on the memory that it was given, and hashes it once.
//!
//! The bodies are above what an owner keeps of an answer for repeats, which is a copy. The line between the two is played, so that
//! the one copy of each side is not there: from its connection into memory.

use bytes::Bytes;
use farthing_protocol::hashed;
use farthing_shared::blocking::play_on_this_thread;
use tokio::runtime::Builder;

use super::{
    ground::Ground,
    parties::{ConsumerRun, OwnerRun, order},
    state::State,
};
use crate::play::history_of;

const BYTES: usize = 1024 * 1024 + 1;
/// A call with effects, which takes a body.
const NUMBER: u64 = 3;
/// Heads, signed structures and addresses.
const HASHED_BESIDE_MAX: u64 = 64 * 1024;

#[test]
fn each_half_hands_on_a_large_body_without_a_copy_and_hashes_it_once() {
    let (ground, _kept) = Ground::lay();
    play_on_this_thread();
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let question = Bytes::from(vec![b'q'; BYTES]);
        let answer = Bytes::from(format!("\"{}\"", "a".repeat(BYTES - 2)));
        let state = State::new(&history_of(1), 0);
        {
            let mut shared = state.lock();
            shared.has_faults = false;
            shared.answer = answer.clone();
        }
        let _owner = OwnerRun::start(&ground, &state, OwnerRun::first_disk(&ground).await);
        let disk = ConsumerRun::first_disk(&ground).await;
        let consumer = ConsumerRun::start(&ground, &state, 0, disk).await;

        let hashed_before = hashed::bytes();
        let bought = consumer.half.consumer.buy(order(&ground, NUMBER, question.clone())).await.unwrap();
        let hashed_bytes = hashed::bytes() - hashed_before;

        let sent = state.lock().sent.clone();
        assert_eq!((sent.len(), bought.body.len()), (BYTES, BYTES), "{}", state.log());
        assert_eq!(sent.as_ptr(), question.as_ptr(), "the service has a copy of the caller's body");
        assert_eq!(bought.body.as_ptr(), answer.as_ptr(), "the caller has a copy of the service's body");
        // Two bodies, by two halves.
        let bodies = 4 * BYTES as u64;
        let is_once = (bodies..=bodies + HASHED_BESIDE_MAX).contains(&hashed_bytes);
        assert!(is_once || !cfg!(debug_assertions), "{hashed_bytes} bytes are hashed");
    });
}
