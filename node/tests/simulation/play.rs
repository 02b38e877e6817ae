//! Plays histories, and shortens one that fails.

use std::{
    cell::Cell,
    env,
    ops::Range,
    panic::{set_hook, take_hook},
    sync::{
        Once,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};

use crate::{choices::Made, random::seeds, shortest::shortest};

thread_local! {
    /// Whether failures on this thread say nothing.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// A history that was played.
pub struct Played {
    /// In micros.
    pub charged: u64,
    /// Commits of which a death left a part, if they are counted.
    pub commits_cut: usize,
    pub made: Made,
    /// Its steps, if they were wanted.
    pub log: String,
}

/// A history that failed.
#[derive(Debug)]
pub struct Failed {
    pub made: Made,
    pub log: String,
    pub books: String,
}

/// The end of a history.
pub type Attempted = Result<Played, Box<Failed>>;

/// One of the simulations of this program.
pub struct Simulation<'a> {
    /// The beginning of the name of its test.
    pub name: &'static str,
    /// Histories that are played to find a shorter one.
    pub tries: usize,
    /// Plays a history to its rest, and tells its steps if somebody wants them.
    pub attempt: &'a (dyn Fn(&[u8], bool) -> Attempted + Sync),
}

/// The histories of one run, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub histories: usize,
    /// Those in which something was charged.
    pub charging: u64,
}

impl Simulation<'_> {
    /// Plays the history that the environment names, or else the histories of so many seeds, from `FARTHING_FIRST_SEED` on, and
    /// `others`. Says which ones.
    pub fn play_chosen(&self, count: u64, others: Vec<Vec<u8>>, threads: usize) -> Totals {
        if let Some(named) = named() {
            return self.play_all(&[named], 1);
        }
        let seeds = seeds(count);
        let mut histories: Vec<Vec<u8>> = seeds.clone().map(history_of).collect();
        histories.extend(others);
        let totals = self.play_all(&histories, threads);
        println!("{}: {}", self.name, said(&seeds, totals));
        totals
    }

    /// Plays them, several at the same time.
    fn play_all(&self, histories: &[Vec<u8>], threads: usize) -> Totals {
        let (next, charging) = (AtomicUsize::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(history) = histories.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let charged = self.play(history).charged;
                        charging.fetch_add(u64::from(charged > 0), Ordering::Relaxed);
                    }
                });
            }
        });
        Totals { histories: histories.len(), charging: charging.into_inner() }
    }

    /// Plays one history to its rest. A failure is shortened, and told.
    pub fn play(&self, history: &[u8]) -> Played {
        let is_named = named().is_some();
        match (self.attempt)(history, is_named) {
            Ok(played) => {
                if is_named {
                    eprintln!("{}\n{} micros charged", played.log, played.charged);
                }
                played
            }
            Err(failed) => panic!("{}", self.told(history, &failed)),
        }
    }

    /// What is told of a failure, beside the message that was printed already.
    fn told(&self, history: &[u8], failed: &Failed) -> String {
        let (whole, steps) = (self.name_of(history), failed.made.steps.len());
        let short = self.shortened(&failed.made);
        let Err(again) = (self.attempt)(&short, true) else {
            return format!(
                "{whole} failed as said above, but its own decisions do not fail again:\n{}\n{}",
                failed.log, failed.books
            );
        };
        format!(
            "{whole} failed as said above, after {steps} steps:\n{}\n\nA shorter one fails as said last, after {} steps. \
             Play it with\n{}\n{}\n{}",
            failed.books,
            again.made.steps.len(),
            self.name_of(&short),
            again.log,
            again.books
        )
    }

    /// Leaves steps out of a history that failed, as long as it fails without them.
    fn shortened(&self, made: &Made) -> Vec<u8> {
        be_quiet(true);
        let mut left = self.tries;
        let steps = shortest(&made.steps, |steps| {
            left = left.saturating_sub(1);
            // Without a step it may be a seed, which makes its own.
            left > 0 && !steps.is_empty() && (self.attempt)(&made.with(steps), false).is_err()
        });
        be_quiet(false);
        made.with(&steps)
    }

    /// What to run, to play a history again.
    fn name_of(&self, history: &[u8]) -> String {
        let chosen = match <[u8; 8]>::try_from(history) {
            Ok(seed) => format!("FARTHING_SEED={}", u64::from_le_bytes(seed)),
            Err(_) => format!("FARTHING_HISTORY={}", hex::encode(history)),
        };
        format!("{chosen} cargo test -p farthing-node --test simulation {}", self.name)
    }
}

/// The history that a seed makes.
pub fn history_of(seed: u64) -> Vec<u8> {
    seed.to_le_bytes().to_vec()
}

/// The history that the environment names.
fn named() -> Option<Vec<u8>> {
    if let Ok(text) = env::var("FARTHING_HISTORY") {
        return Some(hex::decode(text).expect("FARTHING_HISTORY is the text that a failure named"));
    }
    let seed = env::var("FARTHING_SEED").ok()?;
    Some(history_of(seed.parse().expect("FARTHING_SEED is the number that a failure named")))
}

fn said(seeds: &Range<u64>, Totals { histories, charging }: Totals) -> String {
    let others = histories as u64 - (seeds.end - seeds.start);
    let last = seeds.end.saturating_sub(1);
    let first = seeds.start;
    format!(
        "played {histories} histories, of the seeds {first} to {last} and {others} others; {charging} charge something"
    )
}

/// Keeps the failures of shorter histories out of what is printed.
fn be_quiet(is_quiet: bool) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let hook = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_QUIET.get() {
                hook(panic);
            }
        }));
    });
    IS_QUIET.set(is_quiet);
}
