//! `docs/sdk.md` shows what ran.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, ensure};

/// The program's lines between its marks, without their indentation.
fn shown_of(program: &str) -> Result<String> {
    let lines: Vec<&str> = program
        .lines()
        .skip_while(|line| !line.trim_start().ends_with("docs: begin"))
        .skip(1)
        .take_while(|line| !line.trim_start().ends_with("docs: end"))
        .collect();
    let first = lines.first().context("no marks")?;
    let indentation = first.len() - first.trim_start().len();
    Ok(lines.iter().map(|line| format!("{}\n", line.get(indentation..).unwrap_or_default())).collect())
}

/// Blocks of code by their language.
fn blocks(document: &str) -> BTreeMap<&str, String> {
    let mut found = BTreeMap::new();
    let mut rest = document;
    while let Some((_, after)) = rest.split_once("\n```") {
        let Some((language, after)) = after.split_once('\n') else { break };
        let Some((code, after)) = after.split_once("```") else { break };
        if !language.is_empty() {
            found.insert(language, code.to_owned());
        }
        rest = after;
    }
    found
}

#[test]
fn the_document_shows_the_programs_that_run() -> Result<()> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = fs::read_to_string(tests.join("../docs/sdk.md"))?;
    let blocks = blocks(&document);
    for (language, program) in [
        ("python", "main.py"),
        ("typescript", "main.ts"),
        ("javascript", "main.js"),
        ("sh", "main.sh"),
        ("go", "main.go"),
        ("rust", "main.rs.txt"),
        ("java", "Main.java"),
        ("kotlin", "Main.kt"),
        ("csharp", "Main.cs"),
        ("ruby", "main.rb"),
        ("php", "main.php"),
        ("swift", "main.swift"),
    ] {
        let shown = shown_of(&fs::read_to_string(tests.join("sdk/programs").join(program))?)
            .with_context(|| program.to_owned())?;
        ensure!(blocks.get(language) == Some(&shown), "docs/sdk.md must show this as {language}:\n{shown}");
    }
    Ok(())
}
