//! Saved requests: kept on the node under names of one's own, and filled in again.

use anyhow::{Context, Result, ensure};
use farthing_control::{endpoint, types::SavedTitle};
use farthing_tests::world::World;

use crate::{sandbox::Sandbox, support::Page};

const NAME: &str = "\"><script>alert(1)</script> שלום 🪐";
const BODY: &str = "{\"place\": \"<b>שלום</b>\"}";

async fn saved(world: &World) -> Result<Vec<SavedTitle>> {
    Ok(world.consumer.control().ask(endpoint::SavedRequests).await?)
}

/// The page that a form leads to.
async fn follow(sandbox: &mut Sandbox, sent: &Page) -> Result<Page> {
    ensure!(sent.status == 303, "{sent:?}");
    let page = sandbox.browser.get(sent.header("location")).await?;
    ensure!(page.status == 200 && !page.body.contains("<script>alert"), "{page:?}");
    Ok(page)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_saved_opened_renamed_and_deleted_and_no_secret_is_kept() -> Result<()> {
    let world = World::start().await?;
    let own = format!("/panel/catalog/{}", world.api.id);
    let mut sandbox = Sandbox::open_at(&world, &world.api.id.to_string()).await?;
    let form = sandbox.form("POST /echo").await?;
    let fields = [("saved_name", NAME), ("body", BODY), ("extra", "authorization=s3cret")];
    let sent = sandbox.press(&form, "save", &fields).await?;
    let page = follow(&mut sandbox, &sent).await?;
    for words in [
        "Request saved.",
        "<bdi>&#34;&#62;&#60;script&#62;alert(1)&#60;/script&#62; שלום 🪐</bdi>",
        "{&#34;place&#34;: &#34;&#60;b&#62;שלום&#60;/b&#62;&#34;}</textarea>",
        "<code><bdi>authorization</bdi></code>",
        "<code><bdi>POST /echo</bdi></code>",
    ] {
        ensure!(page.body.contains(words), "no {words} in {}", page.body);
    }
    ensure!(!page.body.contains("s3cret"), "{page:?}");
    // Beside the operations of the reference, too.
    let id = saved(&world).await?.pop().context("nothing was saved")?.id;
    let link = format!("{own}/sandbox?saved={id}");
    let page = sandbox.browser.get(&format!("{own}/reference")).await?;
    ensure!(page.body.contains(&format!("href=\"{link}\"")), "{page:?}");

    let change = |act, name| [("request", id.as_str()), ("act", act), ("name", name)];
    let sent = sandbox.browser.post("/panel/saved", &change("rename", "Other")).await?;
    let page = follow(&mut sandbox, &sent).await?;
    ensure!(page.body.contains("<bdi>Other</bdi>") && !page.body.contains("alert(1)"), "{page:?}");
    let sent = sandbox.browser.post("/panel/saved", &change("delete", "")).await?;
    let page = follow(&mut sandbox, &sent).await?;
    ensure!(page.body.contains("You have no saved requests"), "{page:?}");
    let page = sandbox.browser.get(&link).await?;
    ensure!(page.status == 404 && page.body.contains("no such saved request"), "{page:?}");
    ensure!(world.upstream.hits() == 0, "nothing was sent");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_not_saved_is_refused_in_words_and_stays_in_the_form() -> Result<()> {
    let world = World::start().await?;
    let mut sandbox = Sandbox::open_at(&world, &world.api.id.to_string()).await?;
    let form = sandbox.form("POST /echo").await?;
    let sent = sandbox.press(&form, "save", &[("saved_name", "One"), ("body", BODY)]).await?;
    ensure!(sent.status == 303, "{sent:?}");
    let (long, large) = ("שלום 🪐\u{202e}".repeat(30), "x".repeat(20 * 1024));
    for (name, body, words) in [
        ("One", BODY, "This service has a saved request “One” already."),
        (long.as_str(), BODY, "more than 100 characters"),
        (" ", BODY, "needs a name"),
        ("Two", large.as_str(), "more than 16 KiB"),
    ] {
        let page = sandbox.press(&form, "save", &[("saved_name", name), ("body", body)]).await?;
        ensure!(page.status == 422, "{words}: {page:?}");
        ensure!(page.body.contains("The request was not saved.") && page.body.contains(words), "{page:?}");
        ensure!(body != BODY || page.body.contains("&#60;b&#62;שלום"), "what was typed is still there");
    }
    ensure!(saved(&world).await?.len() == 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_without_the_key_saves_with_the_password_alone() -> Result<()> {
    let world = World::start().await?;
    let mut sandbox = Sandbox::open_at(&world, &world.api.id.to_string()).await?;
    let form = sandbox.form("GET /ok").await?;
    sandbox.browser.key = None;
    let operation = form.field("operation")?;
    let fields = [("operation", operation.as_str()), ("act", "save"), ("saved_name", "One")];
    let page = sandbox.browser.press(&sandbox.address, &fields).await?;
    ensure!(page.asks_for_password() && saved(&world).await?.is_empty(), "{page:?}");
    let sent = sandbox.browser.post(&sandbox.address, &fields).await?;
    let page = follow(&mut sandbox, &sent).await?;
    ensure!(page.body.contains("<bdi>One</bdi>") && saved(&world).await?.len() == 1, "{page:?}");
    Ok(())
}
