//! A crash may lose a promise whose commit had not finished, while the owner serves and charges the call.
//!
//! In order, for every open channel after a start: the owner is asked for its best voucher before anything new
//! is promised; what this node signed beyond its own books counts as in flight; what the owner's total cannot
//! owe to known calls is then booked as charged; the rest is given back when no forgotten call can still run.
//! The owner proves its figure with this node's own signature, so it gains nothing that it did not hold.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use farthing_protocol::{
    Address, CallMessage, CallReply, ChannelId, Usdc, Voucher, call::ChannelSync, limits,
};

use super::{Consumer, channels::Explained};
use crate::clock;

/// Stands for the secrets of calls that nobody remembers; none has this name.
pub(super) const NO_SECRET: &str = "";
const SYNC_TIMEOUT: Duration = Duration::from_secs(10);
const ASK_EVERY_FIRST: Duration = Duration::from_millis(500);
const ASK_EVERY_MAX: Duration = Duration::from_secs(60);
/// No call runs longer, and none that was sent waits longer before it runs.
const FORGOTTEN_MAX: Duration = Duration::from_millis(2 * limits::CALL_DEADLINE_MS_MAX);

/// Owners whose books were not compared since the start; each is asked by one at a time.
#[derive(Debug, Default)]
pub(super) struct Books(Mutex<HashMap<Address, Arc<tokio::sync::Mutex<()>>>>);

impl Books {
    fn turn(&self, owner: Address) -> Option<Arc<tokio::sync::Mutex<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&owner).cloned()
    }

    fn add(&self, owner: Address) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(owner).or_default();
    }

    fn remove(&self, owner: Address) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&owner);
    }
}

impl Consumer {
    /// Starts to compare the books of every channel of the ledger. Called once, before the first call.
    pub(super) fn compare_all_books(&self) {
        for channel in
            self.0.channels.all().iter().filter(|channel| channel.state.deposited > channel.claimed)
        {
            let (consumer, owner) = (self.clone(), channel.config.payee);
            self.0.books.add(owner);
            self.until_stopped(async move {
                // An owner that stays away is asked again before the next call to it.
                let mut pauses = Pauses::from_now();
                while consumer.compare_books(owner).await.is_err() && pauses.wait().await {}
            });
        }
    }

    /// Compares the books with an owner's, once per start.
    ///
    /// # Errors
    /// Why the owner does not tell; nothing may be promised to it then.
    pub(super) async fn compare_books(&self, owner: Address) -> Result<(), String> {
        let Some(turn) = self.0.books.turn(owner) else { return Ok(()) };
        let _turn = turn.lock().await;
        if self.0.books.turn(owner).is_none() {
            return Ok(());
        }
        let Some(channel) = self.0.channels.get(owner) else { return Ok(()) };
        if let Some(sync) = self.sync(owner, channel.id).await? {
            match self.proven(channel.id, &sync) {
                Some(signed) => {
                    // Durable first: the ledger refuses charges beyond what it knows to be signed.
                    let cause = self.0.ledger.why_calls_are_missing(channel.id);
                    let cause = cause.map_err(|error| error.to_string())?;
                    let stored = self.0.ledger.recover_signed(channel.id, signed).await;
                    stored.map_err(|error| error.to_string())?;
                    self.0.channels.remember(owner, signed, cause);
                }
                None if sync.best.is_zero() => {}
                None => tracing::warn!(%owner, best = %sync.best, "the owner counts more than it can prove"),
            }
            self.book_forgotten(owner, sync.spent).await;
        }
        self.0.books.remove(owner);
        if self.forgets(owner) {
            let consumer = self.clone();
            self.until_stopped(async move { consumer.settle_forgotten(owner, channel.id).await });
        }
        Ok(())
    }

    /// Books what forgotten calls were charged, given a total of the owner, as an adjustment. It counts for today's
    /// limit, and for no secret: nobody knows whose they were.
    pub(super) async fn book_forgotten(&self, owner: Address, spent_total: Usdc) {
        let Some(found) = self.0.channels.explain(owner, spent_total) else { return };
        let Explained { channel, charged, cause } = found;
        tracing::warn!(%owner, %charged, ?cause, "booking calls that this ledger lacks");
        self.rehold(farthing_ledger::day_of(clock::now_secs()), NO_SECRET, charged);
        if let Err(error) = self.0.ledger.recover_charges(channel, charged, spent_total, cause).await {
            tracing::error!(%owner, %error, "they were not stored, and are booked after the next start");
        }
    }

    /// Asks until nothing forgotten is left, or none of it can still be charged.
    async fn settle_forgotten(&self, owner: Address, channel: ChannelId) {
        let mut pauses = Pauses::from_now();
        while self.forgets(owner) && pauses.wait().await {
            if let Ok(Some(sync)) = self.sync(owner, channel).await {
                self.book_forgotten(owner, sync.spent).await;
            }
        }
        self.0.channels.forgive(owner);
    }

    fn forgets(&self, owner: Address) -> bool {
        self.0.channels.get(owner).is_some_and(|channel| !channel.forgotten.is_zero())
    }

    fn until_stopped(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stopping = self.0.stopping.clone();
        self.0.tasks.spawn(async move { stopping.run_until_cancelled(work).await });
    }

    /// The owner's books of a channel; `None` when it has none.
    pub(super) async fn sync(
        &self,
        owner: Address,
        channel: ChannelId,
    ) -> Result<Option<ChannelSync>, String> {
        let question = CallMessage::Sync(channel);
        match self.0.network.call(owner, question, bytes::Bytes::new(), SYNC_TIMEOUT).await {
            Ok((CallReply::Channel(sync), ..)) => Ok(Some(sync)),
            Ok((CallReply::Refused(_), ..)) => Ok(None),
            Ok(_) => Err("the owner's node gave an answer to another question".to_owned()),
            Err(failure) => Err(failure.to_string()),
        }
    }

    /// The promise the owner holds, if it carries this node's signature.
    fn proven(&self, channel: ChannelId, sync: &ChannelSync) -> Option<Usdc> {
        let voucher = Voucher { channel, cumulative: sync.best };
        let proof = voucher.verify(self.0.signer.domain(), sync.best_signature?, self.0.signer.address());
        proof.ok().map(|voucher| voucher.cumulative)
    }
}

/// Growing pauses between questions, for as long as a forgotten call may run.
struct Pauses {
    next: Duration,
    until: Instant,
}

impl Pauses {
    fn from_now() -> Self {
        Self { next: ASK_EVERY_FIRST, until: Instant::now() + FORGOTTEN_MAX }
    }

    /// `false` when the time is over.
    async fn wait(&mut self) -> bool {
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 2).min(ASK_EVERY_MAX);
        Instant::now() < self.until
    }
}
