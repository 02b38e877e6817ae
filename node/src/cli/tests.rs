//! The promises of the command line that need no node.

use clap::CommandFactory;

use super::*;
use crate::control::types::Problem;

#[test]
fn the_definition_of_the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn flags_are_understood_before_and_behind_the_command() {
    for line in ["farthing --data /x --json status", "farthing status --data /x --json"] {
        let cli = Cli::try_parse_from(line.split(' ')).unwrap();
        assert!(cli.global.json && cli.global.data.is_some(), "{line}");
    }
}

#[test]
fn what_is_wrong_on_the_command_line_is_found_before_anything_is_done() {
    const ID: &str = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";
    for (line, right) in [
        (format!("farthing call {ID} get /a -p a=1 -p b=2 --max-price 0.01"), true),
        (format!("farthing call {ID} FETCH /a"), false),
        ("farthing call 7 GET /a".to_owned(), false),
        (format!("farthing call {ID} GET /a -p a"), false),
        (format!("farthing call {ID} GET /a --max-price 1e3"), false),
        ("farthing wallet send 0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf --usdc 1".to_owned(), true),
        ("farthing wallet send 0x7E5F4552091A69125d5DfCb7b8C2659029395BdF --usdc 1".to_owned(), false),
        ("farthing wallet send 0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf".to_owned(), false),
        ("farthing testnet demo --report target/demo/report.json".to_owned(), true),
        ("farthing".to_owned(), false),
    ] {
        assert_eq!(Cli::try_parse_from(line.split(' ')).is_ok(), right, "{line}");
    }
}

#[test]
fn exit_codes_tell_scripts_what_kind_of_failure_it_was() {
    let problem = |status| Problem {
        kind: String::new(),
        title: String::new(),
        status,
        detail: String::new(),
        next: None,
        charged: None,
        call_id: None,
    };
    for (status, exit) in [
        (400, Exit::Usage),
        (401, Exit::Authentication),
        (402, Exit::Payment),
        (403, Exit::Authentication),
        (429, Exit::Failure),
        (502, Exit::Upstream),
        (503, Exit::Failure),
        (504, Exit::Upstream),
    ] {
        assert_eq!(Exit::of_problem(&problem(status)), exit, "{status}");
    }
}

#[tokio::test]
async fn a_command_without_a_node_ends_with_unreachable_and_the_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let cli = Cli::try_parse_from(["farthing", "status", "--data", data]).unwrap();
    let failure = execute(cli).await.unwrap_err();
    assert_eq!(failure.exit, Exit::Unreachable);
    assert!(failure.text.contains("farthing run"), "{failure}");
    let cli = Cli::try_parse_from(["farthing", "status", "--data", data, "--set", "nothing.at=all"]).unwrap();
    assert_eq!(execute(cli).await.unwrap_err().exit, Exit::Usage);
}

#[test]
fn a_table_is_as_wide_as_its_entries() {
    let rows = [["a".to_owned(), "long entry".to_owned()], ["bbb".to_owned(), String::new()]];
    assert_eq!(output::table(["X", "Y"], rows), "X    Y\na    long entry\nbbb");
}
