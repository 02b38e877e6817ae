//! The command line on running nodes: data on standard output, prose on standard error, codes for scripts.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use farthing::testnet::{NodeProcess, program};
use farthing_tests::world::{FUNDS, World};
use serde_json::Value;
use tokio::process::Command;

use crate::support::cost;

/// What a command left behind.
#[derive(Debug)]
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.out).with_context(|| format!("no JSON: {self:?}"))
    }

    /// Checks the exit code; a failure has nothing on standard output and says what to do on the other.
    fn ends_with(&self, code: i32) -> Result<&Self> {
        ensure!(self.code == code, "ended with {} and not {code}: {self:?}", self.code);
        ensure!(code == 0 || self.out.is_empty() && !self.err.trim().is_empty(), "{self:?}");
        Ok(self)
    }
}

async fn farthing(node: &NodeProcess, arguments: &[&str]) -> Result<Ran> {
    run(&node.data_dir().display().to_string(), arguments).await
}

async fn run(data: &str, arguments: &[&str]) -> Result<Ran> {
    let output = Command::new(program("farthing")?)
        .args(arguments)
        .args(["--data", data])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    Ok(Ran {
        code: output.status.code().context("ended by a signal")?,
        out: String::from_utf8(output.stdout)?,
        err: String::from_utf8(output.stderr)?,
    })
}

#[tokio::test]
async fn commands_answer_on_standard_output_and_fail_with_the_documented_codes() -> Result<()> {
    let world = World::start().await?;
    let (owner, consumer) = (&world.owner, &world.consumer);
    let service = world.api.id.to_string();
    let call = ["call", &service, "GET"];
    let calling = |path: &'static str| [&call[..], &[path]].concat();

    let bought = farthing(consumer, &calling("/ok")).await?;
    bought.ends_with(0)?;
    assert_eq!(bought.out, "{\"n\":1}\n");
    ensure!(bought.err.contains("charged 0.002 of 0.002 USDC"), "{bought:?}");
    let timed = farthing(consumer, &[&calling("/ok")[..], &["--timing", "-p", "a=b"]].concat()).await?;
    ensure!(timed.ends_with(0)?.err.contains("upstream;dur="), "{timed:?}");
    let posted = farthing(consumer, &["call", &service, "post", "/echo", "--body", "{\"a\":1}"]).await?;
    assert_eq!(posted.ends_with(0)?.out, "{\"a\":1}\n");

    // Every command in both forms: something for people, and JSON.
    let (wallet, other) = (world.consumer_wallet.to_string(), world.owner_wallet.to_string());
    for (node, arguments, shows) in [
        (consumer, &["status"][..], wallet.as_str()),
        (consumer, &["doctor"], "ok"),
        (consumer, &["audit"], "Violations"),
        (consumer, &["healthcheck"], "ready"),
        (consumer, &["wallet", "address"], &wallet),
        (consumer, &["wallet", "balance"], "USDC"),
        (consumer, &["channel", "list"], &other),
        (consumer, &["net", "peers"], &other),
        (consumer, &["net", "ping", &other], "ms"),
        (consumer, &["net", "lookup", &other], "record"),
        (owner, &["net", "reach"], "reachable"),
        (consumer, &["catalog", "search"], "SERVICE"),
        (consumer, &["config", "show"], "spending.price_max"),
        (consumer, &["config", "show", "--origin"], "default"),
        (owner, &["api", "list"], &service),
        (owner, &["channel", "list"], &wallet),
        (owner, &["settle"], "0.006"),
    ] {
        let text = farthing(node, arguments).await?;
        ensure!(text.ends_with(0)?.out.contains(shows), "{arguments:?} does not show {shows}: {text:?}");
        let json = farthing(node, &[arguments, &["--json"]].concat()).await?;
        json.ends_with(0)?.json().with_context(|| format!("{arguments:?}"))?;
        ensure!(
            !text.out.contains(&world.secret) && !json.out.contains(&world.secret),
            "{arguments:?} shows the secret"
        );
    }
    let shown = farthing(consumer, &["secret", "show"]).await?;
    ensure!(shown.ends_with(0)?.out.trim() == world.secret, "another secret is shown");

    for (arguments, code) in [
        (calling("/okk"), 2),
        ([&calling("/ok")[..], &["-p", "broken"]].concat(), 2),
        (["call", "no-uuid", "GET", "/ok"].to_vec(), 2),
        (["nonsense"].to_vec(), 2),
        ([&calling("/ok")[..], &["--max-price", "0.001"]].concat(), 5),
        (calling("/status/500"), 6),
        (["channel", "close", "0x00"].to_vec(), 2),
    ] {
        farthing(consumer, &arguments).await?.ends_with(code).with_context(|| format!("{arguments:?}"))?;
    }
    let declined = farthing(consumer, &calling("/status/404")).await?;
    ensure!(
        declined.code == 6 && declined.out == "said so\n",
        "a declined call still has an answer: {declined:?}"
    );
    let refused =
        farthing(consumer, &[&calling("/ok")[..], &["--max-price", "0.001", "--json"]].concat()).await?;
    ensure!(refused.code == 5 && refused.json()?["charged"] == false, "{refused:?}");

    let empty = tempfile::tempdir()?;
    let nobody = run(&empty.path().display().to_string(), &["status"]).await?;
    nobody.ends_with(3)?;
    ensure!(nobody.err.contains("farthing run"), "{nobody:?}");
    let unhealthy = run(&empty.path().display().to_string(), &["healthcheck"]).await?;
    assert_eq!(unhealthy.code, 3);

    assert_eq!(world.upstream.hits(), 5);
    assert_eq!(world.settle_and_check(FUNDS).await?, cost(3));
    Ok(())
}
