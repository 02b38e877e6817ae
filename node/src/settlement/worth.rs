//! Decides which channels to claim and when, channel by channel. Pure.
//!
//! Each channel's sum is held against its own share of the gas: a channel that does not pay for its row is left
//! out, whatever the others hold, so that a stranger's dust never costs the owner gas. A pending close is the one
//! reason to claim what would otherwise wait, because waiting loses it.

use std::cmp::Reverse;

use farthing_chain::CLAIM_ROWS_MAX;
use farthing_protocol::{ChannelId, Usdc};
use farthing_shared::gas::Gas;

use super::policy::Policy;

/// The least by which something is worth more than its gas.
const LEAST: Usdc = Usdc::from_micros(1);
/// One channel as the decision sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub channel: ChannelId,
    /// The sum that the contract would pay: min(spent, deposited) − claimed.
    pub due: Usdc,
    /// Age of the oldest unclaimed charge.
    pub age_secs: u64,
    /// Charges in percent of the deposit.
    pub used_percent: u64,
    /// From this second on the payer may withdraw; `None` without a pending close.
    pub close_at_secs: Option<u64>,
}

/// The reason for a claim; shown to the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimReason {
    ClosePending,
    Requested,
    Amount,
    DepositUsed,
    Age,
}

/// The channels to claim on now, the most urgent first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub reason: ClaimReason,
    pub channels: Vec<ChannelId>,
}

impl Policy {
    /// Chooses what to claim now. Pending closes come first, in the order in which their delays end; everything else
    /// waits for a cheap moment and a sum that is worth it.
    pub fn claim(&self, rows: &[Row], gas: Gas) -> Option<Claim> {
        self.claim_pending(rows, gas).or_else(|| self.claim_worthwhile(rows, gas))
    }

    /// The rows whose payers are about to withdraw, as far as they pay for their gas.
    pub fn claim_pending(&self, rows: &[Row], gas: Gas) -> Option<Claim> {
        let pending = rows.iter().filter(|row| row.close_at_secs.is_some());
        let mut paying =
            paying(pending, gas.row.saturating_add(LEAST), |rows| gas.of(rows).saturating_add(LEAST));
        paying.sort_by_key(|row| (row.close_at_secs, row.channel));
        let channels: Vec<ChannelId> = paying.iter().map(|row| row.channel).collect();
        (!channels.is_empty()).then_some(Claim { reason: ClaimReason::ClosePending, channels })
    }

    fn claim_worthwhile(&self, rows: &[Row], gas: Gas) -> Option<Claim> {
        if gas.is_dear {
            return None;
        }
        let worth = |factor| {
            paying(rows.iter(), gas.row.saturating_mul(factor), |rows| gas.of(rows).saturating_mul(factor))
        };
        let claimed = worth(self.claim_age_gas_factor);
        let nearly_used = claimed.iter().any(|row| row.used_percent >= self.claim_deposit_percent);
        let old = claimed.iter().any(|row| row.age_secs >= self.claim_age_secs);
        let amount = sum(&worth(self.claim_gas_factor));
        let reason = match () {
            () if claimed.is_empty() => return None,
            () if !amount.is_zero() && amount >= self.claim_min => ClaimReason::Amount,
            () if nearly_used => ClaimReason::DepositUsed,
            () if old => ClaimReason::Age,
            () => return None,
        };
        Some(Claim { reason, channels: claimed.iter().map(|row| row.channel).collect() })
    }
}

/// The rows that are worth `row_least` each and, transaction by transaction, what `cost` says of its number of rows. The
/// largest come first, so that no number of small ones makes a transaction of large ones look dear.
fn paying<'a>(
    rows: impl Iterator<Item = &'a Row>,
    row_least: Usdc,
    cost: impl Fn(usize) -> Usdc,
) -> Vec<&'a Row> {
    let mut rows: Vec<&Row> = rows.filter(|row| !row.due.is_zero() && row.due >= row_least).collect();
    rows.sort_by_key(|row| (Reverse(row.due), row.channel));
    let is_paid = |transaction: &&[&Row]| sum(transaction) >= cost(transaction.len());
    let paid = rows.chunks(CLAIM_ROWS_MAX).take_while(is_paid).map(<[&Row]>::len).sum();
    rows.truncate(paid);
    rows
}

fn sum(rows: &[&Row]) -> Usdc {
    rows.iter().fold(Usdc::ZERO, |sum, row| sum.saturating_add(row.due))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consumer::channels::tests::usdc;

    const GAS: Gas = Gas { base: usdc(50), row: usdc(50), is_dear: false };

    const fn id(n: u8) -> ChannelId {
        ChannelId::from_bytes([n; 32])
    }

    fn row(n: u8, due: u64) -> Row {
        Row { channel: id(n), due: usdc(due), age_secs: 0, used_percent: 0, close_at_secs: None }
    }

    fn claim(rows: &[Row], gas: Gas) -> Option<(ClaimReason, Vec<ChannelId>)> {
        Policy::default().claim(rows, gas).map(|claim| (claim.reason, claim.channels))
    }

    #[test]
    fn claims_wait_until_they_are_worth_their_gas() {
        let enough = [row(1, 250_000)];
        assert_eq!(claim(&[row(1, 249_999)], GAS), None);
        assert_eq!(claim(&enough, GAS), Some((ClaimReason::Amount, vec![id(1)])));
        assert_eq!(claim(&enough, Gas { is_dear: true, ..GAS }), None);
        assert_eq!(claim(&enough, Gas { base: usdc(5_951), ..GAS }), None);
        let old = Row { age_secs: 86_400, ..row(1, 500) };
        assert_eq!(claim(&[old], GAS), Some((ClaimReason::Age, vec![id(1)])));
        assert_eq!(claim(&[Row { due: usdc(499), ..old }], GAS), None);
        let used = Row { used_percent: 90, ..row(1, 500) };
        assert_eq!(claim(&[used], GAS), Some((ClaimReason::DepositUsed, vec![id(1)])));
    }

    #[test]
    fn a_channel_that_does_not_pay_for_its_row_is_left_out_of_a_claim() {
        let rows = [row(1, 249), row(2, 250_000), row(3, 250), row(4, 0)];
        assert_eq!(claim(&rows, GAS), Some((ClaimReason::Amount, vec![id(2), id(3)])));
        // However old, and however many of them there are.
        let dust: Vec<Row> = (0..=255).map(|n| Row { age_secs: 1_000_000, ..row(n, 249) }).collect();
        assert_eq!(claim(&dust, GAS), None);
    }

    #[test]
    fn a_pending_close_is_claimed_before_it_is_lost_as_far_as_it_pays() {
        let dear = Gas { is_dear: true, ..GAS };
        let pending = |n, due, at| Row { close_at_secs: Some(at), ..row(n, due) };
        assert_eq!(claim(&[pending(1, 101, 9)], dear), Some((ClaimReason::ClosePending, vec![id(1)])));
        for dust in [0, 1, 50, 51, 100] {
            assert_eq!(claim(&[pending(1, dust, 9)], dear), None, "{dust}");
        }
        // The base is shared; a row that does not pay its own share is left out, and so are those that can wait.
        let rows = [pending(1, 80, 9), pending(2, 50, 1), pending(3, 80, 8), row(4, 9_000)];
        assert_eq!(claim(&rows, dear), Some((ClaimReason::ClosePending, vec![id(3), id(1)])));
    }

    #[test]
    fn no_number_of_small_rows_keeps_a_large_one_from_being_claimed() {
        let many = |row: &dyn Fn(u8) -> Row| -> Vec<Row> {
            let salted = |n: u16, row: Row| {
                let mut id = [0; 32];
                id[..2].copy_from_slice(&n.to_be_bytes());
                Row { channel: ChannelId::from_bytes(id), ..row }
            };
            (0..1_000).map(|n| salted(n, row(0))).collect()
        };
        let claimed = |honest: Row, small: &[Row], gas: Gas| {
            let all: Vec<Row> = small.iter().copied().chain([honest]).collect();
            claim(&all, gas).is_some_and(|(_, channels)| channels.contains(&honest.channel))
        };
        let dear_base = Gas { base: usdc(5_000), row: usdc(50), is_dear: false };
        let pending = |n, due| Row { close_at_secs: Some(9), ..row(n, due) };
        let honest = pending(255, 5_051);
        assert!(claimed(honest, &[], dear_base));
        for due in 0..200 {
            assert!(claimed(honest, &many(&|n| pending(n, due)), dear_base), "pending, rows of {due}");
        }
        let honest = row(255, 300_000);
        assert!(claimed(honest, &[], dear_base));
        for due in (0..3_000).step_by(50) {
            assert!(claimed(honest, &many(&|n| row(n, due)), dear_base), "at rest, rows of {due}");
        }
    }
}
