//! Verifies that the chain is the one that the settings describe: its token's EIP-712 domain and its contract's code.
//! The chain id is checked for each endpoint before anything else is asked of it (`rpc.rs`).

use alloy::primitives::{B256, Bytes};
use farthing_values::Address;

use crate::{
    contracts::{TestUsdc, pay_channels_code},
    error::ChainError,
    reader::{At, Reader},
    rpc::RpcError,
    token::TokenDomain,
};

/// The reason that a chain cannot be used.
#[derive(Debug)]
pub(crate) enum Unfit {
    Unreachable(String),
    Wrong(String),
}

impl Unfit {
    /// For whoever asked for something to be done on `chain`.
    pub(crate) fn told(self, chain: &str) -> ChainError {
        let chain = chain.to_owned();
        match self {
            Self::Unreachable(reason) => ChainError::Unreachable { chain, reason },
            Self::Wrong(reason) => ChainError::Refused { chain, reason },
        }
    }
}

impl From<RpcError> for Unfit {
    fn from(error: RpcError) -> Self {
        match error {
            RpcError::Unreachable(reason) => Self::Unreachable(reason),
            RpcError::WrongChain(reason) => Self::Wrong(reason),
            RpcError::Refused(refusal) => Self::Unreachable(format!("an endpoint answers: {refusal}")),
        }
    }
}

/// The code that a chain has at the contract's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContractCode {
    /// That of `PayChannels`.
    Right,
    Missing,
    /// That of something else, which is never used.
    Other,
}

impl ContractCode {
    pub(crate) fn of(code: &Bytes) -> Self {
        match code {
            code if code.is_empty() => Self::Missing,
            code if code == pay_channels_code() => Self::Right,
            _ => Self::Other,
        }
    }
}

/// USDC counts in millionths everywhere; a token that does not would make every amount wrong.
const DECIMALS: u8 = 6;

pub(crate) async fn token(reader: &Reader) -> Result<TokenDomain, Unfit> {
    let token = reader.spec.token;
    if reader.code(token).await?.is_empty() {
        return Err(Unfit::Wrong(format!("there is no token at {token}; check the chain's settings")));
    }
    let decimals = ask(reader, TestUsdc::decimalsCall {}).await?;
    if decimals != DECIMALS {
        return Err(Unfit::Wrong(format!("the token {token} has {decimals} decimals, so it is not USDC")));
    }
    let name = ask(reader, TestUsdc::nameCall {}).await?;
    let version = ask(reader, TestUsdc::versionCall {}).await?;
    let separator: B256 = ask(reader, TestUsdc::DOMAIN_SEPARATORCall {}).await?;
    TokenDomain::confirmed(name, version, reader.spec.chain_id, token, separator)
        .map_err(|error| Unfit::Wrong(error.to_string()))
}

pub(crate) async fn contract(reader: &Reader) -> Result<ContractCode, RpcError> {
    Ok(ContractCode::of(&reader.code(reader.spec.contract).await?))
}

/// The reason that a chain with [`ContractCode::Other`] is not used.
pub(crate) fn other_code(contract: Address) -> String {
    format!("the code at {contract} is not the PayChannels contract")
}

/// A question every USDC answers; a revert means that this is none.
async fn ask<C: alloy::sol_types::SolCall>(reader: &Reader, call: C) -> Result<C::Return, Unfit> {
    let token = reader.spec.token;
    match reader.call(Address::ZERO, token, &call, At::Latest).await {
        Ok(answer) => Ok(answer),
        Err(RpcError::Refused(refusal)) if refusal.is_revert() => {
            Err(Unfit::Wrong(format!("the token {token} does not answer {} as USDC does", C::SIGNATURE)))
        }
        Err(error) => Err(error.into()),
    }
}
