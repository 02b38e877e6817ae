//! What an endpoint has to show for a while before it counts.

use std::time::Duration;

use farthing_chain::{ChainHandle, ChainKind};

use crate::owner::book::SignedAway;

/// A chain may replace its newest blocks by others, which are dated no earlier than so much before.
const REORGANISED_SECS_MAX: u64 = 120;
/// What accuses the other side, or lets it take something back, an endpoint has to show for so long.
const SHOWN_FOR: Duration = Duration::from_secs(REORGANISED_SECS_MAX);

/// Whether nobody can bring a signed close any more. What a public chain's endpoint says for a moment does not do: its
/// blocks are dated as this machine's clock is, and what it shows stays so for a while.
pub(super) fn is_served_again(close: &SignedAway, block_secs: u64, clock_secs: u64, is_local: bool) -> bool {
    let now_secs = if is_local { block_secs } else { block_secs.min(clock_secs) };
    let is_void = now_secs > close.until_secs.saturating_add(REORGANISED_SECS_MAX);
    is_void || close.done_for.is_some_and(|shown| has_stood(shown, is_local))
}

/// Whether what the chain has shown for so long is acted on: an endpoint may lie for a moment, except that of a chain of
/// one's own.
pub(super) fn is_believed(chain: &ChainHandle, shown: Duration) -> bool {
    has_stood(shown, chain.spec().kind == ChainKind::Local)
}

fn has_stood(shown: Duration, is_local: bool) -> bool {
    is_local || shown >= SHOWN_FOR
}

#[cfg(test)]
mod tests {
    use farthing_protocol::ChannelId;

    use super::*;

    const fn close(until_secs: u64, done_for: Option<Duration>) -> SignedAway {
        SignedAway { channel: ChannelId::NONE, until_secs, done_for }
    }

    #[test]
    fn a_signed_close_is_void_once_no_block_can_hold_it_any_more() {
        for (now_secs, expected) in [(0, false), (1_000, false), (1_120, false), (1_121, true)] {
            for is_local in [true, false] {
                let is_void = is_served_again(&close(1_000, None), now_secs, now_secs, is_local);
                assert_eq!(is_void, expected, "{now_secs}");
            }
        }
        assert!(!is_served_again(&close(u64::MAX, None), u64::MAX, u64::MAX, false));
    }

    #[test]
    fn a_signed_close_of_a_public_chain_is_void_only_by_both_clocks() {
        for (block_secs, clock_secs) in [(9_000, 1_000), (1_000, 9_000)] {
            assert!(!is_served_again(&close(1_000, None), block_secs, clock_secs, false));
        }
        assert!(is_served_again(&close(1_000, None), 9_000, 1_000, true), "a local chain has its own time");
    }

    #[test]
    fn what_an_endpoint_shows_for_a_moment_ends_no_signed_close() {
        for (shown_for, expected) in [(0, false), (119, false), (120, true)] {
            let close = close(1_000, Some(Duration::from_secs(shown_for)));
            assert_eq!(is_served_again(&close, 900, 900, false), expected, "{shown_for} s");
            assert!(is_served_again(&close, 900, 900, true), "nobody lies on a chain of one's own");
        }
    }
}
