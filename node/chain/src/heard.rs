//! Every reading of what an endpoint answers, for tests in which an endpoint answers anything.

use alloy::{
    primitives::{B256, Bytes, U64, U256},
    sol_types::SolCall as _,
};
use serde_json::value::RawValue;

use crate::{
    contracts::{GasPriceOracle, Multicall3, PayChannels, TestUsdc, revert_reason},
    reader::{Header, Log, Receipt, channel_state, decode},
    rpc::{Answered, Refusal, read_answers, typed},
    watcher::{address_in, channel_of},
};

/// Reads what was answered to so many requests, as each of the methods that are asked. Returns a line for each request: the
/// reason that it was refused, or of a revert that the answer may be; `None` when it answers other requests.
pub fn answers(requests: usize, body: &[u8]) -> Option<Vec<String>> {
    let told = |answer: Answered| match answer {
        Ok(value) => of_every_method(&value),
        Err(refusal) => refusal_line(&refusal),
    };
    read_answers(requests, body).map(|answers| answers.into_iter().map(told).collect())
}

fn refusal_line(refusal: &Refusal) -> String {
    let _ = refusal.is_revert();
    refusal.reason()
}

fn of_every_method(value: &RawValue) -> String {
    if let Ok(header) = typed::<Header>("eth_getBlockByNumber", value) {
        let _ = (header.number(), header.timestamp_secs(), header.base_fee_wei());
    }
    if let Ok(Some(receipt)) = typed::<Option<Receipt>>("eth_getTransactionReceipt", value) {
        let _ = (receipt.block(), receipt.succeeded(), receipt.contract(), receipt.fee_wei());
    }
    if let Ok(logs) = typed::<Vec<Log>>("eth_getLogs", value) {
        logs.iter().for_each(of_log);
    }
    let _ = typed::<U64>("eth_estimateGas", value);
    let _ = typed::<U256>("eth_getBalance", value);
    let _ = typed::<B256>("eth_sendRawTransaction", value);
    typed::<Bytes>("eth_call", value).map_or_else(|error| error.to_string(), |bytes| of_call(&bytes))
}

/// Reads an event as the wallet and for the token that it names, so that what it says of a channel is read.
fn of_log(log: &Log) {
    if let [_, payer, _, token] = log.topics.as_slice() {
        let _ = channel_of(log, address_in(payer), address_in(token));
    }
}

fn of_call(bytes: &[u8]) -> String {
    if let Ok(state) = decode::<PayChannels::stateCall>(bytes) {
        let _ = channel_state(&state).is_empty();
    }
    let _ = decode::<TestUsdc::balanceOfCall>(bytes);
    let _ = decode::<TestUsdc::authorizationStateCall>(bytes);
    let _ = decode::<GasPriceOracle::getL1FeeCall>(bytes);
    if let Ok(results) = Multicall3::aggregate3Call::abi_decode_returns(bytes) {
        for result in results {
            let _ = decode::<PayChannels::stateCall>(&result.returnData);
        }
    }
    revert_reason(bytes)
}
