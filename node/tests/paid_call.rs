//! Two nodes in one process, a real chain, a real upstream: the first paid call.

use std::{collections::BTreeMap, sync::Arc};

use farthing_config as config;
use farthing_control::types::{OperationFile, ServiceFile};
use farthing_node::{
    consumer::{Order, spending::Grant},
    home::LockedHome,
    node::{DRAIN_MAX, Node},
};
use farthing_owner::{assemble::assemble, new_service::NewService};
use farthing_protocol::{CallId, Usdc, call::Method};
use farthing_testnet::LocalChain;

async fn node(chain: &LocalChain, folder: &std::path::Path, bootstrap: Option<String>) -> Node {
    let mut flags = vec![
        ("chain.preset", "local".to_owned()),
        ("chain.rpc_urls", chain.rpc_url()),
        ("chain.token", chain.token.to_string()),
        ("chain.poll_interval_ms", "100".to_owned()),
        ("network.listen", "/ip4/127.0.0.1/tcp/0".to_owned()),
        ("network.allow_private", "true".to_owned()),
        ("node.data_dir", folder.display().to_string()),
    ];
    if let Some(bootstrap) = bootstrap {
        flags.push(("network.bootstrap", bootstrap));
    }
    let sources = config::Sources {
        variables: flags
            .into_iter()
            .map(|(k, v)| (format!("FARTHING_{}", k.replace('.', "__").to_uppercase()), v))
            .collect(),
        ..config::Sources::default()
    };
    let config = config::load(&sources).unwrap().config;
    let locked = LockedHome::lock(&config.node.data_dir).unwrap();
    Node::start(config, locked).await.unwrap()
}

async fn until(mut holds: impl FnMut() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the condition never came true");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_bought_served_charged_and_proven_by_a_receipt() {
    let chain = LocalChain::start().await.unwrap();
    let upstream = axum::Router::new().route("/hello", axum::routing::get(|| async { "hello" }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, upstream).await.unwrap() });

    let folder = tempfile::tempdir().unwrap();
    let owner = node(&chain, &folder.path().join("owner"), None).await;
    until(|| !owner.handles.network.status().borrow().listening.is_empty()).await;
    let join = owner.handles.network.status().borrow().listening[0].clone();
    let consumer = node(&chain, &folder.path().join("consumer"), Some(join)).await;
    chain.fund(owner.handles.wallet, Usdc::ZERO).await.unwrap();
    chain.fund(consumer.handles.wallet, Usdc::from_micros(1_000_000)).await.unwrap();
    until(|| {
        owner.handles.readiness.waiting_for().is_empty()
            && consumer.handles.readiness.waiting_for().is_empty()
    })
    .await;
    until(|| {
        consumer
            .handles
            .chain
            .balances()
            .borrow()
            .is_some_and(|b| b.usdc.micros() == 1_000_000 && b.eth_wei > 0)
    })
    .await;

    let service = owner.handles.registry.add(hello(url)).await.unwrap();
    owner.handles.publish().await;
    let id = service.listing().service;
    until(|| consumer.handles.network.status().borrow().peers > 0).await;

    let order = |n: u8| Order {
        grant: Arc::new(Grant::unlimited("default")),
        call_id: CallId::from_bytes([n; 16]),
        service: id,
        method: Method::Get,
        path: "/hello".to_owned(),
        params: BTreeMap::new(),
        headers: BTreeMap::new(),
        body: bytes::Bytes::new(),
        max_price: None,
    };
    for n in 1..=5 {
        let bought = consumer.handles.consumer.buy(order(n)).await.unwrap();
        assert_eq!(&bought.body[..], b"hello");
        println!("{n}: {:?}", bought.timing);
    }
    let again = consumer.handles.consumer.buy(order(5)).await.unwrap();
    assert_eq!(&again.body[..], b"hello");
    let claimed = owner.handles.settlement.claim().await.unwrap();
    assert_eq!(claimed.amount, Usdc::from_micros(10_000));
    assert_eq!(chain.usdc_of(owner.handles.wallet).await.unwrap(), Usdc::from_micros(10_000));
    let _ = Arc::new(());
    consumer.shutdown(DRAIN_MAX).await;
    owner.shutdown(DRAIN_MAX).await;
}

/// One operation, described by hand.
fn hello(upstream: String) -> NewService {
    let file = ServiceFile {
        name: "Hello".to_owned(),
        upstream,
        operations: vec![OperationFile::named(Method::Get, "/hello".to_owned())],
        ..ServiceFile::priced(Usdc::from_micros(2_000))
    };
    assemble(file, None).unwrap()
}
