//! A first start, which makes a wallet: its chain and its folder have to be meant.

use farthing_config::Loaded;

use crate::failure::Failure;

/// Allows a first start outside of a container. With a folder that was mistyped it would make a second, empty wallet, and
/// without a chain that was chosen one for real money. A container's folder is mounted, and its chain set, by whoever runs
/// it, often long before it starts.
///
/// # Errors
/// What is not meant yet, and the commands that say it.
pub(super) fn allow(loaded: &Loaded, new: bool) -> Result<(), Failure> {
    let data_dir = loaded.config.node.data_dir.display();
    let is_named = loaded.is_chosen("node.data_dir");
    let named = if is_named { format!(" --data {data_dir}") } else { String::new() };
    if !loaded.is_chosen("chain.preset") {
        let what = format!("{data_dir} has no wallet yet, and no chain is chosen for it");
        return Err(Failure::usage(what).next(format!(
            "`farthing init{named}` asks for the chain and makes the wallet; if there should be one, name its folder with \
             --data"
        )));
    }
    if is_named && !new {
        return Err(Failure::usage(format!("{data_dir} has no wallet")).next(format!(
            "if it is the right folder, `farthing init{named}` or `farthing run --new{named}` makes a wallet there; \
             otherwise name the right one"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use farthing_config::{Sources, Surroundings, load};

    use super::*;
    use crate::failure::Exit;

    /// The refusal of a first start with these sources, where there is one.
    fn refused(is_named: bool, chain: Option<&str>, new: bool) -> Option<String> {
        let folder = PathBuf::from("/nowhere/farthing");
        let sources = Sources {
            data_dir: is_named.then(|| folder.clone()),
            set: chain.map(|chain| format!("chain.preset={chain}")).into_iter().collect(),
            surroundings: Surroundings { is_container: false, data_dir: Some(folder) },
            ..Sources::default()
        };
        let refused = allow(&load(&sources).unwrap(), new).err()?;
        assert_eq!(refused.exit, Exit::Usage);
        Some(refused.to_string())
    }

    #[test]
    fn a_first_start_needs_a_chain_that_was_chosen_and_a_folder_that_is_meant() {
        for (is_named, new) in [(false, false), (false, true), (true, false), (true, true)] {
            let told = refused(is_named, None, new).unwrap();
            assert!(told.contains("no chain is chosen"), "{told}");
            assert_eq!(told.contains("`farthing init --data /nowhere/farthing`"), is_named, "{told}");
        }
        // The default of the setting is a choice like any other, once it is made.
        for chain in ["base", "base-sepolia"] {
            assert_eq!(refused(false, Some(chain), false), None, "nobody can mistype what is not typed");
            assert_eq!(refused(true, Some(chain), true), None);
            let told = refused(true, Some(chain), false).unwrap();
            assert!(told.contains("/nowhere/farthing has no wallet;"), "{told}");
            assert!(told.contains("`farthing run --new --data /nowhere/farthing`"), "{told}");
        }
    }
}
