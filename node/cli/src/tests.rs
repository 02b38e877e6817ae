//! The promises of the command line that need no node.

use std::{
    io,
    path::{Path, PathBuf},
};

use axum::http::StatusCode;
use clap::{CommandFactory, ValueEnum, error::ErrorKind};
use farthing_config::{ConfigError, ConfigProblem};
use farthing_control::{
    ControlError,
    types::{LimitKind, Problem, SettingOrigin},
};
use farthing_os::lock::DataFolderError;
use farthing_serve::tls::TlsError;

use super::*;

mod documents;

#[test]
fn the_definition_of_the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn a_certificate_that_finds_no_room_says_what_to_do() {
    let full = TlsError::Io { path: "tls/own-name".into(), source: io::ErrorKind::StorageFull.into() };
    let failure = Failure::from(anyhow::Error::from(full));
    assert!(failure.to_string().ends_with("; free some disk space, then try again"), "{failure}");
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
        ("farthing call Earthquakes GET /a".to_owned(), true),
        (format!("farthing call {ID} GET /a -p a"), false),
        (format!("farthing call {ID} GET /a -H accept:text/csv -H if-none-match=\"7\""), true),
        (format!("farthing call {ID} GET /a -H accept"), false),
        (format!("farthing call {ID} GET /a --max-price 1e3"), false),
        ("farthing wallet send 0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf --usdc 1".to_owned(), true),
        ("farthing wallet send 0x7E5F4552091A69125d5DfCb7b8C2659029395BdF --usdc 1".to_owned(), false),
        ("farthing wallet send 0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf".to_owned(), false),
        ("farthing testnet demo --report target/demo/report.json".to_owned(), true),
        (
            "farthing wallet history --from 2026-11-01 --to 2026-11-30 --kind bought,served --csv".to_owned(),
            true,
        ),
        ("farthing wallet history --kind sold".to_owned(), false),
        ("farthing wallet history --by-day --csv".to_owned(), false),
        ("farthing wallet history --limit 0".to_owned(), false),
        ("farthing spending limits".to_owned(), false),
        ("farthing secret show".to_owned(), true),
        ("farthing contract deploy --yes".to_owned(), true),
        ("farthing contract show --yes".to_owned(), false),
        ("farthing catalog search --limit 0".to_owned(), false),
        ("farthing catalog search --limit 1".to_owned(), true),
        ("farthing catalog search --limit 100".to_owned(), true),
        ("farthing catalog search --limit 101".to_owned(), false),
        ("farthing catalog show Tides".to_owned(), true),
        (format!("farthing sdk generate {ID} -l python -o out"), true),
        (format!("farthing sdk generate {ID} -l python"), false),
        (format!("farthing sdk generate {ID} -o out"), false),
        (format!("farthing api price {ID} 2 --yes"), true),
        (format!("farthing api remove {ID} --yes"), true),
        ("farthing api show 0b5f2a3e".to_owned(), true),
        ("farthing api show ".to_owned(), false),
        ("farthing catalog show 0b5f2a3e".to_owned(), true),
        ("farthing call 0b5f2a3e GET /a".to_owned(), true),
        (format!("farthing channel close 0x{} --force --yes", "11".repeat(32)), true),
        ("farthing secret revoke old --yes".to_owned(), true),
        ("farthing secret rotate --yes".to_owned(), true),
        ("farthing console reset-password --yes".to_owned(), true),
        ("farthing mcp --secret agent".to_owned(), true),
        ("farthing mcp install cursor --secret agent".to_owned(), true),
        ("farthing mcp install vscode --print".to_owned(), true),
        ("farthing mcp install claude-desktop --write".to_owned(), true),
        ("farthing mcp install claude-desktop --write --print".to_owned(), false),
        ("farthing mcp install emacs".to_owned(), false),
        ("farthing".to_owned(), false),
    ] {
        assert_eq!(Cli::try_parse_from(line.split(' ')).is_ok(), right, "{line}");
    }
}

#[test]
fn every_command_that_a_page_of_the_console_prints_is_understood() {
    let console = Path::new(env!("CARGO_MANIFEST_DIR")).join("../console");
    let mut commands = 0;
    for (file, text) in texts_below(&console) {
        for line in commands_in(&text) {
            commands += 1;
            let parsed = Cli::try_parse_from(line.split_whitespace());
            let error = parsed.err().filter(|error| error.kind() != ErrorKind::DisplayHelp);
            assert!(error.is_none(), "{}: {line}: {error:?}", file.display());
        }
    }
    assert!(commands > 20, "{commands} were found");
}

/// Templates and modules below a folder.
fn texts_below(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts.extend(texts_below(&path));
        } else if path.extension().is_some_and(|ending| ending == "html" || ending == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            texts.push((path, text));
        }
    }
    texts
}

/// The commands in a text, with values in the places that a template fills.
fn commands_in(text: &str) -> Vec<String> {
    const ENDS: [(&str, &str); 3] = [("<code>", "</code>"), ("`", "`"), ("$(", ")")];
    let mut commands = Vec::new();
    for (start, end) in ENDS {
        for found in text.split(&format!("{start}farthing ")).skip(1) {
            let command = found.split(end).next().unwrap();
            let command = command.replace("{{ head.card.id }}", "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b");
            let command = command.replace("{{ made.language.name }}", "python");
            // What is printed in one case alone is checked as well.
            let parts = command.split("{%").map(|part| part.split("%}").last().unwrap());
            commands.push(format!("farthing {}", parts.collect::<String>()));
        }
    }
    commands
}

#[test]
fn the_help_names_every_exit_code_and_the_sources_of_settings_in_the_order_in_which_they_win() {
    let help = Cli::command().render_help().to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    let documented = include_str!("../../../docs/command-line.md");
    for exit in Exit::value_variants() {
        let (code, name) = (*exit as u8, exit.name());
        assert!(help.contains(&format!(", {code} {}", name.replace('-', " "))), "{help}");
        assert!(documented.contains(&format!("\n| {code} | `{name}` |")), "{name}");
    }
    let (_, sources) = help.split_once("Settings come from ").unwrap();
    let places =
        ["flags", "FARTHING_", "settings.toml", "farthing.toml", "defaults"].map(|name| sources.find(name));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{sources}");
}

#[test]
fn a_call_that_a_limit_refuses_names_it_for_programs() {
    let mut problem = Problem::of_status(StatusCode::PAYMENT_REQUIRED, "too dear", "");
    assert!(Failure::from(&problem).object()["error"].get("limit").is_none());
    problem.limit = Some(LimitKind::AtRest);
    assert_eq!(Failure::from(&problem).object()["error"]["limit"], "at-rest");
}

#[test]
fn exit_codes_tell_scripts_what_kind_of_failure_it_was() {
    let problem = |name: &str, status| Problem {
        kind: if name.is_empty() { "about:blank".to_owned() } else { format!("urn:farthing:problem:{name}") },
        title: "It failed".to_owned(),
        status,
        detail: String::new(),
        undone: None,
        next: Some("Mend it.".to_owned()),
        charged: None,
        call_id: None,
        price_usdc: None,
        limit: None,
    };
    for (name, status, exit) in [
        ("", 400, Exit::Usage),
        ("malformed", 400, Exit::Usage),
        ("unauthorized", 401, Exit::Authentication),
        ("insufficient-funds", 402, Exit::Payment),
        ("price-changed", 409, Exit::Payment),
        ("spending-stopped", 503, Exit::Payment),
        ("origin-refused", 403, Exit::Authentication),
        ("", 404, Exit::Failure),
        ("unknown-service", 404, Exit::Failure),
        ("unknown-path", 404, Exit::Usage),
        ("service-retired", 410, Exit::Failure),
        ("too-large", 413, Exit::Usage),
        ("owner-busy", 429, Exit::Failure),
        ("", 502, Exit::Unreachable),
        ("owner-unreachable", 502, Exit::Unreachable),
        ("upstream-failed", 502, Exit::Upstream),
        ("answer-too-large", 502, Exit::Upstream),
        ("bad-answer", 502, Exit::Upstream),
        ("chain-unreachable", 503, Exit::Unreachable),
        ("owner-unavailable", 503, Exit::Failure),
        ("upstream-timeout", 504, Exit::Upstream),
        ("undecided", 504, Exit::MayHaveBeenMade),
    ] {
        let problem = problem(name, status);
        assert_eq!(Exit::of_problem(&problem), exit, "{name} {status}");
        let failure = Failure::from(&problem);
        assert_eq!(failure.to_string(), "It failed. Mend it.");
        let code = failure.object()["error"]["code"].clone();
        assert!(if name.is_empty() { code != "" } else { code == name }, "{code}");
    }
    for (charged, exit) in [(None, Exit::MayHaveBeenMade), (Some(false), Exit::Failure)] {
        let cancelled = Problem { charged, ..problem("cancelled", 409) };
        assert_eq!(Exit::of_problem(&cancelled), exit, "{charged:?}");
    }
}

#[test]
fn a_next_step_is_told_once() {
    let problem = Problem::of_status(StatusCode::CONFLICT, "there is no money", "Send some.");
    let refused = || ControlError::Refused(Box::new(problem.clone()));
    for failure in [Failure::from(refused()), Failure::from(anyhow::Error::from(refused()))] {
        assert_eq!(failure.to_string(), "there is no money. Send some.");
    }
}

#[test]
fn a_command_whose_node_stopped_may_have_been_done() {
    for (is_command, exit, code, words) in [
        (true, Exit::MayHaveBeenMade, "may-have-been-made", "may have been done"),
        (false, Exit::Unreachable, "unreachable", "then ask again"),
    ] {
        let failure = Failure::from(ControlError::BrokenOff { is_command });
        let told = failure.to_string();
        assert!(told.starts_with("the node stopped before it answered; ") && told.contains(words), "{told}");
        assert!(!told.contains("version"), "{told}");
        assert_eq!((failure.exit, failure.object()["error"]["code"].as_str()), (exit, Some(code)));
    }
}

#[test]
fn a_failure_is_the_same_object_whatever_failed() {
    let line = Cli::try_parse_from(["farthing", "--json", "call", "", "GET", "/a"]).unwrap_err();
    for (failure, object) in [
        (
            Failure::usage("there are two; say which").next("use --pick"),
            serde_json::json!({ "code": "usage", "message": "there are two; say which", "next": "use --pick" }),
        ),
        (
            Failure::told(Exit::Failure, "nothing was done"),
            serde_json::json!({ "code": "failure", "message": "nothing was done", "next": null }),
        ),
        (
            Failure::of_command_line(&line),
            serde_json::json!({
                "code": "usage",
                "message": "invalid value '' for '<SERVICE>': name the service by its name, its id, or the first \
                            digits of the id",
                "next": "For more information, try '--help'.",
            }),
        ),
    ] {
        assert_eq!(failure.object(), serde_json::json!({ "error": object }));
    }
}

#[tokio::test]
async fn a_command_without_a_node_ends_with_unreachable_and_the_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let cli = Cli::try_parse_from(["farthing", "status", "--data", data]).unwrap();
    let failure = execute(cli, Arc::new(Log::silent())).await.unwrap_err();
    assert_eq!(failure.exit, Exit::Unreachable);
    assert!(failure.to_string().contains(&format!("`farthing run --data {data}`")), "{failure}");
    let cli = Cli::try_parse_from(["farthing", "status", "--data", data, "--set", "nothing.at=all"]).unwrap();
    assert_eq!(execute(cli, Arc::new(Log::silent())).await.unwrap_err().exit, Exit::Usage);
}

#[tokio::test]
async fn a_mistake_in_a_settings_file_keeps_nobody_from_stopping_the_spending() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    for file in ["farthing.toml", "settings.toml"] {
        for text in ["[spending]\nper_dya = \"1.00\"\n", "this is no TOML"] {
            std::fs::write(folder.path().join(file), text).unwrap();
            let of = |words: [&str; 2]| {
                let line = ["farthing", words[0], words[1], "--data", data];
                execute(Cli::try_parse_from(line).unwrap(), Arc::new(Log::silent()))
            };
            let stop = of(["spending", "stop"]).await.unwrap_err();
            assert_eq!(stop.exit, Exit::Unreachable, "the running node is asked: {stop}");
            let check = of(["config", "check"]).await.unwrap_err();
            assert_eq!(check.exit, Exit::Usage, "{check}");
        }
    }
}

#[test]
fn a_folder_of_another_user_ends_with_the_code_for_that() {
    let denied = |is_denied| {
        Failure::from(ConfigError(vec![ConfigProblem {
            origin: SettingOrigin::File("/srv/node/farthing.toml".into()),
            name: "file".to_owned(),
            what: "cannot be read".to_owned(),
            is_denied,
        }]))
    };
    assert_eq!((denied(true).exit, denied(false).exit), (Exit::Authentication, Exit::Usage));
    let foreign = || DataFolderError::Foreign { path: "/srv/node".into(), user: 7, next: String::new() };
    assert_eq!(Failure::from(foreign()).exit, Exit::Authentication);
    assert_eq!(Failure::from(anyhow::Error::from(foreign())).exit, Exit::Authentication);
    let not_writable = |kind: io::ErrorKind| {
        let (path, next) = ("/srv/node".into(), String::new());
        Failure::from(DataFolderError::NotWritable { path, next, source: kind.into() }).exit
    };
    assert_eq!(not_writable(io::ErrorKind::PermissionDenied), Exit::Authentication);
    assert_eq!(not_writable(io::ErrorKind::ReadOnlyFilesystem), Exit::Failure);
}
