//! `farthing channel` and `farthing settle`: the money between two nodes.

use super::{
    Context,
    failure::Failure,
    output::table,
    pick::{self, ChannelName, ServiceName},
};
use clap::Subcommand;
use farthing_control::{
    ControlClient, endpoint, sentence,
    types::{self, AlertKind, OpenRequest, RefusedClaim, Text},
};
use farthing_os::clock;
use farthing_protocol::{ChannelId, Usdc};

#[derive(Debug, Subcommand)]
pub enum Channel {
    /// List the channels on which you pay and are paid
    List,
    /// Open a channel with a service's owner
    Open {
        /// Service: its name, its UUID from `farthing catalog search`, or the first digits of the UUID
        service: ServiceName,
        /// Deposit in USDC; by default as [spending] says
        #[arg(long, value_name = "USDC")]
        deposit: Option<Usdc>,
    },
    /// Close a channel
    Close {
        /// Id from `farthing channel list`, or its first digits
        channel: ChannelName,
        /// Close on the chain without asking the owner; the deposit comes back after the channel's delay
        #[arg(long)]
        force: bool,
        /// Send nothing: print a signed request to close, which anybody with ETH can send to the contract within a day
        #[arg(long, conflicts_with = "force")]
        signed: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Buy again from an owner after its stopped channel was closed; you accept the loss on that channel
    Resume {
        /// Id from `farthing channel list`, or its first digits
        channel: ChannelName,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

pub(super) async fn channel(context: &Context, verb: Channel) -> Result<(), Failure> {
    let node = context.node()?;
    let channels: Vec<types::Channel> = match verb {
        Channel::List => {
            let channels = node.ask(endpoint::Channels).await?;
            let elsewhere = elsewhere(&node).await?;
            for told in &elsewhere {
                context.output.prose(told);
            }
            if channels.is_empty() && elsewhere.is_empty() {
                context.output.prose("No channels yet. The first paid call to an owner opens one.");
            }
            channels
        }
        Channel::Open { service, deposit } => {
            let service = pick::of_network(context, &node, service).await?;
            context.output.prose("Opening the channel. Waiting for the chain to confirm the deposit.");
            let request = OpenRequest { service: service.into(), deposit: deposit.map(Text) };
            vec![node.tell(endpoint::OpenChannel, &request).await?]
        }
        Channel::Close { channel, force, signed, yes } => {
            let channel = pick::channel(&node, channel).await?;
            if !yes {
                confirm_close(context, &node, channel).await?;
            }
            if signed {
                return sign_close(context, &node, channel).await;
            }
            vec![node.ask(endpoint::CloseChannel.of(channel).with("force", force)).await?]
        }
        Channel::Resume { channel, yes } => {
            let channel = pick::channel(&node, channel).await?;
            if !yes {
                confirm_resume(context, &node, channel).await?;
            }
            vec![node.ask(endpoint::ResumeChannel.of(channel)).await?]
        }
    };
    context.output.data(&channels, |channels| list(channels))
}

/// Prints the two transactions that close a channel without this wallet's ETH: JSON in both forms of output, because it is handed on.
async fn sign_close(context: &Context, node: &ControlClient, channel: ChannelId) -> Result<(), Failure> {
    let signed = node.ask(endpoint::SignClose.of(channel)).await?;
    context.output.data(&signed, |signed| serde_json::to_string_pretty(signed).unwrap_or_default())?;
    context.output.prose(&format!(
        "Anybody can send a transaction with `request_data` to the contract until {}. From {} s after its block on, anybody \
         can send one with `withdraw_data`. The rest of the deposit then comes back to this wallet.",
        clock::timestamp(signed.deadline_secs),
        signed.close_delay_secs
    ));
    Ok(())
}

/// Asks before a channel ends. About one that is not there, or is closed, the node has the word.
async fn confirm_close(context: &Context, node: &ControlClient, channel: ChannelId) -> Result<(), Failure> {
    let channels = node.ask(endpoint::Channels).await?;
    let open = channels.iter().find(|one| one.id.0 == channel && !one.state.is_closed());
    open.map_or(Ok(()), |open| {
        context.output.confirm(&format!(
            "Close the channel with {} ({} USDC deposited, {} spent)? The next call opens a new one, which costs \
             another transaction.",
            open.peer, open.deposited, open.spent
        ))
    })
}

/// Asks before an owner is trusted again. About a channel that is not stopped, or holds a deposit, the node has the word.
async fn confirm_resume(context: &Context, node: &ControlClient, channel: ChannelId) -> Result<(), Failure> {
    let channels = node.ask(endpoint::Channels).await?;
    let is_it = |one: &&types::Channel| one.id.0 == channel && one.stopped && one.state.is_closed();
    channels.iter().find(is_it).map_or(Ok(()), |_| {
        context.output.confirm(
            "This owner was paid for calls you did not make, or its answer did not match its receipt. Buy from it again?",
        )
    })
}

/// Tells of the money on channels that the settings do not reach, of which nothing is claimed or closed.
async fn elsewhere(node: &ControlClient) -> Result<Vec<String>, Failure> {
    let alerts = node.ask(endpoint::Alerts).await?;
    let told = alerts.into_iter().filter(|alert| alert.kind == AlertKind::MoneyElsewhere);
    Ok(told.map(|alert| sentence(&alert.line())).collect())
}

fn list(channels: &[types::Channel]) -> String {
    let row = |channel: &types::Channel| {
        [
            channel.id.to_string(),
            channel.role.to_string(),
            channel.peer.to_string(),
            channel.state_in_words(),
            channel.deposited.to_string(),
            channel.spent.to_string(),
            channel.claimed.to_string(),
        ]
    };
    table(["CHANNEL", "ROLE", "PEER", "STATE", "DEPOSITED", "SPENT", "CLAIMED"], channels.iter().map(row))
}

pub(super) async fn settle(context: &Context) -> Result<(), Failure> {
    context.output.prose("Claiming. If there is something to claim, this waits for the chain to confirm it.");
    let node = context.node()?;
    let settled = node.ask(endpoint::Settle).await?;
    let elsewhere = elsewhere(&node).await?;
    context.output.data(&settled, |settled| {
        let mut lines = elsewhere;
        if settled.transactions.is_empty() {
            return if lines.is_empty() { "nothing to claim".into() } else { lines.join("\n") };
        }
        lines.push(format!("{} USDC (channels: {})", settled.claimed, settled.channels));
        lines.extend(settled.transactions.iter().cloned());
        let refused = |refused: &RefusedClaim| format!("refused: {}: {}", refused.channel, refused.reason);
        lines.extend(settled.refused.iter().map(refused));
        lines.join("\n")
    })
}
