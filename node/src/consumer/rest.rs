//! Money at rest: what lies in this node's channels and is not paid out, per owner and in all, and its limits.
//!
//! A deposit takes its place before its transaction leaves, and keeps it until the books show the deposit: between
//! the two it counts as the total that the channel is to hold. So deposits to several owners at once cannot pass a
//! limit together, and one whose fate is not known stays counted, over restarts where the chain's journal has it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use farthing_protocol::{Address, ChannelId, Usdc};
use parking_lot::{Mutex, MutexGuard};

use super::{
    channels::{PayerChannel, PayerChannels},
    spending::OverLimit,
};

/// The most that may lie in channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestLimits {
    pub per_owner: Usdc,
    pub in_all: Usdc,
}

/// The money at rest of one node.
#[derive(Debug)]
pub struct AtRest {
    channels: Arc<PayerChannels>,
    limits: RestLimits,
    under_way: Mutex<UnderWay>,
}

/// By channel and its owner, the deposits that the books do not show, and what the channel held when each was decided on.
/// The token takes one of all authorizations that add to the same deposit in the same round of the channel, and each of
/// those that add to others.
type UnderWay = HashMap<RestingPlace, BTreeMap<Held, DepositPlace>>;

/// A channel that money lies in, or is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RestingPlace {
    pub owner: Address,
    pub channel: ChannelId,
}

/// The sum in a channel when a deposit was decided on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Held {
    /// The number of times that the channel was emptied before.
    pub round: u32,
    pub deposited: Usdc,
}

/// The round of a deposit of before the start, which is not known: nothing stands for it.
const ROUND_OF_BEFORE: u32 = u32::MAX;

/// The room that a deposit takes up.
#[derive(Clone, Copy, Debug)]
struct DepositPlace {
    /// The total that the channel holds once it is confirmed.
    total: Usdc,
    /// The time of the last try, as far as it is known.
    tried: Instant,
    /// The time until which it may still happen, when its end is not known.
    until: Option<Instant>,
    /// The total and the end of the authorization that another attempt of the same deposit has left.
    left: Option<(Usdc, Instant)>,
    /// True if it is of another round than the newest: it can be made beside whatever the channel holds now.
    is_past: bool,
}

impl AtRest {
    pub fn new(channels: Arc<PayerChannels>, limits: RestLimits) -> Self {
        Self { channels, limits, under_way: Mutex::default() }
    }

    pub const fn limits(&self) -> RestLimits {
        self.limits
    }

    /// Deposited and not paid out, in all, with deposits under way.
    pub fn total(&self) -> Usdc {
        total(&amounts(&self.channels.all(), &self.lock()))
    }

    /// Takes a place for a deposit of at most `wanted` and at least `least` onto what a channel holds: as much of it as the
    /// limits leave room for.
    ///
    /// # Errors
    /// [`OverLimit`] when they leave no room for the least; nothing is taken then.
    pub fn take(&self, at: RestingPlace, held: Held, least: Usdc, wanted: Usdc) -> Result<Usdc, OverLimit> {
        let mut under_way = self.lock();
        let places = under_way.entry(at).or_default();
        for (before, place) in places.iter_mut().filter(|(before, _)| before.round != ROUND_OF_BEFORE) {
            place.is_past = before.round != held.round;
        }
        // It stands for its forerunner.
        let earlier = places.remove(&held);
        let room = self.limits.room(&amounts(&self.channels.all(), &under_way), at.owner, least, wanted);
        let place = match (&room, earlier) {
            (Ok(amount), earlier) => {
                let total = held.deposited.saturating_add(*amount);
                let left = earlier.and_then(|earlier| earlier.until.map(|until| (earlier.total, until)));
                let total = left.map_or(total, |(left, _)| left.max(total));
                Some(DepositPlace { total, tried: Instant::now(), until: None, left, is_past: false })
            }
            (Err(_), earlier) => earlier,
        };
        if let Some(place) = place {
            under_way.entry(at).or_default().insert(held, place);
        }
        room
    }

    /// Ends a deposit that was made.
    pub fn settle(&self, at: RestingPlace, held: Held) {
        if let Some(places) = self.lock().get_mut(&at) {
            places.remove(&held);
        }
    }

    /// Ends an attempt that signed nothing. What an attempt before it signed may still be made.
    pub fn give_up(&self, at: RestingPlace, held: Held) {
        let mut under_way = self.lock();
        let Some(places) = under_way.get_mut(&at) else { return };
        let place = places.remove(&held);
        if let Some((place, (total, until))) = place.and_then(|place| Some((place, place.left?))) {
            places.insert(held, DepositPlace { total, until: Some(until), left: None, ..place });
        }
    }

    /// Keeps the place of a deposit that was made or failed, and may happen all the same: an endpoint has seen the
    /// authorization, and may bring it until it lapses.
    pub fn doubt(&self, at: RestingPlace, held: Held, lapses: Instant) {
        if let Some(place) = self.lock().get_mut(&at).and_then(|places| places.get_mut(&held)) {
            (place.tried, place.until, place.left) = (Instant::now(), Some(lapses), None);
        }
    }

    /// Returns the time since a deposit was tried last; `None` when it has ended.
    pub fn untried_for(&self, at: RestingPlace, held: Held) -> Option<Duration> {
        Some(self.lock().get(&at)?.get(&held)?.tried.elapsed())
    }

    /// Takes the place of a deposit that was under way at the last stop, whatever the limits are.
    pub fn restore(&self, at: RestingPlace, deposited: Usdc, total: Usdc, lapses: Instant) {
        let place =
            DepositPlace { total, tried: Instant::now(), until: Some(lapses), left: None, is_past: false };
        let held = Held { round: ROUND_OF_BEFORE, deposited };
        self.lock().entry(at).or_default().insert(held, place);
    }

    /// Without those that cannot happen any more. One that the books show adds nothing to them: an endpoint may show for a
    /// moment what was never made.
    fn lock(&self) -> MutexGuard<'_, UnderWay> {
        let mut under_way = self.under_way.lock();
        under_way.retain(|_, places| {
            places.retain(|_, place| place.until.is_none_or(|lapses| Instant::now() < lapses));
            !places.is_empty()
        });
        under_way
    }
}

impl RestLimits {
    /// Returns the part of `wanted` that there is room for.
    fn room(
        &self,
        amounts: &HashMap<Address, Usdc>,
        owner: Address,
        least: Usdc,
        wanted: Usdc,
    ) -> Result<Usdc, OverLimit> {
        let Self { per_owner, in_all } = *self;
        let (with_owner, everywhere) = (amounts.get(&owner).copied().unwrap_or_default(), total(amounts));
        let of_owner = per_owner.saturating_sub(with_owner);
        if of_owner < least {
            return Err(OverLimit::RestOfOwner { owner, at_rest: with_owner, per_owner, deposit: least });
        }
        let left = in_all.saturating_sub(everywhere);
        if left < least {
            return Err(OverLimit::Rest { at_rest: everywhere, in_all, deposit: least });
        }
        Ok(wanted.min(of_owner).min(left))
    }
}

/// By owner, what lies in its channels or will, and is not paid out.
fn amounts(channels: &[PayerChannel], under_way: &UnderWay) -> HashMap<Address, Usdc> {
    let mut amounts = HashMap::new();
    let mut held = HashMap::new();
    for channel in channels {
        let deposited = channel.state.deposited;
        held.insert(channel.id, deposited);
        let amount: &mut Usdc = amounts.entry(channel.config.payee).or_default();
        *amount = amount.saturating_add(deposited.saturating_sub(channel.claimed));
    }
    for (at, places) in under_way {
        let held = held.get(&at.channel).copied().unwrap_or_default();
        let coming = places.iter().map(|(before, place)| {
            let held = if place.is_past { Usdc::ZERO } else { held };
            place.total.saturating_sub(held.max(before.deposited))
        });
        let coming = coming.fold(Usdc::ZERO, Usdc::saturating_add);
        let amount = amounts.entry(at.owner).or_default();
        *amount = amount.saturating_add(coming);
    }
    amounts
}

fn total(amounts: &HashMap<Address, Usdc>) -> Usdc {
    amounts.values().fold(Usdc::ZERO, |sum, amount| sum.saturating_add(*amount))
}

#[cfg(test)]
mod tests {
    use farthing_ledger::PayerChannelRow;
    use farthing_protocol::ChannelConfig;

    use super::*;

    const fn usdc(micros: u64) -> Usdc {
        Usdc::from_micros(micros)
    }

    const fn owner(n: u8) -> Address {
        Address::from_bytes([n; 20])
    }

    const fn at(n: u8) -> RestingPlace {
        RestingPlace { owner: owner(n), channel: ChannelId::from_bytes([n; 32]) }
    }

    const fn held(deposited: u64) -> Held {
        Held { round: 0, deposited: usdc(deposited) }
    }

    const LIMITS: RestLimits = RestLimits { per_owner: usdc(50), in_all: usdc(100) };

    fn holding(channels: &PayerChannels, n: u8, deposited: u64, claimed: u64) {
        let config = ChannelConfig {
            payer: Address::ZERO,
            payee: owner(n),
            token: Address::ZERO,
            signer: Address::ZERO,
            close_delay_secs: 86_400,
            salt: [0; 32],
        };
        let row = PayerChannelRow {
            id: ChannelId::from_bytes([n; 32]),
            config,
            deposited: usdc(deposited),
            claimed: usdc(claimed),
            stopped: false,
            acknowledged: usdc(claimed),
            receipted: Usdc::ZERO,
            signed: usdc(claimed),
            in_flight: usdc(0),
            used_secs: None,
            is_promised_on: true,
            may_lack_calls: true,
        };
        channels.apply(&row, None);
    }

    #[test]
    fn a_deposit_fits_into_what_is_left_with_its_owner_and_in_all_or_is_refused() {
        let channels = Arc::new(PayerChannels::default());
        holding(&channels, 1, 60, 20);
        let rest = AtRest::new(channels, LIMITS);
        assert_eq!(rest.take(at(1), held(60), usdc(10), usdc(30)), Ok(usdc(10)), "40 lie there, 50 may");
        rest.give_up(at(1), held(60));
        let refused = rest.take(at(1), held(60), usdc(11), usdc(30)).unwrap_err();
        assert!(matches!(refused, OverLimit::RestOfOwner { .. }), "{refused}");
        assert_eq!(rest.take(at(2), held(0), usdc(50), usdc(50)), Ok(usdc(50)));
        let refused = rest.take(at(3), held(0), usdc(11), usdc(50)).unwrap_err();
        assert!(matches!(refused, OverLimit::Rest { .. }), "{refused}");
        assert_eq!(rest.take(at(3), held(0), usdc(10), usdc(50)), Ok(usdc(10)));
        assert_eq!(rest.total(), usdc(100));
    }

    #[test]
    fn a_deposit_counts_once_while_its_confirmation_reaches_the_books() {
        let channels = Arc::new(PayerChannels::default());
        let rest = AtRest::new(channels.clone(), LIMITS);
        rest.take(at(1), held(0), usdc(40), usdc(40)).unwrap();
        assert_eq!(rest.total(), usdc(40), "under way");
        holding(&channels, 1, 40, 0);
        assert_eq!(rest.total(), usdc(40), "in the books and under way");
        rest.give_up(at(1), held(0));
        assert_eq!(rest.total(), usdc(40), "in the books");
        holding(&channels, 1, 40, 30);
        assert_eq!(rest.total(), usdc(10), "what is paid out does not lie there");
    }

    #[test]
    fn a_deposit_that_failed_counts_as_long_as_its_authorization_can_be_used_and_is_not_booked() {
        let channels = Arc::new(PayerChannels::default());
        let rest = AtRest::new(channels.clone(), LIMITS);
        let later = Instant::now() + Duration::from_secs(3_600);
        for n in 1..=2 {
            rest.take(at(n), held(0), usdc(40), usdc(40)).unwrap();
            rest.doubt(at(n), held(0), later);
        }
        assert!(rest.take(at(3), held(0), usdc(30), usdc(30)).is_err(), "both may still be made");
        assert_eq!(rest.take(at(1), held(0), usdc(50), usdc(50)), Ok(usdc(50)), "in place of the first");
        rest.doubt(at(1), held(0), Instant::now());
        assert_eq!(rest.total(), usdc(40), "it cannot be made any more");
        for deposited in [40, 1_000_000] {
            holding(&channels, 2, deposited, 0);
            assert_eq!(rest.total(), usdc(deposited), "in the books");
            holding(&channels, 2, 0, 0);
            assert_eq!(rest.total(), usdc(40), "an endpoint may have shown it for a moment");
        }
        rest.doubt(at(2), held(0), Instant::now());
        assert_eq!(rest.total(), usdc(0), "it cannot be made any more");
        // Closed since, so that the channel is filled under another authorization: the earlier one is still good.
        rest.take(at(5), held(10), usdc(20), usdc(20)).unwrap();
        rest.doubt(at(5), held(10), later);
        rest.take(at(5), held(0), usdc(15), usdc(15)).unwrap();
        assert_eq!(rest.total(), usdc(35));
        rest.give_up(at(5), held(0));
        assert_eq!(rest.total(), usdc(20));
        // One that is refused, or smaller, takes nothing of the place of the one before, which may still be made.
        assert!(rest.take(at(5), held(10), usdc(60), usdc(60)).is_err());
        assert_eq!(rest.total(), usdc(20));
        assert_eq!(rest.take(at(5), held(10), usdc(5), usdc(5)), Ok(usdc(5)));
        assert_eq!(rest.total(), usdc(20));
        // One that signs nothing leaves the place of the one before.
        rest.doubt(at(5), held(10), later);
        assert_eq!(rest.take(at(5), held(10), usdc(35), usdc(35)), Ok(usdc(35)));
        assert_eq!(rest.total(), usdc(35));
        rest.give_up(at(5), held(10));
        assert_eq!(rest.total(), usdc(20));
        rest.give_up(at(5), held(10));
        assert_eq!(rest.take(at(5), held(10), usdc(35), usdc(35)), Ok(usdc(35)));
        rest.give_up(at(5), held(10));
        assert_eq!(rest.total(), usdc(0));
        rest.restore(at(4), usdc(0), usdc(70), later);
        assert_eq!(rest.total(), usdc(70), "of before the start");
    }

    #[test]
    fn a_deposit_of_an_earlier_round_counts_beside_those_of_later_ones_as_long_as_it_can_be_made() {
        let channels = Arc::new(PayerChannels::default());
        let rest = AtRest::new(channels.clone(), LIMITS);
        let later = Instant::now() + Duration::from_secs(3_600);
        for round in 0..2 {
            let held = Held { round, deposited: usdc(0) };
            assert_eq!(rest.take(at(1), held, usdc(20), usdc(20)), Ok(usdc(20)));
            rest.doubt(at(1), held, later);
        }
        assert_eq!(rest.total(), usdc(40), "each has an authorization of its own");
        let third = Held { round: 2, deposited: usdc(0) };
        assert!(rest.take(at(1), third, usdc(20), usdc(20)).is_err());
        holding(&channels, 1, 20, 0);
        rest.give_up(at(1), Held { round: 1, deposited: usdc(0) });
        assert_eq!(rest.total(), usdc(40), "one is in the books, and the other may still be made");
        rest.doubt(at(1), held(0), Instant::now());
        assert_eq!(rest.total(), usdc(20));
        // Of a round that an endpoint invented.
        let invented = Held { round: 9, deposited: usdc(0) };
        assert_eq!(rest.take(at(2), invented, usdc(20), usdc(20)), Ok(usdc(20)));
        rest.doubt(at(2), invented, later);
        assert_eq!(rest.take(at(2), held(0), usdc(20), usdc(20)), Ok(usdc(20)));
        holding(&channels, 2, 20, 0);
        rest.give_up(at(2), held(0));
        assert_eq!(
            rest.total(),
            usdc(60),
            "20 with the first, 20 with the second, and 20 that may still be made"
        );
    }

    #[test]
    fn deposits_to_many_owners_at_once_never_pass_the_limit_together() {
        let rest = Arc::new(AtRest::new(Arc::default(), LIMITS));
        let takers = (1..=16_u8).map(|n| {
            let rest = rest.clone();
            std::thread::spawn(move || rest.take(at(n), held(0), usdc(9), usdc(9)).is_ok())
        });
        let takers: Vec<_> = takers.collect();
        let taken = takers.into_iter().map(|taker| taker.join().unwrap());
        assert_eq!(taken.filter(|taken| *taken).count(), 11, "eleven times 9 fit into 100");
        assert_eq!(rest.total(), usdc(99));
    }
}
