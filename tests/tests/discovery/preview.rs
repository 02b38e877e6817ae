//! Description, operations and samples without paying, without the owner, and without touching its server.

use anyhow::{Result, ensure};
use farthing_control::endpoint;
use farthing_tests::{
    nodes::{Nodes, all_find, offer, publish, samples, show, words},
    upstream::Upstream,
    wait::eventually,
};

use crate::gossip::with_and_without_gossip;

with_and_without_gossip!(
    samples_are_free_and_never_touch_the_upstream,
    a_preview_works_while_the_owner_is_away,
);

async fn samples_are_free_and_never_touch_the_upstream(mut nodes: Nodes) -> Result<()> {
    let upstream = Upstream::start().await?;
    let all = nodes.star(2).await?;
    let api = publish(&all[0], &offer("Free to look at", &upstream.url())).await?;
    all_find(&all, &words("look"), 1).await?;
    for _ in 0..20 {
        ensure!(!samples(&all[1], api.id.0).await?.samples.is_empty());
    }
    ensure!(upstream.hits() == 0);
    Ok(())
}

async fn a_preview_works_while_the_owner_is_away(mut nodes: Nodes) -> Result<()> {
    let mut all = nodes.star(2).await?;
    let third = nodes.join(&[&all[1]]).await?;
    let api = publish(&all[0], &offer("Still there", "http://127.0.0.1:9")).await?;
    all_find(&all, &words("still"), 1).await?;
    all_find(std::slice::from_ref(&third), &words("still"), 1).await?;
    // One of them has looked; whoever comes later has it from there.
    ensure!(!show(&all[1], api.id.0).await?.offers.is_empty());
    all[0].stop().await?;
    for node in [&all[1], &third] {
        eventually("the service is shown whole", async || {
            let shown = show(node, api.id.0).await?;
            Ok(shown.details_missing.is_none() && !shown.offers.is_empty() && shown.samples > 0)
        })
        .await?;
        ensure!(!samples(node, api.id.0).await?.samples.is_empty());
        let document = node.control().ask_document(endpoint::CatalogOpenapi.of(api.id.0)).await?;
        ensure!(document["paths"]["/ok"].is_object(), "{document:#}");
    }
    Ok(())
}
