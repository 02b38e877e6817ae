//! The end of a soak: every owner settles, every consumer closes its channels, and all books are compared: of each pair, call
//! by call; with what the scripts were told; and with the chain.

use std::{cell::Cell, time::Duration};

use anyhow::{Context, Result};
use farthing_control::{
    endpoint,
    types::{ChannelRole, ChannelState},
};
use farthing_testnet::{NodeProcess, rpc};
use farthing_tests::{
    agreement::{self, Books},
    market::until,
};
use serde_json::json;

use super::{
    load::{Calls, PATIENCE},
    network::Network,
};

/// Books of both sides are read one after the other: what is told to one of them meanwhile is seen at the next look.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// Waits until no call of any node is undecided.
pub async fn until_decided(network: &Network) -> Result<()> {
    for member in &network.members {
        let undecided = Cell::new(0);
        until("every call is decided", PATIENCE, async || {
            let audit = member.node.control().ask(endpoint::Audit.with("offline", true)).await?;
            undecided.set(audit.calls_undecided);
            Ok(audit.calls_undecided == 0)
        })
        .await
        .with_context(|| format!("{} has {} undecided calls", member.name, undecided.get()))?;
    }
    Ok(())
}

/// Has everybody settle and leave, and returns every difference that is found.
pub async fn leave_and_compare(network: &Network, calls: &Calls) -> Result<Vec<String>> {
    // Otherwise an owner may find a small channel not worth the gas.
    let url = network.chain.rpc_url();
    rpc::call(&url, "anvil_setNextBlockBaseFeePerGas", json!(["0x0"])).await?;
    rpc::call(&url, "evm_mine", json!([])).await?;
    for owner in network.owners() {
        until("an owner settles", PATIENCE, async || {
            Ok(owner.node.control().ask(endpoint::Settle).await.is_ok())
        })
        .await
        .with_context(|| owner.name.clone())?;
    }
    for consumer in network.consumers() {
        close_channels(&consumer.node).await.with_context(|| consumer.name.clone())?;
    }
    let mut found = differences(network).await?;
    found.extend(against_the_scripts(network, calls).await?);
    found.extend(against_the_chain(network).await?);
    Ok(found)
}

async fn close_channels(node: &NodeProcess) -> Result<()> {
    let refused = Cell::new(String::new());
    let closed = until("all channels are closed", PATIENCE, async || {
        let channels = node.control().ask(endpoint::Channels).await?;
        let open = |state: ChannelState| !state.is_closed() && !state.is_closing();
        for channel in channels.iter().filter(|channel| open(channel.state)) {
            // Its owner may just be busy: it is asked again.
            let asked = node.control().ask(endpoint::CloseChannel.of(channel.id)).await;
            refused.set(asked.err().map_or_else(String::new, |error| error.to_string()));
        }
        Ok(channels.iter().all(|channel| channel.state.is_closed()))
    });
    closed.await.map(drop).with_context(|| format!("the last refusal: {:?}", refused.take()))
}

/// Between the books of each pair, and in each of them, once these agree or patience ends.
async fn differences(network: &Network) -> Result<Vec<String>> {
    let nodes = network.nodes();
    let began = tokio::time::Instant::now();
    loop {
        let mut found = agreement::differences(&nodes).await?;
        for member in &network.members {
            let audit = member.node.control().ask(endpoint::Audit).await?;
            found.extend(
                audit.violations.into_iter().map(|violation| format!("{}: {violation}", member.name)),
            );
            if audit.calls_undecided > 0 {
                found.push(format!("{}: {} undecided calls", member.name, audit.calls_undecided));
            }
        }
        if found.is_empty() || began.elapsed() >= PATIENCE {
            return Ok(found);
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

/// As many calls are charged as the scripts were answered, but for those whose end they were not told.
async fn against_the_scripts(network: &Network, calls: &Calls) -> Result<Option<String>> {
    let mut charged = 0_u64;
    for consumer in network.consumers() {
        let books = Books::of(&consumer.node).await?;
        let paid = books.bought.values().filter(|call| !call.amount.0.is_zero());
        charged += paid.count() as u64;
    }
    let most = calls.answered + calls.open;
    let fits = (calls.answered..=most).contains(&charged);
    Ok((!fits).then(|| {
        format!("O5: {charged} calls are charged, and scripts were answered {} to {most}", calls.answered)
    }))
}

/// What consumers have lost is what owners have gained, and what the owners' books say.
async fn against_the_chain(network: &Network) -> Result<Option<String>> {
    let (mut lost, mut gained, mut earned) = (0, 0, 0);
    for member in &network.members {
        let has = network.chain.usdc_of(member.wallet).await?;
        lost += member.funds().saturating_sub(has).micros();
        gained += has.saturating_sub(member.funds()).micros();
        let channels = member.node.control().ask(endpoint::Channels).await?;
        let payee = channels.iter().filter(|channel| channel.role == ChannelRole::Payee);
        earned += payee.map(|channel| channel.spent.0.micros()).sum::<u64>();
    }
    let agree = lost == gained && gained == earned;
    Ok((!agree).then(|| {
        format!("M4: in micro-USDC, consumers lost {lost}, owners gained {gained}, their books say {earned}")
    }))
}
