//! The chain's transaction journal, kept in the ledger, and what the history tells of transactions, held against the
//! chain.

use std::time::Duration;

use farthing_chain::{ChainHandle, ChainKind, Journal, JournalError, Landed, Mined, TxHash};
use farthing_ledger::{Ledger, LedgerError, Namespace, Position, Standing, Transaction, Window};
use farthing_os::clock;
use futures::future::BoxFuture;

/// [`Journal`] over the ledger's documents.
#[derive(Clone, Debug)]
pub struct LedgerJournal(pub Ledger);

impl Journal for LedgerJournal {
    fn put(&self, id: String, bytes: Vec<u8>) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            self.0.put(Namespace::Transactions, id.into_bytes(), bytes).await.map_err(|error| failed(&error))
        })
    }

    fn all(&self) -> BoxFuture<'_, Result<Vec<(String, Vec<u8>)>, JournalError>> {
        Box::pin(async move {
            let entries = self.0.list(Namespace::Transactions).map_err(|error| failed(&error))?;
            Ok(entries
                .into_iter()
                .map(|(key, value)| (String::from_utf8_lossy(&key).into_owned(), value.to_vec()))
                .collect())
        })
    }

    fn delete(&self, id: String) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            self.0.delete(Namespace::Transactions, id.into_bytes()).await.map_err(|error| failed(&error))
        })
    }

    fn mined(&self, mined: Mined) -> BoxFuture<'_, Result<(), JournalError>> {
        let transaction = Transaction {
            hash: mined.hash.0,
            block: mined.block,
            time_secs: clock::now_secs(),
            purpose: mined.purpose.to_owned(),
            channel: mined.channel,
            peer: mined.peer,
            amount: mined.amount,
            wei: mined.wei.to_be_bytes(),
            fee_wei: mined.fee_wei.to_be_bytes(),
            standing: None,
        };
        Box::pin(async move { self.0.note_transaction(transaction).await.map_err(|error| failed(&error)) })
    }
}

const ASK_EVERY: Duration = Duration::from_secs(60);
/// The chain was never that late to say for good what is in a block.
const ASK_FOR_SECS: u64 = 86_400;
const ASKED_AT_ONCE: usize = 64;

/// Asks the chain again where the transactions of the last day are: the block that had one may have been replaced, and its
/// receipt may have been an endpoint's invention.
pub async fn hold_against_chain(ledger: Ledger, chain: ChainHandle) {
    let is_local = chain.spec().kind == ChainKind::Local;
    let every = if is_local { ASK_EVERY / 60 } else { ASK_EVERY };
    loop {
        tokio::time::sleep(every).await;
        if let Err(error) = ask_again(&ledger, &chain).await {
            tracing::warn!(%error, "earlier transactions are not read or noted");
        }
    }
}

async fn ask_again(ledger: &Ledger, chain: &ChainHandle) -> Result<(), LedgerError> {
    let window = Window {
        before: Position::start_of(u64::MAX),
        from_secs: clock::now_secs().saturating_sub(ASK_FOR_SECS),
        limit: ASKED_AT_ONCE,
        scan_max: usize::MAX,
    };
    let is_open = |row: &Transaction| matches!(row.standing, None | Some(Standing::Nowhere));
    for (_, transaction) in ledger.transactions_in(&window, is_open)?.rows {
        let landed = chain.landed(TxHash(transaction.hash), transaction.block).await;
        // An endpoint that is away says so of each, and one that does not answer for one may do so for the next.
        let Ok(landed) = landed else { continue };
        if let Some(corrected) = corrected(&transaction, landed) {
            ledger.correct_transaction(corrected).await?;
        }
    }
    Ok(())
}

/// What is to be noted of a transaction instead. One that is nowhere is asked about on, because an endpoint can be wrong in
/// that, too.
fn corrected(transaction: &Transaction, landed: Landed) -> Option<Transaction> {
    let noted = transaction.clone();
    let corrected = match landed {
        Landed::NotYet => return None,
        Landed::In { block, fee_wei, succeeded } if block == noted.block => {
            let standing = if succeeded { Standing::Stays } else { Standing::Failed };
            Transaction { fee_wei: fee_wei.to_be_bytes(), standing: Some(standing), ..noted }
        }
        // It is in another block now, which may be replaced as well.
        Landed::In { block, .. } => Transaction { block, standing: None, ..noted },
        Landed::Nowhere => Transaction { standing: Some(Standing::Nowhere), ..noted },
    };
    (corrected != *transaction).then_some(corrected)
}

fn failed(error: &LedgerError) -> JournalError {
    JournalError(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_chain_says_for_good_is_told_and_what_is_nowhere_is_asked_about_on() {
        let noted = Transaction {
            hash: [1; 32],
            block: 7,
            time_secs: 0,
            purpose: "deposit".to_owned(),
            channel: None,
            peer: None,
            amount: farthing_protocol::Usdc::ZERO,
            wei: [0; 16],
            fee_wei: 99_u128.to_be_bytes(),
            standing: None,
        };
        let there = |block| Landed::In { block, fee_wei: 5, succeeded: true };
        assert_eq!(corrected(&noted, Landed::NotYet), None);
        let lost = corrected(&noted, Landed::Nowhere).unwrap();
        assert_eq!(lost.standing, Some(Standing::Nowhere));
        assert_eq!(corrected(&lost, Landed::Nowhere), None, "nothing is written again");
        let moved = corrected(&lost, there(9)).unwrap();
        assert_eq!((moved.block, moved.standing), (9, None));
        let stays = corrected(&moved, there(9)).unwrap();
        assert_eq!((stays.fee_wei, stays.standing), (5_u128.to_be_bytes(), Some(Standing::Stays)));
        let failed = corrected(&moved, Landed::In { block: 9, fee_wei: 5, succeeded: false }).unwrap();
        assert_eq!(failed.standing, Some(Standing::Failed));
    }
}
