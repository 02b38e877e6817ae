//! The code that the sandbox shows is run as a reader would run it, and pays.

use std::{path::Path, process::Stdio};

use anyhow::{Context, Result, bail, ensure};
use farthing_protocol::Usdc;
use farthing_tests::{
    tell::tell,
    wait::eventually,
    world::{FUNDS, PRICE, World},
};
use tokio::process::Command;

use crate::support::{Page, set_up};

/// Everything that a shell or a literal could take amiss.
const TYPED: &str = "it's \"x\" $(id) `id` ${HOME} \\ äöü #";

#[tokio::test(flavor = "multi_thread")]
async fn the_code_of_the_sandbox_runs_and_gets_the_answer() -> Result<()> {
    let world = World::start().await?;
    let mut browser = set_up(&world.consumer).await?;
    let address = format!("/panel/catalog/{}/sandbox", world.api.id);
    eventually("the service is in the consumer's catalog", async || {
        Ok(browser.get(&address).await?.body.contains("name=\"nonce\""))
    })
    .await?;
    let body = format!("{{ \"said\": {}, \"n\": [1, true, null] }}", serde_json::Value::from(TYPED));
    let fields = [("operation", "POST /echo"), ("body", body.as_str()), ("act", "code")];
    let page = browser.post(&address, &fields).await?;
    ensure!(page.status == 200, "{page:?}");
    // With the service's client, too, whose package is not here.
    for language in farthing_sdk::Language::all() {
        let code = code(&page, &format!("client-{language}"))?;
        let id = world.api.id.to_string();
        ensure!(code.contains(if language.name() == "shell" { id.as_str() } else { "/echo" }), "{code}");
    }
    let folder = tempfile::tempdir()?;
    let mut calls = 0;
    for (language, program, file) in
        [("shell", "bash", "call.sh"), ("python", "python3", "call.py"), ("typescript", "node", "call.mjs")]
    {
        let file = folder.path().join(file);
        std::fs::write(&file, code(&page, language)?)?;
        let Some(said) = run(program, &file, &world).await? else {
            tell(&format!("SKIPPED: the sandbox's code in {language}, because there is no {program}"));
            continue;
        };
        calls += 1;
        let echoed = said.lines().find(|line| line.starts_with('{')).with_context(|| said.clone())?;
        let echoed: serde_json::Value = serde_json::from_str(echoed)?;
        ensure!(echoed["said"] == TYPED, "{language}: {said}");
        ensure!(world.upstream.hits() == calls, "{language}");
    }
    let charged = world.settle_and_check(FUNDS).await?;
    ensure!(charged == Usdc::from_micros(PRICE.micros() * calls), "{charged} for {calls} calls");
    Ok(())
}

/// What stands in the page.
fn code(page: &Page, language: &str) -> Result<String> {
    let part =
        page.body.split(&format!("data-language=\"{language}\"")).nth(1).context("no such language")?;
    let code =
        part.split("<code>").nth(1).and_then(|code| code.split("</code>").next()).context("no code")?;
    let mut text = code.to_owned();
    for (escaped, c) in [("&#34;", "\""), ("&#39;", "'"), ("&#60;", "<"), ("&#62;", ">"), ("&#38;", "&")] {
        text = text.replace(escaped, c);
    }
    Ok(text)
}

/// What it printed; `None` without the program.
async fn run(program: &str, file: &Path, world: &World) -> Result<Option<String>> {
    let started = Command::new(program)
        .arg(file)
        .env("CONSUMER_SECRET", &world.secret)
        .env("FARTHING_CA_FILE", world.consumer.ca_file())
        .env("NODE_EXTRA_CA_CERTS", world.consumer.ca_file())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = match started {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let output = child.wait_with_output().await?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("{program} failed: {said}\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(Some(said))
}
