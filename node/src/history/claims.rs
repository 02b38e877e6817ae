//! Settlements as the history tells them: what became of each, as far as its transaction and its channels show.

use farthing_control::types::HistoryState;
use farthing_ledger::{Ledger, LedgerError, Settlement, SettlementState};

/// Settlements are few: one a minute at the very most, and some a day as a rule.
const SETTLEMENTS_MAX: usize = 10_000;

/// Reads the settlements, the newest first, as they are told.
pub(super) fn settlements(ledger: &Ledger) -> Result<Vec<Settlement>, LedgerError> {
    ledger.settlements(SETTLEMENTS_MAX)?.into_iter().map(|claim| told(ledger, claim)).collect()
}

/// Tells a settlement. A claim that is under way again without a transaction has failed where the payers have withdrawn what it
/// was for: its amount is told as lost beside it. The record stays as it is, because the chain may pay it yet.
pub(super) fn told(ledger: &Ledger, mut claim: Settlement) -> Result<Settlement, LedgerError> {
    let is_due_again = claim.is_dropped && claim.state == SettlementState::Pending;
    if is_due_again && is_withdrawn(ledger, &claim)? {
        claim.state = SettlementState::Failed;
    }
    Ok(claim)
}

/// Returns whether nothing that a claim has not been paid can be claimed any more. Of what was charged on a channel, the last
/// is lost.
fn is_withdrawn(ledger: &Ledger, claim: &Settlement) -> Result<bool, LedgerError> {
    let mut is_withdrawn = false;
    for row in &claim.rows {
        let Some(channel) = ledger.payee_channel(row.channel)? else { return Ok(false) };
        let unpaid_from = row.from.max(channel.claimed);
        if row.to <= unpaid_from {
            continue;
        }
        if unpaid_from < channel.spent.saturating_sub(channel.lost) {
            return Ok(false);
        }
        is_withdrawn = true;
    }
    Ok(is_withdrawn)
}

pub(super) const fn state_of_settlement(settlement: &Settlement) -> HistoryState {
    match settlement.state {
        SettlementState::Pending => HistoryState::Pending,
        SettlementState::Confirmed => HistoryState::Confirmed,
        SettlementState::Returned => HistoryState::Returned,
        SettlementState::Failed => HistoryState::Failed,
        SettlementState::Lost => HistoryState::Lost,
    }
}

/// Returns what became of a claim whose transaction no block has any more.
pub(super) const fn reason_of_settlement(settlement: &Settlement) -> Option<&'static str> {
    match (settlement.is_dropped, settlement.state) {
        (false, _) => None,
        (true, SettlementState::Pending) => {
            Some("its transaction is no longer in any block, so the claim is due again")
        }
        (true, SettlementState::Confirmed) => {
            Some("its transaction is no longer in any block, and the chain shows that another one paid it")
        }
        (true, _) => Some("its transaction is no longer in any block"),
    }
}

#[cfg(test)]
mod tests {
    use farthing_ledger::{PayeeChannelFacts, Served, SettlementRow, Standing, Transaction};
    use farthing_protocol::{Address, ChannelConfig, Domain, SecretKey, Usdc, Voucher};
    use redb::backends::InMemoryBackend;

    use super::*;
    use crate::testing::charged_call;

    const fn usdc(micros: u64) -> Usdc {
        Usdc::from_micros(micros)
    }

    /// A ledger with a channel on which 500 were charged, and a claim of them that no block has.
    async fn claimed_in_vain() -> (Ledger, PayeeChannelFacts) {
        let key = SecretKey::from_bytes(&[1; 32]).unwrap();
        let (payer, domain, spent) = (key.address(), Domain::new(1, Address::ZERO), usdc(500));
        let config = ChannelConfig {
            payer,
            payee: Address::from_bytes([2; 20]),
            token: Address::ZERO,
            signer: payer,
            close_delay_secs: 86_400,
            salt: [0; 32],
        };
        let id = config.id(&domain);
        let filled = PayeeChannelFacts { id, config, deposited: usdc(900), claimed: usdc(0), closing: false };
        let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
        ledger.put_payee_channel(filled).await.unwrap();
        let voucher = Voucher { channel: id, cumulative: spent };
        let signature = voucher.sign(&domain, &key);
        let voucher = Some(voucher.verify(&domain, signature, payer).unwrap());
        let call = charged_call(spent);
        ledger.serve(Served { payer, channel: id, voucher, call }).await.unwrap();
        let row = SettlementRow { channel: id, from: usdc(0), to: spent };
        let claim = ledger.open_settlement(vec![row], 1).await.unwrap();
        let hash = [7; 32];
        ledger.record_claim(Settlement { transaction: Some(hash), ..claim }).await.unwrap();
        let dropped = Transaction {
            hash,
            block: 7,
            time_secs: 1,
            purpose: "claim".to_owned(),
            channel: None,
            peer: None,
            amount: usdc(0),
            wei: [0; 16],
            fee_wei: [0; 16],
            standing: Some(Standing::Nowhere),
            chain_id: Some(1),
        };
        ledger.correct_transaction(dropped).await.unwrap();
        (ledger, filled)
    }

    #[test]
    fn what_came_back_of_a_deposit_is_no_claim() {
        let time_secs = 1;
        let (state, rows) = (SettlementState::Returned, Vec::new());
        let back = Settlement { id: 1, transaction: None, rows, time_secs, state, is_dropped: false };
        assert_eq!(state_of_settlement(&back), HistoryState::Returned);
    }

    #[tokio::test]
    async fn a_claim_that_no_block_has_is_due_again_until_the_payer_has_withdrawn_it() {
        use SettlementState::{Failed, Pending};
        let (ledger, filled) = claimed_in_vain().await;
        for (claimed, deposited, told) in [
            (0, 900, Pending),
            // A part can be claimed yet.
            (0, 1, Pending),
            (0, 0, Failed),
            // The payer fills the channel again.
            (0, 900, Pending),
            // Another claim paid a part.
            (200, 201, Pending),
            (200, 200, Failed),
        ] {
            let (claimed, deposited) = (usdc(claimed), usdc(deposited));
            ledger.put_payee_channel(PayeeChannelFacts { claimed, deposited, ..filled }).await.unwrap();
            let claim = settlements(&ledger).unwrap().pop().unwrap();
            assert_eq!((claim.id, claim.state), (1, told), "{claimed} claimed, {deposited} deposited");
            let reason = reason_of_settlement(&claim).unwrap();
            assert_eq!(reason.ends_with("due again"), told == Pending, "{reason}");
        }
        assert_eq!(ledger.settlements_under_way().unwrap().len(), 1, "the chain may pay it yet");
    }
}
