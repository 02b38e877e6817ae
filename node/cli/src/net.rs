//! `farthing net`: the other nodes.

use super::{
    Context,
    failure::{Exit, Failure},
    output::{millis, table},
};
use clap::Subcommand;
use farthing_control::endpoint;
use farthing_control::types::{
    Lookup, LookupRecord, LookupRequest, LookupStep, Peer, PingRequest, Reach, ReachedAddress, Traffic,
};
use farthing_protocol::Address;

#[derive(Debug, Subcommand)]
pub enum Net {
    /// List connected nodes
    Peers,
    /// Measure the round-trip time to a node
    Ping {
        /// Its wallet's address, 0x…
        wallet: Address,
    },
    /// Look up a node and show the result of each step
    Lookup {
        /// Its wallet's address, 0x…
        wallet: Address,
    },
    /// Test whether other nodes can connect to this one, at most once a minute; exits with 1 if none can, even through
    /// a relay
    Reach,
    /// Show bytes sent to and received from other nodes
    Traffic,
}

const NO_RECORD: &str = "no record found";

pub(super) async fn net(context: &Context, verb: Net) -> Result<(), Failure> {
    let node = context.node()?;
    match verb {
        Net::Peers => {
            let peers = node.ask(endpoint::Peers).await?;
            if peers.is_empty() {
                context.output.prose("No node is connected. `farthing doctor` shows why.");
            }
            context.output.data(&peers, |peers| list(peers))
        }
        Net::Reach => {
            let reach = node.ask(endpoint::TestReach).await?;
            context.output.data(&reach, reached)?;
            if reach.reachable || !reach.relays.is_empty() {
                return Ok(());
            }
            Err(Failure::told(Exit::Failure, "no node could connect to this one".to_owned()))
        }
        Net::Traffic => {
            let traffic = node.ask(endpoint::Traffic).await?;
            context.output.data(&traffic, |traffic| travelled(*traffic))
        }
        Net::Ping { wallet } => {
            let pong = node.tell(endpoint::Ping, &PingRequest { wallet: wallet.into() }).await?;
            context.output.data(&pong, |pong| format!("{} ms  {}", millis(pong.rtt_us), pong.address))
        }
        Net::Lookup { wallet } => {
            let lookup = node.tell(endpoint::Lookup, &LookupRequest { wallet: wallet.into() }).await?;
            context.output.data(&lookup, told)?;
            verdict(&lookup)
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

fn told(lookup: &Lookup) -> String {
    let row = |step: &LookupStep| {
        let mark = if step.helped { "yes" } else { "-" };
        [step.name.clone(), format!("{} ms", millis(step.took_us)), mark.to_owned(), step.outcome.clone()]
    };
    let steps = table(["STEP", "TOOK", "HELPED", "OUTCOME"], lookup.steps.iter().map(row));
    let found = match (&lookup.record, verdict(lookup)) {
        (_, Err(failure)) => failure.to_string(),
        (Some(record), _) if !record.addresses.is_empty() => {
            format!("record {}: {}", record.seq, record.addresses.join(", "))
        }
        (Some(record), _) => format!("record {} has no address", record.seq),
        (None, _) => NO_RECORD.to_owned(),
    };
    format!("{steps}\n{found}")
}

/// Fails with what keeps the wallet's node from being called, according to the look-up.
fn verdict(lookup: &Lookup) -> Result<(), Failure> {
    let failed = |what: String| Failure::told(Exit::Failure, what);
    Err(match &lookup.record {
        _ if lookup.connected => return Ok(()),
        None => failed(NO_RECORD.to_owned()).next("its node may be offline or on another network"),
        Some(LookupRecord { seq, amiss: Some(amiss), .. }) => {
            failed(format!("the newest record, {seq}, {amiss}"))
        }
        Some(record) if record.addresses.is_empty() => failed(format!(
            "record {} has no address: its node calls others and cannot be called",
            record.seq
        )),
        Some(record) => {
            let addresses = record.addresses.join(", ");
            failed(format!("record {} has {addresses}, but the node was not reached there", record.seq))
                .next("its owner can check with `farthing net reach`")
        }
    })
}

/// The sentence, the addresses, and why peers did not come through.
fn reached(reach: &Reach) -> String {
    let row = |address: &ReachedAddress| {
        let published = if address.published { "yes" } else { "no" };
        [
            address.address.clone(),
            address.source.clone(),
            address.state.name().replace('_', " "),
            format!("{} of {}", address.arrived, address.asked),
            published.to_owned(),
        ]
    };
    let mut lines = vec![reach.summary.clone()];
    if !reach.addresses.is_empty() {
        let heads = ["ADDRESS", "SOURCE", "STATE", "PEERS", "PUBLISHED"];
        lines.push(String::new());
        lines.push(table(heads, reach.addresses.iter().map(row)));
    }
    for address in &reach.addresses {
        for failure in &address.failures {
            lines.push(format!("{} by {}: {}", address.address, failure.wallet, failure.reason));
        }
    }
    lines.join("\n")
}

fn travelled(traffic: Traffic) -> String {
    let row = |name: &str, bytes: u64, pace: u64| [name.to_owned(), bytes.to_string(), pace.to_string()];
    table(
        ["DIRECTION", "BYTES", "BYTES/S"],
        [
            row("sent", traffic.sent_bytes, traffic.sent_bytes_per_sec),
            row("received", traffic.received_bytes, traffic.received_bytes_per_sec),
        ],
    )
}
