//! An attempt to buy a call that has promised nothing yet: dropped, it gives back all that it holds.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use farthing_ledger::Promise;

use super::{
    accounts::{Attempt, Hold},
    answer::ExpectedAnswer,
    channels::{PayerChannels, Reservation},
};

/// Headroom on a channel. Dropped, it is given back.
#[derive(Debug)]
pub struct Headroom {
    channels: Arc<PayerChannels>,
    pub reservation: Reservation,
    is_kept: bool,
}

impl Headroom {
    /// Of what [`PayerChannels::reserve`] gave.
    #[must_use]
    pub const fn new(channels: Arc<PayerChannels>, reservation: Reservation) -> Self {
        Self { channels, reservation, is_kept: false }
    }

    /// Leaves it reserved: only the call's end gives it back from now on.
    pub fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Headroom {
    fn drop(&mut self) {
        if !self.is_kept {
            self.channels.release(&self.reservation);
        }
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
        (promise, expected): (Promise, ExpectedAnswer),
        body: Bytes,
        funding: Duration,
        hold: Hold,
        headroom: Option<Headroom>,
    ) -> Self {
        let reservation = headroom.as_ref().map(|headroom| headroom.reservation);
        let promise = Arc::new(promise);
        Self { attempt: Attempt { promise, body, expected, reservation, funding }, hold, headroom }
    }

    /// Tells whether money of a channel is reserved for it.
    pub const fn has_money(&self) -> bool {
        self.headroom.is_some()
    }

    pub const fn promise(&self) -> &Arc<Promise> {
        &self.attempt.promise
    }

    /// The attempt, once the ledger takes its promise: from now on only an end gives anything back.
    #[must_use]
    pub fn promised(self) -> Attempt {
        let Self { attempt, hold, headroom } = self;
        hold.keep();
        if let Some(headroom) = headroom {
            headroom.keep();
        }
        attempt
    }
}
