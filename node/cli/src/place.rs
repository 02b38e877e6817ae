//! The place of a node: its folder, as commands name it, and the surroundings that its defaults follow.

use std::path::Path;

use farthing_config::{Loaded, NodeFolder, Sources, public_chain_id};
use farthing_node::home;
use farthing_os::shell::word;
use farthing_wallet::Wallet;

/// ` --data …` where a command on this node needs it.
pub(super) fn named(loaded: &Loaded) -> String {
    data_flag(&loaded.config.node.data_dir, loaded.is_chosen("node.data_dir"))
}

/// The same of a folder that was found without the settings.
pub(super) fn named_folder(folder: &NodeFolder) -> String {
    data_flag(&folder.path, folder.is_chosen)
}

fn data_flag(path: &Path, is_chosen: bool) -> String {
    if is_chosen { format!(" --data {}", word(path)) } else { String::new() }
}

/// Returns whether the node has a chain: one that was chosen, or the default one where the node has been on no other.
pub(super) fn has_chain(loaded: &Loaded) -> bool {
    let (data_dir, chain) = (&loaded.config.node.data_dir, &loaded.config.chain.preset);
    let goes_on =
        || Wallet::exists(data_dir) && home::chains(data_dir).into_iter().eq(public_chain_id(chain));
    loaded.is_chosen("chain.preset") || goes_on()
}

/// Says what the program takes its surroundings for, what follows from it, and how to choose otherwise.
pub(super) fn surroundings(sources: &Sources, loaded: &Loaded) -> String {
    let (gateway, console) = (loaded.config.gateway.listen, loaded.config.panel.listen);
    let (taken_for, follows, otherwise) = if sources.surroundings.is_container {
        (
            "a container for the node only",
            "the folder is /data, and the gateway and the console listen on all networks",
            "If you use this container like a machine, set FARTHING_CONTAINER=false",
        )
    } else {
        (
            "a machine, not a container",
            "the folder is your own, and only programs on this machine reach the gateway and the console",
            "If this is a container for the node only, set FARTHING_CONTAINER=true",
        )
    };
    format!(
        "The program treats this as {taken_for}: unless a setting says otherwise, {follows}. Here the gateway listens \
         on {gateway} and the console on {console}. {otherwise}."
    )
}
