//! Small documents of other modules: they define the form, the ledger keeps the bytes durable.
//!
//! A namespace belongs to one module. Keys are bytes in the order that module wants them listed in.

use bytes::Bytes;
use redb::WriteTransaction;

use crate::{
    Ledger,
    error::{Result, within},
    tables::DOCUMENTS,
};

/// A document: large enough for an uploaded API description, small enough for one transaction.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// A document's key.
pub const DOCUMENT_KEY_BYTES_MAX: usize = 256;

/// The kind of a document. The numbers are stored and never change meaning; 1, 2, 5 and 7 were given once and are not
/// given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Namespace {
    /// The owner's registry of services.
    Services = 0,
    /// The journal of chain transactions.
    Transactions = 3,
    /// Settings made in the console.
    Settings = 4,
    /// The times at which consumer secrets were last presented, by name; the secrets are elsewhere.
    Secrets = 6,
    /// Last listings of services that the owner retired.
    Retired = 8,
    /// Prices that were accepted for calls of a service, by service and operation.
    Prices = 9,
    /// Closes that owners have promised, by channel.
    Closes = 10,
    /// Outcomes of the latest calls of services, by service.
    Conduct = 11,
    /// Deposits that calls made into emptied channels, by owner.
    Refills = 12,
    /// Deposits of the last day that this node has decided on, by channel.
    Deposits = 13,
    /// Requests that the user saved, by their ids.
    Requests = 14,
    /// Sales that are paid by a transaction of their own, by payer and nonce, until a while after their ends.
    Sales = 15,
    /// Bodies of their answers.
    SaleBodies = 16,
    /// Deposits that were signed for owners to bring, by channel.
    SignedDeposits = 17,
    /// Servers of others that this node pays by transfers, by the ids that they have here.
    Foreign = 18,
    /// Payments to them, by call id, until a while after their ends.
    Payments = 19,
    /// Names that the user gave to owners, by wallet.
    Petnames = 20,
    /// Services that the user starred, by their ids.
    Starred = 21,
    /// Bytes that travelled between this node and others, by hour and by day.
    Traffic = 22,
    /// Calls of agents whose answers have not arrived, by the hash of secret and call id.
    AgentCalls = 23,
}

/// One change of [`Ledger::put_many`]; `value: None` deletes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    pub namespace: Namespace,
    pub key: Bytes,
    pub value: Option<Bytes>,
}

impl Ledger {
    /// Stores a document durably.
    ///
    /// # Errors
    /// [`crate::LedgerError::TooLarge`], or a failure of storage.
    pub async fn put(
        &self,
        namespace: Namespace,
        key: impl Into<Bytes>,
        value: impl Into<Bytes>,
    ) -> Result<()> {
        self.put_many(vec![Document { namespace, key: key.into(), value: Some(value.into()) }]).await
    }

    /// Stores and deletes several documents together: all or none.
    pub async fn put_many(&self, documents: Vec<Document>) -> Result<()> {
        for document in &documents {
            within("the document's key", document.key.len(), DOCUMENT_KEY_BYTES_MAX)?;
        }
        // Together, because they share one transaction.
        let bytes = documents.iter().filter_map(|d| d.value.as_ref()).map(Bytes::len).sum();
        within("the document", bytes, DOCUMENT_BYTES_MAX)?;
        self.write(move |tx| write(tx, &documents)).await
    }

    /// Deletes a document durably; deleting what is not there is fine.
    pub async fn delete(&self, namespace: Namespace, key: impl Into<Bytes>) -> Result<()> {
        self.put_many(vec![Document { namespace, key: key.into(), value: None }]).await
    }

    pub fn get(&self, namespace: Namespace, key: &[u8]) -> Result<Option<Bytes>> {
        let value = self.snapshot().documents()?.get((namespace as u8, key))?;
        Ok(value.map(|value| Bytes::copy_from_slice(value.value())))
    }

    /// Every document of a namespace, in the order of keys.
    pub fn list(&self, namespace: Namespace) -> Result<Vec<(Bytes, Bytes)>> {
        self.read(|tx| {
            let mut documents = Vec::new();
            for entry in tx.open_table(DOCUMENTS)?.range((namespace as u8, [].as_slice())..)? {
                let (key, value) = entry?;
                let (of, key) = key.value();
                if of != namespace as u8 {
                    break;
                }
                documents.push((Bytes::copy_from_slice(key), Bytes::copy_from_slice(value.value())));
            }
            Ok(documents)
        })
    }
}

fn write(tx: &WriteTransaction, documents: &[Document]) -> Result<()> {
    let mut table = tx.open_table(DOCUMENTS)?;
    for Document { namespace, key, value } in documents {
        let key = (*namespace as u8, key.as_ref());
        match value {
            Some(value) => drop(table.insert(key, value.as_ref())?),
            None => drop(table.remove(key)?),
        }
    }
    Ok(())
}
