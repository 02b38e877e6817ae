//! An owner that sells to x402 clients on a chain that they take for Base Sepolia, and a client that a test plays itself.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use farthing_chain::deploy::{Deployer, dev_account};
use farthing_control::{
    encoded, endpoint,
    types::{Api, Charge, OperationFile, ServiceFile},
};
use farthing_serve::tls;
use farthing_testnet::{NodeOptions, NodeProcess, anvil::Anvil, rpc};
use farthing_tests::{
    calls::{back_up, restore},
    upstream::Upstream,
    wait::eventually,
    world::{Answer, PRICE, service_file},
};
use farthing_values::{
    Address, Method as CallMethod, SecretKey, SignedTransfer, TokenDomain, TransferAuthorization, Usdc,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

pub const CHAIN_ID: u64 = 84_532;
/// USDC there. The official clients take no other token by default.
pub const USDC: &str = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
pub const GAS_MONEY_WEI: u128 = 1_000_000_000_000_000_000;
pub const FUNDS: Usdc = Usdc::from_micros(1_000_000);

/// What a test works with.
pub struct Shop {
    pub anvil: Anvil,
    pub deployer: Deployer,
    pub token: Address,
    pub owner: NodeProcess,
    pub wallet: Address,
    pub upstream: Upstream,
    pub api: Api,
    /// Has [`FUNDS`] and no ETH.
    pub payer: SecretKey,
    client: reqwest::Client,
    folder: TempDir,
}

impl Shop {
    /// A shop whose service is the test's own server.
    pub async fn open() -> Result<Self> {
        let (folder, upstream) = (tempfile::tempdir()?, Upstream::start().await?);
        let chain_id = CHAIN_ID.to_string();
        let begin = move || Anvil::start_with(0, &["--chain-id", chain_id.as_str()]);
        let anvil = tokio::task::spawn_blocking(begin).await??;
        let deployer = Deployer::connect(&anvil.url(), CHAIN_ID, dev_account(0)?).await?;
        deployer.pay_channels().await?;
        let token = token_in_its_place(&anvil.url(), &deployer).await?;
        base_fee(&anvil.url(), "0x0").await?;

        let owner = start(&anvil, folder.path().join("owner")).await?;
        let wallet = owner.status().await?.address.0;
        let payer = SecretKey::from_bytes(&[1; 32])?;
        deployer.fund_eth(wallet, GAS_MONEY_WEI).await?;
        deployer.mint(token, payer.address(), FUNDS).await?;
        owner.wait_until_ready().await?;
        let api =
            owner.control().tell(endpoint::AddApi, &service_file(&upstream.url(), Charge::Success)).await?;
        tls::install_provider();
        let client = reqwest::Client::builder().no_proxy().build()?;
        let shop = Self { anvil, deployer, token, owner, wallet, upstream, api, payer, client, folder };
        shop.until_open().await?;
        Ok(shop)
    }

    /// Waits until the node offers its service: it has to have seen its ETH.
    pub async fn until_open(&self) -> Result<()> {
        eventually("the node offers its service", async || {
            Ok(self.ask(Method::GET, "/ok", &[]).await?.status == StatusCode::PAYMENT_REQUIRED)
        })
        .await
    }

    /// Has the chain ask so much for gas.
    pub async fn base_fee(&self, wei: &str) -> Result<()> {
        base_fee(&self.anvil.url(), wei).await
    }

    /// Starts the node again, with a place at which it dies or none, and waits until it offers its service.
    pub async fn restart(&mut self, dies_at: Option<&str>) -> Result<()> {
        let environment = dies_at.map(|place| ("FARTHING_KILL_AT".to_owned(), place.to_owned()));
        self.owner.restart_until_ready(environment.into_iter().collect()).await?;
        self.until_open().await
    }

    /// Makes the backup that [`Self::restore`] takes.
    pub async fn back_up(&self) -> Result<()> {
        back_up(&self.owner, self.folder.path()).await
    }

    /// Has the owner lost, and made again from the backup.
    pub async fn restore(&mut self) -> Result<()> {
        self.owner.kill().await?;
        self.owner = start(&self.anvil, restore(self.folder.path()).await?.into()).await?;
        self.owner.wait_until_ready().await?;
        self.until_open().await
    }

    /// Publishes a further service, of one path, at which a DELETE has an effect.
    pub async fn publish(&self, upstream: &str, path: &str) -> Result<Api> {
        let file = ServiceFile {
            name: "Another service".to_owned(),
            upstream: upstream.to_owned(),
            operations: [CallMethod::Get, CallMethod::Delete]
                .map(|method| OperationFile::named(method, path.to_owned()))
                .into(),
            ..ServiceFile::priced(PRICE)
        };
        Ok(self.owner.control().tell(endpoint::AddApi, &file).await?)
    }

    /// The address of the port. Each start takes a new one.
    pub fn address(&self) -> Result<String> {
        let log = self.owner.log();
        let mut told = log.lines().rev().filter_map(|line| line.trim().strip_prefix("x402 "));
        let address = told.next().context("the node tells no address for x402 clients")?;
        Ok(address.trim().to_owned())
    }

    /// The address of a path of the service.
    pub fn url(&self, path: &str) -> Result<String> {
        Ok(format!("{}/{}{path}", self.address()?, self.api.id))
    }

    /// A request with these headers. One with an effect has a body.
    pub async fn ask(&self, method: Method, path: &str, headers: &[(&str, String)]) -> Result<Answer> {
        self.ask_at(method, &self.url(path)?, headers).await
    }

    /// The same at any address.
    pub async fn ask_at(&self, method: Method, url: &str, headers: &[(&str, String)]) -> Result<Answer> {
        let mut request = self.client.request(method.clone(), url);
        if method == Method::POST {
            request = request.header("content-type", "application/json").body("{\"a\":1}");
        }
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let response = request.send().await?;
        Ok(Answer {
            status: response.status(),
            headers: response.headers().clone(),
            body: response.bytes().await?,
        })
    }

    /// A request with a payment of version 2.
    pub async fn pay(&self, method: Method, path: &str, payment: &SignedTransfer) -> Result<Answer> {
        self.ask(method, path, &[("payment-signature", written(payment))]).await
    }

    /// A request to another service, with a payment.
    pub async fn pay_for(&self, api: &Api, path: &str, payment: &SignedTransfer) -> Result<Answer> {
        let url = format!("{}/{}{path}", self.address()?, api.id);
        self.ask_at(Method::GET, &url, &[("payment-signature", written(payment))]).await
    }

    /// The domain in which the token's payers sign.
    pub fn domain(&self) -> TokenDomain {
        let (name, version) = ("USDC".to_owned(), "2".to_owned());
        TokenDomain { name, version, chain_id: CHAIN_ID, token: self.token }
    }

    /// What the payer may sign for one call; each number is another payment.
    pub fn authorization(&self, number: u8) -> TransferAuthorization {
        TransferAuthorization {
            from: self.payer.address(),
            to: self.wallet,
            value: PRICE,
            valid_after_secs: 0,
            valid_before_secs: 4_000_000_000,
            nonce: [number; 32],
        }
    }

    /// The same, signed.
    pub fn payment(&self, number: u8) -> SignedTransfer {
        self.authorization(number).sign(&self.domain(), &self.payer)
    }

    /// USDC of the owner's wallet.
    pub async fn earned(&self) -> Result<Usdc> {
        rpc::usdc_of(&self.anvil.url(), self.token, self.wallet).await
    }

    /// Transactions that the owner's wallet has sent.
    pub async fn transactions(&self) -> Result<u64> {
        rpc::transactions_of(&self.anvil.url(), self.wallet).await
    }

    /// Moves all USDC of the payer to somebody else.
    pub async fn empty_the_payer(&self) -> Result<()> {
        let (url, payer) = (self.anvil.url(), self.payer.address());
        let all = rpc::usdc_of(&url, self.token, payer).await?;
        rpc::call(&url, "anvil_setBalance", json!([payer.to_string(), "0xde0b6b3a7640000"])).await?;
        rpc::call(&url, "anvil_impersonateAccount", json!([payer.to_string()])).await?;
        // 0xa9059cbb is the selector of transfer(address,uint256) (EIP-20).
        let data = format!("0xa9059cbb{:0>64}{:064x}", "99".repeat(20), all.micros());
        let transaction = json!({ "from": payer.to_string(), "to": self.token.to_string(), "data": data });
        rpc::call(&url, "eth_sendTransaction", json!([transaction])).await?;
        ensure!(rpc::usdc_of(&url, self.token, payer).await?.is_zero(), "the payer still has USDC");
        Ok(())
    }

    /// Checks that the books hold, that each settled call is in them, and that the wallet has what they say.
    pub async fn check(&self, calls: u64) -> Result<()> {
        let (earned, expected) = (self.earned().await?, Usdc::from_micros(PRICE.micros() * calls));
        ensure!(earned == expected, "{earned} USDC and not {expected}");
        let audit = self.owner.control().ask(endpoint::Audit).await?;
        ensure!(audit.violations.is_empty(), "{:?}", audit.violations);
        Ok(())
    }
}

/// Starts a node that sells to x402 clients.
async fn start(anvil: &Anvil, data_dir: PathBuf) -> Result<NodeProcess> {
    let options = NodeOptions::new(data_dir).set("x402.listen", &"127.0.0.1:0");
    NodeProcess::start_on(chain_of(anvil), options).await
}

/// The settings of nodes on this chain.
pub fn chain_of(anvil: &Anvil) -> Vec<(String, String)> {
    let chain = [
        ("chain.preset", "base-sepolia".to_owned()),
        ("chain.rpc_urls", anvil.url()),
        ("chain.poll_interval_ms", "100".to_owned()),
    ];
    chain.map(|(key, value)| (key.to_owned(), value)).to_vec()
}

/// Mines a block with this base fee.
async fn base_fee(url: &str, wei: &str) -> Result<()> {
    rpc::call(url, "anvil_setNextBlockBaseFeePerGas", json!([wei])).await?;
    rpc::call(url, "evm_mine", json!([])).await?;
    Ok(())
}

/// A payment as a client of version 2 writes it.
pub fn written(payment: &SignedTransfer) -> String {
    let SignedTransfer { authorization, signature } = payment;
    let payment = json!({
        "x402Version": 2,
        "accepted": { "scheme": "exact", "network": format!("eip155:{CHAIN_ID}") },
        "payload": {
            "signature": format!("0x{}", hex::encode(signature.as_bytes())),
            "authorization": {
                "from": authorization.from.to_string(),
                "to": authorization.to.to_string(),
                "value": authorization.value.micros().to_string(),
                "validAfter": authorization.valid_after_secs.to_string(),
                "validBefore": authorization.valid_before_secs.to_string(),
                "nonce": format!("0x{}", hex::encode(authorization.nonce)),
            },
        },
    });
    encoded::to_text(payment.to_string().as_bytes())
}

/// The JSON of a header of x402; `null` where there is none.
pub fn told(answer: &Answer, header: &str) -> Value {
    let bytes = encoded::from_text(answer.header(header)).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or(Value::Null)
}

/// Puts the test token at USDC's address: its code, and the two texts in its storage.
async fn token_in_its_place(url: &str, deployer: &Deployer) -> Result<Address> {
    let made = deployer.test_usdc("USDC", deployer.address()).await?.to_string();
    let code = rpc::call(url, "eth_getCode", json!([made, "latest"])).await?;
    rpc::call(url, "anvil_setCode", json!([USDC, code])).await?;
    for slot in ["0x0", "0x1"] {
        let word = rpc::call(url, "eth_getStorageAt", json!([made, slot, "latest"])).await?;
        rpc::call(url, "anvil_setStorageAt", json!([USDC, slot, word])).await?;
    }
    Ok(USDC.parse()?)
}
