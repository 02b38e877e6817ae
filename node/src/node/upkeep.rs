//! Upkeep that a running node does now and then.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use farthing_chain::{ChainHandle, ChainKind, Landed, TxHash};
use farthing_discovery::Catalog;
use farthing_ledger::{Ledger, LedgerError, Namespace, Position, Retention, Standing, Transaction, Window};
use farthing_network::NetworkHandle;
use farthing_os::clock;
use farthing_owner::book::{Book, PayeeChannel};
use farthing_protocol::Address;
use farthing_shared::chain_view;

use crate::{consumer::channels::PayerChannels, handles::Handles, secrets::Secrets};

/// Doubled with each rise.
const RISES_AFTER: Duration = Duration::from_secs(5);
const RISES_AFTER_MAX: Duration = Duration::from_secs(600);
const PRUNE_EVERY: Duration = Duration::from_secs(3600);
/// A new channel is used at once, and a stranger's call may have to wait.
const FAVOUR_EVERY: Duration = Duration::from_secs(2);
const ASK_EVERY: Duration = Duration::from_secs(60);
/// No chain is that late to say for good what is in a block.
const ASK_FOR_SECS: u64 = 86_400;
const ASKED_AT_ONCE: usize = 64;
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

/// Publishes anew when others turn out to know later versions of what is offered. Two nodes of one wallet would have no
/// end of it, so it takes more and more time.
pub(super) async fn rise_above_others(handles: Handles) {
    let mut pause = RISES_AFTER;
    loop {
        handles.catalog.overtaken().await;
        handles.publish().await;
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RISES_AFTER_MAX);
    }
}

/// Reads when each secret was last presented, as far as it was stored.
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

/// Keeps places of the network free for those whose channels hold something, and for owners, and the listings of those that are paid.
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
        // An emptied channel would take places for good, and pays for nothing.
        let pays = |channel: &PayeeChannel| channel.state.deposited > channel.state.claimed;
        let paying = book.all().into_iter().filter(|(_, channel)| pays(channel));
        let consumers = paying.map(|(_, channel)| channel.config.payer);
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

/// Asks the chain again where the transactions of the last day are: the block that had one may have been replaced, and its
/// receipt may have been an endpoint's invention. After a reorganisation, and a start, also about those that were to stay.
pub(super) async fn hold_against_chain(ledger: Ledger, chain: ChainHandle) {
    let is_local = chain.spec().kind == ChainKind::Local;
    let every = if is_local { ASK_EVERY / 60 } else { ASK_EVERY };
    let mut all_asked_at = None;
    loop {
        tokio::time::sleep(every).await;
        let head = *chain.head().borrow();
        let Some(head) = head else { continue };
        let asks_all = all_asked_at != Some(head.reorganisations);
        match ask_again(&ledger, &chain, asks_all).await {
            Ok(true) => all_asked_at = Some(head.reorganisations),
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "earlier transactions are not read or noted"),
        }
    }
}

/// Asks about the transactions on which the chain has not had the last word, or about all. `false` while the chain cannot say
/// yet of one that was to stay where it is now.
async fn ask_again(ledger: &Ledger, chain: &ChainHandle, asks_all: bool) -> Result<bool, LedgerError> {
    let window = Window {
        before: Position::start_of(u64::MAX),
        from_secs: clock::now_secs().saturating_sub(ASK_FOR_SECS),
        limit: ASKED_AT_ONCE,
        scan_max: usize::MAX,
    };
    // An endpoint that is away is asked again the next time.
    let Ok(settled) = chain.settled_block().await else { return Ok(false) };
    let mut are_told = true;
    let keep = |row: &Transaction| asks_all || is_asked(row, settled);
    for (_, transaction) in ledger.transactions_in(&window, keep)?.rows {
        if transaction.block > settled {
            are_told &= is_open(&transaction);
            continue;
        }
        let Ok(landed) = chain.landed(TxHash(transaction.hash)).await else {
            are_told = false;
            continue;
        };
        if let Some(corrected) = corrected(&transaction, landed) {
            ledger.correct_transaction(corrected).await?;
        }
    }
    Ok(are_told)
}

/// Returns whether the chain has the last word on a transaction now, and has not said it.
fn is_asked(transaction: &Transaction, settled: u64) -> bool {
    transaction.block <= settled && is_open(transaction)
}

const fn is_open(transaction: &Transaction) -> bool {
    matches!(transaction.standing, None | Some(Standing::Nowhere))
}

/// Returns what is to be noted of a transaction instead, if anything. One that is nowhere is asked about on, because an
/// endpoint can be wrong in that, too.
fn corrected(transaction: &Transaction, landed: Option<Landed>) -> Option<Transaction> {
    let noted = transaction.clone();
    let corrected = match landed {
        Some(Landed { block, fee_wei, succeeded }) if block == noted.block => {
            let standing = if succeeded { Standing::Stays } else { Standing::Failed };
            Transaction { fee_wei: fee_wei.to_be_bytes(), standing: Some(standing), ..noted }
        }
        // It is in another block now, which may be replaced as well.
        Some(Landed { block, .. }) => Transaction { block, standing: None, ..noted },
        None => Transaction { standing: Some(Standing::Nowhere), ..noted },
    };
    (corrected != *transaction).then_some(corrected)
}

#[cfg(test)]
mod tests {
    use farthing_chain::{Chain, ChainSpec, ChainStatus};
    use farthing_protocol::{SecretKey, Usdc};
    use farthing_testnet::{LocalChain, anvil::Anvil, rpc};
    use redb::backends::InMemoryBackend;
    use serde_json::json;

    use super::*;
    use crate::journal::LedgerJournal;

    #[test]
    fn what_the_chain_says_for_good_is_told_and_what_is_nowhere_is_asked_about_on() {
        let noted = Transaction {
            hash: [1; 32],
            block: 7,
            time_secs: 0,
            purpose: "deposit".to_owned(),
            channel: None,
            peer: None,
            amount: Usdc::ZERO,
            wei: [0; 16],
            fee_wei: 99_u128.to_be_bytes(),
            standing: None,
        };
        let there = |block| Some(Landed { block, fee_wei: 5, succeeded: true });
        assert!(is_asked(&noted, 7) && !is_asked(&noted, 6), "its block may be replaced yet");
        let lost = corrected(&noted, None).unwrap();
        assert!(is_asked(&lost, 7));
        assert_eq!(lost.standing, Some(Standing::Nowhere));
        assert_eq!(corrected(&lost, None), None, "nothing is written again");
        let moved = corrected(&lost, there(9)).unwrap();
        assert_eq!((moved.block, moved.standing), (9, None));
        let stays = corrected(&moved, there(9)).unwrap();
        assert_eq!((stays.fee_wei, stays.standing), (5_u128.to_be_bytes(), Some(Standing::Stays)));
        assert!(!is_asked(&stays, 9));
        let failed = corrected(&moved, Some(Landed { block: 9, fee_wei: 5, succeeded: false })).unwrap();
        assert_eq!(failed.standing, Some(Standing::Failed));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_transaction_that_was_to_stay_and_that_the_chain_takes_back_is_told_as_nowhere() {
        let local = LocalChain::start().await.unwrap();
        let key = SecretKey::from_bytes(&[1; 32]).unwrap();
        local.fund(key.address(), Usdc::from_micros(1_000)).await.unwrap();
        let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
        let spec = farthing_chain::local(local.rpc_url(), Anvil::CHAIN_ID, local.token);
        let spec = ChainSpec { poll_interval_ms: 50, ..spec };
        let chain = Chain::start(spec, key, Arc::new(LedgerJournal(ledger.clone()))).await.unwrap();
        chain.balances().wait_for(Option::is_some).await.unwrap();
        chain.status().wait_for(|status| *status == ChainStatus::Ready).await.unwrap();
        chain.send_usdc(Address::from_bytes([2; 20]), Usdc::from_micros(1)).await.unwrap();

        let window = Window {
            before: Position::start_of(u64::MAX),
            from_secs: 0,
            limit: usize::MAX,
            scan_max: usize::MAX,
        };
        let standing = || ledger.transactions_in(&window, |_| true).unwrap().rows[0].1.standing;
        let until = async |wanted: Standing| {
            let told = async {
                while standing() != Some(wanted) {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(60), told).await.unwrap();
        };
        let holding = tokio::spawn(hold_against_chain(ledger.clone(), chain.clone()));
        until(Standing::Stays).await;
        rpc::call(&local.rpc_url(), "anvil_reorg", json!([1, []])).await.unwrap();
        until(Standing::Nowhere).await;
        holding.abort();
        chain.shutdown().await;
    }
}
