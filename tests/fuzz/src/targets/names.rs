//! Texts that people and strangers write: addresses, ids, amounts, methods, names of networks.

use std::{fmt, str::FromStr};

use farthing_protocol::{Address, CallId, ChannelId, ServiceId, Usdc, call::Method, wire::NetworkName};

use crate::examples;

/// The parts of all of them.
pub(super) const WORDS: &[&str] = &[
    "0x",
    "-",
    ".",
    "0",
    "00",
    "9",
    "f",
    "F",
    "urn:uuid:",
    "{",
    "}",
    "+",
    " ",
    "farthing/",
    "/1",
    "\u{ff11}",
];

/// A text as each of them; what is accepted is read the same when it is written.
pub(super) fn texts(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let read = [
        is_same::<Address>(&text),
        is_same::<ChannelId>(&text),
        is_same::<ServiceId>(&text),
        is_same::<CallId>(&text),
        is_same::<Usdc>(&text),
        is_same::<Method>(&text),
        is_network(&text),
    ];
    let _ = NetworkName::of_identify_version(&text);
    assert_eq!(CallId::from_idempotency_key(&text), CallId::from_idempotency_key(&text));
    read.contains(&true)
}

fn is_same<T: FromStr + fmt::Display + fmt::Debug + PartialEq>(text: &str) -> bool {
    let Ok(value) = text.parse::<T>() else { return false };
    assert_eq!(value.to_string().parse::<T>().ok(), Some(value), "{text:?}");
    true
}

fn is_network(text: &str) -> bool {
    let Ok(name) = NetworkName::new(text) else { return false };
    assert_eq!(name.as_str(), text);
    assert!(!name.in_words().is_empty());
    assert_eq!(NetworkName::of_identify_version(&name.identify_version()), Some(name));
    true
}

pub(super) fn known_texts() -> Vec<Vec<u8>> {
    let config = examples::channel_config();
    let texts = [
        config.payer.to_string(),
        config.id(&examples::domain()).to_string(),
        examples::call_id().to_string(),
        examples::listing().service.to_string(),
        Usdc::MAX.to_string(),
        "0.000001".to_owned(),
        "delete".to_owned(),
        "lab-31337".to_owned(),
    ];
    texts.into_iter().map(String::into_bytes).collect()
}
