//! From what a transaction does to its signed and stored form: simulated, priced, and within the wallet's
//! means.

use std::time::Duration;

use farthing_values::Usdc;

use super::{Unsigned, Writer, plan::Body, sign};
use crate::{
    entry::Entry,
    error::ChainError,
    fees::{self, Fees, Tips},
    reader::{At, Balances},
    rpc::RpcError,
};

/// Above any transaction of this crate (a claim of 100 rows executes in 1.8 million, and Arbitrum counts its
/// publication on top), so that an endpoint's estimate cannot empty the wallet.
const GAS_LIMIT_MAX: u64 = 16_000_000;

/// Transactions of this wallet, by whichever program, that are in a block and not yet confirmed.
const NONCES_AT_ONCE_MAX: u64 = 16;
/// So often an endpoint is asked that names nonces which do not go together.
const NONCE_LOOKS_MAX: usize = 5;

impl Writer {
    /// The estimate is also the simulation. When this returns, the journal holds the transaction.
    pub(super) async fn prepare(&self, body: Body) -> Result<Entry, ChainError> {
        let what = body.intent.what();
        let failed = |error| self.failed(what, error);
        let (gas, fees, balances, nonce) = tokio::join!(
            self.reader.estimate(self.wallet, Some(body.to), body.value_wei, &body.data),
            self.fees(),
            self.reader.balances(self.wallet, At::Latest),
            self.next_nonce(),
        );
        let balances = balances.map_err(failed)?;
        let gas = match gas {
            Ok(gas) => gas,
            Err(RpcError::Refused(refusal)) => {
                // Many endpoints refuse to estimate for an empty wallet; then the money is the reason.
                self.require_eth(balances, body.value_wei.saturating_add(1))?;
                return Err(ChainError::Reverted { what, reason: refusal.reason() });
            }
            Err(error) => return Err(failed(error)),
        };
        let gas_limit = fees::gas_limit(gas);
        if gas_limit > GAS_LIMIT_MAX {
            let reason = format!("it would take {gas_limit} gas, more than the {GAS_LIMIT_MAX} allowed");
            return Err(ChainError::Reverted { what, reason });
        }
        let fees = fees?;
        let gas_wei = fees.max_wei.saturating_mul(u128::from(gas_limit));
        self.require_eth(balances, body.value_wei.saturating_add(gas_wei))?;
        let unsigned = Unsigned {
            chain_id: self.reader.spec.chain_id,
            nonce: nonce.map_err(failed)?,
            gas_limit,
            to: Some(body.to),
            value_wei: body.value_wei,
            data: body.data,
        };
        let entry = Entry::new(body.intent, unsigned.nonce, gas_limit, sign(unsigned, fees, &self.key));
        self.forms.set(&entry)?;
        self.store.put_entry(&entry).await?;
        Ok(entry)
    }

    /// The wallet's next nonce. It goes up by this wallet's own transactions: an endpoint that names a far higher one than
    /// a block ago is asked again, because what is signed for a nonce that nobody reaches waits for ever.
    async fn next_nonce(&self) -> Result<u64, RpcError> {
        let mut known = None;
        for _ in 0..NONCE_LOOKS_MAX {
            let head = self.reader.head().await?.number();
            let at_confirmed = At::Block(self.reader.confirmed(head));
            let (newest, confirmed) = tokio::try_join!(
                self.reader.nonce(self.wallet, At::Latest),
                self.reader.nonce(self.wallet, at_confirmed),
            )?;
            let is_near = newest.abs_diff(confirmed) <= NONCES_AT_ONCE_MAX;
            if is_near && known.is_none_or(|known| newest.abs_diff(known) <= NONCES_AT_ONCE_MAX) {
                return Ok(newest);
            }
            tracing::warn!(newest, confirmed, "the endpoint gives a nonce that this wallet cannot have");
            known = Some(confirmed);
            tokio::time::sleep(Duration::from_millis(self.reader.spec.poll_interval_ms)).await;
        }
        Err(RpcError::Unreachable("it gives another nonce of this wallet each time".to_owned()))
    }

    /// Returns the fees that the next blocks ask for.
    pub(super) async fn fees(&self) -> Result<Fees, ChainError> {
        self.fees_and_tip_max().await.map(|(fees, _)| fees)
    }

    /// The same with the highest tip that a first transaction may have.
    pub(super) async fn fees_and_tip_max(&self) -> Result<(Fees, u128), ChainError> {
        let failed = |error| self.failed("the transaction", error);
        let (head, tip_wei) = tokio::join!(self.reader.head(), self.reader.tip_wei());
        let gas_price_wei = head.map_err(failed)?.base_fee_wei();
        let cap_wei = self.reader.spec.gas_price_cap_wei;
        let chain = self.reader.spec.name.clone();
        let fees = fees::bid(&self.reader.spec, gas_price_wei, tip_wei.map_err(failed)?);
        let fees = fees.ok_or(ChainError::GasTooDear { chain, gas_price_wei, cap_wei })?;
        Ok((fees, fees::tip_max(gas_price_wei, Tips::of(self.reader.spec.is_l2), cap_wei)))
    }

    pub(super) fn require_usdc(&self, balances: Balances, need: Usdc) -> Result<(), ChainError> {
        let (chain, wallet, have) = (self.reader.spec.name.clone(), self.wallet, balances.usdc);
        if have >= need { Ok(()) } else { Err(ChainError::InsufficientUsdc { chain, wallet, need, have }) }
    }

    fn require_eth(&self, balances: Balances, need_wei: u128) -> Result<(), ChainError> {
        let (chain, wallet, have_wei) = (self.reader.spec.name.clone(), self.wallet, balances.eth_wei);
        if have_wei >= need_wei {
            Ok(())
        } else {
            Err(ChainError::InsufficientEth { chain, wallet, need_wei, have_wei })
        }
    }
}
