//! Backup and restore in the console: the words, the file, and a node that takes another's place.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_tests::{command::farthing, wait::eventually};

use crate::support::{Browser, Node, PASSWORD};

const LIST: &str = "/panel/settings/backup";
const PHRASE: &str = "/panel/settings/phrase";
const CHECK: &str = "/panel/settings/phrase/check";
const PASSPHRASE: &str = "four other random words";

fn words_of(html: &str) -> Vec<String> {
    let list = html.split("<ol class=\"words\">").nth(1).unwrap_or_default();
    let list = list.split("</ol>").next().unwrap_or_default();
    let words = list.split("<code>").skip(1).filter_map(|part| part.split("</code>").next());
    words.map(ToOwned::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_words_are_shown_on_demand_for_a_fresh_password_and_three_are_asked_back() -> Result<()> {
    let (mut node, mut browser) = Node::opened().await?;
    ensure!(browser.get("/panel").await?.body.contains("Back up the wallet"), "it is to be done");
    node.restart(&mut browser).await?;
    for place in [PHRASE, CHECK] {
        let page = browser.press(place, &[("w1", "zebra"), ("w9", "zebra"), ("w17", "zebra")]).await?;
        ensure!(page.asks_for_password() && words_of(&page.body).is_empty(), "{page:?}");
    }
    ensure!(words_of(&browser.get(PHRASE).await?.body).is_empty(), "nothing is shown on GET");
    let page = browser.post(PHRASE, &[]).await?;
    ensure!(page.header("cache-control") == "no-store");
    let words = words_of(&page.body);
    ensure!(words.len() == 24, "{words:?}");
    let exported = farthing(&node.process, &["wallet", "export", "--yes"]).await?;
    ensure!(exported.ends_with(0)?.out.trim() == words.join(" "), "not the words of this wallet");
    ensure!(!node.process.log().contains(&words[..3].join(" ")), "the log has them");

    let page = browser.get(CHECK).await?;
    ensure!(!words.iter().any(|word| page.body.contains(&format!("<code>{word}</code>"))), "{page:?}");
    let asked: Vec<usize> =
        page.body.split("name=\"w").skip(1).filter_map(|part| part.split('"').next()?.parse().ok()).collect();
    ensure!(asked.len() == 3, "{asked:?}");
    let names: Vec<String> = asked.iter().map(|number| format!("w{number}")).collect();
    let typed = |wrong: bool| -> Vec<(&str, &str)> {
        let word = |number: usize| if wrong { "zebra" } else { words[number - 1].as_str() };
        names.iter().zip(&asked).map(|(name, number)| (name.as_str(), word(*number))).collect()
    };
    let page = browser.post(CHECK, &typed(true)).await?;
    ensure!(page.status == 422 && page.body.contains("Some of these words"), "{page:?}");
    let page = browser.post(CHECK, &typed(false)).await?;
    ensure!(page.header("location") == LIST, "{page:?}");
    ensure!(browser.get(LIST).await?.body.contains("Written down"));
    let state = node.process.control().ask(endpoint::WalletBackup).await?;
    ensure!(state.written_down_secs.is_some() && state.newest_backup_secs.is_none(), "{state:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_made_downloaded_and_restored_in_the_place_of_another_node() -> Result<()> {
    let (mut old, mut browser) = Node::opened().await?;
    let typed = |repeated| [("passphrase", PASSPHRASE), ("repeated", repeated)];
    let page = browser.post(LIST, &typed("another")).await?;
    ensure!(page.status == 422 && page.body.contains("differ"), "{page:?}");
    let short = [("passphrase", "short"), ("repeated", "short")];
    let page = browser.post(LIST, &short).await?;
    ensure!(page.status == 422 && page.body.contains("fewer than 10 characters"), "{page:?}");
    let page = browser.post(LIST, &typed(PASSPHRASE)).await?;
    ensure!(page.status == 200 && page.body.contains("Backup created"), "{page:?}");
    let all = old.process.control().ask(endpoint::Backups).await?;
    let name = all.first().context("no backup")?.name.clone();
    let download = format!("{LIST}/{name}/download");
    ensure!(browser.press(&download, &[]).await?.asks_for_password(), "although it was entered just now");
    let request = browser.form(&download, &[("console_password".to_owned(), PASSWORD.to_owned())]);
    let file = request.send().await?.error_for_status()?;
    ensure!(file.headers()["content-disposition"].to_str()?.contains(&name), "{file:?}");
    let file = file.bytes().await?;
    ensure!(file.starts_with(b"FARTHBK1") && file == std::fs::read(&all[0].path)?);
    let (wallet, secret) = (old.process.status().await?.address.0, old.process.secret().await?);
    let authority = std::fs::read_to_string(old.process.ca_file())?;
    old.restart(&mut browser).await?;
    for path in [download, format!("/api/v1/backups/{name}")] {
        let page = browser.get(&path).await?;
        ensure!(!page.body.contains("FARTHBK1") && page.status != 200, "{path}: {}", page.status);
    }
    old.process.stop().await?;

    let (new, mut browser) = Node::opened().await?;
    let (own, own_secret) = (new.process.status().await?.address.0, new.process.secret().await?);
    let upload = format!("{LIST}/upload");
    let page = browser.upload(&upload, &[("file", Some("notes.txt"), b"no backup at all")]).await?;
    ensure!(page.status == 422 && page.body.contains("not a backup from this program"), "{page:?}");
    let page = browser.upload_with(&upload, "forged", &[("file", Some("a"), &file)]).send().await?;
    ensure!(page.status() == 403, "{page:?}");
    let page = browser.upload(&upload, &[("file", Some("mine.backup"), &file)]).await?;
    let place = page.header("location").to_owned();
    ensure!(place.starts_with(LIST) && place.contains("uploaded"), "{page:?}");
    let page = browser.post(&place, &[("passphrase", "the wrong words"), ("go", "check")]).await?;
    ensure!(page.status == 422 && page.body.contains("passphrase is wrong"), "{page:?}");
    let looked_at = new.process.data_dir().join(".verify");
    std::fs::write(&looked_at, "in the way")?;
    let page = browser.post(&place, &[("passphrase", PASSPHRASE), ("go", "check")]).await?;
    ensure!(!page.body.contains("its ledger is consistent"), "it is opened elsewhere: {page:?}");
    std::fs::remove_file(&looked_at)?;
    std::fs::create_dir(&looked_at)?;
    std::fs::write(looked_at.join("left.redb"), "a ledger of an interrupted look")?;
    let page = browser.post(&place, &[("passphrase", PASSPHRASE), ("go", "check")]).await?;
    ensure!(
        page.body.contains("its ledger is consistent") && page.body.contains(&wallet.to_string()),
        "{page:?}"
    );
    let page = browser.post(&place, &[("passphrase", PASSPHRASE), ("go", "restore")]).await?;
    ensure!(page.status == 422 && page.body.contains("runs nowhere else"), "{page:?}");
    ensure!(page.body.contains("in channels, 0.00 earned and not claimed"), "{page:?}");
    ensure!(new.process.status().await?.address.0 == own, "nothing was restored");
    let page = browser.post(&place, &[("passphrase", PASSPHRASE), ("go", "restore"), ("alone", "1")]).await?;
    ensure!(page.status == 200 && page.body.contains("The node restarts"), "{page:?}");
    let left = format!("the wallet <code>{own}</code>, and no node manages its money now");
    ensure!(page.body.contains(&left), "{page:?}");
    ensure!(page.header("refresh").contains("/panel"), "{page:?}");
    eventually("the restored node runs", async || {
        let status = new.process.control().ask(endpoint::Status).await;
        Ok(status.is_ok_and(|status| status.address.0 == wallet && !status.spending))
    })
    .await?;
    ensure!(!looked_at.exists(), "what an interrupted look left is there still");
    let secrets = [secret, own_secret, new.process.secret().await?];
    ensure!(
        secrets.iter().collect::<BTreeSet<_>>().len() == 3,
        "a secret that others may have is in use again"
    );
    let kept = replaced(&new)?;
    for name in ["wallet.json", "ledger.redb", "secrets.toml"] {
        ensure!(kept.join(name).exists(), "{name} of the replaced node is not kept");
    }
    ensure!(
        std::fs::read_to_string(new.process.ca_file())? == authority,
        "scripts would have to trust another one"
    );
    // Its console is the one of this machine: same password, same log-in. Its authority is the backup's.
    browser.moved_to(&new.console().await?.url);
    let mut browser = browser.reconnected(&new)?;
    let page = browser.get("/panel/finance/limits").await?;
    ensure!(page.status == 200 && page.body.contains("All spending is stopped"), "{page:?}");
    commands_remove_what_was_replaced(&new, &kept, &own.to_string()).await?;
    what_was_replaced_is_removed(&mut browser, &kept, &own.to_string()).await
}

/// `farthing backup replaced` and `forget`, on a second folder of that kind.
async fn commands_remove_what_was_replaced(node: &Node, kept: &Path, wallet: &str) -> Result<()> {
    let older = node.process.data_dir().join("replaced-2026-01-02T030405Z");
    std::fs::create_dir(&older)?;
    std::fs::copy(kept.join("wallet.json"), older.join("wallet.json"))?;
    let listed = farthing(&node.process, &["backup", "replaced"]).await?;
    let name = kept.file_name().context("no name")?.to_string_lossy();
    for told in [&*name, "replaced-2026-01-02T030405Z", wallet] {
        ensure!(listed.ends_with(0)?.out.contains(told), "{told}: {listed:?}");
    }
    let forget = ["backup", "forget", "replaced-2026-01-02T030405Z"];
    // There is nobody to ask.
    let asked = farthing(&node.process, &forget).await?;
    ensure!(asked.code != 0 && asked.err.contains("--yes") && older.exists(), "{asked:?}");
    ensure!(asked.err.contains("not this node's wallet"), "{asked:?}");
    let wrong = farthing(&node.process, &["backup", "forget", "../node", "--yes"]).await?;
    ensure!(wrong.ends_with(1)?.err.contains("farthing backup replaced"), "{wrong:?}");
    let gone = farthing(&node.process, &[&forget[..], &["--yes"]].concat()).await?;
    ensure!(gone.ends_with(0)?.out.contains(wallet) && !older.exists() && kept.exists(), "{gone:?}");
    Ok(())
}

async fn what_was_replaced_is_removed(browser: &mut Browser, kept: &Path, wallet: &str) -> Result<()> {
    let name = kept.file_name().context("no name")?.to_string_lossy().into_owned();
    let page = browser.get(LIST).await?;
    ensure!(page.body.contains(&name) && page.body.contains(wallet), "{page:?}");
    ensure!(page.body.contains("It had 0.00 USDC in channels, 0.00 USDC earned and not claimed"), "{page:?}");
    let place = format!("/panel/settings/replaced/{name}");
    let page = browser.post(&place, &[]).await?;
    ensure!(page.status == 422 && page.body.contains("for good") && kept.exists(), "{page:?}");
    let page = browser.post("/panel/settings/replaced/backups", &[("sure", "1")]).await?;
    ensure!(page.status != 200 && kept.parent().is_some_and(Path::exists), "{page:?}");
    let page = browser.post(&place, &[("sure", "1")]).await?;
    ensure!(page.status == 303 && !kept.exists(), "{page:?}");
    let page = browser.get(page.header("location")).await?;
    ensure!(page.body.contains("are removed") && !page.body.contains(&name), "{page:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_backup_of_every_day_is_turned_on_seen_and_turned_off() -> Result<()> {
    const DAILY: &str = "/panel/settings/backup/daily";
    let (mut node, mut browser) = Node::opened().await?;
    let page = browser.get(LIST).await?;
    ensure!(page.body.contains("Turn on daily backups") && !page.body.contains("Back up now"), "{page:?}");
    let fields = |repeated: &'static str, keep: &'static str| {
        [("go", "on"), ("passphrase", PASSPHRASE), ("repeated", repeated), ("keep", keep)]
    };
    for (repeated, keep, says) in [
        ("another", "3", "differ"),
        (PASSPHRASE, "many", "not a number"),
        (PASSPHRASE, "0", "expected 1 to 365"),
    ] {
        let page = browser.post(DAILY, &fields(repeated, keep)).await?;
        ensure!(page.status == 422 && page.body.contains(says), "{says}: {page:?}");
    }
    let page = browser.post(DAILY, &fields(PASSPHRASE, "3")).await?;
    ensure!(page.status == 303, "{page:?}");
    ensure!(browser.get(page.header("location")).await?.body.contains("Daily backups are on"));
    eventually("the first one is made", async || {
        let standing = node.process.control().ask(endpoint::AutomaticBackups).await?;
        Ok(standing.newest.is_some() && standing.keep == 3)
    })
    .await?;
    ensure!(browser.get(LIST).await?.body.contains("-auto.backup"));
    let settings = browser.get("/panel/settings").await?;
    ensure!(settings.body.contains("Daily backups: <span class=\"good\">on"), "{settings:?}");
    ensure!(settings.body.contains("next in "), "{settings:?}");
    ensure!(!settings.body.contains(PASSPHRASE) && !node.process.log().contains(PASSPHRASE));

    // What fails is told on every page, with what to do.
    let (folder, aside) = (node.process.data_dir().join("backups"), node.process.data_dir().join("aside"));
    std::fs::rename(&folder, &aside)?;
    std::fs::write(&folder, "no folder")?;
    let page = browser.post(DAILY, &[("go", "now")]).await?;
    ensure!(page.status == 503 || page.status == 422, "{page:?}");
    let page = browser.get("/panel").await?;
    ensure!(page.body.contains("The daily backup fails"), "{page:?}");
    ensure!(browser.get("/panel/settings").await?.body.contains("<span class=\"bad\">failing"));
    std::fs::remove_file(&folder)?;
    std::fs::rename(&aside, &folder)?;
    let page = browser.post(DAILY, &[("go", "now")]).await?;
    ensure!(page.status == 303, "{page:?}");
    ensure!(!browser.get("/panel").await?.body.contains("The daily backup fails"));

    node.restart(&mut browser).await?;
    let page = browser.press(DAILY, &[("go", "off")]).await?;
    ensure!(page.asks_for_password(), "{page:?}");
    let page = browser.post(DAILY, &[("go", "off")]).await?;
    ensure!(page.status == 303, "{page:?}");
    let page = browser.get(LIST).await?;
    ensure!(page.body.contains("Turn on daily backups") && page.body.contains("-auto.backup"), "{page:?}");
    Ok(())
}

/// The folder that the files of the replaced node were moved to.
fn replaced(node: &Node) -> Result<PathBuf> {
    let mut entries = std::fs::read_dir(node.process.data_dir())?.filter_map(Result::ok);
    let kept = entries.find(|entry| entry.file_name().to_string_lossy().starts_with("replaced-"));
    Ok(kept.context("nothing was kept")?.path())
}
