//! A file is chosen in the sandbox, with scripts and without.

use anyhow::{Result, ensure};
use fantoccini::Locator;
use farthing_control::endpoint;
use farthing_tests::{
    pictures::{picture, sell_image_size},
    wait::eventually,
    world::{FUNDS, PRICE, World},
};

use crate::{
    browser::{Browser, Tools},
    site::{PASSWORD, has, set_up},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_is_chosen_and_its_size_paid_for() -> Result<()> {
    upload(true, true).await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_key_the_code_follows_the_form_while_a_password_is_half_typed() -> Result<()> {
    upload(true, false).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_is_chosen_and_its_size_paid_for_without_scripts() -> Result<()> {
    upload(false, false).await
}

async fn upload(scripts: bool, has_key: bool) -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let world = World::start().await?;
    let api = sell_image_size(&world).await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("picture.png");
    std::fs::write(&file, picture(640, 48))?;
    let console = world.consumer.control().ask(endpoint::ShowConsole).await?;
    let browser = Browser::open(&tools, console.origin(), scripts).await?;
    set_up(&browser, &world.consumer).await?;
    if scripts && !has_key {
        browser.client.execute("localStorage.clear()", Vec::new()).await?;
    }
    let sandbox = format!("/panel/catalog/{}/sandbox?operation=POST%20/size", api.id);
    eventually("the service can be called", async || {
        browser.goto(&sandbox).await?;
        Ok(browser.text().await?.contains(&format!("Call for {PRICE} USDC")))
    })
    .await?;
    ensure!(has(&browser, "#console-password").await != has_key, "the field for the password");
    if !has_key {
        browser.fill(&[("console-password", &PASSWORD[..4])]).await?;
    }
    browser.choose_file("b0", &file).await?;
    browser.fill(&[("b1", "chosen by hand")]).await?;
    if scripts {
        eventually("the code names the file", async || {
            let code =
                browser.client.find(Locator::Css("#code input:checked + label + .code-box code")).await?;
            Ok(code.text().await.is_ok_and(|code| code.contains("image=@picture.png")))
        })
        .await?;
        let violations = browser.violations().await?;
        ensure!(violations.is_empty(), "{violations:?}");
    }
    if !has_key {
        browser.fill(&[("console-password", PASSWORD)]).await?;
    }
    browser.press("button[value=live]").await?;
    browser.wait_for_address("call=").await?;
    browser.wait_for(&format!("You were charged {PRICE} USDC")).await?;
    for words in ["640", "48", "image/png", "chosen by hand", "“picture.png” was chosen"] {
        browser.wait_for(words).await?;
    }
    browser.end().await?;
    let charged = world.settle_and_check(FUNDS).await?;
    ensure!(charged == PRICE, "one press is one call: {charged}");
    Ok(())
}
