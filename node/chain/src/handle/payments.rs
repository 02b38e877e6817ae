//! Payments that others authorized by EIP-3009: tried, taken, and judged by what the token says.
//!
//! Anybody may bring an authorization to the token, and its payer may use its number for something else. So neither a
//! transaction of this wallet nor the state of the number alone shows that this wallet was paid: the token's events do.

use alloy::{
    primitives::{B256, Bytes, U64, U256},
    sol_types::SolEvent as _,
};
use farthing_values::{SignedTransfer, TransferAuthorization};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ChainHandle, operations::require};
use crate::{
    contracts::{
        Eip3009::{AuthorizationCanceled, AuthorizationUsed, Transfer},
        PAYER_HAS_CODE, to_eth, transfer_call,
    },
    error::ChainError,
    intent::Intent,
    journal::TxHash,
    reader::At,
    rpc::{EVENTS, RpcError},
    writer::Outcome,
};

/// Queries for the events of one payment. Each is as wide as an endpoint takes, so that they reach back weeks.
const QUERIES_MAX: usize = 200;

/// The state of a payment on the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaymentState {
    /// The token has not taken it, and may yet.
    Open,
    /// This wallet was paid, by this transaction.
    Paid(TxHash),
    /// The token does not pay it, for this reason. One that can still be used may be paid later.
    Refused(String),
}

/// The state of a transfer that this wallet signed for somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferState {
    /// The token had not taken it in a block that is dated so, in seconds since the Unix epoch.
    Open { as_of_secs: u64 },
    /// The token has taken it, in this block or an earlier one, by this transaction where an endpoint shows it.
    Taken { by_block: u64, transaction: Option<TxHash> },
}

/// An event of the token in its place.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TokenEvent {
    topics: Vec<B256>,
    data: Bytes,
    block_number: U64,
    transaction_hash: B256,
    log_index: U64,
}

impl ChainHandle {
    /// Tries a payment without sending anything. Returns the reason that the token would not pay; `None` if it would.
    ///
    /// # Errors
    /// See [`ChainError`]; an endpoint that does not answer says nothing of the payment. [`ChainError::Busy`] when too many wait to
    /// be taken.
    pub async fn payment_refusal(&self, payment: &SignedTransfer) -> Result<Option<String>, ChainError> {
        self.require_room_for_payments()?;
        let reader = &self.0.reader;
        let code = reader.code(payment.authorization.from).await.map_err(|error| self.unread(error))?;
        if !code.is_empty() {
            return Ok(Some(PAYER_HAS_CODE.to_owned()));
        }
        let call = transfer_call(payment);
        match reader.call(self.0.wallet, self.spec().token, &call, At::Latest).await {
            Ok(_) => Ok(None),
            Err(RpcError::Refused(refusal)) if refusal.is_revert() => Ok(Some(refusal.reason())),
            Err(error) => Err(self.unread(error)),
        }
    }

    /// Asks the chain whether the token has taken or cancelled a payment.
    ///
    /// # Errors
    /// See [`ChainError`].
    pub async fn is_used(&self, payment: &TransferAuthorization) -> Result<bool, ChainError> {
        let (payer, nonce) = (payment.from, B256::from(payment.nonce));
        let used = self.0.reader.is_authorization_used(payer, nonce, At::Latest).await;
        used.map_err(|error| self.unread(error))
    }

    /// Takes a payment to this wallet, at this wallet's cost. Asking again takes nothing twice. No block before `since_block`
    /// has the payment.
    ///
    /// # Errors
    /// See [`ChainError`]; whatever it is, the payment may be taken later, and [`Self::payment_state`] tells.
    pub async fn take_payment(
        &self,
        payment: SignedTransfer,
        since_block: u64,
    ) -> Result<PaymentState, ChainError> {
        require(payment.authorization.to == self.0.wallet, "the payment is for another wallet")?;
        match self.operate(Intent::TakePayment { payment }).await {
            // The token does what it was called for, or reverts.
            Ok(Outcome { receipt: Some(receipt), .. }) if receipt.succeeded() => {
                Ok(PaymentState::Paid(TxHash(receipt.transaction_hash.0)))
            }
            Ok(_) => self.payment_state(&payment.authorization, since_block).await,
            Err(ChainError::Reverted { reason, .. } | ChainError::Failed { reason, .. }) => {
                // Somebody else may have brought it first.
                match self.payment_state(&payment.authorization, since_block).await? {
                    PaymentState::Open => Ok(PaymentState::Refused(reason)),
                    told => Ok(told),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Asks the chain how a payment to this wallet ended.
    ///
    /// # Errors
    /// See [`ChainError`]; [`ChainError::Unreachable`] also if no endpoint shows the event that must be there.
    pub async fn payment_state(
        &self,
        payment: &TransferAuthorization,
        since_block: u64,
    ) -> Result<PaymentState, ChainError> {
        let confirmed = self.confirmed_block().await?;
        let (payer, nonce, at) = (payment.from, B256::from(payment.nonce), At::Block(confirmed));
        let used = self.0.reader.is_authorization_used(payer, nonce, at).await;
        if !used.map_err(|error| self.unread(error))? {
            return Ok(PaymentState::Open);
        }
        self.end_at(payment, since_block, confirmed).await
    }

    /// Reads from the token's events how a payment ended that the token has taken or cancelled by this block.
    async fn end_at(
        &self,
        payment: &TransferAuthorization,
        since_block: u64,
        confirmed: u64,
    ) -> Result<PaymentState, ChainError> {
        let end = self.end_of(payment, since_block, confirmed).await?;
        if end.topics.first() == Some(&AuthorizationCanceled::SIGNATURE_HASH) {
            return Ok(PaymentState::Refused("the payer cancelled the authorization".to_owned()));
        }
        let block: u64 = end.block_number.to();
        let parties = [payment.from, payment.to].map(|party| B256::left_padding_from(party.as_bytes()));
        let topics = json!([Transfer::SIGNATURE_HASH, parties[0], parties[1]]);
        let transfers = self.token_events((block, block), &topics).await?;
        // Right behind it: one transaction may use several numbers, and each pays once.
        let next: u64 = end.log_index.to::<u64>().saturating_add(1);
        let is_it = |transfer: &TokenEvent| {
            let index: u64 = transfer.log_index.to();
            transfer.transaction_hash == end.transaction_hash
                && index == next
                && U256::try_from_be_slice(&transfer.data) == Some(U256::from(payment.value.micros()))
        };
        Ok(match transfers.iter().any(is_it) {
            true => PaymentState::Paid(TxHash(end.transaction_hash.0)),
            false => PaymentState::Refused(
                "the payer used the authorization's nonce for something else".to_owned(),
            ),
        })
    }

    /// Asks the chain whether a transfer that this wallet signed was taken. Whoever got it may bring it, in no block that is dated
    /// after its time. No block before `since_block` has it.
    ///
    /// # Errors
    /// See [`ChainError`].
    pub async fn transfer_state(
        &self,
        transfer: &TransferAuthorization,
        since_block: u64,
    ) -> Result<TransferState, ChainError> {
        let mut states = self.transfer_states(&[(*transfer, Some(since_block))]).await?;
        states.pop().ok_or_else(|| self.unread(RpcError::Unreachable("an empty answer".to_owned())))
    }

    /// The same of many transfers, each with the block before which none has it; in their order. Of one without such a block, the
    /// transaction is not looked for. The newest block is read once for all of them.
    ///
    /// # Errors
    /// See [`ChainError`].
    pub async fn transfer_states(
        &self,
        transfers: &[(TransferAuthorization, Option<u64>)],
    ) -> Result<Vec<TransferState>, ChainError> {
        let confirmed = self.confirmed_block().await?;
        let reader = &self.0.reader;
        let block = reader.header(confirmed).await.map_err(|error| self.unread(error))?;
        let Some(block) = block else {
            let reason = format!("no endpoint shows block {confirmed}");
            return Err(ChainError::Unreachable { chain: self.spec().name.clone(), reason });
        };
        let as_of_secs = block.timestamp_secs();
        let numbers: Vec<_> =
            transfers.iter().map(|(transfer, _)| (transfer.from, B256::from(transfer.nonce))).collect();
        let used = reader.are_authorizations_used(&numbers, At::Block(confirmed)).await;
        let used = used.map_err(|error| self.unread(error))?;
        let mut states = Vec::with_capacity(transfers.len());
        for ((transfer, since_block), is_used) in transfers.iter().zip(used) {
            if !is_used {
                states.push(TransferState::Open { as_of_secs });
                continue;
            }
            // The state alone says that it is paid: this wallet has signed nothing else with this number.
            let transaction = match since_block {
                Some(since_block) => match self.end_at(transfer, *since_block, confirmed).await {
                    Ok(PaymentState::Paid(transaction)) => Some(transaction),
                    _ => None,
                },
                None => None,
            };
            states.push(TransferState::Taken { by_block: confirmed, transaction });
        }
        Ok(states)
    }

    /// The event with which the token takes or cancels a number.
    async fn end_of(
        &self,
        payment: &TransferAuthorization,
        since_block: u64,
        confirmed: u64,
    ) -> Result<TokenEvent, ChainError> {
        let ends = [AuthorizationUsed::SIGNATURE_HASH, AuthorizationCanceled::SIGNATURE_HASH];
        let payer = B256::left_padding_from(payment.from.as_bytes());
        let width = self.spec().logs_range_blocks.max(1);
        let mut from = since_block;
        for _ in 0..QUERIES_MAX {
            if from > confirmed {
                break;
            }
            let to = from.saturating_add(width - 1).min(confirmed);
            let topics = json!([ends, payer, B256::from(payment.nonce)]);
            if let Some(end) = self.token_events((from, to), &topics).await?.into_iter().next() {
                return Ok(end);
            }
            from = to.saturating_add(1);
        }
        let reason = "no endpoint shows the event of a payment that the token has taken".to_owned();
        Err(ChainError::Unreachable { chain: self.spec().name.clone(), reason })
    }

    async fn token_events(
        &self,
        (from, to): (u64, u64),
        topics: &Value,
    ) -> Result<Vec<TokenEvent>, ChainError> {
        let reader = &self.0.reader;
        let filter = json!([{
            "address": to_eth(reader.spec.token),
            "fromBlock": format!("{from:#x}"),
            "toBlock": format!("{to:#x}"),
            "topics": topics,
        }]);
        let events = reader.rpc.request(reader.purpose, EVENTS, filter).await;
        events.map_err(|error| self.unread(error))
    }
}
