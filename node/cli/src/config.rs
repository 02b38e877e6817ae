//! `farthing config`: what holds, where it comes from, and what is wrong with it.

use clap::Subcommand;
use farthing_bridge::nearest;
use farthing_config::{ConfigError, ConfigProblem, EffectiveSetting, Loaded, ShownValue, example, load};
use farthing_control::types::{SettingOrigin, Text};
use farthing_network::{AddressUse, check_address};

use super::{
    Context,
    failure::{Exit, Failure},
    output::table,
    place,
};

const CHAIN: &str = "chain.preset";

#[derive(Debug, Subcommand)]
pub enum Config {
    /// List every setting
    Show {
        /// Show where each value comes from
        #[arg(long)]
        origin: bool,
    },
    /// Print one setting
    Get {
        /// Such as spending.per_day
        #[arg(value_name = "SECTION.KEY")]
        name: String,
    },
    /// Check the settings for mistakes
    Check,
    /// Print a commented farthing.toml
    Example,
}

pub(super) fn config(context: &Context, verb: &Config) -> Result<(), Failure> {
    match verb {
        Config::Example => context.output.text(&example()),
        Config::Check => {
            checked(load(&context.sources())?)?;
            context.output.prose("The configuration is valid.");
            Ok(())
        }
        Config::Get { name } => {
            let loaded = load(&context.sources())?;
            let shown = shown(&loaded);
            let found = shown.iter().find(|shown| shown.name == name).ok_or_else(|| unknown(name, &shown))?;
            context.output.data(&found.value, ToString::to_string)?;
            tell_no_chain(context, &loaded, name == CHAIN);
            Ok(())
        }
        Config::Show { origin } => {
            let loaded = load(&context.sources())?;
            context.output.data(&shown(&loaded), |shown| text(shown, *origin))?;
            tell_no_chain(context, &loaded, true);
            Ok(())
        }
    }
}

/// The settings as they hold. A chain that nobody chose holds for no start.
fn shown(loaded: &Loaded) -> Vec<EffectiveSetting> {
    let mut shown = loaded.shown();
    if !place::has_chain(loaded) {
        for chain in shown.iter_mut().filter(|shown| shown.name == CHAIN) {
            chain.value = ShownValue::Unset;
            chain.origin = Text(SettingOrigin::Unset);
        }
    }
    shown
}

/// Says that the chain has to be chosen, where `is_asked`.
fn tell_no_chain(context: &Context, loaded: &Loaded, is_asked: bool) {
    if is_asked && !place::has_chain(loaded) {
        let named = place::named(loaded);
        context.output.prose(&format!(
            "No chain is chosen yet, and the node does not start without one. Choose with `farthing init --chain \
             base-sepolia{named}` (test money) or `farthing init --chain base{named}` (real money)."
        ));
    }
}

/// The failure to find a setting: it may have another name.
fn unknown(name: &str, shown: &[EffectiveSetting]) -> Failure {
    let meant = nearest(name, shown.iter().map(|shown| shown.name));
    let failure = Failure::new(Exit::Failure, format!("{name} is not a setting"));
    match meant {
        Some(meant) => failure.next(format!("did you mean {meant}?")),
        None => failure.next("`farthing config show` lists them"),
    }
}

/// Checks the addresses in the network's settings as well: a start refuses those that are wrong.
///
/// # Errors
/// Every address that cannot be what it is configured for.
pub(super) fn checked(loaded: Loaded) -> Result<Loaded, ConfigError> {
    let network = &loaded.config.network;
    let settings = [
        (AddressUse::Listen, &network.listen),
        (AddressUse::Announce, &network.announce),
        (AddressUse::Bootstrap, &network.bootstrap),
        (AddressUse::Entrance, &network.rendezvous_entrance),
    ];
    let problem = |usage: AddressUse, address: &String| {
        let problem = check_address(address, usage, network.allow_private).err()?;
        Some(loaded.problem(&format!("network.{}", usage.setting()), &problem))
    };
    let of_setting = |(usage, addresses): (AddressUse, &Vec<String>)| -> Vec<ConfigProblem> {
        addresses.iter().filter_map(|address| problem(usage, address)).collect()
    };
    let problems: Vec<ConfigProblem> = settings.into_iter().flat_map(of_setting).collect();
    if problems.is_empty() { Ok(loaded) } else { Err(ConfigError(problems)) }
}

fn text(shown: &[EffectiveSetting], origin: bool) -> String {
    if origin {
        let rows = shown
            .iter()
            .map(|shown| [shown.name.to_owned(), shown.value.to_string(), shown.origin.to_string()]);
        return table(["SETTING", "VALUE", "ORIGIN"], rows);
    }
    table(["SETTING", "VALUE"], shown.iter().map(|shown| [shown.name.to_owned(), shown.value.to_string()]))
}

#[cfg(test)]
mod tests {
    use farthing_config::Sources;

    use super::*;

    #[test]
    fn a_setting_that_does_not_exist_is_told_with_the_nearest_that_does() {
        let folder = tempfile::tempdir().unwrap();
        let sources = Sources { data_dir: Some(folder.path().to_owned()), ..Sources::default() };
        let shown = shown(&load(&sources).unwrap());
        for (name, next) in [
            ("spending.per_dya", "; did you mean spending.per_day?"),
            ("gatway.listen", "; did you mean gateway.listen?"),
            ("colour", ". `farthing config show` lists them."),
        ] {
            let failure = unknown(name, &shown);
            assert_eq!(failure.exit, Exit::Failure);
            assert_eq!(failure.to_string(), format!("{name} is not a setting{next}"));
        }
    }

    #[test]
    fn a_chain_that_nobody_chose_is_not_shown_as_the_one_of_the_default() {
        let folder = tempfile::tempdir().unwrap();
        let chain = |set: &[&str]| {
            let sources = Sources {
                data_dir: Some(folder.path().to_owned()),
                set: set.iter().map(ToString::to_string).collect(),
                ..Sources::default()
            };
            let shown = shown(&load(&sources).unwrap());
            let found = shown.into_iter().find(|shown| shown.name == CHAIN).unwrap();
            (found.value.to_string(), found.origin.to_string())
        };
        assert_eq!(chain(&[]), (String::new(), "unset".to_owned()));
        assert_eq!(chain(&["chain.preset=base"]), ("base".to_owned(), "flag --set".to_owned()));
        std::fs::write(folder.path().join("wallet.json"), "{}").unwrap();
        assert_eq!(chain(&[]).0, "", "its wallet was on no chain");
        std::fs::create_dir_all(folder.path().join("networks/8453")).unwrap();
        assert_eq!(
            chain(&[]),
            ("base".to_owned(), "default".to_owned()),
            "it goes on on the only one it was on"
        );
    }
}
