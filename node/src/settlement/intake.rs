//! What the chain confirms comes into the books: the ledger first and memory second, so that a promise is never
//! accepted on a deposit that a restart would not know.
//!
//! A task of its own, which waits for nothing but the chain's views and the ledger: whatever transactions are under
//! way and whoever does not answer, a deposit counts and a pending close is known within one poll of the chain.

use std::{collections::HashMap, sync::Arc, time::Duration};

use farthing_chain::{ChainHandle, ChannelView};
use farthing_ledger::{Ledger, LedgerError, PayeeChannel, PayerChannel};
use farthing_protocol::{Address, ChannelId};
use futures::{StreamExt, stream};
use tokio::sync::Mutex;

use crate::{
    consumer::channels::Channels,
    owner::{
        book::{self, Book, Room, View},
        terms::Terms,
    },
};

/// Channels stored at once: the ledger's writer makes one commit of what waits together.
const STORED_AT_ONCE: usize = 64;
/// What could not be stored is tried again.
const RETRY_EVERY: Duration = Duration::from_secs(5);

/// The way from the chain's views into the books. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Intake(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    wallet: Address,
    chain: ChainHandle,
    ledger: Ledger,
    book: Book,
    channels: Arc<Channels>,
    terms: Terms,
    /// What was taken over. Held while views are stored, so that an older one never follows a newer one.
    taken: Mutex<HashMap<ChannelId, ChannelView>>,
}

impl Intake {
    pub(super) fn new(
        wallet: Address,
        chain: ChainHandle,
        ledger: Ledger,
        book: Book,
        channels: Arc<Channels>,
        terms: Terms,
    ) -> Self {
        let taken = Mutex::default();
        Self(Arc::new(Inner { wallet, chain, ledger, book, channels, terms, taken }))
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
            is_behind = !self.catch_up().await;
        }
    }

    /// Brings everything the chain now says into the books; whether all of it could be stored.
    pub(super) async fn catch_up(&self) -> bool {
        let mut taken = self.0.taken.lock().await;
        let views = self.0.chain.channels().borrow().clone();
        // A commit for every channel on every block would wear out a small board's card.
        let news: Vec<ChannelView> =
            views.values().filter(|view| taken.get(&view.id) != Some(view)).copied().collect();
        let mut stored = stream::iter(news)
            .map(|view| async move { (view, self.take_over(&view).await) })
            .buffer_unordered(STORED_AT_ONCE);
        let mut is_whole = true;
        while let Some((view, result)) = stored.next().await {
            match result {
                Ok(()) => drop(taken.insert(view.id, view)),
                Err(error) => {
                    is_whole = false;
                    tracing::error!(channel = %view.id, %error, "a channel's state was not stored");
                }
            }
        }
        is_whole
    }

    async fn take_over(&self, view: &ChannelView) -> Result<(), LedgerError> {
        if view.config.payee == self.0.wallet {
            self.take_over_as_payee(view).await?;
        }
        if view.config.payer == self.0.wallet {
            self.take_over_as_payer(view).await?;
        }
        Ok(())
    }

    async fn take_over_as_payee(&self, view: &ChannelView) -> Result<(), LedgerError> {
        let Inner { chain, ledger, book: books, terms, .. } = &*self.0;
        let is_known = ledger.payee_channel(view.id)?.is_some();
        if !is_known && terms.check(&view.config, view.deposited).is_err() {
            return Ok(());
        }
        match books.room_for(view.id, view.deposited.saturating_sub(view.claimed)) {
            Room::Free => {}
            Room::Full if is_known => {}
            Room::Full => return Ok(()),
            Room::Instead(other) => {
                if books.evict(other) {
                    ledger.forget_unused_payee_channel(other).await?;
                }
            }
        }
        let facts = PayeeChannel {
            id: view.id,
            config: view.config,
            deposited: view.deposited,
            claimed: view.claimed,
            closing: view.close_at_secs.is_some(),
        };
        let row = ledger.put_payee_channel(facts).await?;
        let proof = book::proof(&row, &chain.domain());
        let ChannelView { safe_deposited, close_at_secs, .. } = *view;
        books.apply(&row, proof, View { safe_deposited, close_at_secs });
        Ok(())
    }

    async fn take_over_as_payer(&self, view: &ChannelView) -> Result<(), LedgerError> {
        let facts = PayerChannel {
            id: view.id,
            config: view.config,
            deposited: view.deposited,
            claimed: view.claimed,
            stopped: false,
        };
        let row = self.0.ledger.put_payer_channel(facts).await?;
        self.0.channels.apply(&row, view.close_at_secs);
        Ok(())
    }
}
