//! Claims that were under way at the last stop, or that the chain has taken back since.

use farthing_ledger::{Settlement, SettlementRow, SettlementState};
use farthing_os::clock;
use futures::{StreamExt, stream};

use super::Payee;

/// Ends of claims that are stored at once: the ledger's writer makes one commit of what waits together.
const CONCLUDED_AT_ONCE: usize = 64;

impl Payee {
    /// An interrupted claim is done when the chain shows all of it paid.
    pub(super) async fn conclude_paid(&self) {
        let is_paid =
            |row: &SettlementRow| self.chain.channel(&row.channel).is_some_and(|view| view.claimed >= row.to);
        let mut paid = self.interrupted_claims();
        paid.retain(|settlement| settlement.rows.iter().all(is_paid));
        self.conclude(paid, SettlementState::Confirmed).await;
    }

    /// Ends them all: what the chain does not show as paid by now is counted by the claim that follows, so that it is counted
    /// once.
    pub(super) async fn give_up_interrupted(&self) {
        if self.interrupted_claims().is_empty() {
            return;
        }
        self.intake.catch_up().await;
        self.conclude_paid().await;
        self.conclude(self.interrupted_claims(), SettlementState::Failed).await;
    }

    /// Lists them: this task itself has none under way while it asks. What became of one elsewhere is told once the settings name
    /// its place again; a channel without a place in the book is taken for one that lies here.
    fn interrupted_claims(&self) -> Vec<Settlement> {
        let mut claims = self.ledger.settlements_under_way().unwrap_or_else(|error| {
            tracing::error!(%error, "earlier claims cannot be read");
            Vec::new()
        });
        let is_elsewhere =
            |row: &SettlementRow| self.book.get(row.channel).is_some_and(|entry| entry.is_elsewhere);
        claims.retain(|claim| !claim.rows.iter().any(is_elsewhere));
        claims
    }

    async fn conclude(&self, settlements: Vec<Settlement>, state: SettlementState) {
        let ends = stream::iter(settlements).map(|settlement| self.conclude_one(settlement, state));
        ends.buffer_unordered(CONCLUDED_AT_ONCE).collect::<()>().await;
    }

    async fn conclude_one(&self, mut settlement: Settlement, state: SettlementState) {
        (settlement.state, settlement.time_secs) = (state, clock::now_secs());
        if let Err(error) = self.ledger.record_claim(settlement).await {
            tracing::warn!(%error, "the end of an interrupted claim was not stored");
        }
    }
}
