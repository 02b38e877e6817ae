//! The time by which payments are dated and end: that of the chain and of this machine, of which either may be wrong.
//!
//! A public chain's blocks are dated as clocks are, so a date far from this machine's clock is an endpoint's invention, or the clock is
//! wrong. A local chain has its own time.

use farthing_chain::ChainKind;
use farthing_shared::chain_view::{self, REORGANISED_SECS_MAX};

use crate::consumer::ForeignError;

/// A block that is dated so much after this machine's clock is believed, for a payment that is to be signed.
const AHEAD_SECS_MAX: u64 = REORGANISED_SECS_MAX;
/// The same before it: a chain may rest for a while.
const BEHIND_SECS_MAX: u64 = 600;

/// The dates of one moment, in seconds since the Unix epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dates {
    pub(super) block_secs: u64,
    /// By this machine, when it saw this block for the first time.
    pub(super) seen_secs: u64,
}

/// The second from which the time of a payment counts, by the clock and the newest block. The token goes by the chain's clock, and the
/// server by its own.
///
/// # Errors
/// [`ForeignError::Clocks`]: a payment of such a date would be valid for longer than it is set aside, or not at all.
pub(super) fn signed_from(
    kind: ChainKind,
    newest: Option<Dates>,
    clock_secs: u64,
) -> Result<u64, ForeignError> {
    let Some(Dates { block_secs, seen_secs }) = newest else { return Ok(clock_secs) };
    if kind == ChainKind::Local {
        return Ok(clock_secs.max(block_secs));
    }
    let apart = |secs: u64, is: &'static str| Err(ForeignError::Clocks { secs, is });
    match (block_secs.saturating_sub(clock_secs), seen_secs.saturating_sub(block_secs)) {
        (ahead, _) if ahead > AHEAD_SECS_MAX => apart(ahead, "after"),
        (_, behind) if behind > BEHIND_SECS_MAX => apart(behind, "before"),
        _ => Ok(clock_secs.max(block_secs)),
    }
}

/// Returns whether a payment that was not taken in a block of this date can be taken in none any more. On a public chain, this
/// machine's clock has to be after its time as well, and the newest blocks may be replaced by others that are dated earlier.
pub(super) fn has_lapsed(kind: ChainKind, valid_before_secs: u64, block_secs: u64, clock_secs: u64) -> bool {
    let now_secs = if kind == ChainKind::Local { block_secs } else { block_secs.min(clock_secs) };
    now_secs >= valid_before_secs.saturating_add(chain_view::believed_after(kind).as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: [ChainKind; 2] = [ChainKind::Mainnet, ChainKind::Testnet];

    #[test]
    fn a_payment_can_be_taken_until_no_block_may_be_dated_within_its_time() {
        let has_lapsed = |kind, before, now| has_lapsed(kind, before, now, now);
        assert!(!has_lapsed(ChainKind::Local, 1_000, 999) && has_lapsed(ChainKind::Local, 1_000, 1_000));
        for kind in PUBLIC {
            assert!(!has_lapsed(kind, 1_000, 1_119) && has_lapsed(kind, 1_000, 1_120), "{kind}");
            assert!(!has_lapsed(kind, u64::MAX, u64::MAX - 1), "{kind}");
        }
    }

    #[test]
    fn neither_a_block_nor_a_clock_that_is_ahead_ends_a_payment_of_a_public_chain() {
        for kind in PUBLIC {
            assert!(!has_lapsed(kind, 1_000, 9_000, 1_119), "{kind}: an endpoint dates its block ahead");
            assert!(!has_lapsed(kind, 1_000, 1_119, 9_000), "{kind}: the clock is ahead");
        }
        assert!(has_lapsed(ChainKind::Local, 1_000, 9_000, 0), "a local chain has its own time");
    }

    #[test]
    fn a_payment_is_dated_by_no_block_that_is_far_from_the_clock() {
        let signed_from = |kind, block_secs, seen_secs, clock_secs| {
            signed_from(kind, Some(Dates { block_secs, seen_secs }), clock_secs)
        };
        for kind in PUBLIC {
            assert_eq!(signed_from(kind, 10_120, 10_000, 10_000), Ok(10_120), "{kind}");
            let ahead = ForeignError::Clocks { secs: 121, is: "after" };
            assert_eq!(signed_from(kind, 10_121, 10_000, 10_000), Err(ahead), "{kind}");
            assert_eq!(signed_from(kind, 9_400, 10_000, 10_000), Ok(10_000), "{kind}");
            let behind = ForeignError::Clocks { secs: 601, is: "before" };
            assert_eq!(signed_from(kind, 9_399, 10_000, 10_000), Err(behind), "{kind}");
            assert_eq!(signed_from(kind, 5_000, 5_000, 10_000), Ok(10_000), "{kind}: the chain rests");
        }
        assert_eq!(signed_from(ChainKind::Local, 90_000, 1, 1), Ok(90_000), "a local chain has its own time");
        assert_eq!(super::signed_from(ChainKind::Mainnet, None, 7), Ok(7));
    }
}
