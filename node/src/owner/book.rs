//! The channels this node is paid with, counted in memory under a short lock.
//!
//! [`Book::admit`] applies the channel rule and reserves the price; the [`Reserved`] it returns ends exactly
//! once: settled with the charge after the commit, or released on drop when the call was not served.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use farthing_ledger::PayeeChannelRow;
use farthing_protocol::{
    ChannelConfig, ChannelId, RefusalCode, Usdc, Verified, Voucher, channel::PayeeState,
};

/// One channel as the owner sees it.
#[derive(Clone, Debug)]
pub struct PayeeChannel {
    pub config: ChannelConfig,
    pub state: PayeeState,
    /// Proof of `state.best`.
    pub best_voucher: Option<Verified<Voucher>>,
    /// When the oldest unclaimed charge was made.
    pub unclaimed_since_secs: Option<u64>,
    /// The payer started the delay after which it may withdraw.
    pub close_pending: bool,
    /// The payer asked this node to close; nothing is served until that is done.
    pub close_requested: bool,
}

/// The owner's channels.
#[derive(Debug, Default, Clone)]
pub struct Book {
    channels: Arc<Mutex<HashMap<ChannelId, PayeeChannel>>>,
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
    /// is the payer's pending close. `voucher` proves the stored best one, at start.
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
            unclaimed_since_secs: (row.spent > row.claimed).then(crate::clock::now_secs),
            close_pending: false,
            close_requested: row.closing && close_at_secs.is_none(),
        });
        channel.state.deposited = row.deposited;
        channel.state.claimed = channel.state.claimed.max(row.claimed);
        channel.close_pending = close_at_secs.is_some();
        if row.deposited == row.claimed {
            channel.close_requested = false;
        }
        channel.state.closing = channel.close_pending || channel.close_requested;
        if channel.state.unclaimed().is_zero() {
            channel.unclaimed_since_secs = None;
        }
    }

    /// Stops serving on a channel whose payer asked to close. An empty one has nothing to close: it stays as
    /// it is, so that it serves again as soon as it is filled. Returns whether there is something to do.
    pub fn set_closing(&self, id: ChannelId) -> bool {
        let mut channels = self.lock();
        let open = channels.get_mut(&id).filter(|channel| channel.state.deposited > channel.state.claimed);
        let Some(channel) = open else { return false };
        channel.close_requested = true;
        channel.state.closing = true;
        true
    }

    /// Channels whose cooperative close was asked for and is not done.
    #[must_use]
    pub fn closing(&self) -> Vec<ChannelId> {
        self.lock().iter().filter(|(_, channel)| channel.close_requested).map(|(id, _)| *id).collect()
    }

    /// The terms of a channel, and the best voucher so far: what a signature is checked against.
    #[must_use]
    pub fn terms(&self, id: ChannelId) -> Option<(ChannelConfig, Usdc)> {
        self.lock().get(&id).map(|channel| (channel.config, channel.state.best))
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
        }
    }

    #[test]
    fn a_close_of_an_empty_channel_does_not_stop_it_from_serving_when_it_is_filled() {
        let book = Book::default();
        book.apply(&row(10, 10), None, None);
        assert!(!book.set_closing(ID), "there is nothing to close");
        book.apply(&row(20, 10), None, None);
        assert!(!book.get(ID).unwrap().state.closing);
        assert!(book.set_closing(ID));
        book.apply(&row(20, 10), None, None);
        assert!(
            book.get(ID).unwrap().state.closing,
            "the chain's view does not end a close that is asked for"
        );
        book.apply(&row(10, 10), None, None);
        assert!(!book.get(ID).unwrap().state.closing, "done");
    }
}
