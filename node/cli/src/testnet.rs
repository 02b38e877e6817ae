//! `farthing testnet`: a whole network, as processes of this machine or in containers.

use super::{
    Context, args,
    failure::{Exit, Failure},
};
use farthing_testnet::{
    demo, down,
    prepare::{self, Market},
};

pub(super) async fn testnet(context: &Context, verb: args::Testnet) -> Result<(), Failure> {
    if matches!(verb, args::Testnet::Up | args::Testnet::Demo { .. }) {
        refuse_settings(context)?;
    }
    match verb {
        args::Testnet::Up => demo::up().await?,
        args::Testnet::Down => {
            let said = match down::down().await? {
                0 => "No test network of yours runs on this machine. One in containers ends with \
                      `docker compose -f deploy/compose.testnet.yaml down -v`."
                    .to_owned(),
                1 => "The test network has stopped.".to_owned(),
                ended => format!("{ended} test networks have stopped."),
            };
            context.output.prose(&said);
        }
        args::Testnet::Demo { report } => drop(demo::run(report.as_deref()).await?),
        args::Testnet::Prepare(arguments) => {
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
        args::Testnet::Probe { url } => {
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
        "a test network does not take {option}: its nodes live in temporary folders of their own, with settings of \
         their own, which `testnet up` prints"
    );
    Err(Failure::usage(text).next("leave it out"))
}

#[cfg(test)]
mod tests {
    use farthing_node::config::{Sources, load};
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
