//! A node that is lost and comes back from its backup.

use anyhow::{Context, Result, ensure};
use farthing::testnet::{NodeOptions, NodeProcess};
use farthing_tests::{
    command::{farthing, run},
    world::{FUNDS, World},
};

use crate::support::{cost, expect_served, fixed_owner};

#[tokio::test]
async fn a_lost_node_comes_back_from_its_backup_buys_nothing_until_told_and_its_books_add_up() -> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    let folder = tempfile::tempdir()?;
    let text = |name: &str| folder.path().join(name).display().to_string();
    let (file, passphrase, wrong) = (text("node.backup"), text("passphrase"), text("wrong"));
    std::fs::write(&passphrase, "four random words here\n")?;
    std::fs::write(&wrong, "four random words there\n")?;

    expect_served(&world.get("/ok").await?)?;
    farthing(&world.consumer, &["secret", "create", "dashboard", "--per-day", "1"]).await?.ends_with(0)?;
    let create = ["backup", "create", "--to", &file, "--passphrase-file", &passphrase];
    let made = farthing(&world.consumer, &create).await?;
    assert_eq!(made.ends_with(0)?.out.trim(), file);
    farthing(&world.consumer, &create).await?.ends_with(2).context("a file is never replaced")?;
    let listed = farthing(&world.consumer, &["backup", "list"]).await?;
    ensure!(listed.ends_with(0)?.out.contains(".backup"), "{listed:?}");
    let bytes = std::fs::read(&file)?;
    ensure!(!bytes.windows(12).any(|part| part == b"farthing_sk_"), "the backup shows a secret");

    // Somewhere else, without a node.
    let elsewhere = text("restored");
    let verify = ["backup", "verify", &file, "--passphrase-file", &passphrase, "--json"];
    let verified = run(&elsewhere, &verify).await?;
    let facts = verified.ends_with(0)?.json()?;
    assert_eq!((&facts["channels"], &facts["violations"]), (&1.into(), &0.into()));
    run(&elsewhere, &["backup", "verify", &file, "--passphrase-file", &wrong]).await?.ends_with(4)?;
    run(&elsewhere, &["backup", "verify", &passphrase, "--passphrase-file", &passphrase])
        .await?
        .ends_with(2)?;

    // What is bought after the backup is not in it.
    expect_served(&world.get("/ok").await?)?;
    world.consumer.kill().await?;
    let restore = ["backup", "restore", &file, "--passphrase-file", &passphrase];
    let over = run(&world.consumer.data_dir().display().to_string(), &restore).await?;
    over.ends_with(2).context("a node is never overwritten")?;
    let restored = run(&elsewhere, &restore).await?;
    ensure!(restored.ends_with(0)?.err.contains("spending resume"), "{restored:?}");
    run(&elsewhere, &restore).await?.ends_with(2).context("twice")?;

    let options = NodeOptions::new(&elsewhere).bootstrap([world.owner.loopback_address().await?]);
    world.consumer = NodeProcess::start(&world.chain, options).await?;
    world.consumer.wait_until_ready().await?;
    assert_eq!(world.consumer.status().await?.address.0, world.consumer_wallet);
    let secret = farthing(&world.consumer, &["secret", "show"]).await?;
    ensure!(secret.ends_with(0)?.out.trim() == world.secret, "another secret");
    farthing(&world.consumer, &["secret", "show", "dashboard"]).await?.ends_with(0)?;
    let service = world.api.id.to_string();
    let call = ["call", &service, "GET", "/ok"];
    farthing(&world.consumer, &call).await?.ends_with(5).context("before spending is resumed")?;
    farthing(&world.consumer, &["spending", "resume"]).await?.ends_with(0)?;
    farthing_tests::world::eventually("the restored node buys", async || {
        Ok(farthing(&world.consumer, &call).await?.code == 0)
    })
    .await?;
    assert_eq!(world.upstream.hits(), 3);
    assert_eq!(world.settle_and_check(FUNDS).await?, cost(3));
    Ok(())
}

#[tokio::test]
async fn a_phrase_makes_the_same_wallet_elsewhere_and_a_folder_with_a_node_is_left_alone() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let text = |name: &str| folder.path().join(name).display().to_string();
    let (one, other) = (text("one"), text("other"));
    let made = run(&one, &["init", "--json"]).await?;
    let address = made.ends_with(0)?.json()?["address"].clone();
    run(&one, &["wallet", "export"]).await?.ends_with(2).context("nobody is there to be asked")?;
    let phrase = run(&one, &["wallet", "export", "--yes"]).await?;
    assert_eq!(phrase.ends_with(0)?.out.split_whitespace().count(), 24);
    let keystore = run(&one, &["wallet", "export", "--keystore"]).await?;
    assert_eq!(keystore.ends_with(0)?.json()?["version"], 3);
    let words = text("words");
    std::fs::write(&words, &phrase.out)?;
    let import = ["wallet", "import", "--phrase-file", &words, "--json"];
    let imported = run(&other, &import).await?;
    assert_eq!(imported.ends_with(0)?.json()?["address"], address);
    run(&other, &["init"]).await?.ends_with(0)?;
    let again = run(&other, &["wallet", "export", "--yes"]).await?;
    ensure!(again.ends_with(0)?.out == phrase.out, "another phrase");
    run(&other, &import).await?.ends_with(1)?;
    std::fs::write(&words, phrase.out.replacen(' ', " nothing ", 1))?;
    let refused = run(&text("third"), &["wallet", "import", "--phrase-file", &words]).await?;
    let first = phrase.out.split(' ').next().context("a word")?;
    ensure!(!refused.ends_with(1)?.err.contains(first), "the phrase is repeated");

    for shell in ["bash", "zsh", "fish"] {
        let script = run(&one, &["completions", shell]).await?;
        ensure!(script.ends_with(0)?.out.contains("farthing"), "{shell}");
    }
    ensure!(run(&one, &["man"]).await?.ends_with(0)?.out.contains(".TH farthing"));
    run(&one, &["man", "--to", &folder.path().display().to_string()]).await?.ends_with(0)?;
    ensure!(folder.path().join("farthing-secret-create.1").exists());
    Ok(())
}
