//! A proxy that the environment names: it is for what lies outside, and a chain of a private network does not.

use std::net::TcpListener;

use anyhow::{Result, ensure};
use farthing_testnet::{LocalChain, NodeOptions, NodeProcess};
use farthing_tests::wait::eventually;

/// A machine of a private network, and nobody's here.
const NEIGHBOUR: &str = "http://10.255.255.254:8545";
const OUTSIDE: &str = "http://rpc.example:8545";

/// Names the proxy for everything, whatever the environment of the test says.
fn environment(proxy: &TcpListener) -> Result<Vec<(String, String)>> {
    let url = format!("http://{}", proxy.local_addr()?);
    let proxies = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    let asked = proxies.map(|name| (name.to_owned(), url.clone()));
    let without_exception = ["NO_PROXY", "no_proxy"].map(|name| (name.to_owned(), String::new()));
    Ok(asked.into_iter().chain(without_exception).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_of_the_environment_is_asked_for_what_is_outside_and_for_no_chain_of_a_private_network()
-> Result<()> {
    let chain = LocalChain::start().await?;
    let proxy = TcpListener::bind("127.0.0.1:0")?;
    proxy.set_nonblocking(true)?;
    let folder = tempfile::tempdir()?;
    let start = async |name: &str, preset: &str, urls: &[&str]| {
        let mut options = NodeOptions::new(folder.path().join(name));
        options.environment = environment(&proxy)?;
        let chain = [
            ("chain.preset", preset.to_owned()),
            ("chain.rpc_urls", urls.join(",")),
            ("chain.chain_id", "31337".to_owned()),
            ("chain.token", chain.token.to_string()),
        ];
        NodeProcess::start_on(chain.map(|(key, value)| (key.to_owned(), value)).to_vec(), options).await
    };

    // The neighbour is asked first, and the node is ready by the second endpoint.
    let near = [NEIGHBOUR, &chain.rpc_url()];
    for preset in ["local", "custom"] {
        let node = start(preset, preset, &near).await?;
        node.wait_until_ready().await?;
        ensure!(proxy.accept().is_err(), "the proxy was asked for {NEIGHBOUR} of a {preset} chain");
    }
    let _outside = start("outside", "custom", &[OUTSIDE]).await?;
    eventually("the proxy is asked for what is outside", async || Ok(proxy.accept().is_ok())).await
}
