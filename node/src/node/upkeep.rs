//! What a running node does now and then.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use farthing_chain::ChainHandle;
use farthing_ledger::{Ledger, Namespace, Retention};
use farthing_network::NetworkHandle;
use farthing_os::clock;
use farthing_protocol::Address;

use crate::{
    catalog::Catalog, chain_view, consumer::channels::PayerChannels, gateway::auth::Secrets,
    owner::book::Book,
};

const PRUNE_EVERY: Duration = Duration::from_secs(3600);
/// A new channel is used at once, and a stranger's call may have to wait.
const FAVOUR_EVERY: Duration = Duration::from_secs(2);
const USED_KEY: &[u8] = b"used";
const KEEP_USES_EVERY: Duration = Duration::from_secs(60);

/// Forgets old bodies and rows, so that the ledger stays as large as its retention.
pub(super) async fn prune(ledger: Ledger, chain: ChainHandle) {
    loop {
        tokio::time::sleep(PRUNE_EVERY).await;
        // A clock that is ahead must not make it forget which calls were made.
        let Some(now_secs) = chain_view::time_secs(&chain).map(|now| now.min(clock::now_secs())) else {
            continue;
        };
        if let Err(error) = ledger.prune(Retention::default(), now_secs).await {
            tracing::warn!(%error, "old entries of the ledger were not removed");
        }
    }
}

/// When each secret was last presented, as far as it was stored.
pub(super) fn used_before(ledger: &Ledger) -> anyhow::Result<BTreeMap<String, u64>> {
    let stored = ledger.get(Namespace::Secrets, USED_KEY)?;
    // Only a date for people: nothing depends on it.
    Ok(stored.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default())
}

/// Stores now and then when each secret was presented. Each call's own record has the secret's name and the time.
pub(super) async fn keep_uses(ledger: Ledger, secrets: Arc<Secrets>) {
    let mut stored = secrets.used();
    loop {
        tokio::time::sleep(KEEP_USES_EVERY).await;
        let used = secrets.used();
        if used == stored {
            continue;
        }
        let bytes = serde_json::to_vec(&used).unwrap_or_default();
        match ledger.put(Namespace::Secrets, USED_KEY, bytes).await {
            Ok(()) => stored = used,
            Err(error) => tracing::warn!(%error, "when secrets were used was not stored"),
        }
    }
}

/// Keeps places of the network free for those with whom channels are open, and the listings of those that are paid.
pub(super) async fn favour(
    network: NetworkHandle,
    catalog: Catalog,
    channels: Arc<PayerChannels>,
    book: Book,
) {
    let (mut favoured, mut kept) = (BTreeSet::new(), BTreeSet::new());
    loop {
        let owners: BTreeSet<Address> =
            channels.all().into_iter().map(|channel| channel.config.payee).collect();
        let consumers = book.all().into_iter().map(|(_, channel)| channel.config.payer);
        let partners: BTreeSet<Address> = consumers.chain(owners.iter().copied()).collect();
        if partners != favoured {
            network.favour(partners.iter().copied());
            favoured = partners;
        }
        if owners != kept {
            catalog.keep_listings_of(&owners);
            kept = owners;
        }
        tokio::time::sleep(FAVOUR_EVERY).await;
    }
}
