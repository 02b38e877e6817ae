//! The costs of a call that goes well, in both halves: copies and hashes of large bodies, and tasks.
//!
//! The line between the two is played, so that its own costs are not there: the one copy of each body from a connection into
//! memory, and one task for each stream.

use std::{slice, time::Duration};

use bytes::Bytes;
use farthing_protocol::hashed;
use farthing_shared::blocking::play_on_this_thread;
use tokio::{runtime::Builder, time::sleep};

use super::{
    ground::Ground,
    parties::{ConsumerRun, OwnerRun, order},
    state::State,
};
use crate::play::history_of;

/// More than an owner keeps of an answer for repeats, which is a copy.
const BYTES: usize = 1024 * 1024 + 1;
/// A call with effects, which takes a body.
const NUMBER: u64 = 3;
/// Heads, signed structures and addresses.
const HASHED_BESIDE_MAX: u64 = 64 * 1024;

/// Fewer than a day's limit allows.
const CALLS: u64 = 10;
/// The call itself, its acknowledgement, and the judgement of its answer.
const CONSUMERS_TASKS: u64 = 3;
/// The call itself, and the copy that a stranger sends before it.
const OWNERS_TASKS: u64 = 2;
/// Not of calls, such as a comparison of the books.
const TASKS_BESIDE_MAX: u64 = 4;
/// Longer than what follows a call takes.
pub(super) const REST: Duration = Duration::from_secs(5);

/// Runs a test beside both halves, whose service answers so and whose network loses nothing.
pub(super) fn with_halves(answer: Bytes, test: impl AsyncFnOnce(&Ground, &State, &ConsumerRun, &OwnerRun)) {
    let (ground, _kept) = Ground::lay();
    play_on_this_thread();
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let state = State::new(&history_of(1), 0);
        {
            let mut shared = state.lock();
            shared.has_faults = false;
            shared.answer = answer;
        }
        let owner = OwnerRun::start(&ground, &state, OwnerRun::first_disk(slice::from_ref(&ground)).await);
        let disk = ConsumerRun::first_disk(&ground).await;
        let consumer = ConsumerRun::start(&ground, &state, 0, disk).await;
        test(&ground, &state, &consumer, &owner).await;
    });
}

#[test]
fn each_half_hands_on_a_large_body_without_a_copy_and_hashes_it_once() {
    let question = Bytes::from(vec![b'q'; BYTES]);
    let answer = Bytes::from(format!("\"{}\"", "a".repeat(BYTES - 2)));
    with_halves(answer.clone(), async |ground, state, consumer, _| {
        let hashed_before = hashed::bytes();
        let bought = consumer.half.consumer.buy(order(ground, NUMBER, question.clone())).await.unwrap();
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

#[test]
fn a_call_takes_three_tasks_of_its_consumer_and_one_of_its_owner() {
    with_halves(Bytes::from_static(b"{}"), async |ground, state, consumer, owner| {
        let buy = async |number| {
            let bought = consumer.half.consumer.buy(order(ground, number, Bytes::new())).await;
            assert!(bought.is_ok(), "{bought:?}\n{}", state.log());
        };
        buy(1).await;
        sleep(REST).await;
        let before = [consumer.tasks_begun(), owner.tasks_begun()];
        for number in 2..2 + CALLS {
            buy(number).await;
        }
        sleep(REST).await;
        let tasks = [consumer.tasks_begun() - before[0], owner.tasks_begun() - before[1]];
        let most = [CONSUMERS_TASKS, OWNERS_TASKS].map(|each| CALLS * each + TASKS_BESIDE_MAX);
        assert!(tasks[0] <= most[0] && tasks[1] <= most[1], "{tasks:?} tasks of {CALLS} calls");
        assert!(tasks[1] >= CALLS * OWNERS_TASKS, "all are counted: {tasks:?}");
    });
}
