//! `farthing config`: what holds, where it comes from, and what is wrong with it.

use clap::Subcommand;
use farthing_bridge::nearest;
use farthing_config::{ConfigError, ConfigProblem, Loaded, Shown, example, load};
use farthing_network::{AddressUse, check_address};

use super::{
    Context,
    failure::{Exit, Failure},
    output::table,
};

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
            context.output.prose("The configuration is right.");
            Ok(())
        }
        Config::Get { name } => {
            let shown = load(&context.sources())?.shown();
            let found = shown.iter().find(|shown| shown.name == name).ok_or_else(|| unknown(name, &shown))?;
            context.output.data(&found.value, ToString::to_string)
        }
        Config::Show { origin } => {
            let shown = load(&context.sources())?.shown();
            context.output.data(&shown, |shown| text(shown, *origin))
        }
    }
}

/// The failure to find a setting: it may have another name.
fn unknown(name: &str, shown: &[Shown]) -> Failure {
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

fn text(shown: &[Shown], origin: bool) -> String {
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
        let shown = load(&sources).unwrap().shown();
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
}
