//! The means for a deposit: the wallet's USDC, and its ETH for gas, unless the owner pays that.

use farthing_chain::{Balances, ChainError, ChainKind};
use farthing_ledger::LedgerError;
use farthing_protocol::{Address, Usdc};
use farthing_shared::{
    chain_view::{self, NotReady},
    gas::TransactionCost,
};

use super::Funding;
use crate::consumer::{BuyError, MissingFunds, deposits::WantedDeposit};

/// Gas for opening a channel with room for a dear moment; a wallet with less asks owners to pay it.
const ETH_WEI_MIN: u128 = 20_000_000_000_000;
/// ETH that a user is asked for at least: a little more than a deposit costs while gas is cheap. Amounts are rounded up to half of it.
const ETH_WEI_ASKED: u128 = 200_000_000_000_000;
/// Gas of a deposit that opens a channel (measured, `docs/contracts.md`), and how many times its cost a deposit is worth that an
/// owner is asked to pay it for. Owners ask for twenty times as a rule, and gas may rise until they are asked.
const DEPOSIT_GAS: u64 = 125_000;
const SPONSORED_FACTOR: u64 = 25;

impl Funding {
    /// Tells whether the wallet has too little ETH for the gas of its own transactions, as far as the chain was read.
    pub fn lacks_eth(&self) -> bool {
        let balances = *self.0.chain.balances().borrow();
        balances.is_some_and(lacks_eth)
    }

    pub(super) fn check_ready(&self) -> Result<(), BuyError> {
        if let Some(closed) = self.0.ledger.closed() {
            return Err(LedgerError::Closed(closed).into());
        }
        chain_view::ready(&self.0.chain).map_err(Into::into)
    }

    /// Checks that somebody pays for the gas of a deposit: without that an authorization would be signed that nobody
    /// needs, and count as money at rest until it lapses.
    pub(super) fn check_gas(&self, owner: Address, balance: Balances, amount: Usdc) -> Result<(), BuyError> {
        if self.has_gas(owner, balance) {
            return Ok(());
        }
        Err(self.missing(owner, balance, amount.min(balance.usdc)))
    }

    /// Tells whether the wallet or, as far as is known, the owner pays the gas of a deposit.
    pub(super) fn has_gas(&self, owner: Address, balance: Balances) -> bool {
        !lacks_eth(balance) || self.not_sponsored(owner).is_none()
    }

    /// Makes a deposit without ETH large enough for the owner to pay its gas, as far as the settings and the wallet allow.
    pub(super) fn sized_for_gas(&self, wanted: WantedDeposit, balance: Balances) -> WantedDeposit {
        let fee = *self.0.chain.base_fee().borrow();
        // Gas has no price on a chain of one's own.
        let is_priced = lacks_eth(balance) && self.0.chain.spec().kind != ChainKind::Local;
        let Some(fee) = fee.filter(|_| is_priced) else { return wanted };
        let worth = TransactionCost::of(&fee, DEPOSIT_GAS).likely.saturating_mul(SPONSORED_FACTOR);
        let most = self.0.policy.deposit_max.min(balance.usdc);
        WantedDeposit { amount: wanted.amount.max(worth.min(most)), ..wanted }
    }

    /// The ETH that is asked for: the most that a deposit is sent with now. Gas has no price on a chain of one's own.
    fn wei_asked(&self) -> u128 {
        let fee = *self.0.chain.base_fee().borrow();
        let priced = fee.filter(|_| self.0.chain.spec().kind != ChainKind::Local);
        priced.map_or(ETH_WEI_ASKED, |fee| rounded(TransactionCost::of(&fee, DEPOSIT_GAS).most_wei))
    }

    /// The money that is missing. ETH is asked for only where the owner has said that it does not pay the gas.
    pub(super) fn missing(&self, owner: Address, balance: Balances, usdc_need: Usdc) -> BuyError {
        let not_sponsored = self.not_sponsored(owner).filter(|_| lacks_eth(balance));
        // What the owner has keeps its money, also after a restart, and the user sees why.
        let signed = not_sponsored.as_ref().and_then(|_| self.signed_for(owner));
        BuyError::Unfunded(MissingFunds {
            address: self.0.wallet,
            chain: self.0.chain.spec().name.clone(),
            usdc_have: balance.usdc,
            usdc_need,
            wei_missing: not_sponsored.as_ref().map(|_| self.wei_asked()),
            not_sponsored,
            signed,
        })
    }

    /// The wallet's money, without what is promised to x402 servers.
    pub(super) fn balance(&self) -> Result<Balances, BuyError> {
        let (pledges, balances) = self.pledges();
        balances.map(|all| pledges.left_of(all)).ok_or_else(|| NotReady::BalanceUnknown.into())
    }
}

/// An amount of ETH for people, rounded up.
fn rounded(wei: u128) -> u128 {
    wei.checked_next_multiple_of(ETH_WEI_ASKED / 2).unwrap_or(wei).max(ETH_WEI_ASKED)
}

const fn lacks_eth(balance: Balances) -> bool {
    balance.eth_wei < ETH_WEI_MIN
}

/// Tells whether a deposit ended before its authorization was signed, so that nobody can bring it.
pub(super) const fn is_unsigned(error: &ChainError) -> bool {
    matches!(
        error,
        ChainError::InsufficientUsdc { .. }
            | ChainError::Busy { .. }
            | ChainError::ContractMissing { .. }
            | ChainError::Invalid(_)
    )
}

/// Tells whether a deposit ended before its transaction was signed, so that it has cost no gas.
pub(super) const fn is_unsent(error: &ChainError) -> bool {
    is_unsigned(error)
        || matches!(
            error,
            ChainError::Reverted { .. }
                | ChainError::GasTooDear { .. }
                | ChainError::InsufficientEth { .. }
                | ChainError::Unreachable { .. }
                | ChainError::Refused { .. }
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eth_that_is_asked_for_pays_what_gas_costs() {
        for (wei, asked) in
            [(0, "0.0002"), (150_000_000_000_000, "0.0002"), (10_020_000_000_000_000, "0.0101")]
        {
            assert_eq!(farthing_chain::eth(rounded(wei)), asked);
        }
    }
}
