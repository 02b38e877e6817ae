//! Questions, files and refusals of `farthing init`, on real folders.

use std::path::Path;

use farthing_config::Surroundings;

use super::*;
use crate::failure::Exit;

const TOKEN: &str = "0x00000000000000000000000000000000000000aa";

/// A machine whose user has no node yet, unless `folder` holds one.
fn outside(folder: &Path) -> Sources {
    let surroundings = Surroundings { is_container: false, data_dir: Some(folder.to_owned()) };
    Sources { surroundings, ..Sources::default() }
}

/// With a chain that a variable names.
fn by_environment(sources: Sources) -> Sources {
    let variables = vec![("FARTHING_CHAIN__PRESET".to_owned(), "base-sepolia".to_owned())];
    Sources { variables, ..sources }
}

/// A person's answers, one after another, and the questions that they were asked.
fn person<'a>(
    answers: &'a [&'a str],
    asked: &'a mut Vec<String>,
) -> impl FnMut(&str, &str) -> Result<String, Failure> + 'a {
    let mut answers = answers.iter();
    move |question: &str, usual: &str| {
        asked.push(question.to_owned());
        match answers.next() {
            Some(&"") => Ok(usual.to_owned()),
            Some(answer) => Ok((*answer).to_owned()),
            None => Err(Failure::usage("nobody answers any more")),
        }
    }
}

fn asking(sources: Sources, answers: &[&str]) -> (Result<Plan, Failure>, Vec<String>) {
    let mut asked = Vec::new();
    let planned = {
        let mut ask = person(answers, &mut asked);
        plan(sources, Init::default(), Some(&mut ask))
    };
    (planned, asked)
}

fn alone(sources: Sources, chain: Option<&str>, listen: Option<&str>) -> Result<Plan, Failure> {
    let listen = listen.map(|ip| ip.parse().unwrap());
    plan(sources, Init { chain: chain.map(str::to_owned), listen, yes: true }, None)
}

fn written(plan: &Plan) -> String {
    plan.file.as_ref().map(|(_, settings)| settings.text()).unwrap_or_default()
}

#[test]
fn whoever_only_presses_return_gets_test_money_in_their_own_folder_for_this_machine_alone() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("farthing");
    let (planned, asked) = asking(outside(&own), &["", "", ""]);
    let plan = planned.unwrap();
    assert_eq!(asked.len(), 3);
    assert_eq!(plan.config.node.data_dir, own);
    assert_eq!(plan.config.chain.preset, "base-sepolia");
    assert!(plan.config.gateway.listen.ip().is_loopback() && plan.config.panel.listen.ip().is_loopback());
    assert_eq!(plan.named, "");
    let text = written(&plan);
    assert!(text.contains("[chain]\npreset = \"base-sepolia\""), "{text}");
    assert!(
        !text.contains("listen") && !text.contains("data_dir"),
        "what is the default is not written: {text}"
    );
    assert_eq!(plan.file.unwrap().0, own.join("farthing.toml"));
}

#[test]
fn answers_are_numbers_names_or_values_and_what_is_none_is_asked_again_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = folder.path().join("elsewhere").display().to_string();
    let (planned, asked) =
        asking(outside(folder.path()), &[elsewhere.as_str(), "4", "bse", "2", "everybody", "2"]);
    let plan = planned.unwrap();
    assert_eq!(asked.len(), 6);
    for (question, reason) in [
        (2, "`4` is neither a number from the list nor a chain (base, base-sepolia, "),
        (3, "`bse` is neither a number from the list"),
        (5, "`everybody` is neither 1 nor 2 nor an IP address"),
    ] {
        assert!(asked[question].starts_with(reason), "{}", asked[question]);
    }
    assert!(asked[3].ends_with(&asked[1]) && !asked[3].contains("`4`"), "{}", asked[3]);
    assert_eq!((plan.config.chain.preset.as_str(), plan.named), ("base", format!(" --data {elsewhere}")));
    assert_eq!(plan.config.gateway.listen.to_string(), "0.0.0.0:3000");
    assert_eq!(plan.config.panel.listen.to_string(), "0.0.0.0:3002");

    let local = ["", "local", "", "0x12", "", TOKEN, "::1"];
    let (planned, asked) = asking(outside(folder.path()), &local);
    let plan = planned.unwrap();
    assert_eq!(asked.len(), local.len());
    assert!(asked[4].starts_with("`0x12` is not an address: an address is 0x and 40"), "{}", asked[4]);
    assert!(asked[5].starts_with("An empty line is not an address"), "{}", asked[5]);
    assert_eq!(plan.config.chain.rpc_urls, ["http://127.0.0.1:8545"]);
    assert_eq!(plan.config.chain.token, TOKEN.parse().ok());
    assert_eq!(plan.config.panel.listen.to_string(), "[::1]:3002");
    assert!(written(&plan).contains(TOKEN), "{}", written(&plan));

    let (planned, asked) = asking(outside(folder.path()), &["", "arbitrum-sepolia"]);
    assert_eq!((planned.unwrap_err().exit, asked.len()), (Exit::Usage, 3), "whoever goes away makes nothing");
}

#[test]
fn flags_choose_where_nobody_is_asked_and_without_them_the_refusal_names_them() {
    let folder = tempfile::tempdir().unwrap();
    let sources = || outside(folder.path());
    for chain in ["base", "base-sepolia"] {
        let plan = alone(sources(), Some(chain), Some("127.0.0.1")).unwrap();
        let text = written(&plan);
        assert!(text.contains(&format!("preset = \"{chain}\"")) && !text.contains("listen"), "{text}");
    }
    let open = alone(sources(), Some("base"), Some("192.0.2.1")).unwrap();
    assert!(written(&open).contains("listen = \"192.0.2.1:3000\""), "{}", written(&open));
    let refused = alone(sources(), None, None).unwrap_err();
    assert_eq!(refused.exit, Exit::Usage);
    for flag in ["--chain base-sepolia", "--chain base`", "--chain local", "--data", "--listen"] {
        assert!(refused.to_string().contains(flag), "{refused}");
    }

    let refused = alone(sources(), Some("local"), None).unwrap_err().to_string();
    assert!(refused.contains("chain.token") && refused.contains("--set"), "{refused}");
    let told = Sources { set: vec![format!("chain.token={TOKEN}")], ..sources() };
    let text = written(&alone(told, Some("local"), None).unwrap());
    assert!(text.contains(TOKEN) && text.contains("8545"), "{text}");

    // The environment may not be there at the next start, which would be on real money.
    let by_environment = by_environment(sources());
    let plan = alone(by_environment.clone(), None, None).unwrap();
    assert!(written(&plan).contains("[chain]\npreset = \"base-sepolia\""), "{}", written(&plan));
    assert_eq!(plan.untold, None);
    let refused = alone(by_environment, Some("base"), None).unwrap_err().to_string();
    assert!(refused.contains("environment FARTHING_CHAIN__PRESET"), "{refused}");
}

#[test]
fn a_settings_file_that_is_there_is_never_changed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("farthing.toml");
    std::fs::write(&file, "[chain]\npreset = \"base\"\n").unwrap();
    let sources = || outside(folder.path());
    assert!(alone(sources(), None, None).unwrap().file.is_none());
    assert!(alone(sources(), Some("base"), None).unwrap().file.is_none(), "it says so already");
    let refused = alone(sources(), Some("base-sepolia"), None).unwrap_err();
    assert_eq!(refused.exit, Exit::Usage);
    assert!(refused.to_string().contains(&format!("{}: chain.preset", file.display())), "{refused}");
    let refused = alone(sources(), None, Some("0.0.0.0")).unwrap_err().to_string();
    assert!(refused.contains("already exists") && refused.contains("gateway.listen"), "{refused}");

    let set = |value: &str| Sources { set: vec![format!("limits.calls_max={value}")], ..sources() };
    let refused = alone(set("9"), None, None).unwrap_err();
    assert_eq!(refused.exit, Exit::Usage);
    assert!(refused.to_string().contains("write limits.calls_max = \"9\" into it"), "{refused}");
    std::fs::write(&file, "[limits]\ncalls_max = 9\n").unwrap();
    // What the environment says is not written into it, which is told.
    let plan = alone(by_environment(set("9")), None, None).unwrap();
    let untold = plan.untold.unwrap();
    assert!(
        plan.file.is_none() && untold.contains("comes from FARTHING_CHAIN__PRESET and is not written"),
        "{untold}"
    );
    let refused = alone(set("9"), Some("base"), None).unwrap_err().to_string();
    assert!(refused.contains("write chain.preset = \"base\" into it"), "{refused}");
}

#[test]
fn on_a_folder_with_a_wallet_and_in_a_container_nothing_but_the_chain_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let mut contained = outside(folder.path());
    contained.surroundings.is_container = true;
    std::fs::create_dir(folder.path().join("old")).unwrap();
    std::fs::write(folder.path().join("old/wallet.json"), "{}").unwrap();
    for (sources, surroundings) in
        [(contained, "a container"), (outside(&folder.path().join("old")), "a machine")]
    {
        let (planned, asked) = asking(sources.clone(), &["base"]);
        let plan = planned.unwrap();
        assert!(written(&plan).contains("preset = \"base\"") && !written(&plan).contains("listen"));
        assert_eq!(asked.len(), 1);
        let told = format!("The program treats this as {surroundings}");
        assert!(plan.surroundings.starts_with(&told) && plan.surroundings.contains("FARTHING_CONTAINER="));
        let (planned, asked) = asking(by_environment(sources.clone()), &[]);
        assert_eq!((planned.unwrap().config.chain.preset.as_str(), asked.len()), ("base-sepolia", 0));
        let refused = alone(sources.clone(), None, None).unwrap_err().to_string();
        assert!(refused.contains("no chain is chosen (chain.preset)"), "{refused}");
        let plan = alone(sources, Some("base-sepolia"), None).unwrap();
        assert!(written(&plan).contains("base-sepolia"));
    }
}

#[test]
fn an_incomplete_node_s_wallet_is_named_and_the_next_attempt_continues_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let tls = folder.path().join("tls");
    std::fs::write(&tls, "a file, not a folder").unwrap();
    let attempt = || make(&alone(outside(folder.path()), Some("base-sepolia"), None).unwrap());
    let failed = format!("{:#}", attempt().unwrap_err());
    assert!(failed.contains(&format!("new wallet is in {}", folder.path().display())), "{failed}");
    let failed = format!("{:#}", attempt().unwrap_err());
    assert!(!failed.contains("new wallet"), "it is not new any more: {failed}");
    std::fs::remove_file(&tls).unwrap();
    assert!(!attempt().unwrap().created);
}
