//! Operations: each is checked here, queued to the writer, and answered when the chain's state shows it done.

use std::time::Duration;

use alloy::primitives::B256;
use farthing_values::{Address, ChannelConfig, ChannelId, CloseConsent, Signature, Usdc};
use tokio::sync::{mpsc, oneshot};

use super::{ChainHandle, ClaimReport, ContractBooks, Landed, REQUESTS_MAX, TxReport};
use crate::{
    error::ChainError,
    intent::{ClaimRow, Intent},
    journal::TxHash,
    reader::{At, Balances, ChannelState, Receipt},
    rpc::RpcError,
    views::{ChainStatus, ChannelView, Role},
    watcher,
    writer::{CLAIM_ROWS_MAX, DepositUnderWay, Forms, Outcome, Request, claim_call, deposit_nonce},
};

impl ChainHandle {
    /// Adds `amount` to what the caller knew the channel to hold when it decided, in that round of it. Where the channel
    /// holds that much more already, say by a transaction from before a restart, nothing is deposited: asking again, also
    /// after a crash, deposits nothing twice. The deposit is an EIP-3009 authorization signed by this wallet, of which the
    /// token takes one for each decision, whatever an endpoint says of the channel meanwhile.
    ///
    /// # Errors
    /// See [`ChainError`]; with [`ChainError::InsufficientUsdc`] and [`ChainError::InsufficientEth`] nothing
    /// was sent. [`ChainError::UnderWay`] where it is signed, and the node stops meanwhile.
    pub async fn deposit_onto(
        &self,
        config: ChannelConfig,
        (round, deposited): (u32, Usdc),
        amount: Usdc,
    ) -> Result<TxReport, ChainError> {
        self.require_own_deposit(&config, amount)?;
        let target = deposited.checked_add(amount);
        let target = target.ok_or_else(|| ChainError::Invalid("the deposit is too large".to_owned()))?;
        self.track(config).await?;
        let intent = Intent::Deposit { config, target, amount_max: amount, terms: None, round: Some(round) };
        self.pursue(intent, std::future::pending()).await
    }

    /// Asks the token whether it has taken an authorization of one decision to deposit, as [`Self::deposit_onto`] makes them:
    /// none of that decision can be used any more, whatever the channel holds by now.
    pub async fn is_deposit_taken(
        &self,
        config: ChannelConfig,
        (round, deposited): (u32, Usdc),
    ) -> Result<bool, ChainError> {
        let at = At::Block(self.confirmed_block().await?);
        let nonce = deposit_nonce(config.id(&self.0.domain), round, deposited);
        let taken = self.0.reader.is_authorization_used(config.payer, nonce, at).await;
        taken.map_err(|error| self.unread(error))
    }

    /// Claims many channels in as few transactions as possible. Rows that cannot pay are left out and named. What the
    /// wallet's ETH does not pay for in one transaction is made smaller, so the rows that matter most come first.
    ///
    /// # Errors
    /// See [`ChainError`]; then nothing was claimed. What fails after that stands in the report.
    pub async fn claim_many(&self, rows: Vec<ClaimRow>) -> Result<ClaimReport, ChainError> {
        for row in &rows {
            self.require_claimable(row)?;
        }
        let mut claim = ClaimReport::default();
        let ids: Vec<ChannelId> = rows.iter().map(|row| row.config.id(&self.0.domain)).collect();
        let (mut left, mut most) = (rows.as_slice(), CLAIM_ROWS_MAX);
        while !left.is_empty() {
            let (part, rest) = left.split_at(most.min(left.len()));
            match self.operate(Intent::Claim { rows: part.to_vec() }).await {
                Ok(outcome) => {
                    claim.transactions.extend(outcome.receipt.map(|_| report(&outcome)));
                    claim.refused.extend(outcome.refused);
                    left = rest;
                }
                Err(ChainError::InsufficientEth { need_wei, have_wei, .. }) if part.len() > 1 => {
                    most = fewer_rows(part.len(), need_wei, have_wei);
                }
                Err(error) if claim.transactions.is_empty() => return Err(error),
                Err(error) => {
                    claim.failed = Some(error);
                    break;
                }
            }
        }
        let confirmed = At::Block(self.confirmed_block().await?);
        let states = self.0.reader.channels(&ids, confirmed).await.map_err(|error| self.unread(error))?;
        claim.claimed = ids.into_iter().zip(states.into_iter().map(|state| state.claimed)).collect();
        Ok(claim)
    }

    /// Lists those of these claims that the contract refuses now, and the reasons. Nothing is sent.
    ///
    /// # Errors
    /// See [`ChainError`]; an endpoint that does not answer says nothing of the contract.
    pub async fn refused_claims(&self, rows: &[ClaimRow]) -> Result<Vec<(ChannelId, String)>, ChainError> {
        let mut refused = Vec::new();
        for row in rows {
            match self.0.reader.call(self.0.wallet, self.spec().contract, &claim_call(row), At::Latest).await
            {
                Ok(_) => {}
                Err(RpcError::Refused(refusal)) if refusal.is_revert() => {
                    refused.push((row.config.id(&self.0.domain), refusal.reason()));
                }
                Err(error) => return Err(self.unread(error)),
            }
        }
        Ok(refused)
    }

    /// Final claim of the payee and immediate refund of the rest to the payer.
    pub async fn close(&self, row: ClaimRow) -> Result<TxReport, ChainError> {
        self.require_claimable(&row)?;
        self.operate(Intent::Close { row }).await.map(|outcome| report(&outcome))
    }

    /// The payer's request to close; the channel's delay begins.
    pub async fn request_close(&self, config: ChannelConfig) -> Result<TxReport, ChainError> {
        self.require_payer_or_signer(&config)?;
        self.operate(Intent::RequestClose { config }).await.map(|outcome| report(&outcome))
    }

    /// Brings the payee's signed close to the chain, at this wallet's cost: the payee ends with
    /// `consent.amount`, the payer gets the rest at once. `row.amount` is that amount, `row.cumulative` and
    /// `row.signature` are a voucher for at least as much; a payer may sign one for the purpose.
    ///
    /// # Errors
    /// See [`ChainError`]; [`ChainError::Invalid`] unless the payee signed this consent for this channel.
    pub async fn relay_close(
        &self,
        row: ClaimRow,
        consent: CloseConsent,
        signature: Signature,
    ) -> Result<TxReport, ChainError> {
        self.require_token(&row.config)?;
        require(consent.channel == row.config.id(&self.0.domain), "the signed close is of another channel")?;
        require(row.amount == consent.amount, "the claim is not the amount that the payee signed")?;
        require(row.amount <= row.cumulative, "the claim is above its voucher")?;
        let signed = consent.verify(&self.0.domain, signature, row.config.payee);
        require(signed.is_ok(), "the close is not signed by the channel's payee")?;
        let intent = Intent::RelayClose { row, consent, signature };
        self.operate(intent).await.map(|outcome| report(&outcome))
    }

    /// The refund to the payer after the delay, whoever asks for it.
    ///
    /// # Errors
    /// See [`ChainError`]; [`ChainError::Reverted`] while the delay is not over.
    pub async fn withdraw(&self, config: ChannelConfig) -> Result<TxReport, ChainError> {
        self.require_token(&config)?;
        self.operate(Intent::Withdraw { config }).await.map(|outcome| report(&outcome))
    }

    /// A plain transfer. Unlike the other operations it is not safe to ask for twice.
    ///
    /// # Errors
    /// See [`ChainError`]; nothing was sent, nor will be, unless [`ChainError::may_have_been_made`].
    pub async fn send_usdc(&self, to: Address, amount: Usdc) -> Result<TxReport, ChainError> {
        require(!amount.is_zero(), "a transfer of nothing")?;
        require(to != Address::ZERO, "the zero address would burn the money")?;
        self.transfer(Intent::SendUsdc { to, amount }).await
    }

    /// A plain transfer of the chain's own coin. Not safe to ask for twice.
    pub async fn send_eth(&self, to: Address, wei: u128) -> Result<TxReport, ChainError> {
        require(wei != 0, "a transfer of nothing")?;
        require(to != Address::ZERO, "the zero address would burn the money")?;
        let wei = wei.to_be_bytes();
        self.transfer(Intent::SendEth { to, wei }).await
    }

    /// Follows a channel whose events this node may not find, say because its ledger is older than the
    /// look-back. Channels of other wallets or tokens are ignored.
    ///
    /// # Errors
    /// [`ChainError::Stopped`].
    pub async fn track(&self, config: ChannelConfig) -> Result<(), ChainError> {
        self.0.watcher.send(watcher::Command::Track(config)).await.map_err(|_| ChainError::Stopped)
    }

    /// Reads a channel that is followed once more, soon.
    ///
    /// # Errors
    /// [`ChainError::Stopped`].
    pub async fn reread(&self, id: ChannelId) -> Result<(), ChainError> {
        self.0.watcher.send(watcher::Command::Reread(id)).await.map_err(|_| ChainError::Stopped)
    }

    /// Reads everything again now; returns when that was tried. For tests and for people who press a button.
    ///
    /// # Errors
    /// [`ChainError::Stopped`].
    pub async fn refresh(&self) -> Result<(), ChainError> {
        let (done, told) = oneshot::channel();
        let command = watcher::Command::Refresh(done);
        self.0.watcher.send(command).await.map_err(|_| ChainError::Stopped)?;
        told.await.map_err(|_| ChainError::Stopped)
    }

    /// Asks the chain what any wallet holds now.
    pub async fn balances_of(&self, wallet: Address) -> Result<Balances, ChainError> {
        self.0.reader.balances(wallet, At::Latest).await.map_err(|error| self.unread(error))
    }

    /// The newest block that the chain cannot replace any more; 0 where no endpoint can say. Counts as a request in the
    /// background, like [`Self::landed`].
    pub async fn settled_block(&self) -> Result<u64, ChainError> {
        let reader = &self.0.background;
        let unread = |error| self.unread(error);
        let safe = reader.safe_block().await.map_err(unread)?;
        let head = reader.head().await.map_err(unread)?;
        Ok(reader.confirmed(head.number()).min(safe.unwrap_or_default()))
    }

    /// Looks for a transaction; `None` when no block has it: its block was replaced, or an endpoint had invented it.
    pub async fn landed(&self, transaction: TxHash) -> Result<Option<Landed>, ChainError> {
        let receipt = self.0.background.receipt(B256::from(transaction.0)).await;
        Ok(receipt.map_err(|error| self.unread(error))?.map(|receipt| Landed {
            block: receipt.block(),
            fee_wei: receipt.fee_wei(),
            succeeded: receipt.succeeded(),
        }))
    }

    /// Asks the chain for the state of any channel now, as a view that is not remembered.
    pub async fn read_channel(&self, config: ChannelConfig) -> Result<ChannelView, ChainError> {
        let id = config.id(&self.0.domain);
        let at = At::Block(self.confirmed_block().await?);
        let state = self.0.reader.channel(id, at).await.map_err(|error| self.unread(error))?;
        let ChannelState { deposited, claimed, close_at_secs, round } = state;
        let role = if config.payer == self.0.wallet { Role::Payer } else { Role::Payee };
        let (safe_deposited, safe_round) = (deposited, round);
        Ok(ChannelView {
            id,
            config,
            role,
            deposited,
            safe_deposited,
            claimed,
            close_at_secs,
            round,
            safe_round,
        })
    }

    /// Reads the contract's USDC and its state of channels, by their ids: for an audit, which waits for nothing that is
    /// remembered.
    pub async fn read_contract(&self, ids: &[ChannelId]) -> Result<ContractBooks, ChainError> {
        let reader = &self.0.reader;
        let unread = |error| self.unread(error);
        let head = reader.head().await.map_err(unread)?.number();
        let block = reader.confirmed(head);
        let at = At::Block(block);
        let escrow = reader.balances(reader.spec.contract, at).await.map_err(unread)?.usdc;
        let confirmed = reader.channels(ids, at).await.map_err(unread)?;
        let newest = match block == head {
            true => confirmed.clone(),
            false => reader.channels(ids, At::Block(head)).await.map_err(unread)?,
        };
        Ok(ContractBooks { head, block, escrow, confirmed, newest })
    }

    /// Lists deposits that this wallet may have made before the start, and the chain has not shown.
    pub fn deposits_under_way_at_start(&self) -> &[DepositUnderWay] {
        &self.0.deposits
    }

    /// Tells whoever waits for a transfer or a deposit how far it is, so that a node which stops does not wait for the chain.
    pub fn let_go(&self) {
        self.0.let_go.cancel();
    }

    /// Waits until the node stops, and nobody is to wait for the chain any more.
    pub async fn until_let_go(&self) {
        self.0.let_go.cancelled().await;
    }

    /// Ends both tasks. A transaction under way stays in the journal and is reconciled at the next start.
    pub async fn shutdown(&self) {
        self.0.stop.cancel();
        self.0.tasks.wait().await;
    }

    async fn transfer(&self, intent: Intent) -> Result<TxReport, ChainError> {
        let patience = Duration::from_millis(self.spec().transfer_told_within_ms);
        self.pursue(intent, tokio::time::sleep(patience)).await
    }

    /// Moves money, and waits for it until `patience` is over or the node stops. What was signed is never told as unsent:
    /// without a word on its end, its hashes are told.
    pub(super) async fn pursue(
        &self,
        intent: Intent,
        patience: impl Future<Output = ()>,
    ) -> Result<TxReport, ChainError> {
        let (what, forms) = (intent.what(), Forms::default());
        let told = tokio::select! {
            told = self.request(intent, forms.clone()) => told,
            // What waits for its turn for so long is not made behind anybody's back.
            () = patience => match forms.withdraw() {
                true => Err(ChainError::Busy { waiting: 1 }),
                false => return Err(ChainError::UnderWay { what, hashes: forms.get() }),
            },
            // The node stops, and would forget what waits for its turn.
            () = self.0.let_go.cancelled() => match forms.withdraw() {
                true => Err(ChainError::Stopped),
                false => return Err(ChainError::UnderWay { what, hashes: forms.get() }),
            },
        };
        let hashes = forms.get();
        match told {
            Err(ChainError::Stopped) if !hashes.is_empty() => Err(ChainError::UnderWay { what, hashes }),
            told => told.map(|outcome| report(&outcome)),
        }
    }

    pub(super) async fn operate(&self, intent: Intent) -> Result<Outcome, ChainError> {
        self.request(intent, Forms::default()).await
    }

    async fn request(&self, intent: Intent, forms: Forms) -> Result<Outcome, ChainError> {
        let usable = self.require_usable().await;
        let needs_contract = !matches!(
            intent,
            Intent::DeployContract
                | Intent::SendUsdc { .. }
                | Intent::SendEth { .. }
                | Intent::TakePayment { .. }
        );
        match usable {
            Err(ChainError::ContractMissing { .. }) if !needs_contract => {}
            usable => usable?,
        }
        if intent.is_for_others() {
            self.require_room_for_payments()?;
        }
        let (done, told) = oneshot::channel();
        self.0.writer.try_send(Request { intent, done, forms }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => ChainError::Busy { waiting: REQUESTS_MAX },
            mpsc::error::TrySendError::Closed(_) => ChainError::Stopped,
        })?;
        told.await.map_err(|_| ChainError::Stopped)?
    }

    /// Checks that the writer's queue has room for what strangers ask for: half of the queue is for this wallet's own
    /// transactions.
    pub(super) fn require_room_for_payments(&self) -> Result<(), ChainError> {
        let queue = &self.0.writer;
        if queue.capacity() > REQUESTS_MAX / 2 {
            return Ok(());
        }
        Err(ChainError::Busy { waiting: REQUESTS_MAX / 2 })
    }

    /// Waits for the first answer of the chain, and refuses at once when there is no using it.
    pub(super) async fn require_usable(&self) -> Result<(), ChainError> {
        let mut status = self.status();
        let status = status.wait_for(|status| *status != ChainStatus::Connecting);
        let status = tokio::select! {
            status = status => status.map_err(|_| ChainError::Stopped)?.clone(),
            () = self.0.stop.cancelled() => return Err(ChainError::Stopped),
        };
        let chain = self.spec().name.clone();
        match status {
            ChainStatus::Connecting | ChainStatus::Ready => Ok(()),
            ChainStatus::ContractMissing { contract } => Err(ChainError::ContractMissing { chain, contract }),
            ChainStatus::Unreachable { reason } => Err(ChainError::Unreachable { chain, reason }),
            ChainStatus::Refused { reason } => Err(ChainError::Refused { chain, reason }),
        }
    }

    pub(super) async fn confirmed_block(&self) -> Result<u64, ChainError> {
        let head = self.0.reader.head().await.map_err(|error| self.unread(error))?;
        Ok(self.0.reader.confirmed(head.number()))
    }

    pub(super) fn require_own_deposit(&self, config: &ChannelConfig, amount: Usdc) -> Result<(), ChainError> {
        require(config.payer == self.0.wallet, "this wallet is not the channel's payer")?;
        require(config.signer == self.0.wallet, "another key signs for the channel")?;
        self.require_token(config)?;
        require(!amount.is_zero(), "a deposit of nothing")
    }

    fn require_claimable(&self, row: &ClaimRow) -> Result<(), ChainError> {
        require(row.config.payee == self.0.wallet, "this wallet is not the channel's payee")?;
        self.require_token(&row.config)?;
        require(row.amount <= row.cumulative, "the claim is above its voucher")
    }

    pub(super) fn require_token(&self, config: &ChannelConfig) -> Result<(), ChainError> {
        require(config.token == self.spec().token, "the channel's token is not this chain's USDC")
    }

    fn require_payer_or_signer(&self, config: &ChannelConfig) -> Result<(), ChainError> {
        let may = [config.payer, config.signer].contains(&self.0.wallet);
        require(may, "this wallet is neither payer nor signer of the channel")
    }

    pub(super) fn unread(&self, error: RpcError) -> ChainError {
        let chain = self.spec().name.clone();
        match error {
            RpcError::WrongChain(reason) => ChainError::Refused { chain, reason },
            RpcError::Unreachable(reason) => ChainError::Unreachable { chain, reason },
            RpcError::Refused(refusal) => ChainError::Unreachable { chain, reason: refusal.reason() },
        }
    }
}

pub(super) fn require(condition: bool, otherwise: &str) -> Result<(), ChainError> {
    if condition { Ok(()) } else { Err(ChainError::Invalid(otherwise.to_owned())) }
}

/// Computes how many of `rows` to try next when so much ETH is there and so much is needed for all of them: half of
/// them at most, because a transaction costs something without any row.
fn fewer_rows(rows: usize, need_wei: u128, have_wei: u128) -> usize {
    let share = have_wei.saturating_mul(rows as u128) / need_wei.max(1);
    usize::try_from(share).unwrap_or(rows).clamp(1, (rows / 2).max(1))
}

pub(super) fn report(outcome: &Outcome) -> TxReport {
    let of = |receipt: &Receipt| TxReport {
        tx_hash: Some(TxHash(receipt.transaction_hash.0)),
        block: receipt.block(),
        gas_used: receipt.gas_used(),
        fee_wei: receipt.fee_wei(),
    };
    outcome.receipt.as_ref().map(of).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_is_too_dear_is_made_smaller_until_one_row_is_left() {
        for (rows, need, have, expected) in [
            (100, 100, 99, 50),
            (100, 100, 30, 30),
            (100, 100, 0, 1),
            (3, 10, 9, 1),
            (2, 10, 9, 1),
            (2, 0, 0, 1),
        ] {
            assert_eq!(fewer_rows(rows, need, have), expected, "{rows} rows, {have} of {need} wei");
        }
    }
}
