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

use crate::{
    consumer::rest::{ChannelSum, PlacedDeposits, StoredPlaces},
    escrows::Escrows,
};

/// A channel of the ledger, and what it holds for this node.
#[derive(Clone, Copy, Debug)]
struct OnChannel {
    id: ChannelId,
    config: ChannelConfig,
    earned: Usdc,
    deposited: Usdc,
    coming: Usdc,
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
    /// Was under way there, or not yet in the books, when this node last followed it.
    coming: Usdc,
}

impl MoneyElsewhere {
    /// Reads it from the ledger, by place.
    pub fn read(ledger: &Ledger, escrows: &Escrows) -> Result<Vec<Self>, LedgerError> {
        let paid = ledger.payee_channels()?.into_iter().map(|row| OnChannel {
            id: row.id,
            config: row.config,
            earned: row.state().unclaimed(),
            deposited: Usdc::ZERO,
            coming: Usdc::ZERO,
        });
        Ok(by_place(paid.chain(paying(ledger)?), escrows))
    }
}

/// Lists the channels that this node pays on, with the deposits into them that the books may lack.
fn paying(ledger: &Ledger) -> Result<impl Iterator<Item = OnChannel> + use<>, LedgerError> {
    let (mut channels, mut shown) = (BTreeMap::new(), BTreeMap::new());
    for row in ledger.payer_channels()? {
        let channel = OnChannel {
            id: row.id,
            config: row.config,
            earned: Usdc::ZERO,
            deposited: row.deposited.saturating_sub(row.claimed),
            coming: Usdc::ZERO,
        };
        channels.insert(row.id, channel);
        shown.insert(row.id, ChannelSum { round: row.round.unwrap_or_default(), deposited: row.deposited });
    }
    for StoredPlaces { at, terms, deposits } in PlacedDeposits::new(ledger.clone()).by_channel()? {
        let id = at.channel;
        let of_row = || channels.get(&id).map(|channel| channel.config);
        let Some(config) = terms.or_else(of_row) else { continue };
        let nothing = ChannelSum { round: 0, deposited: Usdc::ZERO };
        let shown = shown.get(&id).copied().unwrap_or(nothing);
        let lacking = deposits.iter().filter(|deposit| deposit.may_lack(shown));
        let coming = lacking.fold(Usdc::ZERO, |sum, deposit| sum.saturating_add(deposit.amount));
        let (earned, deposited) = (Usdc::ZERO, Usdc::ZERO);
        let unknown = OnChannel { id, config, earned, deposited, coming };
        channels.entry(id).or_insert(unknown).coming = coming;
    }
    Ok(channels.into_values())
}

/// Adds up the money of the channels that are not of the configured place.
fn by_place(channels: impl Iterator<Item = OnChannel>, escrows: &Escrows) -> Vec<MoneyElsewhere> {
    let configured = escrows.configured;
    let mut elsewhere = BTreeMap::new();
    for OnChannel { id, config, earned, deposited, coming } in channels {
        let is_empty = [earned, deposited, coming].into_iter().all(Usdc::is_zero);
        if is_empty || configured.holds(id, &config) {
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
            coming: Usdc::ZERO,
        });
        money.channels += 1;
        money.earned = money.earned.saturating_add(earned);
        money.deposited = money.deposited.saturating_add(deposited);
        money.coming = money.coming.saturating_add(coming);
    }
    elsewhere.into_values().collect()
}

/// Tells of one place. It is an error where money was earned: a payer withdraws what is not claimed in time.
pub(super) fn alert(money: &MoneyElsewhere) -> Alert {
    let MoneyElsewhere { escrow, token, configured, back, channels, earned, deposited, coming } = money;
    let place = place(*escrow, *token);
    let sums = [
        (earned, "you earned"),
        (deposited, "you deposited"),
        (coming, "you were depositing and may have arrived since"),
    ];
    let sums = sums.into_iter().filter(|(sum, _)| !sum.is_zero());
    let sums: Vec<String> = sums.map(|(sum, whence)| format!("{sum} USDC that {whence}")).collect();
    let (severity, threat) = match earned.is_zero() {
        true => (Warning, ""),
        false => (Error, ", and a payer can withdraw what you earned"),
    };
    let cause = format!(
        "this node does not follow {} with {}: the settings name the {}, but the money is in the {place}. This node \
         claims and closes nothing there{threat}",
        counted(*channels, "channel"),
        sums.join(" and "),
        self::place(Some(*configured), configured.token),
    );
    let action = format!(
        "set {back}, restart the node, run `farthing settle now` and `farthing channel close`, and change the chain \
         only after that"
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
    use farthing_ledger::PayerChannelFacts;
    use redb::backends::InMemoryBackend;

    use super::*;
    use crate::consumer::rest::{PlacedDeposit, RestingPlace};

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
        OnChannel { id, config, earned, deposited, coming: Usdc::ZERO }
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

    #[tokio::test]
    async fn a_deposit_under_way_when_the_settings_changed_is_told_until_the_books_show_it() {
        let former = Escrow { chain_id: 31_337, contract: OTHER, token: TOKEN };
        let escrows =
            Escrows::new(Escrow { contract: pay_channels_address(), ..former }, &BTreeSet::from([31_337]));
        let OnChannel { id, config, .. } = channel(former, 0, 0);
        let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
        let told = || {
            let found = MoneyElsewhere::read(&ledger, &escrows).unwrap();
            let sums = found.iter().map(|money| (money.channels, money.deposited, money.coming));
            (sums.collect::<Vec<_>>(), found.iter().map(alert).map(|alert| alert.cause).collect::<String>())
        };
        let place = |deposited, amount| PlacedDeposit {
            round: 0,
            deposited: Usdc::from_micros(deposited),
            amount: Usdc::from_micros(amount),
            rest_before: Usdc::ZERO,
            paid_before: Usdc::ZERO,
            begun_secs: 1,
            lapses_secs: 2,
            is_made: None,
        };
        let (at, placed) =
            (RestingPlace { owner: config.payee, channel: id }, PlacedDeposits::new(ledger.clone()));
        let sums =
            |deposited, coming| vec![(1_usize, Usdc::from_micros(deposited), Usdc::from_micros(coming))];
        // An opening that was under way: no row knows the channel.
        placed.put_of(at, config, || vec![place(0, 400_000)]).await.unwrap();
        let (found, cause) = told();
        assert_eq!(found, sums(0, 400_000));
        assert!(cause.contains("1 channel with 0.40 USDC that you were depositing"), "{cause}");
        // In the books, then with a top-up under way, then with both in the books, and emptied.
        let booked = async |deposited, round| {
            let (deposited, claimed) = (Usdc::from_micros(deposited), Usdc::ZERO);
            let facts =
                PayerChannelFacts { id, config, deposited, claimed, round: Some(round), stopped: false };
            ledger.put_payer_channel(facts).await.unwrap();
        };
        booked(400_000, 0).await;
        assert_eq!(told().0, sums(400_000, 0));
        placed.put(at, || vec![place(0, 400_000), place(400_000, 1_000_000)]).await.unwrap();
        let (found, cause) = told();
        assert_eq!(found, sums(400_000, 1_000_000));
        assert!(
            cause.contains("0.40 USDC that you deposited and 1.00 USDC that you were depositing"),
            "{cause}"
        );
        booked(1_400_000, 0).await;
        assert_eq!(told().0, sums(1_400_000, 0));
        booked(0, 1).await;
        assert!(told().0.is_empty());
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
