//! News about services, between this node and its neighbours.
//!
//! 1. [`Catalog::publish`] puts this node's own listings into the store and has them passed on.
//! 2. [`Catalog::hear`] takes what neighbours gossip.
//! 3. [`Catalog::agree`] opens sessions, as the [`Agenda`] says, in which two catalogs are compared and completed;
//!    [`Catalog::be_compared`] answers those that others open.
//! 4. [`Catalog::answer`] answers questions about single services and content.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use farthing_catalog as store;
use farthing_network::{InboundInfo, InboundListing, InboundSync, SyncStream, Verdict};
use farthing_os::clock;
use farthing_protocol::{
    Address, Listing, ServiceId, Signed, Verified,
    info::{InfoRequest, InfoResponse},
    limits,
    sync::SyncMessage,
    wire,
};
use tokio::{sync::mpsc, task::JoinSet, time::Instant};

use super::{
    Catalog, News,
    agenda::{Agenda, Neighbour, SessionEnd},
};

/// The time between two looks at the connections.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Owners of new listings whose records are asked for after one session.
const OWNERS_ASKED_MAX: usize = 1_024;

/// An error that ends a session before both catalogs agree.
#[derive(Debug, thiserror::Error)]
enum CatalogSessionError {
    #[error("no stream: {0}")]
    NotStarted(#[from] farthing_network::NotStarted),
    #[error(transparent)]
    Ended(#[from] farthing_network::SyncEnded),
    #[error("the neighbour ended it without a reason")]
    Silent,
    #[error("a message cannot be read: {0}")]
    Malformed(String),
    #[error(transparent)]
    Session(#[from] store::SyncError),
}

impl CatalogSessionError {
    /// Returns whether no honest node does this.
    const fn is_hostile(&self) -> bool {
        match self {
            Self::Malformed(_) => true,
            Self::Session(error) => error.is_hostile(),
            Self::NotStarted(_) | Self::Ended(_) | Self::Silent => false,
        }
    }
}

/// The state of storage: what could not be written, and what of this node no other one hears of for that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageHealth {
    pub failing: Option<store::Failing>,
    /// Own services whose newest version is not stored: [`Catalog::publish`] is worth a repeat.
    pub unstored: BTreeSet<ServiceId>,
}

impl Catalog {
    /// Takes this node's own listings into the catalog and tells the neighbours of those that are new. Those of which
    /// the catalog knows a later version come back as that has them: this node's ledger is older than they are.
    pub async fn publish(&self) -> Vec<Verified<Listing>> {
        let listings = match self.0.own.listings() {
            Ok(listings) => listings,
            Err(error) => {
                tracing::warn!(%error, "this node's listings cannot be read");
                return Vec::new();
            }
        };
        let verdicts = self.0.store.offer(listings.clone(), store::Source::Own, clock::now_secs()).await;
        let failing = self.0.store.failing();
        let earlier = self.0.unstored.lock().clone();
        let (mut is_new, mut overtaken, mut unstored) = (false, Vec::new(), BTreeSet::new());
        for (listing, verdict) in listings.iter().zip(verdicts) {
            if let Ok(Listing { service, .. }) = listing.claimed()
                && is_unstored(&verdict, failing, earlier.contains(&service))
            {
                unstored.insert(service);
            }
            match verdict {
                store::Verdict::Stored => {
                    is_new = true;
                    self.0.network.gossip_listing(listing).await;
                }
                store::Verdict::Known => {}
                store::Verdict::Refused(reason) => {
                    tracing::warn!(%reason, "one of this node's listings could not be stored");
                    overtaken.extend(self.later_version(listing));
                }
            }
        }
        *self.0.unstored.lock() = unstored;
        if is_new {
            self.tell(News::Own);
        }
        overtaken
    }

    /// Returns what could not be written lately, as on a full disk; [`super::cause_and_next`] tells the effect.
    pub fn storage(&self) -> StorageHealth {
        StorageHealth { failing: self.0.store.failing(), unstored: self.0.unstored.lock().clone() }
    }

    /// A later version of an own listing, unless that says that the service is retired.
    fn later_version(&self, own: &Signed<Listing>) -> Option<Verified<Listing>> {
        let own = own.claimed().ok()?;
        let known = self.0.store.get(own.service, clock::now_secs()).ok().flatten()?.listing;
        (known.owner == own.owner && known.seq > own.seq && !known.tombstone).then_some(known)
    }

    /// Waits until somebody told of a later version of an own service than this node has.
    pub async fn overtaken(&self) {
        self.0.overtaken.notified().await;
    }

    /// Takes what neighbours gossip, until the network ends.
    pub async fn hear(&self, mut inbound: mpsc::Receiver<InboundListing>) {
        while let Some(InboundListing { listing, from, range, reply }) = inbound.recv().await {
            let offered = vec![listing.to_signed()];
            let source = store::Source::Pushed(store::Neighbour { wallet: from, range });
            let verdicts = self.0.store.offer(offered, source, clock::now_secs()).await;
            reply.send(match verdicts.first() {
                Some(store::Verdict::Stored) => {
                    add(&self.0.ways.gossiped);
                    Verdict::New
                }
                // Who keeps its shard is to hear of it; the same version is passed on once.
                Some(store::Verdict::Refused(store::Reason::OtherShard)) => Verdict::New,
                Some(refused) if refused.is_hostile() => Verdict::Refused,
                _ => Verdict::Known,
            });
        }
    }

    /// Compares catalogs with neighbours, as the agenda says. `news` is what [`Catalog::new`] gave.
    pub async fn agree(&self, mut news: mpsc::Receiver<News>) {
        let seed = getrandom::u64().unwrap_or_default();
        let mut agenda = Agenda::new(self.0.network.own_address(), seed, Instant::now());
        let mut sessions = JoinSet::new();
        let mut look = tokio::time::interval(LOOK_EVERY);
        loop {
            tokio::select! {
                _ = look.tick() => {
                    let neighbours = self.0.network.neighbours().await;
                    let neighbours: Vec<Neighbour> = neighbours.iter().filter_map(neighbour).collect();
                    agenda.connected(&neighbours, Instant::now());
                }
                Some(news) = news.recv() => match news {
                    News::Own => agenda.published(Instant::now()),
                    News::Behind(peer) => agenda.is_behind(peer, Instant::now()),
                    News::From(peer) => agenda.learned_from(peer, Instant::now()),
                },
                Some(Ok((peer, how))) = sessions.join_next() => agenda.ended(peer, how, Instant::now()),
            }
            while let Some(peer) = agenda.next(Instant::now()) {
                let catalog = self.clone();
                sessions.spawn(async move { (peer, catalog.begin(peer).await) });
            }
        }
    }

    /// One session that this node opens.
    async fn begin(&self, peer: Address) -> SessionEnd {
        let mut stored = 0;
        let compared = self.compare(peer, &mut stored).await;
        let learned = stored > 0;
        if learned {
            self.ask_for_records(peer).await;
        }
        match compared {
            Ok(summary) => {
                self.count_comparison(summary.stored > 0);
                tracing::debug!(%peer, ?summary, "catalogs compared");
                SessionEnd::Agreed { learned }
            }
            Err(error) => {
                tracing::debug!(%peer, %error, "a session ended early");
                self.hold_against(peer, &error);
                SessionEnd::Broken { learned }
            }
        }
    }

    fn hold_against(&self, peer: Address, error: &CatalogSessionError) {
        if error.is_hostile() {
            self.0.network.accuse(peer);
        }
    }

    fn count_comparison(&self, is_fruitful: bool) {
        add(&self.0.ways.comparisons);
        if is_fruitful {
            add(&self.0.ways.comparisons_fruitful);
        }
    }

    /// `stored` is what came until it ended, in whatever way.
    async fn compare(
        &self,
        peer: Address,
        stored: &mut usize,
    ) -> Result<store::Summary, CatalogSessionError> {
        let mut stream = self.0.network.sync(peer).await?;
        let neighbour = store::Neighbour { wallet: peer, range: stream.range() };
        let beginning = self.0.store.initiator(neighbour, stream.knows_shards(), clock::now_secs());
        let (mut session, mut message) = beginning.await?;
        loop {
            stream.send(wire::encode(&message).into()).await?;
            let answer = receive(&mut stream).await?.ok_or(CatalogSessionError::Silent)?;
            let step = session.on(answer, clock::now_secs()).await;
            *stored = session.stored();
            match step? {
                store::Step::Send(next) => message = next,
                store::Step::Done(summary) => {
                    stream.close().await;
                    return Ok(summary);
                }
            }
        }
    }

    /// Answers the sessions that others open, until the network ends. The network bounds their number.
    pub async fn be_compared(&self, mut inbound: mpsc::Receiver<InboundSync>) {
        let mut sessions = JoinSet::new();
        loop {
            tokio::select! {
                session = inbound.recv() => {
                    let Some(InboundSync { peer, stream }) = session else { return };
                    let catalog = self.clone();
                    sessions.spawn(async move { catalog.respond(peer, stream).await });
                }
                Some(_) = sessions.join_next() => {}
            }
        }
    }

    async fn respond(&self, peer: Address, mut stream: SyncStream) {
        let neighbour = store::Neighbour { wallet: peer, range: stream.range() };
        let mut session = self.0.store.responder(neighbour, clock::now_secs());
        match exchange(&mut session, &mut stream).await {
            Ok(()) => self.count_comparison(session.stored() > 0),
            Err(error) => {
                tracing::debug!(%peer, %error, "a session of a neighbour ended early");
                self.hold_against(peer, &error);
            }
        }
        if session.stored() > 0 {
            self.ask_for_records(peer).await;
            self.tell(News::From(peer));
        }
        stream.close().await;
    }

    /// Answers questions about services and content, until the network ends.
    pub async fn answer(&self, mut inbound: mpsc::Receiver<InboundInfo>) {
        while let Some(question) = inbound.recv().await {
            let answer = match &question.request {
                InfoRequest::Services(ids) => InfoResponse::Listings(
                    ids.iter()
                        .take(limits::INFO_ITEMS_MAX)
                        .filter_map(|id| self.signed_listing(*id))
                        .collect(),
                ),
                InfoRequest::OwnListings => {
                    let own = self.0.own.listings().unwrap_or_default();
                    InfoResponse::Listings(own.into_iter().take(limits::INFO_ITEMS_MAX).collect())
                }
                InfoRequest::Blob(hash) => InfoResponse::Blob(self.at_hand(hash).map(Into::into)),
                InfoRequest::Search(search) => {
                    self.answer_search(question.peer, search.clone(), question.reply);
                    continue;
                }
                InfoRequest::Records(_) | InfoRequest::Push(_) | InfoRequest::Peers => {
                    InfoResponse::refused("answered by the network itself")
                }
            };
            question.reply.send(answer);
        }
    }

    pub(super) fn signed_listing(&self, id: ServiceId) -> Option<Signed<Listing>> {
        match self.0.own.service(id) {
            Some(own) => Some(own.known().listing().to_signed()),
            None => self.0.store.listing_signed(id).ok().flatten(),
        }
    }

    /// A listing is shown as online while its owner's record is known, and its bringer knows it best.
    async fn ask_for_records(&self, peer: Address) {
        let mut unknown = self.0.store.owners_missing(clock::now_secs(), OWNERS_ASKED_MAX);
        while !unknown.is_empty() {
            let rest = unknown.split_off(unknown.len().min(limits::INFO_ITEMS_MAX));
            if self.0.network.fetch_records(peer, unknown).await.is_err() {
                return;
            }
            unknown = rest;
        }
    }
}

/// Decides whether an own listing is not stored. One that is known may be in memory alone, until the file is opened again.
fn is_unstored(verdict: &store::Verdict, failing: Option<store::Failing>, was_unstored: bool) -> bool {
    match verdict {
        store::Verdict::Refused(store::Reason::Storage) => true,
        store::Verdict::Known => was_unstored && failing == Some(store::Failing::Storage),
        store::Verdict::Stored | store::Verdict::Refused(_) => false,
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Somebody with whom catalogs can be compared: no one that a relay alone leads to.
fn neighbour(peer: &farthing_network::Neighbour) -> Option<Neighbour> {
    let &farthing_network::Neighbour { address, was_sought, came, since, is_relayed, .. } = peer;
    (!is_relayed).then_some(Neighbour { wallet: address, was_sought, came, since })
}

async fn exchange(
    session: &mut store::Responder,
    stream: &mut SyncStream,
) -> Result<(), CatalogSessionError> {
    while let Some(message) = receive(stream).await? {
        let is_last = message == SyncMessage::Done;
        let answer = match session.on(message, clock::now_secs()).await {
            Ok(answer) => answer,
            Err(error) => {
                stream.send(wire::encode(&SyncMessage::Refused(error.to_string())).into()).await?;
                return Err(error.into());
            }
        };
        stream.send(wire::encode(&answer).into()).await?;
        if is_last {
            return Ok(());
        }
    }
    Ok(())
}

async fn receive(stream: &mut SyncStream) -> Result<Option<SyncMessage>, CatalogSessionError> {
    let Some(frame) = stream.recv().await else { return Ok(None) };
    wire::decode(&frame).map(Some).map_err(|error| CatalogSessionError::Malformed(error.to_string()))
}
