//! The catalog of one simulated node: the node's own code, over files of its own.
//!
//! It hears what is gossiped, compares itself with neighbours as the node's agenda says, and answers those that compare
//! themselves with it. What it does not do is fetch details, which simulated listings do not have.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Result, ensure};
use farthing_catalog as store;
use farthing_discovery::{Catalog, News};
use farthing_ledger::{Ledger, OpenMode};
use farthing_network::{Inbound, NetworkHandle};
use farthing_owner::{registry::Registry, upstream::UpstreamOptions};
use farthing_protocol::{Address, Domain, Listing, SecretKey, ServiceId, Signed, shards::Shards};
use farthing_wallet::Wallet;
use tokio::sync::{
    broadcast::{self, error::RecvError},
    mpsc,
};

use super::{arrivals::Arrivals, network_name, now_secs};

/// News of this node waiting to be passed on.
const NEWS_MAX: usize = 16;

/// A handle to the catalog of a running node.
#[derive(Debug, Clone)]
pub struct Holding {
    catalog: Catalog,
    store: store::Catalog,
    network: NetworkHandle,
    news: mpsc::Sender<News>,
}

impl Holding {
    /// Opens a catalog of these shards within `limits` in `folder` and lets it take its part in the network, on the runtime that
    /// this is called on. Listings of others are noted in `arrivals` when they are stored.
    pub async fn open(
        folder: PathBuf,
        key: SecretKey,
        handle: NetworkHandle,
        inbound: Inbound,
        arrivals: Arrivals,
        shards: Shards,
        limits: store::Limits,
    ) -> Result<Self> {
        let own = key.address();
        let opening = move || files(&folder, key, shards, limits);
        let (store, registry) = tokio::task::spawn_blocking(opening).await??;
        let (catalog, mut told) = Catalog::new(
            store.clone(),
            handle.clone(),
            network_name().as_str().to_owned(),
            Arc::new(registry),
        );
        let (news, heard) = mpsc::channel(NEWS_MAX);
        tokio::spawn(note(store.clone(), store.changes(), own, arrivals));
        let forwarding = news.clone();
        tokio::spawn(async move {
            while let Some(news) = told.recv().await {
                // When many wait, this one is passed on with them.
                let _ = forwarding.try_send(news);
            }
        });
        let Inbound { calls, info, syncs, listings } = inbound;
        let [hearing, compared, answering, agreeing, watching] = std::array::from_fn(|_| catalog.clone());
        tokio::spawn(async move { hearing.hear(listings).await });
        tokio::spawn(async move { compared.be_compared(syncs).await });
        tokio::spawn(async move {
            // Nobody calls anybody here.
            let _calls = calls;
            answering.answer(info).await;
        });
        tokio::spawn(async move { agreeing.agree(heard).await });
        tokio::spawn(async move { watching.watch_owners().await });
        Ok(Self { catalog, store, network: handle, news })
    }

    /// Returns the catalog as the rest of a node uses it.
    pub const fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Takes a listing of this node's own and passes it on, as the node does when a service is published.
    pub async fn publish(&self, listing: &Signed<Listing>) -> Result<()> {
        let verdicts = self.store.offer(vec![listing.clone()], store::Source::Own, now_secs()).await;
        ensure!(
            verdicts == [store::Verdict::Stored],
            "one of this node's listings could not be stored: {verdicts:?}"
        );
        // Without gossip there is nobody to hear.
        self.network.gossip_listing(listing).await;
        // When many wait, this one is passed on with them.
        let _ = self.news.try_send(News::Own);
        Ok(())
    }
}

/// A catalog, and an owner's registry without a service.
fn files(
    folder: &Path,
    key: SecretKey,
    shards: Shards,
    limits: store::Limits,
) -> Result<(store::Catalog, Registry)> {
    let network = network_name();
    let options = store::Options { shards, limits, ..store::Options::new(network.as_str(), key.address()) };
    let (store, opened) = store::Catalog::open(folder, options)?;
    ensure!(opened.notices.is_empty(), "a fresh catalog is damaged: {:?}", opened.notices);
    let ledger = Ledger::open(&folder.join("ledger.redb"), OpenMode::Create)?;
    // No money moves, so any contract will do.
    let signer = Wallet::from_key(key).signer(Domain::new(1, Address::ZERO));
    let registry =
        Registry::load(signer, ledger, network.as_str().to_owned(), Vec::new(), UpstreamOptions::default())?;
    Ok((store, registry))
}

async fn note(
    store: store::Catalog,
    mut changes: broadcast::Receiver<ServiceId>,
    own: Address,
    arrivals: Arrivals,
) {
    loop {
        match changes.recv().await {
            Ok(service) => {
                let stored = store.listing_signed(service).ok().flatten();
                let is_own =
                    |listing: &Signed<Listing>| listing.claimed().is_ok_and(|claimed| claimed.owner == own);
                if let Some(listing) = stored.filter(|listing| !is_own(listing)) {
                    arrivals.note(&listing);
                }
            }
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}
