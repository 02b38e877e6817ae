//! The channel contract on this node's chain: whether it is there, what it would cost to put it there, and doing so.

use axum::{Json, extract::State};
use farthing_chain::ContractCode;
use farthing_control::types::{ContractShown, ContractState, Deployed, DeploymentCost, Eth};
use farthing_node::{deployment, handles::Handles};

use super::Reply;

answer!(Contract: contract);
async fn contract(State(node): State<Handles>) -> Reply<ContractShown> {
    let found = node.chain.contract_found().await?;
    let spec = node.chain.spec();
    Ok(Json(ContractShown {
        chain: spec.name.clone(),
        chain_id: spec.chain_id,
        kind: spec.kind.to_string(),
        contract: spec.contract.into(),
        state: match found.code {
            ContractCode::Right => ContractState::Deployed,
            ContractCode::Missing => ContractState::Missing,
            ContractCode::Other => ContractState::Foreign,
        },
        code_hash: found.hash_expected,
        code_hash_found: found.hash_found,
        token: spec.token.into(),
    }))
}

answer!(DeploymentCost: cost);
async fn cost(State(node): State<Handles>) -> Reply<DeploymentCost> {
    let cost = deployment::cost(&node.chain).await?;
    Ok(Json(DeploymentCost {
        gas: cost.gas,
        cost: Eth { wei: cost.cost_wei }.into(),
        needed: Eth { wei: cost.need_wei }.into(),
        held: Eth { wei: cost.have_wei }.into(),
    }))
}

answer!(DeployContract: deploy);
async fn deploy(State(node): State<Handles>) -> Reply<Deployed> {
    let report = deployment::deploy(&node.chain).await?;
    Ok(Json(Deployed {
        contract: node.chain.spec().contract.into(),
        transaction: report.tx_hash.map(|hash| hash.to_string()),
        block: report.tx_hash.map(|_| report.block),
        paid: Eth { wei: report.fee_wei }.into(),
    }))
}
