//! The one task that signs transactions of this wallet.
//!
//! In order, for one intent at a time: *plan* asks the chain whether it has already come true; *prepare*
//! simulates, checks the money, signs and *stores*; only then is it broadcast; and it is
//! *pursued*, with higher fees on the same nonce, until the chain's state shows what became of it.
//!
//! One transaction is under way at a time, so this wallet never leaves a gap in its nonces, and a crash
//! leaves at most one to reconcile.
//!
//! Invariant: no bytes signed here leave the process before the journal holds them.

use std::{sync::Arc, time::Duration};

use farthing_values::{Address, ChannelId, Domain, SecretKey};
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    entry::Entry,
    error::ChainError,
    intent::Intent,
    journal::TxHash,
    reader::{Reader, Receipt},
    rpc::RpcError,
    store::Store,
    views::{UnderWay, Views},
    watcher,
};

mod bisect;
mod plan;
mod prepare;
mod pursue;
mod sign;
mod under_way;

pub use plan::AUTHORIZATION_SECS;
pub use under_way::DepositUnderWay;

pub(crate) use plan::{claim_call, dated, deposit_nonce, deposit_salt};
pub(crate) use sign::{Unsigned, sign};

use plan::Plan;

/// Rows of one claim transaction: 1.8 million gas, well within a block, and 40 KiB of call data.
pub const CLAIM_ROWS_MAX: usize = 100;
/// The most times that an intent is planned anew because a foreign transaction took its nonce.
const ATTEMPTS_MAX: u32 = 3;

/// The result of an intent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// `None` when the chain was already in the wanted state.
    pub receipt: Option<Receipt>,
    /// Claim rows that the contract would not pay, and why.
    pub refused: Vec<(ChannelId, String)>,
}

/// An intent and who waits for it; the writer carries it out also when nobody waits any more.
#[derive(Debug)]
pub(crate) struct Request {
    pub intent: Intent,
    pub done: oneshot::Sender<Result<Outcome, ChainError>>,
    pub forms: Forms,
}

/// The signed forms of a request's transaction, for who waits for it: from before the journal has them on, so that what is
/// not here was never stored nor sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forms(Arc<Mutex<SigningOutcome>>);

#[derive(Debug)]
enum SigningOutcome {
    As(Vec<TxHash>),
    /// Nobody waits any more, and nothing is to be signed.
    Never,
}

impl Default for SigningOutcome {
    fn default() -> Self {
        Self::As(Vec::new())
    }
}

impl Forms {
    pub(crate) fn get(&self) -> Vec<TxHash> {
        match &*self.0.lock() {
            SigningOutcome::As(hashes) => hashes.clone(),
            SigningOutcome::Never => Vec::new(),
        }
    }

    /// Takes the request back, unless it was signed; whether nothing will be.
    pub(crate) fn withdraw(&self) -> bool {
        let mut signed = self.0.lock();
        if matches!(&*signed, SigningOutcome::As(hashes) if hashes.is_empty()) {
            *signed = SigningOutcome::Never;
        }
        matches!(*signed, SigningOutcome::Never)
    }

    /// # Errors
    /// [`ChainError::Stopped`] when the request was taken back.
    fn set(&self, entry: &Entry) -> Result<(), ChainError> {
        match &mut *self.0.lock() {
            SigningOutcome::As(hashes) => *hashes = entry.hashes().map(|hash| TxHash(hash.0)).collect(),
            SigningOutcome::Never => return Err(ChainError::Stopped),
        }
        Ok(())
    }
}

pub(crate) struct Writer {
    pub reader: Reader,
    pub wallet: Address,
    pub key: SecretKey,
    pub domain: Domain,
    pub store: Store,
    pub requests: mpsc::Receiver<Request>,
    pub watcher: mpsc::Sender<watcher::Command>,
    pub views: Arc<Views>,
    /// Of what is under way.
    pub forms: Forms,
    pub stop: CancellationToken,
}

impl Writer {
    pub(crate) async fn run(mut self, remembered: Vec<Entry>) {
        let stop = self.stop.clone();
        // Dropping the work at any await is safe: what was signed is in the journal.
        stop.run_until_cancelled(self.write(remembered)).await;
    }

    async fn write(&mut self, remembered: Vec<Entry>) {
        for entry in remembered {
            let (what, nonce) = (entry.intent.what(), entry.nonce);
            tracing::info!(nonce, "reconciling {what} that was under way");
            if let Err(error) = self.finish(entry).await {
                tracing::warn!(nonce, %error, "{what} from before the restart did not succeed");
            }
            self.refresh_views().await;
        }
        while let Some(Request { intent, done, forms }) = self.requests.recv().await {
            self.forms = forms;
            let result = self.carry_out(intent).await;
            self.refresh_views().await;
            // The caller may have given up waiting; the chain's state tells it later.
            let _ = done.send(result);
        }
    }

    async fn carry_out(&mut self, intent: Intent) -> Result<Outcome, ChainError> {
        let Plan { body, refused } = self.plan(intent).await?;
        let Some(body) = body else { return Ok(Outcome { receipt: None, refused }) };
        let entry = self.prepare(body).await?;
        let mut outcome = self.finish(entry).await?;
        outcome.refused.extend(refused);
        Ok(outcome)
    }

    /// Pursues a stored transaction to its end, and plans its intent anew when a foreign one took its nonce.
    async fn finish(&mut self, mut entry: Entry) -> Result<Outcome, ChainError> {
        for _ in 0..ATTEMPTS_MAX {
            let (nonce, intent) = (entry.nonce, entry.intent.clone());
            self.views.under_way.send_replace(Some(UnderWay { what: intent.what(), since: Instant::now() }));
            let result = self.pursue(entry).await;
            self.views.under_way.send_replace(None);
            if let Ok(Outcome { receipt: Some(receipt), .. }) = &result {
                let chain_id = self.reader.spec.chain_id;
                self.store.note(intent.mined(chain_id, &self.domain, receipt)).await;
            }
            self.forget(nonce).await;
            match result {
                Err(ChainError::Replaced { .. }) if intent.is_idempotent() => {}
                result => return result,
            }
            let what = intent.what();
            // What was signed may be brought yet, whatever keeps it from being planned anew.
            let replaced = |error| {
                tracing::warn!(nonce, %error, "{what} cannot be planned again");
                ChainError::Replaced { what, nonce }
            };
            let Plan { body, refused } = self.plan(intent).await.map_err(replaced)?;
            let Some(body) = body else { return Ok(Outcome { receipt: None, refused }) };
            entry = self.prepare(body).await.map_err(replaced)?;
        }
        let (what, nonce) = (entry.intent.what(), entry.nonce);
        self.forget(nonce).await;
        Err(ChainError::Replaced { what, nonce })
    }

    /// A record that outlives its transaction does no harm: at the next start the chain tells its end again.
    async fn forget(&self, nonce: u64) {
        if let Err(error) = self.store.delete_entry(nonce).await {
            tracing::error!(nonce, %error, "a finished transaction stays in the journal");
        }
    }

    /// Lets the watcher read what changed before anyone is told that it did. Bounded, because an unreachable
    /// chain must not hold back the answer.
    async fn refresh_views(&self) {
        let patience = Duration::from_millis(self.reader.spec.request_timeout_ms);
        let (done, told) = oneshot::channel();
        let refresh = async {
            self.watcher.send(watcher::Command::Refresh(done)).await.ok()?;
            told.await.ok()
        };
        let _ = tokio::time::timeout(patience, refresh).await;
    }

    fn failed(&self, what: &'static str, error: RpcError) -> ChainError {
        let chain = self.reader.spec.name.clone();
        match error {
            RpcError::Unreachable(reason) => ChainError::Unreachable { chain, reason },
            RpcError::WrongChain(reason) => ChainError::Refused { chain, reason },
            RpcError::Refused(refusal) if refusal.is_revert() => {
                ChainError::Reverted { what, reason: refusal.reason() }
            }
            RpcError::Refused(refusal) => ChainError::Unreachable { chain, reason: refusal.reason() },
        }
    }
}
