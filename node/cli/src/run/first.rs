//! The chain of a start, which has to be chosen, and a first start, which makes a wallet and so has to be meant.

use farthing_config::{Loaded, Sources, keys::CHAIN_PRESETS, public_chain_id};
use farthing_node::home;
use farthing_wallet::Wallet;

use crate::{
    failure::{Exit, Failure},
    place,
};

/// Allows a start. Without a chain that was chosen it might be on real money; a node of before that has only been on the
/// default one goes on there. With a folder that was mistyped it would make a second, empty wallet; a container's is mounted
/// by whoever runs it, often long before it starts.
///
/// # Errors
/// What is not meant yet, and the commands that say it.
pub(super) fn allow(sources: &Sources, loaded: &Loaded, new: bool) -> Result<(), Failure> {
    let data_dir = &loaded.config.node.data_dir;
    let has_wallet = Wallet::exists(data_dir);
    if !loaded.is_chosen("chain.preset") {
        let (chain, file) = (&loaded.config.chain.preset, sources.file_in(data_dir));
        if !place::has_chain(loaded) {
            return Err(no_chain(sources, loaded, has_wallet));
        }
        let file = file.display();
        tracing::warn!(
            chain, %file,
            "no setting names the chain; this node continues on the only chain it has used: write it into the file as \
             chain.preset"
        );
    }
    let is_named = loaded.is_chosen("node.data_dir");
    if has_wallet || new || !is_named || sources.surroundings.is_container {
        return Ok(());
    }
    let (folder, named) = (data_dir.display(), place::named(loaded));
    Err(Failure::usage(format!("{folder} has no wallet")).next(format!(
        "if the folder is right, create a wallet with `farthing init{named}` or `farthing run --new{named}`; otherwise \
         name the right folder. To continue with a backup, use `farthing backup restore FILE`"
    )))
}

/// The refusal of a start whose chain nobody chose.
fn no_chain(sources: &Sources, loaded: &Loaded, has_wallet: bool) -> Failure {
    let (data_dir, named) = (&loaded.config.node.data_dir, place::named(loaded));
    let folder = data_dir.display();
    let what = if has_wallet {
        let known = CHAIN_PRESETS.iter().filter(|name| {
            public_chain_id(name).is_some_and(|chain_id| home::chains(data_dir).contains(&chain_id))
        });
        let known: Vec<&str> = known.copied().collect();
        let before = if known.is_empty() {
            String::new()
        } else {
            format!("; it was on {} before", known.join(" and "))
        };
        format!("no chain is chosen for the node in {folder} (chain.preset){before}")
    } else {
        format!("{folder} has no wallet yet, and no chain is chosen for it (chain.preset)")
    };
    let file = sources.file_in(data_dir);
    let next = if sources.surroundings.is_container {
        "start the container with FARTHING_CHAIN__PRESET=base-sepolia (test money) or FARTHING_CHAIN__PRESET=base (real \
         money)"
            .to_owned()
    } else if file.exists() {
        let file = file.display();
        format!(
            "write preset = \"base-sepolia\" (test money) or preset = \"base\" (real money) under [chain] into {file}"
        )
    } else if has_wallet {
        format!(
            "`farthing init --chain base-sepolia{named}` (test money) or `farthing init --chain base{named}` (real money) \
             writes it into {}",
            file.display()
        )
    } else {
        format!(
            "`farthing init{named}` asks for the chain and creates the wallet; if you already have a wallet, name its \
             folder with --data"
        )
    };
    Failure::usage(what).next(format!("{next}. The chains are {}", CHAIN_PRESETS.join(", ")))
}

/// Writes a public chain by its name into the settings file of a first start, where there is none: the next start may not be
/// told the chain as this one was. A file that is there is never changed; the line that it lacks is told. A first start is one
/// that makes the wallet, or has one that was on no chain yet. The folder is locked.
///
/// # Errors
/// A folder or a file that cannot be written.
pub(super) fn write_chain(sources: &Sources, loaded: &Loaded) -> Result<(), Failure> {
    let data_dir = &loaded.config.node.data_dir;
    let (file, chain) = (sources.file_in(data_dir), loaded.named_chain());
    if chain.is_empty() {
        return Ok(());
    }
    if file.symlink_metadata().is_ok() {
        if let Some(line) = missing_line(loaded) {
            let file = file.display();
            tracing::warn!(
                %file, line,
                "the settings file does not have the chain of this start, so the next start may miss it: write this \
                 line into the file, under [chain]"
            );
        }
        return Ok(());
    }
    chain.create(&file).map_err(|error| {
        Failure::new(Exit::Failure, format!("{} cannot be written ({error})", file.display()))
            .next("check the folder and its owner")
    })?;
    tracing::info!(file = %file.display(), "the chain is written here, also for the next starts");
    Ok(())
}

/// The line of the chain that was named for this start, where nothing in the folder says it.
fn missing_line(loaded: &Loaded) -> Option<String> {
    let chain = &loaded.config.chain.preset;
    (!loaded.is_stored("chain.preset")).then(|| format!("preset = \"{chain}\""))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use farthing_config::{Surroundings, load};

    use super::*;

    fn sources(folder: &Path, is_named: bool, chain: Option<&str>, is_container: bool) -> Sources {
        Sources {
            data_dir: is_named.then(|| folder.to_owned()),
            set: chain.map(|chain| format!("chain.preset={chain}")).into_iter().collect(),
            surroundings: Surroundings { is_container, data_dir: Some(folder.to_owned()) },
            ..Sources::default()
        }
    }

    /// The refusal of a start with these sources, where there is one.
    fn refused(sources: &Sources, new: bool) -> Option<String> {
        let refused = allow(sources, &load(sources).unwrap(), new).err()?;
        assert_eq!(refused.exit, Exit::Usage);
        Some(refused.to_string())
    }

    #[test]
    fn a_first_start_needs_a_chain_that_was_chosen_and_a_folder_that_is_meant() {
        let of = |is_named, chain, is_container| {
            sources(Path::new("/nowhere/farthing"), is_named, chain, is_container)
        };
        for (is_named, new) in [(false, false), (false, true), (true, false), (true, true)] {
            let told = refused(&of(is_named, None, false), new).unwrap();
            assert!(told.contains("no chain is chosen"), "{told}");
            assert_eq!(told.contains("`farthing init --data /nowhere/farthing`"), is_named, "{told}");
            let told = refused(&of(is_named, None, true), new).unwrap();
            assert!(told.contains("FARTHING_CHAIN__PRESET=base-sepolia"), "{told}");
        }
        // The default of the setting is a choice like any other, once it is made.
        for chain in ["base", "base-sepolia"] {
            assert_eq!(
                refused(&of(false, Some(chain), false), false),
                None,
                "nobody can mistype what is not typed"
            );
            assert_eq!(refused(&of(true, Some(chain), true), false), None, "a container's folder is mounted");
            assert_eq!(refused(&of(true, Some(chain), false), true), None);
            let told = refused(&of(true, Some(chain), false), false).unwrap();
            assert!(told.contains("/nowhere/farthing has no wallet;"), "{told}");
            assert!(told.contains("`farthing run --new --data /nowhere/farthing`"), "{told}");
        }
    }

    #[test]
    fn a_wallet_without_a_chosen_chain_starts_only_where_it_has_been_on_the_default_one_alone() {
        let folder = tempfile::tempdir().unwrap();
        let networks = folder.path().join("networks");
        fs::write(folder.path().join("wallet.json"), "{}").unwrap();
        let told = || refused(&sources(folder.path(), true, None, false), true);
        let never_ran = told().unwrap();
        for words in
            ["chain.preset", "farthing init --chain base-sepolia --data ", "(real money)", "arbitrum, "]
        {
            assert!(never_ran.contains(words), "{words}: {never_ran}");
        }
        fs::create_dir_all(networks.join("8453")).unwrap();
        assert_eq!(told(), None, "it was on Base, by default, and goes on there");
        fs::create_dir(networks.join("lab-84532")).unwrap();
        assert!(told().unwrap().contains("it was on base and base-sepolia before"), "{:?}", told());
        fs::remove_dir(networks.join("8453")).unwrap();
        assert!(told().unwrap().contains("it was on base-sepolia before"), "{:?}", told());
        fs::write(folder.path().join("farthing.toml"), "").unwrap();
        let has_file = told().unwrap();
        assert!(has_file.contains("under [chain]") && !has_file.contains("farthing init"), "{has_file}");
        assert_eq!(refused(&sources(folder.path(), true, Some("base"), false), false), None);
    }

    #[test]
    fn a_first_start_writes_a_public_chain_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("farthing.toml");
        for chain in ["base-sepolia", "base"] {
            let sources = sources(folder.path(), true, Some(chain), false);
            write_chain(&sources, &load(&sources).unwrap()).unwrap();
            assert!(fs::read_to_string(&file).unwrap().contains("preset = \"base-sepolia\""));
        }
    }

    #[test]
    fn a_first_start_beside_a_settings_file_tells_the_line_that_it_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("farthing.toml");
        let of_flag = sources(folder.path(), true, Some("base"), false);
        let variables = vec![("FARTHING_CHAIN__PRESET".to_owned(), "base".to_owned())];
        let of_variable = Sources { variables, ..sources(folder.path(), true, None, false) };
        for (text, is_missing) in [
            ("[chain]\n", true),
            ("[chain]\npreset = \"base-sepolia\"\n", true),
            ("[chain]\npreset = \"base\"\n", false),
        ] {
            fs::write(&file, text).unwrap();
            for sources in [&of_flag, &of_variable] {
                let loaded = load(sources).unwrap();
                let line = missing_line(&loaded);
                assert_eq!(line.as_deref(), is_missing.then_some("preset = \"base\""), "{text}");
                write_chain(sources, &loaded).unwrap();
                assert_eq!(fs::read_to_string(&file).unwrap(), text, "it is never changed");
            }
        }
        fs::write(&file, "").unwrap();
        fs::write(folder.path().join("settings.toml"), "[chain]\npreset = \"base\"\n").unwrap();
        assert_eq!(missing_line(&load(&of_flag).unwrap()), None, "the console's file says it as well");
    }
}
