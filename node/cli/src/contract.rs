//! `farthing contract`: the contract that holds the money of channels, on the node's chain.

use clap::Subcommand;
use farthing_control::{
    endpoint,
    types::{ContractShown, ContractState, Deployed, DeploymentCost},
};

use super::{Context, failure::Failure, output::pairs};

#[derive(Debug, Subcommand)]
pub enum Contract {
    /// Show the channel contract's address and whether the right contract is there
    Show,
    /// Deploy the channel contract on the node's chain; costs only gas. Shows the cost and asks first
    Deploy {
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

pub(super) async fn contract(context: &Context, verb: Contract) -> Result<(), Failure> {
    let node = context.node()?;
    let shown = node.ask(endpoint::Contract).await?;
    match verb {
        Contract::Show => context.output.data(&shown, text),
        Contract::Deploy { yes } => {
            if shown.state != ContractState::Deployed {
                let cost = node.ask(endpoint::DeploymentCost).await?;
                agree(context, &shown, &cost, yes)?;
            }
            let deployed = node.ask(endpoint::DeployContract).await?;
            context.output.data(&deployed, told)
        }
    }
}

/// Shows the cost, and asks unless that was answered beforehand.
fn agree(context: &Context, shown: &ContractShown, cost: &DeploymentCost, yes: bool) -> Result<(), Failure> {
    let (chain, DeploymentCost { gas, cost, needed, held }) = (&shown.chain, cost);
    context.output.prose(&format!(
        "The channel contract takes {gas} gas on {chain}: about {cost} ETH at the current gas price. The wallet has \
         {held} ETH and needs {needed}, because the gas price may rise."
    ));
    if !yes {
        context.output.confirm(&format!("Deploy the channel contract on {chain} for about {cost} ETH?"))?;
    }
    context.output.prose("Deploying. Waiting for the chain to confirm it.");
    Ok(())
}

fn text(shown: &ContractShown) -> String {
    let ContractShown { chain, chain_id, kind, contract, state, code_hash, code_hash_found, token } = shown;
    let (state, hash) = match (state, code_hash_found) {
        (ContractState::Deployed, _) => ("deployed", format!("{code_hash}, as expected")),
        (ContractState::Foreign, Some(found)) => {
            ("different code; this node does not use it", format!("{found}, expected {code_hash}"))
        }
        (ContractState::Missing | ContractState::Foreign, _) => (
            "missing; deploy it with `farthing contract deploy`",
            format!("none yet; it will be {code_hash}"),
        ),
    };
    pairs([
        ("Chain", format!("{chain} ({chain_id}, {kind})")),
        ("Contract", contract.to_string()),
        ("State", state.to_owned()),
        ("Code hash", hash),
        ("USDC", token.to_string()),
    ])
}

fn told(deployed: &Deployed) -> String {
    let Deployed { contract, transaction, block, paid } = deployed;
    let Some(transaction) = transaction else {
        return format!("{contract} is already deployed; nothing was sent or paid");
    };
    pairs([
        ("Contract", contract.to_string()),
        ("Transaction", transaction.clone()),
        ("Block", block.map_or_else(String::new, |block| block.to_string())),
        ("Paid", format!("{paid} ETH")),
    ])
}
