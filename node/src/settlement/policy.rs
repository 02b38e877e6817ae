//! When to open, top up, claim and close, as pure decisions.
//!
//! The loop in [`super`] gathers the facts, asks here, and carries the answer out.

use farthing_protocol::Usdc;

/// Settings of both halves; amounts and times as in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Bounds of one deposit.
    pub deposit_min: Usdc,
    pub deposit_max: Usdc,
    /// First deposit, in prices.
    pub deposit_prices: u64,
    /// Top up when less than this many prices, or this part of the last deposit, is left.
    pub topup_prices: u64,
    pub topup_percent: u64,
    /// Claim as soon as this much is unclaimed and it is this many times the gas.
    pub claim_min: Usdc,
    pub claim_gas_factor: u64,
    /// Claim anyway when the oldest unclaimed charge is this old and worth this many times the gas.
    pub claim_age_secs: u64,
    pub claim_age_gas_factor: u64,
    /// The same when so much of a deposit is used.
    pub claim_deposit_percent: u64,
    /// Wait while gas costs more than this many times its median.
    pub gas_price_factor_max: u64,
    /// Close a channel unused for this long; without the owner's answer for this long, alone.
    pub idle_close_secs: u64,
    pub close_answer_secs: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            deposit_min: Usdc::from_micros(50_000),
            deposit_max: Usdc::from_micros(1_000_000),
            deposit_prices: 200,
            topup_prices: 20,
            topup_percent: 25,
            claim_min: Usdc::from_micros(250_000),
            claim_gas_factor: 50,
            claim_age_secs: 24 * 3600,
            claim_age_gas_factor: 5,
            claim_deposit_percent: 90,
            gas_price_factor_max: 5,
            idle_close_secs: 7 * 24 * 3600,
            close_answer_secs: 24 * 3600,
        }
    }
}

impl Policy {
    /// How much to put into a new channel: 200 calls' worth, within the configured bounds, never less than
    /// the owner asks for or one call costs. `None` when the wallet cannot cover the least that makes sense.
    #[must_use]
    pub fn first_deposit(&self, price: Usdc, owner_min: Usdc, balance: Usdc) -> Option<Usdc> {
        let least = price.max(owner_min);
        let wanted = price.saturating_mul(self.deposit_prices).clamp(self.deposit_min, self.deposit_max);
        let amount = wanted.max(least).min(balance);
        (amount >= least && !amount.is_zero()).then_some(amount)
    }

    /// How much to add when what is available runs low: twice the last deposit up to the cap, so a busy
    /// channel needs few transactions. `None` while there is enough, or nothing to add.
    #[must_use]
    pub fn top_up(&self, price: Usdc, available: Usdc, last_deposit: Usdc, balance: Usdc) -> Option<Usdc> {
        let part = Usdc::from_micros(last_deposit.micros() / 100 * self.topup_percent);
        // Even without a rule of the user, a channel that cannot carry the next call is low.
        if available >= price.saturating_mul(self.topup_prices.max(1)).max(part) {
            return None;
        }
        let wanted = last_deposit.saturating_mul(2).clamp(self.deposit_min, self.deposit_max);
        let amount = wanted.max(price).min(balance);
        (amount >= price && !amount.is_zero()).then_some(amount)
    }

    /// Whether to claim now.
    #[must_use]
    pub fn claim(&self, facts: &ClaimFacts) -> Option<ClaimReason> {
        if facts.unclaimed.is_zero() {
            return None;
        }
        // What a claim costs cannot be recovered by waiting when a close is pending.
        if facts.close_pending {
            return Some(ClaimReason::ClosePending);
        }
        if facts.requested {
            return Some(ClaimReason::Requested);
        }
        if facts.gas_is_dear {
            return None;
        }
        let gas = facts.gas_cost;
        if facts.unclaimed >= self.claim_min.max(gas.saturating_mul(self.claim_gas_factor)) {
            return Some(ClaimReason::Amount);
        }
        let nearly_used = facts.deposit_used_percent >= self.claim_deposit_percent;
        let old = facts.oldest_secs >= self.claim_age_secs;
        let worth_it = facts.unclaimed >= gas.saturating_mul(self.claim_age_gas_factor);
        match (worth_it, nearly_used, old) {
            (true, true, _) => Some(ClaimReason::DepositUsed),
            (true, _, true) => Some(ClaimReason::Age),
            _ => None,
        }
    }
}

/// What the claim decision looks at, over all channels.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClaimFacts {
    pub unclaimed: Usdc,
    /// Age of the oldest unclaimed charge.
    pub oldest_secs: u64,
    /// The most used channel's charges, in percent of its deposit.
    pub deposit_used_percent: u64,
    /// Estimated cost of the batch.
    pub gas_cost: Usdc,
    /// The base fee is over five times its median.
    pub gas_is_dear: bool,
    pub close_pending: bool,
    pub requested: bool,
}

/// Why a claim is made; shown to the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimReason {
    ClosePending,
    Requested,
    Amount,
    DepositUsed,
    Age,
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn usdc(micros: u64) -> Usdc {
        Usdc::from_micros(micros)
    }

    #[test]
    fn the_first_deposit_is_200_calls_within_bounds() {
        let policy = Policy::default();
        let rich = usdc(100_000_000);
        for (price, expected) in
            [(1, 50_000), (250, 50_000), (2_000, 400_000), (5_000, 1_000_000), (9_000_000, 9_000_000)]
        {
            assert_eq!(policy.first_deposit(usdc(price), usdc(0), rich), Some(usdc(expected)), "{price}");
        }
        assert_eq!(policy.first_deposit(usdc(2_000), usdc(600_000), rich), Some(usdc(600_000)));
    }

    #[test]
    fn a_small_wallet_deposits_what_it_has_but_never_less_than_a_call() {
        let policy = Policy::default();
        assert_eq!(policy.first_deposit(usdc(2_000), usdc(0), usdc(2_000)), Some(usdc(2_000)));
        assert_eq!(policy.first_deposit(usdc(2_000), usdc(0), usdc(1_999)), None);
        assert_eq!(policy.first_deposit(usdc(0), usdc(0), usdc(0)), None);
    }

    #[test]
    fn a_channel_is_topped_up_before_it_runs_dry() {
        let policy = Policy::default();
        let rich = usdc(100_000_000);
        assert_eq!(policy.top_up(usdc(2_000), usdc(100_000), usdc(400_000), rich), None);
        assert_eq!(policy.top_up(usdc(2_000), usdc(99_999), usdc(400_000), rich), Some(usdc(800_000)));
        assert_eq!(policy.top_up(usdc(2_000), usdc(0), usdc(800_000), rich), Some(usdc(1_000_000)));
        assert_eq!(policy.top_up(usdc(2_000), usdc(0), usdc(800_000), usdc(1_999)), None);
    }

    #[test]
    fn claims_wait_until_they_are_worth_their_gas() {
        let policy = Policy::default();
        let facts = ClaimFacts { unclaimed: usdc(249_999), gas_cost: usdc(100), ..ClaimFacts::default() };
        assert_eq!(policy.claim(&facts), None);
        let enough = ClaimFacts { unclaimed: usdc(250_000), ..facts };
        assert_eq!(policy.claim(&enough), Some(ClaimReason::Amount));
        assert_eq!(policy.claim(&ClaimFacts { gas_is_dear: true, ..enough }), None);
        assert_eq!(policy.claim(&ClaimFacts { gas_cost: usdc(6_000), ..enough }), None);
        let old = ClaimFacts { unclaimed: usdc(500), oldest_secs: 86_400, ..facts };
        assert_eq!(policy.claim(&old), Some(ClaimReason::Age));
        assert_eq!(policy.claim(&ClaimFacts { unclaimed: usdc(499), ..old }), None);
    }

    #[test]
    fn a_pending_close_is_always_answered_by_a_claim() {
        let policy = Policy::default();
        let facts = ClaimFacts {
            unclaimed: usdc(1),
            gas_is_dear: true,
            close_pending: true,
            ..ClaimFacts::default()
        };
        assert_eq!(policy.claim(&facts), Some(ClaimReason::ClosePending));
        assert_eq!(policy.claim(&ClaimFacts { unclaimed: usdc(0), ..facts }), None);
    }
}
