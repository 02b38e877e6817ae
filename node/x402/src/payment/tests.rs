//! Payments that are taken, and every kind that is not.

use farthing_values::{SecretKey, TokenDomain};
use serde_json::{Value, json};

use super::*;
use crate::testing::terms;

const NOW_SECS: u64 = 1_795_000_000;

fn key() -> SecretKey {
    SecretKey::from_bytes(&[1; 32]).unwrap()
}

/// What the terms ask for.
fn asked() -> TransferAuthorization {
    TransferAuthorization {
        from: key().address(),
        to: terms(84_532).pay_to,
        value: terms(84_532).price,
        valid_after_secs: NOW_SECS,
        valid_before_secs: NOW_SECS + 150,
        nonce: [0xab; 32],
    }
}

/// A payment as clients write it.
fn written(version: Version, authorization: TransferAuthorization, signature: &str) -> Value {
    let payload = json!({
        "signature": signature,
        "authorization": {
            "from": authorization.from.to_string(),
            "to": authorization.to.to_string(),
            "value": authorization.value.micros().to_string(),
            "validAfter": authorization.valid_after_secs.to_string(),
            "validBefore": authorization.valid_before_secs.to_string(),
            "nonce": format!("0x{}", hex::encode(authorization.nonce)),
        },
    });
    match version {
        Version::One => {
            json!({ "x402Version": 1, "scheme": "exact", "network": "base-sepolia", "payload": payload })
        }
        Version::Two => json!({
            "x402Version": 2,
            "accepted": { "scheme": "exact", "network": "eip155:84532", "amount": "2000", "later": true },
            "resource": { "url": "https://data.example/ok" },
            "payload": payload,
        }),
    }
}

fn signed(authorization: TransferAuthorization) -> String {
    let transfer = authorization.sign(&terms(84_532).token, &key());
    format!("0x{}", hex::encode(transfer.signature.as_bytes()))
}

fn read_header(version: Version, json: &Value) -> Result<ReceivedPayment, Malformed> {
    read(version, crate::header(json).as_bytes())
}

/// The reason that a payment does not pay.
fn refusal(authorization: TransferAuthorization) -> Option<InvalidPayment> {
    let payment = read_header(Version::Two, &written(Version::Two, authorization, &signed(authorization)));
    payment.unwrap().check(&terms(84_532), NOW_SECS).err()
}

#[test]
fn a_payment_of_either_version_is_read_and_taken() {
    for version in [Version::One, Version::Two] {
        let payment = read_header(version, &written(version, asked(), &signed(asked()))).unwrap();
        assert_eq!((payment.version, payment.transfer.authorization), (version, asked()));
        assert_eq!(payment.check(&terms(84_532), NOW_SECS), Ok(()), "{version:?}");
    }
}

#[test]
fn a_payment_is_refused_for_the_first_thing_that_is_not_as_asked() {
    let (more, less) = (Usdc::from_micros(2_001), Usdc::from_micros(1_999));
    let amount = |paid| Some(InvalidPayment::Amount { paid, price: Usdc::from_micros(2_000) });
    for (authorization, expected) in [
        (asked(), None),
        (TransferAuthorization { to: key().address(), ..asked() }, Some(InvalidPayment::Payee)),
        (TransferAuthorization { value: more, ..asked() }, amount(more)),
        (TransferAuthorization { value: less, ..asked() }, amount(less)),
        (
            TransferAuthorization { valid_before_secs: NOW_SECS + 149, ..asked() },
            Some(InvalidPayment::Expired),
        ),
        (TransferAuthorization { valid_after_secs: NOW_SECS + 1, ..asked() }, Some(InvalidPayment::NotYet)),
        (
            TransferAuthorization { from: Address::from_bytes([3; 20]), ..asked() },
            Some(InvalidPayment::Signature),
        ),
    ] {
        assert_eq!(refusal(authorization), expected);
    }
    let of_another = json!("eip155:8453");
    let mut written = written(Version::Two, asked(), &signed(asked()));
    written["accepted"]["network"] = of_another;
    let refused = read_header(Version::Two, &written).unwrap().check(&terms(84_532), NOW_SECS);
    assert_eq!(refused, Err(InvalidPayment::Network));
    written["accepted"]["scheme"] = json!("upto");
    let refused = read_header(Version::Two, &written).unwrap().check(&terms(84_532), NOW_SECS);
    assert_eq!(refused, Err(InvalidPayment::Scheme));
}

#[test]
fn only_the_paying_keys_own_signature_in_the_tokens_domain_counts() {
    let elsewhere = TokenDomain { chain_id: 1, ..terms(84_532).token };
    let of_elsewhere = hex::encode(asked().sign(&elsewhere, &key()).signature.as_bytes());
    // A smart wallet's: any length, and whoever made it.
    for signature in [of_elsewhere, "00".repeat(65), "12".repeat(97), String::new()] {
        let payment = read_header(Version::Two, &written(Version::Two, asked(), &format!("0x{signature}")));
        let refused = payment.unwrap().check(&terms(84_532), NOW_SECS);
        assert_eq!(refused, Err(InvalidPayment::Signature), "{signature}");
    }
    let told = InvalidPayment::Signature.to_string();
    assert!(told.contains("smart wallets cannot pay here"), "{told}");
    // Some programs write 0 or 1 where others write 27 or 28.
    let mut bytes = *asked().sign(&terms(84_532).token, &key()).signature.as_bytes();
    bytes[64] -= 27;
    let parity = format!("0x{}", hex::encode(bytes));
    let payment = read_header(Version::Two, &written(Version::Two, asked(), &parity)).unwrap();
    assert_eq!(payment.check(&terms(84_532), NOW_SECS), Ok(()));
}

#[test]
fn a_header_that_is_no_payment_says_what_is_wrong() {
    assert_eq!(read(Version::Two, &[b'a'; PAYMENT_BYTES_MAX + 1]), Err(Malformed::TooLong));
    assert_eq!(read(Version::Two, b"{}"), Err(Malformed::NotBase64));
    assert!(matches!(read_header(Version::Two, &json!({})), Err(Malformed::NotJson(_))));
    let one = written(Version::One, asked(), &signed(asked()));
    assert_eq!(read_header(Version::Two, &one), Err(Malformed::Version { found: 1, expected: 2 }));
    let mut without = one.clone();
    without.as_object_mut().unwrap().remove("network");
    assert_eq!(read_header(Version::One, &without), Err(Malformed::Member("network")));
    for (member, wrong) in [
        ("from", "0x12"),
        ("value", "-1"),
        ("value", "0x10"),
        ("value", "115792089237316195423570985008687907853269984665640564039457584007913129639935"),
        ("validBefore", "soon"),
        ("validAfter", ""),
        ("nonce", "0xab"),
    ] {
        let mut changed = one.clone();
        changed["payload"]["authorization"][member] = json!(wrong);
        assert_eq!(read_header(Version::One, &changed), Err(Malformed::Member(member)), "{wrong}");
    }
}

/// Sent by `@x402/fetch` 2.27.0, Python's `x402` 2.25.0 and `x402-fetch` 1.2.0 for terms of the same token, price and payee, with
/// the key above.
#[test]
fn what_the_official_clients_sign_is_read_and_holds() {
    let two = r#"{"x402Version":2,"payload":{"authorization":{"from":"0x1a642f0E3c3aF545E7AcBD38b07251B3990914F1","to":"0x2222222222222222222222222222222222222222","value":"2000","validAfter":"0","validBefore":"1796064136","nonce":"0x5780e3137c6df612312daea099c34ed1881009eaf2d8573e79ec3c2046a892ca"},"signature":"0x0db5e0dfe2c8519c45b4eb4b000bdab8ba7533f2cb29bf972fafdb940165e4d27450230d01bfa7a0ba18a2acc891295399ecbb64b8903da19501e0a1fec2f15b1b"},"resource":{"url":"http://x/ok","description":"d"},"accepted":{"scheme":"exact","network":"eip155:84532","amount":"2000","asset":"0x036CbD53842c5426634e7929541eC2318f3dCF7e","payTo":"0x2222222222222222222222222222222222222222","maxTimeoutSeconds":300,"extra":{"name":"USDC","version":"2"}}}"#;
    let python = r#"{"x402Version":2,"payload":{"authorization":{"from":"0x1a642f0E3c3aF545E7AcBD38b07251B3990914F1","to":"0x2222222222222222222222222222222222222222","value":"2000","validAfter":"0","validBefore":"1796065275","nonce":"0xe834da710e431ad010b4dc0c1dab6923959039f702c545049e6fe7ef104faa54"},"signature":"0x5718c3bc2d91673cf01599bee773ead4b43b09188e0a898e37b4ff5b632e2e285f7770882abd7fff109bfc1de795b43b189277ac10443c85733eb51dd1c9a3911c"},"accepted":{"scheme":"exact","network":"eip155:84532","asset":"0x036CbD53842c5426634e7929541eC2318f3dCF7e","amount":"2000","payTo":"0x2222222222222222222222222222222222222222","maxTimeoutSeconds":300,"extra":{"name":"USDC","version":"2"}},"resource":{"url":"http://x/ok","description":"d"}}"#;
    let one = r#"{"x402Version":1,"scheme":"exact","network":"base-sepolia","payload":{"signature":"0x508cff2805993fa4210edf4c3c1608170af59a45d0658ac0229c68389006c19b5e163585869570f6591947a375076391f15759e33470914d0b17f9c7bd44319b1c","authorization":{"from":"0x1a642f0E3c3aF545E7AcBD38b07251B3990914F1","to":"0x2222222222222222222222222222222222222222","value":"2000","validAfter":"1796063237","validBefore":"1796064137","nonce":"0x97556e430547e750359ba56252a69267a2a9737f0a37ac885a9bf1e1324235ee"}}}"#;
    let token = "0x036CbD53842c5426634e7929541eC2318f3dCF7e".parse().unwrap();
    let token = TokenDomain { token, ..terms(84_532).token };
    let terms = Terms { pay_to: Address::from_bytes([0x22; 20]), token, ..terms(84_532) };
    for (version, sent) in [(Version::Two, two), (Version::Two, python), (Version::One, one)] {
        let payment = read(version, STANDARD.encode(sent).as_bytes()).unwrap();
        assert_eq!(payment.transfer.authorization.from, key().address());
        assert_eq!(payment.check(&terms, 1_796_063_840), Ok(()), "{version:?}");
    }
}
