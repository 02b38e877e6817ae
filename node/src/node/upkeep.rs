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
/// Doubled with each attempt that stores nothing.
const PUBLISHES_AFTER: Duration = Duration::from_secs(5);
const PUBLISHES_AFTER_MAX: Duration = Duration::from_secs(60);
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

/// Publishes again what the catalog could not store, as on a full disk, until it does: nothing else may change for days.
pub(super) async fn publish_unstored(handles: Handles) {
    let mut pause = PUBLISHES_AFTER;
    loop {
        tokio::time::sleep(pause).await;
        if handles.catalog.storage().unstored.is_empty() {
            pause = PUBLISHES_AFTER;
            continue;
        }
        handles.publish().await;
        pause = (pause * 2).min(PUBLISHES_AFTER_MAX);
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
            Err(error) => tracing::warn!(%error, "the last use of secrets could not be stored"),
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
    let (mut favoured, mut kept) = (BTreeSet::new(), None);
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
        // Also that there are none.
        if kept.as_ref() != Some(&owners) {
            catalog.keep_listings_of(&owners);
            kept = Some(owners);
        }
        tokio::time::sleep(FAVOUR_EVERY).await;
    }
}

/// Asks the chain again where the transactions of the last day are: the block that had one may have been replaced, and its
/// receipt may have been an endpoint's invention. After a reorganisation, and a start, also about those that were to stay. No
/// chain says anything of another one's.
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
    let here = chain.spec().chain_id;
    let keep = |row: &Transaction| match row.chain_id {
        Some(chain_id) => chain_id == here && (asks_all || is_asked(row, settled)),
        None => is_asked(row, settled),
    };
    for (_, transaction) in ledger.transactions_in(&window, keep)?.rows {
        if transaction.block > settled {
            are_told &= is_open(&transaction);
            continue;
        }
        let Ok(landed) = chain.landed(TxHash(transaction.hash)).await else {
            are_told = false;
            continue;
        };
        if let Some(corrected) = corrected(&transaction, here, landed) {
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
/// endpoint can be wrong in that, too. One that names no chain is of this one once this one has it.
fn corrected(transaction: &Transaction, here: u64, landed: Option<Landed>) -> Option<Transaction> {
    // It may be where the settings pointed before.
    if landed.is_none() && transaction.chain_id.is_none() {
        return None;
    }
    let noted = Transaction { chain_id: Some(here), ..transaction.clone() };
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

    const HERE: u64 = Anvil::CHAIN_ID;

    fn noted(number: u8, chain_id: Option<u64>, standing: Option<Standing>) -> Transaction {
        Transaction {
            hash: [number; 32],
            block: 7,
            time_secs: clock::now_secs(),
            purpose: "deposit".to_owned(),
            channel: None,
            peer: None,
            amount: Usdc::ZERO,
            wei: [0; 16],
            fee_wei: 99_u128.to_be_bytes(),
            standing,
            chain_id,
        }
    }

    /// A chain on which a wallet has sent something, and the wallet's ledger.
    async fn sent() -> (LocalChain, ChainHandle, Ledger) {
        let local = LocalChain::start().await.unwrap();
        let key = SecretKey::from_bytes(&[1; 32]).unwrap();
        local.fund(key.address(), Usdc::from_micros(1_000)).await.unwrap();
        let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
        let spec = farthing_chain::local(local.rpc_url(), HERE, local.token);
        let spec = ChainSpec { poll_interval_ms: 50, ..spec };
        let chain = Chain::start(spec, key, Arc::new(LedgerJournal(ledger.clone()))).await.unwrap();
        chain.balances().wait_for(Option::is_some).await.unwrap();
        chain.status().wait_for(|status| *status == ChainStatus::Ready).await.unwrap();
        chain.send_usdc(Address::from_bytes([2; 20]), Usdc::from_micros(1)).await.unwrap();
        (local, chain, ledger)
    }

    fn transactions(ledger: &Ledger) -> Vec<Transaction> {
        let window = Window {
            before: Position::start_of(u64::MAX),
            from_secs: 0,
            limit: usize::MAX,
            scan_max: usize::MAX,
        };
        let rows = ledger.transactions_in(&window, |_| true).unwrap().rows;
        rows.into_iter().map(|(_, row)| row).collect()
    }

    #[test]
    fn what_the_chain_says_for_good_is_told_and_what_is_nowhere_is_asked_about_on() {
        let noted = noted(1, Some(HERE), None);
        let there = |block| Some(Landed { block, fee_wei: 5, succeeded: true });
        assert!(is_asked(&noted, 7) && !is_asked(&noted, 6), "its block may be replaced yet");
        let lost = corrected(&noted, HERE, None).unwrap();
        assert!(is_asked(&lost, 7));
        assert_eq!(lost.standing, Some(Standing::Nowhere));
        assert_eq!(corrected(&lost, HERE, None), None, "nothing is written again");
        let moved = corrected(&lost, HERE, there(9)).unwrap();
        assert_eq!((moved.block, moved.standing), (9, None));
        let stays = corrected(&moved, HERE, there(9)).unwrap();
        assert_eq!((stays.fee_wei, stays.standing), (5_u128.to_be_bytes(), Some(Standing::Stays)));
        assert!(!is_asked(&stays, 9));
        let failed =
            corrected(&moved, HERE, Some(Landed { block: 9, fee_wei: 5, succeeded: false })).unwrap();
        assert_eq!(failed.standing, Some(Standing::Failed));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_transaction_that_was_to_stay_and_that_the_chain_takes_back_is_told_as_nowhere() {
        let (local, chain, ledger) = sent().await;
        let until = async |wanted: Standing| {
            let told = async {
                while transactions(&ledger)[0].standing != Some(wanted) {
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

    #[tokio::test(flavor = "multi_thread")]
    async fn a_transaction_of_another_chain_stands_as_it_is_whatever_this_one_has() {
        let (_local, chain, ledger) = sent().await;
        let own = transactions(&ledger).remove(0);
        assert_eq!(own.chain_id, Some(HERE));
        // As a program of before noted it.
        ledger.correct_transaction(Transaction { chain_id: None, ..own.clone() }).await.unwrap();
        let (elsewhere, stays) = (Some(HERE + 1), Some(Standing::Stays));
        let left = [
            Transaction { block: 1, ..noted(1, elsewhere, stays) },
            Transaction { block: 1, ..noted(2, elsewhere, None) },
            Transaction { block: 1, ..noted(3, None, stays) },
            Transaction { block: 1, ..noted(4, None, None) },
            // This chain is shorter.
            Transaction { block: u64::MAX, ..noted(5, elsewhere, stays) },
            Transaction { block: u64::MAX, ..noted(6, None, stays) },
        ];
        let gone = Transaction { block: 1, ..noted(7, Some(HERE), stays) };
        for row in left.iter().chain([&gone]) {
            ledger.note_transaction(row.clone(), None).await.unwrap();
        }
        let now = |hash: [u8; 32]| transactions(&ledger).into_iter().find(|row| row.hash == hash).unwrap();
        let asked = async {
            loop {
                let are_told = ask_again(&ledger, &chain, true).await.unwrap();
                if now(own.hash).standing.is_some() {
                    break are_told;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let are_told = tokio::time::timeout(Duration::from_secs(60), asked).await.unwrap();
        assert!(are_told, "nothing is left to ask");
        assert_eq!((now(own.hash).standing, now(own.hash).chain_id), (stays, Some(HERE)));
        assert_eq!(now(gone.hash).standing, Some(Standing::Nowhere));
        for row in left {
            assert_eq!(now(row.hash), row);
        }
        chain.shutdown().await;
    }
}
