//! A local chain with the channel contract and test USDC on it.

use farthing_chain::deploy::{Deployer, dev_account};
use farthing_values::{Address, Usdc};

use super::{anvil::Anvil, rpc};

/// ETH that pays for many transactions on a local chain.
const GAS_MONEY_WEI: u128 = 1_000_000_000_000_000_000;

pub struct LocalChain {
    anvil: Anvil,
    deployer: Deployer,
    pub token: Address,
    pub contract: Address,
}

impl std::fmt::Debug for LocalChain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalChain").field("url", &self.anvil.url()).finish_non_exhaustive()
    }
}

impl LocalChain {
    /// Starts a chain that mines every transaction at once, with the channel contract and test USDC.
    pub async fn start() -> anyhow::Result<Self> {
        let anvil = tokio::task::spawn_blocking(Anvil::start).await??;
        let deployer = Deployer::connect(&anvil.url(), Anvil::CHAIN_ID, dev_account(0)?).await?;
        let contract = deployer.pay_channels().await?;
        let token = deployer.test_usdc("USD Coin", deployer.address()).await?;
        Ok(Self { anvil, deployer, token, contract })
    }

    /// Returns whether the chain's process has ended.
    pub fn has_ended(&mut self) -> bool {
        self.anvil.has_ended()
    }

    pub fn rpc_url(&self) -> String {
        self.anvil.url()
    }

    /// Gives a wallet test USDC and ETH for gas.
    pub async fn fund(&self, wallet: Address, usdc: Usdc) -> anyhow::Result<()> {
        if !usdc.is_zero() {
            self.deployer.mint(self.token, wallet, usdc).await?;
        }
        Ok(self.deployer.fund_eth(wallet, GAS_MONEY_WEI).await?)
    }

    /// USDC of any address, asked of the chain.
    pub async fn usdc_of(&self, wallet: Address) -> anyhow::Result<Usdc> {
        rpc::usdc_of(&self.rpc_url(), self.token, wallet).await
    }
}
