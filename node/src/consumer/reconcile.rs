//! A crash may lose a promise whose commit had not finished, while the owner serves and charges the call.
//!
//! In order, for every channel that this run promises on: the owner is asked for its best voucher before anything new
//! is promised; what this node signed beyond its own books counts as in flight; what the owner's total cannot
//! owe to known calls is then booked as charged; the rest is given back when no forgotten call can still run. A copy
//! that was on its way when this node died may arrive after the first question, so the last one is asked later.
//! The owner proves its figure with this node's own signature, so it gains nothing that it did not hold.

use std::{collections::HashMap, sync::Arc, time::Duration};

use farthing_chain::ChainHandle;
use farthing_ledger::Ledger;
use farthing_network::NetworkHandle;
use farthing_protocol::{
    Address, CallId, ChannelId,
    call::ChannelSync,
    resolution::{COPY_LIFETIME, Copies},
};
use farthing_shared::{keyed_mutex::KeyedMutex, tasks::Tasks};
use farthing_wallet::Signer;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::{
    BooksError, ConsumerParts, PurchaseSettings, Unseen,
    accounts::{self, Accounts, Attempt},
    channels::{PayerChannel, PayerChannels},
    compare::{BookComparer, BookComparison},
    exchange::CallClient,
    funding::Funding,
    observations::Observer,
    pauses::{ASK_EVERY_FIRST, ASK_EVERY_MAX, FORGOTTEN_MAX},
};

mod heal;

use heal::Accusations;

const SYNC_TIMEOUT: Duration = Duration::from_secs(10);

/// The progress of comparing each channel's books since the start; each is asked about by one at a time. A channel that
/// the chain shows later, as after a restore, stands here no less than those of the ledger.
#[derive(Debug, Default)]
struct ComparisonProgress(Mutex<HashMap<ChannelId, BookProgress>>);

#[derive(Debug, Clone)]
enum BookProgress {
    Open(Arc<tokio::sync::Mutex<ComparedBooks>>),
    /// For the last time.
    Done,
}

#[derive(Debug, Default)]
struct ComparedBooks {
    /// Once at least.
    is_seen: bool,
    /// The last time that the owner did not tell.
    failed: Option<Instant>,
}

/// The work that is left for a caller whose turn has come.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Nothing,
    /// The owner did not tell while this caller waited.
    Refuse,
    Ask,
}

impl ComparedBooks {
    /// Decides what is left to do: one caller asks for all that came before the answer, whatever the answer was.
    fn next(&self, came: Instant, asks_again: bool) -> Next {
        if self.is_seen && !asks_again {
            return Next::Nothing;
        }
        if self.failed.is_some_and(|failed| failed >= came) { Next::Refuse } else { Next::Ask }
    }
}

impl ComparisonProgress {
    /// `None` once they were compared for the last time.
    fn turn(&self, channel: ChannelId) -> Option<Arc<tokio::sync::Mutex<ComparedBooks>>> {
        let mut books = self.0.lock();
        match books.entry(channel).or_insert_with(|| BookProgress::Open(Arc::default())) {
            BookProgress::Open(turn) => Some(turn.clone()),
            BookProgress::Done => None,
        }
    }

    /// Tells whether there is nothing to ask and nobody to wait for.
    fn is_seen(&self, channel: ChannelId, uptime: Duration) -> bool {
        let Some(turn) = self.turn(channel) else { return true };
        let asks_again = accounts::tells_of_all(uptime);
        turn.try_lock().is_ok_and(|compared| compared.next(Instant::now(), asks_again) == Next::Nothing)
    }

    fn finish(&self, channel: ChannelId) {
        self.0.lock().insert(channel, BookProgress::Done);
    }
}

/// The books of what this node buys, kept together with those of its owners. A cheap handle.
#[derive(Clone, Debug)]
pub(super) struct Reconciler(Arc<ReconcilerInner>);

#[derive(Debug)]
struct ReconcilerInner {
    signer: Signer,
    ledger: Ledger,
    network: NetworkHandle,
    chain: ChainHandle,
    channels: Arc<PayerChannels>,
    funding: Funding,
    accounts: Arc<Accounts>,
    turns: Arc<KeyedMutex<CallId, Copies>>,
    client: CallClient,
    observer: Observer,
    settings: PurchaseSettings,
    tasks: Tasks,
    stopping: CancellationToken,
    progress: ComparisonProgress,
    /// Differences with one owner are looked into by one at a time.
    healing: KeyedMutex<Address>,
    accused: Mutex<Accusations>,
    /// Accused owners are looked at again by one task for each channel.
    looking_again: KeyedMutex<ChannelId>,
}

impl Reconciler {
    /// Takes its parts from the consumer's; it shares the books and the turns of the calls.
    pub(super) fn new(
        parts: &ConsumerParts,
        accounts: Arc<Accounts>,
        turns: Arc<KeyedMutex<CallId, Copies>>,
        client: CallClient,
        observer: Observer,
    ) -> Self {
        Self(Arc::new(ReconcilerInner {
            signer: parts.signer.clone(),
            ledger: parts.ledger.clone(),
            network: parts.network.clone(),
            chain: parts.chain.clone(),
            channels: parts.channels.clone(),
            funding: parts.funding.clone(),
            accounts,
            turns,
            client,
            observer,
            settings: parts.settings,
            tasks: parts.tasks.clone(),
            stopping: parts.stopping.clone(),
            progress: ComparisonProgress::default(),
            healing: KeyedMutex::default(),
            accused: Mutex::default(),
            looking_again: KeyedMutex::default(),
        }))
    }

    /// Compares every call bought from `owner`, and every channel with it, with what it says of them.
    ///
    /// # Errors
    /// [`BooksError`] when the owner's books or the own ones cannot be seen.
    pub(super) async fn compare_with(&self, owner: Address) -> Result<BookComparison, BooksError> {
        self.comparer().compare_with(owner).await
    }

    fn comparer(&self) -> BookComparer<'_> {
        let ReconcilerInner { ledger, channels, signer, network, .. } = &*self.0;
        BookComparer { ledger, channels, signer, network }
    }

    /// Tells whether nothing that an owner signs on a channel can be verified with the settings as they are.
    pub(super) fn is_signed_elsewhere(&self, channel: ChannelId) -> bool {
        self.0.channels.is_signed_elsewhere(channel, self.0.signer.domain())
    }

    /// Starts to compare the books of every channel of the ledger. Called once, before the first call.
    pub(super) fn compare_all_books(&self) {
        // Also of an emptied channel with open calls: what is booked of it leaves out what they may have cost.
        let all = self.0.channels.all();
        // What an owner shows of a channel in another contract proves nothing in this one.
        let is_compared =
            |channel: &&PayerChannel| channel.holds_something() && !self.is_signed_elsewhere(channel.id);
        for channel in all.iter().filter(is_compared) {
            let (reconciler, owner, id) = (self.clone(), channel.config.payee, channel.id);
            self.until_stopped(async move {
                // An owner that stays away is asked again before the next call to it.
                let mut pauses = Pauses::from_now();
                while reconciler.compare_books(owner, id).await.is_err() && pauses.wait().await {}
                reconciler.explain_total(owner).await;
                tokio::time::sleep(COPY_LIFETIME.saturating_sub(reconciler.0.client.uptime())).await;
                while reconciler.compare_books(owner, id).await.is_err() && pauses.wait().await {}
                reconciler.explain_total(owner).await;
            });
        }
    }

    /// Explains what an owner counts beyond every call that is known, without waiting for the next call to it.
    pub(super) async fn explain_total(&self, owner: Address) {
        if !self.0.channels.unexplained(owner).is_zero()
            && let Err(reason) = self.heal(owner).await
        {
            tracing::warn!(%owner, %reason, "it is not known yet why it counts more than this node");
        }
    }

    /// Compares the books with an owner's: before this run's first promise on a channel, and once more when no copy that
    /// an earlier run sent can arrive any more.
    ///
    /// # Errors
    /// [`BooksError`] when the owner does not tell; nothing may be promised to it then.
    async fn compare_books(&self, owner: Address, channel: ChannelId) -> Result<(), BooksError> {
        self.compare(owner, channel, false).await
    }

    /// The same, before a call: an owner that is slow to tell holds up no caller beyond its deadline. What was begun goes on.
    ///
    /// # Errors
    /// As [`Reconciler::compare_books`]; [`BooksError::Slow`] once the time is over.
    pub(super) async fn compare_books_for_a_call(
        &self,
        owner: Address,
        channel: ChannelId,
        deadline: Instant,
    ) -> Result<(), BooksError> {
        if self.0.progress.is_seen(channel, self.0.client.uptime()) {
            return Ok(());
        }
        let reconciler = self.clone();
        let comparing = self.0.tasks.spawn(async move { reconciler.compare_books(owner, channel).await });
        match timeout(deadline.saturating_duration_since(Instant::now()), comparing).await {
            Ok(Ok(compared)) => compared,
            Ok(Err(_)) => Err(BooksError::Unexplained(Unseen::Failed)),
            Err(_) => Err(BooksError::Slow),
        }
    }

    /// As [`Reconciler::compare_books`], of the channel that a call was promised on.
    ///
    /// # Errors
    /// [`BooksError`] when the owner does not tell.
    pub(super) async fn compare_books_of(&self, attempt: &Attempt) -> Result<(), BooksError> {
        match &attempt.reservation {
            Some(reservation) => self.compare_books(reservation.owner, reservation.channel).await,
            None => Ok(()),
        }
    }

    /// The same, at once, for a total or a receipt that nothing known explains. Nothing is asked after the last time.
    ///
    /// # Errors
    /// [`BooksError`] when the owner does not tell.
    pub(super) async fn compare_again(&self, owner: Address, channel: ChannelId) -> Result<(), BooksError> {
        self.compare(owner, channel, true).await
    }

    async fn compare(&self, owner: Address, channel: ChannelId, again: bool) -> Result<(), BooksError> {
        let Some(turn) = self.0.progress.turn(channel) else { return Ok(()) };
        let came = Instant::now();
        let mut compared = turn.lock().await;
        let is_last = accounts::tells_of_all(self.0.client.uptime());
        if self.0.progress.turn(channel).is_none() {
            return Ok(());
        }
        match compared.next(came, is_last || again) {
            Next::Nothing => return Ok(()),
            Next::Refuse => return Err(BooksError::Slow),
            Next::Ask => {}
        }
        let sync = self.sync(owner, channel).await.inspect_err(|_| compared.failed = Some(Instant::now()))?;
        self.0.accounts.prove_carried(owner, channel, sync.as_ref()).await?;
        if let Some(sync) = sync {
            self.0.accounts.take_over(owner, channel, &sync).await?;
        }
        compared.is_seen = true;
        if is_last {
            self.0.progress.finish(channel);
        }
        if self.forgets(channel) {
            let reconciler = self.clone();
            self.until_stopped(async move { reconciler.settle_forgotten(owner, channel).await });
        } else if is_last {
            self.lacks_nothing(channel).await;
        }
        Ok(())
    }

    /// Asks until nothing forgotten is left, or none of it can still be charged.
    async fn settle_forgotten(&self, owner: Address, channel: ChannelId) {
        let mut pauses = Pauses::from_now();
        while self.forgets(channel) && pauses.wait().await {
            if let Ok(Some(sync)) = self.sync(owner, channel).await {
                self.0.accounts.book_forgotten(owner, channel, sync.spent).await;
            }
        }
        let last_word = self.sync(owner, channel).await.ok().flatten();
        if let Some(sync) = &last_word {
            self.0.accounts.book_forgotten(owner, channel, sync.spent).await;
        }
        self.0.channels.forgive(channel);
        // An owner that was away has not said what it charged.
        if last_word.is_some() && self.0.progress.turn(channel).is_none() {
            self.lacks_nothing(channel).await;
        }
    }

    /// From now on no total of the owner is put down to calls that this node forgot.
    async fn lacks_nothing(&self, channel: ChannelId) {
        self.0.channels.settle(channel);
        // What is open may hide the charge of a lacking call for longer than this run lasts.
        if self.0.channels.get(channel).is_some_and(|channel| !channel.forgettable.is_zero()) {
            return;
        }
        if let Err(error) = self.0.ledger.note_compared(channel).await {
            tracing::warn!(%channel, %error, "its ledger is compared again after the next start");
        }
    }

    fn forgets(&self, channel: ChannelId) -> bool {
        self.0.channels.get(channel).is_some_and(|channel| !channel.forgotten.is_zero())
    }

    fn until_stopped(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stopping = self.0.stopping.clone();
        self.0.tasks.spawn(async move { stopping.run_until_cancelled(work).await });
    }

    /// Asks an owner for its books of a channel while a call may wait for them; `None` when it has none.
    async fn sync(&self, owner: Address, channel: ChannelId) -> Result<Option<ChannelSync>, BooksError> {
        self.comparer().books_of(owner, channel, SYNC_TIMEOUT).await
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_asks_an_owner_does_it_for_all_that_wait_and_for_none_that_comes_later() {
        let came = Instant::now();
        let later = came + Duration::from_secs(1);
        let unseen = ComparedBooks::default();
        assert_eq!(unseen.next(came, false), Next::Ask, "nobody asked yet");
        let failed = ComparedBooks { failed: Some(came), ..ComparedBooks::default() };
        assert_eq!(failed.next(came, false), Next::Refuse, "it failed while this one waited");
        assert_eq!(failed.next(later, false), Next::Ask, "it failed before this one came");
        let seen = ComparedBooks { is_seen: true, failed: None };
        assert_eq!(seen.next(came, false), Next::Nothing);
        assert_eq!(
            seen.next(came, true),
            Next::Ask,
            "the last time falls due while another has just seen them"
        );
        let lost = ComparedBooks { is_seen: true, failed: Some(later) };
        assert_eq!(lost.next(came, true), Next::Refuse);
    }
}
