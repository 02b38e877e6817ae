//! Payments whose blocks the chain takes back after their answers have left.
//!
//! In order: after a start, and after each reorganisation, the chain is asked for the payment of each settled sale. If it has it no
//! more, the payment is brought again. If the token refuses it at that moment, it is tried again later, until it lapses: its payer may
//! have been without money for a while only. If it lapses, or its payer has cancelled it, it is lost: the log and the history say so.
//!
//! Invariant: the sale has its answer and stays charged once, and is not forgotten while its payment may be missing.

use farthing_chain::{PaymentState, TxHash};
use farthing_ledger::{LedgerError, Position, ServedRow, Standing, Transaction, Window};
use farthing_os::clock;
use farthing_protocol::{Hash, Refusal};
use farthing_shared::chain_view;

use super::{
    X402Sales, away, failed,
    noted::admit_line,
    sales::{Sale, SaleKey, SaleState},
    settle::{GAS_FACTOR_LEFT, SETTLED_WITHIN},
    unstored,
};

/// The shortest time between two tries of one payment.
const PAUSE_SECS_MIN: u64 = 30;
/// The pause before the next try is this part of the sale's age, so that a payment is tried some sixty times in a day.
const PAUSE_PART: u64 = 8;
/// A payment that has lapsed is looked for so long: a node that did not run at that time tells of it, too.
const AFTER_LAPSE_SECS: u64 = 24 * 3_600;

impl X402Sales {
    /// Returns whether the chain may have taken back the payment of a sale since the last look, and nobody was told of its end.
    pub(super) fn may_be_taken_back(&self, key: &SaleKey, sale: &Sale, seen: Option<u64>) -> bool {
        sale.state == SaleState::Settled
            && !self.0.door.sales.is_looked_at(key, seen)
            && clock::now_secs() < sale.lapses_secs().saturating_add(AFTER_LAPSE_SECS)
    }

    /// Looks for the payment of a sale on the chain, and brings it again if it is not there. `seen` are the reorganisations
    /// before this look.
    ///
    /// # Errors
    /// The reason that nothing is known of it yet.
    pub(super) async fn look_again(
        &self,
        key: SaleKey,
        sale: Sale,
        seen: Option<u64>,
    ) -> Result<(), Refusal> {
        let sales = &self.0.door.sales;
        let (refused, block_secs) = (sales.idle_secs(&key), chain_view::time_secs(&self.0.chain));
        let has_lapsed = has_lapsed(sale.lapses_secs(), clock::now_secs(), block_secs);
        let is_early = |refused| clock::now_secs() < next_try_secs(sale.time_secs, refused);
        if !has_lapsed && refused.is_some_and(is_early) {
            return Ok(());
        }
        let state = self.0.chain.payment_state(&sale.payment.authorization, sale.since_block).await;
        match state.map_err(|error| away(&error))? {
            PaymentState::Paid(transaction) => self.book_again(key, sale, transaction.0).await?,
            PaymentState::Refused(reason) => self.lose(key, sale, &reason).await?,
            PaymentState::Open if has_lapsed => self.lose(key, sale, "its time is over").await?,
            PaymentState::Open => {
                if !self.bring_again(key, sale).await? {
                    sales.note_refusal(&key, Some(clock::now_secs()));
                    return Ok(());
                }
            }
        }
        sales.note_refusal(&key, None);
        sales.note_look(&key, seen);
        Ok(())
    }

    /// Brings a payment again. Returns whether the token took it.
    async fn bring_again(&self, key: SaleKey, sale: Sale) -> Result<bool, Refusal> {
        let (payment, payer) = (sale.payment, sale.payment.authorization.from);
        self.check_worth(sale.price, GAS_FACTOR_LEFT)?;
        let taking = self.0.chain.take_payment(payment, sale.since_block);
        match tokio::time::timeout(SETTLED_WITHIN, taking).await {
            Ok(Ok(PaymentState::Paid(transaction))) => {
                tracing::warn!(%payer, "the chain had taken back a payment; it was brought again");
                self.book_again(key, sale, transaction.0).await?;
                Ok(true)
            }
            Ok(Ok(PaymentState::Refused(reason))) => {
                if let Some(left_out) = admit_line() {
                    tracing::warn!(
                        %payer,
                        reason,
                        left_out,
                        "the chain has taken back a payment and refuses it now; it is tried again until it lapses"
                    );
                }
                Ok(false)
            }
            Ok(Ok(PaymentState::Open)) | Err(_) => Err(failed()),
            Ok(Err(error)) => Err(away(&error)),
        }
    }

    /// Notes the transaction that pays a sale now, with its call and then with the sale: a crash between the two does both again.
    async fn book_again(&self, key: SaleKey, sale: Sale, transaction: Hash) -> Result<(), Refusal> {
        let (authorization, ledger) = (&sale.payment.authorization, &self.0.ledger);
        let call = ledger.served_head(authorization.from, self.call_id_of(&authorization.nonce));
        if let Some(ServedRow::Done(row)) = call.map_err(|error| unstored(&error))?
            && row.paid_by == Some(transaction)
            && !row.is_lost
            && sale.paid_by == Some(transaction.into())
        {
            return Ok(());
        }
        self.note_payment(&sale, Some(transaction)).await?;
        let sale = Sale { paid_by: Some(transaction.into()), ..sale };
        self.0.door.sales.put(key, &sale, None).await.map_err(|error| unstored(&error))
    }

    /// Tells once that nothing pays a sale any more. Who repeats it is told of no payment from then on.
    async fn lose(&self, key: SaleKey, sale: Sale, reason: &str) -> Result<(), Refusal> {
        let Some(transaction) = sale.paid_by else { return Ok(()) };
        self.note_payment(&sale, None).await?;
        self.note_gone(&sale, transaction.into()).await.map_err(|error| unstored(&error))?;
        let (payer, price) = (sale.payment.authorization.from, sale.price);
        let lost = Sale { paid_by: None, ..sale };
        self.0.door.sales.put(key, &lost, None).await.map_err(|error| unstored(&error))?;
        tracing::warn!(%payer, %price, reason, "the chain has taken back a payment, and it is lost");
        Ok(())
    }

    /// Notes that no block has the transaction of a lost payment, if the chain says so. It is asked about it on, as about each such
    /// one.
    async fn note_gone(&self, sale: &Sale, transaction: Hash) -> Result<(), LedgerError> {
        let (ledger, chain) = (&self.0.ledger, &self.0.chain);
        let Ok(None) = chain.landed(TxHash(transaction)).await else { return Ok(()) };
        let window = Window {
            before: Position::start_of(u64::MAX),
            from_secs: sale.time_secs,
            limit: 1,
            scan_max: usize::MAX,
        };
        for (_, noted) in ledger.transactions_in(&window, |noted| noted.hash == transaction)?.rows {
            let gone = Transaction { standing: Some(Standing::Nowhere), ..noted };
            ledger.correct_transaction(gone).await?;
        }
        Ok(())
    }

    async fn note_payment(&self, sale: &Sale, transaction: Option<Hash>) -> Result<(), Refusal> {
        let authorization = &sale.payment.authorization;
        let call_id = self.call_id_of(&authorization.nonce);
        match self.0.ledger.pay_again(authorization.from, call_id, transaction).await {
            // Its payer used the id for a call of the network, or the call was pruned.
            Ok(()) | Err(LedgerError::NotServed(_)) => Ok(()),
            Err(error) => Err(unstored(&error)),
        }
    }
}

/// Returns whether no block can have a payment any more. The clock or the chain's date may be ahead, so both decide.
fn has_lapsed(lapses_secs: u64, clock_secs: u64, block_secs: Option<u64>) -> bool {
    clock_secs.min(block_secs.unwrap_or_default()) >= lapses_secs
}

/// The second of the next try of a payment that was refused at `refused_secs`.
fn next_try_secs(sold_secs: u64, refused_secs: u64) -> u64 {
    let age_secs = refused_secs.saturating_sub(sold_secs);
    refused_secs.saturating_add((age_secs / PAUSE_PART).max(PAUSE_SECS_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payment_has_lapsed_only_by_the_clock_and_the_chains_date() {
        assert!(has_lapsed(100, 100, Some(100)));
        for (clock_secs, block_secs) in [(100, Some(99)), (99, Some(100)), (100, None)] {
            assert!(!has_lapsed(100, clock_secs, block_secs), "{clock_secs} {block_secs:?}");
        }
    }

    #[test]
    fn a_payment_that_is_refused_is_tried_at_a_pace_that_slows_down_with_its_age() {
        assert_eq!(next_try_secs(1_000, 1_000), 1_030);
        assert_eq!(next_try_secs(1_000, 1_240), 1_270);
        assert_eq!(next_try_secs(1_000, 1_248), 1_279);
        assert_eq!(next_try_secs(1_000, 900), 930, "the clock was set back");
        let day = 1_000 + 24 * 3_600;
        let tries = std::iter::successors(Some(1_000), |refused| Some(next_try_secs(1_000, *refused)));
        let tries = tries.take_while(|at| *at < day).count();
        assert!((50..80).contains(&tries), "{tries} tries in a day");
    }
}
