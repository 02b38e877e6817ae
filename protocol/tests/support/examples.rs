//! One fixed value of every message and document, each variant once: what the golden files hold, and what the
//! property tests damage.

use std::collections::BTreeMap;

use farthing_protocol::{
    Address, CallId, CallMessage, CallReply, CallRequest, CallResponse, ChannelConfig, CloseConsent,
    CloseRequest, DepositAuthorization, Domain, Hash, Listing, NodeRecord, Outcome, Receipt, Refusal,
    RefusalCode, SecretKey, ServiceId, ServiceNonce, Signature, Signed, SignedClose, SignedDeposit, Usdc,
    Voucher,
    agreement::RecordsMessage,
    books::{CallRecord, CallsAsked, CallsPage, Shown},
    call::{CallStatus, ChannelSync, ChargePolicy, Method, Payment, response_hash},
    info::{InfoRequest, InfoResponse, ListingOrder, ListingSearch},
    listing::{Accept, Details, OperationPrice, Pin, SCHEME_CHANNEL, ServiceKind},
    reach::{DialBack, ReachRequest, ReachResponse},
    record::{FLAG_ACCEPTS_CALLS, FLAG_TCP_VERIFIED},
    sponsor::{NotSponsored, SponsorAsked, SponsorReply},
    sync::{ItemName, SyncMessage},
};
use minicbor::bytes::ByteVec;

pub const CHAIN_ID: u64 = 31_337;
pub const REQUEST_BODY: &[u8] = br#"{"limit":3}"#;
pub const RESPONSE_BODY: &[u8] = br#"{"id":"us7000abcd","magnitude":"6.1"}"#;
/// 2026-01-02T03:04:05Z.
const TIME_SECS: u64 = 1_767_323_045;

pub fn consumer() -> SecretKey {
    SecretKey::from_bytes(&[0x11; 32]).unwrap()
}

pub fn owner() -> SecretKey {
    SecretKey::from_bytes(&[0x22; 32]).unwrap()
}

pub fn domain() -> Domain {
    Domain::new(CHAIN_ID, contract())
}

pub fn contract() -> Address {
    Address::from_bytes([0xc0; 20])
}

pub fn channel_config() -> ChannelConfig {
    ChannelConfig {
        payer: consumer().address(),
        payee: owner().address(),
        token: Address::from_bytes([0x70; 20]),
        signer: consumer().address(),
        close_delay_secs: 86_400,
        salt: [0; 32],
    }
}

pub fn voucher() -> Voucher {
    Voucher { channel: channel_config().id(&domain()), cumulative: Usdc::from_micros(6_000) }
}

fn voucher_signature() -> Signature {
    voucher().sign(&domain(), &consumer())
}

pub fn call_id() -> CallId {
    CallId::from_bytes([0xca; 16])
}

const fn nonce() -> ServiceNonce {
    ServiceNonce::from_bytes([0x5e; 16])
}

fn service() -> ServiceId {
    ServiceId::derive(owner().address(), nonce())
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

pub fn call_request() -> CallRequest {
    CallRequest {
        call_id: call_id(),
        service: service(),
        listing_version: 7,
        method: Method::Post,
        path: "/events/{id}".to_owned(),
        params: texts(&[("id", "us7000abcd"), ("größe", "≥ 6")]),
        headers: texts(&[("content-type", "application/json")]),
        body_bytes: REQUEST_BODY.len() as u64,
        price: Usdc::from_micros(2_000),
        deadline_ms: 30_000,
        payment: Payment::Channel {
            channel: voucher().channel,
            cumulative: voucher().cumulative,
            signature: Some(voucher_signature()),
            receipted: None,
        },
    }
}

pub fn response_headers() -> BTreeMap<String, String> {
    texts(&[("content-type", "application/json"), ("etag", "\"1\"")])
}

pub fn receipt() -> Receipt {
    Receipt {
        channel: voucher().channel,
        call_id: call_id(),
        request_hash: call_request().request_hash(REQUEST_BODY),
        response_hash: response_hash(200, &response_headers(), RESPONSE_BODY),
        outcome: Outcome::Answered.code(),
        charged: Usdc::from_micros(2_000),
        spent_total: Usdc::from_micros(4_000),
        time_secs: TIME_SECS,
    }
}

fn receipt_signature() -> Signature {
    receipt().sign(&domain(), &owner())
}

pub fn call_response() -> CallResponse {
    CallResponse {
        call_id: call_id(),
        status: 200,
        headers: response_headers(),
        body_bytes: RESPONSE_BODY.len() as u64,
        receipt: receipt(),
        signature: receipt_signature(),
        outcome: Outcome::Answered,
        owner_us: 12_345,
        upstream_us: 11_000,
    }
}

pub fn node_record() -> NodeRecord {
    NodeRecord {
        network: "31337".to_owned(),
        public_key: owner().public_key(),
        net_key: None,
        seq: 1_767_323_045,
        issued_secs: TIME_SECS,
        expires_secs: TIME_SECS + 48 * 3600,
        flags: FLAG_TCP_VERIFIED | FLAG_ACCEPTS_CALLS,
        protocol_min: 1,
        protocol_max: 1,
        // /ip4/192.0.2.1/tcp/3001 and /ip4/192.0.2.1/udp/3001/quic-v1
        addresses: vec![
            ByteVec::from(vec![0x04, 192, 0, 2, 1, 0x06, 0x0b, 0xb9]),
            ByteVec::from(vec![0x04, 192, 0, 2, 1, 0x91, 0x02, 0x0b, 0xb9, 0xcd, 0x03]),
        ],
        listings_count: 2,
        listings_root: [0x1f; 32],
        agent: "farthing/0.1.0".to_owned(),
    }
}

pub fn listing() -> Listing {
    let (details, details_hash) = details().to_blob();
    let accept = |scheme: &str, min_deposit| Accept {
        scheme: scheme.to_owned(),
        chain_id: CHAIN_ID,
        asset: channel_config().token,
        pay_to: owner().address(),
        contract: contract(),
        min_deposit: Usdc::from_micros(min_deposit),
        close_delay_secs: 86_400,
    };
    Listing {
        network: "31337".to_owned(),
        service: service(),
        owner: owner().address(),
        seq: 7,
        name: "Earthquakes".to_owned(),
        summary: "Every earthquake since 1900, by place, time and magnitude.".to_owned(),
        category: "science".to_owned(),
        tags: vec!["geology".to_owned(), "Erdbeben".to_owned()],
        kind: ServiceKind::Rest,
        price: Usdc::from_micros(2_000),
        charge_policy: ChargePolicy::Success,
        accepts: vec![accept(SCHEME_CHANNEL, 50_000), accept("free/1", 0)],
        operations_count: 2,
        details_hash,
        details_bytes: u32::try_from(details.len()).unwrap(),
        created_secs: TIME_SECS - 3600,
        updated_secs: TIME_SECS,
        tombstone: false,
        paused: false,
        samples_count: 1,
        history: Some(Pin { hash: [9; 32], bytes: 640 }),
        nonce: nonce(),
    }
}

pub fn details() -> Details {
    Details {
        api: b"an API as the bridge encodes it".to_vec(),
        prices: vec![OperationPrice {
            method: Method::Post,
            path: "/events/{id}".to_owned(),
            price: Usdc::from_micros(5_000),
        }],
        samples: Some(Pin { hash: [7; 32], bytes: 1_200 }),
    }
}

pub fn signed_record() -> Signed<NodeRecord> {
    Signed::sign(&node_record(), &owner()).unwrap()
}

pub fn signed_listing() -> Signed<Listing> {
    Signed::sign(&listing(), &owner()).unwrap()
}

fn shown() -> Shown {
    let voucher = Voucher { cumulative: receipt().spent_total, ..voucher() };
    Shown {
        receipt: receipt(),
        receipt_signature: receipt_signature(),
        promised: voucher.cumulative,
        voucher_signature: voucher.sign(&domain(), &consumer()),
    }
}

pub fn call_messages() -> Vec<(&'static str, CallMessage)> {
    let call = |payment| CallMessage::Call(CallRequest { payment, ..call_request() });
    let Voucher { channel, cumulative } = voucher();
    vec![
        ("a call paid with a new voucher", CallMessage::Call(call_request())),
        (
            "a call that relies on the best voucher",
            call(Payment::Channel { channel, cumulative, signature: None, receipted: None }),
        ),
        (
            "a call whose payer holds a receipt",
            call(Payment::Channel {
                channel,
                cumulative,
                signature: Some(voucher_signature()),
                receipted: Some(receipt().spent_total),
            }),
        ),
        (
            "a free call",
            CallMessage::Call(CallRequest {
                price: Usdc::ZERO,
                payment: Payment::Free,
                params: BTreeMap::new(),
                headers: BTreeMap::new(),
                ..call_request()
            }),
        ),
        ("what became of a call", CallMessage::Status(call_id())),
        ("what the owner holds of a channel", CallMessage::Sync(channel, None)),
        ("what it holds, with its newest word", CallMessage::Sync(channel, Some(shown()))),
        ("a request to close", CallMessage::Close(channel, None)),
        ("a request to close, with the owner's newest word", CallMessage::Close(channel, Some(shown()))),
        ("all that was recorded of my calls", CallMessage::Calls(CallsAsked { after: None, since_secs: 0 })),
        (
            "a further page of it",
            CallMessage::Calls(CallsAsked { after: Some(call_id()), since_secs: 1_750_000_000 }),
        ),
        ("a deposit to bring", CallMessage::Sponsor(SponsorAsked::Deposit(signed_deposit()))),
        (
            "a request to close to bring",
            CallMessage::Sponsor(SponsorAsked::RequestClose(
                channel_config(),
                close_request(),
                Signature::from_bytes([0x1c; 65]),
            )),
        ),
        ("a withdrawal to make", CallMessage::Sponsor(SponsorAsked::Withdraw(channel_config()))),
    ]
}

pub fn refusals() -> Vec<(&'static str, Refusal)> {
    let mut price_changed =
        Refusal::new(RefusalCode::PriceChanged, "the price is 0.002 USDC since version 7");
    price_changed.listing = Some(signed_listing());
    vec![
        ("a refusal with the new listing", price_changed),
        (
            "a refusal that names a time",
            Refusal::new(RefusalCode::Busy, "all places are taken").retry_after_ms(1_500),
        ),
        ("the refusal with the highest code", Refusal::new(RefusalCode::BooksBehind, "")),
    ]
}

pub fn call_replies() -> Vec<(&'static str, CallReply)> {
    let done = CallStatus::Done { receipt: receipt(), signature: receipt_signature() };
    let sync = ChannelSync {
        config: channel_config(),
        deposited: Usdc::from_micros(1_000_000),
        claimed: Usdc::from_micros(1_000),
        spent: Usdc::from_micros(4_000),
        best: voucher().cumulative,
        best_signature: Some(voucher_signature()),
        close: None,
    };
    let untouched = ChannelSync { best: Usdc::ZERO, best_signature: None, ..sync.clone() };
    let signed = ChannelSync { close: Some(signed_close()), ..sync.clone() };
    let mut replies = vec![("an answer with its receipt", CallReply::Response(call_response()))];
    replies.extend(refusals().into_iter().map(|(name, refusal)| (name, CallReply::Refused(refusal))));
    replies.extend([
        ("a finished call", CallReply::Status(done)),
        ("a running call", CallReply::Status(CallStatus::Running)),
        ("a call never served", CallReply::Status(CallStatus::Unknown)),
        ("a channel with its proof", CallReply::Channel(sync)),
        ("a channel without vouchers", CallReply::Channel(untouched)),
        ("a channel whose close is signed", CallReply::Channel(signed)),
        ("a page of records", CallReply::Calls(calls_page())),
        (
            "the last page, of an owner that was restored",
            CallReply::Calls(CallsPage {
                next: None,
                adjusted: Some(Usdc::from_micros(3_000)),
                ..calls_page()
            }),
        ),
        ("a transaction for another", CallReply::Sponsor(SponsorReply::Sent { transaction: [0x7a; 32] })),
        ("nothing is left to do for it", CallReply::Sponsor(SponsorReply::Done)),
        (
            "no gas for another",
            CallReply::Sponsor(SponsorReply::refused(NotSponsored::TooSmall, "too small", Some(60))),
        ),
    ]);
    replies
}

fn calls_page() -> CallsPage {
    let charged = CallRecord {
        call_id: call_id(),
        channel: voucher().channel,
        outcome: Some(Outcome::Answered),
        price: Usdc::from_micros(1_000),
        charged: Usdc::from_micros(1_000),
        time_secs: 1_750_000_001,
    };
    let unfinished = CallRecord { outcome: None, charged: Usdc::ZERO, ..charged };
    CallsPage {
        records: vec![charged, unfinished],
        next: Some(call_id()),
        kept_since_secs: 1_718_464_000,
        adjusted: None,
    }
}

pub fn info_requests() -> Vec<(&'static str, InfoRequest)> {
    let wallets = vec![consumer().address(), owner().address()];
    vec![
        ("records of wallets", InfoRequest::Records(wallets)),
        ("records to take", InfoRequest::Push(vec![signed_record()])),
        ("listings of services", InfoRequest::Services(vec![service()])),
        ("listings of the owner", InfoRequest::OwnListings),
        ("content by hash", InfoRequest::Blob(listing().details_hash)),
        ("peers", InfoRequest::Peers),
        (
            "a search",
            InfoRequest::Search(ListingSearch {
                words: "quakes".to_owned(),
                category: Some("science".to_owned()),
                tag: None,
                kind: Some(ServiceKind::Rest),
                price_max: Some(Usdc::from_micros(2_000)),
                online: true,
                samples: false,
                owner: None,
                order: ListingOrder::Price,
                limit: 20,
            }),
        ),
    ]
}

pub fn info_responses() -> Vec<(&'static str, InfoResponse)> {
    vec![
        ("records", InfoResponse::Records(vec![signed_record()])),
        ("listings", InfoResponse::Listings(vec![signed_listing()])),
        ("content", InfoResponse::Blob(Some(ByteVec::from(details().to_blob().0)))),
        ("content that is not held", InfoResponse::Blob(None)),
        ("done", InfoResponse::Done),
        ("refused", InfoResponse::refused("too many questions")),
        (
            "refused for its date",
            InfoResponse::Refused { words: "dated ahead".to_owned(), ahead_secs: Some(3_600) },
        ),
    ]
}

pub fn sync_messages() -> Vec<(&'static str, SyncMessage)> {
    let names = vec![ItemName::of(&signed_listing().content_hash()), ItemName::from_bytes([0x5a; 16])];
    vec![
        ("a comparison, compressed", SyncMessage::Compare(ByteVec::from(vec![0x28, 0xb5, 0x2f, 0xfd]))),
        ("listings to have", SyncMessage::Offer(names.clone())),
        ("listings wanted", SyncMessage::Fetch(names)),
        ("listings, compressed", SyncMessage::Listings(ByteVec::from(vec![0x28, 0xb5, 0x2f, 0xfd]))),
        ("done", SyncMessage::Done),
        ("refused", SyncMessage::Refused("too many questions".to_owned())),
        ("shards that are kept", SyncMessage::Shards(0x00f0)),
    ]
}

pub fn records_messages() -> Vec<(&'static str, RecordsMessage)> {
    let wallets = vec![Address::from_bytes([0x1c; 20]), Address::from_bytes([0x5a; 20])];
    vec![
        ("a comparison, compressed", RecordsMessage::Compare(ByteVec::from(vec![0x28, 0xb5, 0x2f, 0xfd]))),
        ("records wanted", RecordsMessage::Fetch(wallets)),
        ("records, compressed", RecordsMessage::Records(ByteVec::from(vec![0x28, 0xb5, 0x2f, 0xfd]))),
        ("done", RecordsMessage::Done),
        ("refused", RecordsMessage::Refused("too many questions".to_owned())),
    ]
}

pub fn reach_requests() -> Vec<(&'static str, ReachRequest)> {
    let addresses = node_record().addresses;
    vec![(
        "addresses to dial",
        ReachRequest { nonce: [0x5a; 32], addresses, known: None, on_behalf_of: None },
    )]
}

pub fn reach_responses() -> Vec<(&'static str, ReachResponse)> {
    let ends = vec![DialBack::Reached, DialBack::Failed("connection refused".to_owned())];
    vec![
        ("how two dials ended", ReachResponse::Dialled(ends, None)),
        ("asked too soon", ReachResponse::TooSoon { retry_after_secs: 42 }),
        ("refused", ReachResponse::Refused("too many dial-backs are under way".to_owned())),
    ]
}

pub fn close_consent() -> CloseConsent {
    CloseConsent {
        channel: channel_config().id(&domain()),
        amount: Usdc::from_micros(4_000),
        deposited: Usdc::from_micros(1_000_000),
        round: 3,
        deadline_secs: 1_767_409_445,
    }
}

pub fn signed_close() -> SignedClose {
    let consent = close_consent();
    SignedClose { consent, signature: consent.sign(&domain(), &owner()) }
}

/// Its signature is made up: nothing here reads it.
fn signed_deposit() -> SignedDeposit {
    let deposit = DepositAuthorization {
        config: channel_config(),
        amount: Usdc::from_micros(400_000),
        valid_before_secs: 1_767_409_445,
        salt: [0x5a; 32],
    };
    SignedDeposit { deposit, signature: Signature::from_bytes([0x1b; 65]) }
}

pub fn close_request() -> CloseRequest {
    CloseRequest { channel: channel_config().id(&domain()), round: 3, deadline_secs: 1_767_409_445 }
}

/// The digests that wallets sign and hashes that tie a receipt to its call, by name.
pub fn digests() -> Vec<(&'static str, Hash)> {
    vec![
        ("domain_separator", *domain().separator()),
        ("channel_id", *channel_config().id(&domain()).as_bytes()),
        ("voucher_digest", voucher().digest(&domain())),
        ("close_consent_digest", close_consent().digest(&domain())),
        ("close_request_digest", close_request().digest(&domain())),
        ("request_hash", call_request().request_hash(REQUEST_BODY)),
        ("response_hash", response_hash(200, &response_headers(), RESPONSE_BODY)),
        ("receipt_digest", receipt().digest(&domain())),
    ]
}
