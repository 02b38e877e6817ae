//! Plays a history, and shortens one that fails.

use std::{
    cell::Cell,
    env,
    panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook},
    sync::Once,
};

use crate::{
    choices::{Choices, Made},
    shortest::shortest,
    world::World,
};

/// Histories that are played to find a shorter one; each takes some tenths of a second.
const TRIES: usize = 200;

thread_local! {
    /// Whether failures on this thread say nothing.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// A history that was played.
pub struct Played {
    pub charged: u64,
    /// Commits of which a death left a part.
    pub commits_cut: usize,
    pub made: Made,
    /// Its steps, where they were wanted.
    pub log: String,
}

/// A history that failed.
#[derive(Debug)]
pub struct Failed {
    made: Made,
    log: String,
    books: String,
}

/// Plays one history to its rest. A failure is shortened, and told.
pub fn play(history: &[u8]) -> Played {
    let is_named = ["FARTHING_SEED", "FARTHING_HISTORY"].iter().any(|name| env::var_os(name).is_some());
    match attempt(history, is_named) {
        Ok(played) => {
            eprint!("{}", played.log);
            played
        }
        Err(failed) => panic!("{}", told(history, &failed)),
    }
}

/// Plays one history to its rest, and tells its steps if somebody wants them.
pub fn attempt(history: &[u8], tells: bool) -> Result<Played, Box<Failed>> {
    let mut world = World::new(Choices::of(history), tells);
    let charged = catch_unwind(AssertUnwindSafe(|| world.run()));
    let (made, log) = (world.made(), world.log());
    match charged {
        Ok(charged) => Ok(Played { charged, commits_cut: world.commits_cut(), made, log }),
        Err(_) => {
            let books = catch_unwind(AssertUnwindSafe(|| world.books()));
            let books = books.unwrap_or_else(|_| "the books cannot be read".to_owned());
            Err(Box::new(Failed { made, log, books }))
        }
    }
}

/// What is told of a failure, beside the message that was printed already.
fn told(history: &[u8], failed: &Failed) -> String {
    let (whole, steps) = (name_of(history), failed.made.steps.len());
    let short = shortened(&failed.made);
    let Err(again) = attempt(&short, true) else {
        return format!(
            "{whole} failed as said above, but its own decisions do not fail again:\n{}",
            failed.books
        );
    };
    format!(
        "{whole} failed as said above, after {steps} steps:\n{}\n\nA shorter one fails as said last, after {} steps. \
         Play it with\n{}\n{}\n{}",
        failed.books,
        again.made.steps.len(),
        name_of(&short),
        again.log,
        again.books
    )
}

/// Leaves steps out of a history that failed, as long as it fails without them.
fn shortened(made: &Made) -> Vec<u8> {
    be_quiet(true);
    let mut left = TRIES;
    let steps = shortest(&made.steps, |steps| {
        left = left.saturating_sub(1);
        left > 0 && attempt(&made.with(steps), false).is_err()
    });
    be_quiet(false);
    made.with(&steps)
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

/// What to set, to play a history again.
fn name_of(history: &[u8]) -> String {
    match <[u8; 8]>::try_from(history) {
        Ok(seed) => format!("FARTHING_SEED={}", u64::from_le_bytes(seed)),
        Err(_) => format!("FARTHING_HISTORY={}", hex::encode(history)),
    }
}
