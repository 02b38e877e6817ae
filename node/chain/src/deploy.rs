//! Setting up a local or test chain: the contract, a test token, money for wallets. Used by
//! `farthing testnet`, the demo and tests; each function sends one transaction and waits for it.
//!
//! These keys are throwaway ones: nothing is journalled, and a lost answer is simply an error.

use std::{sync::Arc, time::Duration};

use alloy::{
    primitives::{Address as EthAddress, Bytes, U256},
    signers::local::{MnemonicBuilder, coins_bip39::English},
    sol_types::{SolCall as _, SolValue as _},
};
use farthing_values::{Address, SecretKey, Usdc};

use crate::{
    contracts::{CREATE2_PROXY, TestUsdc, from_eth, pay_channels_address, pay_channels_deployment, to_eth},
    error::ChainError,
    fees,
    reader::{At, Reader, Receipt},
    rpc::{Purpose, Rpc, RpcError},
    spec,
    writer::{Unsigned, sign},
};

/// The phrase behind anvil's funded accounts: publicly known, for chains on this machine only.
pub const DEV_PHRASE: &str = "test test test test test test test test test test test junk";

/// The longest time that a transaction may take. A local chain mines at once; a public test chain within seconds.
const MINED_WITHIN: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Far above what any of these chains asks; test ETH is free.
const GAS_PRICE_CAP_WEI: u128 = 500_000_000_000;

/// The key of one of anvil's funded accounts (m/44'/60'/0'/0/`index`).
///
/// # Errors
/// [`ChainError::Invalid`] for an index that BIP-32 does not have.
pub fn dev_account(index: u32) -> Result<SecretKey, ChainError> {
    let invalid = |error: String| ChainError::Invalid(format!("no development account {index}: {error}"));
    let builder = MnemonicBuilder::<English>::default().phrase(DEV_PHRASE);
    let signer = builder
        .index(index)
        .and_then(|builder| builder.build())
        .map_err(|error| invalid(error.to_string()))?;
    SecretKey::from_bytes(&signer.to_bytes().0).map_err(|error| invalid(error.to_string()))
}

/// Computes the address of the contract that a key deploys with the first transaction it ever sends (CREATE with
/// nonce 0), so that nodes can be told of a test chain's token before there is a chain.
pub fn first_contract_of(deployer: Address) -> Address {
    from_eth(to_eth(deployer).create(0))
}

/// A key's way to send to one chain.
#[derive(Debug)]
pub struct Deployer {
    reader: Reader,
    key: SecretKey,
}

impl Deployer {
    /// Connects to the chain behind one endpoint and asks its id.
    ///
    /// # Errors
    /// [`ChainError::Unreachable`] or [`ChainError::Invalid`].
    pub async fn connect(rpc_url: &str, chain_id: u64, key: SecretKey) -> Result<Self, ChainError> {
        let spec = Arc::new(spec::local(rpc_url, chain_id, Address::ZERO));
        let rpc = Arc::new(Rpc::new(&spec).map_err(ChainError::Invalid)?);
        let reader = Reader { rpc, spec, purpose: Purpose::OnDemand };
        let deployer = Self { reader, key };
        deployer.reader.head().await.map_err(|error| failed("the chain", error))?;
        Ok(deployer)
    }

    pub fn address(&self) -> Address {
        self.key.address()
    }

    /// Deploys `PayChannels` through the CREATE2 proxy unless it is there, and returns its address.
    pub async fn pay_channels(&self) -> Result<Address, ChainError> {
        let what = "the deployment of PayChannels";
        let contract = pay_channels_address();
        if self.code_is_missing(contract, what).await? {
            self.send(what, Some(CREATE2_PROXY), 0, pay_channels_deployment()).await?;
        }
        if self.code_is_missing(contract, what).await? {
            let reason = format!("no code appeared at {contract}; does the chain have the CREATE2 proxy?");
            return Err(ChainError::Failed { what, reason });
        }
        Ok(contract)
    }

    /// Deploys a token with USDC's surface. `name` is also its EIP-712 name; the version is "2".
    pub async fn test_usdc(&self, name: &str, minter: Address) -> Result<Address, ChainError> {
        let what = "the deployment of the test token";
        let arguments = (name.to_owned(), "2".to_owned(), to_eth(minter)).abi_encode_params();
        let init_code = [TestUsdc::BYTECODE.as_ref(), &arguments].concat();
        let receipt = self.send(what, None, 0, init_code.into()).await?;
        let no_address = || ChainError::Failed { what, reason: "it made no contract".to_owned() };
        receipt.contract().map(from_eth).ok_or_else(no_address)
    }

    /// Makes test USDC. This key must be the token's minter.
    pub async fn mint(&self, token: Address, to: Address, amount: Usdc) -> Result<(), ChainError> {
        let call = TestUsdc::mintCall { to: to_eth(to), amount: U256::from(amount.micros()) };
        self.send("minting test USDC", Some(to_eth(token)), 0, call.abi_encode().into()).await.map(drop)
    }

    /// Sends ETH from this key's account.
    pub async fn fund_eth(&self, to: Address, wei: u128) -> Result<(), ChainError> {
        self.send("sending ETH", Some(to_eth(to)), wei, Bytes::new()).await.map(drop)
    }

    async fn code_is_missing(&self, address: Address, what: &'static str) -> Result<bool, ChainError> {
        Ok(self.reader.code(address).await.map_err(|error| failed(what, error))?.is_empty())
    }

    async fn send(
        &self,
        what: &'static str,
        to: Option<EthAddress>,
        value_wei: u128,
        data: Bytes,
    ) -> Result<Receipt, ChainError> {
        self.try_send(to, value_wei, data).await.map_err(|error| failed(what, error)).and_then(|receipt| {
            let reason = "the chain executed it to a revert".to_owned();
            if receipt.succeeded() { Ok(receipt) } else { Err(ChainError::Failed { what, reason }) }
        })
    }

    async fn try_send(
        &self,
        to: Option<EthAddress>,
        value_wei: u128,
        data: Bytes,
    ) -> Result<Receipt, RpcError> {
        let wallet = self.address();
        let gas = self.reader.estimate(wallet, to, value_wei, &data).await?;
        let base_fee_wei = self.reader.head().await?.base_fee_wei();
        let tips = fees::Tips::of(self.reader.spec.is_l2);
        let fees = fees::suggest(base_fee_wei, self.reader.tip_wei().await?, tips, GAS_PRICE_CAP_WEI)
            .ok_or_else(|| RpcError::Unreachable("gas is too dear for a test".to_owned()))?;
        let (chain_id, nonce) = (self.reader.spec.chain_id, self.reader.nonce(wallet, At::Latest).await?);
        let unsigned = Unsigned { chain_id, nonce, gas_limit: gas + gas / 5, to, value_wei, data };
        let signed = sign(unsigned, fees, &self.key);
        self.reader.send_raw(&signed.raw).await?;
        let mined = async {
            loop {
                if let Some(receipt) = self.reader.receipt(signed.hash).await? {
                    return Ok(receipt);
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::time::timeout(MINED_WITHIN, mined).await.unwrap_or_else(|_| {
            Err(RpcError::Unreachable(format!("not mined within {} s", MINED_WITHIN.as_secs())))
        })
    }
}

fn failed(what: &'static str, error: RpcError) -> ChainError {
    let chain = "the test chain".to_owned();
    match error {
        RpcError::Refused(refusal) => ChainError::Reverted { what, reason: refusal.reason() },
        RpcError::Unreachable(reason) => ChainError::Unreachable { chain, reason },
        RpcError::WrongChain(reason) => ChainError::Refused { chain, reason },
    }
}
