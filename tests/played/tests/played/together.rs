//! Anvil and the played chain, asked and told the same.

use alloy::{
    primitives::{Address, Bytes, U256, hex},
    rpc::client::RpcClient,
    signers::local::PrivateKeySigner,
    sol_types::SolValue as _,
    transports::RpcError,
};
use anyhow::{Context as _, Result, anyhow, ensure};
use farthing_contract_tests::{CHAIN_ID, Chain, TestUsdc, pay_channels_address};
use farthing_played_chain::{Genesis, PlayedChain};
use serde_json::{Value, json};

use crate::people::Draft;

const ETH: u128 = 1_000_000_000_000_000_000;
/// More than any transaction here takes on either chain.
const GAS_LIMIT: u64 = 3_000_000;
const GWEI: u128 = 1_000_000_000;

/// Fields that `node/chain` reads of a receipt, besides its gas, which the played chain does not count as the real one does.
const OF_RECEIPT: [&str; 5] =
    ["transactionHash", "blockNumber", "effectiveGasPrice", "status", "contractAddress"];
const OF_LOG: [&str; 7] =
    ["address", "topics", "data", "blockNumber", "transactionHash", "transactionIndex", "logIndex"];
const OF_HEADER: [&str; 3] = ["number", "timestamp", "baseFeePerGas"];

/// Both chains in the same state.
pub(crate) struct Together {
    anvil: Chain,
    rpc: RpcClient,
    pub played: PlayedChain,
    pub usdc: Address,
    /// Of the newest block.
    pub time: u64,
    pub first: u64,
}

/// An answer: a result, or the bytes of a revert.
type Answered = Result<Value, Bytes>;

impl Together {
    /// Two chains with both contracts, where each of `people` has ETH, and `minter` makes USDC.
    pub(crate) async fn start(minter: Address, people: &[Address]) -> Result<Self> {
        let anvil = Chain::start().await?;
        let rpc = RpcClient::new_http(anvil.anvil.url().parse()?);
        let arguments = ("USDC".to_owned(), "2".to_owned(), minter).abi_encode_params();
        let usdc = anvil.deploy([TestUsdc::BYTECODE.as_ref(), &arguments].concat().into()).await?;
        for person in people {
            anvil.request::<_, ()>("anvil_setBalance", (*person, U256::from(1_000 * ETH))).await?;
        }
        let head: Value = anvil.request("eth_getBlockByNumber", ("latest", false)).await?;
        let (first, time) = (number(&head["number"])?, number(&head["timestamp"])?);
        let genesis = Genesis {
            chain_id: CHAIN_ID,
            number: first,
            timestamp_secs: time,
            usdc,
            minter,
            accounts: people.iter().map(|person| (*person, (1_000 * ETH, 0))).collect(),
        };
        let played = PlayedChain::new(&genesis, 1);
        Ok(Self { anvil, rpc, played, usdc, time, first })
    }

    pub(crate) fn head(&self) -> u64 {
        self.played.with(|machine| machine.head().number)
    }

    /// Sends one transaction to both, each of which makes a block of it at the given second and base fee; then compares receipt,
    /// logs and header. Returns whether it succeeded.
    pub(crate) async fn transact(
        &mut self,
        signer: &PrivateKeySigner,
        to: Address,
        data: Vec<u8>,
        (time, base_fee_wei, tip_wei): (u64, u128, u128),
    ) -> Result<bool> {
        self.time = time;
        self.anvil.request::<_, ()>("evm_setNextBlockTimestamp", (time,)).await?;
        let base_fee = (U256::from(base_fee_wei),);
        self.anvil.request::<_, ()>("anvil_setNextBlockBaseFeePerGas", base_fee).await?;
        let nonce = self.played.with(|machine| machine.head().books.nonce(signer.address()));
        let (gas_limit, value_wei) = (GAS_LIMIT, 0);
        let max_fee_wei = base_fee_wei + GWEI;
        let raw = Draft { nonce, gas_limit, max_fee_wei, tip_wei, to, value_wei, data }.sign(signer);
        let sent: Value =
            self.anvil.request("eth_sendRawTransactionSync", (hex::encode_prefixed(&raw),)).await?;
        let hash = self.played.with(|machine| {
            machine.set_base_fee_wei(base_fee_wei);
            let hash = machine.send(&raw);
            machine.mine(time);
            hash
        });
        let hash = hash.map_err(|reason| anyhow!("the played chain does not take it: {reason:?}"))?;
        ensure!(sent["transactionHash"] == json!(hash), "another hash: {sent}");
        let [ours, theirs] = self.both("eth_getTransactionReceipt", &json!([hash])).await?.map(Answered::ok);
        let (ours, theirs) = (ours.context("no receipt")?, theirs.context("no receipt of anvil")?);
        same(&ours, &theirs, &OF_RECEIPT)?;
        same_logs(&ours["logs"], &theirs["logs"])?;
        let [ours_head, head] = self.both("eth_getBlockByNumber", &json!(["latest", false])).await?;
        same(&ours_head.unwrap_or_default(), &head.unwrap_or_default(), &OF_HEADER)?;
        Ok(ours["status"] == json!("0x1"))
    }

    /// Demands the same answer of both: the same result, or a revert with the same bytes.
    pub(crate) async fn agree(&self, method: &'static str, params: &Value) -> Result<()> {
        let [ours, theirs] = self.both(method, params).await?;
        ensure!(ours == theirs, "{method} {params}: {ours:?}, and of anvil {theirs:?}");
        Ok(())
    }

    /// Demands the same events.
    pub(crate) async fn agree_on_logs(&self, filter: &Value) -> Result<()> {
        let both = self.both("eth_getLogs", &json!([filter])).await?;
        let [ours, theirs] = both.map(Answered::unwrap_or_default);
        same_logs(&ours, &theirs).with_context(|| format!("events of {filter}"))
    }

    /// The same of a call of a contract as somebody's, at a block.
    pub(crate) async fn agree_on_call(
        &self,
        from: Address,
        to: Address,
        data: &[u8],
        at: &str,
    ) -> Result<()> {
        let call = json!({ "from": from, "to": to, "data": hex::encode_prefixed(data) });
        self.agree("eth_call", &json!([call, at])).await
    }

    /// Demands that both have the escrow's code.
    pub(crate) async fn agree_on_the_code(&self) -> Result<()> {
        let params = json!([pay_channels_address(), "latest"]);
        self.agree("eth_getCode", &params).await?;
        let code = self.played.request("eth_getCode", &params).unwrap_or_default();
        ensure!(code.as_str().is_some_and(|code| code.len() > 1_000), "no code");
        Ok(())
    }

    /// The played chain's answer, then anvil's.
    async fn both(&self, method: &'static str, params: &Value) -> Result<[Answered; 2]> {
        let ours = match self.played.request(method, params) {
            Ok(result) => Ok(result),
            Err(error) if error["code"] == json!(3) => Err(serde_json::from_value(error["data"].clone())?),
            Err(error) => return Err(anyhow!("{method} {params}: {error}")),
        };
        let theirs = match self.rpc.request::<Value, Value>(method, params.clone()).await {
            Ok(result) => Ok(result),
            Err(RpcError::ErrorResp(error)) if error.message.contains("revert") => {
                Err(error.as_revert_data().unwrap_or_default())
            }
            Err(error) => return Err(anyhow!("anvil does not answer {method}: {error}")),
        };
        Ok([ours, theirs])
    }
}

fn same(ours: &Value, theirs: &Value, fields: &[&str]) -> Result<()> {
    for field in fields {
        let (ours, theirs) = (&ours[*field], &theirs[*field]);
        ensure!(ours == theirs, "{field} is {ours}, and of anvil {theirs}");
    }
    Ok(())
}

fn same_logs(ours: &Value, theirs: &Value) -> Result<()> {
    let (ours, theirs) =
        (ours.as_array().context("no logs")?, theirs.as_array().context("no logs of anvil")?);
    ensure!(ours.len() == theirs.len(), "{} logs, and of anvil {}", ours.len(), theirs.len());
    ours.iter().zip(theirs).try_for_each(|(ours, theirs)| same(ours, theirs, &OF_LOG))
}

fn number(value: &Value) -> Result<u64> {
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x")).context("no number")?;
    Ok(u64::from_str_radix(digits, 16)?)
}
