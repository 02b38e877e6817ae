//! The end of a world: the books of its nodes are compared, whether its test asks for it or not.
//!
//! A world that is dropped compares them itself and fails its test when they differ, so that no test can forget it. A
//! node that does not run is started for it. A test whose nodes are made to lie names the differences that it expects,
//! all of them.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use farthing_control::endpoint;
use farthing_testnet::NodeProcess;
use parking_lot::Mutex;

use crate::agreement;

/// How long two nodes that agree may take to come to rest.
const AGREED_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(100);
const TAIL_LINES: usize = 40;

/// What the end of a world has to show.
#[derive(Debug, Default)]
pub(super) struct Ending(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    #[default]
    Open,
    /// Words of the differences that there have to be.
    Differing(Vec<String>),
    /// The test has compared the books, or failed to.
    Compared,
}

impl Ending {
    fn set(&self, state: State) {
        *self.0.lock() = state;
    }

    pub(super) fn compared(&self) {
        self.set(State::Compared);
    }

    pub(super) fn differing(&self, words: &[&str]) {
        self.set(State::Differing(words.iter().map(|&word| word.to_owned()).collect()));
    }

    /// The differences that there have to be; `None` when the books were compared.
    fn expected(&mut self) -> Option<Vec<String>> {
        match std::mem::take(self.0.get_mut()) {
            State::Open => Some(Vec::new()),
            State::Differing(words) => Some(words),
            State::Compared => None,
        }
    }
}

/// Compares the books unless that was done, or the test has failed already.
///
/// # Panics
/// With every difference that was not expected, and every expected one that there is not.
pub(super) fn at_last(ending: &mut Ending, nodes: [&mut NodeProcess; 2]) {
    if std::thread::panicking() {
        return;
    }
    let Some(expected) = ending.expected() else { return };
    // The test's own runtime may be the one that drops the world, and cannot be waited for.
    let [owner, consumer] = nodes;
    let nodes = [&mut *owner, &mut *consumer];
    let compared = std::thread::scope(|scope| scope.spawn(|| compare(nodes, &expected)).join());
    if let Ok(Err(error)) = compared {
        panic!(
            "the books of this world were compared when it was dropped, and do not agree (the test may have failed \
             before that; the nodes' last words say more): {error:?}\nowner:\n{}\nconsumer:\n{}",
            tail(owner),
            tail(consumer)
        );
    }
}

/// The last lines of a node's log.
pub fn tail(node: &NodeProcess) -> String {
    let log = node.log();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

fn compare(nodes: [&mut NodeProcess; 2], expected: &[String]) -> Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let [owner, consumer] = nodes;
        for node in [&mut *owner, &mut *consumer] {
            if node.has_ended() {
                node.restart(Vec::new()).await.context("a node does not start again to be compared")?;
            }
        }
        until_as_expected(&[owner, consumer], expected).await
    })
}

async fn until_as_expected(nodes: &[&NodeProcess], expected: &[String]) -> Result<()> {
    let until = Instant::now() + AGREED_WITHIN;
    loop {
        let found = differences(nodes).await?;
        if is_expected(&found, expected) {
            return Ok(());
        }
        if Instant::now() >= until {
            bail!("found:\n{}\nexpected:\n{}", found.join("\n"), expected.join("\n"));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Every difference is expected, and every expected one is there.
fn is_expected(found: &[String], expected: &[String]) -> bool {
    found.iter().all(|line| expected.iter().any(|word| line.contains(word)))
        && expected.iter().all(|word| found.iter().any(|line| line.contains(word)))
}

/// Between the books, in each of them, and, where the chain answers, between them and the contract.
async fn differences(nodes: &[&NodeProcess]) -> Result<Vec<String>> {
    let mut found = agreement::differences(nodes).await?;
    for node in nodes {
        let audit = node.control().ask(endpoint::Audit).await?;
        found.extend(audit.violations);
        if audit.calls_undecided > 0 {
            found.push(format!("{} calls are undecided", audit.calls_undecided));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_and_what_is_expected_have_to_be_the_same() {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let found = words(&["call a: charged 5", "call b: charged 6"]);
        assert!(is_expected(&[], &[]));
        assert!(is_expected(&found, &words(&["call a", "call b"])));
        assert!(is_expected(&found, &words(&["charged"])));
        assert!(!is_expected(&found, &[]), "not expected");
        assert!(!is_expected(&found, &words(&["call a"])), "one more than expected");
        assert!(!is_expected(&[], &words(&["call a"])), "expected, and not there");
    }
}
