//! Decides when to open and top up a channel, and with how much. Pure.

use farthing_protocol::Usdc;

/// Settings; amounts as in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepositPolicy {
    /// Bounds of one deposit.
    pub deposit_min: Usdc,
    pub deposit_max: Usdc,
    /// First deposit, in prices.
    pub deposit_prices: u64,
    /// Top up when less than this many prices, or this part of the last deposit, is left.
    pub topup_prices: u64,
    pub topup_percent: u64,
}

impl Default for DepositPolicy {
    fn default() -> Self {
        Self {
            deposit_min: Usdc::from_micros(50_000),
            deposit_max: Usdc::from_micros(1_000_000),
            deposit_prices: 200,
            topup_prices: 20,
            topup_percent: 25,
        }
    }
}

impl DepositPolicy {
    /// Computes the deposit of a new channel: 200 calls' worth, within the configured bounds, never less than
    /// the owner asks for or one call costs. `None` when the wallet cannot cover the least that makes sense.
    pub fn first_deposit(&self, price: Usdc, owner_min: Usdc, balance: Usdc) -> Option<Usdc> {
        let least = price.max(owner_min);
        let wanted = price.saturating_mul(self.deposit_prices).clamp(self.deposit_min, self.deposit_max);
        let amount = wanted.max(least).min(balance);
        (amount >= least && !amount.is_zero()).then_some(amount)
    }

    /// Computes what to add when the available sum runs low: twice the last deposit up to the cap, so a busy
    /// channel needs few transactions. `None` while there is enough, or nothing to add.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn usdc(micros: u64) -> Usdc {
        Usdc::from_micros(micros)
    }

    #[test]
    fn the_first_deposit_is_200_calls_within_bounds() {
        let policy = DepositPolicy::default();
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
        let policy = DepositPolicy::default();
        assert_eq!(policy.first_deposit(usdc(2_000), usdc(0), usdc(2_000)), Some(usdc(2_000)));
        assert_eq!(policy.first_deposit(usdc(2_000), usdc(0), usdc(1_999)), None);
        assert_eq!(policy.first_deposit(usdc(0), usdc(0), usdc(0)), None);
    }

    #[test]
    fn a_channel_is_topped_up_before_it_runs_dry() {
        let policy = DepositPolicy::default();
        let rich = usdc(100_000_000);
        assert_eq!(policy.top_up(usdc(2_000), usdc(100_000), usdc(400_000), rich), None);
        assert_eq!(policy.top_up(usdc(2_000), usdc(99_999), usdc(400_000), rich), Some(usdc(800_000)));
        assert_eq!(policy.top_up(usdc(2_000), usdc(0), usdc(800_000), rich), Some(usdc(1_000_000)));
        assert_eq!(policy.top_up(usdc(2_000), usdc(0), usdc(800_000), usdc(1_999)), None);
    }
}
