//! A thousand descriptions whose every text for people is hostile: the code around these texts stays the same code, in
//! every language, as parsers of others read it.

use std::{
    collections::{HashMap, hash_map::Entry},
    fs::File,
    io::{BufWriter, Write},
    path::Path,
    process::Stdio,
};

use anyhow::{Context, Result, ensure};
use farthing_bridge::description::ApiDescription;
use farthing_sdk::{Language, Options, generate};
use farthing_tests::tell::tell;
use serde_json::json;
use tokio::process::Command;

use super::{
    languages::{folder, is_installed},
    market::described,
    random::Random,
    texts::replaced,
};

const DESCRIPTIONS: u64 = 1_000;

/// Files with what every call needs are long and hold few texts of strangers: they are compared less often.
const RUNTIMES: u64 = 8;

const EXTENSIONS: [&str; 12] = ["py", "ts", "js", "go", "rs", "kt", "java", "cs", "rb", "php", "sh", "swift"];

/// Every place for a text: operations, parameters with default and example, bodies, answers, objects, enums, unions.
const SMALL: &str = r##"{
    "openapi": "3.1.0", "info": {"title": "T", "version": "1"},
    "paths": {
        "/things/{id}": {"get": {"operationId": "getThing", "parameters": [
            {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}},
            {"name": "color", "in": "query", "schema": {"$ref": "#/components/schemas/Color"}}],
            "responses": {"200": {"description": "d", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}}}}},
        "/things": {"post": {"operationId": "addThing", "deprecated": true,
            "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
            "responses": {"200": {"description": "d", "content": {"application/json": {"schema": {"oneOf": [
                {"$ref": "#/components/schemas/Thing"}, {"type": "string"}]}}}}}}}
    },
    "components": {"schemas": {
        "Color": {"type": "string", "enum": ["red", "green"]},
        "Thing": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "color": {"$ref": "#/components/schemas/Color"}, "size": {"type": ["number", "null"]}}}
    }}
}"##;

/// The description with every text for people replaced.
fn saying(small: &ApiDescription, text: &str) -> (ApiDescription, Options) {
    let mut description = replaced(small.clone(), text);
    for operation in &mut description.operations {
        operation.description = format!("{text} {text}");
    }
    let options = Options {
        service_name: text.to_owned(),
        service_id: text.to_owned(),
        price: text.to_owned(),
        base_url: text.to_owned(),
        package: Some("things".to_owned()),
        ..Options::default()
    };
    (description, options)
}

/// Writes what is to be compared, the harmless case first. A file that is the same byte for byte needs no parser.
fn write(file: &Path) -> Result<()> {
    let pieces: Vec<String> =
        serde_json::from_str(include_str!("../../../bridge/sdk/src/tests/pieces.json"))?;
    let small = described(SMALL.as_bytes())?;
    let mut out = BufWriter::new(File::create(file)?);
    let mut harmless = HashMap::new();
    let mut random = Random::new(1);
    for case in 0..=DESCRIPTIONS {
        let hostile: String =
            (0..=random.below(7)).map(|_| pieces[random.below(pieces.len())].as_str()).collect();
        let hostile = format!("word{hostile}");
        let text = if case == 0 { "harmless" } else { &hostile };
        let (description, options) = saying(&small, text);
        for language in Language::all() {
            for file in generate(&description, language, &options)?.files {
                let is_code =
                    file.path.rsplit('.').next().is_some_and(|extension| EXTENSIONS.contains(&extension));
                let is_runtime = ["untime", "Farthing."].iter().any(|part| file.path.contains(part));
                if !is_code || file.path.ends_with(".d.ts") || (is_runtime && case > RUNTIMES) {
                    continue;
                }
                let mut write = |case: u64, text: &str| {
                    let name = language.name();
                    writeln!(
                        out,
                        "{}",
                        json!({"language": name, "path": file.path, "case": case, "text": text})
                    )
                };
                match harmless.entry((language, file.path.clone())) {
                    Entry::Vacant(first) => {
                        ensure!(case == 0, "{} is new in case {case}", file.path);
                        first.insert((file.text, false));
                    }
                    Entry::Occupied(mut first) if first.get().0 != file.text => {
                        let (text, is_written) = first.get_mut();
                        if !std::mem::replace(is_written, true) {
                            write(0, text)?;
                        }
                        write(case, &file.text)?;
                    }
                    Entry::Occupied(_) => {}
                }
            }
        }
    }
    out.flush()?;
    Ok(())
}

#[tokio::test]
async fn a_thousand_hostile_descriptions_generate_the_code_of_a_harmless_one() -> Result<()> {
    if let Err(missing) = is_installed(&[".venv/lib", ".venv/bin/python"]) {
        ensure!(std::env::var_os("CI").is_none(), "{missing}");
        tell(&format!("\n  SKIPPED: code of hostile descriptions, because {missing}\n"));
        return Ok(());
    }
    let work = tempfile::tempdir()?;
    let file = work.path().join("cases.jsonl");
    write(&file)?;
    let output = Command::new(folder().join(".venv/bin/python"))
        .arg(folder().join("programs/compare.py"))
        .arg(&file)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    let out = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{out}\n{}", String::from_utf8_lossy(&output.stderr));
    let compared = out.lines().find_map(|line| line.strip_prefix("compared ")).context("nothing was said")?;
    let compared: serde_json::Value = serde_json::from_str(compared)?;
    for language in Language::all() {
        let files = compared[language.name()].as_u64().unwrap_or(0);
        ensure!(files > DESCRIPTIONS, "{language}: only {files} files were compared");
    }
    Ok(())
}

/// Ways to begin a block of code in Markdown, and the prompt of Python.
const EXAMPLES: [&str; 12] = [
    "    CODE",
    "-     CODE",
    "1.     CODE",
    ">     CODE",
    "> -     CODE",
    "- - -     CODE",
    "```\nCODE\n```",
    "~~~rust\nCODE\n~~~",
    "-\tCODE",
    "> ```\n> CODE\n> ```",
    ">>> CODE",
    "word\n\n - word\n\n       CODE",
];

/// `rustdoc --test` and `doctest` run the examples of documentation with all that a developer has.
#[tokio::test]
async fn no_text_of_a_stranger_is_run_as_an_example() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let small = described(SMALL.as_bytes())?;
    let (mut rust, mut python) = (String::new(), Vec::new());
    for (number, example) in EXAMPLES.into_iter().enumerate() {
        let (description, options) = saying(&small, &example.replace("CODE", "assert!(true)"));
        for file in generate(&description, Language::parse("rust").context("no Rust")?, &options)?.files {
            rust.push_str(&documented(&file.text, number));
        }
        for file in generate(&description, Language::parse("python").context("no Python")?, &options)?.files {
            if file.path.ends_with(".py") {
                let path = folder.path().join(format!("{number}_{}", file.path.replace('/', "_")));
                std::fs::write(&path, &file.text)?;
                python.push(path);
            }
        }
    }
    let file = folder.path().join("documented.rs");
    std::fs::write(&file, format!("/// ```\n/// assert!(true)\n/// ```\npub struct Own;\n{rust}"))?;
    let listing = ["--test", "--edition", "2024", "--test-args", "--list"];
    let listed = said(Command::new("rustdoc").args(listing).arg(&file)).await?;
    ensure!(listed.contains("\n1 test, "), "but for the one of this test, rustdoc runs:\n{listed}");
    let find = "import doctest, sys\nfor file in sys.argv[1:]:\n for example in \
                doctest.DocTestParser().get_examples(open(file).read()): print(file, example.source)";
    let found = said(Command::new("python3").args(["-c", find]).args(&python)).await?;
    ensure!(found.is_empty(), "Python would run:\n{found}");
    Ok(())
}

/// The documentation of a Rust file, each piece above an item of its own.
fn documented(text: &str, number: usize) -> String {
    let mut pieces = String::new();
    let mut is_open = false;
    for (line_number, line) in text.lines().map(str::trim_start).enumerate() {
        let words = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        match words {
            Some(words) => pieces.push_str(&format!("///{words}\n")),
            None if is_open => {
                pieces.push_str(&format!("pub struct D{number}L{line_number}F{};\n", pieces.len()));
            }
            None => {}
        }
        is_open = words.is_some();
    }
    pieces
}

async fn said(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    Ok(text)
}
