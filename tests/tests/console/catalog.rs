//! The catalog of a node that keeps some of the network's shards.

use anyhow::{Result, ensure};
use farthing_tests::{calls::setting, command::farthing};

use crate::support::Node;

#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_of_some_shards_says_what_was_searched_and_what_its_numbers_are_of() -> Result<()> {
    for (shards, is_part) in [("4", true), ("all", false)] {
        let node = Node::with(setting("catalog.shards", shards)).await?;
        let mut browser = node.set_up().await?;
        let page = browser.get("/panel/catalog").await?;
        for words in
            ["16 shards. It knows no index node", "The numbers count only the services that your node keeps."]
        {
            ensure!(page.body.contains(words) == is_part, "{shards}, {words}: {page:?}");
        }
        let told = farthing(&node.process, &["catalog", "search"]).await?.ok()?;
        ensure!(told.out.contains("Your node keeps 4 of the network's 16 shards.") == is_part, "{told:?}");
    }
    Ok(())
}
