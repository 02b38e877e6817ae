//! `farthing net`: the other nodes.

use super::{Context, args, failure::Failure, output::table};
use crate::control::types::{Peer, PingRequest, Pong, route};

pub(super) async fn net(context: &Context, verb: args::Net) -> Result<(), Failure> {
    let node = context.node()?;
    match verb {
        args::Net::Peers => {
            let peers: Vec<Peer> = node.get(route::PEERS).await?;
            context.output.data(&peers, |peers| list(peers))
        }
        args::Net::Ping { wallet } => {
            let pong: Pong = node.post(route::PING, &PingRequest { wallet: wallet.into() }).await?;
            context.output.data(&pong, |pong| format!("{} ms  {}", millis(pong.rtt_us), pong.address))
        }
    }
}

fn list(peers: &[Peer]) -> String {
    let row = |peer: &Peer| {
        let rtt = peer.rtt_us.map_or_else(|| "-".into(), |rtt_us| format!("{} ms", millis(rtt_us)));
        [peer.wallet.to_string(), rtt, peer.address.clone(), peer.agent.clone()]
    };
    table(["WALLET", "ROUND TRIP", "ADDRESS", "AGENT"], peers.iter().map(row))
}

fn millis(micros: u64) -> String {
    format!("{}.{:03}", micros / 1000, micros % 1000)
}
