//! The cost of gas in USDC, and what a wallet's ETH can bring to the chain. Pure.

use std::{cmp::Reverse, collections::HashSet};

use farthing_chain::{BaseFee, CLAIM_ROWS_MAX, gas_limit};
use farthing_values::{ChannelId, Usdc};

/// Gas of a claim transaction: the base and each further channel (measured, `docs/contracts.md`).
const CLAIM_GAS_BASE: u64 = 65_000;
const CLAIM_GAS_PER_CHANNEL: u64 = 19_000;
/// The price of ETH that gas is weighed with against USDC. Being wrong by a factor of two moves a claim by a
/// few hours; asking someone would add a party to trust.
const MICROS_PER_ETH: u128 = 3_000_000_000;
const WEI_PER_ETH: u128 = 1_000_000_000_000_000_000;

/// The cost of gas now, in USDC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gas {
    /// A claim transaction before its first row.
    pub base: Usdc,
    /// Each row.
    pub row: Usdc,
    /// Far above its usual price: what can wait, waits.
    pub is_dear: bool,
}

impl Gas {
    /// At what gas costs with the usual tip, and what layer 1 charges for the data.
    pub fn at(fee: &BaseFee, is_dear: bool) -> Self {
        let wei_per_gas = fee.current_wei.saturating_add(fee.tip_wei);
        let cost =
            |gas, l1_wei| micros_of(u128::from(gas).saturating_mul(wei_per_gas).saturating_add(l1_wei));
        let (base, row) =
            (cost(CLAIM_GAS_BASE, fee.l1.base_wei), cost(CLAIM_GAS_PER_CHANNEL, fee.l1.row_wei));
        Self { base, row, is_dear }
    }

    /// The cost of claiming so many rows, in as few transactions as they take.
    pub fn of(&self, rows: usize) -> Usdc {
        let transactions = rows.div_ceil(CLAIM_ROWS_MAX) as u64;
        self.base.saturating_mul(transactions).saturating_add(self.row.saturating_mul(rows as u64))
    }

    /// Returns whether one channel's sum is worth a transaction of its own.
    pub fn is_paid_by(&self, due: Usdc) -> bool {
        due > self.of(1)
    }
}

/// Computes what a wallet must hold for a claim of so many channels in one transaction: what it bids for all of its
/// limit, and layer 1's fee. Where gas is free, it still needs something.
fn claim_wei_max(fee: &BaseFee, rows: usize) -> u128 {
    let rows = rows as u64;
    let gas = CLAIM_GAS_PER_CHANNEL.saturating_mul(rows).saturating_add(CLAIM_GAS_BASE);
    let l1_wei = fee.l1.row_wei.saturating_mul(rows.into()).saturating_add(fee.l1.base_wei);
    u128::from(gas_limit(gas)).saturating_mul(fee.bid_wei).saturating_add(l1_wei).max(1)
}

/// The means of a wallet to bring to the chain what it has earned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GasMeans {
    /// So many channels can be claimed.
    pub rows: usize,
    /// A channel's sum has to be larger than this, or gas costs more than it brings.
    pub row_cost: Usdc,
}

impl GasMeans {
    /// Of a wallet that can claim whatever there is.
    pub const UNLIMITED: Self = Self { rows: usize::MAX, row_cost: Usdc::ZERO };

    /// Of a wallet with so much ETH, at what gas costs now.
    pub fn of(fee: &BaseFee, eth_wei: u128) -> Self {
        let full = claim_wei_max(fee, CLAIM_ROWS_MAX);
        let (transactions, rest) = (eth_wei / full, eth_wei % full);
        let further = (1..CLAIM_ROWS_MAX).rev().find(|rows| claim_wei_max(fee, *rows) <= rest).unwrap_or(0);
        let transactions = usize::try_from(transactions).unwrap_or(usize::MAX);
        let rows = transactions.saturating_mul(CLAIM_ROWS_MAX).saturating_add(further);
        Self { rows, row_cost: Gas::at(fee, false).row }
    }

    /// Of the same wallet after so many payments of others, each of which takes as much gas as a claim of one channel.
    pub fn after_payments(fee: &BaseFee, eth_wei: u128, payments: usize) -> Self {
        let used_wei = claim_wei_max(fee, 1).saturating_mul(payments as u128);
        Self::of(fee, eth_wei.saturating_sub(used_wei))
    }

    /// Of a wallet that can claim nothing.
    pub const NONE: Self = Self { rows: 0, row_cost: Usdc::ZERO };

    /// Computes what of these sums cannot be claimed: the dearest are claimed first, and those that gas would eat up do
    /// not count, unless there is no ETH for any claim.
    pub fn left_behind(&self, due: impl Iterator<Item = Usdc>) -> Usdc {
        let least = if self.rows == 0 { Usdc::ZERO } else { self.row_cost };
        let mut due: Vec<Usdc> = due.filter(|due| *due > least).collect();
        if due.len() <= self.rows {
            return Usdc::ZERO;
        }
        due.select_nth_unstable_by_key(self.rows, |due| Reverse(*due));
        due.iter().skip(self.rows).fold(Usdc::ZERO, |sum, due| sum.saturating_add(*due))
    }

    /// Divides channels into those to claim first, as many of the dearest as can be paid for, in the order they have;
    /// and the others, the dearest first.
    pub fn divide(
        &self,
        channels: &[ChannelId],
        due: impl Fn(&ChannelId) -> Usdc,
    ) -> (Vec<ChannelId>, Vec<ChannelId>) {
        let mut dearest: Vec<ChannelId> = channels.to_vec();
        dearest.sort_by_key(|channel| Reverse(due(channel)));
        let (paid, unpaid) = dearest.split_at(self.rows.min(dearest.len()));
        let paid: HashSet<&ChannelId> = paid.iter().collect();
        (channels.iter().filter(|channel| paid.contains(channel)).copied().collect(), unpaid.to_vec())
    }
}

/// The cost of one transaction: what it probably is, and the most that it is sent with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionCost {
    pub likely: Usdc,
    pub most: Usdc,
    /// The same in wei.
    pub most_wei: u128,
}

impl TransactionCost {
    /// Computes it for a transaction that takes so much gas, and about as much data as a claim of one channel.
    pub fn of(fee: &BaseFee, gas: u64) -> Self {
        let l1_wei = fee.l1.base_wei.saturating_add(fee.l1.row_wei);
        let wei = |gas: u64, each: u128| u128::from(gas).saturating_mul(each).saturating_add(l1_wei);
        let likely = micros_of(wei(gas, fee.current_wei.saturating_add(fee.tip_wei)));
        let most_wei = wei(gas_limit(gas), fee.bid_wei);
        Self { likely, most: micros_of(most_wei).max(likely), most_wei }
    }
}

/// Gas in USDC, rounded up: what costs something is never free.
pub fn micros_of(wei: u128) -> Usdc {
    let micros = wei.saturating_mul(MICROS_PER_ETH).div_ceil(WEI_PER_ETH);
    Usdc::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

/// Checks that a sum is worth at least so many times its gas.
///
/// # Errors
/// The least sum that is.
pub fn check_worth(sum: Usdc, gas: Usdc, factor: u64) -> Result<(), Usdc> {
    let least = gas.saturating_mul(factor);
    if sum >= least { Ok(()) } else { Err(least) }
}

#[cfg(test)]
mod tests {
    use farthing_chain::L1Fee;

    use super::*;

    const FREE: BaseFee = BaseFee {
        current_wei: 0,
        median_wei: 0,
        tip_wei: 0,
        bid_wei: 0,
        l1: L1Fee { base_wei: 0, row_wei: 0 },
    };

    const fn usdc(micros: u64) -> Usdc {
        Usdc::from_micros(micros)
    }

    const fn id(n: u8) -> ChannelId {
        ChannelId::from_bytes([n; 32])
    }

    #[test]
    fn a_transaction_costs_its_gas_and_its_data_and_at_most_its_whole_limit_at_what_it_bids() {
        let l1 = L1Fee { base_wei: 2_000_000_000_000, row_wei: 1_000_000_000_000 };
        let fee =
            BaseFee { current_wei: 900_000_000, tip_wei: 100_000_000, bid_wei: 2_000_000_000, l1, ..FREE };
        // 100,000 gas at 1 gwei are 0.0001 ETH, and the limit of 145,000 at 2 gwei is 0.00029 ETH.
        let most_wei = 290_000_000_000_000 + 3_000_000_000_000;
        let expected = TransactionCost { likely: usdc(309_000), most: usdc(879_000), most_wei };
        assert_eq!(TransactionCost::of(&fee, 100_000), expected);
    }

    #[test]
    fn a_sum_below_the_factor_of_its_gas_is_told_the_least_that_is_worth_it() {
        for (sum, gas, factor, expected) in [
            (60, 20, 3, Ok(())),
            (59, 20, 3, Err(usdc(60))),
            (0, 0, 3, Ok(())),
            (0, 20, 0, Ok(())),
            (u64::MAX - 1, u64::MAX, 2, Err(usdc(u64::MAX))),
        ] {
            assert_eq!(check_worth(usdc(sum), usdc(gas), factor), expected, "{sum} for {gas}");
        }
    }

    #[test]
    fn what_costs_gas_is_never_weighed_as_free() {
        let fee = |current_wei| BaseFee { current_wei, ..FREE };
        assert_eq!(Gas::at(&fee(1), false).of(1), usdc(2));
        // 84,000 gas at 1 gwei are 0.000084 ETH.
        let one = Gas::at(&fee(1_000_000_000), false);
        assert_eq!(one.of(1), usdc(252_000));
        let many = CLAIM_ROWS_MAX;
        assert_eq!(
            one.of(many + 1),
            usdc(one.of(many).micros() + one.of(1).micros()),
            "a further transaction begins"
        );
    }

    #[test]
    fn the_tip_and_layer_1_are_part_of_what_a_claim_costs() {
        let tip = BaseFee { tip_wei: 1_000_000_000, bid_wei: 3_000_000_000, ..FREE };
        assert_eq!(Gas::at(&tip, false).of(1), usdc(252_000));
        assert_eq!(claim_wei_max(&tip, 1), 125_800 * 3_000_000_000);
        assert_eq!(claim_wei_max(&tip, 100), 2_383_000 * 3_000_000_000);
        assert_eq!(claim_wei_max(&FREE, 1), 1, "where gas is free, something is needed");
        let l1 = BaseFee { l1: L1Fee { base_wei: 2_000_000_000_000, row_wei: 1_000_000_000_000 }, ..FREE };
        assert_eq!(Gas::at(&l1, false), Gas { base: usdc(6_000), row: usdc(3_000), is_dear: false });
        assert_eq!(claim_wei_max(&l1, 1), 3_000_000_000_000);
        assert_eq!(claim_wei_max(&l1, 3), 5_000_000_000_000);
    }

    #[test]
    fn what_can_be_claimed_is_what_the_eth_pays_for() {
        let fee = BaseFee { current_wei: 500_000_000, bid_wei: 1_000_000_000, ..FREE };
        let cost = |rows| claim_wei_max(&fee, rows);
        for (wei, rows) in [
            (0, 0),
            (cost(1) - 1, 0),
            (cost(1), 1),
            (cost(2) - 1, 1),
            (cost(99), 99),
            (cost(100), 100),
            (cost(100) + cost(1) - 1, 100),
            (cost(100) + cost(7), 107),
        ] {
            assert_eq!(GasMeans::of(&fee, wei).rows, rows, "{wei}");
        }
        let after = |wei, payments| GasMeans::after_payments(&fee, wei, payments).rows;
        assert_eq!((after(cost(1) + cost(7), 1), after(3 * cost(1), 2), after(cost(1), 2)), (7, 1, 0));
        assert!(GasMeans::of(&fee, u128::MAX).rows > 1_000_000);
        assert_eq!((GasMeans::of(&FREE, 0).rows, GasMeans::of(&FREE, 1).rows), (0, 100));

        let means = |rows| GasMeans { rows, row_cost: usdc(50) };
        let left = |rows, due: &[u64]| means(rows).left_behind(due.iter().map(|due| usdc(*due))).micros();
        assert_eq!((left(0, &[]), left(0, &[50, 60])), (0, 110), "without ETH, all of it");
        assert_eq!((left(2, &[51, 52]), left(1, &[51, 52]), left(2, &[90, 70, 60, 80])), (0, 51, 130));
        assert_eq!(left(1, &[51, 50, 0, 50]), 0, "what does not pay for its row asks for no ETH");
        assert_eq!(GasMeans::UNLIMITED.left_behind([usdc(1)].into_iter()), Usdc::ZERO);
    }

    #[test]
    fn the_dearest_that_can_be_paid_for_are_claimed_first_in_the_order_of_their_urgency() {
        let due = |channel: &ChannelId| usdc([10, 40, 20, 30][usize::from(channel.as_bytes()[0])]);
        let all = [id(0), id(1), id(2), id(3)];
        let divide = |rows| GasMeans { rows, row_cost: usdc(0) }.divide(&all, due);
        assert_eq!(divide(0), (vec![], vec![id(1), id(3), id(2), id(0)]));
        assert_eq!(divide(2), (vec![id(1), id(3)], vec![id(2), id(0)]));
        assert_eq!(divide(3), (vec![id(1), id(2), id(3)], vec![id(0)]));
        for rows in [4, 5] {
            assert_eq!(divide(rows), (all.to_vec(), vec![]));
        }
    }
}
