//! Payments of x402 clients, as they are within their headers.

use farthing_x402::{Version, read_json};

const ONE: &[u8] = br#"{"x402Version":1,"scheme":"exact","network":"base","payload":{"signature":"0x12","authorization":{"from":"0x1111111111111111111111111111111111111111","to":"0x2222222222222222222222222222222222222222","value":"2000","validAfter":"0","validBefore":"1795000000","nonce":"0xabababababababababababababababababababababababababababababababab"}}}"#;
const TWO: &[u8] = br#"{"x402Version":2,"accepted":{"scheme":"exact","network":"eip155:8453"},"payload":{"signature":"0x","authorization":{"from":"0x1111111111111111111111111111111111111111","to":"0x2222222222222222222222222222222222222222","value":"2000","validAfter":"0","validBefore":"1795000000","nonce":"0xabababababababababababababababababababababababababababababababab"}}}"#;

pub(super) const WORDS: &[&str] = &[
    "{",
    "}",
    "\"",
    ",",
    ":",
    "null",
    "\"x402Version\":2",
    "\"x402Version\":1",
    "\"accepted\":{",
    "\"value\":\"",
    "18446744073709551616",
    "-1",
    "0x",
    "\\u0030",
    " ",
];

/// A payment of one version is none of the other.
pub(super) fn payment(bytes: &[u8]) -> bool {
    let [one, two] = [Version::One, Version::Two].map(|version| read_json(version, bytes).is_ok());
    assert!(!(one && two), "a payment of both versions");
    one || two
}

pub(super) fn known_payments() -> Vec<Vec<u8>> {
    vec![ONE.to_vec(), TWO.to_vec()]
}
