//! How calls ended: one word, and one colour, on every page that lists them.

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_tests::{
    calls::{cost, setting},
    wait::eventually,
    world::{Setup, World},
};

use crate::support::set_up;

/// Settings under which a slow server is found out soon.
fn impatient() -> Setup {
    let owner_settings = [
        setting("limits.upstream_first_byte_ms", "400"),
        setting("limits.upstream_total_ms", "5000"),
        setting("limits.response_bytes_max", "4194304"),
    ];
    Setup { owner_settings: owner_settings.concat(), ..Setup::default() }
}

/// The row of a call in a page's table.
fn row<'p>(page: &'p str, path: &str) -> Result<&'p str> {
    let rest = page.split("<tr>").find(|row| row.contains(&format!("GET {path}</bdi>")));
    Ok(rest.with_context(|| format!("no row for {path}"))?.split("</tr>").next().unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_timed_out_or_was_too_large_is_nowhere_a_green_dot() -> Result<()> {
    let world = World::with(impatient()).await?;
    for path in ["/ok", "/status/404", "/slow/2000", "/large/4194305", "/status/500"] {
        world.get(path).await?;
    }
    let mut buyer = set_up(&world.consumer).await?;
    let mut seller = set_up(&world.owner).await?;
    let own = format!("/panel/apis/{}", world.api.id);
    // The end of the last of them enters the books after its answer.
    world.wait_until_decided().await?;
    let pages = [
        buyer.get("/panel/activity").await?,
        buyer.get("/panel").await?,
        seller.get("/panel/activity").await?,
        seller.get("/panel").await?,
        seller.get(&own).await?,
    ];
    for page in &pages {
        for (path, shown) in [
            ("/ok", "<span class=\"good\">Answered</span> <span class=\"hint\">200</span>"),
            ("/status/404", "<span class=\"neutral\">Answered</span> <span class=\"hint\">404</span>"),
            ("/slow/2000", "<span class=\"bad\">Timed out</span>"),
            ("/large/4194305", "<span class=\"bad\">Too large</span>"),
            ("/status/500", "<span class=\"bad\">Failed</span>"),
        ] {
            ensure!(row(&page.body, path)?.contains(shown), "{path}: {page:?}");
        }
    }
    world.settle_for(cost(1)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_its_owner_refused_is_told_as_refused_with_its_problem() -> Result<()> {
    let world = World::start().await?;
    world.get("/ok").await?;
    world.owner.control().ask(endpoint::PauseApi.of(world.api.id)).await?;
    let refused = world.get("/status/200").await?;
    ensure!(refused.problem() == "owner-unavailable", "{refused:?}");
    let mut browser = set_up(&world.consumer).await?;
    eventually("the refused call is in the books", async || {
        Ok(row(&browser.get("/panel/activity").await?.body, "/status/200").is_ok())
    })
    .await?;
    let page = browser.get("/panel/activity").await?;
    let row = row(&page.body, "/status/200")?;
    ensure!(row.contains("<span class=\"refused\">Refused</span>"), "{page:?}");
    ensure!(row.contains("<code>owner-unavailable</code>"), "{page:?}");
    world.settle_for(cost(1)).await
}
