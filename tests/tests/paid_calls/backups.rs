//! A node that is lost and comes back from its backup.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{ChannelState, PriceRequest},
};
use farthing_testnet::{NodeOptions, NodeProcess};
use farthing_tests::{
    calls::{
        back_up, cost, expect_served, fixed_owner, on_a_fixed_port, restore, restore_owner, setting, with,
    },
    command::{farthing, run},
    nodes::no_chain,
    wait::eventually,
    world::{FUNDS, Setup, World},
};
use farthing_values::Usdc;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

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
    assert_eq!(facts["unverified"], 0, "the node has noted its contract");
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
    ensure!(secret.ends_with(0)?.out.trim() != world.secret, "the secret that others may have");
    farthing(&world.consumer, &["secret", "show", "dashboard"]).await?.ends_with(0)?;
    let service = world.api.id.to_string();
    let call = ["call", &service, "GET", "/ok"];
    farthing(&world.consumer, &call).await?.ends_with(5).context("before spending is resumed")?;
    farthing(&world.consumer, &["spending", "resume"]).await?.ends_with(0)?;
    eventually("the restored node buys", async || Ok(farthing(&world.consumer, &call).await?.code == 0))
        .await?;
    assert_eq!(world.upstream.hits(), 3);
    world.wait_until_decided().await?;
    // The call that the backup lacks is paid, so it is in history, day and limits, with its cause.
    let kept = ["wallet", "history", "--kind", "adjustment", "--json"];
    let adjustments = farthing(&world.consumer, &kept).await?.ends_with(0)?.json()?;
    let owner = world.owner_wallet.to_string();
    let audited = farthing(&world.consumer, &["audit", "--with", &owner, "--json"]).await?;
    let compared = audited.ends_with(0)?.json()?["compared"].clone();
    ensure!(compared["adjusted"] == "0.002" && compared["channels"] == 1, "{compared:#}");
    ensure!(compared["spent_here"] == "0.006" && compared["earned_there"] == "0.006", "{compared:#}");
    let [adjustment] = adjustments.as_array().context("a list")?.as_slice() else {
        anyhow::bail!("one adjustment: {adjustments:#}")
    };
    assert_eq!(adjustment["amount"], cost(1).to_string());
    let why = adjustment["reason"].as_str().context("it has a cause")?;
    ensure!(why.contains("backup"), "{adjustment}");
    // Of any second there is a first one.
    let id = adjustment["id"].as_str().context("it has an id")?;
    ensure!(id == format!("{}-0", adjustment["time_secs"]), "{adjustment}");
    let told = farthing(&world.consumer, &kept[..4]).await?;
    ensure!(told.ends_with(0)?.out.contains(why) && told.out.contains(id), "{told:?}");
    let spending = world.consumer.control().ask(endpoint::Spending).await?;
    assert_eq!(spending.spent_today.0, cost(3), "the limit of the day counts it");
    let owner = world.owner_wallet.to_string();
    let compared = farthing(&world.consumer, &["audit", "--with", &owner, "--json"]).await?;
    let compared = compared.ends_with(0)?.json()?["compared"].clone();
    ensure!(compared["adjusted"] == cost(1).to_string(), "{compared:#}");
    world.settle_for(cost(3)).await
}

#[tokio::test]
async fn a_restore_revives_no_secret_and_resuming_names_what_came_back() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut world = World::with(fixed_owner()?).await?;
    let does = async |node: &NodeProcess, words: &str| -> Result<(String, String)> {
        let ran = farthing(node, &words.split(' ').collect::<Vec<_>>()).await?;
        ran.ends_with(0)?;
        Ok((ran.out.trim().to_owned(), ran.err))
    };
    let mut secrets = vec![world.secret.clone(), does(&world.consumer, "secret create thief").await?.0];
    back_up(&world.consumer, folder.path()).await?;
    does(&world.consumer, "secret revoke thief --yes").await?;
    secrets.push(does(&world.consumer, "secret rotate default --yes").await?.0);
    world.consumer.kill().await?;
    // Its authority, which this world trusts, comes with it.
    let elsewhere = restore(folder.path()).await?;
    let options = NodeOptions::new(&elsewhere).bootstrap([world.owner.loopback_address().await?]);
    world.consumer = NodeProcess::start(&world.chain, options).await?;
    world.consumer.wait_until_ready().await?;
    for secret in secrets {
        world.secret = secret;
        assert_eq!(world.get("/ok").await?.status, 401, "a secret of before is in use");
    }
    let said = does(&world.consumer, "spending resume").await?.1;
    ensure!(said.contains("default, thief") && said.contains("Daily backups are off"), "{said}");
    for name in ["default", "thief"] {
        world.secret = does(&world.consumer, &format!("secret show {name}")).await?.0;
        eventually("the new secret buys", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    }
    world.settle_for(cost(2)).await
}

#[tokio::test]
async fn an_owner_that_comes_back_from_a_backup_of_before_a_claim_can_claim_what_it_earns_then() -> Result<()>
{
    let folder = tempfile::tempdir()?;
    let mut world = World::with(fixed_owner()?).await?;
    expect_served(&world.get("/ok").await?)?;
    back_up(&world.owner, folder.path()).await?;
    let claim = async |world: &World| -> Result<Usdc> {
        let settled = world.owner.control().ask(endpoint::Settle).await?;
        Ok(settled.claimed.0)
    };

    // What is served and claimed after the backup is not in it.
    world.buy(3).await?;
    assert_eq!(claim(&world).await?, cost(4));
    restore_owner(&mut world, folder.path()).await?;

    eventually("the restored owner serves", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    world.buy(1).await?;
    assert_eq!(claim(&world).await?, cost(2), "what was earned since");
    assert_eq!(world.chain.usdc_of(world.owner_wallet).await?, cost(6));
    Ok(())
}

#[tokio::test]
async fn an_owner_that_comes_back_from_a_backup_of_before_a_new_price_is_bought_from_at_the_price_of_then()
-> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut world = World::with(fixed_owner()?).await?;
    expect_served(&world.get("/ok").await?)?;
    back_up(&world.owner, folder.path()).await?;
    // Two versions that are not in the backup, and that the consumer has used.
    for price in [1, 1].map(Usdc::from_micros) {
        let request = PriceRequest { price: price.into(), operation: None };
        world.owner.control().tell(endpoint::PriceApi.of(world.api.id.0), &request).await?;
    }
    eventually("a call at the new price", async || {
        world.get("/ok").await?;
        let shown = farthing(&world.consumer, &["catalog", "show", &world.api.id.to_string()]).await?;
        Ok(shown.out.contains("0.000001"))
    })
    .await?;
    world.wait_until_decided().await?;
    restore_owner(&mut world, folder.path()).await?;
    eventually("the restored owner serves", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    world.wait_until_decided().await
}

#[tokio::test]
async fn a_call_that_outlives_its_owners_loss_is_served_after_the_owner_was_shown_what_it_lost() -> Result<()>
{
    let folder = tempfile::tempdir()?;
    // A passphrase is slow on purpose, and the first call waits while its owner is restored with one.
    let consumer_settings = setting("limits.call_total_ms", "120000");
    let mut world = World::with(Setup { consumer_settings, ..fixed_owner()? }).await?;
    back_up(&world.owner, folder.path()).await?;
    // Promised before there was any receipt to name.
    let url = format!("{}/internal/call", world.consumer.status().await?.gateway_url);
    let call = world.client().post(url).bearer_auth(&world.secret);
    let first = tokio::spawn(call.body(world.body("GET", "/slow/3000").to_string()).send());
    eventually("it arrives", async || Ok(world.upstream.hits() == 1)).await?;
    for _ in 0..2 {
        expect_served(&world.get("/ok").await?)?;
    }
    restore_owner(&mut world, folder.path()).await?;
    ensure!(first.await??.status().is_success(), "the first call is served by the restored owner");
    world.buy(1).await?;
    assert_eq!(world.channel().await?.spent.0, cost(4));
    assert_eq!(world.settle_and_check(FUNDS).await?, cost(4), "each call counts once, with its owner too");
    Ok(())
}

#[tokio::test]
async fn an_owner_that_lost_calls_in_a_restore_is_shown_its_receipts_and_earns_all_of_them() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut world = World::with(fixed_owner()?).await?;
    expect_served(&world.get("/ok").await?)?;
    back_up(&world.owner, folder.path()).await?;
    world.buy(3).await?;
    restore_owner(&mut world, folder.path()).await?;

    eventually("the restored owner serves", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    world.buy(24).await?;
    let audit = world.consumer.control().ask(endpoint::Audit).await?;
    ensure!(audit.violations.is_empty() && audit.adjustments == 0, "{audit:?}");
    assert_eq!(world.channel().await?.spent.0, cost(29), "each call counts once");
    let owner = world.owner_wallet.to_string();
    let compared = farthing(&world.consumer, &["audit", "--with", &owner, "--json"]).await?;
    let compared = compared.ends_with(0)?.json()?["compared"].clone();
    ensure!(compared["adjusted_there"] == cost(3).to_string(), "{compared:#}");
    let audit = world.owner.control().ask(endpoint::Audit).await?;
    ensure!(audit.violations.is_empty() && audit.adjustments == 1, "{audit:?}");
    world.settle_for(cost(29)).await
}

#[tokio::test]
async fn an_owner_that_is_restored_while_the_chain_closes_its_channel_earns_what_it_lost_too() -> Result<()> {
    let folder = tempfile::tempdir()?;
    // The payer asks 500 times in the delay of a channel, so every seven seconds of the shortest.
    let delay = setting("chain.close_delay_secs", "3600");
    let often = [setting("settlement.interval_secs", "1"), delay].concat();
    let owner_settings = [on_a_fixed_port()?, often.clone()].concat();
    let mut world =
        World::with(Setup { consumer_settings: often, owner_settings, ..Setup::default() }).await?;
    world.make_gas_cheap().await?;
    expect_served(&world.get("/ok").await?)?;
    back_up(&world.owner, folder.path()).await?;
    world.buy(3).await?;

    // Nobody is there to be shown anything when the close begins.
    world.owner.kill().await?;
    let channels = world.consumer.control().ask(endpoint::Channels).await?;
    let at = endpoint::CloseChannel.of(channels[0].id).with("force", true);
    let closed = world.consumer.control().ask(at).await?;
    ensure!(closed.state == ChannelState::CloseRequested, "{closed:?}");
    restore_owner(&mut world, folder.path()).await?;

    eventually("the owner claims all four calls", async || Ok(world.channel().await?.claimed.0 == cost(4)))
        .await?;
    let audit = world.owner.control().ask(endpoint::Audit).await?;
    ensure!(audit.violations.is_empty() && audit.adjustments == 1, "{audit:?}");
    Ok(())
}

/// Names of the backups that the node made by itself.
fn automatic(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder.join("backups"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with("-auto.backup") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Whether a file of the folder has these bytes.
fn is_anywhere(folder: &Path, bytes: &[u8]) -> Result<bool> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let found = if path.is_dir() {
            is_anywhere(&path, bytes)?
        } else {
            let content = std::fs::read(&path).unwrap_or_default();
            content.windows(bytes.len()).any(|part| part == bytes)
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

#[tokio::test]
async fn a_backup_is_made_every_day_over_restarts_which_the_node_itself_cannot_open() -> Result<()> {
    const PASSPHRASE: &str = "five quite random words here";
    let folder = tempfile::tempdir()?;
    let text = |name: &str| folder.path().join(name).display().to_string();
    let (passphrase, wrong) = (text("passphrase"), text("wrong"));
    std::fs::write(&passphrase, format!("{PASSPHRASE}\n"))?;
    std::fs::write(&wrong, "five quite random words there\n")?;
    let options = NodeOptions::new(folder.path().join("node"));
    let mut node = NodeProcess::start_on(no_chain(), options).await?;
    let data_dir = node.data_dir().to_owned();
    let auto = |verb: &'static [&'static str]| [&["backup", "auto"][..], verb].concat();

    let off = farthing(&node, &auto(&["status", "--json"])).await?;
    ensure!(off.ends_with(0)?.json()?["on"] == false, "{off:?}");
    farthing(&node, &auto(&["on"])).await?.ends_with(2).context("without a passphrase")?;
    farthing(&node, &auto(&["now"])).await?.ends_with(1).context("while it is off")?;
    let on = ["backup", "auto", "on", "--passphrase-file", &passphrase, "--keep", "2"];
    farthing(&node, &on).await?.ends_with(0)?;
    eventually(
        "the first backup is there",
        async || Ok(automatic(&data_dir).is_ok_and(|all| all.len() == 1)),
    )
    .await?;
    let first = automatic(&data_dir)?[0].clone();
    let path = data_dir.join("backups").join(&first);
    ensure!(std::fs::read(&path)?.starts_with(b"FARTHBK2"));
    ensure!(!is_anywhere(&data_dir, PASSPHRASE.as_bytes())?, "the passphrase is kept");
    let file = path.display().to_string();
    let verified =
        run(&text("nowhere"), &["backup", "verify", &file, "--passphrase-file", &passphrase]).await?;
    verified.ends_with(0)?;
    run(&text("nowhere"), &["backup", "verify", &file, "--passphrase-file", &wrong]).await?.ends_with(4)?;

    // A restart makes none before its time, and one when it has come.
    node.stop().await?;
    node.restart(Vec::new()).await?;
    let status = farthing(&node, &auto(&["status", "--json"])).await?.json()?;
    ensure!(status["newest"]["name"] == first.as_str() && status["on"] == true, "{status}");
    ensure!(status["next_secs"].as_u64() > status["newest"]["written_secs"].as_u64(), "{status}");
    ensure!(automatic(&data_dir)?.len() == 1);
    node.stop().await?;
    let yesterday = std::time::SystemTime::now() - std::time::Duration::from_secs(25 * 3_600);
    std::fs::File::options().write(true).open(&path)?.set_modified(yesterday)?;
    let leftover = data_dir.join("backups/.farthing-x.backup.0a.tmp");
    std::fs::write(&leftover, "half of one")?;
    node.restart(Vec::new()).await?;
    eventually("the next one is made", async || Ok(automatic(&data_dir)?.len() == 2)).await?;
    ensure!(!leftover.exists(), "what was interrupted is removed");
    // A name has its second, so that two in one second are one.
    eventually("older ones go", async || {
        farthing(&node, &auto(&["now"])).await?.ends_with(0)?;
        let all = automatic(&data_dir)?;
        Ok(all.len() == 2 && !all.contains(&first))
    })
    .await?;

    // It fails, says so, and is well again.
    let (backups, aside) = (data_dir.join("backups"), data_dir.join("aside"));
    std::fs::rename(&backups, &aside)?;
    std::fs::write(&backups, "no folder")?;
    farthing(&node, &auto(&["now"])).await?.ends_with(1)?;
    let alerts = farthing(&node, &["alert", "list"]).await?;
    ensure!(alerts.ends_with(0)?.out.contains("the daily backup has failed since"), "{alerts:?}");
    std::fs::remove_file(&backups)?;
    std::fs::rename(&aside, &backups)?;
    farthing(&node, &auto(&["now"])).await?.ends_with(0)?;
    let alerts = farthing(&node, &["alert", "list"]).await?;
    ensure!(!alerts.ends_with(0)?.out.contains("daily backup"), "{alerts:?}");

    let newest = automatic(&data_dir)?.pop().context("none")?;
    farthing(&node, &auto(&["off"])).await?.ends_with(0)?;
    ensure!(automatic(&data_dir)?.len() == 2, "those that are there stay");
    let wallet = node.status().await?.address.0;
    node.stop().await?;
    let file = backups.join(newest).display().to_string();
    let restore = ["backup", "restore", &file, "--passphrase-file", &passphrase];
    let restored = run(&text("restored"), &restore).await?;
    ensure!(restored.ends_with(0)?.out.contains(&wallet.to_string()), "{restored:?}");
    Ok(())
}

#[tokio::test]
async fn a_phrase_makes_the_same_wallet_elsewhere_and_a_folder_with_a_node_is_left_alone() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let text = |name: &str| folder.path().join(name).display().to_string();
    let (one, other) = (text("one"), text("other"));
    let made = run(&one, &["init", "--chain", "base-sepolia", "--json"]).await?;
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
    run(&other, &["init", "--chain", "base-sepolia"]).await?.ends_with(0)?;
    let again = run(&other, &["wallet", "export", "--yes"]).await?;
    ensure!(again.ends_with(0)?.out == phrase.out, "another phrase");
    run(&other, &import).await?.ends_with(1)?;
    std::fs::write(&words, phrase.out.replacen(' ', " nothing ", 1))?;
    let refused = run(&text("third"), &["wallet", "import", "--phrase-file", &words]).await?;
    // A word alone may be one of the sentence's own.
    let words: Vec<&str> = phrase.out.split_whitespace().collect();
    let said = &refused.ends_with(1)?.err;
    ensure!(!words.windows(2).any(|pair| said.contains(&pair.join(" "))), "the phrase is repeated");

    for shell in ["bash", "zsh", "fish"] {
        let script = run(&one, &["completions", shell]).await?;
        ensure!(script.ends_with(0)?.out.contains("farthing"), "{shell}");
    }
    ensure!(run(&one, &["man"]).await?.ends_with(0)?.out.contains(".TH farthing"));
    run(&one, &["man", "--to", &folder.path().display().to_string()]).await?.ends_with(0)?;
    ensure!(folder.path().join("farthing-secret-create.1").exists());
    Ok(())
}

/// Lets connections through to `server` once `opens` says so; until then they wait, as at a busy endpoint.
async fn gate(server: String, opens: watch::Receiver<bool>) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((mut inside, _)) = listener.accept().await {
            let (server, mut opens) = (server.clone(), opens.clone());
            tokio::spawn(async move {
                opens.wait_for(|is_open| *is_open).await?;
                let mut outside = TcpStream::connect(server).await?;
                copy_bidirectional(&mut inside, &mut outside).await.context("the connection broke")
            });
        }
    });
    Ok(url)
}

#[tokio::test]
async fn a_restored_node_that_sees_its_channels_late_takes_over_what_their_owners_prove() -> Result<()> {
    // It goes after the nodes.
    let folder = tempfile::tempdir()?;
    let mut world = World::with(fixed_owner()?).await?;
    let text = |name: &str| folder.path().join(name).display().to_string();
    let (file, passphrase, elsewhere) = (text("node.backup"), text("passphrase"), text("restored"));
    std::fs::write(&passphrase, "four random words here\n")?;
    let create = ["backup", "create", "--to", &file, "--passphrase-file", &passphrase];
    farthing(&world.consumer, &create).await?.ends_with(0)?;
    // The backup has neither the channel nor its calls.
    world.buy(2).await?;
    world.consumer.kill().await?;
    run(&elsewhere, &["backup", "restore", &file, "--passphrase-file", &passphrase]).await?.ends_with(0)?;

    let (open, opens) = watch::channel(false);
    let url = world.chain.rpc_url();
    let endpoint = gate(url.trim_start_matches("http://").to_owned(), opens).await?;
    let mut options = NodeOptions::new(&elsewhere).bootstrap([world.owner.loopback_address().await?]);
    options.settings = setting("chain.rpc_urls", &endpoint);
    world.consumer = NodeProcess::start(&world.chain, options).await?;
    farthing(&world.consumer, &["spending", "resume"]).await?.ends_with(0)?;
    open.send(true)?;
    world.consumer.wait_until_ready().await?;
    let service = world.api.id.to_string();
    let call = ["call", &service, "GET", "/ok"];
    eventually("the restored node buys", async || Ok(farthing(&world.consumer, &call).await?.code == 0))
        .await?;
    world.wait_until_decided().await?;
    let spending = world.consumer.control().ask(endpoint::Spending).await?;
    assert_eq!(spending.spent_today.0, cost(3), "the limit of the day counts what was bought before");
    world.settle_for(cost(3)).await
}

#[tokio::test]
async fn a_repeat_of_a_call_that_its_owner_lost_in_a_restore_says_that_the_answer_is_gone() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut world = World::with(fixed_owner()?).await?;
    back_up(&world.owner, folder.path()).await?;
    let get = with(world.body("GET", "/ok"), "call_id", "lost");
    expect_served(&world.call(&get).await?)?;
    world.wait_until_decided().await?;
    restore_owner(&mut world, folder.path()).await?;
    eventually("the restored owner serves", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    let again = world.call(&get).await?;
    ensure!(again.problem() == "answer-no-longer-kept" && again.charged() == true, "{again:?}");
    Ok(())
}
