//! `farthing version`: what this program is, and the node that runs on the data folder.

use std::{
    env::consts::{ARCH, OS},
    time::Duration,
};

use farthing_control::endpoint;
use serde::Serialize;

use super::{Context, failure::Failure, output::pairs};

/// A node that takes longer does not hold up what this program knows by itself.
const NODE_WITHIN: Duration = Duration::from_secs(5);

/// The versions, as programs read them.
#[derive(Debug, Serialize)]
struct Versions {
    version: &'static str,
    /// Of the sources, where whoever built it named it in `FARTHING_COMMIT`.
    commit: Option<&'static str>,
    /// Such as `x86_64-linux`.
    platform: String,
    /// The running node's; `None` when none answers.
    node: Option<String>,
}

pub(super) async fn version(context: &Context) -> Result<(), Failure> {
    // Neither a mistake in the settings nor a missing node is asked about here.
    let node = match context.node() {
        Ok(node) => node.within(NODE_WITHIN).ask(endpoint::Status).await.ok().map(|status| status.version),
        Err(_) => None,
    };
    let versions = Versions {
        version: env!("CARGO_PKG_VERSION"),
        commit: option_env!("FARTHING_COMMIT"),
        platform: format!("{ARCH}-{OS}"),
        node,
    };
    context.output.data(&versions, text)?;
    if let Some(running) = other_node(&versions) {
        context.output.prose(&format!(
            "The running node is version {running}. To run this version, stop the node and start it again with this \
             program."
        ));
    }
    Ok(())
}

/// The running node's version, when it is not this program's.
fn other_node(versions: &Versions) -> Option<&str> {
    versions.node.as_deref().filter(|running| *running != versions.version)
}

fn text(versions: &Versions) -> String {
    let commit = versions.commit.map_or_else(String::new, |commit| format!(" ({commit})"));
    pairs([
        ("Program", format!("farthing {}{commit}", versions.version)),
        ("Platform", versions.platform.clone()),
        ("Running node", versions.node.clone().unwrap_or_else(|| "none answers".to_owned())),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_of_another_version_is_told_of() {
        let with = |node: Option<&str>| Versions {
            version: "1.2.0",
            commit: Some("0123abc"),
            platform: "x86_64-linux".to_owned(),
            node: node.map(str::to_owned),
        };
        assert_eq!(other_node(&with(None)), None);
        assert_eq!(other_node(&with(Some("1.2.0"))), None);
        assert_eq!(other_node(&with(Some("1.1.9"))), Some("1.1.9"));
        let shown = text(&with(None));
        assert!(shown.contains("farthing 1.2.0 (0123abc)") && shown.contains("none answers"), "{shown}");
    }
}
