//! The decisions of one history: a string of bytes, and a generator that goes on when they end.
//!
//! The first eight bytes are the generator's number. A string without more is a seed: the generator decides everything.
//! Otherwise each further byte is one decision, or two bytes if there are more than 256 to choose from, and the history takes
//! steps as long as there are bytes; what is left to decide then, the generator decides. Every string is a history, so that a
//! failure is shortened by leaving bytes out.

use std::collections::VecDeque;

use crate::random::Random;

const NUMBER_BYTES: usize = 8;
/// Kinds of histories.
const KINDS: u64 = 8;

/// Everything that chance decides in one history, in order.
pub struct Choices {
    number: u64,
    is_seed: bool,
    /// Steps of a history that a seed makes.
    seed_steps: usize,
    bytes: VecDeque<u8>,
    generator: Random,
    /// The decisions so far: those before the first step, then those of each step.
    made: Vec<Vec<u8>>,
    /// The generator's state at the end of the last step.
    rest: Option<u64>,
}

/// The decisions of a history that was played.
#[derive(Debug)]
pub struct Made {
    number: u64,
    beginning: Vec<u8>,
    pub steps: Vec<Vec<u8>>,
}

impl Choices {
    /// Those of a history; a seed's takes so many steps.
    pub fn of(history: &[u8], seed_steps: usize) -> Self {
        let (head, bytes) = history.split_at(history.len().min(NUMBER_BYTES));
        let mut number = [0; NUMBER_BYTES];
        number[..head.len()].copy_from_slice(head);
        let number = u64::from_le_bytes(number);
        let (is_seed, bytes) = (bytes.is_empty(), bytes.iter().copied().collect());
        let (generator, made) = (Random::new(number), vec![Vec::new()]);
        Self { number, is_seed, seed_steps, bytes, generator, made, rest: None }
    }

    /// The kind of history, below [`KINDS`]: a seed's is its remainder.
    pub fn kind(&mut self) -> u64 {
        if !self.is_seed {
            return self.u64_below(KINDS);
        }
        let kind = self.number % KINDS;
        self.note(kind, 1);
        kind
    }

    /// Begins the next step; `false` after the last one.
    pub fn begin_step(&mut self) -> bool {
        let goes_on = if self.is_seed { self.made.len() <= self.seed_steps } else { !self.bytes.is_empty() };
        if goes_on {
            self.made.push(Vec::new());
        } else {
            self.rest = Some(self.generator.state());
        }
        goes_on
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.u64_below(bound as u64)).unwrap()
    }

    /// A number below `bound`, which is 65,536 at most.
    pub fn u64_below(&mut self, bound: u64) -> u64 {
        let width = if bound <= 256 { 1 } else { 2 };
        let decided = match self.read(width) {
            Some(number) => number % bound,
            None => self.generator.u64_below(bound),
        };
        self.note(decided, width);
        decided
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn take<T>(&mut self, items: &mut Vec<T>) -> Option<T> {
        if items.is_empty() {
            return None;
        }
        let index = self.below(items.len());
        Some(items.swap_remove(index))
    }

    /// What was decided. A history of the same decisions comes to the same end: the generator decides its rest alike.
    pub fn made(&self) -> Made {
        let number = self.rest.unwrap_or_else(|| self.generator.state());
        Made { number, beginning: self.made[0].clone(), steps: self.made[1..].to_vec() }
    }

    /// The number in the next bytes, as far as there are so many; `None` when they have ended.
    fn read(&mut self, width: usize) -> Option<u64> {
        let first = self.bytes.pop_front()?;
        let second = if width > 1 { self.bytes.pop_front() } else { None };
        Some(u64::from(u16::from_le_bytes([first, second.unwrap_or_default()])))
    }

    fn note(&mut self, decided: u64, width: usize) {
        if self.rest.is_none()
            && let Some(step) = self.made.last_mut()
        {
            step.extend(&decided.to_le_bytes()[..width]);
        }
    }
}

impl Made {
    /// The history that takes these steps, in place of its own.
    pub fn with(&self, steps: &[Vec<u8>]) -> Vec<u8> {
        let steps: Vec<u8> = steps.concat();
        [&self.number.to_le_bytes()[..], &self.beginning, &steps].concat()
    }
}
