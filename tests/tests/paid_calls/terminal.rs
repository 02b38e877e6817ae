//! Commands on a terminal of 60 columns, and on none: nothing that is copied is broken, and colours are left out where they
//! are not wanted.

use std::process::Stdio;

use anyhow::{Result, ensure};
use farthing_testnet::program;
use farthing_tests::{
    calls::{cost, expect_served},
    command::{farthing, run},
    tell::tell,
    world::World,
};
use tokio::process::Command;

const COLUMNS: usize = 60;
const ESCAPE: char = '\u{1b}';

/// The commands whose help is looked at; the empty one is the program's own.
const HELPS: [&str; 6] = ["", "init", "api add", "call", "wallet history", "backup auto"];

/// What a command writes on a terminal of its own, with these variables; `None`, said loudly, where nothing makes terminals.
async fn on_terminal(data: &str, words: &str, variables: &[(&str, &str)]) -> Result<Option<String>> {
    let there = format!("stty rows 24 cols {COLUMNS} && exec \"$PROGRAM\" {words} --data \"$DATA\"");
    let started = Command::new("script")
        .args(["--quiet", "--return", "--command", &there, "/dev/null"])
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm")
        .env("PROGRAM", program("farthing")?)
        .env("DATA", data)
        .env_remove("COLUMNS")
        .env_remove("NO_COLOR")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = match started.await {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && std::env::var_os("CI").is_none() => {
            tell(
                "\n  SKIPPED: commands on a terminal, because there is no script (apt-get install bsdutils).\n",
            );
            return Ok(None);
        }
        other => other?,
    };
    let said = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "`{words}` ended with {}: {said}", output.status);
    Ok(Some(said))
}

/// The text without what colours it.
fn plain(text: &str) -> String {
    let mut parts = text.split(ESCAPE);
    let first = parts.next().unwrap_or_default().to_owned();
    let behind = parts.filter_map(|part| Some(part.split_once('m')?.1));
    behind.fold(first, |plain, part| plain + part)
}

#[tokio::test]
async fn on_a_terminal_of_60_columns_help_fits_and_ids_are_whole() -> Result<()> {
    let world = World::start().await?;
    expect_served(&world.get("/ok").await?)?;
    let data = |node: &farthing_testnet::NodeProcess| node.data_dir().display().to_string();
    for words in HELPS {
        let help = on_terminal(&data(&world.consumer), &format!("{words} --help"), &[]).await?;
        let Some(help) = help.map(|help| plain(&help)) else { return Ok(()) };
        ensure!(help.contains("--data"), "`{words}` says nothing of its options: {help}");
        let wide = help.lines().find(|line| line.chars().count() > COLUMNS);
        ensure!(wide.is_none(), "the help of `{words}` is wider than {COLUMNS}: {wide:?}");
    }
    let channels = farthing(&world.consumer, &["channel", "list", "--json"]).await?.json()?;
    let (service, owner) = (world.api.id.to_string(), world.owner_wallet.to_string());
    let channel = channels[0]["id"].as_str().unwrap_or_default().to_owned();
    ensure!(channel.len() == 66, "{channels}");
    for (node, words, ids) in [
        (&world.owner, ["api", "list"], vec![&service]),
        (&world.consumer, ["channel", "list"], vec![&channel, &owner]),
        (&world.consumer, ["catalog", "search"], vec![&service]),
    ] {
        let elsewhere = farthing(node, &words).await?;
        let heading = elsewhere.ends_with(0)?.out.lines().next().unwrap_or_default().to_owned();
        ensure!(heading.split_whitespace().count() > 2, "{words:?} is no table: {elsewhere:?}");
        let Some(narrow) = on_terminal(&data(node), &words.join(" "), &[]).await? else { return Ok(()) };
        ensure!(!narrow.lines().any(|line| line == heading), "{words:?} is a wide table: {narrow}");
        for id in ids {
            ensure!(narrow.lines().any(|line| line.ends_with(id)), "{words:?} breaks {id}: {narrow}");
        }
    }
    world.settle_for(cost(1)).await
}

#[tokio::test]
async fn colours_are_for_terminals_whose_users_have_not_said_otherwise() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().display().to_string();
    let Some(coloured) = on_terminal(&data, "api --help", &[]).await? else { return Ok(()) };
    ensure!(coloured.contains(ESCAPE), "a terminal gets no colours: {coloured}");
    let refused = on_terminal(&data, "api --help", &[("NO_COLOR", "1")]).await?.unwrap_or_default();
    ensure!(refused.contains("--data") && !refused.contains(ESCAPE), "{refused:?}");
    let elsewhere = run(&data, &["api", "--help"]).await?;
    ensure!(!elsewhere.ends_with(0)?.out.contains(ESCAPE), "{elsewhere:?}");
    ensure!(plain(&coloured).replace('\r', "").contains("--data"), "{coloured:?}");
    Ok(())
}
