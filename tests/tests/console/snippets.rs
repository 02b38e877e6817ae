//! The code that the sandbox shows is run as a reader would run it, and pays.

use std::{path::Path, process::Stdio};

use anyhow::{Context, Result, bail, ensure};
use farthing_tests::{
    pictures::{picture, sell_image_size},
    tell::tell,
    world::{FUNDS, PRICE, World},
};
use farthing_values::Usdc;
use tokio::process::Command;

use crate::{sandbox::Sandbox, support::Page};

/// The languages whose code needs no compiler: the program that runs it, and the file that it takes.
const RUN: [(&str, &str, &str); 3] =
    [("shell", "bash", "call.sh"), ("python", "python3", "call.py"), ("typescript", "node", "call.mjs")];

/// Everything that a shell or a literal could take amiss.
const TYPED: &str = "it's \"x\" $(id) `id` ${HOME} \\ äöü #";

/// A part of it that no language escapes.
const TYPED_WORD: &str = "äöü";

#[tokio::test(flavor = "multi_thread")]
async fn the_code_of_the_sandbox_runs_and_gets_the_answer() -> Result<()> {
    let world = World::start().await?;
    let Sandbox { mut browser, address } = Sandbox::open_at(&world, &world.api.id.to_string()).await?;
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
    for (language, program, file) in RUN {
        let code = code(&page, language)?;
        let Some(echoed) = answer(language, program, (&folder.path().join(file), &code), &world).await?
        else {
            continue;
        };
        calls += 1;
        ensure!(echoed["said"] == TYPED, "{language}: {echoed}");
        ensure!(world.upstream.hits() == calls, "{language}");
    }
    let charged = world.settle_and_check(FUNDS).await?;
    ensure!(charged == Usdc::from_micros(PRICE.micros() * calls), "{charged} for {calls} calls");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_code_of_an_upload_runs_sends_the_file_and_gets_the_answer() -> Result<()> {
    let world = World::start().await?;
    let api = sell_image_size(&world).await?;
    let Sandbox { mut browser, address } = Sandbox::open_at(&world, &api.id.to_string()).await?;
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("picture.png"), picture(640, 48))?;
    // A text that begins so names a file in curl's words for a part.
    let note = format!("@{TYPED}");
    let parts = [("operation", "POST /size"), ("b.image", "picture.png"), ("b.note", &note), ("act", "code")];
    let whole = [("operation", "POST /size/raw"), ("file", "picture.png"), ("act", "code")];
    let mut calls = 0;
    for (fields, has_note) in [(&parts[..], true), (&whole[..], false)] {
        let page = browser.post(&address, fields).await?;
        ensure!(page.status == 200, "{page:?}");
        for language in farthing_sdk::Language::PLAIN {
            let code = code(&page, language.name())?;
            ensure!(
                code.contains(&format!("/services/{}/size", api.id)) && code.contains("picture.png"),
                "{code}"
            );
        }
        for language in farthing_sdk::Language::all() {
            let part = format!("client-{language}");
            if has_note && language.name() == "shell" {
                let is_shown = page.body.contains(&format!("data-language=\"{part}\""));
                ensure!(!is_shown, "the client's script would read such a file");
                continue;
            }
            let code = code(&page, &part)?;
            ensure!(code.contains("picture.png") && code.contains(TYPED_WORD) == has_note, "{code}");
        }
        for (language, program, file) in RUN {
            let code = code(&page, language)?;
            let Some(size) = answer(language, program, (&folder.path().join(file), &code), &world).await?
            else {
                continue;
            };
            calls += 1;
            ensure!(size["width"] == 640 && size["height"] == 48, "{language}: {size}");
            let (note, name) = if has_note { (Some(&*note), Some("picture.png")) } else { (None, None) };
            ensure!(size["note"].as_str() == note && size["file"].as_str() == name, "{language}: {size}");
        }
    }
    let charged = world.settle_and_check(FUNDS).await?;
    ensure!(charged == Usdc::from_micros(PRICE.micros() * calls), "{charged} for {calls} calls");
    Ok(())
}

/// Runs code of the sandbox from a file, and reads the JSON that it says; `None` where its language is not here.
async fn answer(
    language: &str,
    program: &str,
    (file, code): (&Path, &str),
    world: &World,
) -> Result<Option<serde_json::Value>> {
    std::fs::write(file, code)?;
    let Some(said) = run(program, file, world).await? else {
        tell(&format!("SKIPPED: the sandbox's code in {language}, because there is no {program}"));
        return Ok(None);
    };
    let answer = said.lines().find(|line| line.starts_with('{')).with_context(|| said.clone())?;
    Ok(Some(serde_json::from_str(answer)?))
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
        .current_dir(file.parent().context("no folder")?)
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
