//! A wallet in this process that says of its services whatever a test likes.

use anyhow::Result;
use farthing_network::{Inbound, Network, NetworkConfig, NetworkHandle};
use farthing_peers::simulate::now_secs;
use farthing_protocol::{
    Listing, SecretKey, ServiceId, ServiceNonce, Usdc,
    call::ChargePolicy,
    info::{InfoRequest, InfoResponse},
    listing::{Pin, ServiceKind},
    wire::NetworkName,
};
use farthing_testnet::NodeProcess;

/// Of the nodes of [`farthing_tests::nodes::Nodes`].
pub const NETWORK: &str = "31337";

/// The first version of the wallet's service of this number, free and of one operation.
pub fn listing(owner: &SecretKey, number: u8, details: Pin) -> Listing {
    let nonce = ServiceNonce::from_bytes([number; 16]);
    Listing {
        network: NETWORK.to_owned(),
        service: ServiceId::derive(owner.address(), nonce),
        owner: owner.address(),
        seq: 1,
        name: format!("Stranger's {number}"),
        summary: String::new(),
        category: "test".to_owned(),
        tags: Vec::new(),
        kind: ServiceKind::Rest,
        price: Usdc::ZERO,
        charge_policy: ChargePolicy::default(),
        accepts: Vec::new(),
        operations_count: 1,
        details_hash: details.hash,
        details_bytes: details.bytes,
        created_secs: now_secs(),
        updated_secs: now_secs(),
        tombstone: false,
        paused: false,
        samples_count: 0,
        history: None,
        nonce,
    }
}

/// Joins the node's network with a wallet that answers so.
pub async fn start(
    key: SecretKey,
    node: &NodeProcess,
    answer: impl Fn(&InfoRequest) -> Option<InfoResponse> + Send + 'static,
) -> Result<NetworkHandle> {
    let config = NetworkConfig {
        listen: vec!["/ip4/127.0.0.1/tcp/0".to_owned()],
        bootstrap: vec![node.loopback_address().await?],
        allow_private: true,
        ..NetworkConfig::new(key, NetworkName::new(NETWORK)?)
    };
    let (handle, Inbound { mut info, .. }) = Network::start(config).await?;
    // Ends with the handle.
    tokio::spawn(async move {
        while let Some(question) = info.recv().await {
            let refused = || InfoResponse::Refused("not asked for".to_owned());
            question.reply.send(answer(&question.request).unwrap_or_else(refused));
        }
    });
    Ok(handle)
}
