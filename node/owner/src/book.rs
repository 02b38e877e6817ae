//! The channels this node is paid with, counted in memory under a short lock.
//!
//! [`Book::admit`] applies the channel rule and reserves the price; the [`Reserved`] it returns ends exactly
//! once: settled with the charge after the commit, or released on drop when the call was not served.
//!
//! A channel enters from the ledger and follows it from then on ([`PayeeChannel::follow`]): calls count themselves when
//! their commits are done, everything else that the ledger counts comes with its row, once. Nothing is served on a
//! channel before the chain's first view of it since the start: until then the ledger may lack what was paid out.
//!
//! Places are bounded. A channel that pays keeps its place; among the others the one that holds least makes room,
//! so that filling the book costs more than it takes from anyone.

use std::{collections::HashMap, sync::Arc, time::Duration};

use farthing_ledger::{Ending, PayeeChannelRow};
use farthing_protocol::{
    Address, ChannelConfig, ChannelId, Domain, RefusalCode, Usdc, Verified, Voucher, channel::PayeeState,
};
use farthing_shared::gas::GasMeans;
use parking_lot::Mutex;

pub use channel::{PayeeChannel, SignedAway, View};
pub use claims::Claims;

mod channel;
mod claims;

/// Some 600 bytes each: 6 MB when full.
const CHANNELS_MAX: usize = 10_000;

/// The voucher that a stored channel rests on, as far as its signature proves it.
pub fn proof(row: &PayeeChannelRow, domain: &Domain) -> Option<Verified<Voucher>> {
    let voucher = Voucher { channel: row.id, cumulative: row.best };
    voucher.verify(domain, row.best_signature?, row.config.signer).ok()
}

/// Room in the book for a channel that is new to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    Free,
    /// In the place of this one, which holds less and never paid.
    Instead(ChannelId),
    Full,
}

#[derive(Debug, Default)]
struct PayeeBooks {
    channels: HashMap<ChannelId, PayeeChannel>,
    claims: Claims,
}

impl PayeeBooks {
    fn here(&self) -> impl Iterator<Item = (&ChannelId, &PayeeChannel)> {
        self.channels.iter().filter(|(_, channel)| !channel.is_elsewhere)
    }
}

/// The owner's channels.
#[derive(Debug, Clone)]
pub struct Book {
    books: Arc<Mutex<PayeeBooks>>,
    channels_max: usize,
    /// See [`Terms`](super::terms::Terms).
    unsafe_max: Usdc,
    without_gas_max: Usdc,
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
    /// No channels, and places for so many: so few that a test fills them.
    pub fn with_places(channels_max: usize) -> Self {
        Self { channels_max, ..Self::new(Usdc::ZERO, Usdc::ZERO) }
    }

    /// No channels; the bounds are those of [`Terms`](super::terms::Terms).
    pub fn new(unsafe_max: Usdc, without_gas_max: Usdc) -> Self {
        Self { books: Arc::default(), channels_max: CHANNELS_MAX, unsafe_max, without_gas_max }
    }

    /// Takes over a channel of the ledger at the start. `proof` is of its best voucher.
    pub fn restore(&self, row: &PayeeChannelRow, proof: Option<Verified<Voucher>>, is_elsewhere: bool) {
        let mut channel = PayeeChannel::new(row, proof);
        channel.is_elsewhere = is_elsewhere;
        self.books.lock().channels.insert(row.id, channel);
    }

    /// Takes over a channel of the ledger after that has stored what the chain says of it. `proof` is of the stored
    /// best voucher.
    pub fn apply(&self, row: &PayeeChannelRow, proof: Option<Verified<Voucher>>, view: View) {
        let mut books = self.books.lock();
        let PayeeBooks { channels, claims } = &mut *books;
        let channel = channels.entry(row.id).or_insert_with(|| PayeeChannel::new(row, proof.clone()));
        let claimed_before = channel.state.claimed;
        channel.follow(row, proof, view);
        claims.see(row.id, channel.state.claimed > claimed_before, channel.state.unclaimed().is_zero());
    }

    /// Serves nothing on a channel until a view of it is taken over again: the ledger may lack what was paid out.
    pub fn unsee(&self, id: ChannelId) {
        if let Some(channel) = self.books.lock().channels.get_mut(&id) {
            channel.view = None;
        }
    }

    /// Takes over which channels of a claim were paid, and which the contract refused, and why.
    pub fn note_claims(&self, paid: &[ChannelId], refused: Vec<(ChannelId, String)>) {
        self.books.lock().claims.note(paid, refused);
    }

    /// Returns the outcome of the last claims.
    pub fn claims(&self) -> Claims {
        self.books.lock().claims.clone()
    }

    /// Tells whether a channel that holds `left` finds a place.
    pub fn room_for(&self, id: ChannelId, left: Usdc) -> Room {
        let channels = &self.books.lock().channels;
        if channels.len() < self.channels_max || channels.contains_key(&id) {
            return Room::Free;
        }
        match weakest(channels) {
            Some((least, id)) if least < left => Room::Instead(id),
            _ => Room::Full,
        }
    }

    /// Below this, no channel finds a place now.
    pub fn least_with_room(&self) -> Usdc {
        let channels = &self.books.lock().channels;
        if channels.len() < self.channels_max {
            return Usdc::ZERO;
        }
        weakest(channels).map_or(Usdc::MAX, |(least, _)| least.saturating_add(Usdc::from_micros(1)))
    }

    /// Takes a channel's place away, unless it has come to matter since. Returns whether it did.
    pub fn evict(&self, id: ChannelId) -> bool {
        let channels = &mut self.books.lock().channels;
        let matters = channels.get(&id).is_none_or(|channel| channel.standing().is_none());
        !matters && channels.remove(&id).is_some()
    }

    /// Stops serving on a channel whose end this node takes on. An empty one has nothing to close: it stays as
    /// it is, so that it serves again as soon as it is filled. Returns whether there is something to do.
    pub fn set_ending(&self, id: ChannelId, ending: Ending) -> bool {
        self.end(id, ending, |_| true)
    }

    /// Takes on to close a channel for its payer. `false` where that is taken on already, or there is nothing to close. A close
    /// that was signed stays signed: its payer may bring it still.
    pub fn begin_close(&self, id: ChannelId) -> bool {
        let signed = self.books.lock().channels.get_mut(&id).and_then(PayeeChannel::take_up_signed);
        signed.unwrap_or_else(|| {
            self.end(id, Ending::Closes { round: None }, |channel| !channel.is_to_be_closed())
        })
    }

    fn end(&self, id: ChannelId, ending: Ending, is_new: impl FnOnce(&PayeeChannel) -> bool) -> bool {
        let channels = &mut self.books.lock().channels;
        let is_open = |state: &PayeeState| ending == Ending::None || state.deposited > state.claimed;
        let open = channels.get_mut(&id).filter(|channel| is_open(&channel.state) && is_new(channel));
        let Some(channel) = open else { return false };
        channel.set_ending(ending);
        true
    }

    /// Stops serving on a channel whose close this node signs away. `false` while a call runs on it, and then nothing
    /// is changed.
    pub fn sign_away(&self, id: ChannelId, until_secs: u64, round: u32) -> bool {
        let channels = &mut self.books.lock().channels;
        let is_idle = |channel: &&mut PayeeChannel| channel.state.reserved.is_zero() && !channel.is_looked_at;
        let idle = channels.get_mut(&id).filter(is_idle);
        let Some(channel) = idle else { return false };
        channel.set_ending(Ending::SignedAway { until_secs, round });
        true
    }

    /// The closes that this node has signed, of channels that are not elsewhere.
    pub fn signed_away(&self) -> Vec<SignedAway> {
        self.books.lock().here().filter_map(|(id, channel)| channel.signed_close(*id)).collect()
    }

    /// Channels, none of them elsewhere, that this node closes and has not closed yet.
    pub fn closing(&self) -> Vec<ChannelId> {
        self.books.lock().here().filter(|(_, channel)| channel.is_to_be_closed()).map(|(id, _)| *id).collect()
    }

    /// Channels that this node has closed as it took on, and for how long every reading of the chain has shown that.
    pub fn closed(&self) -> Vec<(ChannelId, Duration)> {
        self.books.lock().here().filter_map(|(id, channel)| Some((*id, channel.closed_for()?))).collect()
    }

    /// The terms of a channel, its deposit, and the best voucher so far: what a call and its signature are checked
    /// against.
    pub fn terms(&self, id: ChannelId) -> Option<(ChannelConfig, Usdc, Usdc)> {
        let channels = &self.books.lock().channels;
        channels.get(&id).map(|channel| (channel.config, channel.state.deposited, channel.state.best))
    }

    /// Reserves `price`, taking a verified voucher into account. Of what the `means` do not bring to the chain, or the
    /// contract refuses, no more than a bound over all channels is served.
    ///
    /// # Errors
    /// The rule that is broken; nothing is reserved then. A channel that the chain was not read of since the start
    /// counts as unknown.
    pub fn admit(
        &self,
        id: ChannelId,
        voucher: Option<&Verified<Voucher>>,
        price: Usdc,
        means: GasMeans,
    ) -> Result<Reserved, RefusalCode> {
        let books = &mut *self.books.lock();
        let channels = &mut books.channels;
        let channel = channels.get(&id).filter(|channel| channel.view.is_some());
        let channel = channel.ok_or(RefusalCode::UnknownChannel)?;
        if channel.is_quiet() {
            return Err(RefusalCode::Busy);
        }
        let (mut state, best_before) = (channel.state, channel.state.best);
        state.admit(voucher.map(|v| v.cumulative), price)?;
        let at_risk = channel.at_risk(price);
        // Most channels are safe, so the payer's others are seldom looked for.
        if !at_risk.is_zero() && at_risk.saturating_add(at_risk_beside(channels, id)) > self.unsafe_max {
            return Err(RefusalCode::DepositNotSafe);
        }
        let left_behind = |price| books.claims.left_behind(channels, means, (id, price));
        if left_behind(price) > self.without_gas_max && left_behind(price) > left_behind(Usdc::ZERO) {
            return Err(RefusalCode::OwnerCannotClaim);
        }
        let channel = channels.get_mut(&id).ok_or(RefusalCode::UnknownChannel)?;
        channel.state = state;
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

    /// Tells whether these means bring to the chain what is served, but for the bound of what may be left behind.
    pub fn is_claimed_by(&self, means: GasMeans) -> bool {
        let books = self.books.lock();
        means.left_behind(books.here().map(|(_, channel)| channel.due())) <= self.without_gas_max
    }

    /// Tells whether this node counts less on a channel, with calls in progress, than its receipt that the payer names.
    pub fn is_behind(&self, id: ChannelId, receipted: Usdc) -> bool {
        let channels = &self.books.lock().channels;
        let counted = |state: &PayeeState| state.spent.saturating_add(state.reserved);
        channels.get(&id).is_some_and(|channel| counted(&channel.state) < receipted)
    }

    /// Keeps calls off a channel while what is shown of it is looked at. `None` while one runs, and beyond so many looks in
    /// a minute.
    pub fn look(&self, id: ChannelId) -> Option<AdmissionPause> {
        let began = self.books.lock().channels.get_mut(&id).is_some_and(PayeeChannel::begin_look);
        began.then(|| AdmissionPause { book: self.clone(), channel: id })
    }

    /// Keeps calls off a channel while a total of the chain's is taken over. `None` while one runs: it was let in by the
    /// total as it is. None begins then for a while, so that whoever comes again soon finds none at last.
    pub fn quiet(&self, id: ChannelId) -> Option<AdmissionPause> {
        // On a channel without a place no call runs.
        let began = self.books.lock().channels.get_mut(&id).is_none_or(PayeeChannel::begin_quiet);
        began.then(|| AdmissionPause { book: self.clone(), channel: id })
    }

    pub fn get(&self, id: ChannelId) -> Option<PayeeChannel> {
        self.books.lock().channels.get(&id).cloned()
    }

    pub fn all(&self) -> Vec<(ChannelId, PayeeChannel)> {
        self.books.lock().channels.iter().map(|(id, channel)| (*id, channel.clone())).collect()
    }

    /// Tells whether a payer has a channel here, whatever is left on it.
    pub fn has_channel_of(&self, payer: Address) -> bool {
        self.books.lock().channels.values().any(|channel| channel.config.payer == payer)
    }

    fn settle(&self, id: ChannelId, price: Usdc, charge: Usdc) {
        if let Some(channel) = self.books.lock().channels.get_mut(&id) {
            channel.state.settle(price, charge);
            if !charge.is_zero() {
                channel.unclaimed_since_secs.get_or_insert_with(farthing_os::clock::now_secs);
            }
        }
    }
}

/// The channel that makes room first, and what it holds.
fn weakest(channels: &HashMap<ChannelId, PayeeChannel>) -> Option<(Usdc, ChannelId)> {
    channels.iter().filter_map(|(id, channel)| Some((channel.standing()?, *id))).min()
}

/// Sums what the payer of a channel is served for on others of its channels, with deposits that are not safe.
fn at_risk_beside(channels: &HashMap<ChannelId, PayeeChannel>, id: ChannelId) -> Usdc {
    let payer = channels.get(&id).map(|channel| channel.config.payer);
    let beside = channels.iter().filter(|(other, _)| **other != id).map(|(_, channel)| channel);
    beside
        .filter(|channel| Some(channel.config.payer) == payer)
        .fold(Usdc::ZERO, |sum, channel| sum.saturating_add(channel.at_risk(Usdc::ZERO)))
}

/// No call is admitted on a channel until this is dropped.
#[derive(Debug)]
pub struct AdmissionPause {
    book: Book,
    channel: ChannelId,
}

impl AdmissionPause {
    /// Takes over what the ledger recovered of the channel. `proof` is of its stored best voucher.
    pub fn recover(self, row: &PayeeChannelRow, proof: Option<Verified<Voucher>>) {
        if let Some(channel) = self.book.books.lock().channels.get_mut(&self.channel) {
            channel.carry(row, proof);
        }
    }
}

impl Drop for AdmissionPause {
    fn drop(&mut self) {
        if let Some(channel) = self.book.books.lock().channels.get_mut(&self.channel) {
            channel.is_looked_at = false;
        }
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
    pub const fn voucher(&self) -> Option<&Verified<Voucher>> {
        self.best_voucher.as_ref()
    }

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
pub(crate) mod tests;
