//! The place of a node: its folder, as commands name it, and the surroundings that its defaults follow.

use farthing_config::{Loaded, Sources};
use farthing_os::shell::word;

/// ` --data …` where a command on this node needs it.
pub(super) fn named(loaded: &Loaded) -> String {
    if loaded.is_chosen("node.data_dir") {
        format!(" --data {}", word(&loaded.config.node.data_dir))
    } else {
        String::new()
    }
}

/// Says what the program takes its surroundings for, what follows from it, and how to choose otherwise.
pub(super) fn surroundings(sources: &Sources, loaded: &Loaded) -> String {
    let (gateway, console) = (loaded.config.gateway.listen, loaded.config.panel.listen);
    let (taken_for, follows, otherwise) = if sources.surroundings.is_container {
        (
            "a container for the node alone",
            "the folder is /data, and gateway and console listen on all networks",
            "If you work in this container as on a machine, set FARTHING_CONTAINER=false",
        )
    } else {
        (
            "a machine, and no container",
            "the folder is your own, and only programs of this machine reach gateway and console",
            "If this is a container for the node alone, set FARTHING_CONTAINER=true",
        )
    };
    format!(
        "This counts as {taken_for}: unless a setting says otherwise, {follows}. Here the gateway listens on {gateway}, \
         the console on {console}. {otherwise}."
    )
}
