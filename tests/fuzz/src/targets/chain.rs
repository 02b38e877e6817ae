//! Answers of the chain's endpoints, which may say anything.

use farthing_chain::heard;

/// The longest reason of a refusal, in characters.
const REASON_CHARS_MAX: usize = 300;

/// The body of an answer to one request, and to three.
pub(super) fn chain(bytes: &[u8]) -> bool {
    let mut is_any_read = false;
    for requests in [1, 3] {
        let Some(reasons) = heard::answers(requests, bytes) else { continue };
        assert_eq!(reasons.len(), requests, "there is one answer for each request");
        for reason in reasons {
            assert!(reason.chars().count() <= REASON_CHARS_MAX, "{reason}");
            assert!(!reason.chars().any(char::is_control), "{reason:?}");
        }
        is_any_read = true;
    }
    is_any_read
}

pub(super) fn known_answers() -> Vec<Vec<u8>> {
    let word = |digit: &str| digit.repeat(64);
    let result = |result: String| format!(r#"{{"jsonrpc":"2.0","id":0,"result":{result}}}"#);
    let call = |words: &[String]| result(format!("\"0x{}\"", words.concat()));
    let header = format!(
        r#"{{"number":"0x10","hash":"0x{}","parentHash":"0x{}","timestamp":"0x65","baseFeePerGas":"0x7"}}"#,
        word("1"),
        word("2")
    );
    let receipt = format!(
        r#"{{"transactionHash":"0x{}","blockNumber":"0x10","gasUsed":"0x5208","effectiveGasPrice":"0x7","status":"0x1","contractAddress":null,"l1Fee":"0x9"}}"#,
        word("3")
    );
    let topics = format!(r#"["0x{}","0x{}","0x{}","0x{}"]"#, word("4"), word("5"), word("6"), word("7"));
    let log = format!(r#"[{{"topics":{topics},"data":"0x{}"}}]"#, word("0").repeat(7));
    // `Error(string)` that says "no", as a token reverts.
    let revert = format!("08c379a0{:064x}{:064x}6e6f{}", 32, 2, "0".repeat(60));
    let refused = |data: &str| {
        format!(r#"{{"id":1,"error":{{"code":3,"message":"execution reverted","data":{data}}}}}"#)
    };
    let reverted = format!("\"0x{revert}\"");
    let three = [result("\"0x1\"".to_owned()), refused(&reverted), r#"{"id":2,"result":null}"#.to_owned()];
    let results = [format!("{:064x}", 32), format!("{:064x}", 0)];
    [
        result(header),
        result(receipt),
        result(log),
        call(&[word("0"), word("0"), word("0"), word("0")]),
        call(&results),
        format!("[{}]", three.join(",")),
        refused(&format!("{{\"data\":{reverted}}}")),
        r#"{"error":{"code":-32005,"message":"limit exceeded"}}"#.to_owned(),
    ]
    .map(String::into_bytes)
    .to_vec()
}

pub(super) const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    ",",
    ":",
    "null",
    "\"0x\"",
    "0x",
    "\"id\":",
    "\"result\":",
    "\"error\":{\"code\":-32603,\"message\":\"",
    "\"data\":\"0x",
    "\"topics\":[",
    "\"0xffffffffffffffffffffffffffffffff\"",
    "0000000000000000000000000000000000000000000000000000000000000020",
    "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "08c379a0",
    "4e487b71",
    "\\u202e",
];
