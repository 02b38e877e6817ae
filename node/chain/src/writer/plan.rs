//! From an intent to what its transaction does: has it come true already, and which part of it can be had.

use alloy::{
    primitives::{Address as EthAddress, B256, Bytes, U256},
    sol_types::SolCall as _,
};
use farthing_os::clock;
use farthing_values::{
    Address, ChannelConfig, ChannelId, DepositAuthorization, Hash, SignedDeposit, SignedTransfer,
    TransferAuthorization, Usdc, keccak256,
};

use super::{Writer, bisect::bisect};
use crate::{
    contracts::{
        CREATE2_PROXY, Claim, PAYER_HAS_CODE, PayChannels, TestUsdc, compact, deposit_call,
        pay_channels_deployment, request_close_call, to_channel, to_consent, to_eth, transfer_call,
    },
    error::ChainError,
    intent::{ClaimRow, DepositTerms, Intent},
    reader::{At, ChannelState},
    rpc::RpcError,
    spec::ChainKind,
    token::authorization_nonce,
    verify::{self, ContractCode},
};

/// The work that is left to do for an intent.
#[derive(Default)]
pub(super) struct Plan {
    /// `None` when the chain is already in the wanted state, or nothing of the intent can be had.
    pub body: Option<Body>,
    /// Claim rows that the contract would not pay, and why.
    pub refused: Vec<(ChannelId, String)>,
}

/// A transaction before nonce and fees.
pub(super) struct Body {
    pub intent: Intent,
    pub to: EthAddress,
    pub value_wei: u128,
    pub data: Bytes,
}

/// The time for which an authorization to deposit can be used, by whoever has seen it: it outlives a long wait for a
/// dear chain, and dies before anyone forgets it.
pub const AUTHORIZATION_SECS: u64 = 24 * 3600;

/// The time that an authorization has to be valid for when its transaction is sent: two blocks of Ethereum.
const PAYMENT_SECS_MIN: u64 = 30;

impl From<Body> for Plan {
    fn from(body: Body) -> Self {
        Self { body: Some(body), refused: Vec::new() }
    }
}

/// From when an authorization is counted: with a block of the future it would live longer than the node counts it.
/// The clock of a chain on this machine may jump.
pub(crate) fn dated(kind: ChainKind, block_secs: u64, now_secs: u64) -> u64 {
    if kind == ChainKind::Local { block_secs } else { block_secs.min(now_secs) }
}

impl Writer {
    pub(super) async fn plan(&self, intent: Intent) -> Result<Plan, ChainError> {
        let what = intent.what();
        let read = |error| self.failed(what, error);
        if self.is_fulfilled(&intent, At::Latest).await.map_err(read)? {
            return Ok(Plan::default());
        }
        let contract = to_eth(self.reader.spec.contract);
        let call = |intent: Intent, data: Vec<u8>| {
            Plan::from(Body { intent, to: contract, value_wei: 0, data: data.into() })
        };
        Ok(match intent {
            Intent::Deposit { config, target, amount_max, terms, round } => {
                self.plan_deposit(config, (target, amount_max), terms, round).await?
            }
            Intent::Claim { rows } => self.plan_claim(rows).await.map_err(read)?,
            Intent::Close { row } => {
                let data = PayChannels::closeCall { claim_: to_claim(&row) }.abi_encode();
                call(Intent::Close { row }, data)
            }
            Intent::RequestClose { config } => {
                let data = PayChannels::requestCloseCall { channel: to_channel(&config) }.abi_encode();
                call(Intent::RequestClose { config }, data)
            }
            Intent::RelayClose { row, consent, signature } => {
                let claim_ = to_claim(&row);
                let consent_ = to_consent(consent.deadline_secs, &signature);
                let data = PayChannels::closeBySignatureCall { claim_, consent: consent_ }.abi_encode();
                call(Intent::RelayClose { row, consent, signature }, data)
            }
            Intent::Withdraw { config } => {
                let data = PayChannels::withdrawCall { channel: to_channel(&config) }.abi_encode();
                call(Intent::Withdraw { config }, data)
            }
            Intent::SendUsdc { to, amount } => {
                let balances = self.reader.balances(self.wallet, At::Latest).await.map_err(read)?;
                self.require_usdc(balances, amount)?;
                let transfer = TestUsdc::transferCall { to: to_eth(to), value: U256::from(amount.micros()) };
                let (to_token, data) = (to_eth(self.reader.spec.token), transfer.abi_encode().into());
                Body { intent: Intent::SendUsdc { to, amount }, to: to_token, value_wei: 0, data }.into()
            }
            Intent::SendEth { to, wei } => {
                let (value_wei, data) = (u128::from_be_bytes(wei), Bytes::new());
                Body { intent: Intent::SendEth { to, wei }, to: to_eth(to), value_wei, data }.into()
            }
            Intent::DeployContract => {
                let data = pay_channels_deployment();
                Body { intent: Intent::DeployContract, to: CREATE2_PROXY, value_wei: 0, data }.into()
            }
            Intent::TakePayment { payment } => self.plan_payment(payment).await?,
            Intent::SponsorDeposit { signed } => {
                let DepositAuthorization { config, valid_before_secs, .. } = signed.deposit;
                self.require_sure(what, config.payer, valid_before_secs).await?;
                call(Intent::SponsorDeposit { signed }, deposit_call(&signed).abi_encode())
            }
            Intent::SponsorRequest { config, request, signature } => {
                let data = request_close_call(&config, &request, &signature).abi_encode();
                call(Intent::SponsorRequest { config, request, signature }, data)
            }
        })
    }

    /// Returns whether the chain's state shows that an intent has come true. Transfers leave no such trace.
    pub(super) async fn is_fulfilled(&self, intent: &Intent, at: At) -> Result<bool, RpcError> {
        Ok(match intent {
            Intent::Deposit { config, target, terms, .. } => {
                self.state(config, at).await?.deposited >= *target
                    || match terms {
                        Some(terms) => {
                            let nonce = authorization_nonce(config.id(&self.domain), terms.salt);
                            self.reader.is_authorization_used(config.payer, nonce, at).await?
                        }
                        None => false,
                    }
            }
            Intent::Claim { rows } => {
                let states = self.states(rows, at).await?;
                rows.iter().zip(states).all(|(row, state)| owed(row, state).is_zero())
            }
            Intent::Close { row } => {
                let state = self.state(&row.config, at).await?;
                state.is_empty() && owed(row, state).is_zero()
            }
            Intent::RequestClose { config } => {
                let state = self.state(config, at).await?;
                state.close_at_secs.is_some() || state.is_empty()
            }
            // Once the channel was emptied, the word was for what is over.
            Intent::RelayClose { row, consent, .. } => {
                let state = self.state(&row.config, at).await?;
                state.is_empty() || state.round != consent.round
            }
            Intent::Withdraw { config } => self.state(config, at).await?.is_empty(),
            Intent::DeployContract => verify::contract(&self.reader).await? == ContractCode::Right,
            // Also by somebody else, or for something else: the token's events tell.
            Intent::TakePayment { payment } => {
                let (payer, nonce) = (payment.authorization.from, payment.authorization.nonce);
                self.reader.is_authorization_used(payer, nonce.into(), at).await?
            }
            Intent::SponsorDeposit { signed } => {
                let (payer, nonce) = (signed.deposit.config.payer, signed.deposit.nonce(&self.domain));
                self.reader.is_authorization_used(payer, nonce.into(), at).await?
            }
            // Once the channel was emptied, the word was for what is over.
            Intent::SponsorRequest { config, request, .. } => {
                let state = self.state(config, at).await?;
                state.close_at_secs.is_some() || state.is_empty() || state.round != request.round
            }
            Intent::SendUsdc { .. } | Intent::SendEth { .. } => false,
        })
    }

    async fn plan_payment(&self, payment: SignedTransfer) -> Result<Plan, ChainError> {
        let TransferAuthorization { from, valid_before_secs, .. } = payment.authorization;
        self.require_sure("the payment", from, valid_before_secs).await?;
        let (to, data) = (to_eth(self.reader.spec.token), transfer_call(&payment).abi_encode().into());
        Ok(Body { intent: Intent::TakePayment { payment }, to, value_wei: 0, data }.into())
    }

    /// An authorization that could fail in its block after a trial that succeeds is not brought: it would cost this wallet gas,
    /// and its payer nothing.
    async fn require_sure(
        &self,
        what: &'static str,
        payer: Address,
        valid_before_secs: u64,
    ) -> Result<(), ChainError> {
        let asked = tokio::try_join!(self.reader.code(payer), self.reader.head());
        let (code, head) = asked.map_err(|error| self.failed(what, error))?;
        let reason = match () {
            () if !code.is_empty() => PAYER_HAS_CODE,
            () if valid_before_secs < head.timestamp_secs().saturating_add(PAYMENT_SECS_MIN) => {
                "the authorization expires too soon for a block"
            }
            () => return Ok(()),
        };
        Err(ChainError::Reverted { what, reason: reason.to_owned() })
    }

    async fn plan_deposit(
        &self,
        config: ChannelConfig,
        (target, amount_max): (Usdc, Usdc),
        terms: Option<DepositTerms>,
        round: Option<u32>,
    ) -> Result<Plan, ChainError> {
        let what = "the deposit";
        let id = config.id(&self.domain);
        let (state, head, balances) = tokio::join!(
            self.reader.channel(id, At::Latest),
            self.reader.head(),
            self.reader.balances(self.wallet, At::Latest),
        );
        let failed = |error| self.failed(what, error);
        let (state, head) = (state.map_err(failed)?, head.map_err(failed)?);
        let decided = target.saturating_sub(amount_max);
        // What is decided on what is not there would use an authorization up that a later deposit needs.
        if round.is_some_and(|round| (state.round, state.deposited) < (round, decided)) {
            let reason = "the channel holds less than when this was decided";
            return Err(ChainError::Invalid(format!("{what} was not made: {reason}; try again")));
        }
        // Nor is what was to be added to a deposit put in the place of one that has gone back meanwhile.
        let is_over = round.is_some_and(|round| state.round > round) && !decided.is_zero();
        if is_over && terms.is_none() {
            let reason = "the channel was closed after this was decided";
            return Err(ChainError::Invalid(format!("{what} was not made: {reason}; try again")));
        }
        let now_secs = dated(self.reader.spec.kind, head.timestamp_secs(), clock::now_secs());
        // An earlier authorization is used again as long as it lives: the token takes it once at most.
        let terms = terms.filter(|terms| terms.valid_before_secs > now_secs + 600);
        let terms = match terms {
            Some(terms) => terms,
            None => DepositTerms {
                amount: target.saturating_sub(state.deposited).min(amount_max),
                valid_before_secs: now_secs + AUTHORIZATION_SECS,
                salt: deposit_salt(id, round.unwrap_or(state.round), decided),
            },
        };
        self.require_usdc(balances.map_err(failed)?, terms.amount)?;
        // Read anew for each deposit: kept, a lie about the token's name would outlive the endpoint that told it.
        let token = verify::token(&self.reader).await.map_err(|unfit| unfit.told(&self.reader.spec.name))?;
        let signature =
            token.sign(&terms.authorization(config.payer, id), self.reader.spec.contract, &self.key);
        let DepositTerms { amount, valid_before_secs, salt } = terms;
        let deposit = DepositAuthorization { config, amount, valid_before_secs, salt };
        let data = deposit_call(&SignedDeposit { deposit, signature }).abi_encode().into();
        let intent = Intent::Deposit { config, target, amount_max, terms: Some(terms), round };
        let to = to_eth(self.reader.spec.contract);
        Ok(Body { intent, to, value_wei: 0, data }.into())
    }

    /// Leaves out what cannot pay. The contract skips such rows, but they cost gas and hide that money which
    /// was counted on will not come.
    async fn plan_claim(&self, rows: Vec<ClaimRow>) -> Result<Plan, RpcError> {
        let states = self.states(&rows, At::Latest).await?;
        let due: Vec<(ClaimRow, Usdc)> = rows
            .into_iter()
            .zip(states)
            .map(|(row, state)| (row, owed(&row, state)))
            .filter(|(_, owed)| !owed.is_zero())
            .collect();
        let probe = |part: Vec<(ClaimRow, Usdc)>| self.probe_claim(part);
        let (good, bad) = bisect(due, &probe).await?;
        let name = |((row, _), reason): ((ClaimRow, Usdc), String)| (row.id(&self.domain), reason);
        let refused = bad.into_iter().map(name).collect();
        if good.is_empty() {
            return Ok(Plan { body: None, refused });
        }
        let rows: Vec<ClaimRow> = good.into_iter().map(|(row, _)| row).collect();
        let data = self.claim_many(&rows).abi_encode().into();
        let to = to_eth(self.reader.spec.contract);
        Ok(Plan { body: Some(Body { intent: Intent::Claim { rows }, to, value_wei: 0, data }), refused })
    }

    /// Returns the reason that these rows together would not pay all they owe; `None` when they would.
    async fn probe_claim(&self, rows: Vec<(ClaimRow, Usdc)>) -> Result<Option<String>, RpcError> {
        let due: u128 = rows.iter().map(|(_, owed)| u128::from(*owed)).sum();
        let contract = self.reader.spec.contract;
        if let [(row, _)] = rows.as_slice() {
            // Unlike `claimMany`, `claim` says why a row does not pay.
            return match self.reader.call(self.wallet, contract, &claim_call(row), At::Latest).await {
                Ok(_) => Ok(None),
                Err(RpcError::Refused(refusal)) if refusal.is_revert() => Ok(Some(refusal.reason())),
                Err(error) => Err(error),
            };
        }
        let rows: Vec<ClaimRow> = rows.into_iter().map(|(row, _)| row).collect();
        match self.reader.call(self.wallet, contract, &self.claim_many(&rows), At::Latest).await {
            Ok(paid) if paid >= U256::from(due) => Ok(None),
            Ok(paid) => Ok(Some(format!("only {paid} of {due} micros would be paid"))),
            Err(RpcError::Refused(refusal)) => Ok(Some(refusal.reason())),
            Err(error) => Err(error),
        }
    }

    async fn state(&self, config: &ChannelConfig, at: At) -> Result<ChannelState, RpcError> {
        self.reader.channel(config.id(&self.domain), at).await
    }

    async fn states(&self, rows: &[ClaimRow], at: At) -> Result<Vec<ChannelState>, RpcError> {
        let ids: Vec<ChannelId> = rows.iter().map(|row| row.id(&self.domain)).collect();
        self.reader.channels(&ids, at).await
    }

    fn claim_many(&self, rows: &[ClaimRow]) -> PayChannels::claimManyCall {
        let claims = rows.iter().map(to_claim).collect();
        PayChannels::claimManyCall { token: to_eth(self.reader.spec.token), claims }
    }
}

/// Computes what a row still has coming, as the contract counts: never more than the deposit.
fn owed(row: &ClaimRow, state: ChannelState) -> Usdc {
    row.amount.min(state.deposited).saturating_sub(state.claimed)
}

/// The claim of one row alone.
pub(crate) fn claim_call(row: &ClaimRow) -> PayChannels::claimCall {
    PayChannels::claimCall { claim_: to_claim(row) }
}

fn to_claim(row: &ClaimRow) -> Claim {
    let (r, vs) = compact(&row.signature);
    Claim {
        channel: to_channel(&row.config),
        cumulative: row.cumulative.into(),
        amount: row.amount.into(),
        r,
        vs,
    }
}

/// The same for every authorization of one decision, so that the token takes one of them at most: each attempt that fails
/// leaves one with the endpoint that simulated it, which may tell of another state each time. Within a round of the channel
/// a deposit only grows, and a new round has a new number, so no salt returns that was used.
pub(crate) fn deposit_salt(id: ChannelId, round: u32, deposited: Usdc) -> Hash {
    let (round, deposited) = (round.to_be_bytes(), deposited.micros().to_be_bytes());
    keccak256(&[b"farthing deposit", id.as_bytes(), &round, &deposited])
}

/// The number of every authorization of one decision, by which the token knows it.
pub(crate) fn deposit_nonce(id: ChannelId, round: u32, deposited: Usdc) -> B256 {
    authorization_nonce(id, deposit_salt(id, round, deposited))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authorization_is_dated_by_no_block_of_the_future_but_on_a_chain_whose_clock_jumps() {
        for (kind, block_secs, secs) in [
            (ChainKind::Mainnet, 990, 990),
            (ChainKind::Mainnet, 9_000, 1_000),
            (ChainKind::Local, 9_000, 9_000),
        ] {
            assert_eq!(dated(kind, block_secs, 1_000), secs, "{kind} {block_secs}");
        }
    }
}
