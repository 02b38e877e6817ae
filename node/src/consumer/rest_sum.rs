//! Sums of money at rest, in numbers and in words: what lies in channels, what may still arrive, and what came back.
//!
//! Pure.

use std::{fmt, time::Duration};

use farthing_protocol::Usdc;

/// The part of what came back that counts in all, as a divisor. The chain's word alone says that it came back: an endpoint
/// that lies together with owners can hold at most four times the limit for a day. If it counted wholly, a few owners that
/// close each channel at once, which costs them next to nothing, would keep all others from being paid; if not at all,
/// an endpoint that lies would have a multiple of the limit that grows with the number of owners.
const RETURNED_DIVISOR: u64 = 4;

/// The money at rest with an owner, or in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestSum {
    /// Lies in channels, by the books.
    pub shown: Usdc,
    /// Is being deposited, or was signed for within a day and may still arrive.
    pub coming: Usdc,
    /// Was deposited within a day, and the books show that the channel was emptied since.
    pub returned: Usdc,
    /// The time after which nothing counts but what lies in channels, and what is deposited then.
    pub lapses_in: Duration,
}

impl RestSum {
    pub const fn total(self) -> Usdc {
        self.shown.saturating_add(self.coming).saturating_add(self.returned)
    }

    /// The same as it counts in all, where what came back counts for a part.
    #[must_use]
    pub const fn in_all(self) -> Self {
        let counted = self.returned.micros().div_ceil(RETURNED_DIVISOR);
        Self { returned: Usdc::from_micros(counted), ..self }
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            shown: self.shown.saturating_add(other.shown),
            coming: self.coming.saturating_add(other.coming),
            returned: self.returned.saturating_add(other.returned),
            lapses_in: self.lapses_in.max(other.lapses_in),
        }
    }

    /// The hours after which what came back, or has not arrived, counts no more.
    pub const fn hours(self) -> u64 {
        self.lapses_in.as_secs().div_ceil(3_600)
    }

    /// Lists what makes room: ways to have back what lies in channels only where something does, and waiting only where time
    /// alone makes room.
    pub(super) fn ways(self, to_have_back: &str, setting: &str) -> String {
        let mut ways = Vec::new();
        if !self.shown.is_zero() {
            ways.push(to_have_back.to_owned());
        }
        if !self.coming.saturating_add(self.returned).is_zero() {
            ways.push(format!("wait {} h", self.hours()));
        }
        let raise = format!("raise `{setting}`");
        match ways.as_slice() {
            [] => raise,
            ways => format!("{}, or {raise}", ways.join(", ")),
        }
    }
}

/// The sums that are not zero: `0.04 USDC are there, and …`.
impl fmt::Display for RestSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hours = self.hours();
        let parts = [
            (self.shown, "are there".to_owned()),
            (
                self.coming,
                format!("are on their way there or may still arrive, and count for at most {hours} h"),
            ),
            (
                self.returned,
                format!("count for deposits of the last day that came back, for at most {hours} h"),
            ),
        ];
        let mut told = parts.into_iter().filter(|(sum, _)| !sum.is_zero()).peekable();
        if told.peek().is_none() {
            return f.write_str("nothing is there");
        }
        for (number, (sum, what)) in told.enumerate() {
            let before = if number == 0 { "" } else { ", and " };
            write!(f, "{before}{sum} USDC {what}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consumer::channels::tests::usdc;

    const fn resting(shown: u64, coming: u64, returned: u64) -> RestSum {
        RestSum {
            shown: usdc(shown),
            coming: usdc(coming),
            returned: usdc(returned),
            lapses_in: Duration::from_secs(3_601),
        }
    }

    #[test]
    fn what_came_back_counts_in_all_for_a_quarter_rounded_up_and_everything_else_for_its_whole() {
        for (returned, counted) in [(0, 0), (1, 1), (4, 1), (5, 2), (400, 100)] {
            let all = resting(7, 9, returned);
            assert_eq!(all.total(), usdc(16 + returned));
            assert_eq!(all.in_all().total(), usdc(16 + counted), "{returned}");
        }
        assert_eq!(resting(1, 2, 3).plus(resting(10, 20, 30)).total(), usdc(66));
    }

    #[test]
    fn what_makes_room_is_advised_only_where_it_does() {
        let ways = |sums: RestSum| sums.ways("close a channel", "a.max");
        assert_eq!(ways(resting(1, 0, 0)), "close a channel, or raise `a.max`");
        for waits in [resting(0, 1, 0), resting(0, 0, 1)] {
            assert_eq!(ways(waits), "wait 2 h, or raise `a.max`");
        }
        assert_eq!(ways(resting(1, 0, 1)), "close a channel, wait 2 h, or raise `a.max`");
        assert_eq!(ways(resting(0, 0, 0)), "raise `a.max`");
    }

    #[test]
    fn what_lies_there_is_told_from_what_came_back() {
        let told = resting(40_000, 0, 10_000).to_string();
        assert_eq!(
            told,
            "0.04 USDC are there, and 0.01 USDC count for deposits of the last day that came back, for at most 2 h"
        );
        assert_eq!(resting(0, 0, 0).to_string(), "nothing is there");
    }
}
