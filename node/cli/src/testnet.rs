//! `farthing testnet`: a whole network, as processes of this machine or in containers.

use std::path::PathBuf;

use super::{
    Context,
    failure::{Exit, Failure},
};
use clap::{Args, Subcommand};
use farthing_testnet::{
    demo, down,
    prepare::{self, Market},
};

#[derive(Debug, Subcommand)]
pub enum Testnet {
    /// Start a chain, two owners with one service each, a consumer and a web application that buys; runs until Ctrl-C
    Up,
    /// Stop the test network that `testnet up` started on this machine
    Down,
    /// Run a demonstration with paid calls, then stop everything
    Demo {
        /// Write the figures to a file
        #[arg(long, value_name = "FILE")]
        report: Option<PathBuf>,
    },
    /// Fund nodes that already run, publish the demo's services, and keep both so
    Prepare(Prepare),
    /// Exit with 0 if an HTTP server answers; for containers
    Probe {
        /// Such as http://127.0.0.1:4001/openapi.json
        url: String,
    },
}

/// The defaults are the names in deploy/compose.testnet.yaml.
#[derive(Debug, Args)]
pub struct Prepare {
    /// JSON-RPC of an anvil chain
    #[arg(long, value_name = "URL", default_value = "http://chain:8545")]
    pub rpc_url: String,
    /// Folder of the nodes' data folders: bootstrap, neighbour, earthquake-owner, planet-owner, consumer
    #[arg(long, value_name = "FOLDER", default_value = "/nodes")]
    pub nodes: PathBuf,
    /// Address at which the owner of the earthquake service reaches its server
    #[arg(long, value_name = "URL", default_value = "http://earthquakes:4001")]
    pub earthquakes_url: String,
    /// Address at which the owner of the planet service reaches its server
    #[arg(long, value_name = "URL", default_value = "http://exoplanets:4002")]
    pub planets_url: String,
    /// Address at which people reach the consumer's gateway
    #[arg(long, value_name = "URL", default_value = "https://localhost:3000")]
    pub gateway_url: String,
    /// Address at which people reach the consumer's console
    #[arg(long, value_name = "URL", default_value = "https://localhost:3002/panel")]
    pub panel_url: String,
    /// Only report whether everything is ready
    #[arg(long)]
    pub check: bool,
}

pub(super) async fn testnet(context: &Context, verb: Testnet) -> Result<(), Failure> {
    if matches!(verb, Testnet::Up | Testnet::Demo { .. }) {
        refuse_settings(context)?;
    }
    match verb {
        Testnet::Up => demo::up().await?,
        Testnet::Down => {
            let said = match down::down().await? {
                0 => "No test network of yours runs on this machine. To stop one in containers, use `docker compose -f \
                      deploy/compose.testnet.yaml down -v`."
                    .to_owned(),
                1 => "The test network has stopped.".to_owned(),
                ended => format!("{ended} test networks have stopped."),
            };
            context.output.prose(&said);
        }
        Testnet::Demo { report } => drop(demo::run(report.as_deref()).await?),
        Testnet::Prepare(arguments) => {
            let check = arguments.check;
            let market = Market {
                rpc_url: arguments.rpc_url,
                nodes: arguments.nodes,
                earthquakes_url: arguments.earthquakes_url,
                planets_url: arguments.planets_url,
                gateway_url: arguments.gateway_url,
                panel_url: arguments.panel_url,
            };
            if check { prepare::check(&market).await? } else { prepare::prepare(&market).await? }
        }
        Testnet::Probe { url } => {
            prepare::probe(&url)
                .await
                .map_err(|error| Failure::new(Exit::Unreachable, format!("{error:#}")))?;
        }
    }
    Ok(())
}

/// The options of a node's own commands would do nothing here, and whoever gives one expects something of it.
fn refuse_settings(context: &Context) -> Result<(), Failure> {
    let global = &context.global;
    let given = [
        ("--data", global.data.is_some()),
        ("--config", global.config.is_some()),
        ("--set", !global.set.is_empty()),
    ];
    let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
    let text = format!(
        "a test network does not take {option}: its nodes use temporary folders and their own settings, which `testnet \
         up` prints"
    );
    Err(Failure::usage(text).next("leave it out"))
}

#[cfg(test)]
mod tests {
    use farthing_config::{Sources, load};
    use farthing_protocol::Address;
    use farthing_testnet::demo::join::settings;

    #[test]
    fn the_settings_for_a_newcomer_are_settings_of_a_node() {
        let folder = tempfile::tempdir().unwrap();
        let bootstrap = ["/ip4/127.0.0.1/tcp/4001".to_owned(), "/ip4/127.0.0.1/tcp/4002".to_owned()];
        let text = settings("http://127.0.0.1:8545", Address::from_bytes([7; 20]), &bootstrap);
        std::fs::write(folder.path().join("farthing.toml"), text).unwrap();
        let sources = Sources { data_dir: Some(folder.path().to_owned()), ..Sources::default() };
        let config = load(&sources).unwrap().config;
        assert_eq!(config.network.bootstrap, bootstrap);
        assert!(config.network.allow_private);
        assert_eq!(config.chain.preset, "local");
    }
}
