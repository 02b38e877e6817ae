//! One payer, one payee and one channel between them, and shorthand for what they record.

use std::{collections::BTreeMap, sync::OnceLock};

use bytes::Bytes;
use farthing_ledger::{
    AcceptedCall, Acknowledgement, Call, Ledger, PayeeChannelFacts, PayerChannelFacts, Promise, Served,
    Timing,
};
use farthing_values::{
    Address, CallId, CallRequest, ChannelConfig, ChannelId, ChargePolicy, Domain, Method, Outcome, Payment,
    Receipt, SecretKey, ServiceId, Usdc, Voucher,
};
use redb::backends::InMemoryBackend;

pub(crate) const PRICE: Usdc = Usdc::from_micros(2_000);
pub(crate) const DEPOSIT: Usdc = Usdc::from_micros(1_000_000);
/// A Wednesday in 2026.
pub(crate) const NOW_SECS: u64 = 1_795_000_000;
pub(crate) const SERVICE: ServiceId = ServiceId::from_bytes([7; 16]);

pub(crate) struct World {
    pub(crate) domain: Domain,
    pub(crate) payer: SecretKey,
    pub(crate) payee: SecretKey,
}

/// The keys are fixed, so that images and failures repeat.
pub(crate) fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| World {
        domain: Domain::new(31_337, Address::from_bytes([9; 20])),
        payer: SecretKey::from_bytes(&[1; 32]).unwrap(),
        payee: SecretKey::from_bytes(&[2; 32]).unwrap(),
    })
}

pub(crate) fn in_memory() -> Ledger {
    Ledger::with_backend(InMemoryBackend::new()).unwrap()
}

/// One with the channel 1, on which its wallet is paid.
pub(crate) async fn earning() -> Ledger {
    let ledger = in_memory();
    ledger.put_payee_channel(payee_channel(1)).await.unwrap();
    ledger
}

/// One with the channel 1, on which its wallet pays.
pub(crate) async fn paying() -> Ledger {
    let ledger = in_memory();
    ledger.put_payer_channel(payer_channel(1)).await.unwrap();
    ledger
}

pub(crate) fn micros(micros: u64) -> Usdc {
    Usdc::from_micros(micros)
}

pub(crate) fn call_id(number: u64) -> CallId {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    CallId::from_bytes(bytes)
}

pub(crate) fn config(salt: u8) -> ChannelConfig {
    let world = world();
    ChannelConfig {
        payer: world.payer.address(),
        payee: world.payee.address(),
        token: Address::from_bytes([3; 20]),
        signer: world.payer.address(),
        close_delay_secs: 86_400,
        salt: [salt; 32],
    }
}

pub(crate) fn channel(salt: u8) -> ChannelId {
    config(salt).id(&world().domain)
}

pub(crate) fn payee_channel(salt: u8) -> PayeeChannelFacts {
    let config = config(salt);
    PayeeChannelFacts { id: channel(salt), config, deposited: DEPOSIT, claimed: Usdc::ZERO, closing: false }
}

pub(crate) fn payer_channel(salt: u8) -> PayerChannelFacts {
    let config = config(salt);
    PayerChannelFacts {
        id: channel(salt),
        config,
        deposited: DEPOSIT,
        claimed: Usdc::ZERO,
        round: Some(0),
        stopped: false,
    }
}

/// A finished GET that was answered and charged its price.
pub(crate) fn call(number: u64) -> Call {
    Call {
        call_id: call_id(number),
        service: SERVICE,
        method: Method::Get,
        path: format!("/quakes/{number}"),
        request_hash: [4; 32],
        response_hash: [5; 32],
        price: PRICE,
        charged: PRICE,
        outcome: Outcome::Answered,
        status: 200,
        headers: BTreeMap::from([("content-type".into(), "application/json".into())]),
        body: None,
        fault: None,
        upstream_us: Some(400),
        time_secs: NOW_SECS + number,
    }
}

/// A GET whose upstream answered 502.
pub(crate) fn failed_call(number: u64) -> Call {
    Call { charged: Usdc::ZERO, outcome: Outcome::ServerError, status: 502, fault: Some(7), ..call(number) }
}

pub(crate) fn served(salt: u8, cumulative: Usdc, call: Call) -> Served {
    let world = world();
    let voucher = Voucher { channel: channel(salt), cumulative };
    let signature = voucher.sign(&world.domain, &world.payer);
    let voucher = voucher.verify(&world.domain, signature, world.payer.address()).unwrap();
    Served { payer: world.payer.address(), channel: channel(salt), voucher: Some(voucher), call }
}

pub(crate) fn accepted(number: u64) -> AcceptedCall {
    let call = call(number);
    AcceptedCall {
        payer: world().payer.address(),
        call_id: call.call_id,
        service: SERVICE,
        method: Method::Post,
        path: call.path,
        request_hash: call.request_hash,
        time_secs: NOW_SECS,
    }
}

pub(crate) fn promise(salt: u8, number: u64, cumulative: Usdc) -> Promise {
    let voucher = Voucher { channel: channel(salt), cumulative };
    let body = Bytes::from_static(b"{\"a\":1}");
    let request = CallRequest {
        call_id: call_id(number),
        service: SERVICE,
        listing_version: 3,
        method: Method::Post,
        path: "/quakes".into(),
        params: BTreeMap::from([("year".into(), "2026".into())]),
        headers: BTreeMap::from([("accept".into(), "application/json".into())]),
        body_bytes: body.len() as u64,
        price: PRICE,
        deadline_ms: 30_000,
        payment: Payment::Channel {
            channel: channel(salt),
            cumulative,
            signature: Some(voucher.sign(&world().domain, &world().payer)),
            receipted: None,
        },
    };
    Promise {
        request_hash: request.request_hash(&body),
        request,
        owner: world().payee.address(),
        secret: "laptop".into(),
        time_secs: NOW_SECS,
        limits: None,
        seen_total: Usdc::ZERO,
        charge_policy: ChargePolicy::Success,
    }
}

pub(crate) fn receipt(promise: &Promise, charged: Usdc, outcome: Outcome) -> Receipt {
    Receipt {
        channel: promise.channel(),
        call_id: promise.request.call_id,
        request_hash: promise.request_hash,
        response_hash: [5; 32],
        outcome: outcome.code(),
        charged,
        spent_total: charged,
        time_secs: NOW_SECS,
    }
}

pub(crate) fn acknowledgement(receipt: Receipt) -> Acknowledgement {
    let world = world();
    let signature = receipt.sign(&world.domain, &world.payee);
    Acknowledgement {
        receipt: receipt.verify(&world.domain, signature, world.payee.address()).unwrap(),
        status: 200,
        timing: Timing { total_us: 900, owner_us: 600, upstream_us: 400 },
        time_secs: NOW_SECS + 1,
    }
}
