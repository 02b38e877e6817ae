//! JSON-RPC 2.0 on the wire: requests out, answers in, errors sorted into the chain's word and an
//! endpoint's own trouble.

use alloy::primitives::hex;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::RpcError;
use crate::contracts::revert_reason;

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub method: &'static str,
    pub params: Value,
}

/// An error the endpoint answered with.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    code: i64,
    pub message: String,
    /// What the contract reverted with.
    data: Option<Vec<u8>>,
}

impl Refusal {
    /// Rate limits, missing state of a lagging node, internal errors: another endpoint may do better.
    /// Codes from EIP-1474 and the habits of public endpoints.
    pub(super) fn is_endpoints_own(&self) -> bool {
        !self.is_revert() && matches!(self.code, -32005 | -32016 | -32603 | -32097 | 429)
    }

    /// The execution reverts, as opposed to the endpoint not taking the request.
    pub(crate) fn is_revert(&self) -> bool {
        self.code == 3 || self.data.is_some() || self.message.contains("revert")
    }

    /// In words.
    pub(crate) fn reason(&self) -> String {
        match &self.data {
            Some(data) => revert_reason(data),
            None => self.message.clone(),
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason())
    }
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    error: Option<AnswerError>,
}

#[derive(Deserialize)]
struct AnswerError {
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    data: Value,
}

/// A lone request is sent as such, because not every endpoint takes batches.
pub(super) fn request_body(calls: &[Call]) -> String {
    let one = |(id, call): (usize, &Call)| json!({ "jsonrpc": "2.0", "id": id, "method": call.method, "params": call.params });
    match calls {
        [call] => one((0, call)).to_string(),
        calls => Value::Array(calls.iter().enumerate().map(one).collect()).to_string(),
    }
}

/// The answers in the order of their requests; `None` unless there is exactly one for each.
pub(super) fn read(expected: usize, body: &[u8]) -> Option<Vec<Result<Value, Refusal>>> {
    let answers: Vec<Answer> = match serde_json::from_slice(body).ok()? {
        Value::Array(items) => {
            items.into_iter().map(serde_json::from_value).collect::<Result<_, _>>().ok()?
        }
        // An endpoint that refuses a whole batch answers with one object.
        object => {
            let answer: Answer = serde_json::from_value(object).ok()?;
            let refusal = answer.error.as_ref().map(refusal);
            return match refusal {
                Some(refusal) => Some(vec![Err(refusal); expected]),
                None if expected == 1 => Some(vec![Ok(answer.result)]),
                None => None,
            };
        }
    };
    let mut ordered: Vec<Option<Result<Value, Refusal>>> = vec![None; expected];
    for answer in answers {
        let slot = ordered.get_mut(usize::try_from(answer.id.as_u64()?).ok()?)?;
        *slot = Some(answer.error.as_ref().map_or(Ok(answer.result), |error| Err(refusal(error))));
    }
    ordered.into_iter().collect()
}

fn refusal(error: &AnswerError) -> Refusal {
    // Revert data is a hex text, in some clients inside an object.
    let text = error.data.as_str().or_else(|| error.data.get("data").and_then(Value::as_str));
    let data = text.and_then(|text| hex::decode(text).ok());
    let message = error.message.chars().filter(|c| !c.is_control()).take(300).collect();
    Refusal { code: error.code, message, data }
}

/// What a method is documented to answer; anything else is an endpoint's fault.
pub(crate) fn typed<T: DeserializeOwned>(method: &str, answer: Value) -> Result<T, RpcError> {
    serde_json::from_value(answer)
        .map_err(|error| RpcError::Unreachable(format!("{method} was answered in an unknown form: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_put_in_the_order_of_their_requests() {
        let body = br#"[{"id":1,"result":"b"},{"id":0,"error":{"code":3,"message":"execution reverted"}}]"#;
        let answers = read(2, body).unwrap();
        assert!(answers[0].as_ref().is_err_and(Refusal::is_revert));
        assert_eq!(answers[1].as_ref().ok(), Some(&json!("b")));
    }

    #[test]
    fn an_answer_too_few_a_foreign_id_and_no_json_are_no_answer() {
        assert!(read(2, br#"[{"id":0,"result":"a"}]"#).is_none());
        assert!(read(1, br#"[{"id":7,"result":"a"}]"#).is_none());
        assert!(read(1, br#"[{"id":"x","result":"a"}]"#).is_none());
        assert!(read(1, b"<html>502</html>").is_none());
        assert!(read(1, b"").is_none());
    }

    #[test]
    fn a_refused_batch_refuses_each_of_its_requests() {
        let answers = read(3, br#"{"error":{"code":-32005,"message":"limit exceeded"}}"#).unwrap();
        assert_eq!(answers.len(), 3);
        assert!(answers.iter().all(|answer| answer.as_ref().is_err_and(Refusal::is_endpoints_own)));
    }

    #[test]
    fn a_null_result_is_an_answer() {
        assert_eq!(read(1, br#"{"id":0,"result":null}"#).unwrap()[0].as_ref().ok(), Some(&Value::Null));
    }
}
