//! `farthing sdk` as a person uses it.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, ensure};
use farthing_sdk::Language;
use farthing_tests::{
    command::{farthing, run},
    world::World,
};

use super::market::until_known;

/// Every file below a folder, by its path there.
fn files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(next) = waiting.pop() {
        for entry in fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                found.insert(path.strip_prefix(folder)?.display().to_string(), fs::read(&path)?);
            }
        }
    }
    Ok(found)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_lists_languages_writes_the_same_bytes_twice_and_takes_ones_own_templates() -> Result<()>
{
    let world = World::start().await?;
    let id = world.api.id.to_string();
    until_known(&world.consumer, &id).await?;

    let listed = farthing(&world.consumer, &["sdk", "languages", "--json"]).await?.json()?;
    let listed: Vec<&str> =
        listed.as_array().context("no list")?.iter().filter_map(|one| one["name"].as_str()).collect();
    ensure!(listed == Language::all().map(Language::name).collect::<Vec<_>>(), "{listed:?}");

    let folder = tempfile::tempdir()?;
    // No node has to run for it, and none is asked.
    let nobody = folder.path().join("nobody").display().to_string();
    let alone = run(&nobody, &["sdk", "languages", "--json"]).await?.json()?;
    ensure!(alone.as_array().is_some_and(|alone| alone.len() == listed.len()), "{alone}");
    let make = async |name: &str, language: &str, more: &[&str]| {
        let output = folder.path().join(name);
        let shown = output.display().to_string();
        let mut arguments = vec!["sdk", "generate", &id, "-l", language, "-o", &shown];
        arguments.extend(more);
        anyhow::Ok((farthing(&world.consumer, &arguments).await?, output))
    };
    for language in listed {
        let mut written = Vec::new();
        for time in ["first", "second"] {
            let (ran, output) = make(&format!("{time}-{language}"), language, &[]).await?;
            ran.ends_with(0)?;
            written.push(files(&output)?);
        }
        ensure!(written[0].len() > 3 && written[0] == written[1], "{language}");
        ensure!(
            written[0].values().any(|file| String::from_utf8_lossy(file).contains(&id)),
            "{language} does not name the service"
        );
    }

    let templates = folder.path().join("templates");
    fs::create_dir(&templates)?;
    fs::write(templates.join("README.md"), "# {{ service.name|md }}, by us\n")?;
    let shown = templates.display().to_string();
    let (ran, own) = make("own", "python", &["--template-dir", &shown]).await?;
    ran.ends_with(0)?;
    let (mut own, mut built_in) = (files(&own)?, files(&folder.path().join("first-python"))?);
    ensure!(own.remove("README.md").as_deref() == Some(b"# Test service, by us\n"), "{own:?}");
    built_in.remove("README.md");
    ensure!(own == built_in, "only the README is another");

    fs::write(templates.join("README.md"), "# {{ service.name }}\n")?;
    let (ran, wrong) = make("wrong", "python", &["--template-dir", &shown]).await?;
    ensure!(ran.code != 0 && ran.err.contains("README.md") && !wrong.exists(), "{ran:?}");
    let (ran, _) = make("first-python", "python", &["--package", "other"]).await?;
    ensure!(ran.code == 2 && ran.err.contains("--force"), "{ran:?}");
    let (ran, _) = make("none", "cobol", &[]).await?;
    ensure!(ran.code == 2 && ran.err.contains("swift"), "{ran:?}");
    let (ran, sharp) = make("sharp", "c#", &[]).await?;
    ran.ends_with(0)?;
    ensure!(files(&sharp)? == files(&folder.path().join("first-csharp"))?, "another name, another package");
    fs::write(folder.path().join("file"), "")?;
    for output in ["file", "file/below"] {
        let (ran, _) = make(output, "python", &["--force"]).await?;
        ensure!(ran.code == 2 && ran.err.contains("is a file") && ran.err.contains("--output"), "{ran:?}");
    }
    let (ran, _) = make("renamed", "python", &["--package", "json"]).await?;
    ran.ends_with(0)?;
    ensure!(ran.err.contains("renamed: the package `json` is called `json-sdk`"), "{ran:?}");
    Ok(())
}
