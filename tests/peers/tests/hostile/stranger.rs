//! A wallet in this process that says of its services whatever a test likes.

use anyhow::Result;
use farthing_network::{Inbound, Network, NetworkConfig, NetworkHandle};
use farthing_peers::simulate::now_secs;
use farthing_protocol::{
    Address, Listing, SecretKey, ServiceNonce,
    info::{InfoRequest, InfoResponse},
    listing::Pin,
    wire::NetworkName,
};
use farthing_testnet::NodeProcess;
use farthing_tests::wait::eventually;

/// Of the nodes of all these tests, after the id of their chain.
pub const NETWORK: &str = "31337";

/// The first version of the wallet's service of this number, free and of one operation.
pub fn listing(owner: &SecretKey, number: u8, details: Pin) -> Listing {
    let nonce = ServiceNonce::from_bytes([number; 16]);
    Listing {
        name: format!("Stranger's {number}"),
        category: "test".to_owned(),
        operations_count: 1,
        details_hash: details.hash,
        details_bytes: details.bytes,
        ..Listing::first(NETWORK, owner.address(), nonce, now_secs())
    }
}

/// Joins the network of these nodes, whatever it answers then.
pub async fn join(key: SecretKey, nodes: &[&NodeProcess]) -> Result<(NetworkHandle, Inbound)> {
    let mut bootstrap = Vec::new();
    for node in nodes {
        bootstrap.push(node.loopback_address().await?);
    }
    let config = NetworkConfig {
        listen: vec!["/ip4/127.0.0.1/tcp/0".to_owned()],
        bootstrap,
        allow_private: true,
        ..NetworkConfig::new(key, NetworkName::new(NETWORK)?)
    };
    Ok(Network::start(config).await?)
}

pub async fn until_connected(network: &NetworkHandle, wallet: Address) -> Result<()> {
    eventually("they are neighbours", async || Ok(network.connected_peers().await.contains(&wallet))).await
}

/// Joins the node's network with a wallet that answers so.
pub async fn start(
    key: SecretKey,
    node: &NodeProcess,
    answer: impl Fn(&InfoRequest) -> Option<InfoResponse> + Send + 'static,
) -> Result<NetworkHandle> {
    let (handle, Inbound { mut info, .. }) = join(key, &[node]).await?;
    // Ends with the handle.
    tokio::spawn(async move {
        while let Some(question) = info.recv().await {
            let refused = || InfoResponse::refused("not asked for");
            question.reply.send(answer(&question.request).unwrap_or_else(refused));
        }
    });
    Ok(handle)
}
