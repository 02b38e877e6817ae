//! Brings what the chain confirms into the books: the ledger first and memory second, so that a promise is never
//! accepted on a deposit that a restart would not know.
//!
//! A task of its own, which waits for nothing but the chain's views and the ledger: whatever transactions are under
//! way and whoever does not answer, a deposit counts and a pending close is known within one poll of the chain.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use farthing_chain::{ChainHandle, ChannelView, ChannelViews};
use farthing_ledger::{Ledger, LedgerError, PayeeChannelFacts, PayerChannelFacts};
use farthing_owner::{
    book::{self, Book, Room, View},
    terms::Terms,
};
use farthing_protocol::{Address, ChannelId, Usdc};
use farthing_shared::chain_view::is_believed;
use futures::{StreamExt, stream};
use tokio::{sync::Mutex, time::Instant};

use crate::consumer::accounts::Accounts;

/// Channels stored at once: the ledger's writer makes one commit of what waits together.
const STORED_AT_ONCE: usize = 64;
/// The pause before another try of what could not be stored, or found no place.
const RETRY_EVERY: Duration = Duration::from_secs(5);

/// The way from the chain's views into the books. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct ChainIntake(Arc<IntakeInner>);

#[derive(Debug)]
struct IntakeInner {
    wallet: Address,
    chain: ChainHandle,
    ledger: Ledger,
    book: Book,
    accounts: Arc<Accounts>,
    terms: Terms,
    /// Since when the chain shows of a channel that its owner was paid what no call explains, and what it shows.
    unexplained: parking_lot::Mutex<HashMap<ChannelId, (Instant, ChannelView)>>,
    /// Held while views are stored, so that an older one never follows a newer one.
    progress: Mutex<IntakeProgress>,
}

#[derive(Debug, Default)]
struct IntakeProgress {
    /// The views that were taken over.
    taken: HashMap<ChannelId, ChannelView>,
    /// Channels that found no place. They are looked at again until one of them does.
    left_out: HashSet<ChannelId>,
}

impl IntakeProgress {
    /// A commit for every channel on every block would wear out a small board's card. Nor is a channel without a place
    /// asked about that holds less than those that have one.
    fn news(&self, views: &ChannelViews, least_with_room: Usdc) -> Vec<ChannelView> {
        let may_enter =
            |view: &ChannelView| !self.left_out.contains(&view.id) || left(view) >= least_with_room;
        let is_news = |view: &&ChannelView| self.taken.get(&view.id) != Some(view) && may_enter(view);
        views.values().filter(is_news).copied().collect()
    }

    fn note(&mut self, view: ChannelView, place: ViewOutcome) {
        match place {
            ViewOutcome::Taken { of } => {
                self.left_out.remove(&view.id);
                self.taken.insert(view.id, view);
                if let Some(other) = of {
                    self.taken.remove(&other);
                    self.left_out.insert(other);
                }
            }
            ViewOutcome::None => drop(self.left_out.insert(view.id)),
            // Whatever is shown next is looked at, also what was shown before.
            ViewOutcome::Unsure => drop(self.taken.remove(&view.id)),
        }
    }
}

/// The outcome of taking over a view.
#[derive(Clone, Copy, Debug)]
enum ViewOutcome {
    /// It is in the books, perhaps in the place of another channel; or its terms keep it out of them, and that only
    /// another view changes.
    Taken { of: Option<ChannelId> },
    /// All places are held by channels that matter more, until they do not.
    None,
    /// It shows something that has not stood for long enough to be acted on.
    Unsure,
}

/// The progress of the books in following the chain's views.
#[derive(Clone, Copy, Debug)]
pub(super) struct CaughtUp {
    pub is_stored: bool,
    /// Nothing that it shows has to stand for a while first.
    pub is_sure: bool,
    /// No channel waits for a place in the book.
    pub is_placed: bool,
}

impl ChainIntake {
    pub(super) fn new(
        wallet: Address,
        chain: ChainHandle,
        ledger: Ledger,
        book: Book,
        accounts: Arc<Accounts>,
        terms: Terms,
    ) -> Self {
        let (unexplained, progress) = Default::default();
        Self(Arc::new(IntakeInner { wallet, chain, ledger, book, accounts, terms, unexplained, progress }))
    }

    /// Takes over every change of the chain's views, until the chain is shut down.
    pub(super) async fn follow(self) {
        let mut views = self.0.chain.channels();
        // The chain may have been read before this task began to listen, and say nothing new for a long time.
        views.mark_changed();
        let mut is_behind = false;
        loop {
            tokio::select! {
                changed = views.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(RETRY_EVERY), if is_behind => {}
            }
            let done = self.catch_up().await;
            is_behind = !(done.is_stored && done.is_sure && done.is_placed);
        }
    }

    /// Brings everything the chain now says into the books.
    pub(super) async fn catch_up(&self) -> CaughtUp {
        let mut progress = self.0.progress.lock().await;
        let views = self.0.chain.channels().borrow().clone();
        progress.left_out.retain(|id| views.contains_key(id));
        self.forget_gone(&mut progress, &views).await;
        let news = progress.news(&views, self.0.book.least_with_room());
        // Where nothing new is shown, nothing is shown that no call explains.
        self.0.unexplained.lock().retain(|id, _| news.iter().any(|view| view.id == *id));
        let mut stored = stream::iter(news)
            .map(|view| async move { (view, self.take_over(&view).await) })
            .buffer_unordered(STORED_AT_ONCE);
        let (mut is_stored, mut is_sure) = (true, true);
        while let Some((view, result)) = stored.next().await {
            match result {
                Ok(place) => {
                    is_sure &= !matches!(place, ViewOutcome::Unsure);
                    progress.note(view, place);
                }
                Err(error) => {
                    is_stored = false;
                    tracing::error!(channel = %view.id, %error, "a channel's state was not stored");
                }
            }
        }
        CaughtUp { is_stored, is_sure, is_placed: progress.left_out.is_empty() }
    }

    /// A channel of this wallet that is followed no more was never on the chain.
    async fn forget_gone(&self, progress: &mut IntakeProgress, views: &ChannelViews) {
        let is_own = |view: &ChannelView| view.config.payer == self.0.wallet;
        let gone = progress.taken.values().filter(|view| is_own(view) && !views.contains_key(&view.id));
        let gone: Vec<ChannelId> = gone.map(|view| view.id).collect();
        for id in gone {
            match self.0.accounts.forget(id).await {
                Ok(()) => drop(progress.taken.remove(&id)),
                Err(error) => {
                    tracing::warn!(channel = %id, %error, "a channel that never was is not forgotten");
                }
            }
        }
    }

    pub(super) fn parts(&self) -> (&ChainHandle, &Ledger) {
        (&self.0.chain, &self.0.ledger)
    }

    async fn take_over(&self, view: &ChannelView) -> Result<ViewOutcome, LedgerError> {
        let place = match view.config.payee == self.0.wallet {
            true => self.take_over_as_payee(view).await?,
            false => ViewOutcome::Taken { of: None },
        };
        let is_payer = view.config.payer == self.0.wallet;
        Ok(if is_payer && !self.take_over_as_payer(view).await? { ViewOutcome::Unsure } else { place })
    }

    async fn take_over_as_payee(&self, view: &ChannelView) -> Result<ViewOutcome, LedgerError> {
        let IntakeInner { chain, ledger, book: books, terms, .. } = &*self.0;
        let known = ledger.payee_channel(view.id)?;
        let is_known = known.is_some();
        if !is_known && terms.check(&view.config, view.deposited).is_err() {
            return Ok(ViewOutcome::Taken { of: None });
        }
        // More than is counted here was paid to another node with this wallet, or before a backup was put back: or an
        // endpoint says so for a moment, and every payer would leave an owner that counts it.
        let (counted, paid) = known.map_or_else(Default::default, |row| (row.spent, row.claimed));
        let is_looked_at_again = self.shows_the_same(view);
        let is_beyond = view.claimed > counted;
        let has_lasted = self.is_sure(view, is_beyond).await;
        // Calls in progress were let in by the total as it is, and could not be charged beside a higher one. Until this is
        // dropped, no other begins.
        let quiet = if has_lasted && is_beyond { books.quiet(view.id) } else { None };
        let is_sure = has_lasted && (!is_beyond || quiet.is_some());
        // Books from a backup lack what was charged since: on a channel that says so, nothing is served meanwhile.
        if !is_sure && ledger.restored_secs()?.is_some() {
            books.unsee(view.id);
        }
        let is_read_first = || books.get(view.id).is_none_or(|channel| channel.view.is_none());
        if !is_sure && (is_looked_at_again || is_read_first()) {
            return Ok(ViewOutcome::Unsure);
        }
        let claimed = if is_sure { view.claimed } else { paid };
        let mut of = None;
        match books.room_for(view.id, left(view)) {
            Room::Free => {}
            Room::Full if is_known => {}
            Room::Full => return Ok(ViewOutcome::None),
            Room::Instead(other) if books.evict(other) => {
                ledger.forget_unused_payee_channel(other).await?;
                of = Some(other);
            }
            // It has come to matter just now.
            Room::Instead(_) => return Ok(ViewOutcome::None),
        }
        let facts = PayeeChannelFacts {
            id: view.id,
            config: view.config,
            deposited: view.deposited,
            claimed,
            closing: view.close_at_secs.is_some(),
        };
        let row = ledger.put_payee_channel(facts).await?;
        let proof = book::proof(&row, &chain.domain());
        let ChannelView { safe_deposited, close_at_secs, round, safe_round, .. } = *view;
        books.apply(&row, proof, View { safe_deposited, close_at_secs, round, safe_round });
        Ok(if is_sure { ViewOutcome::Taken { of } } else { ViewOutcome::Unsure })
    }

    /// `false` while the chain has shown for too short a time what accuses the owner, or explains calls that it said were
    /// free: an endpoint may have invented it.
    async fn take_over_as_payer(&self, view: &ChannelView) -> Result<bool, LedgerError> {
        let accounts = &self.0.accounts;
        // An owner with an open channel is asked before the next call to it; on an emptied one there is nothing to ask.
        let (owner, channel) = (view.config.payee, view.id);
        let is_emptied = view.deposited <= view.claimed;
        let is_overclaimed = is_emptied && accounts.is_overclaimed(channel, view.claimed)?;
        // A call that is in doubt no more is asked about no more.
        let ends_doubts = is_emptied && !is_overclaimed && accounts.ends_doubts(channel, view.claimed)?;
        if !self.is_sure(view, is_overclaimed || ends_doubts).await {
            return Ok(false);
        }
        let facts = PayerChannelFacts {
            id: view.id,
            config: view.config,
            deposited: view.deposited,
            claimed: view.claimed,
            round: Some(view.round),
            stopped: is_overclaimed,
        };
        accounts.observe(facts, view.close_at_secs).await?;
        if is_overclaimed {
            tracing::error!(%owner, %channel, "the owner claimed more than its calls explain; this node buys nothing \
                                               more from it");
        }
        Ok(true)
    }

    /// Tells whether a view is to be acted on: what no call explains is when the chain has shown it for a while, and still
    /// does.
    async fn is_sure(&self, view: &ChannelView, is_unexplained: bool) -> bool {
        let shown_for = {
            let mut unexplained = self.0.unexplained.lock();
            if !is_unexplained {
                unexplained.remove(&view.id);
                return true;
            }
            let (since, shown) = unexplained.entry(view.id).or_insert_with(|| (Instant::now(), *view));
            *shown = *view;
            since.elapsed()
        };
        is_believed(&self.0.chain, shown_for) && is_still(&self.0.chain, view).await
    }

    /// Tells whether a view that no call explains was looked at before, and its other facts are in the books: a commit at
    /// each look would wear out a small board's card.
    fn shows_the_same(&self, view: &ChannelView) -> bool {
        self.0.unexplained.lock().get(&view.id).is_some_and(|(_, shown)| shown == view)
    }
}

/// Asks the chain anew whether it says the same of a channel. When it does not, all of the channel is read again: nothing
/// else reads an emptied one for a while.
async fn is_still(chain: &ChainHandle, view: &ChannelView) -> bool {
    let Ok(now) = chain.read_channel(view.config).await else { return false };
    let is_same = (now.deposited, now.claimed, now.round) == (view.deposited, view.claimed, view.round);
    if !is_same {
        // It is told by the views, or not at all while the chain is stopped.
        drop(chain.reread(view.id).await);
    }
    is_same
}

/// Computes the sum that a channel still holds.
fn left(view: &ChannelView) -> Usdc {
    view.deposited.saturating_sub(view.claimed)
}

#[cfg(test)]
mod tests;
