//! Decides when to open and top up a channel, and with how much. Pure.

use farthing_protocol::Usdc;

use super::channels::PayerChannel;

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

/// The size of a deposit: the amount that is wanted, and the least that must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WantedDeposit {
    /// The sum that the channel holds.
    pub(super) deposited: Usdc,
    pub(super) least: Usdc,
    pub(super) amount: Usdc,
    /// A call makes it, into a channel with an owner of whom one was emptied.
    pub(super) is_refill: bool,
}

impl DepositPolicy {
    /// Sizes the deposit with which `channel` can carry a call at `price`: an open one is topped up, and any other gets its
    /// first deposit.
    ///
    /// # Errors
    /// The amount that the wallet lacks the money for.
    pub(super) fn size(
        &self,
        channel: Option<&PayerChannel>,
        price: Usdc,
        owner_min: Usdc,
        balance: Usdc,
    ) -> Result<WantedDeposit, Usdc> {
        let available = channel.map_or(Usdc::ZERO, |channel| channel.state.available());
        let open = channel.filter(|channel| channel.holds_deposit());
        let amount = match open.filter(|channel| !channel.last_deposit.is_zero()) {
            Some(channel) => self.top_up(price, available, channel.last_deposit, balance),
            None => self.first_deposit(price, owner_min, balance),
        };
        let of_rich = || self.first_deposit(price, owner_min, Usdc::MAX).unwrap_or(price);
        Ok(WantedDeposit {
            deposited: channel.map_or(Usdc::ZERO, |channel| channel.state.deposited),
            least: if open.is_some() { price.saturating_sub(available) } else { price.max(owner_min) },
            amount: amount.ok_or_else(of_rich)?,
            is_refill: false,
        })
    }

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
    use farthing_ledger::PayerChannelRow;
    use farthing_protocol::{Address, ChannelId};

    use super::*;
    use crate::consumer::channels::{
        PayerChannels,
        tests::{row, terms, usdc},
    };

    /// A channel that got this deposit in one go, all of it but `left` charged, and this part of it paid out.
    fn channel(deposited: u64, left: u64, claimed: u64) -> PayerChannel {
        let charged = usdc(deposited - left);
        let row = PayerChannelRow {
            claimed: usdc(claimed),
            acknowledged: charged,
            receipted: charged,
            signed: charged,
            used_secs: Some(1),
            may_lack_calls: false,
            ..row(terms(Address::ZERO, Address::ZERO), deposited)
        };
        let channels = PayerChannels::default();
        channels.apply(&row, None);
        channels.get(ChannelId::NONE).unwrap()
    }

    #[test]
    fn an_open_channel_is_topped_up_by_what_a_call_lacks_at_least_and_any_other_gets_what_its_owner_asks() {
        let policy = DepositPolicy::default();
        let size = |channel: Option<&PayerChannel>, balance| {
            let size = policy.size(channel, usdc(2_000), usdc(3_000), usdc(balance));
            size.map(|size| (size.deposited.micros(), size.least.micros(), size.amount.micros()))
        };
        let (open, emptied) = (channel(400_000, 1_000, 0), channel(400_000, 0, 400_000));
        let unknown = PayerChannel { last_deposit: usdc(0), ..open.clone() };
        for (channel, sized) in [
            (None, (0, 3_000, 400_000)),
            (Some(&open), (400_000, 1_000, 800_000)),
            (Some(&unknown), (400_000, 1_000, 400_000)),
            (Some(&emptied), (400_000, 3_000, 400_000)),
        ] {
            assert_eq!(size(channel, 100_000_000), Ok(sized), "{channel:?}");
            assert_eq!(size(channel, 1_999), Err(usdc(400_000)), "{channel:?}");
        }
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
