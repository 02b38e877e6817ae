//! A chain on this machine that poses as Base Sepolia: its id, USDC at its address, the deterministic deployer, and no channel
//! contract yet. Somebody's node is in the network of that chain, for others to join through.

use anyhow::{Context, Result};
use farthing_chain::{
    ChainSpec,
    deploy::{Deployer, dev_account},
};
use farthing_testnet::{NodeOptions, NodeProcess, anvil::Anvil, rpc};
use farthing_tests::calls::setting;
use farthing_values::{Address, Usdc};
use serde_json::json;

const PRESET: &str = "base-sepolia";
/// Slots of the token in which its name and its version are; all else is in its code, or made by use.
const NAME_AND_VERSION: [u64; 2] = [0, 1];

/// What a faucet gives at once.
const ETH_GIVEN_WEI: u128 = 100_000_000_000_000_000;
pub(crate) const USDC_GIVEN: Usdc = Usdc::from_micros(10_000_000);

pub(crate) struct Posing {
    url: String,
    spec: ChainSpec,
    faucet: Deployer,
    somebody: NodeProcess,
    _anvil: Anvil,
    _folder: tempfile::TempDir,
}

impl Posing {
    pub(crate) async fn start() -> Result<Self> {
        let spec = farthing_chain::preset(PRESET).context(PRESET)?;
        let id = spec.chain_id.to_string();
        // Blocks come by themselves, as there.
        let start = move || Anvil::start_with(0, &["--chain-id", &id, "--block-time", "1"]);
        let anvil = tokio::task::spawn_blocking(start).await??;
        let url = anvil.url();
        let faucet = Deployer::connect(&url, spec.chain_id, dev_account(0)?).await?;
        let token = faucet.test_usdc("USDC", faucet.address()).await?;
        copy(&url, token, spec.token).await?;
        let folder = tempfile::tempdir()?;
        let mut options = NodeOptions::new(folder.path().join("somebody"));
        options.environment = environment(&url);
        let somebody = NodeProcess::start_on(setting("chain.preset", PRESET), options).await?;
        Ok(Self { url, spec, faucet, somebody, _anvil: anvil, _folder: folder })
    }

    /// Variables by which a node takes this chain for the real one, and asks soon what it asks of others.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        environment(&self.url)
    }

    /// The address of a node that is in the network already.
    pub(crate) async fn bootstrap(&self) -> Result<String> {
        self.somebody.loopback_address().await
    }

    pub(crate) async fn send_eth(&self, wallet: Address) -> Result<()> {
        Ok(self.faucet.fund_eth(wallet, ETH_GIVEN_WEI).await?)
    }

    pub(crate) async fn send_usdc(&self, wallet: Address) -> Result<()> {
        Ok(self.faucet.mint(self.spec.token, wallet, USDC_GIVEN).await?)
    }

    pub(crate) async fn usdc_of(&self, wallet: Address) -> Result<Usdc> {
        rpc::usdc_of(&self.url, self.spec.token, wallet).await
    }
}

fn environment(url: &str) -> Vec<(String, String)> {
    [
        ("FARTHING_CHAIN__RPC_URLS", url),
        ("FARTHING_CHAIN__POLL_INTERVAL_MS", "100"),
        ("FARTHING_NETWORK__ALLOW_PRIVATE", "true"),
        ("FARTHING_NETWORK__REACH_FIRST_MS", "0"),
        ("FARTHING_NETWORK__REACH_PEER_INTERVAL_SECS", "1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

/// Puts a contract at another address as well, with its code, its name and its version.
async fn copy(url: &str, from: Address, to: Address) -> Result<()> {
    let (from, to) = (from.to_string(), to.to_string());
    let code = rpc::call(url, "eth_getCode", json!([from, "latest"])).await?;
    rpc::call(url, "anvil_setCode", json!([to, code])).await?;
    for slot in NAME_AND_VERSION {
        let slot = format!("0x{slot:064x}");
        let word = rpc::call(url, "eth_getStorageAt", json!([from, slot, "latest"])).await?;
        rpc::call(url, "anvil_setStorageAt", json!([to, slot, word])).await?;
    }
    Ok(())
}
