//! The blocks of a world's chain, when a test makes them itself.

use anyhow::Result;
use farthing_control::{endpoint, types::ChannelState};
use farthing_testnet::rpc;
use farthing_values::Address;
use serde_json::{Value, json};

use super::World;
use crate::wait::eventually;

impl World {
    /// Lets every transaction wait from now on.
    pub async fn mine_by_hand(&self) -> Result<()> {
        self.ask_chain("evm_setAutomine", json!([false])).await.map(drop)
    }

    /// Mines what waits, and from now on each transaction at once.
    pub async fn mine_at_once(&self) -> Result<()> {
        self.ask_chain("evm_setAutomine", json!([true])).await?;
        self.mine().await
    }

    /// Mines one block.
    pub async fn mine(&self) -> Result<()> {
        self.ask_chain("evm_mine", json!([])).await.map(drop)
    }

    /// Mines one block that is so much later than the last.
    pub async fn mine_after(&self, secs: u64) -> Result<()> {
        self.ask_chain("evm_increaseTime", json!([secs])).await?;
        self.mine().await
    }

    /// Forgets what waits, and mines each transaction at once from now on.
    pub async fn forget_pending(&self) -> Result<()> {
        self.ask_chain("anvil_dropAllTransactions", json!([])).await?;
        self.ask_chain("evm_setAutomine", json!([true])).await.map(drop)
    }

    /// Has the owner promise to close its channel, and ends the owner before its close gets into a block.
    pub async fn end_owner_after_its_promise(&mut self) -> Result<()> {
        self.mine_by_hand().await?;
        eventually("the owner promises", async || {
            let at = endpoint::CloseChannel.of(self.channel().await?.id).with("force", false);
            Ok(self.consumer.control().ask(at).await?.state == ChannelState::ClosePromised)
        })
        .await?;
        self.owner.kill().await?;
        self.forget_pending().await
    }

    /// Waits until a transaction waits for a block.
    pub async fn wait_for_pending(&self) -> Result<()> {
        eventually("a transaction waits to be mined", async || {
            let status = self.ask_chain("txpool_status", json!([])).await?;
            Ok(status["pending"].as_str().is_some_and(|count| count != "0x0"))
        })
        .await
    }

    /// Makes gas cost next to nothing from the next block on, so that an owner closes the smallest channel itself.
    pub async fn make_gas_cheap(&self) -> Result<()> {
        self.ask_chain("anvil_setNextBlockBaseFeePerGas", json!(["0x0"])).await?;
        self.mine().await
    }

    /// Sets the ETH of a wallet, and has a block show it.
    pub async fn set_eth(&self, wallet: Address, wei: &str) -> Result<()> {
        self.ask_chain("anvil_setBalance", json!([wallet.to_string(), wei])).await?;
        self.mine().await
    }

    async fn ask_chain(&self, method: &str, params: Value) -> Result<Value> {
        rpc::call(&self.chain.rpc_url(), method, params).await
    }
}
