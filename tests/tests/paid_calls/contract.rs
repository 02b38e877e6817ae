//! The channel contract on a chain that lacks it: an anvil that poses as Base Sepolia.

use anyhow::{Context, Result, ensure};
use farthing_chain::{
    deploy::{Deployer, dev_account},
    pay_channels_address,
};
use farthing_control::endpoint;
use farthing_testnet::{NodeOptions, NodeProcess, anvil::Anvil, rpc};
use farthing_tests::{
    calls::setting,
    command::{WHEN_SLOW, farthing},
    wait::eventually,
};
use farthing_values::Address;
use serde_json::json;

/// Base Sepolia's.
const CHAIN_ID: u64 = 84_532;
const ETH: u128 = 1_000_000_000_000_000_000;
/// The deterministic deployer, as docs/contracts.md names it.
const DEPLOYER: &str = "0x4e59b44847b379578588920cA78FbF26c0B4956C";

/// A chain with USDC and without the contract, and a node whose wallet has nothing.
struct Posing {
    url: String,
    faucet: Deployer,
    token: Address,
    node: NodeProcess,
    wallet: Address,
    _anvil: Anvil,
    _folder: tempfile::TempDir,
}

impl Posing {
    async fn start() -> Result<Self> {
        let id = CHAIN_ID.to_string();
        let start = move || Anvil::start_with(0, &["--chain-id", &id]);
        let anvil = tokio::task::spawn_blocking(start).await??;
        let url = anvil.url();
        let faucet = Deployer::connect(&url, CHAIN_ID, dev_account(0)?).await?;
        let token = faucet.test_usdc("USDC", faucet.address()).await?;
        let folder = tempfile::tempdir()?;
        let chain = [
            setting("chain.preset", "base-sepolia"),
            setting("chain.rpc_urls", &url),
            setting("chain.token", &token.to_string()),
            setting("chain.poll_interval_ms", "100"),
        ];
        let node =
            NodeProcess::start_on(chain.concat(), NodeOptions::new(folder.path().join("node"))).await?;
        let wallet = node.status().await?.address.0;
        let posing = Self { url, faucet, token, node, wallet, _anvil: anvil, _folder: folder };
        posing.until_doctor_says("is not deployed on base-sepolia").await?;
        Ok(posing)
    }

    async fn doctor(&self) -> Result<String> {
        Ok(farthing(&self.node, &["doctor"]).await?.out)
    }

    async fn until_doctor_says(&self, text: &str) -> Result<()> {
        eventually("doctor says so", async || Ok(self.doctor().await?.contains(text))).await
    }

    async fn sent(&self) -> Result<u64> {
        rpc::transactions_of(&self.url, self.wallet).await
    }

    async fn eth(&self) -> Result<u128> {
        rpc::eth_of(&self.url, self.wallet).await
    }
}

#[tokio::test]
async fn a_contract_that_is_missing_is_shown_deployed_for_its_cost_and_never_twice() -> Result<()> {
    let posing = Posing::start().await?;
    let (node, contract) = (&posing.node, pay_channels_address().to_string());
    let (show, deploy) = (["contract", "show"], ["contract", "deploy", "--yes"]);

    let shown = farthing(node, &show).await?.ok()?.out;
    for text in ["base-sepolia (84532, testnet)", &contract, "missing", &posing.token.to_string()] {
        ensure!(shown.contains(text), "it does not show {text}: {shown}");
    }
    let told = farthing(node, &["contract", "show", "--json"]).await?.ok()?.json()?;
    ensure!(told["state"] == "missing" && told["code_hash_found"].is_null(), "{told:#}");
    let doctor = posing.doctor().await?;
    for text in ["`farthing contract deploy`", "test USDC from Circle's faucet"] {
        ensure!(doctor.contains(text), "it does not say {text}: {doctor}");
    }
    ensure!(!doctor.contains("testnet up"), "this is no chain of one's own: {doctor}");

    let wallet = posing.wallet.to_string();
    farthing(node, &deploy)
        .await?
        .fails(5, &["send at least", "ETH on base-sepolia", &wallet, "a faucet"])?;
    posing.faucet.fund_eth(posing.wallet, ETH).await?;
    // Without a terminal nobody can answer.
    farthing(node, &deploy[..2])
        .await?
        .fails(2, &["at the current gas price", "ETH? There is no", "--yes"])?;
    assert_eq!((posing.sent().await?, posing.eth().await?), (0, ETH), "nothing was sent so far");

    let cost = node.control().ask(endpoint::DeploymentCost).await?;
    let deployed = farthing(node, &[&deploy[..], &["--json"]].concat()).await?.ok()?.json()?;
    ensure!(deployed["contract"] == contract && deployed["transaction"].is_string(), "{deployed:#}");
    let paid = ETH - posing.eth().await?;
    ensure!(paid <= cost.cost.0.wei && paid > cost.cost.0.wei / 2, "{paid} wei were paid, and told {cost:?}");
    assert_eq!(deployed["paid"], farthing_chain::eth(paid));
    ensure!(rpc::has_code(&posing.url, pay_channels_address()).await?, "there is no code");

    let told = farthing(node, &["contract", "show", "--json"]).await?.ok()?.json()?;
    ensure!(told["state"] == "deployed" && told["code_hash"] == told["code_hash_found"], "{told:#}");
    ensure!(farthing(node, &show).await?.ok()?.out.contains("deployed"), "it is shown");
    posing.until_doctor_says("base-sepolia answers and its contracts are the right ones").await?;
    let history = farthing(node, &["wallet", "history", "--kind", "transaction"]).await?.ok()?.out;
    ensure!(history.contains("deployment"), "{history}");

    let before = (posing.sent().await?, posing.eth().await?);
    let again = farthing(node, &deploy).await?.ok()?;
    let told = again.err.replace(WHEN_SLOW, "");
    ensure!(again.out.contains("is already deployed") && told.is_empty(), "{again:?}");
    assert_eq!((posing.sent().await?, posing.eth().await?), before, "once is enough");
    Ok(())
}

#[tokio::test]
async fn without_the_deployer_and_beside_other_code_nothing_is_deployed() -> Result<()> {
    let posing = Posing::start().await?;
    let node = &posing.node;
    posing.faucet.fund_eth(posing.wallet, ETH).await?;
    let code = rpc::call(&posing.url, "eth_getCode", json!([DEPLOYER, "latest"])).await?;
    ensure!(code.as_str().context("no text")?.len() > 2, "anvil has the deployer");
    rpc::call(&posing.url, "anvil_setCode", json!([DEPLOYER, "0x"])).await?;
    let deploy = ["contract", "deploy", "--yes"];
    farthing(node, &deploy)
        .await?
        .fails(1, &[DEPLOYER, "does not have the deployer", "Nothing was sent."])?;

    let contract = pay_channels_address().to_string();
    rpc::call(&posing.url, "anvil_setCode", json!([contract, "0x5f5ffd"])).await?;
    let shown = farthing(node, &["contract", "show"]).await?.ok()?.out;
    ensure!(shown.contains("different code; this node does not use it"), "{shown}");
    farthing(node, &deploy).await?.fails(2, &["is not the PayChannels contract"])?;
    rpc::call(&posing.url, "evm_mine", json!([])).await?;
    posing.until_doctor_says("check that `chain.token`").await?;
    assert_eq!((posing.sent().await?, posing.eth().await?), (0, ETH));
    Ok(())
}
