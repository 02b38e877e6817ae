//! An error that a command, a page or a problem document is made of knows what its reader does next.

use std::collections::BTreeSet;

use crate::{
    Breaches, all_sources,
    source::{repository, source_files},
};

/// The crates whose words people read.
const TOLD_IN: [&str; 4] = ["node/commands/src", "node/cli/src", "node/console/src", "node/mcp/src"];
/// Types without a next step of their own, each with the reason.
const ELSEWHERE: [(&str, &str); 2] =
    [("Error", "of anyhow: its causes are asked"), ("Problem", "it brings that of the error it was made of")];

#[test]
fn an_error_that_people_read_has_a_next_step() {
    let with_next: BTreeSet<String> =
        all_sources().iter().filter(|file| !file.is_test()).flat_map(|file| with_next(file.code())).collect();
    assert!(with_next.len() > 30, "{with_next:?}");
    let (mut breaches, mut told) = (Breaches::default(), 0);
    for folder in TOLD_IN {
        for file in source_files(&repository().join(folder)) {
            for error in file.code().lines().filter_map(made_of) {
                told += 1;
                let is_elsewhere = ELSEWHERE.iter().any(|(name, _)| *name == error);
                if !is_elsewhere && !with_next.contains(error) {
                    breaches
                        .add(&file.path, format!("tells {error}, which has no `next_step()`: give it one"));
                }
            }
            if file.has_text("Failed::new(") && file.has_text("None::<&str>") {
                breaches.add(&file.path, "refuses without a next step: say what to do");
            }
        }
    }
    assert!(told > 25, "only {told} were found");
    breaches.none();
}

/// The error type that a line makes a failure of: `refused!(LedgerError: …` or `impl From<&BuyError> for Failed {`.
fn made_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let path = match line.strip_prefix("refused!(") {
        Some(rest) => rest,
        None => {
            let (path, made) = line.strip_prefix("impl From<")?.split_once("> for ")?;
            ["Failed {", "Failure {", "Trouble {"].contains(&made).then_some(path)?
        }
    };
    let path = path.trim_start_matches('&').split([' ', '{']).next()?.trim_end_matches(':');
    let name = path.rsplit("::").next()?;
    // A parameter of a macro is no type.
    name.starts_with(|first: char| first.is_ascii_uppercase()).then_some(name)
}

/// The types of a file that have a next step.
fn with_next(code: &str) -> Vec<String> {
    let (mut own, mut found) = ("", Vec::new());
    for line in code.lines() {
        if let Some(rest) = line.strip_prefix("impl ") {
            own = rest.split([' ', '<']).next().unwrap_or_default();
        } else if line.contains("fn next_step(") && line.starts_with("    pub ") {
            found.push(own.to_owned());
        }
    }
    found
}

#[test]
fn an_error_is_found_where_it_is_told_and_its_next_step_where_it_is_given() {
    for (line, error) in [
        ("refused!(LedgerError: SERVICE_UNAVAILABLE);", Some("LedgerError")),
        ("refused!(config::ConfigError: BAD_REQUEST);", Some("ConfigError")),
        ("refused!(SavedError {", Some("SavedError")),
        ("impl From<&BuyError> for Failed {", Some("BuyError")),
        ("impl From<TlsError> for Failure {", Some("TlsError")),
        ("        impl From<$error> for Failed {", None),
        ("impl From<TlsError> for Told {", None),
    ] {
        assert_eq!(made_of(line), error, "{line}");
    }
    let code = "impl TlsError {\n    pub fn next_step(&self) -> &str {\n    }\n}\nimpl Other {\n}\n";
    assert_eq!(with_next(code), ["TlsError"]);
}
