//! Help for a newcomer who joins the demo's network with a node of their own: settings, and where money comes from.

use std::path::Path;

use farthing_os::shell::word;
use farthing_values::Address;

use crate::anvil::Anvil;

/// The settings of a node of this machine, as its `farthing.toml`. Its ports are any that are free, because the
/// demo's consumer may have the usual ones.
pub fn settings(rpc_url: &str, token: Address, bootstrap: &[String]) -> String {
    let bootstrap: Vec<String> = bootstrap.iter().map(|address| format!("{address:?}")).collect();
    format!(
        "[chain]\npreset = \"local\"\nrpc_urls = [{rpc_url:?}]\nchain_id = {}\ntoken = \"{token}\"\n\n\
         [network]\nlisten = [\"/ip4/127.0.0.1/tcp/0\", \"/ip4/127.0.0.1/udp/0/quic-v1\"]\n\
         allow_private = true\nbootstrap = [{}]\n\n\
         [gateway]\nlisten = \"127.0.0.1:0\"\n\n[panel]\nlisten = \"127.0.0.1:0\"",
        Anvil::CHAIN_ID,
        bootstrap.join(", "),
    )
}

/// Writes the commands that run the newcomer's node, and that give it test money out of the consumer's wallet.
pub(super) fn commands(program: &Path, consumer: &Path) -> String {
    let (program, consumer) = (word(program), word(consumer));
    let send = format!(
        "{program} wallet send \"$({program} wallet address --data my-node)\" --yes --data {consumer}"
    );
    format!("{program} run --new --data my-node\n{send} --usdc 2\n{send} --eth 0.1")
}
