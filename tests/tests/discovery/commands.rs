//! The command line over the network's services: nothing found, things retired, strangers' texts.

use anyhow::{Context, Result, ensure};
use farthing_tests::{
    command::{Ran, farthing, run},
    nodes::{Nodes, all_find, offer, publish, words},
    wait::eventually,
};

use crate::gossip::with_and_without_gossip;

const UPSTREAM: &str = "http://127.0.0.1:9";
const TOKEN: &str = "0x00000000000000000000000000000000000000aa";

with_and_without_gossip!(
    a_retired_service_is_said_to_be_retired_and_since_when,
    a_stranger_s_text_reaches_no_terminal_as_it_is,
    a_copy_of_a_node_that_runs_beside_it_is_told_of_by_both,
);

async fn a_retired_service_is_said_to_be_retired_and_since_when(mut nodes: Nodes) -> Result<()> {
    let all = nodes.star(2).await?;
    let api = publish(&all[0], &offer("Soon gone", UPSTREAM)).await?;
    all_find(&all, &words("soon"), 1).await?;
    let service = api.id.to_string();
    // From now on it is in use.
    farthing(&all[1], &["catalog", "openapi", &service]).await?.ends_with(0)?;
    farthing(&all[0], &["api", "remove", &service, "--yes"]).await?.ends_with(0)?;
    all_find(&all, &words("soon"), 0).await?;
    for arguments in [
        &["catalog", "show", &service][..],
        &["catalog", "openapi", &service],
        &["catalog", "sample", &service],
        &["call", &service, "GET", "/ok"],
    ] {
        let told = farthing(&all[1], arguments).await?;
        let err = &told.ends_with(1)?.err;
        ensure!(err.contains("was retired by its owner") && err.contains(" on 20"), "{arguments:?}: {err}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn where_there_is_nothing_to_show_words_say_so_and_no_empty_table() -> Result<()> {
    let mut nodes = Nodes::new()?;
    let node = nodes.join(&[]).await?;
    publish(&node, &offer("The only one", UPSTREAM)).await?;
    eventually("it is found", async || {
        Ok(farthing(&node, &["catalog", "search", "only"]).await?.out.contains("The only one"))
    })
    .await?;
    for (arguments, words) in [
        (&["catalog", "search", "unheard"][..], "No services found"),
        (&["catalog", "search", "--offset", "1"], "No more results (1 in all)"),
        (&["catalog", "search", "--offset", "18446744073709551615"], "No more results (1 in all)"),
        (&["net", "peers"], "No node is connected"),
        (&["channel", "list"], "No channels yet"),
    ] {
        let told = farthing(&node, arguments).await?;
        ensure!(told.ends_with(0)?.out.is_empty() && told.err.contains(words), "{arguments:?}: {told:?}");
        farthing(&node, &[arguments, &["--json"]].concat()).await?.ends_with(0)?.json()?;
    }
    Ok(())
}

async fn a_stranger_s_text_reaches_no_terminal_as_it_is(mut nodes: Nodes) -> Result<()> {
    let all = nodes.star(2).await?;
    let mut file = offer("Ground", UPSTREAM);
    if let Some(source) = &mut file.source {
        let text = source.text.take().unwrap_or_default();
        let text = text.replace("Where and when.", "Where\\u202e and\\u001b[31m when.");
        source.text = Some(text.replace("Hualian", "Hua\\u202elian"));
    }
    let api = publish(&all[0], &file).await?;
    all_find(&all, &words("ground"), 1).await?;
    let service = api.id.to_string();
    let mut escaped = 0;
    for arguments in [
        &["catalog", "search", "ground"][..],
        &["catalog", "show", &service],
        &["catalog", "openapi", &service],
        &["catalog", "sample", &service],
        &["net", "peers"],
    ] {
        for json in [&["--json"][..], &[]] {
            let Ran { out, .. } = farthing(&all[1], &[arguments, json].concat()).await?;
            ensure!(!out.is_empty(), "{arguments:?}");
            let raw = out.chars().find(|c| *c == '\u{202e}' || c.is_control() && *c != '\n');
            ensure!(raw.is_none(), "{arguments:?} writes {raw:?}: {out}");
            escaped += usize::from(out.contains("\\u202e"));
        }
    }
    ensure!(escaped >= 2, "the texts did not arrive at all");
    let document = farthing(&all[1], &["catalog", "openapi", &service]).await?;
    document.json()?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_says_of_each_configured_node_what_mends_it() -> Result<()> {
    let mut nodes = Nodes::new()?;
    // Nobody listens on the first ports of a machine.
    let bootstrap = "/ip4/127.0.0.1/tcp/1,/ip4/127.0.0.1/tcp/2".to_owned();
    let node = nodes.join_with(&[], vec![("FARTHING_NETWORK__BOOTSTRAP".to_owned(), bootstrap)]).await?;
    let mut told = String::new();
    let all_told = eventually("both addresses were tried", async || {
        told = farthing(&node, &["doctor"]).await?.out;
        let refused = |port| format!("/ip4/127.0.0.1/tcp/{port} refuses the connection");
        Ok(told.contains(&refused(1)) && told.contains(&refused(2)) && told.contains("start the node there"))
    });
    all_told.await.with_context(|| told.clone())?;
    ensure!(told.contains("0 services of 0 owners"), "{told}");
    let stranger = "0x00000000000000000000000000000000000000aa";
    let pinged = farthing(&node, &["net", "ping", stranger]).await?;
    let err = &pinged.ends_with(3)?.err;
    ensure!(err.contains("no node record of") && !err.contains("the call"), "{err}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_up_of_a_node_that_has_left_does_not_end_well() -> Result<()> {
    let mut nodes = Nodes::new()?;
    let mut all = nodes.star(2).await?;
    let wallet = all[1].status().await?.address.0.to_string();
    eventually("its record is there", async || {
        Ok(farthing(&all[0], &["net", "lookup", &wallet]).await?.code == 0)
    })
    .await?;
    all[1].stop().await?;
    let mut told = farthing(&all[0], &["net", "lookup", &wallet]).await?;
    eventually("it says that it has left", async || {
        told = farthing(&all[0], &["net", "lookup", &wallet]).await?;
        Ok(told.out.contains("says that its node has left"))
    })
    .await
    .with_context(|| format!("{told:?}"))?;
    ensure!(told.code == 1, "{told:?}");
    let told = farthing(&all[0], &["net", "lookup", &wallet, "--json"]).await?;
    let found = told.json()?;
    ensure!(told.code == 1 && found["connected"] == false, "{told:?}");
    ensure!(found["record"]["amiss"] == "says that its node has left", "{told:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_start_refuses_is_refused_by_the_check_of_the_settings_with_the_same_words() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().display().to_string();
    let local = ["chain.preset=local", "chain.rpc_urls=http://127.0.0.1:9"];
    for (setting, words) in [
        ("network.listen=/foo", "network.listen: `/foo` is not a multiaddress"),
        (
            "network.listen=/ip4/0.0.0.0/udp/3001",
            "network.listen: `/ip4/0.0.0.0/udp/3001` is neither TCP nor",
        ),
        ("network.bootstrap=/ip4/1.2.3.4/tcp/99999", "network.bootstrap: `/ip4/1.2.3.4/tcp/99999` is not"),
        ("network.announce=/dns4/node.example", "network.announce: `/dns4/node.example` is neither TCP"),
        (
            "network.announce=/ip4/0.0.0.0/tcp/3001",
            "network.announce: `/ip4/0.0.0.0/tcp/3001` stands for many",
        ),
        (
            "network.announce=/ip4/10.0.0.1/tcp/3001",
            "network.announce: `/ip4/10.0.0.1/tcp/3001` is not a public",
        ),
        ("chain.rpc_urls=https://rpc.example/key", "chain.rpc_urls: rpc.example may be somewhere else"),
        ("chain.chain_id=8453", "chain.chain_id: 8453 is the public chain base"),
        ("chain.kind=testnet", "chain.kind: is for a custom chain only"),
        ("chain.close_delay_secs=86400", "chain.token: must be set for a local or custom chain"),
    ] {
        // Where it is the token that is missing, another setting is given twice.
        let token = format!("chain.token={TOKEN}");
        let token = if words.starts_with("chain.token") { local[0] } else { &token };
        let settings = ["--set", local[0], "--set", local[1], "--set", token, "--set", setting];
        for command in [&["config", "check"][..], &["run"]] {
            let told = run(&data, &[command, &settings[..]].concat()).await?;
            ensure!(told.code == 2 && told.err.contains(words), "{command:?} {setting}: {told:?}");
        }
    }
    Ok(())
}

async fn a_copy_of_a_node_that_runs_beside_it_is_told_of_by_both(mut nodes: Nodes) -> Result<()> {
    let neighbour = nodes.join(&[]).await?;
    let mut original = nodes.join(&[&neighbour]).await?;
    original.stop().await?;
    nodes.copy_of_last()?;
    original.restart(Vec::new()).await?;
    let copy = nodes.join(&[&neighbour]).await?;
    ensure!(original.status().await?.address.0 == copy.status().await?.address.0, "it is no copy");
    for node in [&original, &copy] {
        eventually("it is told of", async || {
            let alerts = node.status().await?.alerts;
            Ok(alerts.iter().any(|alert| alert.cause.contains("another node uses this wallet's key")))
        })
        .await?;
        let told = farthing(node, &["doctor"]).await?;
        ensure!(told.code == 1 && told.out.contains("stop one of the two"), "{told:?}");
        let told = farthing(node, &["alert", "list", "--json"]).await?;
        ensure!(told.out.contains("wallet-twice"), "{told:?}");
    }
    Ok(())
}
