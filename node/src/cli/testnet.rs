//! `farthing testnet`: a whole network, as processes of this machine or in containers.

use super::{
    Context, args,
    failure::{Exit, Failure},
};
use crate::testnet::{
    demo, down,
    prepare::{self, Market},
};

pub(super) async fn testnet(context: &Context, verb: args::Testnet) -> Result<(), Failure> {
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
