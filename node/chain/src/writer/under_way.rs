//! Deposits that the journal held at the start.

use farthing_values::{ChannelConfig, ChannelId, Domain, Usdc};

use super::sign::{Unsigned, unsigned};
use crate::{contracts::from_eth, entry::Entry};

/// A deposit that this wallet may have made before the start, and the chain has not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepositUnderWay {
    /// The channel in the contract that the transaction calls, which the settings may not name any more.
    pub channel: ChannelId,
    pub config: ChannelConfig,
    /// The sum in the channel before, and the one that it is to hold then.
    pub deposited: Usdc,
    pub total: Usdc,
}

impl DepositUnderWay {
    /// Reads it from a stored transaction; `None` where that is no deposit. One whose bytes do not tell its contract counts as
    /// made in the configured domain.
    pub(crate) fn of(entry: &Entry, configured: &Domain) -> Option<Self> {
        let (config, deposited, total) = entry.intent.deposit()?;
        let called = unsigned(&entry.raw).and_then(|Unsigned { chain_id, to, .. }| Some((chain_id, to?)));
        let channel = match called {
            Some((chain_id, to)) => config.id(&Domain::new(chain_id, from_eth(to))),
            None => config.id(configured),
        };
        Some(Self { channel, config, deposited, total })
    }
}

#[cfg(test)]
mod tests {
    use alloy::primitives::Bytes;
    use farthing_values::{Address, SecretKey};

    use super::*;
    use crate::{contracts::to_eth, fees::Fees, intent::Intent, writer::sign};

    #[test]
    fn a_deposit_under_way_is_of_the_contract_that_its_transaction_calls_whatever_the_settings_name_now() {
        let [payer, payee, token, former, present] = [1, 2, 3, 4, 5].map(|n| Address::from_bytes([n; 20]));
        let config = ChannelConfig { payer, payee, token, signer: payer, close_delay_secs: 1, salt: [0; 32] };
        let key = SecretKey::from_bytes(&[7; 32]).unwrap();
        let signed = |intent| {
            let unsigned = Unsigned {
                chain_id: 31_337,
                nonce: 5,
                gas_limit: 21_000,
                to: Some(to_eth(former)),
                value_wei: 0,
                data: Bytes::new(),
            };
            Entry::new(intent, 5, 21_000, sign(unsigned, Fees { max_wei: 100, tip_wei: 1 }, &key))
        };
        let [deposited, amount, total] = [400, 1_000, 1_400].map(Usdc::from_micros);
        let deposit =
            Intent::Deposit { config, target: total, amount_max: amount, terms: None, round: Some(0) };
        let [was, now] = [former, present].map(|contract| Domain::new(31_337, contract));
        let mut entry = signed(deposit);
        let expected = DepositUnderWay { channel: config.id(&was), config, deposited, total };
        for configured in [was, now] {
            assert_eq!(DepositUnderWay::of(&entry, &configured), Some(expected));
        }
        entry.raw = Vec::new().into();
        let unread = DepositUnderWay::of(&entry, &now).map(|deposit| deposit.channel);
        assert_eq!(unread, Some(config.id(&now)), "it counts all the same");
        assert_eq!(DepositUnderWay::of(&signed(Intent::Withdraw { config }), &now), None);
    }
}
