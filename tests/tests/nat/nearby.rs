//! Nodes of one LAN find each other by multicast, with nobody to begin with.

use std::net::Ipv4Addr;

use anyhow::Result;
use farthing_testnet::{NodeOptions, NodeProcess};
use farthing_tests::{
    lab::{Lab, Place},
    market::{PATIENCE, addresses_at, until},
    nodes::no_chain,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_of_a_lan_find_each_other_without_a_bootstrap_node() -> Result<()> {
    let Some(lab) = Lab::build()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let start = |place: Place| {
        let mut options = NodeOptions::new(folder.path().join(format!("{place:?}")))
            .set("network.listen", &addresses_at(Ipv4Addr::UNSPECIFIED).join(","))
            .set("network.mdns", &true);
        options.launcher = lab.launcher(place);
        NodeProcess::start_on(no_chain(), options)
    };
    let (one, other) = tokio::try_join!(start(Place::Owner), start(Place::Neighbour))?;
    until("each is connected to the other", PATIENCE, async || {
        Ok(one.status().await?.peers == 1 && other.status().await?.peers == 1)
    })
    .await?;
    Ok(())
}
