//! The contracts as Rust types, and a chain on which they are deployed.
//!
//! [`Chain::start`] starts anvil, lets every address send without a key, deploys `PayChannels` through
//! the CREATE2 proxy as on any chain, and a `TestUsdc`. After that a test sends calls and looks at what
//! they did. One request is one transaction in one block. [`rules`] has the contract in plain arithmetic.

use std::fmt;

use alloy::{
    network::TransactionBuilder as _,
    primitives::{Address, B256, Bytes, U256, address, keccak256},
    rpc::{
        client::RpcClient,
        types::{TransactionReceipt, TransactionRequest},
    },
    sol,
    sol_types::{Eip712Domain, SolCall, SolEvent, SolInterface as _, SolValue as _, eip712_domain},
    transports::{RpcError, TransportResult},
};
use anyhow::{Context as _, Result, anyhow, ensure};
use farthing_anvil::Anvil;
pub use farthing_contracts::{PayChannels, ReceiveWithAuthorization, TestUsdc, TransferWithAuthorization};
use serde::{Serialize, de::DeserializeOwned};

pub mod rules;

sol!(
    #[sol(all_derives)]
    HostileToken,
    "fixtures/HostileToken.json"
);
sol!(
    #[sol(all_derives)]
    TestAccount,
    "fixtures/TestAccount.json"
);

sol!(
    #[sol(all_derives)]
    Proxy,
    "fixtures/Proxy.json"
);

sol! {
    /// What a channel's signer signs.
    #[derive(Debug)]
    struct Voucher { bytes32 channelId; uint128 cumulative; }
}

/// What anvil calls its chain unless told otherwise.
pub const CHAIN_ID: u64 = Anvil::CHAIN_ID;
/// Deploys any init code at an address that only salt and code decide; present on every usual chain.
pub const CREATE2_PROXY: Address = address!("4e59b44847b379578588920cA78FbF26c0B4956C");
/// Holds every role of the test token.
pub const MINTER: Address = address!("00000000000000000000000000000000000004d1");

/// A running chain with the contracts on it.
#[derive(Debug)]
pub struct Chain {
    rpc: RpcClient,
    pub anvil: Anvil,
    pub usdc: Address,
    pub channels: Address,
}

/// Why a call was refused: its revert data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reverted(pub Bytes);

/// What a call returned, or why it was refused.
pub type Called<C> = Result<<C as SolCall>::Return, Reverted>;

impl Chain {
    /// A chain where gas is free and nobody needs a key to send.
    pub async fn start() -> Result<Self> {
        // The HTTP client refuses to be built without a TLS provider, though loopback needs none.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let free_gas = ["--gas-price", "0", "--block-base-fee-per-gas", "0"];
        let anvil = Anvil::start_with(0, &free_gas)?;
        let rpc = RpcClient::new_http(anvil.url().parse()?);
        let mut chain = Self { rpc, anvil, usdc: Address::ZERO, channels: pay_channels_address() };
        chain.request::<_, ()>("anvil_autoImpersonateAccount", (true,)).await?;
        let init_code = [B256::ZERO.as_slice(), &PayChannels::BYTECODE].concat();
        chain.transact(request(MINTER, CREATE2_PROXY, init_code.into())).await?;
        chain.usdc = chain.deploy_token("USDC", "2").await?;
        Ok(chain)
    }

    /// Deploys another test token.
    pub async fn deploy_token(&self, name: &str, version: &str) -> Result<Address> {
        let arguments = (name.to_owned(), version.to_owned(), MINTER).abi_encode_params();
        self.deploy([TestUsdc::BYTECODE.as_ref(), &arguments].concat().into()).await
    }

    /// Deploys init code in a plain transaction.
    pub async fn deploy(&self, init_code: Bytes) -> Result<Address> {
        let receipt =
            self.transact(TransactionRequest::default().from(MINTER).with_deploy_code(init_code)).await?;
        receipt.contract_address.context("the deployment made no contract")
    }

    /// Sends a call and waits for its receipt.
    pub async fn send<C: SolCall>(&self, from: Address, to: Address, call: &C) -> Result<TransactionReceipt> {
        let simulated = self.call(from, to, call).await?;
        simulated.with_context(|| format!("{} was refused", C::SIGNATURE))?;
        self.transact(request(from, to, call.abi_encode().into())).await
    }

    /// What a call would return on top of the latest block, without sending it.
    pub async fn call<C: SolCall>(&self, from: Address, to: Address, call: &C) -> Result<Called<C>> {
        let params = serde_json::to_value((request(from, to, call.abi_encode().into()), "latest"))?;
        called::<C>(self.rpc.request("eth_call", params).await)
    }

    /// Many such calls in one request, answered in order.
    pub async fn call_all<C: SolCall>(
        &self,
        from: Address,
        to: Address,
        calls: impl IntoIterator<Item = C>,
    ) -> Result<Vec<Called<C>>> {
        let mut batch = self.rpc.new_batch();
        let mut waiting = Vec::new();
        for call in calls {
            let params = (request(from, to, call.abi_encode().into()), "latest");
            waiting.push(batch.add_call::<_, Bytes>("eth_call", &params)?);
        }
        batch.send().await?;
        let mut answers = Vec::with_capacity(waiting.len());
        for answer in waiting {
            answers.push(called::<C>(answer.await)?);
        }
        Ok(answers)
    }

    /// A read that nobody in particular makes.
    pub async fn read<C: SolCall>(&self, to: Address, call: &C) -> Result<C::Return> {
        Ok(self.call(Address::ZERO, to, call).await??)
    }

    /// Sends a prepared transaction.
    pub async fn transact(&self, transaction: TransactionRequest) -> Result<TransactionReceipt> {
        let receipt = self.mine(transaction).await?;
        ensure!(receipt.status(), "the transaction {} reverted", receipt.transaction_hash);
        Ok(receipt)
    }

    /// Sends a prepared transaction that may revert. Without a gas limit one that would is refused.
    pub async fn mine(&self, mut transaction: TransactionRequest) -> Result<TransactionReceipt> {
        transaction.max_fee_per_gas = Some(0);
        transaction.max_priority_fee_per_gas = Some(0);
        self.request("eth_sendTransactionSync", (transaction,)).await
    }

    /// Any other request to the chain.
    pub async fn request<P: Serialize, R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: P,
    ) -> Result<R> {
        let params = serde_json::to_value(params)?;
        let answer: serde_json::Value =
            self.rpc.request(method, params).await.with_context(|| format!("{method} failed"))?;
        Ok(serde_json::from_value(answer)?)
    }

    /// Mines a block at the given time, so that calls and reads happen then.
    pub async fn mine_at(&self, time_secs: u64) -> Result<()> {
        self.request("evm_mine", (serde_json::json!({ "timestamp": time_secs }),)).await.map(|_: String| ())
    }

    /// The time of the latest block.
    pub async fn now(&self) -> Result<u64> {
        let block: serde_json::Value = self.request("eth_getBlockByNumber", ("latest", false)).await?;
        let text = block["timestamp"].as_str().ok_or_else(|| anyhow!("a block without a timestamp"))?;
        Ok(u64::from_str_radix(text.trim_start_matches("0x"), 16)?)
    }

    /// The domain in which channels and vouchers are signed.
    pub fn domain(&self) -> Eip712Domain {
        eip712_domain! {
            name: "Farthing PayChannels",
            version: "1",
            chain_id: CHAIN_ID,
            verifying_contract: self.channels,
        }
    }
}

impl fmt::Display for Reverted {
    /// The error's name and values, or its bytes when no contract here declares it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Ok(error) = PayChannels::PayChannelsErrors::abi_decode(&self.0) {
            write!(f, "{error:?}")
        } else if let Ok(error) = TestUsdc::TestUsdcErrors::abi_decode(&self.0) {
            write!(f, "{error:?}")
        } else {
            write!(f, "{}", self.0)
        }
    }
}

impl std::error::Error for Reverted {}

/// Tells a contract's refusal from a chain that does not answer.
fn called<C: SolCall>(answer: TransportResult<Bytes>) -> Result<Called<C>> {
    match answer {
        Ok(answer) => Ok(Ok(C::abi_decode_returns(&answer)?)),
        Err(RpcError::ErrorResp(error)) => {
            let data = error.as_revert_data().with_context(|| format!("eth_call failed: {error}"))?;
            Ok(Err(Reverted(data)))
        }
        Err(error) => Err(error.into()),
    }
}

/// Where the CREATE2 proxy puts the contract, with the salt zero, on every chain.
pub fn pay_channels_address() -> Address {
    CREATE2_PROXY.create2(B256::ZERO, keccak256(&PayChannels::BYTECODE))
}

/// The events of one type in a receipt, in order.
pub fn events<E: SolEvent>(receipt: &TransactionReceipt) -> Vec<E> {
    receipt.logs().iter().filter_map(|log| E::decode_log(&log.inner).ok()).map(|log| log.data).collect()
}

fn request(from: Address, to: Address, data: Bytes) -> TransactionRequest {
    TransactionRequest::default().from(from).to(to).input(data.into()).value(U256::ZERO)
}
