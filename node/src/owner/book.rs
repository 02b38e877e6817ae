//! The channels this node is paid with, counted in memory under a short lock.
//!
//! [`Book::admit`] applies the channel rule and reserves the price; the [`Reserved`] it returns ends exactly
//! once: settled with the charge after the commit, or released on drop when the call was not served.
//!
//! Places are bounded. A channel that pays keeps its place; among the others the one that holds least makes room,
//! so that filling the book costs more than it takes from anyone.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use farthing_ledger::{Ending, PayeeChannelRow};
use farthing_protocol::{
    ChannelConfig, ChannelId, Domain, RefusalCode, Usdc, Verified, Voucher, channel::PayeeState,
};

/// Some 600 bytes each: 6 MB when full.
const CHANNELS_MAX: usize = 10_000;

/// One channel as the owner sees it.
#[derive(Clone, Debug)]
pub struct PayeeChannel {
    pub config: ChannelConfig,
    pub state: PayeeState,
    /// Proof of `state.best`.
    pub best_voucher: Option<Verified<Voucher>>,
    /// When the oldest unclaimed charge was made.
    pub unclaimed_since_secs: Option<u64>,
    /// The payer started the delay after which it may withdraw, which ends then.
    pub close_at_secs: Option<u64>,
    /// What this node has taken on towards the channel's end; nothing is served until that is done.
    pub ending: Ending,
}

impl PayeeChannel {
    /// How much it matters to keep a place for this channel; `None` when it must be kept.
    fn standing(&self) -> Option<Usdc> {
        let left = self.state.deposited.saturating_sub(self.state.claimed);
        let pays = !self.state.spent.is_zero() && !left.is_zero();
        let is_busy = !self.state.reserved.is_zero() || !self.state.unclaimed().is_zero();
        (!pays && !is_busy).then_some(left)
    }
}

/// The voucher that a stored channel rests on, as far as its signature proves it.
#[must_use]
pub fn proof(row: &PayeeChannelRow, domain: &Domain) -> Option<Verified<Voucher>> {
    let voucher = Voucher { channel: row.id, cumulative: row.best };
    voucher.verify(domain, row.best_signature?, row.config.signer).ok()
}

/// Whether a channel that is new to the book may enter it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    Free,
    /// In the place of this one, which holds less and never paid.
    Instead(ChannelId),
    Full,
}

/// The owner's channels.
#[derive(Debug, Clone)]
pub struct Book {
    channels: Arc<Mutex<HashMap<ChannelId, PayeeChannel>>>,
    channels_max: usize,
}

impl Default for Book {
    fn default() -> Self {
        Self { channels: Arc::default(), channels_max: CHANNELS_MAX }
    }
}

/// The price of an admitted call, set aside on its channel.
#[derive(Debug)]
pub struct Reserved {
    book: Book,
    channel: ChannelId,
    price: Usdc,
    best_voucher: Option<Verified<Voucher>>,
    settled: bool,
}

impl Book {
    /// Takes over a channel of the ledger, at start or after the chain confirmed a change. `close_at_secs`
    /// is the payer's pending close. `voucher` proves the stored best one, for a channel that is new to the book.
    pub fn apply(
        &self,
        row: &PayeeChannelRow,
        close_at_secs: Option<u64>,
        voucher: Option<Verified<Voucher>>,
    ) {
        let mut channels = self.lock();
        let channel = channels.entry(row.id).or_insert_with(|| PayeeChannel {
            config: row.config,
            state: row.state(),
            best_voucher: voucher,
            unclaimed_since_secs: (!row.state().unclaimed().is_zero()).then(crate::clock::now_secs),
            close_at_secs,
            ending: row.ending,
        });
        channel.state.deposited = row.deposited;
        channel.state.claimed = channel.state.claimed.max(row.claimed);
        channel.close_at_secs = close_at_secs;
        if row.deposited == row.claimed {
            channel.ending = Ending::None;
        }
        channel.state.closing = channel.close_at_secs.is_some() || channel.ending != Ending::None;
        if channel.state.unclaimed().is_zero() {
            channel.unclaimed_since_secs = None;
        }
    }

    /// Whether a channel that holds `left` finds a place.
    #[must_use]
    pub fn room_for(&self, id: ChannelId, left: Usdc) -> Room {
        let channels = self.lock();
        if channels.len() < self.channels_max || channels.contains_key(&id) {
            return Room::Free;
        }
        let standings = channels.iter().filter_map(|(id, channel)| Some((channel.standing()?, *id)));
        match standings.min() {
            Some((least, id)) if least < left => Room::Instead(id),
            _ => Room::Full,
        }
    }

    /// Takes a channel's place away, unless it has come to matter since. Returns whether it did.
    pub fn evict(&self, id: ChannelId) -> bool {
        let mut channels = self.lock();
        let matters = channels.get(&id).is_none_or(|channel| channel.standing().is_none());
        !matters && channels.remove(&id).is_some()
    }

    /// Stops serving on a channel whose end this node takes on. An empty one has nothing to close: it stays as
    /// it is, so that it serves again as soon as it is filled. Returns whether there is something to do.
    pub fn set_ending(&self, id: ChannelId, ending: Ending) -> bool {
        let mut channels = self.lock();
        let open = channels.get_mut(&id).filter(|channel| channel.state.deposited > channel.state.claimed);
        let Some(channel) = open else { return false };
        channel.ending = ending;
        channel.state.closing = channel.close_at_secs.is_some() || ending != Ending::None;
        true
    }

    /// Channels that this node closes and has not closed yet.
    #[must_use]
    pub fn closing(&self) -> Vec<ChannelId> {
        let channels = self.lock();
        channels.iter().filter(|(_, channel)| channel.ending == Ending::Closes).map(|(id, _)| *id).collect()
    }

    /// The terms of a channel, its deposit, and the best voucher so far: what a call and its signature are checked
    /// against.
    #[must_use]
    pub fn terms(&self, id: ChannelId) -> Option<(ChannelConfig, Usdc, Usdc)> {
        let channels = self.lock();
        channels.get(&id).map(|channel| (channel.config, channel.state.deposited, channel.state.best))
    }

    /// Reserves `price`, taking a verified voucher into account.
    ///
    /// # Errors
    /// The rule that is broken; nothing is reserved then.
    pub fn admit(
        &self,
        id: ChannelId,
        voucher: Option<&Verified<Voucher>>,
        price: Usdc,
    ) -> Result<Reserved, RefusalCode> {
        let mut channels = self.lock();
        let channel = channels.get_mut(&id).ok_or(RefusalCode::UnknownChannel)?;
        let best_before = channel.state.best;
        channel.state.admit(voucher.map(|v| v.cumulative), price)?;
        if let Some(voucher) = voucher.filter(|v| v.cumulative > best_before) {
            channel.best_voucher = Some(voucher.clone());
        }
        Ok(Reserved {
            book: self.clone(),
            channel: id,
            price,
            best_voucher: channel.best_voucher.clone(),
            settled: false,
        })
    }

    #[must_use]
    pub fn get(&self, id: ChannelId) -> Option<PayeeChannel> {
        self.lock().get(&id).cloned()
    }

    #[must_use]
    pub fn all(&self) -> Vec<(ChannelId, PayeeChannel)> {
        self.lock().iter().map(|(id, channel)| (*id, channel.clone())).collect()
    }

    fn settle(&self, id: ChannelId, price: Usdc, charge: Usdc) {
        if let Some(channel) = self.lock().get_mut(&id) {
            channel.state.settle(price, charge);
            if !charge.is_zero() {
                channel.unclaimed_since_secs.get_or_insert_with(crate::clock::now_secs);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ChannelId, PayeeChannel>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reserved {
    /// Ends the reservation with what was charged; called after the commit that records it.
    pub fn settle(mut self, charge: Usdc) {
        self.settled = true;
        self.book.settle(self.channel, self.price, charge);
    }

    /// The voucher that covers this call and everything admitted before it: what its commit stores. The
    /// call's own voucher may be lower when a later one arrived first.
    #[must_use]
    pub const fn voucher(&self) -> Option<&Verified<Voucher>> {
        self.best_voucher.as_ref()
    }

    #[must_use]
    pub const fn channel(&self) -> ChannelId {
        self.channel
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if !self.settled {
            self.book.settle(self.channel, self.price, Usdc::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::Address;

    use super::*;

    const ID: ChannelId = ChannelId::from_bytes([1; 32]);

    fn row(deposited: u64, claimed: u64) -> PayeeChannelRow {
        let payer = Address::from_bytes([1; 20]);
        PayeeChannelRow {
            id: ID,
            config: ChannelConfig {
                payer,
                payee: Address::from_bytes([2; 20]),
                token: Address::ZERO,
                signer: payer,
                close_delay_secs: 86_400,
                salt: [0; 32],
            },
            deposited: Usdc::from_micros(deposited),
            claimed: Usdc::from_micros(claimed),
            closing: false,
            best: Usdc::from_micros(claimed),
            best_signature: None,
            spent: Usdc::from_micros(claimed),
            ending: Ending::None,
            lost: Usdc::ZERO,
        }
    }

    #[test]
    fn a_close_of_an_empty_channel_does_not_stop_it_from_serving_when_it_is_filled() {
        let book = Book::default();
        book.apply(&row(10, 10), None, None);
        assert!(!book.set_ending(ID, Ending::Closes), "there is nothing to close");
        book.apply(&row(20, 10), None, None);
        assert!(!book.get(ID).unwrap().state.closing);
        assert!(book.set_ending(ID, Ending::Closes));
        book.apply(&row(20, 10), None, None);
        assert!(
            book.get(ID).unwrap().state.closing,
            "the chain's view does not end a close that is asked for"
        );
        book.apply(&row(10, 10), None, None);
        assert!(!book.get(ID).unwrap().state.closing, "done");
    }

    #[test]
    fn dust_makes_room_for_what_holds_more_and_never_for_less() {
        let book = Book { channels_max: 3, ..Book::default() };
        let id = |n: u8| ChannelId::from_bytes([n; 32]);
        let of = |n: u8, deposited, claimed| PayeeChannelRow { id: id(n), ..row(deposited, claimed) };
        for (n, deposited) in [(1, 10), (2, 11), (3, 12)] {
            assert_eq!(book.room_for(id(n), Usdc::from_micros(deposited)), Room::Free);
            book.apply(&of(n, deposited, 0), None, None);
        }
        let room = |left| book.room_for(id(9), Usdc::from_micros(left));
        assert_eq!((room(9), room(10), room(11)), (Room::Full, Room::Full, Room::Instead(id(1))));
        // A channel that pays stays, however little is left; one that is empty goes first.
        book.apply(&PayeeChannelRow { spent: Usdc::from_micros(1), ..of(1, 10, 0) }, None, None);
        let paid = of(1, 10, 9);
        book.evict(id(1));
        book.apply(&paid, None, None);
        assert_eq!(room(100), Room::Instead(id(2)));
        book.apply(&of(3, 12, 12), None, None);
        assert_eq!(room(1), Room::Instead(id(3)));
        book.evict(id(3));
        assert_eq!(room(1), Room::Free);
    }

    #[test]
    fn a_channel_with_a_call_in_progress_keeps_its_place() {
        let book = Book { channels_max: 1, ..Book::default() };
        book.apply(&PayeeChannelRow { best: Usdc::from_micros(5), ..row(10, 0) }, None, None);
        let reserved = book.admit(ID, None, Usdc::from_micros(5)).unwrap();
        let other = ChannelId::from_bytes([9; 32]);
        assert_eq!(book.room_for(other, Usdc::from_micros(100)), Room::Full);
        assert!(!book.evict(ID));
        assert!(book.get(ID).is_some());
        drop(reserved);
        assert_eq!(book.room_for(other, Usdc::from_micros(100)), Room::Instead(ID));
    }
}
