//! JSON-RPC 2.0 on the wire: requests out, answers in, errors sorted into the chain's word and an
//! endpoint's own trouble.

use alloy::primitives::hex;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, DeserializeSeed, IgnoredAny, SeqAccess, Visitor},
};
use serde_json::{Value, json, value::RawValue};

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
    /// The data that the contract reverted with.
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

/// An endpoint's answer to a request, as it was written: dense JSON takes many times its own size once it is read into
/// values, and only what a method is documented to answer is read.
pub(crate) type Answered = Result<Box<RawValue>, Refusal>;

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<AnswerError<'a>>,
}

#[derive(Deserialize)]
struct AnswerError<'a> {
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

/// As many answers as there were requests: an endpoint that sends more is not read to its end.
struct Batch(usize);

impl<'de> DeserializeSeed<'de> for Batch {
    type Value = Vec<Answer<'de>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Batch {
    type Value = Vec<Answer<'de>>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} answers", self.0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut answers = Vec::with_capacity(self.0);
        while answers.len() < self.0
            && let Some(answer) = items.next_element()?
        {
            answers.push(answer);
        }
        match answers.len() == self.0 && items.next_element::<IgnoredAny>()?.is_none() {
            true => Ok(answers),
            false => Err(serde::de::Error::invalid_length(answers.len(), &self)),
        }
    }
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
pub(crate) fn read(expected: usize, body: &[u8]) -> Option<Vec<Answered>> {
    let answered = |answer: &Answer<'_>| match &answer.error {
        Some(error) => Err(refusal(error)),
        None => Ok(answer.result.unwrap_or(RawValue::NULL).to_owned()),
    };
    if body.trim_ascii_start().first() != Some(&b'[') {
        // An endpoint that refuses a whole batch answers with one object.
        return match answered(&serde_json::from_slice(body).ok()?) {
            Err(refusal) => Some(vec![Err(refusal); expected]),
            answer if expected == 1 => Some(vec![answer]),
            Ok(_) => None,
        };
    }
    let mut ordered: Vec<Option<Answered>> = vec![None; expected];
    for answer in Batch(expected).deserialize(&mut serde_json::Deserializer::from_slice(body)).ok()? {
        let id: usize = answer.id?.get().parse().ok()?;
        *ordered.get_mut(id)? = Some(answered(&answer));
    }
    ordered.into_iter().collect()
}

fn refusal(error: &AnswerError<'_>) -> Refusal {
    #[derive(Deserialize)]
    struct Inside {
        data: String,
    }
    // Revert data is a hex text, in some clients inside an object.
    let text = error.data.and_then(|data| {
        let text = serde_json::from_str::<String>(data.get());
        text.or_else(|_| serde_json::from_str::<Inside>(data.get()).map(|inside| inside.data)).ok()
    });
    let data = text.and_then(|text| hex::decode(text).ok());
    let message = error.message.chars().filter(|c| !c.is_control()).take(300).collect();
    Refusal { code: error.code, message, data }
}

/// Reads an answer as the method is documented to give it; anything else is an endpoint's fault. What was not expected is quoted
/// by its beginning: it may be as long as an answer.
pub(crate) fn typed<T: DeserializeOwned>(method: &str, answer: &RawValue) -> Result<T, RpcError> {
    serde_json::from_str(answer.get()).map_err(|error: serde_json::Error| {
        let told: String = error.to_string().chars().filter(|c| !c.is_control()).take(200).collect();
        RpcError::Unreachable(format!("{method} was answered in an unknown form: {told}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_put_in_the_order_of_their_requests() {
        let body = br#"[{"id":1,"result":"b"},{"id":0,"error":{"code":3,"message":"execution reverted"}}]"#;
        let answers = read(2, body).unwrap();
        assert!(answers[0].as_ref().is_err_and(Refusal::is_revert));
        assert_eq!(answers[1].as_ref().unwrap().get(), "\"b\"");
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
        for body in ["{\"id\":0,\"result\":null}", "{\"id\":0}"] {
            assert_eq!(read(1, body.as_bytes()).unwrap()[0].as_ref().unwrap().get(), "null");
        }
    }

    #[test]
    fn what_a_contract_reverted_with_is_found_in_either_form() {
        for data in ["\"0x1234\"", "{\"data\":\"0x1234\",\"hash\":[]}"] {
            let body = format!("{{\"id\":0,\"error\":{{\"code\":-32000,\"data\":{data}}}}}");
            let refused = read(1, body.as_bytes()).unwrap().pop().unwrap().unwrap_err();
            assert_eq!(refused.data, Some(vec![0x12, 0x34]), "{data}");
        }
        let body = b"{\"id\":0,\"error\":{\"code\":-32000,\"data\":[[],[]]}}";
        assert_eq!(read(1, body).unwrap().pop().unwrap().unwrap_err().data, None);
    }

    #[test]
    fn what_is_answered_in_place_of_what_was_asked_is_quoted_briefly() {
        let answer = format!("\"{}\\u0007\"", "long".repeat(250_000));
        let answer = RawValue::from_string(answer).unwrap();
        let error = typed::<Vec<u8>>("eth_getLogs", &answer).unwrap_err().to_string();
        assert!(error.starts_with("eth_getLogs was answered in an unknown form: "), "{error}");
        assert!(error.len() < 300, "{} bytes", error.len());
    }

    #[test]
    fn more_answers_than_requests_are_none() {
        assert!(read(1, br#"[{"id":0,"result":"a"},{"id":0,"result":"b"}]"#).is_none());
    }
}
