//! Money on channels of another chain, contract or token than the settings name: while they do, this node does not follow
//! such a channel, so it neither claims what it earned there nor takes its deposit back.
//! Where a channel is, and the settings that reach it, [`Escrows`] knows.

use std::collections::BTreeMap;

use farthing_control::{
    counted,
    types::{
        Alert, AlertKind,
        AlertSeverity::{Error, Warning},
    },
};
use farthing_ledger::{Ledger, LedgerError};
use farthing_protocol::{Address, ChannelConfig, ChannelId, Escrow, Usdc};

use crate::escrows::Escrows;

/// A channel of the ledger, and what it holds for this node.
#[derive(Clone, Copy, Debug)]
struct OnChannel {
    id: ChannelId,
    config: ChannelConfig,
    earned: Usdc,
    deposited: Usdc,
}

/// The money on all channels of one place that the settings do not name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoneyElsewhere {
    /// `None` where no chain and contract that this node knows of makes the ids.
    escrow: Option<Escrow>,
    token: Address,
    /// The place that the settings name.
    configured: Escrow,
    /// The settings that have to be as they were.
    back: String,
    channels: usize,
    /// Earned and not claimed.
    earned: Usdc,
    /// Deposited and not claimed by the owner.
    deposited: Usdc,
}

impl MoneyElsewhere {
    /// Reads it from the ledger, by place.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn read(ledger: &Ledger, escrows: &Escrows) -> Result<Vec<Self>, LedgerError> {
        let paid = ledger.payee_channels()?.into_iter().map(|row| OnChannel {
            id: row.id,
            config: row.config,
            earned: row.state().unclaimed(),
            deposited: Usdc::ZERO,
        });
        let paying = ledger.payer_channels()?.into_iter().map(|row| OnChannel {
            id: row.id,
            config: row.config,
            earned: Usdc::ZERO,
            deposited: row.deposited.saturating_sub(row.claimed),
        });
        Ok(by_place(paid.chain(paying), escrows))
    }
}

/// Adds up the money of the channels that are not of the configured place.
fn by_place(channels: impl Iterator<Item = OnChannel>, escrows: &Escrows) -> Vec<MoneyElsewhere> {
    let configured = escrows.configured;
    let mut elsewhere = BTreeMap::new();
    for OnChannel { id, config, earned, deposited } in channels {
        if (earned.is_zero() && deposited.is_zero()) || configured.holds(id, &config) {
            continue;
        }
        let (escrow, token) = (escrows.find(id, &config), config.token);
        let money = elsewhere.entry((escrow, token)).or_insert_with(|| MoneyElsewhere {
            escrow,
            token,
            configured,
            back: escrows.back_to(escrow, token),
            channels: 0,
            earned: Usdc::ZERO,
            deposited: Usdc::ZERO,
        });
        money.channels += 1;
        money.earned = money.earned.saturating_add(earned);
        money.deposited = money.deposited.saturating_add(deposited);
    }
    elsewhere.into_values().collect()
}

/// Tells of one place. It is an error where money was earned: a payer withdraws what is not claimed in time.
pub(super) fn alert(money: &MoneyElsewhere) -> Alert {
    let MoneyElsewhere { escrow, token, configured, back, channels, earned, deposited } = money;
    let place = place(*escrow, *token);
    let sums = [(earned, "you earned"), (deposited, "you deposited")];
    let sums = sums.into_iter().filter(|(sum, _)| !sum.is_zero());
    let sums: Vec<String> = sums.map(|(sum, whence)| format!("{sum} USDC that {whence}")).collect();
    let (severity, threat) = match earned.is_zero() {
        true => (Warning, ""),
        false => (Error, ", and a payer can withdraw what you earned"),
    };
    let cause = format!(
        "this node does not follow {} with {}: the settings name the {}, and the {place} holds that money. It \
         claims and closes nothing there{threat}",
        counted(*channels, "channel"),
        sums.join(" and "),
        self::place(Some(*configured), configured.token),
    );
    let action = format!(
        "set {back}, restart the node, and run `farthing settle now` and `farthing channel close`; change the chain after that"
    );
    Alert::new(AlertKind::MoneyElsewhere, severity, cause, action).about(&place)
}

fn place(escrow: Option<Escrow>, token: Address) -> String {
    match escrow {
        Some(Escrow { chain_id, contract, .. }) => {
            format!("token {token} in the contract {contract} on chain {chain_id}")
        }
        None => format!("token {token} in a contract or on a chain that this node does not know"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use farthing_chain::pay_channels_address;

    use super::*;

    const TOKEN: Address = Address::from_bytes([1; 20]);
    const OTHER: Address = Address::from_bytes([2; 20]);

    fn channel(escrow: Escrow, earned: u64, deposited: u64) -> OnChannel {
        let config = ChannelConfig {
            payer: Address::from_bytes([3; 20]),
            payee: Address::from_bytes([4; 20]),
            token: escrow.token,
            signer: Address::from_bytes([3; 20]),
            close_delay_secs: 86_400,
            salt: [0; 32],
        };
        let id = config.id(&escrow.domain());
        let (earned, deposited) = (Usdc::from_micros(earned), Usdc::from_micros(deposited));
        OnChannel { id, config, earned, deposited }
    }

    #[test]
    fn money_of_another_token_contract_or_chain_is_told_with_the_settings_that_reach_it() {
        let usual = pay_channels_address();
        let here = Escrow { chain_id: 31_337, contract: usual, token: TOKEN };
        let other = Escrow { token: OTHER, ..here };
        let chains = BTreeSet::from([8_453, 777]);
        let told = |channels: &[OnChannel], configured| {
            let found = by_place(channels.iter().copied(), &Escrows::new(configured, &chains));
            found.iter().map(alert).collect::<Vec<_>>()
        };
        for money in [channel(here, 5, 0), channel(here, 0, 5), channel(other, 0, 0)] {
            assert_eq!(told(&[money], here), [], "{money:?}");
        }
        let moved = Escrow { contract: OTHER, ..here };
        let on = |chain_id| Escrow { chain_id, ..here };
        let former = TOKEN.to_string();
        for (was, configured, settings) in [
            (here, other, format!("set `chain.token` back to {former}, restart")),
            (here, moved, format!("set `chain.contract` back to {usual}, restart")),
            (on(8_453), here, "set `chain.preset` back to base, restart".to_owned()),
            (on(777), here, "back to those of chain 777, restart".to_owned()),
            (moved, other, format!("back to what they were, `chain.token` back to {former}")),
        ] {
            let alerts = told(&[channel(was, 40_000, 0)], configured);
            assert_eq!(alerts.len(), 1, "{was:?}");
            let (cause, action) = (&alerts[0].cause, &alerts[0].action);
            assert!(action.contains(&settings), "{action}");
            assert!(cause.contains("1 channel with 0.04 USDC that you earned: ") && cause.contains(&former));
            assert_eq!((alerts[0].severity, alerts[0].subject.is_empty()), (Error, false));
        }
    }

    #[test]
    fn money_of_one_place_is_one_alert_and_deposits_alone_are_a_warning() {
        let here = Escrow { chain_id: 31_337, contract: pay_channels_address(), token: TOKEN };
        let other = Escrow { token: OTHER, ..here };
        let channels = [channel(other, 0, 7), channel(here, 2, 0), channel(other, 0, 3)];
        let found =
            by_place(channels.into_iter(), &Escrows::new(Escrow { chain_id: 1, ..here }, &[31_337].into()));
        let alerts: Vec<Alert> = found.iter().map(alert).collect();
        assert_eq!(alerts.len(), 2, "{alerts:?}");
        assert_eq!((alerts[0].severity, alerts[1].severity), (Error, Warning));
        assert!(alerts[1].cause.contains("2 channels with 0.00001 USDC that you deposited: "), "{alerts:?}");
    }
}
