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

fn asking(sources: Sources, answers: &[&str]) -> (Result<Plan, Failure>, usize) {
    let mut asked = Vec::new();
    let planned = {
        let mut ask = person(answers, &mut asked);
        plan(sources, Init::default(), Some(&mut ask))
    };
    (planned, asked.len())
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
    assert_eq!(asked, 3);
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
fn answers_are_numbers_names_or_values_and_what_is_none_is_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = folder.path().join("elsewhere").display().to_string();
    let (planned, asked) =
        asking(outside(folder.path()), &[elsewhere.as_str(), "4", "bse", "2", "everybody", "2"]);
    let plan = planned.unwrap();
    assert_eq!(asked, 6);
    assert_eq!((plan.config.chain.preset.as_str(), plan.named), ("base", format!(" --data {elsewhere}")));
    assert_eq!(plan.config.gateway.listen.to_string(), "0.0.0.0:3000");
    assert_eq!(plan.config.panel.listen.to_string(), "0.0.0.0:3002");

    let local = ["", "local", "", "0x12", TOKEN, "::1"];
    let (planned, asked) = asking(outside(folder.path()), &local);
    let plan = planned.unwrap();
    assert_eq!(asked, local.len());
    assert_eq!(plan.config.chain.rpc_urls, ["http://127.0.0.1:8545"]);
    assert_eq!(plan.config.chain.token, TOKEN.parse().ok());
    assert_eq!(plan.config.panel.listen.to_string(), "[::1]:3002");
    assert!(written(&plan).contains(TOKEN), "{}", written(&plan));

    let (planned, asked) = asking(outside(folder.path()), &["", "arbitrum-sepolia"]);
    assert_eq!((planned.unwrap_err().exit, asked), (Exit::Usage, 3), "whoever goes away makes nothing");
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

    // The environment is there at each start, or it would not be at the next.
    let variables = vec![("FARTHING_CHAIN__PRESET".to_owned(), "base-sepolia".to_owned())];
    let by_environment = Sources { variables, ..sources() };
    let plan = alone(by_environment.clone(), None, None).unwrap();
    assert!(plan.file.is_none() && plan.config.chain.preset == "base-sepolia");
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
    assert!(refused.contains("is there already") && refused.contains("gateway.listen"), "{refused}");
}

#[test]
fn on_a_folder_with_a_wallet_and_in_a_container_nothing_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let mut contained = outside(folder.path());
    contained.surroundings.is_container = true;
    std::fs::create_dir(folder.path().join("old")).unwrap();
    std::fs::write(folder.path().join("old/wallet.json"), "{}").unwrap();
    for sources in [contained, outside(&folder.path().join("old"))] {
        let (planned, asked) = asking(sources.clone(), &[]);
        assert!(planned.unwrap().file.is_none());
        assert_eq!(asked, 0);
        // Whoever wants a file gets it.
        let plan = alone(sources, Some("base-sepolia"), None).unwrap();
        assert!(written(&plan).contains("base-sepolia"));
    }
}
