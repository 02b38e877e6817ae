//! Compares the clocks of this machine and of the chain, of which either may be wrong.

use farthing_shared::chain_view::REORGANISED_SECS_MAX;

/// Tells whether a close that counts until then is void: nobody can bring it any more. A public chain's blocks are
/// dated as clocks are: a later date is an endpoint's invention.
pub(super) fn is_void(until_secs: u64, block_secs: u64, clock_secs: u64, is_local: bool) -> bool {
    let now_secs = if is_local { block_secs } else { block_secs.min(clock_secs) };
    now_secs > until_secs.saturating_add(REORGANISED_SECS_MAX)
}

/// The time by which a channel that is not used any more is old. A clock that is ahead for a moment makes none old where a
/// public chain's newest block tells the time as well.
pub(super) fn sure_secs(clock_secs: u64, public_block_secs: Option<u64>) -> u64 {
    public_block_secs.map_or(clock_secs, |block_secs| clock_secs.min(block_secs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signed_close_is_void_once_no_block_can_hold_it_any_more() {
        for (now_secs, expected) in [(0, false), (1_000, false), (1_120, false), (1_121, true)] {
            for is_local in [true, false] {
                assert_eq!(is_void(1_000, now_secs, now_secs, is_local), expected, "{now_secs}");
            }
        }
        assert!(!is_void(u64::MAX, u64::MAX, u64::MAX, false));
    }

    #[test]
    fn a_signed_close_of_a_public_chain_is_void_only_by_both_clocks() {
        for (block_secs, clock_secs) in [(9_000, 1_000), (1_000, 9_000)] {
            assert!(!is_void(1_000, block_secs, clock_secs, false));
        }
        assert!(is_void(1_000, 9_000, 1_000, true), "a local chain has its own time");
    }

    #[test]
    fn a_clock_that_is_ahead_for_a_moment_makes_no_channel_old() {
        assert_eq!(sure_secs(9_000, Some(1_000)), 1_000);
        assert_eq!(sure_secs(1_000, Some(9_000)), 1_000, "nor an endpoint");
        assert_eq!(sure_secs(9_000, None), 9_000, "a local chain may stand still");
    }
}
