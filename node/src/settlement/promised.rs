//! Closes that owners have promised and the chain does not show yet, each with the second until which the word is
//! trusted. Durable, so that a restart neither forgets a promise nor grants it a new term.

use std::{collections::BTreeMap, sync::Arc};

use farthing_ledger::{Ledger, LedgerError, Namespace};
use farthing_protocol::ChannelId;
use parking_lot::Mutex;

/// A cheap handle.
#[derive(Clone, Debug)]
pub(super) struct Promised {
    ledger: Ledger,
    until_secs: Arc<Mutex<BTreeMap<ChannelId, u64>>>,
}

/// Tells whether a word that is trusted `until_secs` still is. A clock that was far ahead when the word was given does
/// not make it last longer than a term.
pub(super) const fn lasts(until_secs: u64, now_secs: u64, term_secs: u64) -> bool {
    let left_secs = until_secs.saturating_sub(now_secs);
    0 < left_secs && left_secs <= term_secs
}

impl Promised {
    pub(super) fn restore(ledger: Ledger) -> Result<Self, LedgerError> {
        let mut promised = BTreeMap::new();
        for (key, value) in ledger.list(Namespace::Closes)? {
            let (Ok(id), Ok(secs)) = (<[u8; 32]>::try_from(&key[..]), <[u8; 8]>::try_from(&value[..])) else {
                continue;
            };
            promised.insert(ChannelId::from_bytes(id), u64::from_be_bytes(secs));
        }
        Ok(Self { ledger, until_secs: Arc::new(Mutex::new(promised)) })
    }

    /// Notes an owner's word. Asking again does not prolong it.
    pub(super) async fn note(&self, channel: ChannelId, until_secs: u64) -> u64 {
        if let Some(until_secs) = self.until(channel) {
            return until_secs;
        }
        self.until_secs.lock().insert(channel, until_secs);
        let key = channel.as_bytes().to_vec();
        if let Err(error) = self.ledger.put(Namespace::Closes, key, until_secs.to_be_bytes().to_vec()).await {
            tracing::warn!(%channel, %error, "an owner's promise to close is forgotten at the next stop");
        }
        until_secs
    }

    /// Forgets a promise that was kept, or that the chain was asked in place of.
    pub(super) async fn forget(&self, channel: ChannelId) {
        if self.until_secs.lock().remove(&channel).is_none() {
            return;
        }
        if let Err(error) = self.ledger.delete(Namespace::Closes, channel.as_bytes().to_vec()).await {
            tracing::warn!(%channel, %error, "an owner's kept promise stays in the ledger");
        }
    }

    pub(super) fn until(&self, channel: ChannelId) -> Option<u64> {
        self.until_secs.lock().get(&channel).copied()
    }

    pub(super) fn all(&self) -> Vec<(ChannelId, u64)> {
        self.until_secs.lock().iter().map(|(id, until)| (*id, *until)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::lasts;

    #[test]
    fn an_owners_word_lasts_a_term_whatever_the_clock_showed_when_it_was_given() {
        assert!(lasts(1_600, 1_000, 600), "just given");
        assert!(lasts(1_600, 1_599, 600));
        assert!(!lasts(1_600, 1_600, 600), "the term is over");
        assert!(!lasts(1_601, 1_000, 600), "given while the clock was ahead");
        assert!(!lasts(u64::MAX, 1_000, 600));
    }
}
