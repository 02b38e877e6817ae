//! A stored transaction until its end: broadcast, wait, replace with a higher fee, and judge by the chain.
//!
//! What counts is the wallet's nonce in a confirmed block. While it has not passed the transaction's, the
//! transaction may still be mined; once it has, one of its signed forms was mined, or none ever will be.
//! Trouble with endpoints ends nothing: an unknown end is not a failure.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    Outcome, Writer,
    sign::{Unsigned, sign, unsigned},
};
use crate::{
    contracts::to_eth,
    entry::Entry,
    error::ChainError,
    fees::{Fees, replacement},
    journal::TxHash,
    reader::{At, Receipt},
    rpc::RpcError,
};

/// Signed forms of one transaction. With an eighth more each, the last pays a thousand times the first.
const FORMS_MAX: usize = 60;
/// A nonce that passed without a receipt of ours is believed after this many looks, because the endpoint
/// that knows the nonce may not be the one that is asked for receipts.
const LOOKS_MAX: u32 = 5;
/// While a transaction is under way somebody waits: look at least this often.
const LOOK_EVERY_MS_MAX: u64 = 1_000;
/// The number of looks, over the patience for receipts, for a receipt that `LOOKS_MAX` looks did not find.
const LATE_LOOKS: u32 = 60;
const TRANSFER_GAS: u64 = 21_000;
/// Transactions of this wallet that a reorganisation may have dropped below one that waits. More are missing only where an
/// endpoint lied about the nonce, and filling them would burn the wallet's ETH.
const GAP_MAX: u64 = 16;
/// A transaction that the chain cannot take is given up when it could not be taken so many times.
const HOPELESS_MAX: u32 = 3;

/// An endpoint's refusal is noted, not believed: the nonce tells the end.
fn note_sent(entry: &Entry, sent: Result<(), RpcError>) {
    let (what, nonce) = (entry.intent.what(), entry.nonce);
    match sent {
        Ok(()) => tracing::info!(nonce, "{what} is sent"),
        Err(RpcError::Refused(refusal)) if is_known(&refusal.message) => {}
        Err(error) => tracing::warn!(nonce, %error, "{what} is not accepted yet; trying again"),
    }
}

/// The fate of a transaction, as the chain tells it.
enum Fate {
    /// Not decided. Carries the wallet's next nonce.
    Open {
        next_nonce: u64,
    },
    Mined {
        receipt: Receipt,
        confirmed: u64,
    },
    /// The nonce is taken, but not by a known form of this transaction.
    Gone {
        confirmed: u64,
    },
}

impl Writer {
    /// # Errors
    /// [`ChainError::Failed`], [`ChainError::Contradicted`], [`ChainError::Replaced`] or [`ChainError::Unaccounted`]:
    /// they are final.
    pub(super) async fn pursue(&self, mut entry: Entry) -> Result<Outcome, ChainError> {
        let what = entry.intent.what();
        let look_every = Duration::from_millis(self.reader.spec.poll_interval_ms.min(LOOK_EVERY_MS_MAX));
        // A chain that mines at once is seen at once; a slow one is soon asked no more often than that.
        let mut look_after = look_every / 32;
        let resend_after = Duration::from_millis(self.reader.spec.resend_after_ms);
        let receipt_patience = Duration::from_millis(self.reader.spec.receipt_patience_ms);
        let (mut gone_looks, mut gone_since) = (0, None);
        let mut hopeless = 0;
        let mut sent_at: Option<Instant> = None;
        loop {
            match self.fate(&entry).await {
                Ok(Fate::Mined { receipt, confirmed }) => {
                    match self.judge(&entry, receipt, confirmed).await {
                        Ok(result) => return result,
                        Err(error) => {
                            tracing::debug!(%error, "{what} is mined but its effect is not readable yet");
                        }
                    }
                }
                Ok(Fate::Gone { confirmed }) => {
                    gone_looks += 1;
                    let since = *gone_since.get_or_insert_with(Instant::now);
                    // The state shows whether anything but a transfer was made.
                    let is_late = gone_looks >= LOOKS_MAX
                        && (entry.intent.is_idempotent() || since.elapsed() >= receipt_patience);
                    if is_late
                        && let Ok(fulfilled) = self.is_fulfilled(&entry.intent, At::Block(confirmed)).await
                    {
                        return if fulfilled { Ok(Outcome::default()) } else { Err(gone(&entry)) };
                    }
                }
                Ok(Fate::Open { next_nonce }) => {
                    (gone_looks, gone_since) = (0, None);
                    match sent_at {
                        None => {
                            let sent = self.reader.send_raw(&entry.raw).await;
                            note_sent(&entry, sent);
                            sent_at = Some(Instant::now());
                        }
                        Some(at) if at.elapsed() >= resend_after => {
                            let balances = self.reader.balances(self.wallet, At::Latest).await;
                            let has_wei = balances.ok().map(|balances| balances.eth_wei);
                            let is_hopeless = is_hopeless(&entry, next_nonce, has_wei);
                            hopeless = if is_hopeless { hopeless + 1 } else { 0 };
                            if hopeless >= HOPELESS_MAX {
                                return Err(gone(&entry));
                            }
                            self.fill_gap(next_nonce, entry.nonce).await;
                            self.raise(&mut entry, has_wei).await;
                            let sent = self.reader.send_raw_to_all(&entry.raw).await;
                            note_sent(&entry, sent);
                            sent_at = Some(Instant::now());
                        }
                        Some(_) => {}
                    }
                }
                Err(error) => tracing::debug!(%error, nonce = entry.nonce, "the end of {what} is unknown"),
            }
            tokio::time::sleep(look_after).await;
            let is_missing = gone_looks >= LOOKS_MAX;
            let look_every =
                if is_missing { look_every.max(receipt_patience / LATE_LOOKS) } else { look_every };
            look_after = (look_after * 2).min(look_every);
        }
    }

    async fn fate(&self, entry: &Entry) -> Result<Fate, RpcError> {
        let confirmed = self.reader.confirmed(self.reader.head().await?.number());
        let next_nonce = self.reader.nonce(self.wallet, At::Block(confirmed)).await?;
        if next_nonce <= entry.nonce {
            return Ok(Fate::Open { next_nonce });
        }
        for hash in entry.hashes() {
            if let Some(receipt) = self.reader.receipt(hash).await? {
                return Ok(Fate::Mined { receipt, confirmed });
            }
        }
        Ok(Fate::Gone { confirmed })
    }

    /// The end of a mined transaction. The outer error is an endpoint's, and asked again.
    async fn judge(
        &self,
        entry: &Entry,
        receipt: Receipt,
        confirmed: u64,
    ) -> Result<Result<Outcome, ChainError>, RpcError> {
        let outcome = Outcome { receipt: Some(receipt), refused: Vec::new() };
        let fulfilled = self.is_fulfilled(&entry.intent, At::Block(confirmed.max(receipt.block()))).await?;
        // A claim may succeed and yet skip a row that was drained meanwhile: the caller reads the amounts.
        if fulfilled || receipt.succeeded() {
            return Ok(Ok(outcome));
        }
        let what = entry.intent.what();
        Ok(Err(match self.reason(entry).await? {
            Some(reason) => ChainError::Failed { what, reason },
            None if entry.intent.is_idempotent() => {
                ChainError::Failed { what, reason: "it would succeed by now; try again".to_owned() }
            }
            // Nothing but the receipt says that it failed, and an endpoint can lie in one.
            None => ChainError::Contradicted { what, hashes: hashes(entry) },
        }))
    }

    /// Runs a failed transaction once more to hear its reason; `None` when it would succeed.
    async fn reason(&self, entry: &Entry) -> Result<Option<String>, RpcError> {
        let Some(Unsigned { to, value_wei, data, .. }) = unsigned(&entry.raw) else {
            return Ok(Some("unknown".to_owned()));
        };
        match self.reader.estimate(self.wallet, to, value_wei, &data).await {
            Err(RpcError::Refused(refusal)) => Ok(Some(refusal.reason())),
            Err(error) => Err(error),
            Ok(_) => Ok(None),
        }
    }

    /// Signs the same transaction with higher fees and stores it. Where the cap, the chain's fees or the count forbid that,
    /// or the journal fails, the form that is already stored goes on waiting.
    async fn raise(&self, entry: &mut Entry, has_wei: Option<u128>) {
        let cap_wei = self.reader.spec.gas_price_cap_wei;
        let Ok((now, tip_max_wei)) = self.fees_and_tip_max().await else { return };
        let Some(fees) = replacement(entry.fees(), now, tip_max_wei, cap_wei) else { return };
        if entry.hashes.len() >= FORMS_MAX {
            return;
        }
        let Some(unsigned) = unsigned(&entry.raw) else { return };
        // What the wallet cannot pay for no endpoint takes, and the form that it could pay for would be sent no more.
        if has_wei.is_none_or(|has_wei| has_wei < cost_max_wei(&unsigned, fees)) {
            return;
        }
        let mut raised = entry.clone();
        raised.replace(sign(unsigned, fees, &self.key));
        // It was signed before, so that nobody takes it back.
        if self.forms.set(&raised).is_err() {
            return;
        }
        match self.store.put_entry(&raised).await {
            Ok(()) => {
                tracing::info!(nonce = entry.nonce, max_fee_wei = fees.max_wei, "raising the fee");
                *entry = raised;
            }
            Err(error) => tracing::error!(nonce = entry.nonce, %error, "the fee cannot be raised"),
        }
    }

    /// After a reorganisation that dropped an earlier transaction for good, nothing would ever be mined: the
    /// missing nonces are used up by transfers of nothing to the wallet itself.
    async fn fill_gap(&self, next_nonce: u64, nonce: u64) {
        if nonce.saturating_sub(next_nonce) > GAP_MAX {
            return;
        }
        for missing in next_nonce..nonce {
            // A transaction that waits at this nonce makes it no gap.
            let is_gap = self.reader.pending_nonce(self.wallet).await.is_ok_and(|pending| pending <= missing);
            let Ok(fees) = self.fees().await else { return };
            if !is_gap {
                return;
            }
            tracing::warn!(nonce = missing, "filling a gap in the wallet's nonces");
            let unsigned = Unsigned {
                chain_id: self.reader.spec.chain_id,
                nonce: missing,
                gas_limit: TRANSFER_GAS,
                to: Some(to_eth(self.wallet)),
                value_wei: 0,
                data: alloy::primitives::Bytes::new(),
            };
            let filler = sign(unsigned, fees, &self.key);
            if let Err(error) = self.reader.send_raw(&filler.raw).await {
                tracing::warn!(nonce = missing, %error, "the gap remains");
                return;
            }
        }
    }
}

/// Returns whether the chain cannot take a transaction, because an endpoint lied when it was made: too many nonces lie
/// before it, or it may cost more than the wallet has. A transfer that waits for money is not given up: money may come,
/// and then it is made.
fn is_hopeless(entry: &Entry, next_nonce: u64, has_wei: Option<u128>) -> bool {
    if entry.nonce.saturating_sub(next_nonce) > GAP_MAX {
        return true;
    }
    let Some((unsigned, has_wei)) = unsigned(&entry.raw).zip(has_wei) else { return false };
    entry.intent.is_idempotent() && has_wei < cost_max_wei(&unsigned, entry.fees())
}

fn cost_max_wei(unsigned: &Unsigned, fees: Fees) -> u128 {
    fees.max_wei.saturating_mul(u128::from(unsigned.gas_limit)).saturating_add(unsigned.value_wei)
}

/// The end of a transaction whose nonce was used without a trace of it. A transfer may have been made all the same.
fn gone(entry: &Entry) -> ChainError {
    let (what, nonce) = (entry.intent.what(), entry.nonce);
    if entry.intent.is_idempotent() {
        return ChainError::Replaced { what, nonce };
    }
    ChainError::Unaccounted { what, nonce, hashes: hashes(entry) }
}

fn hashes(entry: &Entry) -> Vec<TxHash> {
    entry.hashes().map(|hash| TxHash(hash.0)).collect()
}

/// The endpoint has the transaction, or the chain has moved past it.
fn is_known(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["already known", "already imported", "known transaction", "nonce too low"]
        .iter()
        .any(|text| message.contains(text))
}
