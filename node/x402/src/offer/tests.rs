//! Offers that are paid, and every kind that is not.

use super::*;
use crate::{payment, testing::terms};

const CHAIN_ID: u64 = 84_532;

fn token() -> TokenDomain {
    terms(CHAIN_ID).token
}

/// An offer that is paid, with these members in place of its own.
fn offer(changed: &Value) -> Value {
    let terms = terms(CHAIN_ID);
    let mut offer = json!({
        "scheme": "exact", "network": "eip155:84532", "amount": "2000", "asset": terms.token.token.to_string(),
        "payTo": terms.pay_to.to_string(), "maxTimeoutSeconds": 300, "extra": { "name": "USDC", "version": "2" },
    });
    if let (Some(offer), Some(changed)) = (offer.as_object_mut(), changed.as_object()) {
        offer.extend(changed.clone());
    }
    offer
}

fn offers(accepts: &[Value]) -> Result<Offers, NoOffer> {
    let required =
        json!({ "x402Version": 2, "resource": { "url": "https://a.example/b" }, "accepts": accepts });
    Offers::read(Some(header(&required).as_bytes()), b"")
}

fn chosen(changed: &Value) -> Result<Offer, NoOffer> {
    offers(&[offer(changed)])?.choose(&token())
}

#[test]
fn an_offer_on_the_own_chain_in_the_own_token_is_taken_as_it_is_told() {
    let taken = chosen(&json!({})).unwrap();
    assert_eq!((taken.price, taken.timeout_secs), (Usdc::from_micros(2_000), 300));
    assert_eq!((taken.pay_to, taken.header_name()), (terms(CHAIN_ID).pay_to, "payment-signature"));
    assert!(chosen(&json!({ "extra": null })).is_ok(), "who names no domain leaves it to the payer");
    let own = TokenDomain { name: "USD Coin".to_owned(), ..token() };
    assert!(offers(&[offer(&json!({}))]).unwrap().choose(&own).is_err(), "the chain says what the domain is");
}

#[test]
fn no_wallet_pays_an_offer_of_its_own() {
    let offers = offers(&[offer(&json!({}))]).unwrap();
    assert_eq!(offers.choose_for(terms(CHAIN_ID).pay_to, &token()).err(), Some(NoOffer::OwnWallet));
    assert!(offers.choose_for(Address::ZERO, &token()).is_ok());
}

#[test]
fn an_offer_that_is_not_to_be_paid_is_refused_with_its_reason() {
    let domain =
        |name: &str, version: &str| NoOffer::Domain { name: name.to_owned(), version: version.to_owned() };
    for (changed, reason) in [
        (json!({ "scheme": "upto" }), NoOffer::Scheme),
        (json!({ "network": "eip155:8453" }), NoOffer::Network("eip155:8453".to_owned())),
        (json!({ "network": "base-sepolia" }), NoOffer::Network("base-sepolia".to_owned())),
        (json!({ "asset": "0x0000000000000000000000000000000000000001" }), NoOffer::Token),
        (json!({ "extra": { "name": "USD Coin", "version": "2" } }), domain("USD Coin", "2")),
        (json!({ "extra": { "name": "USDC", "version": "1" } }), domain("USDC", "1")),
        (json!({ "extra": { "assetTransferMethod": "permit2" } }), NoOffer::Method),
        (json!({ "amount": "-1" }), NoOffer::Member("amount")),
        (json!({ "amount": "18446744073709551616" }), NoOffer::Member("amount")),
        (json!({ "amount": "0" }), NoOffer::Nothing),
        (json!({ "padding": "x".repeat(OFFER_BYTES_MAX) }), NoOffer::TooLong),
        (json!({ "payTo": "0x0000000000000000000000000000000000000000" }), NoOffer::Member("payee")),
        (json!({ "maxTimeoutSeconds": 9 }), NoOffer::TooShort(9)),
        (json!({ "maxTimeoutSeconds": "long" }), NoOffer::Member("terms")),
    ] {
        assert_eq!(chosen(&changed).err(), Some(reason), "{changed}");
    }
}

#[test]
fn the_cheapest_of_several_offers_is_chosen_and_else_the_nearest_reason_told() {
    let all = [offer(&json!({ "scheme": "upto" })), offer(&json!({ "amount": "3000" })), offer(&json!({}))];
    assert_eq!(offers(&all).unwrap().choose(&token()).unwrap().price, Usdc::from_micros(2_000));
    let none = [offer(&json!({ "extra": { "name": "X" } })), offer(&json!({ "network": "eip155:1" }))];
    assert!(matches!(offers(&none).unwrap().choose(&token()), Err(NoOffer::Domain { .. })));
}

#[test]
fn a_server_describes_what_it_sells_in_one_bounded_line() {
    let read = |version, json: &Value| Offers::read_json(version, json.to_string().as_bytes()).unwrap();
    // Nobody sees a bell, an override that turns text around, and a letter of the block of tags.
    let long = format!(" <b>Tides</b>\n\u{7}\u{202e}\u{e0041}{} ", "x".repeat(2 * DESCRIPTION_CHARS_MAX));
    let named = json!({ "url": "https://a.example/b", "description": long });
    let two =
        read(Version::Two, &json!({ "x402Version": 2, "resource": named, "accepts": [offer(&json!({}))] }));
    let told = two.description().unwrap();
    assert!(told.starts_with("<b>Tides</b> xxx"), "{told}");
    assert_eq!(told.chars().count(), DESCRIPTION_CHARS_MAX - 1, "the blank before it does not count");
    let described = offer(&json!({ "description": "Tides" }));
    let one = read(Version::One, &json!({ "x402Version": 1, "accepts": [described] }));
    assert_eq!(one.description(), Some("Tides"), "version 1 has it in the offer");
    for silent in [json!({}), json!({ "description": "\n" }), json!({ "description": 7 })] {
        let all = read(Version::Two, &json!({ "x402Version": 2, "accepts": [offer(&silent)] }));
        assert_eq!(all.description(), None, "{silent}");
    }
}

#[test]
fn what_is_no_offer_is_told_as_such() {
    assert_eq!(offers(&[]).err(), Some(NoOffer::Unreadable));
    let many: Vec<Value> = (0..=OFFERS_MAX).map(|_| offer(&json!({}))).collect();
    assert_eq!(offers(&many).err(), Some(NoOffer::Unreadable));
    let long = "A".repeat(OFFERS_BYTES_MAX + 1);
    let answers: [(Option<&[u8]>, &[u8]); 5] = [
        (None, b"<html>pay here</html>"),
        (Some(b"not base64!"), b""),
        (Some(b"e30="), b""),
        (Some(long.as_bytes()), b""),
        (None, br#"{"x402Version":2,"accepts":[{}]}"#),
    ];
    for (required, body) in answers {
        assert_eq!(Offers::read(required, body).err(), Some(NoOffer::Unreadable));
    }
}

#[test]
fn both_versions_are_paid_so_that_an_owner_of_this_network_reads_it() {
    let terms = terms(CHAIN_ID);
    let key = farthing_values::SecretKey::from_bytes(&[1; 32]).unwrap();
    let authorization = farthing_values::TransferAuthorization {
        from: key.address(),
        to: terms.pay_to,
        value: terms.price,
        valid_after_secs: 0,
        valid_before_secs: 2_000_000_000,
        nonce: [7; 32],
    };
    let transfer = authorization.sign(&terms.token, &key);
    let body = terms.required_body("https://a.example/b", "pay").to_string();
    let required = terms.required_header("https://a.example/b", "pay");
    for (version, read) in [
        (Version::One, Offers::read(None, body.as_bytes())),
        (Version::Two, Offers::read(Some(required.as_bytes()), b"")),
    ] {
        let offer = read.unwrap().choose(&terms.token).unwrap();
        assert_eq!((offer.version, offer.price, offer.pay_to), (version, terms.price, terms.pay_to));
        let received = payment::read(version, offer.payment(&transfer).as_bytes()).unwrap();
        assert_eq!((received.transfer, received.check(&terms, 1_900_000_000)), (transfer, Ok(())));
    }
}
