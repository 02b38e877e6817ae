//! Channels of another contract or chain than the settings name. A signature binds both: what this node signs now says
//! nothing on such a channel, and its payer would take it for a forgery.

use farthing_ledger::{Ledger, LedgerError};
use farthing_protocol::{ChannelId, Domain, Refusal, RefusalCode};

use super::{Owner, book::Book};

impl Owner {
    /// Checks that what this node signs counts on a channel.
    ///
    /// # Errors
    /// An `Unavailable` refusal, which ends no call: once the settings are set back, its end is told.
    pub(super) fn check_signs_on(&self, channel: ChannelId) -> Result<(), Refusal> {
        check((&self.0.book, &self.0.ledger), self.0.signer.domain(), channel)
    }
}

/// Checks it by the channel's terms. Another token than the settings name changes no signature, and a channel that is not
/// known is taken for one of here.
fn check((book, ledger): (&Book, &Ledger), domain: &Domain, channel: ChannelId) -> Result<(), Refusal> {
    if channel == ChannelId::NONE {
        return Ok(());
    }
    let config = match book.terms(channel) {
        Some((config, ..)) => Some(config),
        // It may have lost its place.
        None => ledger.payee_channel(channel).map_err(|error| unread(&error))?.map(|row| row.config),
    };
    if config.is_none_or(|config| config.id(domain) == channel) { Ok(()) } else { Err(elsewhere()) }
}

fn elsewhere() -> Refusal {
    let detail = "the owner's settings name another chain or contract than this channel's; the owner answers for this \
                  channel only after they are set back";
    Refusal::new(RefusalCode::Unavailable, detail)
}

fn unread(error: &LedgerError) -> Refusal {
    tracing::error!(%error, "a channel cannot be read");
    Refusal::new(RefusalCode::Unavailable, "the owner's books cannot be read")
}

#[cfg(test)]
mod tests {
    use farthing_ledger::{OpenMode, PayeeChannelFacts};
    use farthing_protocol::{Address, Usdc};

    use super::*;
    use crate::book::tests::terms;

    #[tokio::test]
    async fn nothing_is_signed_on_a_channel_of_another_contract_or_chain_in_its_place_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(&folder.path().join("ledger.redb"), OpenMode::Create).unwrap();
        let [payer, payee, contract, other] = [1, 2, 3, 4].map(|n| Address::from_bytes([n; 20]));
        let domain = Domain::new(1, contract);
        let config = terms(payer, payee);
        let id = config.id(&domain);
        let (deposited, claimed) = (Usdc::from_micros(8_000), Usdc::ZERO);
        let facts = PayeeChannelFacts { id, config, deposited, claimed, closing: false };
        let row = ledger.put_payee_channel(facts).await.unwrap();
        let (placed, without_place) = (Book::with_places(1), Book::with_places(1));
        placed.restore(&row, None, true);
        for book in [placed, without_place] {
            let code = |domain: &Domain, channel| {
                check((&book, &ledger), domain, channel).err().map(|refusal| refusal.code)
            };
            assert_eq!(code(&domain, id), None);
            for moved in [Domain::new(1, other), Domain::new(2, contract)] {
                assert_eq!(code(&moved, id), Some(RefusalCode::Unavailable));
                assert_eq!(code(&moved, ChannelId::NONE), None, "a free call has no channel");
                assert_eq!(code(&moved, ChannelId::from_bytes([9; 32])), None, "it is not known");
            }
        }
    }
}
