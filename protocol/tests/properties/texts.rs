//! Texts that people and strangers write: addresses, ids, methods, names of networks.

use farthing_protocol::{
    Address, CallId, ChannelId, PublicKey, ServiceId,
    call::Method,
    wire::{NetworkName, record_key},
};
use proptest::prelude::*;

#[test]
fn a_method_is_read_in_any_case_and_nothing_else_is_one() {
    for method in Method::ALL {
        assert_eq!(method.as_str().parse(), Ok(method));
        assert_eq!(method.as_str().to_lowercase().parse(), Ok(method));
        assert_eq!(method.to_string(), method.as_str());
        assert_eq!(method.is_safe(), matches!(method, Method::Get | Method::Head));
    }
    for other in ["", "CONNECT", "TRACE", "OPTIONS", "GET ", " GET", "GE", "GETS", "GЕТ"] {
        assert!(other.parse::<Method>().is_err(), "{other:?}");
    }
}

#[test]
fn a_refused_method_is_quoted_briefly() {
    let error = "X".repeat(10_000).parse::<Method>().unwrap_err().to_string();
    assert!(error.len() < 100, "{error}");
}

#[test]
fn a_records_key_is_its_prefix_and_the_address() {
    let key = record_key(Address::from_bytes([7; 20]));
    assert_eq!(key, [b"/farthing/record/".as_slice(), &[7; 20]].concat());
}

proptest! {
    #[test]
    fn no_text_panics_a_reader(text in "\\PC{0,80}", hex in "(0x)?[0-9a-fA-Fg\\PC]{0,66}") {
        for text in [&text, &hex] {
            let _ = text.parse::<Address>();
            let _ = text.parse::<ChannelId>();
            let _ = text.parse::<ServiceId>();
            let _ = text.parse::<CallId>();
            let _ = text.parse::<Method>();
            let _ = NetworkName::new(text.as_str());
            let _ = CallId::from_idempotency_key(text);
        }
    }

    #[test]
    fn no_bytes_panic_the_reader_of_keys(bytes: Vec<u8>, key: [u8; 32], sign in 0_u8..6) {
        let _ = PublicKey::from_peer_id_bytes(&bytes);
        let mut point = [sign; 33];
        point[1..].copy_from_slice(&key);
        if let Ok(key) = PublicKey::from_bytes(point) {
            prop_assert_eq!(PublicKey::from_peer_id_bytes(&key.peer_id_bytes()).unwrap(), key);
            let _ = key.address();
        }
    }

    #[test]
    fn text_and_bytes_are_two_forms_of_one_name(short: [u8; 16], address: [u8; 20], long: [u8; 32]) {
        let address = Address::from_bytes(address);
        prop_assert_eq!(address.to_string().parse::<Address>().unwrap(), address);
        let upper = format!("0x{}", address.to_string()[2..].to_uppercase());
        prop_assert_eq!(upper.parse::<Address>().unwrap(), address);
        prop_assert_eq!(address.short().chars().count(), 11);
        let service = ServiceId::from_bytes(short);
        prop_assert_eq!(service.to_string().parse::<ServiceId>().unwrap(), service);
        let call = CallId::from_bytes(short);
        prop_assert_eq!(CallId::from_idempotency_key(&call.to_string()), call);
        let channel = ChannelId::from_bytes(long);
        prop_assert_eq!(channel.to_string().parse::<ChannelId>().unwrap(), channel);
    }
}
