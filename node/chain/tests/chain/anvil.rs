//! A local chain for one test, and what the test itself asks of it.

use farthing_testnet::anvil;
use serde_json::{Value, json};

/// A running chain.
pub(crate) struct Anvil {
    process: anvil::Anvil,
    http: reqwest::Client,
}

impl Anvil {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let process = anvil::Anvil::start_with(0, arguments).expect("anvil starts");
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build().expect("an HTTP client");
        Self { process, http }
    }

    pub(crate) fn url(&self) -> String {
        self.process.url()
    }

    pub(crate) fn port(&self) -> u16 {
        self.process.port()
    }

    /// One request that the test itself makes.
    pub(crate) async fn rpc(&self, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let request = self.http.post(self.url()).header("content-type", "application/json").body(body);
        let bytes = request.send().await.expect("anvil answers").bytes().await.expect("anvil answers");
        let mut answer: Value = serde_json::from_slice(&bytes).expect("anvil answers in JSON");
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    pub(crate) async fn rpc_u64(&self, method: &str, params: Value) -> u64 {
        let answer = self.rpc(method, params).await;
        let digits = answer.as_str().and_then(|text| text.strip_prefix("0x")).expect("a hexadecimal number");
        u64::from_str_radix(digits, 16).expect("a hexadecimal number")
    }

    pub(crate) async fn mine(&self) {
        self.rpc("evm_mine", json!([])).await;
    }
}
