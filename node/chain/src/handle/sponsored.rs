//! Deposits of this wallet that another one pays the gas of, and transactions of others that this wallet pays the gas of.
//!
//! A deposit that is to be sponsored is made into an authorization here, signed by who holds the key, and kept by who asks for
//! it: this wallet can still make the same deposit itself, with the same authorization, of which the token takes one.

use std::time::Duration;

use farthing_os::clock;
use farthing_values::{ChannelConfig, DepositAuthorization, SignedDeposit, Usdc, sponsor::SponsorAsked};

use super::{ChainHandle, TxReport, operations::require};
use crate::{
    contracts::{PAYER_HAS_CODE, sponsored_call, to_eth},
    error::ChainError,
    intent::{DepositTerms, Intent},
    reader::At,
    rpc::RpcError,
    writer::{AUTHORIZATION_SECS, dated, deposit_salt},
};

/// The result of trying what another wallet asks this one to pay the gas of. Nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SponsorTrial {
    /// It would take so much gas.
    Takes { gas: u64 },
    /// The chain would refuse it, for this reason.
    Fails(String),
}

impl ChainHandle {
    /// Makes the authorization of one decision to deposit, for another wallet to bring. Each of one decision has the same nonce,
    /// also that of [`Self::deposit_onto`], so the token takes one of them.
    ///
    /// # Errors
    /// See [`ChainError`]; nothing is signed here.
    pub async fn deposit_to_sign(
        &self,
        config: ChannelConfig,
        (round, deposited): (u32, Usdc),
        amount: Usdc,
    ) -> Result<DepositAuthorization, ChainError> {
        self.require_own_deposit(&config, amount)?;
        self.require_usable().await?;
        self.track(config).await?;
        let (id, wallet) = (config.id(&self.0.domain), self.0.wallet);
        let (state, head, balances) = tokio::try_join!(
            self.0.reader.channel(id, At::Latest),
            self.0.reader.head(),
            self.0.reader.balances(wallet, At::Latest),
        )
        .map_err(|error| self.unread(error))?;
        let is_as_decided = (state.round, state.deposited) == (round, deposited);
        require(is_as_decided, "the deposit was not made: the channel has changed meanwhile; try again")?;
        if balances.usdc < amount {
            let (chain, have) = (self.spec().name.clone(), balances.usdc);
            return Err(ChainError::InsufficientUsdc { chain, wallet, need: amount, have });
        }
        let now_secs = dated(self.spec().kind, head.timestamp_secs(), clock::now_secs());
        let (valid_before_secs, salt) = (now_secs + AUTHORIZATION_SECS, deposit_salt(id, round, deposited));
        Ok(DepositAuthorization { config, amount, valid_before_secs, salt })
    }

    /// Makes a deposit that was signed for another wallet to bring, at this wallet's cost: the same authorization is used again.
    ///
    /// # Errors
    /// As of [`Self::deposit_onto`].
    pub async fn deposit_signed(
        &self,
        signed: &SignedDeposit,
        (round, deposited): (u32, Usdc),
    ) -> Result<TxReport, ChainError> {
        let DepositAuthorization { config, amount, valid_before_secs, salt } = signed.deposit;
        self.require_own_deposit(&config, amount)?;
        let target = deposited.checked_add(amount);
        let target = target.ok_or_else(|| ChainError::Invalid("the deposit is too large".to_owned()))?;
        self.track(config).await?;
        let terms = Some(DepositTerms { amount, valid_before_secs, salt });
        let intent = Intent::Deposit { config, target, amount_max: amount, terms, round: Some(round) };
        self.pursue(intent, std::future::pending()).await
    }

    /// Tries what another wallet asks this one to pay the gas of, without sending anything.
    ///
    /// # Errors
    /// See [`ChainError`]; an endpoint that does not answer says nothing of it. [`ChainError::Busy`] when too much waits.
    pub async fn try_sponsored(&self, asked: &SponsorAsked) -> Result<SponsorTrial, ChainError> {
        self.require_room_for_payments()?;
        let reader = &self.0.reader;
        if let SponsorAsked::Deposit(signed) = asked {
            let code = reader.code(signed.deposit.config.payer).await.map_err(|error| self.unread(error))?;
            if !code.is_empty() {
                return Ok(SponsorTrial::Fails(PAYER_HAS_CODE.to_owned()));
            }
        }
        let (to, data) = (to_eth(self.spec().contract), sponsored_call(asked));
        match reader.estimate(self.0.wallet, Some(to), 0, &data).await {
            Ok(gas) => Ok(SponsorTrial::Takes { gas }),
            Err(RpcError::Refused(refusal)) if refusal.is_revert() => {
                Ok(SponsorTrial::Fails(refusal.reason()))
            }
            Err(error) => Err(self.unread(error)),
        }
    }

    /// Brings what another wallet asks for to the chain, at this wallet's cost. Asking again does nothing twice.
    ///
    /// # Errors
    /// See [`ChainError`]; [`ChainError::UnderWay`] where it is signed and in no block after `patience`.
    pub async fn sponsor(&self, asked: SponsorAsked, patience: Duration) -> Result<TxReport, ChainError> {
        self.require_token(asked.config())?;
        self.require_room_for_payments()?;
        let intent = match asked {
            SponsorAsked::Deposit(signed) => Intent::SponsorDeposit { signed },
            SponsorAsked::RequestClose(config, request, signature) => {
                Intent::SponsorRequest { config, request, signature }
            }
            SponsorAsked::Withdraw(config) => Intent::Withdraw { config },
        };
        self.pursue(intent, tokio::time::sleep(patience)).await
    }
}
