//! Answers of an `eth_*` server: the methods that `node/chain` asks for, each in the form in which it reads them.

use alloy::primitives::{Address, B256, Bytes, Log, U256};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    books::Message,
    faults::Faults,
    machine::{Block, Machine, NotTaken},
    signed::Transaction,
};

/// More than any wallet here sends.
const FALSE_NONCE: u64 = 20_000;

/// A request that has no result.
enum Failure {
    Reverted(Bytes),
    Refused(i64, &'static str),
}

/// The chain as an endpoint shows it, which may be some blocks behind and lie.
struct View<'a> {
    machine: &'a mut Machine,
    faults: &'a mut Faults,
    head: u64,
}

/// The answer to the body of a request, or of a batch of requests.
pub(crate) fn answer(machine: &mut Machine, faults: &mut Faults, body: &str) -> Value {
    let head = machine.head().number.saturating_sub(faults.lag_blocks).max(machine.first().number);
    let mut view = View { machine, faults, head };
    match serde_json::from_str(body) {
        Ok(Value::Array(calls)) => Value::Array(calls.iter().map(|call| view.answer(call)).collect()),
        Ok(call) => view.answer(&call),
        Err(_) => failed(&Value::Null, &Failure::Refused(-32_700, "parse error")),
    }
}

/// Tells whether a body carries a transaction.
pub(crate) fn is_broadcast(body: &str) -> bool {
    body.contains("\"eth_sendRawTransaction\"")
}

fn failed(id: &Value, failure: &Failure) -> Value {
    let error = match failure {
        Failure::Reverted(data) => json!({ "code": 3, "message": "execution reverted", "data": data }),
        Failure::Refused(code, message) => json!({ "code": code, "message": message }),
    };
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

const fn invalid() -> Failure {
    Failure::Refused(-32_602, "invalid params")
}

fn quantity(value: impl Into<u128>) -> Value {
    let value: u128 = value.into();
    Value::String(format!("{value:#x}"))
}

fn read<T: DeserializeOwned>(value: Option<&Value>) -> Result<T, Failure> {
    let value = value.cloned().unwrap_or_default();
    serde_json::from_value(value).map_err(|_| invalid())
}

impl View<'_> {
    fn answer(&mut self, call: &Value) -> Value {
        let (method, id) = (call["method"].as_str().unwrap_or_default(), &call["id"]);
        let params: Vec<Value> = call["params"].as_array().cloned().unwrap_or_default();
        match self.result(method, &params) {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(failure) => failed(id, &failure),
        }
    }

    fn result(&mut self, method: &str, params: &[Value]) -> Result<Value, Failure> {
        let first = params.first();
        Ok(match method {
            "eth_chainId" => quantity(self.machine.chain_id()),
            "eth_blockNumber" => quantity(self.head),
            "eth_maxPriorityFeePerGas" => quantity(self.machine.tip_wei()),
            "eth_getBlockByNumber" => self.named(first)?.map_or(Value::Null, header),
            "eth_getCode" => json!(self.at(params.get(1))?.books.code(read(first)?)),
            "eth_getBalance" => quantity(self.at(params.get(1))?.books.wei(read(first)?)),
            "eth_getTransactionCount" if take_one(&mut self.faults.false_nonces) => quantity(FALSE_NONCE),
            "eth_getTransactionCount" => {
                let account = read(first)?;
                let mined = self.at(params.get(1))?.books.nonce(account);
                let is_pending = params.get(1).and_then(Value::as_str) == Some("pending");
                quantity(if is_pending { self.after_waiting(account, mined) } else { mined })
            }
            "eth_getTransactionReceipt" => {
                let found = self.machine.mined(read(first)?, self.head);
                found.map_or(Value::Null, |(block, at)| receipt(block, at))
            }
            "eth_getLogs" => self.logs(first.ok_or_else(invalid)?)?,
            "eth_call" => {
                let (message, block) = (message(first.ok_or_else(invalid)?)?, self.at(params.get(1))?);
                let returned = block.books.call(&message, block.timestamp_secs);
                json!(returned.map_err(Failure::Reverted)?.output)
            }
            "eth_estimateGas" => {
                let (message, block) = (message(first.ok_or_else(invalid)?)?, self.at(None)?);
                if message.value_wei > block.books.wei(message.from) {
                    return Err(Failure::Refused(-32_000, NotTaken::NoFunds.message()));
                }
                block.books.call(&message, block.timestamp_secs).map_err(Failure::Reverted)?;
                quantity(block.books.gas(&message))
            }
            "eth_sendRawTransaction" => {
                let raw: Bytes = read(first)?;
                let sent = match Transaction::decode(&raw) {
                    Some(kept) if take_one(&mut self.faults.kept_broadcasts) => Ok(kept.hash),
                    _ => self.machine.send(&raw),
                };
                json!(sent.map_err(|reason| Failure::Refused(-32_000, reason.message()))?)
            }
            _ => return Err(Failure::Refused(-32_601, "the method does not exist")),
        })
    }

    /// The number that a tag stands for, or that is given.
    fn number(&self, tag: Option<&Value>) -> Result<u64, Failure> {
        let first = self.machine.first().number;
        Ok(match tag.and_then(Value::as_str).unwrap_or("latest") {
            "latest" | "pending" => self.head,
            "safe" | "finalized" => self.head.saturating_sub(self.machine.safe_behind()).max(first),
            "earliest" => first,
            number => u64::from_str_radix(number.trim_start_matches("0x"), 16).map_err(|_| invalid())?,
        })
    }

    /// `None` when the chain has no such block.
    fn named(&self, tag: Option<&Value>) -> Result<Option<&Block>, Failure> {
        let number = self.number(tag)?;
        Ok(self.machine.block(number).filter(|block| block.number <= self.head))
    }

    /// The block whose state is asked for.
    fn at(&self, tag: Option<&Value>) -> Result<&Block, Failure> {
        self.named(tag)?.ok_or(Failure::Refused(-32_000, "header not found"))
    }

    /// The nonce after everything that waits without a gap.
    fn after_waiting(&self, account: Address, mined: u64) -> u64 {
        let waits = |nonce: u64| {
            self.machine.pool().iter().any(|waiting| (waiting.from, waiting.nonce) == (account, nonce))
        };
        (mined..).find(|nonce| !waits(*nonce)).unwrap_or(mined)
    }

    /// Blocks that are not there have no events, and nobody says that they are missing.
    fn logs(&self, filter: &Value) -> Result<Value, Failure> {
        let from = self.number(filter.get("fromBlock"))?.max(self.machine.first().number);
        let to = self.number(filter.get("toBlock"))?.min(self.head);
        let address: Address = read(filter.get("address"))?;
        let topics = filter["topics"].as_array().cloned().unwrap_or_default();
        let topics = topics.iter().map(any_of).collect::<Result<Vec<Vec<B256>>, Failure>>()?;
        let mut found = Vec::new();
        for block in (from..=to).filter_map(|number| self.machine.block(number)) {
            for (index, (at, log)) in logs_of(block).into_iter().enumerate() {
                if log.address == address && fits(log, &topics) {
                    found.push(log_json(block, index, at, log));
                }
            }
        }
        Ok(Value::Array(found))
    }
}

/// Takes one away, if there is one.
fn take_one(left: &mut u32) -> bool {
    let has_one = *left > 0;
    *left = left.saturating_sub(1);
    has_one
}

/// The topics that fit in one place of a filter; none of them when every topic does.
fn any_of(wanted: &Value) -> Result<Vec<B256>, Failure> {
    match wanted {
        Value::Null => Ok(Vec::new()),
        Value::Array(_) => read(Some(wanted)),
        one => read(Some(one)).map(|topic| vec![topic]),
    }
}

fn fits(log: &Log, wanted: &[Vec<B256>]) -> bool {
    let topics = log.data.topics();
    let fits_one = |(any, topic): (&Vec<B256>, &B256)| any.is_empty() || any.contains(topic);
    topics.len() >= wanted.len() && wanted.iter().zip(topics).all(fits_one)
}

/// The logs of a block, each with the place of its transaction.
fn logs_of(block: &Block) -> Vec<(usize, &Log)> {
    let of_each = block.mined.iter().enumerate();
    of_each.flat_map(|(at, mined)| mined.logs.iter().map(move |log| (at, log))).collect()
}

fn log_json(block: &Block, index: usize, at: usize, log: &Log) -> Value {
    json!({
        "address": log.address,
        "topics": log.data.topics(),
        "data": log.data.data,
        "blockHash": block.hash,
        "blockNumber": quantity(block.number),
        "transactionHash": block.mined[at].transaction.hash,
        "transactionIndex": quantity(at as u64),
        "logIndex": quantity(index as u64),
        "removed": false,
    })
}

fn header(block: &Block) -> Value {
    json!({
        "number": quantity(block.number),
        "hash": block.hash,
        "parentHash": block.parent,
        "timestamp": quantity(block.timestamp_secs),
        "baseFeePerGas": quantity(block.base_fee_wei),
    })
}

fn receipt(block: &Block, at: usize) -> Value {
    let mined = &block.mined[at];
    let logs = logs_of(block).into_iter().enumerate().filter(|(_, (of, _))| *of == at);
    let logs: Vec<Value> = logs.map(|(index, (_, log))| log_json(block, index, at, log)).collect();
    json!({
        "transactionHash": mined.transaction.hash,
        "transactionIndex": quantity(at as u64),
        "blockHash": block.hash,
        "blockNumber": quantity(block.number),
        "from": mined.transaction.from,
        "to": mined.transaction.to,
        "contractAddress": null,
        "gasUsed": quantity(mined.gas_used),
        "effectiveGasPrice": quantity(mined.price_wei),
        "status": quantity(u64::from(mined.succeeded)),
        "type": "0x2",
        "logs": logs,
    })
}

fn message(call: &Value) -> Result<Message, Failure> {
    let field = |name: &str| call.get(name).filter(|value| !value.is_null());
    let from = field("from").map_or(Ok(Address::ZERO), |from| read(Some(from)))?;
    let to = field("to").map(|to| read(Some(to))).transpose()?;
    let value: U256 = field("value").map_or(Ok(U256::ZERO), |value| read(Some(value)))?;
    let data = field("data").or_else(|| field("input"));
    let data = data.map_or(Ok(Bytes::new()), |data| read(Some(data)))?;
    Ok(Message { from, to, value_wei: value.try_into().unwrap_or(u128::MAX), data })
}
