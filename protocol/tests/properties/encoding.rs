//! One value has one encoding; readers skip what they do not know.

use std::collections::BTreeMap;

use farthing_protocol::{
    Address, CallId, CallMessage, CallReply, CallRequest, CallResponse, ChannelConfig, ChannelId,
    CloseConsent, CloseRequest, DepositAuthorization, Outcome, Receipt, Refusal, RefusalCode, ServiceId,
    Signature, SignedClose, SignedDeposit, Usdc,
    books::{CallRecord, CallsAsked, CallsPage, Shown},
    call::{CallStatus, ChannelSync, Method, Payment},
    sponsor::{NotSponsored, SponsorAsked, SponsorReply},
    wire,
};
use minicbor::{Decode, Encode};
use proptest::{
    array::uniform4,
    collection::{btree_map, vec},
    option,
    prelude::*,
};

use crate::examples;

fn texts() -> impl Strategy<Value = BTreeMap<String, String>> {
    btree_map(".{0,12}", ".{0,12}", 0..6)
}

fn usdc() -> impl Strategy<Value = Usdc> {
    any::<u64>().prop_map(Usdc::from_micros)
}

fn signature() -> impl Strategy<Value = Signature> {
    any::<[u8; 32]>().prop_map(|half| {
        let mut bytes = [27; 65];
        bytes[..32].copy_from_slice(&half);
        bytes[32..64].copy_from_slice(&half);
        Signature::from_bytes(bytes)
    })
}

fn channel_id() -> impl Strategy<Value = ChannelId> {
    any::<[u8; 32]>().prop_map(ChannelId::from_bytes)
}

fn payment() -> impl Strategy<Value = Payment> {
    let channel = (channel_id(), usdc(), option::of(signature()), option::of(usdc()));
    let channel = channel.prop_map(|(channel, cumulative, signature, receipted)| Payment::Channel {
        channel,
        cumulative,
        signature,
        receipted,
    });
    prop_oneof![Just(Payment::Free), channel]
}

prop_compose! {
    fn call_request()(
        ids in any::<[[u8; 16]; 2]>(),
        numbers in uniform4(any::<u64>()),
        method in 0..Method::ALL.len(),
        path in ".{0,40}",
        params in texts(),
        headers in texts(),
        payment in payment(),
    ) -> CallRequest {
        CallRequest {
            call_id: CallId::from_bytes(ids[0]),
            service: ServiceId::from_bytes(ids[1]),
            listing_version: numbers[0],
            method: Method::ALL[method],
            path,
            params,
            headers,
            body_bytes: numbers[1],
            price: Usdc::from_micros(numbers[2]),
            deadline_ms: numbers[3],
            payment,
        }
    }
}

prop_compose! {
    fn receipt()(
        channel in channel_id(),
        call_id in any::<[u8; 16]>(),
        hashes in any::<[[u8; 32]; 2]>(),
        outcome in any::<u8>(),
        amounts in any::<[u64; 3]>(),
    ) -> Receipt {
        Receipt {
            channel,
            call_id: CallId::from_bytes(call_id),
            request_hash: hashes[0],
            response_hash: hashes[1],
            outcome,
            charged: Usdc::from_micros(amounts[0]),
            spent_total: Usdc::from_micros(amounts[1]),
            time_secs: amounts[2],
        }
    }
}

prop_compose! {
    fn call_response()(
        receipt in receipt(),
        status in any::<u16>(),
        headers in texts(),
        numbers in any::<[u64; 3]>(),
        signature in signature(),
        outcome in 0..Outcome::ALL.len(),
    ) -> CallResponse {
        CallResponse {
            call_id: receipt.call_id,
            status,
            headers,
            body_bytes: numbers[0],
            receipt,
            signature,
            outcome: Outcome::ALL[outcome],
            owner_us: numbers[1],
            upstream_us: numbers[2],
        }
    }
}

prop_compose! {
    fn signed_close()(
        channel in any::<[u8; 32]>(),
        amounts in (usdc(), usdc()),
        round in any::<u32>(),
        deadline_secs in any::<u64>(),
        signature in signature(),
    ) -> SignedClose {
        let (amount, deposited) = amounts;
        let channel = ChannelId::from_bytes(channel);
        let consent = CloseConsent { channel, amount, deposited, round, deadline_secs };
        SignedClose { consent, signature }
    }
}

prop_compose! {
    fn channel_config()(
        addresses in any::<[[u8; 20]; 4]>(),
        close_delay_secs in any::<u64>(),
        salt in any::<[u8; 32]>(),
    ) -> ChannelConfig {
        let [payer, payee, token, signer] = addresses.map(Address::from_bytes);
        ChannelConfig { payer, payee, token, signer, close_delay_secs, salt }
    }
}

prop_compose! {
    fn channel_sync()(
        config in channel_config(),
        amounts in uniform4(usdc()),
        best_signature in option::of(signature()),
        close in option::of(signed_close()),
    ) -> ChannelSync {
        let [deposited, claimed, spent, best] = amounts;
        ChannelSync { config, deposited, claimed, spent, best, best_signature, close }
    }
}

prop_compose! {
    fn call_record()(
        id in any::<[u8; 16]>(),
        channel in channel_id(),
        outcome in option::of(0..Outcome::ALL.len()),
        price in usdc(),
        charged in usdc(),
        time_secs in any::<u64>(),
    ) -> CallRecord {
        let outcome = outcome.map(|outcome| Outcome::ALL[outcome]);
        CallRecord { call_id: CallId::from_bytes(id), channel, outcome, price, charged, time_secs }
    }
}

prop_compose! {
    fn calls_page()(
        records in vec(call_record(), 0..3),
        next in option::of(any::<[u8; 16]>()),
        kept_since_secs in any::<u64>(),
        adjusted in option::of(usdc()),
    ) -> CallsPage {
        CallsPage { records, next: next.map(CallId::from_bytes), kept_since_secs, adjusted }
    }
}

fn shown() -> impl Strategy<Value = Shown> {
    (receipt(), signature(), usdc(), signature()).prop_map(
        |(receipt, receipt_signature, promised, voucher_signature)| Shown {
            receipt,
            receipt_signature,
            promised,
            voucher_signature,
        },
    )
}

fn sponsor_asked() -> impl Strategy<Value = SponsorAsked> {
    let deposit = (channel_config(), usdc(), any::<u64>(), any::<[u8; 32]>(), signature());
    let deposit = deposit.prop_map(|(config, amount, valid_before_secs, salt, signature)| {
        let deposit = DepositAuthorization { config, amount, valid_before_secs, salt };
        SponsorAsked::Deposit(SignedDeposit { deposit, signature })
    });
    let request = (channel_config(), channel_id(), any::<u32>(), any::<u64>(), signature());
    let request = request.prop_map(|(config, channel, round, deadline_secs, signature)| {
        SponsorAsked::RequestClose(config, CloseRequest { channel, round, deadline_secs }, signature)
    });
    prop_oneof![deposit, request, channel_config().prop_map(SponsorAsked::Withdraw)]
}

fn sponsor_reply() -> impl Strategy<Value = SponsorReply> {
    let refused = (".{0,40}", option::of(any::<u64>()))
        .prop_map(|(detail, retry)| SponsorReply::refused(NotSponsored::DayIsSpent, detail, retry));
    let sent = any::<[u8; 32]>().prop_map(|transaction| SponsorReply::Sent { transaction });
    prop_oneof![sent, Just(SponsorReply::Done), refused]
}

fn call_message() -> impl Strategy<Value = CallMessage> {
    prop_oneof![
        call_request().prop_map(CallMessage::Call),
        any::<[u8; 16]>().prop_map(|id| CallMessage::Status(CallId::from_bytes(id))),
        (channel_id(), option::of(shown())).prop_map(|(channel, shown)| CallMessage::Sync(channel, shown)),
        (channel_id(), option::of(shown())).prop_map(|(channel, shown)| CallMessage::Close(channel, shown)),
        (option::of(any::<[u8; 16]>()), any::<u64>()).prop_map(|(after, since_secs)| {
            CallMessage::Calls(CallsAsked { after: after.map(CallId::from_bytes), since_secs })
        }),
        sponsor_asked().prop_map(CallMessage::Sponsor),
    ]
}

fn call_reply() -> impl Strategy<Value = CallReply> {
    let refusal = (".{0,40}", option::of(any::<u64>()), any::<bool>()).prop_map(|(detail, retry, offers)| {
        let mut refusal = Refusal::new(RefusalCode::PriceChanged, detail);
        refusal.retry_after_ms = retry;
        refusal.listing = offers.then(examples::signed_listing);
        refusal
    });
    let done =
        (receipt(), signature()).prop_map(|(receipt, signature)| CallStatus::Done { receipt, signature });
    prop_oneof![
        call_response().prop_map(CallReply::Response),
        refusal.prop_map(CallReply::Refused),
        done.prop_map(CallReply::Status),
        channel_sync().prop_map(CallReply::Channel),
        calls_page().prop_map(CallReply::Calls),
        sponsor_reply().prop_map(CallReply::Sponsor),
    ]
}

fn has_one_encoding<T>(value: &T) -> Result<(), TestCaseError>
where
    T: Encode<()> + for<'b> Decode<'b, ()> + minicbor::CborLen<()> + PartialEq + std::fmt::Debug,
{
    let bytes = wire::encode(value);
    let read: T = wire::decode(&bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(&read, value);
    prop_assert_eq!(wire::encode(&read), &bytes[..]);
    prop_assert_eq!(minicbor::len(value), bytes.len());
    for cut in 0..bytes.len() {
        prop_assert!(wire::decode::<T>(&bytes[..cut]).is_err(), "a part of a message is no message");
    }
    Ok(())
}

proptest! {
    #[test]
    fn what_was_written_is_what_is_read(message in call_message(), reply in call_reply()) {
        has_one_encoding(&message)?;
        has_one_encoding(&reply)?;
    }

    #[test]
    fn the_request_hash_binds_what_is_asked_and_not_what_is_paid(
        request in call_request(),
        other in call_request(),
        body: Vec<u8>,
    ) {
        let hash = request.request_hash(&body);
        let same = CallRequest {
            service: request.service,
            method: request.method,
            path: request.path.clone(),
            params: request.params.clone(),
            headers: request.headers.clone(),
            ..other.clone()
        };
        prop_assert_eq!(same.request_hash(&body), hash, "payment, price and deadline may differ");
        let longer = [&body[..], b"x"].concat();
        prop_assert_ne!(request.request_hash(&longer), hash);
        prop_assert_ne!(CallRequest { service: other.service, ..request.clone() }.request_hash(&body), hash);
        let path = format!("{}x", request.path);
        prop_assert_ne!(CallRequest { path, ..request }.request_hash(&body), hash);
    }
}

/// The bytes of a map with one more entry, under a key no version has had, before or after the others.
fn with_unknown_key(map: &[u8], first: bool) -> Vec<u8> {
    let count = map[0] & 0x1f;
    assert!(map[0] >> 5 == 5 && count < 23, "a short map");
    let unknown = [0x18, 0x63, 0x82, 0xa1, 0x61, b'k', 0xf6, 0x9f, 0x01, 0xff];
    let parts = if first { [&unknown[..], &map[1..]] } else { [&map[1..], &unknown[..]] };
    [&[0xa0 | (count + 1)][..], &parts.concat()].concat()
}

fn skips_unknown_keys<T>(value: &T)
where
    T: Encode<()> + for<'b> Decode<'b, ()> + PartialEq + std::fmt::Debug,
{
    for first in [true, false] {
        let newer = with_unknown_key(&wire::encode(value), first);
        assert_eq!(wire::decode::<T>(&newer).as_ref(), Ok(value));
    }
}

#[test]
fn a_message_of_a_newer_version_is_read_without_what_is_new() {
    skips_unknown_keys(&examples::call_request());
    skips_unknown_keys(&examples::receipt());
    skips_unknown_keys(&examples::channel_config());
    skips_unknown_keys(&examples::node_record());
    skips_unknown_keys(&examples::listing());
    skips_unknown_keys(&examples::details());
    for (_, refusal) in examples::refusals() {
        skips_unknown_keys(&refusal);
    }
    for (_, reply) in examples::call_replies() {
        match reply {
            CallReply::Response(response) => skips_unknown_keys(&response),
            CallReply::Channel(sync) => skips_unknown_keys(&sync),
            CallReply::Calls(page) => skips_unknown_keys(&page),
            CallReply::Refused(_) | CallReply::Status(_) | CallReply::Sponsor(_) => {}
        }
    }
}

#[test]
fn fields_of_a_variant_can_be_added_at_its_end() {
    let (_, message) = examples::call_messages().remove(0);
    let CallMessage::Call(request) = message else { panic!("the first example is a call") };
    let mut payment = wire::encode(&request.payment);
    // [1, [channel, cumulative, signature]]: a fourth field that is known and absent, and a fifth.
    assert_eq!(payment[..3], [0x82, 0x01, 0x83]);
    payment[2] = 0x85;
    payment.extend([0xf6, 0xf5]);
    assert_eq!(wire::decode::<Payment>(&payment).as_ref(), Ok(&request.payment));
}
