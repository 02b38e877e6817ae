//! An answer that is stored and too large for a relay, over real connections: refused there to a copy of its call, told by its
//! receipt alone to a question, and given over a direct connection.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use farthing_bounds::ByteBudget;
use farthing_chain::{Chain, MemoryJournal};
use farthing_ledger::{AcceptedCall, Call, Ledger, OpenMode, Served};
use farthing_network::{
    CallFailure, Inbound, Network, NetworkConfig, NetworkHandle, RELAYED_BODY_BYTES_MAX, ReachConfig,
};
use farthing_protocol::{
    Address, CallId, CallMessage, CallReply, CallRequest, ChannelId, Domain, Outcome, RefusalCode, SecretKey,
    ServiceId, Usdc,
    call::{CallStatus, Method, Payment, response_hash},
    record::FLAG_ACCEPTS_CALLS,
    wire::NetworkName,
};
use farthing_shared::{call_ends::CallEnds, refused::RefusedCalls, tasks::Tasks};
use farthing_wallet::Wallet;
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::{
    Owner, OwnerParts,
    book::Book,
    late::ToldFree,
    load::{Load, LoadLimits},
    registry::Registry,
    running::Calls,
    sponsor::{Sponsor, SponsorRules},
    terms::Terms,
    told::{BooksLimiter, GivenAgain},
    upstream::UpstreamOptions,
    x402::{Door, X402SaleParts, X402Sales},
};

/// No condition takes this long; a test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);
const DEADLINE: Duration = Duration::from_secs(20);
const NETWORK: &str = "local-test";
pub(crate) const CHAIN_ID: u64 = 31_337;
/// The service's answer, a byte more than a relay carries.
const ANSWER: &[u8] = &[b'a'; RELAYED_BODY_BYTES_MAX + 1];
const ASKED: &[u8] = b"{}";

pub(crate) fn key(n: u8) -> SecretKey {
    SecretKey::from_bytes(&[n; 32]).unwrap()
}

/// A node on loopback that listens nowhere, tests every few moments whether it can be reached, and knows those at `bootstrap`.
fn hidden(key: SecretKey, bootstrap: &[String]) -> NetworkConfig {
    let reach = ReachConfig {
        first: Duration::from_millis(500),
        interval: Duration::from_secs(2),
        retry: Duration::from_millis(200),
        debounce: Duration::from_millis(20),
        asker_interval: Duration::from_millis(1),
        ..ReachConfig::default()
    };
    NetworkConfig {
        listen: Vec::new(),
        bootstrap: bootstrap.to_vec(),
        allow_private: true,
        reach,
        ..NetworkConfig::new(key, NetworkName::new(NETWORK).unwrap())
    }
}

/// One that says where it is, as who is known to be reachable, and relays others.
async fn relaying() -> (NetworkHandle, Inbound, String) {
    // Nobody else is given the port while the node is started.
    let reserved = tokio::net::TcpSocket::new_v4().unwrap();
    reserved.set_reuseaddr(true).unwrap();
    reserved.set_reuseport(true).unwrap();
    reserved.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = format!("/ip4/127.0.0.1/tcp/{}", reserved.local_addr().unwrap().port());
    let (listen, announce) = (vec![address.clone()], vec![address.clone()]);
    let (handle, inbound) =
        Network::start(NetworkConfig { listen, announce, ..hidden(key(1), &[]) }).await.unwrap();
    (handle, inbound, address)
}

async fn until<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) {
    let waiting = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "never: {what}");
}

/// The owner half of a node with this ledger, whose chain is to answer at `endpoint`.
pub(crate) async fn owner(key: SecretKey, ledger: Ledger, endpoint: &str) -> Owner {
    let spec = farthing_chain::local(endpoint, CHAIN_ID, Address::ZERO);
    let wallet = Wallet::from_key(key.clone());
    let signer = wallet.signer(Domain::new(spec.chain_id, spec.contract));
    let chain = Chain::start(spec, key, Arc::new(MemoryJournal::default())).await.unwrap();
    let registry = Registry::load(
        signer.clone(),
        ledger.clone(),
        NETWORK.to_owned(),
        Vec::new(),
        UpstreamOptions::default(),
    )
    .unwrap();
    let (closes, _) = mpsc::channel(1);
    let book = Book::new(Usdc::ZERO, Usdc::ZERO);
    let load = Load::new(LoadLimits::default(), ByteBudget::new(16 * 1024 * 1024));
    let (load, tasks) = (Arc::new(load), Tasks::default());
    let (ends, refused) = (CallEnds::default(), RefusedCalls::default());
    let x402 = X402Sales::new(X402SaleParts {
        signer: signer.clone(),
        ledger: ledger.clone(),
        chain: chain.clone(),
        registry: registry.clone(),
        book: book.clone(),
        load: load.clone(),
        tasks: tasks.clone(),
        ends: ends.clone(),
        refused: refused.clone(),
        door: Door::restore(ledger.clone()).unwrap(),
    });
    let sponsor = Sponsor::restore(SponsorRules::default(), &ledger, wallet.address(), 0).unwrap();
    Owner::new(OwnerParts {
        signer,
        ledger,
        chain,
        registry,
        book,
        calls: Calls::default(),
        given: GivenAgain::default(),
        told_free: ToldFree::default(),
        load,
        told: BooksLimiter::default(),
        terms: Terms {
            deposit_min: Usdc::ZERO,
            close_delay_secs: 0,
            unsafe_max: Usdc::ZERO,
            without_gas_max: Usdc::ZERO,
        },
        closes,
        tasks,
        ends,
        refused,
        x402,
        sponsor,
    })
}

fn request() -> CallRequest {
    CallRequest {
        call_id: CallId::from_bytes([1; 16]),
        service: ServiceId::from_bytes([2; 16]),
        listing_version: 1,
        method: Method::Post,
        path: "/long".to_owned(),
        params: BTreeMap::new(),
        headers: BTreeMap::new(),
        body_bytes: ASKED.len() as u64,
        price: Usdc::ZERO,
        deadline_ms: 20_000,
        payment: Payment::Free,
    }
}

/// A ledger in which `payer` was answered before, over a direct connection.
async fn answered_before(folder: &Path, payer: Address) -> Ledger {
    let ledger = Ledger::open(&folder.join("ledger.redb"), OpenMode::Create).unwrap();
    let CallRequest { call_id, service, method, path, .. } = request();
    let (request_hash, time_secs) = (request().request_hash(ASKED), farthing_os::clock::now_secs());
    let accepted =
        AcceptedCall { payer, call_id, service, method, path: path.clone(), request_hash, time_secs };
    ledger.accept(accepted).await.unwrap();
    let headers = BTreeMap::from([("content-type".to_owned(), "text/plain".to_owned())]);
    let call = Call {
        call_id,
        service,
        method,
        path,
        request_hash,
        response_hash: response_hash(200, &headers, ANSWER),
        price: Usdc::ZERO,
        charged: Usdc::ZERO,
        outcome: Outcome::Answered,
        status: 200,
        headers,
        body: Some(Bytes::from_static(ANSWER)),
        fault: None,
        time_secs,
        upstream_us: None,
    };
    ledger.serve(Served { payer, channel: ChannelId::NONE, voucher: None, call }).await.unwrap();
    ledger
}

async fn asked(
    consumer: &NetworkHandle,
    owner: Address,
    message: CallMessage,
) -> Result<(CallReply, Bytes), CallFailure> {
    let body = if matches!(message, CallMessage::Call(_)) { Bytes::from_static(ASKED) } else { Bytes::new() };
    let answered = consumer.call(owner, message, body, DEADLINE).await;
    answered.map(|(reply, body, _)| (reply, body))
}

#[tokio::test]
async fn a_stored_answer_that_is_too_large_for_a_relay_is_refused_there_and_given_over_a_direct_connection() {
    let (_relay, _relays_inbound, at_relay) = relaying().await;
    let bootstrap = [at_relay];
    let (owners_key, payers_key) = (key(2), key(3));
    let folder = TempDir::new().unwrap();
    let ledger = answered_before(folder.path(), payers_key.address()).await;
    let owner = owner(owners_key.clone(), ledger, "http://127.0.0.1:9").await;
    let (sells, inbound) = Network::start(hidden(owners_key, &bootstrap)).await.unwrap();
    let Inbound { calls, info: _info, syncs: _syncs, listings: _listings } = inbound;
    tokio::spawn(async move { owner.run(calls).await });
    sells.publish(FLAG_ACCEPTS_CALLS, 1, [0; 32]).await.unwrap();
    let mut status = sells.status();
    let relayed = status.wait_for(|status| status.reachability.relays.through.len() == 1);
    tokio::time::timeout(PATIENCE, relayed).await.expect("it is reached through no relay").unwrap();
    let wallet = sells.own_address();

    let (consumer, _inbound) = Network::start(hidden(payers_key.clone(), &bootstrap)).await.unwrap();
    until("the owner is reached", async || consumer.connect(wallet).await.is_ok()).await;
    let (reply, body) = asked(&consumer, wallet, CallMessage::Call(request())).await.unwrap();
    let CallReply::Refused(refusal) = reply else { panic!("{reply:?}") };
    assert_eq!((refusal.code, body.len()), (RefusalCode::TooLarge, 0), "{refusal:?}");
    let question = CallMessage::Status(request().call_id);
    let (reply, body) = asked(&consumer, wallet, question.clone()).await.unwrap();
    let CallReply::Status(CallStatus::Done { receipt, .. }) = reply else { panic!("{reply:?}") };
    assert_eq!((receipt.call_id, body.len()), (request().call_id, 0));
    consumer.shutdown().await;

    // The owner connects to whoever comes through the relay and can be connected to.
    let listen = vec!["/ip4/127.0.0.1/tcp/0".to_owned()];
    let reachable = NetworkConfig { listen, ..hidden(payers_key, &bootstrap) };
    let (consumer, _inbound) = Network::start(reachable).await.unwrap();
    let is_given = |answered: Result<(CallReply, Bytes), CallFailure>| {
        answered.is_ok_and(|(reply, body)| matches!(reply, CallReply::Response(_)) && body == ANSWER)
    };
    until("a copy is answered directly", async || {
        is_given(asked(&consumer, wallet, CallMessage::Call(request())).await)
    })
    .await;
    assert!(is_given(asked(&consumer, wallet, question).await), "a question as well");
}
