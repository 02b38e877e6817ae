//! Typed questions to the chain. Nothing is cached and nothing is decided here.

use std::sync::Arc;

use alloy::{
    primitives::{Address as EthAddress, B256, Bytes, U64, U256, hex, keccak256},
    sol_types::SolCall,
};
use farthing_values::{Address, ChannelId, Usdc};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    contracts::{
        GAS_PRICE_ORACLE, GasPriceOracle, MULTICALL3, MULTICALL3_CODE_HASH,
        Multicall3::{self, Call3},
        PayChannels, TestUsdc, from_eth, to_eth, to_u128,
    },
    rpc::{Answered, Call, EVENTS, Purpose, Refusal, Rpc, RpcError, typed},
    spec::ChainSpec,
};

/// The block whose state is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Latest,
    Block(u64),
}

impl At {
    fn json(self) -> Value {
        match self {
            Self::Latest => json!("latest"),
            Self::Block(number) => json!(format!("{number:#x}")),
        }
    }
}

/// The parts of a block header that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Header {
    number: U64,
    pub hash: B256,
    pub parent_hash: B256,
    timestamp: U64,
    #[serde(default)]
    base_fee_per_gas: U256,
}

impl Header {
    pub(crate) fn number(&self) -> u64 {
        self.number.to()
    }

    pub(crate) fn timestamp_secs(&self) -> u64 {
        self.timestamp.to()
    }

    pub(crate) fn base_fee_wei(&self) -> u128 {
        to_u128(self.base_fee_per_gas)
    }
}

/// A mined transaction.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Receipt {
    pub transaction_hash: B256,
    block_number: U64,
    gas_used: U64,
    effective_gas_price: U256,
    status: U64,
    contract_address: Option<EthAddress>,
    /// The fee that an OP-stack chain adds for publishing the transaction on Ethereum.
    l1_fee: Option<U256>,
}

impl Receipt {
    pub(crate) fn block(&self) -> u64 {
        self.block_number.to()
    }

    pub(crate) fn gas_used(&self) -> u64 {
        self.gas_used.to()
    }

    pub(crate) fn succeeded(&self) -> bool {
        self.status == U64::from(1)
    }

    pub(crate) fn contract(&self) -> Option<EthAddress> {
        self.contract_address
    }

    pub(crate) fn fee_wei(&self) -> u128 {
        let execution = self.effective_gas_price.saturating_mul(U256::from(self.gas_used()));
        to_u128(execution.saturating_add(self.l1_fee.unwrap_or_default()))
    }
}

/// An event of the contract.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Log {
    pub topics: Vec<B256>,
    pub data: Bytes,
}

/// A channel's slot in the contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelState {
    pub deposited: Usdc,
    pub claimed: Usdc,
    /// A close is pending: from this second on (the chain's clock) the rest may be withdrawn.
    pub close_at_secs: Option<u64>,
    /// The number of times that the channel was emptied by a close or a withdrawal.
    pub round: u32,
}

impl ChannelState {
    /// Nothing is in the channel, and no close of it is pending.
    pub fn is_empty(&self) -> bool {
        self.deposited == self.claimed && self.close_at_secs.is_none()
    }
}

/// Balances of a wallet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balances {
    pub usdc: Usdc,
    /// The chain's own coin, which pays for gas.
    pub eth_wei: u128,
}

/// Channels read in one call: a third of a million gas for each hundred of them.
const MULTICALL_MAX: usize = 200;

/// No chain has so many blocks, or is dated so late: sums with what passes stay within their type.
const BLOCK_MAX: u64 = 1 << 48;
const TIMESTAMP_SECS_MAX: u64 = 1 << 40;

/// Asks one chain for one purpose.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    pub rpc: Arc<Rpc>,
    pub spec: Arc<ChainSpec>,
    pub purpose: Purpose,
}

impl Reader {
    pub(crate) async fn head(&self) -> Result<Header, RpcError> {
        let head: Header =
            self.rpc.request(self.purpose, "eth_getBlockByNumber", json!(["latest", false])).await?;
        let (number, timestamp_secs) = (head.number(), head.timestamp_secs());
        if number > BLOCK_MAX || timestamp_secs > TIMESTAMP_SECS_MAX {
            let told = format!("the newest block is reported as {number} of second {timestamp_secs}");
            return Err(RpcError::Unreachable(told));
        }
        Ok(head)
    }

    /// `None` when the chain has no such block.
    pub(crate) async fn header(&self, number: u64) -> Result<Option<Header>, RpcError> {
        let params = json!([At::Block(number).json(), false]);
        self.rpc.request(self.purpose, "eth_getBlockByNumber", params).await
    }

    /// The newest block that the chain's layer 1 holds. Where the tag does not count, see
    /// [`ChainSpec::safe_tag`], every block is as safe; `None` when no endpoint can say.
    pub(crate) async fn safe_block(&self) -> Result<Option<u64>, RpcError> {
        if !self.spec.safe_tag {
            return Ok(Some(u64::MAX));
        }
        let asked: Result<Option<Header>, RpcError> =
            self.rpc.request(self.purpose, "eth_getBlockByNumber", json!(["safe", false])).await;
        match asked {
            Ok(header) => Ok(header.map(|header| header.number())),
            Err(RpcError::Refused(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The newest block that counts.
    pub(crate) fn confirmed(&self, head: u64) -> u64 {
        (head + 1).saturating_sub(self.spec.confirmations.max(1))
    }

    pub(crate) async fn code(&self, address: Address) -> Result<Bytes, RpcError> {
        self.rpc.request(self.purpose, "eth_getCode", json!([to_eth(address), "latest"])).await
    }

    pub(crate) async fn nonce(&self, wallet: Address, at: At) -> Result<u64, RpcError> {
        let params = json!([to_eth(wallet), at.json()]);
        let nonce: U64 = self.rpc.request(self.purpose, "eth_getTransactionCount", params).await?;
        Ok(nonce.to())
    }

    /// The nonce after everything the endpoint has waiting.
    pub(crate) async fn pending_nonce(&self, wallet: Address) -> Result<u64, RpcError> {
        let params = json!([to_eth(wallet), "pending"]);
        let nonce: U64 = self.rpc.request(self.purpose, "eth_getTransactionCount", params).await?;
        Ok(nonce.to())
    }

    pub(crate) async fn receipt(&self, hash: B256) -> Result<Option<Receipt>, RpcError> {
        let receipt: Option<Receipt> =
            self.rpc.request(self.purpose, "eth_getTransactionReceipt", json!([hash])).await?;
        match receipt {
            Some(other) if other.transaction_hash != hash => {
                let told = format!("the receipt of {hash} is reported as that of {}", other.transaction_hash);
                Err(RpcError::Unreachable(told))
            }
            receipt => Ok(receipt),
        }
    }

    /// Reads a contract, or simulates a transaction of `from`.
    pub(crate) async fn call<C: SolCall>(
        &self,
        from: Address,
        to: Address,
        call: &C,
        at: At,
    ) -> Result<C::Return, RpcError> {
        let request = eth_call(from, to, call, at);
        let answer: Bytes = self.rpc.request(self.purpose, request.method, request.params).await?;
        decode::<C>(&answer)
    }

    /// One answer or refusal per call.
    pub(crate) async fn calls<C: SolCall>(
        &self,
        from: Address,
        to: Address,
        calls: &[C],
        at: At,
    ) -> Result<Vec<Result<C::Return, Refusal>>, RpcError> {
        let requests: Vec<Call> = calls.iter().map(|call| eth_call(from, to, call, at)).collect();
        let answers = self.rpc.batch(self.purpose, &requests).await?;
        let read = |answer: Answered| match answer {
            Ok(value) => typed::<Bytes>("eth_call", &value).and_then(|bytes| decode::<C>(&bytes)).map(Ok),
            Err(refusal) => Ok(Err(refusal)),
        };
        answers.into_iter().map(read).collect()
    }

    pub(crate) async fn channel(&self, id: ChannelId, at: At) -> Result<ChannelState, RpcError> {
        let mut states = self.channels(&[id], at).await?;
        states.pop().ok_or_else(|| RpcError::Unreachable("an empty answer".into()))
    }

    /// Asks the contract for the states of channels, in their order: many at once where the chain has Multicall3.
    pub(crate) async fn channels(&self, ids: &[ChannelId], at: At) -> Result<Vec<ChannelState>, RpcError> {
        let calls: Vec<_> =
            ids.iter().map(|id| PayChannels::stateCall { id: (*id.as_bytes()).into() }).collect();
        // A block of before Multicall3 was there has nothing to ask; then each is asked by itself.
        if calls.len() > 1
            && self.has_multicall().await?
            && let Some(states) = self.channels_at_once(&calls, at).await?
        {
            return Ok(states);
        }
        let answers = self.calls(Address::ZERO, self.spec.contract, &calls, at).await?;
        answers
            .into_iter()
            .map(|answer| answer.map_err(RpcError::Refused).map(|state| channel_state(&state)))
            .collect()
    }

    async fn has_multicall(&self) -> Result<bool, RpcError> {
        if let Some(has) = self.rpc.multicall.get() {
            return Ok(*has);
        }
        let has = keccak256(self.code(from_eth(MULTICALL3)).await?) == MULTICALL3_CODE_HASH;
        Ok(*self.rpc.multicall.get_or_init(|| has))
    }

    /// `None` when Multicall3 does not answer as it does.
    async fn channels_at_once(
        &self,
        calls: &[PayChannels::stateCall],
        at: At,
    ) -> Result<Option<Vec<ChannelState>>, RpcError> {
        let target = to_eth(self.spec.contract);
        let one = |call: &PayChannels::stateCall| Call3 {
            target,
            allowFailure: false,
            callData: call.abi_encode().into(),
        };
        let all = |calls: &[PayChannels::stateCall]| Multicall3::aggregate3Call {
            calls: calls.iter().map(one).collect(),
        };
        let request = |calls| eth_call(Address::ZERO, from_eth(MULTICALL3), &all(calls), at);
        let requests: Vec<Call> = calls.chunks(MULTICALL_MAX).map(request).collect();
        let mut states = Vec::with_capacity(calls.len());
        for answer in self.rpc.batch(self.purpose, &requests).await? {
            let bytes: Bytes = typed("eth_call", &answer.map_err(RpcError::Refused)?)?;
            let Ok(results) = Multicall3::aggregate3Call::abi_decode_returns(&bytes) else { return Ok(None) };
            for result in results {
                states.push(channel_state(&decode::<PayChannels::stateCall>(&result.returnData)?));
            }
        }
        Ok((states.len() == calls.len()).then_some(states))
    }

    pub(crate) async fn balances(&self, wallet: Address, at: At) -> Result<Balances, RpcError> {
        let usdc = TestUsdc::balanceOfCall(to_eth(wallet));
        let requests = [
            eth_call(Address::ZERO, self.spec.token, &usdc, at),
            Call { method: "eth_getBalance", params: json!([to_eth(wallet), at.json()]) },
        ];
        let answers = self.rpc.batch(self.purpose, &requests).await?;
        let [usdc, eth] = <[_; 2]>::try_from(answers)
            .map_err(|_| RpcError::Unreachable("an answer of the wrong length".into()))?;
        let usdc: Bytes = typed("eth_call", &usdc.map_err(RpcError::Refused)?)?;
        let eth: U256 = typed("eth_getBalance", &eth.map_err(RpcError::Refused)?)?;
        Ok(Balances { usdc: to_usdc(decode::<TestUsdc::balanceOfCall>(&usdc)?), eth_wei: to_u128(eth) })
    }

    /// Tells whether the token has taken, or cancelled, an authorization of this number.
    pub(crate) async fn is_authorization_used(
        &self,
        payer: Address,
        nonce: B256,
        at: At,
    ) -> Result<bool, RpcError> {
        let call = TestUsdc::authorizationStateCall { authorizer: to_eth(payer), nonce };
        self.call(Address::ZERO, self.spec.token, &call, at).await
    }

    /// The same of many authorizations, in their order.
    pub(crate) async fn are_authorizations_used(
        &self,
        numbers: &[(Address, B256)],
        at: At,
    ) -> Result<Vec<bool>, RpcError> {
        let call = |(payer, nonce): &(Address, B256)| TestUsdc::authorizationStateCall {
            authorizer: to_eth(*payer),
            nonce: *nonce,
        };
        let calls: Vec<_> = numbers.iter().map(call).collect();
        let answers = self.calls(Address::ZERO, self.spec.token, &calls, at).await?;
        answers.into_iter().map(|answer| answer.map_err(RpcError::Refused)).collect()
    }

    /// The contract's events about the chain's token in which `wallet` is payer or payee.
    pub(crate) async fn logs(&self, wallet: Address, from: u64, to: u64) -> Result<Vec<Log>, RpcError> {
        let topic = B256::left_padding_from(wallet.as_bytes());
        let token = B256::left_padding_from(self.spec.token.as_bytes());
        let filter = |topics: Value| Call {
            method: EVENTS,
            params: json!([{
                "address": to_eth(self.spec.contract),
                "fromBlock": At::Block(from).json(),
                "toBlock": At::Block(to).json(),
                "topics": topics,
            }]),
        };
        let requests = [filter(json!([null, topic, null, token])), filter(json!([null, null, topic, token]))];
        let mut logs = Vec::new();
        for answer in self.rpc.batch(self.purpose, &requests).await? {
            logs.extend(typed::<Vec<Log>>(EVENTS, &answer.map_err(RpcError::Refused)?)?);
        }
        Ok(logs)
    }

    /// Gas for a transaction, which is also its simulation: a revert is [`RpcError::Refused`].
    pub(crate) async fn estimate(
        &self,
        from: Address,
        to: Option<EthAddress>,
        value_wei: u128,
        data: &Bytes,
    ) -> Result<u64, RpcError> {
        let request = json!([{
            "from": to_eth(from), "to": to, "value": format!("{value_wei:#x}"), "data": data,
        }]);
        let gas: U64 = self.rpc.request(self.purpose, "eth_estimateGas", request).await?;
        Ok(gas.to())
    }

    /// Asks what layer 1 charges for transactions with such data, on OP-stack chains; 0 where nobody says.
    pub(crate) async fn l1_fees_wei(&self, data: [Bytes; 2]) -> Result<[u128; 2], RpcError> {
        let ask = |data: Bytes| {
            let call = GasPriceOracle::getL1FeeCall { data };
            eth_call(Address::ZERO, from_eth(GAS_PRICE_ORACLE), &call, At::Latest)
        };
        let answers = self.rpc.batch(self.purpose, &data.map(ask)).await?;
        let mut fees = [0; 2];
        for (fee, answer) in fees.iter_mut().zip(answers) {
            // Without the oracle the call succeeds, and says nothing.
            let said = answer.ok().and_then(|value| typed::<Bytes>("eth_call", &value).ok());
            let said = said.and_then(|bytes| decode::<GasPriceOracle::getL1FeeCall>(&bytes).ok());
            *fee = said.map_or(0, to_u128);
        }
        Ok(fees)
    }

    /// The tip that gets transactions mined, as the endpoint sees it; `None` where it does not say.
    pub(crate) async fn tip_wei(&self) -> Result<Option<u128>, RpcError> {
        match self.rpc.request::<U256>(self.purpose, "eth_maxPriorityFeePerGas", json!([])).await {
            Ok(tip) => Ok(Some(to_u128(tip))),
            Err(RpcError::Refused(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn send_raw(&self, raw: &[u8]) -> Result<(), RpcError> {
        let params = json!([hex::encode_prefixed(raw)]);
        self.rpc.request::<B256>(self.purpose, "eth_sendRawTransaction", params).await.map(drop)
    }

    /// Again, to every endpoint: the one that took it may have kept it to itself.
    pub(crate) async fn send_raw_to_all(&self, raw: &[u8]) -> Result<(), RpcError> {
        let params = json!([hex::encode_prefixed(raw)]);
        self.rpc.tell_all(self.purpose, "eth_sendRawTransaction", params).await
    }
}

pub(crate) fn to_usdc(value: U256) -> Usdc {
    Usdc::try_from(to_u128(value)).unwrap_or(Usdc::MAX)
}

fn eth_call<C: SolCall>(from: Address, to: Address, call: &C, at: At) -> Call {
    let transaction = json!({
        "from": to_eth(from), "to": to_eth(to), "data": hex::encode_prefixed(call.abi_encode()),
    });
    Call { method: "eth_call", params: json!([transaction, at.json()]) }
}

pub(crate) fn decode<C: SolCall>(answer: &[u8]) -> Result<C::Return, RpcError> {
    C::abi_decode_returns(answer)
        .map_err(|_| RpcError::Unreachable(format!("{} was answered in an unknown form", C::SIGNATURE)))
}

pub(crate) fn channel_state(state: &PayChannels::stateReturn) -> ChannelState {
    let close_at: u64 = state.closeAt.to();
    ChannelState {
        deposited: Usdc::try_from(state.deposited).unwrap_or(Usdc::MAX),
        claimed: Usdc::try_from(state.claimed).unwrap_or(Usdc::MAX),
        close_at_secs: (close_at != 0).then_some(close_at),
        round: state.round.to(),
    }
}
