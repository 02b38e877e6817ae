//! Documents print commands that this program understands.
//!
//! A line of a block is a whole command: it is read as the program reads it, and nothing is done. In a sentence a command
//! may be cut short, so its words and its options are looked up.

use std::path::{Path, PathBuf};

use clap::{Command as Definition, CommandFactory, Parser, error::ErrorKind};
use farthing_control::types::AlertKind;

use crate::Cli;

/// What people follow. The changelog and the decisions speak of their time.
fn documents() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(root.join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .collect();
    paths.extend(
        ["README.md", "SECURITY.md", "CONTRIBUTING.md", "deploy/README.md"].map(|name| root.join(name)),
    );
    paths.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn every_command_in_a_block_of_a_document_is_understood() {
    let mut commands = 0;
    for (path, text) in documents() {
        for line in lines_of_blocks(&text) {
            commands += 1;
            let parsed = Cli::try_parse_from(words(&line));
            let error = parsed.err().filter(|error| error.kind() != ErrorKind::DisplayHelp);
            assert!(error.is_none(), "{}: {line}: {error:?}", path.display());
        }
    }
    assert!(commands > 15, "{commands} were found");
}

#[test]
fn every_command_in_a_sentence_of_a_document_exists_with_its_options() {
    let mut commands = 0;
    for (path, text) in documents() {
        // The protocol has texts of its own that begin so.
        if path.ends_with("docs/wire.md") {
            continue;
        }
        for line in in_sentences(&text) {
            commands += 1;
            let problem = unknown_part(&words(line));
            assert!(problem.is_none(), "{}: `{line}`: there is no {problem:?}", path.display());
        }
    }
    assert!(commands > 40, "{commands} were found");
}

#[test]
fn every_alert_is_in_the_table_of_alerts() {
    let text = include_str!("../../../../docs/command-line.md");
    let section = text.split("\n## ").find(|section| section.starts_with("Alerts\n")).unwrap();
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    let named: Vec<&str> = cells.flat_map(|cell| cell.trim_end_matches('`').split("`, `")).collect();
    for kind in AlertKind::ALL {
        assert!(named.contains(&kind.name()), "`{kind}` is not in the table");
    }
    assert_eq!(named.len(), AlertKind::ALL.len(), "{named:?}");
}

/// Commands of fenced blocks, each in one line without its comment.
fn lines_of_blocks(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    for block in text.split("```").skip(1).step_by(2) {
        let joined = block.replace("\\\n", " ");
        for line in joined.lines().map(str::trim_start) {
            let line = line.strip_prefix("sudo -u farthing ").unwrap_or(line);
            if line.starts_with("farthing ") {
                commands.push(line.split(" #").next().unwrap_or(line).trim_end().to_owned());
            }
        }
    }
    commands
}

/// Commands between backticks, outside of blocks.
fn in_sentences(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    let code = prose.flat_map(|prose| prose.lines().flat_map(|line| line.split('`').skip(1).step_by(2)));
    code.filter(|code| code.starts_with("farthing ") && !code.contains("<noun>")).collect()
}

/// Words as a shell parts them, with something that fits in the places that a reader fills.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (' ', None) => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    let filled = |word: String| match word.as_str() {
        "<wallet>" | "WALLET" | "OWNER" => "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf".to_owned(),
        "<USDC>" | "AMOUNT" => "0.01".to_owned(),
        _ => word,
    };
    words.into_iter().map(filled).collect()
}

/// The first word that names no command where one is needed, or an option that its command does not have.
fn unknown_part(words: &[String]) -> Option<String> {
    let mut definition = Cli::command();
    definition.build();
    let mut command: &Definition = &definition;
    for word in &words[1..] {
        if let Some(option) = word.strip_prefix("--") {
            let name = option.split('=').next().unwrap_or(option);
            let is_known = |arg: &clap::Arg| arg.get_long() == Some(name);
            if !command.get_arguments().any(is_known) {
                return Some(word.clone());
            }
        } else if word.starts_with('-') && word.len() > 1 {
            let short = word.chars().nth(1);
            if !command.get_arguments().any(|arg| arg.get_short() == short) {
                return Some(word.clone());
            }
        } else if command.has_subcommands() {
            match command.find_subcommand(word) {
                Some(found) => command = found,
                None => return Some(word.clone()),
            }
        }
    }
    None
}

#[test]
fn commands_are_found_and_read_as_a_shell_reads_them() {
    let text = "Run `farthing api list`.\n```sh\nfarthing call Tides GET /a \\\n  -H 'Accept: text/csv' # a comment\n\
                docker run farthing x\n```\nand `farthing nothing --here`";
    let block = lines_of_blocks(text);
    assert_eq!(block.len(), 1);
    assert_eq!(words(&block[0])[..5], ["farthing", "call", "Tides", "GET", "/a"]);
    assert_eq!(words(&block[0])[6], "Accept: text/csv");
    assert_eq!(in_sentences(text), ["farthing api list", "farthing nothing --here"]);
    assert_eq!(unknown_part(&words("farthing api list --json")), None);
    assert_eq!(unknown_part(&words("farthing api lists")).as_deref(), Some("lists"));
    assert_eq!(unknown_part(&words("farthing api list --follow")).as_deref(), Some("--follow"));
}
