//! Gives a target its inputs, in as many threads as one likes, and finds the shortest of what breaks it.

use std::{
    panic::catch_unwind,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use crate::{mutation::broken, targets::Target};

/// The inputs to give.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The number of the first broken input; each number is one input.
    pub seed: u64,
    /// Broken inputs, behind those that are known.
    pub inputs: u64,
    /// The time to end at, though not all of them were given.
    pub until: Option<Instant>,
    pub threads: usize,
}

/// The result of a plan.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Known inputs that the target accepted.
    pub known_accepted: u64,
    /// Broken inputs that were given, and those that the target accepted all the same.
    pub given: u64,
    pub accepted: u64,
    /// The longest time that one input took, and its number.
    pub slowest: (Duration, u64),
    pub broken: Option<Broken>,
}

/// An input that makes a target panic.
#[derive(Clone, Debug)]
pub struct Broken {
    /// None of a known input.
    pub number: Option<u64>,
    pub input: Vec<u8>,
}

impl Told {
    fn add(&mut self, other: Self) {
        self.given += other.given;
        self.accepted += other.accepted;
        self.slowest = self.slowest.max(other.slowest);
        if self.broken.is_none() {
            self.broken = other.broken;
        }
    }
}

/// Gives a target what is known of its format, then broken inputs by the plan. Ends with the first that makes it panic.
pub fn drive(target: Target, plan: &Plan) -> Told {
    let known = (target.known)();
    let mut told = Told::default();
    for input in &known {
        match accepts(target, input) {
            Some(is_accepted) => told.known_accepted += u64::from(is_accepted),
            None => {
                told.broken = Some(Broken { number: None, input: input.clone() });
                return told;
            }
        }
    }
    let (next, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let work = || {
        let mut told = Told::default();
        while !is_over.load(Relaxed) && plan.until.is_none_or(|until| Instant::now() < until) {
            let place = next.fetch_add(1, Relaxed);
            if place >= plan.inputs {
                break;
            }
            give(target, plan.seed.wrapping_add(place), &known, &mut told);
            if told.broken.is_some() {
                is_over.store(true, Relaxed);
            }
        }
        told
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..plan.threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            told.add(worker.join().expect("what a target throws is caught"));
        }
    });
    told
}

fn give(target: Target, number: u64, known: &[Vec<u8>], told: &mut Told) {
    let input = broken(number, known, target.words);
    let began = Instant::now();
    match accepts(target, &input) {
        Some(is_accepted) => told.accepted += u64::from(is_accepted),
        None => told.broken = Some(Broken { number: Some(number), input }),
    }
    told.given += 1;
    told.slowest = told.slowest.max((began.elapsed(), number));
}

/// Whether the target accepts an input; nothing if it panics.
fn accepts(target: Target, input: &[u8]) -> Option<bool> {
    catch_unwind(|| (target.read)(input)).ok()
}

/// A shorter input that makes the target panic as well, found by leaving parts out of one that does.
pub fn shortest(target: Target, input: &[u8]) -> Vec<u8> {
    crate::shortest::shortest(input, |shorter| accepts(target, shorter).is_none())
}
