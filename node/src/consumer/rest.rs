//! Money at rest: what lies in this node's channels and is not paid out, per owner and in all, and its limits.
//!
//! A deposit takes its place before its transaction leaves, and keeps it for a day, over restarts, whatever becomes of it:
//! one endpoint tells what a channel holds, and may tell of a full one as emptied. A place is given up sooner where nothing
//! was signed, and where the owner closed the channel because this node asked for it. While the books show as much as was
//! put there, places add nothing to it. So deposits to several owners at once cannot pass a limit together, and who lies
//! about channels gains no more than the limit with each owner in a day.
//!
//! What was made, and came back by the chain's word alone, counts wholly with its owner and for a part in all: owners that
//! close each channel at once keep no other from being paid, and an endpoint that lies has no more than a multiple of the
//! limit put there.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use farthing_chain::AUTHORIZATION_SECS;
use farthing_os::clock;
use farthing_protocol::{Address, ChannelId, Usdc};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::{
    channels::{PayerChannel, PayerChannels},
    rest_sum::RestSum,
    spending::OverLimit,
};

mod stored_places;

pub use stored_places::{PlacedDeposit, PlacedDeposits, StoredPlaces};

/// The time for which a deposit counts that was made or failed: for as long an endpoint can bring its authorization.
pub const COUNTED_FOR: Duration = Duration::from_secs(AUTHORIZATION_SECS);

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
    placed: Mutex<PlacesByChannel>,
}

/// By channel and its owner, the deposits of the last day, and what the channel was said to hold when each was decided on.
/// The token takes one of all authorizations that add to the same deposit in the same round of the channel, and each of
/// those that add to others.
type PlacesByChannel = HashMap<RestingPlace, BTreeMap<ChannelSum, DepositPlace>>;

/// A channel that money lies in, or is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RestingPlace {
    pub owner: Address,
    pub channel: ChannelId,
}

/// The sum in a channel when a deposit was decided on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelSum {
    /// The number of times that the channel was emptied before.
    pub round: u32,
    pub deposited: Usdc,
}

/// The round of a deposit of a program of before, which is not known: nothing stands for it.
const ROUND_OF_BEFORE: u32 = u32::MAX;

/// The room that a deposit takes up.
#[derive(Clone, Copy, Debug)]
struct DepositPlace {
    amount: Usdc,
    /// The sum that the books showed in the channel when it was begun, and what was paid out of it by then.
    rest_before: Usdc,
    paid_before: Usdc,
    begun_secs: u64,
    /// The time until which it counts; `None` while it is being made.
    until: Option<Instant>,
    /// The amount and the end of the authorization that another attempt of the same deposit has left.
    left: Option<(Usdc, Instant)>,
    /// True if its transaction is on the chain, so that no authorization of it can be brought any more.
    is_made: bool,
}

impl DepositPlace {
    /// Tells whether it came back, if the books show the channel in this round.
    const fn is_back(&self, held: ChannelSum, round: u32) -> bool {
        self.is_made && self.until.is_some() && held.round < round
    }

    /// The time for which it counts yet: all of it while it is being made.
    fn time_left(&self) -> Duration {
        self.until.map_or(COUNTED_FOR, |until| until.saturating_duration_since(Instant::now()))
    }
}

impl AtRest {
    pub fn new(channels: Arc<PayerChannels>, limits: RestLimits) -> Self {
        Self { channels, limits, placed: Mutex::default() }
    }

    pub const fn limits(&self) -> RestLimits {
        self.limits
    }

    /// Returns what counts in all.
    pub fn total(&self) -> Usdc {
        self.in_all().total()
    }

    /// Sums up what counts with each owner.
    pub fn with_owners(&self) -> HashMap<Address, RestSum> {
        self.amounts(&self.lock())
    }

    /// Sums up what counts in all.
    pub fn in_all(&self) -> RestSum {
        in_all(&self.with_owners())
    }

    /// Lists the deposits that came back, of those that count.
    pub fn returned(&self) -> Vec<(RestingPlace, ChannelSum)> {
        let placed = self.lock();
        let back = placed.iter().flat_map(|(at, places)| {
            let round = self.channels.get(at.channel).map_or(0, |channel| channel.round);
            let back = places.iter().filter(move |(held, place)| place.is_back(**held, round));
            back.map(move |(held, _)| (*at, *held))
        });
        back.collect()
    }

    /// Takes a place for a deposit of at most `wanted` and at least `least` onto what a channel holds: as much of it as the
    /// limits leave room for.
    ///
    /// # Errors
    /// [`OverLimit`] when they leave no room for the least; nothing is taken then.
    pub fn take(
        &self,
        at: RestingPlace,
        held: ChannelSum,
        least: Usdc,
        wanted: Usdc,
    ) -> Result<Usdc, OverLimit> {
        let mut placed = self.lock();
        let places = placed.entry(at).or_default();
        let earlier = places.get(&held).copied();
        // It stands for its forerunner, which takes up no room beside it.
        let begun = earlier.unwrap_or_else(|| self.begin(at, held));
        places.insert(held, DepositPlace { amount: Usdc::ZERO, ..begun });
        let room = self.limits.room(&self.amounts(&placed), at.owner, least, wanted);
        let place = match (&room, earlier) {
            (Ok(amount), earlier) => {
                let left = earlier.and_then(|earlier| Some((earlier.amount, earlier.until?)));
                let amount = left.map_or(*amount, |(left, _)| left.max(*amount));
                Some(DepositPlace { amount, until: None, left, ..begun })
            }
            (Err(_), earlier) => earlier,
        };
        let places = placed.entry(at).or_default();
        match place {
            Some(place) => drop(places.insert(held, place)),
            None => drop(places.remove(&held)),
        }
        room
    }

    /// Ends a deposit that is back, or that the books of a chain show on which nobody lies.
    pub fn settle(&self, at: RestingPlace, held: ChannelSum) {
        if let Some(places) = self.lock().get_mut(&at) {
            places.remove(&held);
        }
    }

    /// Ends an attempt that signed nothing. What an attempt before it signed may still be made.
    pub fn give_up(&self, at: RestingPlace, held: ChannelSum) {
        let mut placed = self.lock();
        let Some(places) = placed.get_mut(&at) else { return };
        let place = places.remove(&held);
        if let Some((place, (amount, until))) = place.and_then(|place| Some((place, place.left?))) {
            places.insert(held, DepositPlace { amount, until: Some(until), left: None, ..place });
        }
    }

    /// Takes note that a deposit was made.
    pub fn made(&self, at: RestingPlace, held: ChannelSum) {
        if let Some(place) = self.lock().get_mut(&at).and_then(|places| places.get_mut(&held)) {
            place.is_made = true;
        }
    }

    /// Keeps the place of a deposit whose attempt is over: it was made, or an endpoint has seen the authorization, and may
    /// bring it.
    pub fn keep(&self, at: RestingPlace, held: ChannelSum, until: Instant) {
        if let Some(place) = self.lock().get_mut(&at).and_then(|places| places.get_mut(&held)) {
            (place.until, place.left) = (Some(until), None);
        }
    }

    /// Lists the deposits into a channel up to a round of it, but for one that is being made.
    pub fn up_to(&self, at: RestingPlace, round: u32) -> Vec<ChannelSum> {
        let placed = self.lock();
        let places = placed.get(&at).into_iter().flatten();
        let over = places.filter(|(held, place)| held.round <= round && place.until.is_some());
        over.map(|(held, _)| *held).collect()
    }

    /// The places of a channel in their stored form.
    pub fn placed(&self, at: RestingPlace, now_secs: u64) -> Vec<PlacedDeposit> {
        let placed = self.lock();
        let places = placed.get(&at).into_iter().flatten();
        let stored = places.map(|(held, place)| PlacedDeposit {
            round: held.round,
            deposited: held.deposited,
            amount: place.amount,
            rest_before: place.rest_before,
            paid_before: place.paid_before,
            begun_secs: place.begun_secs,
            lapses_secs: now_secs.saturating_add(place.time_left().as_secs()),
            is_made: Some(place.is_made),
        });
        stored.collect()
    }

    /// Takes the place of a deposit of before the start again, whatever the limits are. It counts no longer than any other,
    /// however far ahead the clock was then.
    pub fn restore(&self, at: RestingPlace, deposit: &PlacedDeposit, now_secs: u64) {
        let left = Duration::from_secs(deposit.lapses_secs.saturating_sub(now_secs)).min(COUNTED_FOR);
        let place = DepositPlace {
            amount: deposit.amount,
            rest_before: deposit.rest_before,
            paid_before: deposit.paid_before,
            begun_secs: deposit.begun_secs,
            until: Some(Instant::now() + left),
            left: None,
            is_made: deposit.is_made.unwrap_or_default(),
        };
        let held = ChannelSum { round: deposit.round, deposited: deposit.deposited };
        self.lock().entry(at).or_default().insert(held, place);
    }

    /// Keeps the place of a deposit whose transaction was under way at the last stop. The ledger knows it, unless a program of
    /// before made it.
    pub fn restore_under_way(&self, at: RestingPlace, deposited: Usdc, total: Usdc, until: Instant) {
        let amount = total.saturating_sub(deposited);
        let mut placed = self.lock();
        let places = placed.entry(at).or_default();
        let mut known = places.iter_mut();
        let known = known.find(|(held, place)| held.deposited == deposited && place.amount >= amount);
        if let Some((_, place)) = known {
            place.until = Some(until);
            return;
        }
        let held = ChannelSum { round: ROUND_OF_BEFORE, deposited };
        places.insert(held, DepositPlace { amount, until: Some(until), ..self.begin(at, held) });
    }

    fn begin(&self, at: RestingPlace, held: ChannelSum) -> DepositPlace {
        let channel = self.channels.get(at.channel);
        let [deposited, claimed, receipted] = channel
            .map_or([Usdc::ZERO; 3], |channel| [channel.state.deposited, channel.claimed, channel.receipted]);
        let rest_before = held.deposited.min(deposited).saturating_sub(claimed);
        DepositPlace {
            amount: Usdc::ZERO,
            rest_before,
            // What its owner has earned and does not lie there was paid before, also where the chain does not say so now.
            paid_before: claimed.max(receipted.saturating_sub(rest_before)),
            begun_secs: clock::now_secs(),
            until: None,
            left: None,
            is_made: false,
        }
    }

    /// By owner, what lies in its channels or will, and what came back.
    fn amounts(&self, placed: &PlacesByChannel) -> HashMap<Address, RestSum> {
        let mut amounts: HashMap<Address, RestSum> = HashMap::new();
        let mut add = |owner, part| {
            let sum = amounts.entry(owner).or_default();
            *sum = sum.plus(part);
        };
        let shown: HashMap<ChannelId, PayerChannel> =
            self.channels.all().into_iter().map(|channel| (channel.id, channel)).collect();
        for channel in shown.values() {
            add(channel.config.payee, RestSum { shown: rest(channel), ..RestSum::default() });
        }
        for (at, places) in placed {
            let counted = shown.get(&at.channel);
            let channel = counted.cloned().or_else(|| self.channels.get(at.channel));
            add(at.owner, beside(counted.map_or(Usdc::ZERO, rest), places, channel.as_ref()));
        }
        amounts
    }

    /// Without those that count no more.
    fn lock(&self) -> MutexGuard<'_, PlacesByChannel> {
        let mut placed = self.placed.lock();
        placed.retain(|_, places| {
            places.retain(|_, place| place.until.is_none_or(|until| Instant::now() < until));
            !places.is_empty()
        });
        placed
    }
}

impl RestLimits {
    /// Returns the part of `wanted` that there is room for.
    fn room(
        &self,
        amounts: &HashMap<Address, RestSum>,
        owner: Address,
        least: Usdc,
        wanted: Usdc,
    ) -> Result<Usdc, OverLimit> {
        let Self { per_owner, in_all: limit } = *self;
        let (with_owner, everywhere) = (amounts.get(&owner).copied().unwrap_or_default(), in_all(amounts));
        let of_owner = per_owner.saturating_sub(with_owner.total());
        if of_owner < least {
            return Err(OverLimit::RestOfOwner { owner, resting: with_owner, per_owner, deposit: least });
        }
        let left = limit.saturating_sub(everywhere.total());
        if left < least {
            return Err(OverLimit::Rest { resting: everywhere, in_all: limit, deposit: least });
        }
        Ok(wanted.min(of_owner).min(left))
    }
}

/// Computes what the books show in a channel.
fn rest(channel: &PayerChannel) -> Usdc {
    channel.state.deposited.saturating_sub(channel.claimed)
}

/// Computes what counts of a channel's deposits beside the rest of it that the books show. What came back is the part of them
/// beyond those that are made or lie there, and beyond the rest: nothing of these counts for less than its whole.
fn beside(
    rest: Usdc,
    places: &BTreeMap<ChannelSum, DepositPlace>,
    channel: Option<&PayerChannel>,
) -> RestSum {
    // The owner's receipts show what it earned, and the chain's word alone nothing.
    let paid = channel.map_or(Usdc::ZERO, |channel| channel.claimed.min(channel.receipted));
    let round = channel.map_or(0, |channel| channel.round);
    let all = put_there(places.iter(), paid);
    let stays = places.iter().filter(|(held, place)| !place.is_back(**held, round));
    let lies_there = put_there(stays, paid).max(rest);
    let (coming, returned) = (lies_there.saturating_sub(rest), all.saturating_sub(lies_there));
    let waits = !(coming.is_zero() && returned.is_zero());
    let longest = places.values().map(DepositPlace::time_left).max().filter(|_| waits);
    RestSum { shown: Usdc::ZERO, coming, returned, lapses_in: longest.unwrap_or_default() }
}

/// Computes the most that lies in a channel by what this node has put there, whatever the chain says of it: what was there
/// before the oldest deposit, and all since, without what was paid out since.
fn put_there<'a>(
    places: impl Iterator<Item = (&'a ChannelSum, &'a DepositPlace)> + Clone,
    paid: Usdc,
) -> Usdc {
    let oldest = places.clone().min_by_key(|(held, place)| (place.begun_secs, **held));
    let Some((_, oldest)) = oldest else { return Usdc::ZERO };
    let put = places.fold(oldest.rest_before, |sum, (_, place)| sum.saturating_add(place.amount));
    put.saturating_sub(paid.saturating_sub(oldest.paid_before))
}

fn in_all(amounts: &HashMap<Address, RestSum>) -> RestSum {
    amounts.values().fold(RestSum::default(), |sum, resting| sum.plus(resting.in_all()))
}

#[cfg(test)]
mod tests;
