//! `farthing init`: what the first start makes, without running, and the settings that have to be chosen for it.
//!
//! Flags say them, or a person on a terminal is asked. They become a `farthing.toml`; one that is there is never changed, and
//! what it would have to say is refused. The chain has to be chosen always: it says whether money is real. Nothing else has
//! to be on a folder that has a wallet, and in a container, and what is missing is made.

mod questions;

use std::{
    io::{self, IsTerminal},
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::{Args, builder::PossibleValuesParser};
use farthing_config::{self as config, Config, Loaded, Sources, UserSettings, keys::CHAIN_PRESETS};
use farthing_control::types::SettingOrigin;
use farthing_node::{
    chain_spec,
    home::{Home, LockedHome},
};
use farthing_serve::tls;
use farthing_wallet::Wallet;
use serde::Serialize;

use super::{Context, failure::Failure, on_the_side, output::pairs, place};
use questions::Ask;

#[derive(Debug, Default, Args)]
pub struct Init {
    /// Chain that settles calls: base-sepolia for test money, base for real money, local for a chain of your own
    #[arg(long, value_name = "CHAIN", value_parser = PossibleValuesParser::new(CHAIN_PRESETS))]
    #[arg(hide_possible_values = true)]
    chain: Option<String>,
    /// Address for scripts (port 3000) and the console (port 3002): 127.0.0.1 is this machine alone, 0.0.0.0 is all of its
    /// networks
    #[arg(long, value_name = "IP")]
    listen: Option<IpAddr>,
    /// Do not ask; use defaults for options you leave out
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Serialize)]
struct InitOutcome {
    address: String,
    data_dir: String,
    /// The chain, and whether its money is real.
    chain: String,
    created: bool,
    /// The settings file that was written.
    settings: Option<String>,
    ca_file: Option<String>,
}

/// The decision what to make.
#[derive(Debug)]
struct Plan {
    config: Config,
    /// The settings file to write.
    file: Option<(PathBuf, UserSettings)>,
    /// ` --data …` where a command needs it.
    named: String,
    /// Says where the program seems to run, and what follows.
    surroundings: String,
    /// Says that the chain is in no file, where it is not.
    untold: Option<String>,
}

pub(super) async fn init(context: &Context, given: Init) -> Result<(), Failure> {
    let output = context.output;
    let mut asked = |question: &str, usual: &str| output.ask(question, usual);
    let is_asked = !given.yes && io::stdin().is_terminal();
    let ask: Option<&mut Ask<'_>> = if is_asked { Some(&mut asked) } else { None };
    let plan = plan(context.sources(), given, ask)?;
    let (named, surroundings, untold) = (plan.named.clone(), plan.surroundings.clone(), plan.untold.clone());
    // The protection of a wallet with a passphrase of its own takes a second of one core.
    let made = on_the_side(move || make(&plan)).await?;
    output.data(&made, |made| {
        pairs([
            ("Wallet", made.address.clone()),
            ("Chain", made.chain.clone()),
            ("Folder", made.data_dir.clone()),
            ("Trust", made.ca_file.clone().unwrap_or_else(|| "own certificate, or none".into())),
        ])
    })?;
    output.prose(&surroundings);
    if let Some(settings) = &made.settings {
        output.prose(&format!("Your settings are in {settings}."));
    }
    if let Some(untold) = &untold {
        output.prose(untold);
    }
    if made.created {
        output.prose(&format!(
            "New wallet {}: only you have its key. Back it up: `farthing wallet export{named}` prints its words now; \
             once the node runs, `farthing backup create{named}` saves the whole node.",
            made.address
        ));
    } else {
        output.prose("The wallet already exists.");
    }
    output.prose(&format!("Start the node with `farthing run{named}`."));
    Ok(())
}

/// Decides what to make and what to write. `ask` is there where somebody can be asked.
fn plan(mut sources: Sources, given: Init, mut ask: Option<&mut Ask<'_>>) -> Result<Plan, Failure> {
    let mut found = config::load(&sources)?;
    if let Some(ask) = ask.as_deref_mut()
        && is_first(&sources, &found)
        && !found.is_chosen("node.data_dir")
        && let Some(folder) = questions::folder(ask, &found.config.node.data_dir)?
    {
        // What lies in it may say everything else.
        sources.data_dir = Some(folder);
        found = config::load(&sources)?;
    }
    let is_first = is_first(&sources, &found);
    let chain = match (given.chain, ask.as_deref_mut()) {
        (Some(chain), _) => Some(chain),
        (None, _) if found.is_chosen("chain.preset") => None,
        (None, Some(ask)) => Some(questions::chain(ask)?),
        (None, None) => return Err(no_chain()),
    };
    let mut wanted = Vec::new();
    if let Some(chain) = chain {
        if found.is_chosen("chain.preset") && found.config.chain.preset != chain {
            return Err(otherwise(&found, "chain.preset", &chain));
        }
        if chain == "local" {
            wanted.extend(questions::local_chain(ask.as_deref_mut(), |name| found.is_chosen(name))?);
        }
        wanted.push(("chain.preset", chain));
    }
    let listens =
        [("gateway.listen", found.config.gateway.listen), ("panel.listen", found.config.panel.listen)];
    let is_open = || listens.iter().all(|(name, _)| !found.is_chosen(name));
    let listen = match (given.listen, ask.filter(|_| is_first)) {
        (Some(ip), _) => Some(ip),
        (None, Some(ask)) if is_open() => Some(questions::listen(ask)?),
        _ => None,
    };
    for (name, now) in listens {
        let Some(ip) = listen else { break };
        match (found.is_chosen(name), now.ip() == ip) {
            (true, false) => return Err(otherwise(&found, name, &ip.to_string())),
            // The default needs no line in the file.
            (false, true) => {}
            _ => wanted.push((name, SocketAddr::new(ip, now.port()).to_string())),
        }
    }
    let file = sources.file_in(&found.config.node.data_dir);
    let is_there = file.symlink_metadata().is_ok();
    sources.set.extend(wanted.into_iter().map(|(name, value)| format!("{name}={value}")));
    let loaded = config::load(&sources).map_err(|error| {
        if is_there {
            return error.into();
        }
        Failure::usage(&error).next(
            "add the missing settings with --set SECTION.KEY=VALUE; they are written to the \
                                     file too",
        )
    })?;
    if is_there {
        refuse_unwritten(&sources, &loaded, &file)?;
    }
    let settings = loaded.of_init();
    let is_written = !is_there && !loaded.named_chain().is_empty();
    let untold = if is_written { None } else { untold(&loaded, &file) };
    let (named, surroundings) = (place::named(&loaded), place::surroundings(&sources, &loaded));
    let file = (!is_there && !settings.is_empty()).then_some((file, settings));
    Ok(Plan { config: loaded.config, file, named, surroundings, untold })
}

/// Refuses what flags say and a file that is there does not: after this command it would not hold.
fn refuse_unwritten(sources: &Sources, loaded: &Loaded, file: &Path) -> Result<(), Failure> {
    let without = config::load(&Sources { set: Vec::new(), ..sources.clone() })?;
    let Some((name, value)) = loaded.only_by_flag(&without) else { return Ok(()) };
    Err(Failure::usage(format!("{} already exists, and this program does not change it", file.display()))
        .next(format!("write {name} = \"{value}\" into it, then run this command again without that option")))
}

/// Tells that the chain is named by the environment and not written: a start without the variable is refused, or is on
/// the chain of the file.
fn untold(loaded: &Loaded, file: &Path) -> Option<String> {
    let SettingOrigin::Variable(variable) = loaded.origin("chain.preset") else { return None };
    Some(format!(
        "The chain comes from {variable} and is not written to a file. Set the variable at every start, or write the \
         chain into {}.",
        file.display()
    ))
}

/// Returns whether a wallet is made of which nobody has decided anything elsewhere.
fn is_first(sources: &Sources, found: &Loaded) -> bool {
    !sources.surroundings.is_container && !Wallet::exists(&found.config.node.data_dir)
}

fn no_chain() -> Failure {
    Failure::usage("no chain is chosen (chain.preset), and there is no terminal to ask on").next(
        "choose with `farthing init --chain base-sepolia` (test money), `--chain base` (real money) or `--chain \
         local`; --data FOLDER sets its folder and --listen IP the address it listens on",
    )
}

/// The refusal of a setting that is another one elsewhere: a file that is written would not hold, or not for long.
fn otherwise(found: &Loaded, name: &str, wanted: &str) -> Failure {
    Failure::usage(found.problem(name, &format!("is already set there to another value than {wanted}")))
        .next("change it there, or leave the option out here")
}

/// Makes all of it. If only a part can be made, the error says that the wallet is there.
fn make(plan: &Plan) -> anyhow::Result<InitOutcome> {
    let data_dir = &plan.config.node.data_dir;
    let had_wallet = Wallet::exists(data_dir);
    make_parts(plan).map_err(|error| match !had_wallet && Wallet::exists(data_dir) {
        true => error.context(format!(
            "your node is not complete. Its new wallet is in {} already, and the next `farthing init` continues with it",
            data_dir.display()
        )),
        false => error,
    })
}

fn make_parts(plan: &Plan) -> anyhow::Result<InitOutcome> {
    let Plan { config, file, .. } = plan;
    let data_dir = &config.node.data_dir;
    let locked = LockedHome::lock(data_dir)?;
    if let Some((path, settings)) = file {
        // Before the wallet: whoever has one knows its chain.
        settings.create(path).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    let opened = Home::open(config, locked)?.opened;
    let ca_file = match config.gateway.tls_mode() {
        config::TlsMode::OwnAuthority => tls::own(data_dir, &config.hosts())?.ca_file,
        _ => None,
    };
    Ok(InitOutcome {
        address: opened.wallet.address().to_string(),
        data_dir: data_dir.display().to_string(),
        chain: chain_spec::in_words(&chain_spec::chain_spec(config)?),
        created: opened.created,
        settings: file.as_ref().map(|(path, _)| path.display().to_string()),
        ca_file: ca_file.map(|path| path.display().to_string()),
    })
}

#[cfg(test)]
mod tests;
