//! Channels of the place that the settings name. The book has those of other chains, contracts and tokens as well, and of
//! them this chain tells nothing: neither what was paid nor, by its clock, what is void.

use std::time::Duration;

use farthing_ledger::Settlement;
use farthing_owner::book::SignedAway;
use farthing_protocol::ChannelId;

use super::Payee;

impl Payee {
    /// Tells whether a channel lies here; one without a place in the book is taken for one that does.
    pub(super) fn is_here(&self, channel: ChannelId) -> bool {
        let terms = self.book.terms(channel);
        terms.is_none_or(|(config, ..)| self.chain.spec().escrow().holds(channel, &config))
    }

    pub(super) fn signed_away_here(&self) -> Vec<SignedAway> {
        let mut signed = self.book.signed_away();
        signed.retain(|close| self.is_here(close.channel));
        signed
    }

    pub(super) fn to_be_closed_here(&self) -> Vec<ChannelId> {
        let mut closing = self.book.closing();
        closing.retain(|channel| self.is_here(*channel));
        closing
    }

    pub(super) fn closed_here(&self) -> Vec<(ChannelId, Duration)> {
        let mut closed = self.book.closed();
        closed.retain(|(channel, _)| self.is_here(*channel));
        closed
    }

    /// Claims that were under way at the last stop, or that the chain has taken back since: this task itself has none while
    /// it asks. What became of one elsewhere is told once the settings name its place again.
    pub(super) fn interrupted_claims(&self) -> Vec<Settlement> {
        let mut claims = self.ledger.settlements_under_way().unwrap_or_else(|error| {
            tracing::error!(%error, "earlier claims cannot be read");
            Vec::new()
        });
        claims.retain(|claim| claim.rows.iter().all(|row| self.is_here(row.channel)));
        claims
    }
}
