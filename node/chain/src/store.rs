//! This wallet's part of the journal: names that carry chain and wallet, and the records of both actors.

use std::sync::Arc;

use farthing_values::{Address, ChannelConfig, ChannelId};

use crate::{
    entry::Entry,
    journal::{ENTRY_BYTES_MAX, Journal, JournalError, Mined},
};

#[derive(Clone)]
pub(crate) struct Store {
    journal: Arc<dyn Journal>,
    prefix: String,
}

/// The state that the journal remembers.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    /// By nonce, the lowest first.
    pub entries: Vec<Entry>,
    pub channels: Vec<ChannelConfig>,
    /// The block up to which events were read.
    pub cursor: Option<u64>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Store {
    pub(crate) fn new(journal: Arc<dyn Journal>, chain_id: u64, wallet: Address) -> Self {
        Self { journal, prefix: format!("{chain_id}/{wallet}/") }
    }

    pub(crate) async fn load(&self) -> Result<Remembered, JournalError> {
        let mut remembered = Remembered::default();
        for (name, bytes) in self.journal.all().await? {
            let Some(name) = name.strip_prefix(&self.prefix) else { continue };
            let damaged = |_| JournalError::Failed(format!("the record {name} cannot be read"));
            match name.split_once('/').map_or(name, |(kind, _)| kind) {
                "tx" => remembered.entries.push(minicbor::decode(&bytes).map_err(damaged)?),
                "channel" => remembered.channels.push(minicbor::decode(&bytes).map_err(damaged)?),
                "cursor" => remembered.cursor = Some(minicbor::decode(&bytes).map_err(damaged)?),
                _ => tracing::warn!(name, "the journal holds a record of an unknown kind"),
            }
        }
        remembered.entries.sort_by_key(|entry| entry.nonce);
        Ok(remembered)
    }

    pub(crate) async fn put_entry(&self, entry: &Entry) -> Result<(), JournalError> {
        self.put(format!("tx/{:020}", entry.nonce), entry).await
    }

    pub(crate) async fn delete_entry(&self, nonce: u64) -> Result<(), JournalError> {
        self.journal.delete(format!("{}tx/{nonce:020}", self.prefix)).await
    }

    /// For people to look at: when it cannot be kept, nothing else is held up.
    pub(crate) async fn note(&self, mined: Mined) {
        if let Err(error) = self.journal.mined(mined).await {
            tracing::warn!(%error, "a transaction is missing in the history");
        }
    }

    pub(crate) async fn put_channel(
        &self,
        id: ChannelId,
        config: &ChannelConfig,
    ) -> Result<(), JournalError> {
        self.put(format!("channel/{id}"), config).await
    }

    pub(crate) async fn delete_channel(&self, id: ChannelId) -> Result<(), JournalError> {
        self.journal.delete(format!("{}channel/{id}", self.prefix)).await
    }

    pub(crate) async fn put_cursor(&self, block: u64) -> Result<(), JournalError> {
        self.put("cursor".to_owned(), &block).await
    }

    async fn put(&self, name: String, record: &impl minicbor::Encode<()>) -> Result<(), JournalError> {
        let bytes = minicbor::to_vec(record).map_err(|error| JournalError::Refused(error.to_string()))?;
        if bytes.len() > ENTRY_BYTES_MAX {
            let why = format!("the record {name} is too long ({} bytes)", bytes.len());
            return Err(JournalError::Refused(why));
        }
        self.journal.put(format!("{}{name}", self.prefix), bytes).await
    }
}
