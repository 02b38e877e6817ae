//! Files in the sandbox: what goes in by its form comes out of the service, is paid once, or costs nothing and says why.

use anyhow::{Context, Result, ensure};
use farthing_tests::{
    pictures::{picture, sell_image_size},
    world::{FUNDS, PRICE, World},
};
use farthing_values::{Usdc, limits::REQUEST_BODY_BYTES_MAX};

use crate::{
    sandbox::{Sandbox, own_fields},
    support::{PASSWORD, Page},
};

const NOTE: &str = "it's <b>mine</b>";
/// The same in a page.
const NOTE_SHOWN: &str = "it&#39;s &#60;b&#62;mine&#60;/b&#62;";

fn told(page: &Page, words: &str) -> Result<()> {
    ensure!(page.body.contains(words), "no {words} in {page:?}");
    Ok(())
}

/// Nothing was sent, and the form says so.
fn refused(page: &Page, words: &str) -> Result<()> {
    ensure!(page.status == 422, "{page:?}");
    told(page, "Nothing was sent, and you were not charged.")?;
    told(page, words)
}

/// The sandbox of a service that takes pictures, with its form for one.
async fn form_for_a_picture() -> Result<(World, Sandbox, Page)> {
    let world = World::start().await?;
    let api = sell_image_size(&world).await?;
    let mut sandbox = Sandbox::open_at(&world, &api.id.to_string()).await?;
    let form = sandbox.form("POST /size").await?;
    Ok((world, sandbox, form))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_goes_in_by_the_form_and_its_size_comes_out_paid_once() -> Result<()> {
    let (world, mut sandbox, form) = form_for_a_picture().await?;
    for part in [
        "enctype=\"multipart/form-data\"",
        "<input id=\"b0\" name=\"b.image\" type=\"file\" aria-describedby=\"b0-hint\" required>",
        "<input id=\"b1\" name=\"b.note\" value=\"\"",
        "4.0 MiB at most",
        "-F &#39;image=@file&#39;",
    ] {
        told(&form, part)?;
    }
    let image = picture(640, 48);
    let parts = [("b.note", None, NOTE.as_bytes()), ("b.image", Some("my picture.png"), &image[..])];
    let sent = sandbox.upload(&form, &parts).await?;
    let (place, page) = sandbox.follow(&sent).await?;
    told(&page, &format!("You were charged {PRICE} USDC."))?;
    told(&page, "“<bdi>my picture.png</bdi>” was chosen, but browsers do not keep files")?;
    told(&page, &format!("name=\"b.note\" value=\"{NOTE_SHOWN}\""))?;
    told(&page, "-F &#39;image=@my picture.png&#39;")?;
    let answer = sandbox.browser.get(&format!("{place}&view=tree")).await?;
    for (name, value) in
        [("width", "640".to_owned()), ("height", "48".to_owned()), ("bytes", image.len().to_string())]
    {
        told(&answer, &format!("&#34;{name}&#34;</b> <i class=\"n\">{value}</i>"))?;
    }
    for (name, value) in [("type", "image/png"), ("file", "my picture.png"), ("note", NOTE_SHOWN)] {
        told(&answer, &format!("&#34;{name}&#34;</b> <i class=\"s\">&#34;{value}"))?;
    }
    told(&sandbox.browser.get(&format!("{place}&view=headers")).await?, "<code>content-type</code>")?;
    // The same form once more is the same call; another picture is another.
    let again = sandbox.upload(&form, &parts).await?;
    ensure!(again.header("location") == sent.header("location"), "{again:?}");
    let other = picture(641, 48);
    let other = sandbox.upload(&form, &[("b.image", Some("my picture.png"), &other)]).await?;
    ensure!(other.header("location") != sent.header("location"), "{other:?}");

    // A body that is the file itself.
    let form = sandbox.form("POST /size/raw").await?;
    told(&form, "<input id=\"body\" name=\"file\" type=\"file\"")?;
    told(&form, "--data-binary &#39;@file&#39;")?;
    let sent = sandbox.upload(&form, &[("file", Some("raw.png"), &picture(7, 9))]).await?;
    let (place, _) = sandbox.follow(&sent).await?;
    let answer = sandbox.browser.get(&format!("{place}&view=tree")).await?;
    told(&answer, "&#34;width&#34;</b> <i class=\"n\">7</i>")?;
    told(&answer, "--data-binary &#39;@raw.png&#39;")?;
    let charged = world.settle_and_check(FUNDS).await?;
    ensure!(charged == Usdc::from_micros(3 * PRICE.micros()), "{charged}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_sent_is_named_and_costs_nothing() -> Result<()> {
    let (world, mut sandbox, form) = form_for_a_picture().await?;
    let note = ("b.note", None, NOTE.as_bytes());
    let large = vec![7; REQUEST_BODY_BYTES_MAX + 1];
    let page = sandbox.upload(&form, &[("b.image", Some("large.png"), &large), note]).await?;
    refused(
        &page,
        "“large.png” is too large for <code>image</code>: a call carries 4.0 MiB (4194304 bytes) at most",
    )?;
    told(&page, "Choose a smaller one.")?;
    told(&page, "“<bdi>large.png</bdi>” was chosen, but browsers do not keep files: choose it again.")?;
    told(&page, &format!("name=\"b.note\" value=\"{NOTE_SHOWN}\""))?;
    let full = &large[..REQUEST_BODY_BYTES_MAX];
    let page = sandbox.upload(&form, &[("b.image", Some("full.png"), full), note]).await?;
    refused(&page, "bytes with all of its parts, and a call carries 4.0 MiB")?;
    // Beyond what is read at all.
    let huge = vec![7; 4 * REQUEST_BODY_BYTES_MAX + 1];
    let page = sandbox.upload(&form, &[("b.image", Some("huge.png"), &huge)]).await?;
    ensure!(page.status == 413, "{page:?}");
    told(
        &page,
        "“huge.png” is far larger than the 4.0 MiB that a call carries. Nothing was sent, and you were not charged.",
    )?;

    let without = [
        &[note][..],
        // As browsers send a field whose file was not chosen.
        &[("b.image", Some(""), b""), note],
        &[("b.picture", Some("picture.png"), b"x"), note],
    ];
    for parts in without {
        let page = sandbox.upload(&form, parts).await?;
        refused(&page, "This call needs a file for <code>image</code>. Choose one.")?;
    }
    let page = sandbox.press(&form, "live", &[("b.image", "picture.png")]).await?;
    refused(&page, "The content of “picture.png” did not come with the form.")?;
    // What the service does not take is refused by it, and free.
    let sent = sandbox.upload(&form, &[("b.image", Some("a.txt"), b"no picture")]).await?;
    let (_, page) = sandbox.follow(&sent).await?;
    told(&page, "You were not charged.")?;
    let charged = world.settle_and_check(FUNDS).await?;
    ensure!(charged == Usdc::ZERO, "{charged}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_with_files_needs_its_key_or_the_password_before_anything_is_read() -> Result<()> {
    let (world, mut sandbox, form) = form_for_a_picture().await?;
    told(&form, "data-without-key><label for=\"console-password\">")?;
    let image = picture(640, 48);
    let own = own_fields(&form)?;
    let own: Vec<_> = own.iter().map(|(name, value)| (*name, None, value.as_bytes())).collect();
    let parts = [&own[..], &[("b.image", Some("picture.png"), &image[..])]].concat();
    let wrong = "0".repeat(64);
    for key in ["", wrong.as_str()] {
        let request = sandbox.browser.upload_with(&sandbox.address, key, &parts);
        let page = sandbox.browser.send(request).await?;
        ensure!(page.status == 403 && page.body.contains("The form has no key"), "{page:?}");
    }
    // A form of another site, although it has the key.
    let key = sandbox.browser.key.clone().context("no key")?;
    let request = sandbox.browser.upload_with(&sandbox.address, &key, &parts);
    let page = sandbox.browser.send(request.header("sec-fetch-site", "cross-site")).await?;
    ensure!(page.status == 403, "{page:?}");
    let mut stranger = sandbox.browser.clone();
    stranger.cookies.clear();
    let page = stranger.upload(&sandbox.address, &parts).await?;
    ensure!(page.status == 403, "{page:?}");
    told(&page, "Your node does not keep a form with files")?;
    let with = |password: &'static str| {
        let password: (&str, Option<&str>, &[u8]) = ("console_password", None, password.as_bytes());
        [&[password][..], &parts].concat()
    };
    let request = sandbox.browser.upload_with(&sandbox.address, "", &with("another password"));
    let page = sandbox.browser.send(request).await?;
    ensure!(page.status == 422 && page.body.contains("The password was not accepted"), "{page:?}");
    ensure!(world.consumer.status().await?.spent_today.0.is_zero(), "nothing was bought");
    // Without scripts there is no key; the form has a field for the password.
    let request = sandbox.browser.upload_with(&sandbox.address, "", &with(PASSWORD));
    let sent = sandbox.browser.send(request).await?;
    let (_, page) = sandbox.follow(&sent).await?;
    told(&page, &format!("You were charged {PRICE} USDC."))?;
    let charged = world.settle_and_check(FUNDS).await?;
    ensure!(charged == PRICE, "{charged}");
    Ok(())
}
