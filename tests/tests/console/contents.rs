//! Answers that browsers show by themselves: what they are handed as, and what they may do.

use anyhow::{Context, Result, ensure};
use axum::{Router, http::header, routing::get};
use farthing_control::types::{OperationFile, ServiceFile};
use farthing_tests::{
    pictures::picture,
    upstream::serve,
    world::{PRICE, World},
};
use farthing_values::Method;

use crate::{sandbox::Sandbox, support::Page};

const DRAWING: &str =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"><script>alert(2)</script></svg>";
const PAPER: &str = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj";

/// A server of every kind of content, one that lies about it, and one that is a page.
async fn contents() -> Result<String> {
    let of = |kind: &'static str, body: Vec<u8>| get(async move || ([(header::CONTENT_TYPE, kind)], body));
    let router = Router::new()
        .route("/photo", of("image/png", picture(640, 48)))
        .route("/drawing", of("image/svg+xml", DRAWING.into()))
        .route("/sound", of("audio/x-wav", b"RIFF\x24\0\0\0WAVEfmt ".to_vec()))
        .route("/paper", of("application/pdf", PAPER.into()))
        .route("/lie", of("image/png", b"<script>alert(3)</script>".to_vec()))
        .route("/hidden", of("text/csv", picture(640, 48)));
    serve(router).await
}

/// The page of an answer, and the address of its content.
async fn called(sandbox: &mut Sandbox, path: &str) -> Result<(Page, String)> {
    let form = sandbox.form(&format!("GET {path}")).await?;
    let sent = sandbox.press(&form, "live", &[]).await?;
    let (place, page) = sandbox.follow(&sent).await?;
    let call = place.split("call=").nth(1).context("no call")?;
    Ok((page, format!("{}/preview?call={call}", sandbox.address)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_content_is_shown_from_the_consoles_own_origin_and_can_do_nothing() -> Result<()> {
    let world = World::start().await?;
    let paths = ["/photo", "/drawing", "/sound", "/paper", "/lie", "/hidden"];
    let file = ServiceFile {
        name: "Contents".to_owned(),
        upstream: contents().await?,
        operations: paths.map(|path| OperationFile::named(Method::Get, path.to_owned())).into(),
        ..ServiceFile::priced(PRICE)
    };
    let api = world.publish(&file).await?;
    let mut sandbox = Sandbox::open_at(&world, &api.id.to_string()).await?;
    for (path, element, kind) in [
        ("/photo", "<img class=\"preview\" src=", "image/png"),
        ("/drawing", "<img class=\"preview\" src=", "image/svg+xml"),
        ("/sound", "<audio controls preload=\"metadata\" src=", "audio/wav"),
        ("/paper", "<iframe class=\"preview\" src=", "application/pdf"),
    ] {
        let (page, content) = called(&mut sandbox, path).await?;
        ensure!(page.body.contains(&format!("{element}\"{content}\"")), "{path}: {page:?}");
        ensure!(!page.body.contains("<svg xmlns"), "{path} stands in the page: {page:?}");
        let policy = page.header("content-security-policy");
        ensure!(policy.contains("media-src 'self'; frame-src 'self'"), "{path}: {policy}");
        let request = sandbox.browser.request(reqwest::Method::GET, &content);
        let answer = request.send().await?.error_for_status()?;
        let said =
            |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        ensure!(said("content-type") == kind, "{path}: {answer:?}");
        ensure!(
            said("content-security-policy") == "default-src 'none'; sandbox; frame-ancestors 'self'",
            "{path}: {answer:?}"
        );
        ensure!(said("x-content-type-options") == "nosniff", "{path}: {answer:?}");
        ensure!(said("cross-origin-resource-policy") == "same-origin", "{path}: {answer:?}");
        // Nothing but a PDF is a document.
        let is_file = said("content-disposition").starts_with("attachment");
        ensure!(is_file == (path != "/paper"), "{path}: {answer:?}");
    }
    for path in ["/lie", "/hidden"] {
        let (page, content) = called(&mut sandbox, path).await?;
        ensure!(!page.body.contains("class=\"preview\"") && !page.body.contains("<script>alert"), "{page:?}");
        ensure!(sandbox.browser.get(&content).await?.status == 404, "{path}");
    }
    let (_, content) = called(&mut sandbox, "/photo").await?;
    sandbox.browser.cookies.clear();
    ensure!(sandbox.browser.get(&content).await?.status == 303, "strangers log in first");
    Ok(())
}
