//! What an attempt to buy a call holds before it has promised anything: dropped, all of it is given back.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use farthing_ledger::{DayLimits, Promise};
use farthing_protocol::Usdc;

use super::{
    accounts::{Accounts, Attempt},
    answer::Expected,
    channels::{PayerChannels, Reservation},
};

/// What a call may cost, counted against the limits of its day. Dropped, it is given back.
#[derive(Debug)]
pub struct Hold {
    accounts: Arc<Accounts>,
    day: u32,
    secret: String,
    price: Usdc,
    /// What the limits allowed then.
    pub limits: DayLimits,
}

impl Hold {
    /// Of a price that was just counted for a secret on a day.
    pub(super) fn new(
        accounts: &Arc<Accounts>,
        (day, secret, price): (u32, &str, Usdc),
        limits: DayLimits,
    ) -> Self {
        Self { accounts: Arc::clone(accounts), day, secret: secret.to_owned(), price, limits }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.accounts.spending().settle(self.day, &self.secret, self.price, Usdc::ZERO);
    }
}

/// Headroom on a channel. Dropped, it is given back.
#[derive(Debug)]
pub struct Headroom {
    channels: Arc<PayerChannels>,
    pub reservation: Reservation,
}

impl Headroom {
    /// Of what [`PayerChannels::reserve`] gave.
    #[must_use]
    pub const fn new(channels: Arc<PayerChannels>, reservation: Reservation) -> Self {
        Self { channels, reservation }
    }
}

impl Drop for Headroom {
    fn drop(&mut self) {
        self.channels.release(&self.reservation);
    }
}

/// An attempt that has promised nothing yet: dropped, it gives back what it holds.
#[derive(Debug)]
pub struct Prepared {
    attempt: Attempt,
    hold: Hold,
    headroom: Option<Headroom>,
}

impl Prepared {
    #[must_use]
    pub fn new(
        (promise, expected): (Promise, Expected),
        body: Bytes,
        funding: Duration,
        hold: Hold,
        headroom: Option<Headroom>,
    ) -> Self {
        let reservation = headroom.as_ref().map(|headroom| headroom.reservation);
        Self { attempt: Attempt { promise, body, expected, reservation, funding }, hold, headroom }
    }

    #[must_use]
    pub const fn promise(&self) -> &Promise {
        &self.attempt.promise
    }

    /// The attempt, once the ledger takes its promise: from now on only an end gives anything back.
    #[must_use]
    pub fn promised(self) -> Attempt {
        let Self { attempt, hold, headroom } = self;
        std::mem::forget((hold, headroom));
        attempt
    }
}
