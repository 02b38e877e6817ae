//! A few plain questions to a local chain, asked apart from the node's own view of it.

use anyhow::Context;
use farthing_values::{Address, Usdc};
use serde_json::{Value, json};

pub async fn call(url: &str, method: &str, params: Value) -> anyhow::Result<Value> {
    farthing_serve::tls::install_provider();
    let client = reqwest::Client::builder().no_proxy().build()?;
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let answer = client.post(url).header("content-type", "application/json").body(request).send().await?;
    let answer: Value = serde_json::from_slice(&answer.bytes().await?)?;
    match answer.get("error") {
        Some(error) => anyhow::bail!("{method}: {error}"),
        None => answer.get("result").cloned().with_context(|| format!("{method} has no result")),
    }
}

/// One JSON-RPC call whose answer is a text: `0x` and hexadecimal digits.
async fn digits(url: &str, method: &str, params: Value) -> anyhow::Result<String> {
    let result = call(url, method, params).await?;
    let text = result.as_str().with_context(|| format!("{method} gave no text"))?;
    Ok(text.trim_start_matches("0x").to_owned())
}

/// The token's `balanceOf(wallet)`.
pub async fn usdc_of(url: &str, token: Address, wallet: Address) -> anyhow::Result<Usdc> {
    // 0x70a08231 is the selector of balanceOf(address) (EIP-20).
    let data = format!("0x70a08231{:0>64}", hex::encode(wallet.as_bytes()));
    let word = digits(url, "eth_call", json!([{ "to": token.to_string(), "data": data }, "latest"])).await?;
    Ok(Usdc::from_micros(u64::from_str_radix(word.trim_start_matches('0'), 16).unwrap_or(0)))
}

/// Wei of any address.
pub async fn eth_of(url: &str, wallet: Address) -> anyhow::Result<u128> {
    let wei = digits(url, "eth_getBalance", json!([wallet.to_string(), "latest"])).await?;
    Ok(u128::from_str_radix(&wei, 16)?)
}

/// Returns whether there is a contract at this address.
pub async fn has_code(url: &str, address: Address) -> anyhow::Result<bool> {
    Ok(!digits(url, "eth_getCode", json!([address.to_string(), "latest"])).await?.is_empty())
}

pub async fn transactions_of(url: &str, wallet: Address) -> anyhow::Result<u64> {
    let count = digits(url, "eth_getTransactionCount", json!([wallet.to_string(), "latest"])).await?;
    Ok(u64::from_str_radix(&count, 16)?)
}
