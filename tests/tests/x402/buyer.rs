//! A node that buys from x402 servers, with a clock of its own.

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{CallRequest, HistoryEntry, HistoryKind, HistoryState, NewX402Server, ServiceIdText, Text},
};
use farthing_testnet::{NodeOptions, NodeProcess, rpc};
use farthing_tests::{clock::Clock, liar::Liar, wait::eventually, world::Answer};
use farthing_values::{Address, Method, Usdc};
use serde_json::json;
use tempfile::TempDir;

use crate::shop::{FUNDS, GAS_MONEY_WEI, Shop, chain_of};

/// More than a call costs, in USDC.
pub const ENOUGH: &str = "0.01";
/// The seconds after which a payment has lapsed, also for a node that distrusts the newest blocks.
const LAPSED_AFTER_SECS: i64 = 1_000;
const TWO_DAYS_SECS: i64 = 172_800;

/// A node with [`FUNDS`], and the server that was added to it.
pub struct Buyer {
    pub node: NodeProcess,
    pub wallet: Address,
    pub server: ServiceIdText,
    clock: Clock,
    _folder: TempDir,
}

impl Buyer {
    /// One that has added the server at `url`.
    pub async fn start(shop: &Shop, url: &str) -> Result<Self> {
        Self::start_with(shop, url, None).await
    }

    /// The same. The node sees the chain through this endpoint.
    pub async fn start_behind(liar: &Liar, shop: &Shop, url: &str) -> Result<Self> {
        Self::start_with(shop, url, Some(liar.stand_before(shop.anvil.url()))).await
    }

    /// The same with another setting.
    pub async fn start_with(shop: &Shop, url: &str, setting: Option<(String, String)>) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let clock = Clock::ahead(folder.path(), 0).await?;
        let options =
            NodeOptions { environment: clock.environment(), ..NodeOptions::new(folder.path().join("buyer")) };
        // The last word on a setting counts.
        let chain = chain_of(&shop.anvil).into_iter().chain(setting).collect();
        let node = NodeProcess::start_on(chain, options).await?;
        let wallet = node.status().await?.address.0;
        shop.deployer.fund_eth(wallet, GAS_MONEY_WEI).await?;
        shop.deployer.mint(shop.token, wallet, FUNDS).await?;
        node.wait_until_ready().await?;
        node.wait_for_usdc(FUNDS).await?;
        let new = NewX402Server { url: url.to_owned(), max_price: None };
        let server = node.control().tell(endpoint::AddX402Server, &new).await?.id;
        Ok(Self { node, wallet, server, clock, _folder: folder })
    }

    /// Starts the node again, with a place at which it dies or none.
    pub async fn restart(&mut self, dies_at: Option<&str>) -> Result<()> {
        let environment = dies_at.map(|place| ("FARTHING_KILL_AT".to_owned(), place.to_owned()));
        let environment = self.clock.environment().into_iter().chain(environment).collect();
        self.node.restart_until_ready(environment).await?;
        self.node.wait_for_usdc(Usdc::from_micros(1)).await
    }

    /// Starts the node again with another token in its settings. It can buy nothing then.
    pub async fn restart_with(&mut self, token: Address) -> Result<()> {
        let token = ("FARTHING_CHAIN__TOKEN".to_owned(), token.to_string());
        self.node.restart(self.clock.environment().into_iter().chain([token]).collect()).await
    }

    /// A call of the server.
    pub async fn call(&self, path: &str, call_id: &str, max_price: Option<&str>) -> Result<Answer> {
        let max_price = max_price.map(str::parse::<Usdc>).transpose()?;
        let request = CallRequest {
            api_id_public: self.server,
            path: path.to_owned(),
            method: Text(Method::Get),
            params: [].into(),
            body: None,
            body_base64: None,
            headers: [].into(),
            max_price: max_price.map(Into::into),
            call_id: Some(call_id.to_owned()),
        };
        let raw = self.node.control().tell_raw(endpoint::Call, &request).await?;
        Ok(Answer { status: raw.status, headers: raw.headers, body: raw.body })
    }

    /// The calls of this node in its history, the newest first.
    pub async fn bought(&self) -> Result<Vec<HistoryEntry>> {
        let history = self.node.control().ask(endpoint::History).await?;
        Ok(history.entries.into_iter().filter(|entry| entry.kind == HistoryKind::Bought).collect())
    }

    /// Waits until its newest call stands so in the history.
    pub async fn until_it_ends(&self, state: HistoryState) -> Result<HistoryEntry> {
        eventually("the call has ended", async || {
            Ok(self.bought().await?.first().is_some_and(|entry| entry.state == state))
        })
        .await?;
        self.bought().await?.into_iter().next().context("no call is in the history")
    }

    /// Spent and reserved today.
    pub async fn spent(&self) -> Result<Usdc> {
        Ok(self.node.control().ask(endpoint::Spending).await?.spent_today.0)
    }

    /// Checks that so much has left the wallet, that the limits count so much, and that the books hold.
    pub async fn check(&self, shop: &Shop, paid: Usdc) -> Result<()> {
        let left = rpc::usdc_of(&shop.anvil.url(), shop.token, self.wallet).await?;
        let gone = FUNDS.saturating_sub(left);
        ensure!(gone == paid, "{gone} USDC have left the wallet, and not {paid}");
        ensure!(self.spent().await? == paid, "{} USDC are counted, and not {paid}", self.spent().await?);
        let audit = self.node.control().ask(endpoint::Audit).await?;
        ensure!(audit.violations.is_empty(), "{:?}", audit.violations);
        Ok(())
    }

    /// Has the chain and the node's clock go on until all payments made so far have lapsed.
    pub async fn let_payments_lapse(&self, shop: &Shop) -> Result<()> {
        self.clock.set(LAPSED_AFTER_SECS)?;
        Self::let_chain_go_on(shop, LAPSED_AFTER_SECS).await
    }

    /// The same for two further days, after which the node forgets payments whose ends are known.
    pub async fn let_days_pass(&self, shop: &Shop) -> Result<()> {
        self.clock.set(LAPSED_AFTER_SECS + TWO_DAYS_SECS)?;
        Self::let_chain_go_on(shop, TWO_DAYS_SECS).await
    }

    async fn let_chain_go_on(shop: &Shop, secs: i64) -> Result<()> {
        let url = shop.anvil.url();
        rpc::call(&url, "evm_increaseTime", json!([secs])).await?;
        rpc::call(&url, "anvil_mine", json!(["0x5"])).await?;
        Ok(())
    }
}
