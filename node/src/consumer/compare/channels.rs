//! The channels with an owner: what it earned on each is what was charged here (invariant M4), and it holds no promise
//! that these books do not know.

use std::time::Duration;

use farthing_control::counted;
use farthing_ledger::{LedgerError, PayerChannelRow};
use farthing_protocol::{
    Address, CallMessage, CallReply, ChannelId, Domain, RefusalCode, Usdc, Voucher, call::ChannelSync,
};
use farthing_shared::blocking::run_blocking;

use super::{BookComparer, BookComparison, PAGE_TIMEOUT};
use crate::consumer::{BooksError, NotTold, evidence::newest_word, pauses::FORGOTTEN_MAX};

/// Channels of one owner that are asked about: those that hold money first.
const CHANNELS_MAX: usize = 64;

/// The result of comparing the channels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelComparison {
    pub compared: u64,
    /// The channels that were not compared, each with the reason.
    pub left_out: Vec<String>,
    /// The totals of the compared ones, here and there.
    pub spent_here: Usdc,
    pub earned_there: Usdc,
}

/// A difference in the books of one channel at rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unequal {
    /// Calls and adjustments here, and what its owner earned.
    Total { here: Usdc, there: Usdc },
    /// Its owner holds a promise of this wallet that these books do not have.
    Signed { here: Usdc, there: Usdc },
    /// Its owner claims to hold a promise that this wallet did not sign.
    Forged { there: Usdc },
    /// Its owner has no books of a channel in which money lies.
    Unknown { here: Usdc },
    /// Its owner answers with another channel.
    Another,
}

impl std::fmt::Display for Unequal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Total { here, there } => write!(
                f,
                "M4: your calls and adjustments add up to {here} USDC, but the owner's charges to {there} USDC"
            ),
            Self::Signed { here, there } => write!(
                f,
                "the owner shows your wallet's signature for {there} USDC, but your ledger knows only {here} USDC"
            ),
            Self::Forged { there } => {
                write!(f, "the owner names a promise of {there} USDC that your wallet did not sign")
            }
            Self::Unknown { here } => {
                write!(f, "your ledger has {here} USDC, but the owner has no record of this channel")
            }
            Self::Another => write!(f, "the owner answered with the records of another channel"),
        }
    }
}

/// Lists how the books of a channel at rest differ; `None` is an owner that does not know it.
#[must_use]
pub fn judge(row: &PayerChannelRow, told: Option<&ChannelSync>, domain: &Domain) -> Vec<Unequal> {
    let here = row.acknowledged;
    let Some(told) = told else {
        // What is over and empty may be forgotten.
        let counts = row.deposited > row.claimed && !here.is_zero();
        return if counts { vec![Unequal::Unknown { here }] } else { Vec::new() };
    };
    if told.config != row.config {
        return vec![Unequal::Another];
    }
    let mut unequal = Vec::new();
    if told.spent != here {
        unequal.push(Unequal::Total { here, there: told.spent });
    }
    if !told.best.is_zero() {
        let voucher = Voucher { channel: row.id, cumulative: told.best };
        let proof = told.best_signature.map(|proof| voucher.verify(domain, proof, row.config.signer));
        match proof {
            Some(Ok(_)) if told.best > row.signed => {
                unequal.push(Unequal::Signed { here: row.signed, there: told.best });
            }
            Some(Ok(_)) => {}
            // What was paid out needs no proof any more.
            None if told.best <= row.claimed => {}
            Some(Err(_)) | None => unequal.push(Unequal::Forged { there: told.best }),
        }
    }
    unequal
}

/// The reason that the books of a channel are not compared now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unrest {
    /// This wallet signed as much for calls that the ledger lacks.
    Forgotten(Usdc),
    /// Promised, and not ended.
    InFlight(Usdc),
    Changed,
}

impl std::fmt::Display for Unrest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Forgotten(signed) => write!(
                f,
                "this node signed {signed} USDC for calls that it has not stored; it learns within {} minutes how much \
                 was charged",
                FORGOTTEN_MAX.as_secs().div_ceil(60)
            ),
            Self::InFlight(promised) => {
                write!(f, "calls over {promised} USDC are under way or undecided on it")
            }
            Self::Changed => f.write_str("calls were made on it meanwhile; ask again"),
        }
    }
}

/// Returns what keeps a channel from being at rest: its row, the same after its owner was asked, and what was forgotten on it.
fn unrest(row: &PayerChannelRow, again: Option<&PayerChannelRow>, forgotten: Usdc) -> Option<Unrest> {
    match () {
        () if !forgotten.is_zero() => Some(Unrest::Forgotten(forgotten)),
        () if !row.in_flight.is_zero() => Some(Unrest::InFlight(row.in_flight)),
        () if again != Some(row) => Some(Unrest::Changed),
        () => None,
    }
}

impl BookComparer<'_> {
    pub(super) async fn compare_channels(
        &self,
        owner: Address,
        compared: &mut BookComparison,
    ) -> Result<(), BooksError> {
        let domain = *self.signer.domain();
        let mut rows = self.channels_with(owner).await?;
        rows.retain(|row| row.config.id(&domain) == row.id);
        rows.sort_by_key(|row| (row.deposited <= row.claimed, row.id));
        if rows.len() > CHANNELS_MAX {
            let more = counted(rows.len() - CHANNELS_MAX, "channel");
            compared.channels.left_out.push(format!("{more} more than are asked about at once"));
        }
        for row in rows.into_iter().take(CHANNELS_MAX) {
            let told = self.books_of(owner, row.id, PAGE_TIMEOUT).await?;
            let again = self.channels_with(owner).await?.into_iter().find(|again| again.id == row.id);
            // What this node signed, by the owner's proof, and has not booked yet.
            let forgotten = self.channels.get(row.id).map_or(Usdc::ZERO, |channel| channel.forgotten);
            if let Some(unrest) = unrest(&row, again.as_ref(), forgotten) {
                compared.channels.left_out.push(format!("channel {}: {unrest}", row.id));
                continue;
            }
            for unequal in judge(&row, told.as_ref(), &domain) {
                compared.add(format_args!("channel {}", row.id), unequal);
            }
            let Some(told) = told else { continue };
            let channels = &mut compared.channels;
            channels.compared += 1;
            channels.spent_here = channels.spent_here.saturating_add(row.acknowledged);
            channels.earned_there = channels.earned_there.saturating_add(told.spent);
        }
        Ok(())
    }

    async fn channels_with(&self, owner: Address) -> Result<Vec<PayerChannelRow>, LedgerError> {
        let ledger = self.ledger.clone();
        let rows = run_blocking(move || ledger.payer_channels()).await?;
        Ok(rows.into_iter().filter(|row| row.config.payee == owner).collect())
    }

    /// Asks an owner for its books of a channel, and shows it the newest receipt that it gave; `None` when it has no such
    /// books.
    pub(in crate::consumer) async fn books_of(
        &self,
        owner: Address,
        id: ChannelId,
        within: Duration,
    ) -> Result<Option<ChannelSync>, BooksError> {
        let word = newest_word(self.ledger, self.signer, id);
        match self.put_question(owner, CallMessage::Sync(id, word), within).await? {
            CallReply::Channel(books) => Ok(Some(books)),
            CallReply::Refused(refusal) if refusal.code == RefusalCode::UnknownChannel => Ok(None),
            CallReply::Refused(refusal) => Err(refusal.into()),
            _ => Err(NotTold::AnotherAnswer.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::SecretKey;

    use super::*;
    use crate::consumer::channels::tests::{self, terms, usdc};

    fn domain() -> Domain {
        Domain::new(31_337, Address::from_bytes([9; 20]))
    }

    fn key(n: u8) -> SecretKey {
        SecretKey::from_bytes(&[n; 32]).unwrap()
    }

    fn row() -> PayerChannelRow {
        let [payer, payee] = [1, 2].map(|n| key(n).address());
        let config = terms(payer, payee);
        PayerChannelRow {
            id: config.id(&domain()),
            claimed: usdc(3),
            acknowledged: usdc(5),
            signed: usdc(7),
            ..tests::row(config, 100)
        }
    }

    fn told(spent: u64, best: u64, signer: u8) -> ChannelSync {
        let row = row();
        let voucher = Voucher { channel: row.id, cumulative: usdc(best) };
        ChannelSync {
            config: row.config,
            deposited: row.deposited,
            claimed: row.claimed,
            spent: usdc(spent),
            best: usdc(best),
            best_signature: Some(voucher.sign(&domain(), &key(signer))),
            close: None,
        }
    }

    #[test]
    fn books_of_a_channel_that_agree_have_no_difference() {
        for told in [told(5, 5, 1), told(5, 7, 1), ChannelSync { best_signature: None, ..told(5, 3, 1) }] {
            assert_eq!(judge(&row(), Some(&told), &domain()), []);
        }
        let over = PayerChannelRow { deposited: usdc(3), ..row() };
        assert_eq!(judge(&over, None, &domain()), [], "what is empty may be forgotten");
    }

    #[test]
    fn a_channel_that_is_not_at_rest_says_why_and_what_a_crash_left_for_how_long() {
        let (rest, busy) = (row(), PayerChannelRow { in_flight: usdc(2), ..row() });
        let charged = PayerChannelRow { acknowledged: usdc(6), ..row() };
        assert_eq!(unrest(&rest, Some(&row()), Usdc::ZERO), None);
        for (row, again, forgotten, word) in [
            (&busy, Some(&busy), 0, "calls over 0.000002 USDC are under way or undecided"),
            (&rest, Some(&charged), 0, "calls were made on it meanwhile"),
            (&rest, None, 0, "calls were made on it meanwhile"),
            (
                &busy,
                Some(&busy),
                4,
                "signed 0.000004 USDC for calls that it has not stored; it learns within",
            ),
        ] {
            let told = unrest(row, again, usdc(forgotten)).unwrap().to_string();
            assert!(told.contains(word), "{word}: {told}");
        }
    }

    #[test]
    fn each_kind_of_difference_of_a_channel_has_its_word() {
        let mut elsewhere = told(5, 7, 1);
        elsewhere.config.salt = [2; 32];
        for (told, word) in [
            (Some(told(4, 7, 1)), "add up to 0.000005 USDC, but the owner's charges to 0.000004"),
            (Some(told(6, 7, 1)), "add up to 0.000005 USDC, but the owner's charges to 0.000006"),
            (Some(told(5, 8, 1)), "signature for 0.000008 USDC"),
            (Some(told(5, 7, 2)), "0.000007 USDC that your wallet did not sign"),
            (Some(ChannelSync { best_signature: None, ..told(5, 7, 1) }), "did not sign"),
            (Some(elsewhere), "another channel"),
            (None, "has no record of this channel"),
        ] {
            let unequal = judge(&row(), told.as_ref(), &domain());
            assert!(unequal.len() == 1 && unequal[0].to_string().contains(word), "{word}: {unequal:?}");
        }
    }
}
