//! A node whose chain does not answer and which knows nobody: every page is there and says what is wrong.

use anyhow::{Result, ensure};
use farthing_control::{endpoint, types::Charge};
use farthing_tests::{upstream::Upstream, wait::eventually, world::service_file};

use crate::support::{Node, Page};

/// Pages, and what they say on such a node.
const SAID: [(&str, &[&str]); 8] = [
    ("/panel", &["No other node is connected", "unknown"]),
    ("/panel/catalog", &["No other node is connected"]),
    ("/panel/finance", &["unknown USDC", "No channels yet"]),
    ("/panel/finance/history", &["No entries to show"]),
    ("/panel/activity", &["No calls yet"]),
    ("/panel/network", &["No other node is connected", "Test now"]),
    ("/panel/settings", &["No block seen yet"]),
    ("/panel/settings/diagnostics", &["Problems found", "Problem</span>", "chain"]),
];

fn says(path: &str, page: &Page, words: &[&str]) -> Result<()> {
    ensure!(page.status == 200, "{path}: {page:?}");
    for words in words {
        ensure!(page.body.contains(words), "{path} does not say `{words}`: {page:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_of_a_node_without_chain_and_peers_says_what_is_wrong() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    for (path, words) in SAID {
        says(path, &browser.get(path).await?, words)?;
    }
    let balance = node.process.control().ask(endpoint::Wallet).await?;
    ensure!(balance.stale.is_some() && balance.usdc.is_none(), "{balance:?}");
    // Sending fails, in words.
    let fields = [("to", "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf"), ("amount", "1"), ("coin", "usdc")];
    let order = browser.post("/panel/finance/send", &fields).await?;
    let order = order.header("location").to_owned();
    browser.post(&order, &[]).await?;
    let page = browser.get(&order).await?;
    says(&order, &page, &["Nothing was sent", "No endpoint of local answers"])?;
    // Offering needs neither.
    let upstream = Upstream::start().await?;
    let api = node
        .process
        .control()
        .tell(endpoint::AddApi, &service_file(&upstream.url(), Charge::Success))
        .await?;
    eventually("the service is in the catalog", async || {
        Ok(browser.get("/panel/catalog").await?.body.contains(&api.name))
    })
    .await?;
    says("/panel/apis", &browser.get("/panel/apis").await?, &[&api.name])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wallet_file_that_cannot_be_read_is_told_where_it_is_needed_and_left_as_it_is() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    let file = node.process.data_dir().join("wallet.json");
    let whole = std::fs::read(&file)?;
    for damaged in [&b"{"[..], b"\xff\xfe", &whole[..whole.len() / 2]] {
        std::fs::write(&file, damaged)?;
        let page = browser.post("/panel/settings/phrase", &[]).await?;
        ensure!(page.status == 503 && page.body.contains("wallet.json"), "{page:?}");
        ensure!(page.body.contains("Nothing was changed"), "{page:?}");
        // Everything else goes on: the key is in memory.
        for path in ["/panel", "/panel/finance", "/panel/settings", "/panel/settings/backup"] {
            says(path, &browser.get(path).await?, &["</html>"])?;
        }
        let typed = [("passphrase", "four other random words"), ("repeated", "four other random words")];
        let page = browser.post("/panel/settings/backup", &typed).await?;
        ensure!(page.status != 200 && page.body.contains("is no longer this node"), "{page:?}");
        ensure!(std::fs::read(&file)? == damaged, "the file is left as it was");
    }
    std::fs::write(&file, &whole)?;
    let page = browser.post("/panel/settings/phrase", &[]).await?;
    says("the phrase", &page, &["class=\"words\""])
}
