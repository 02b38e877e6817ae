//! A network is a name and a chain together: who settles on another chain is never met.

use anyhow::{Result, ensure};
use farthing_control::{
    endpoint,
    types::{CatalogPage, Reach, ReachState},
};
use farthing_testnet::NodeProcess;
use farthing_tests::{
    command::farthing,
    nodes::{Nodes, all_find, offer, publish, search, words},
    wait::eventually,
};

const UPSTREAM: &str = "http://127.0.0.1:9";
const NAME: &str = "lab-x";

/// The environment of a node of the network that is called [`NAME`], on this chain.
fn on_chain(chain_id: u64) -> Vec<(String, String)> {
    [("FARTHING_NETWORK__NAME", NAME.to_owned()), ("FARTHING_CHAIN__CHAIN_ID", chain_id.to_string())]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_of_one_name_on_two_chains_do_not_meet_and_doctor_says_why() -> Result<()> {
    let mut nodes = Nodes::new()?;
    let owner = nodes.join_with(&[], on_chain(31_337)).await?;
    publish(&owner, &offer("Ground motion", UPSTREAM)).await?;
    ensure!(owner.status().await?.network == "lab-x-31337", "{:?}", owner.status().await?.network);
    let same = nodes.join_with(&[&owner], on_chain(31_337)).await?;
    let other = nodes.join_with(&[&owner], on_chain(31_338)).await?;

    let mut doctor = String::new();
    eventually("doctor names the other network", async || {
        doctor = farthing(&other, &["doctor"]).await?.out;
        let line = doctor.lines().find(|line| line.contains("bootstrap:")).unwrap_or_default();
        let is_named = line.contains("is a node of another network: lab-x on chain 31337");
        Ok(line.starts_with("FAIL") && is_named && doctor.contains("the same `network.name` and chain"))
    })
    .await?;
    all_find(std::slice::from_ref(&same), &words("motion"), 1).await?;
    let peers = other.control().ask(endpoint::Peers).await?;
    ensure!(peers.is_empty(), "{peers:?}");
    let found: CatalogPage = search(&other, &words("motion")).await?;
    ensure!(found.total == 0, "{found:?}");
    let met = owner.control().ask(endpoint::Peers).await?;
    ensure!(met.len() == 1, "only the node of the same chain: {met:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_before_the_chain_was_part_of_the_name_finds_its_network_back() -> Result<()> {
    let mut nodes = Nodes::new()?;
    let first = nodes.join_with(&[], on_chain(31_337)).await?;
    let mut second = nodes.join_with(&[&first], on_chain(31_337)).await?;
    publish(&first, &offer("Ground motion", UPSTREAM)).await?;
    all_find(std::slice::from_ref(&second), &words("motion"), 1).await?;
    second.stop().await?;
    let networks = second.data_dir().join("networks");
    std::fs::rename(networks.join("lab-x-31337"), networks.join(NAME))?;

    // Nobody is where its configuration says: it goes by what it learned.
    let nowhere = ("FARTHING_NETWORK__BOOTSTRAP".to_owned(), "/ip4/127.0.0.1/tcp/1".to_owned());
    second.restart(on_chain(31_337).into_iter().chain([nowhere]).collect()).await?;
    all_find(std::slice::from_ref(&second), &words("motion"), 1).await?;
    ensure!(networks.join("lab-x-31337").is_dir() && !networks.join(NAME).exists(), "the folder is renamed");
    let log = second.log();
    ensure!(log.contains("now include the chain") && !log.contains("damaged"), "{log}");
    Ok(())
}

/// What `farthing net reach` answers to programs, and its exit code.
async fn reach(node: &NodeProcess) -> Result<(Reach, i32)> {
    let told = farthing(node, &["net", "reach", "--json"]).await?;
    Ok((serde_json::from_str(&told.out)?, told.code))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_dialled_by_name_alone_is_said_to_be_reachable() -> Result<()> {
    let mut nodes = Nodes::new()?;
    let first = nodes.join_with(&[], quick()).await?;
    let (alone, code) = reach(&first).await?;
    ensure!(!alone.reachable && code == 1, "{alone:?} ends with {code}");
    let by_name = first.loopback_address().await?.replace("/ip4/127.0.0.1/", "/dns4/localhost/");
    ensure!(by_name.starts_with("/dns4/localhost/"), "{by_name}");
    let joining = ("FARTHING_NETWORK__BOOTSTRAP".to_owned(), by_name.clone());
    let second = nodes.join_with(&[], quick().into_iter().chain([joining]).collect()).await?;

    eventually("the first node was reached", async || Ok(reach(&first).await?.0.reachable)).await?;
    let (reached, code) = reach(&first).await?;
    ensure!(code == 0 && reached.tcp == ReachState::Reachable, "{reached:?}");
    ensure!(reached.addresses.iter().all(|address| address.published), "{reached:?}");
    let peers = second.control().ask(endpoint::Peers).await?;
    ensure!(peers.iter().any(|peer| peer.address == by_name), "the name is shown: {peers:?}");
    Ok(())
}

/// Tests begin at once, and again soon.
fn quick() -> Vec<(String, String)> {
    [("FARTHING_NETWORK__REACH_FIRST_MS", "0"), ("FARTHING_NETWORK__REACH_PEER_INTERVAL_SECS", "1")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_fails_for_an_announced_address_that_nobody_reaches() -> Result<()> {
    let mut nodes = Nodes::new()?;
    let nowhere = ("FARTHING_NETWORK__ANNOUNCE".to_owned(), "/ip4/127.0.0.1/tcp/1".to_owned());
    let tester = nodes.join_with(&[], quick()).await?;
    let announcing = quick().into_iter().chain([nowhere]).collect();
    let node = nodes.join_with(&[&tester], announcing).await?;
    eventually("doctor says so", async || {
        let doctor = farthing(&node, &["doctor"]).await?;
        let line = doctor.out.lines().find(|line| line.contains("reach:")).unwrap_or_default().to_owned();
        let is_told = line.starts_with("FAIL") && line.contains("/ip4/127.0.0.1/tcp/1,");
        Ok(is_told && line.contains("correct or remove it") && doctor.code == 1)
    })
    .await
}
