//! `farthing testnet`: a whole network, as processes of this machine or in containers.

use super::{
    args,
    failure::{Exit, Failure},
};
use crate::testnet::{
    demo,
    prepare::{self, Market},
};

pub(super) async fn testnet(verb: args::Testnet) -> Result<(), Failure> {
    match verb {
        args::Testnet::Up => demo::up().await?,
        args::Testnet::Demo { report } => drop(demo::run(report.as_deref()).await?),
        args::Testnet::Prepare(arguments) => {
            let check = arguments.check;
            let market = Market {
                rpc_url: arguments.rpc_url,
                nodes: arguments.nodes,
                earthquakes_url: arguments.earthquakes_url,
                planets_url: arguments.planets_url,
                gateway_url: arguments.gateway_url,
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
