//! The chain's transaction journal, kept in the ledger.

use farthing_chain::{Journal, JournalError, Mined};
use farthing_ledger::{Ledger, LedgerError, Namespace, Transaction};
use farthing_os::clock;
use futures::future::BoxFuture;

/// [`Journal`] over the ledger's documents.
#[derive(Clone, Debug)]
pub struct LedgerJournal(pub Ledger);

impl Journal for LedgerJournal {
    fn put(&self, id: String, bytes: Vec<u8>) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            // A commit that fails may be found after a restart; of what comes after it nothing is written.
            if let Some(closed) = self.0.closed() {
                return Err(JournalError::Refused(closed.to_string()));
            }
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
            purpose: mined.purpose.words().to_owned(),
            channel: mined.channel,
            peer: mined.peer,
            amount: mined.amount,
            wei: mined.wei.to_be_bytes(),
            fee_wei: mined.fee_wei.to_be_bytes(),
            standing: None,
            chain_id: Some(mined.chain_id),
        };
        Box::pin(async move {
            let noted = self.0.note_transaction(transaction, mined.claims_on).await;
            noted.map_err(|error| failed(&error))
        })
    }
}

fn failed(error: &LedgerError) -> JournalError {
    JournalError::Failed(error.to_string())
}
