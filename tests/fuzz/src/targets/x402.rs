//! Payments of x402 clients and offers of x402 servers, as they are within their headers.

use farthing_protocol::{Address, SecretKey, TokenDomain, TransferAuthorization, plain::Line};
use farthing_x402::{DESCRIPTION_CHARS_MAX, Offer, Offers, Version, read, read_json};

const ONE: &[u8] = br#"{"x402Version":1,"scheme":"exact","network":"base","payload":{"signature":"0x12","authorization":{"from":"0x1111111111111111111111111111111111111111","to":"0x2222222222222222222222222222222222222222","value":"2000","validAfter":"0","validBefore":"1795000000","nonce":"0xabababababababababababababababababababababababababababababababab"}}}"#;
const TWO: &[u8] = br#"{"x402Version":2,"accepted":{"scheme":"exact","network":"eip155:8453"},"payload":{"signature":"0x","authorization":{"from":"0x1111111111111111111111111111111111111111","to":"0x2222222222222222222222222222222222222222","value":"2000","validAfter":"0","validBefore":"1795000000","nonce":"0xabababababababababababababababababababababababababababababababab"}}}"#;

const OFFER_ONE: &[u8] = br#"{"x402Version":1,"accepts":[{"scheme":"exact","network":"base","maxAmountRequired":"2000","asset":"0x0909090909090909090909090909090909090909","payTo":"0x2222222222222222222222222222222222222222","maxTimeoutSeconds":300,"extra":{"name":"USDC","version":"2"}}]}"#;
const OFFER_TWO: &[u8] = br#"{"x402Version":2,"resource":{"url":"https://a.example","description":"Tides, hour by hour"},"accepts":[{"scheme":"exact","network":"eip155:8453","amount":"2000","asset":"0x0909090909090909090909090909090909090909","payTo":"0x2222222222222222222222222222222222222222","maxTimeoutSeconds":300,"extra":{"name":"USDC","version":"2"}}]}"#;

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

/// An offer that is chosen costs something, and a seller reads its payment as it was signed. A description is a short line.
pub(super) fn offers(bytes: &[u8]) -> bool {
    let token = TokenDomain {
        name: "USDC".to_owned(),
        version: "2".to_owned(),
        chain_id: 8_453,
        token: Address::from_bytes([9; 20]),
    };
    let read = [Version::One, Version::Two].map(|version| Offers::read_json(version, bytes));
    for text in read.iter().flatten().filter_map(Offers::description) {
        let is_line = Line::Prose.check(text).is_ok() && text.chars().count() <= DESCRIPTION_CHARS_MAX;
        assert!(is_line, "{text:?}");
    }
    let chosen: Vec<Offer> =
        read.into_iter().flatten().filter_map(|offers| offers.choose(&token).ok()).collect();
    assert!(chosen.len() < 2, "offers of both versions");
    chosen.iter().for_each(|offer| pay(offer, &token));
    !chosen.is_empty()
}

fn pay(offer: &Offer, token: &TokenDomain) {
    assert!(!offer.price.is_zero() && offer.pay_to != Address::ZERO, "{offer:?}");
    let Ok(key) = SecretKey::from_bytes(&[1; 32]) else { return };
    let authorization = TransferAuthorization {
        from: key.address(),
        to: offer.pay_to,
        value: offer.price,
        valid_after_secs: 0,
        valid_before_secs: offer.timeout_secs,
        nonce: [7; 32],
    };
    let signed = authorization.sign(token, &key);
    let header = offer.payment(&signed);
    // What an offer has beside its terms goes along, and may be longer than any payment.
    if let Ok(received) = read(offer.version, header.as_bytes()) {
        assert_eq!(received.transfer, signed, "{offer:?}");
    }
}

pub(super) fn known_offers() -> Vec<Vec<u8>> {
    vec![OFFER_ONE.to_vec(), OFFER_TWO.to_vec()]
}
