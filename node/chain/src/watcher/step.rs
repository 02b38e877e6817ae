//! Decides how a head follows the last one. Pure.

use std::time::Duration;

use crate::{reader::Header, spec::ChainKind};

/// A public chain without a new head for this long: perhaps the endpoint is stuck, ask another.
pub(super) const STUCK_AFTER: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Unchanged,
    /// The last head is an ancestor.
    Advanced,
    /// The last head is no longer part of the chain.
    Reorganised,
    /// An endpoint that has not caught up.
    Behind,
    /// Blocks lie between; only the chain knows.
    Unclear,
}

impl Step {
    /// The same when the last head has been the newest for so long: one that no endpoint has reached by then was told by a
    /// liar, and the chain goes on from where they are.
    pub(super) fn after(self, silence: Duration) -> Self {
        match self {
            Self::Behind if silence >= STUCK_AFTER => Self::Reorganised,
            step => step,
        }
    }
}

pub(super) fn step(last: &Header, head: &Header, kind: ChainKind) -> Step {
    let (old, new) = (last.number(), head.number());
    if head.hash == last.hash {
        Step::Unchanged
    } else if new == old + 1 {
        if head.parent_hash == last.hash { Step::Advanced } else { Step::Reorganised }
    } else if new > old {
        Step::Unclear
    } else if new == old || kind == ChainKind::Local {
        // A local chain may be reset to an earlier block; a public one only grows.
        Step::Reorganised
    } else {
        Step::Behind
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn header(number: u64, hash: u8, parent: u8) -> Header {
        let word = |byte: u8| format!("0x{}", format!("{byte:02x}").repeat(32));
        serde_json::from_value(json!({
            "number": format!("{number:#x}"), "hash": word(hash), "parentHash": word(parent), "timestamp": "0x1",
        }))
        .unwrap()
    }

    #[test]
    fn heads_follow_each_other_or_replace_each_other() {
        let last = header(10, 0xa, 0x9);
        for (head, public, local) in [
            (header(10, 0xa, 0x9), Step::Unchanged, Step::Unchanged),
            (header(11, 0xb, 0xa), Step::Advanced, Step::Advanced),
            (header(11, 0xb, 0xc), Step::Reorganised, Step::Reorganised),
            (header(10, 0xb, 0x9), Step::Reorganised, Step::Reorganised),
            (header(12, 0xc, 0xb), Step::Unclear, Step::Unclear),
            (header(9, 0x9, 0x8), Step::Behind, Step::Reorganised),
        ] {
            assert_eq!(step(&last, &head, ChainKind::Mainnet), public, "{head:?}");
            assert_eq!(step(&last, &head, ChainKind::Local), local, "{head:?}");
        }
    }

    #[test]
    fn a_head_that_nobody_reaches_is_given_up() {
        let soon = STUCK_AFTER - Duration::from_millis(1);
        assert_eq!(
            (Step::Behind.after(soon), Step::Behind.after(STUCK_AFTER)),
            (Step::Behind, Step::Reorganised)
        );
        for step in [Step::Unchanged, Step::Advanced, Step::Reorganised, Step::Unclear] {
            assert_eq!(step.after(STUCK_AFTER), step);
        }
    }
}
