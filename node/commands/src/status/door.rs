//! The check of the port for x402 clients.

use std::time::Duration;

use farthing_control::{counted, types::Check};
use farthing_node::handles::Handles;
use tokio::{net::TcpStream, time::timeout};
use url::Url;

/// A port of this machine, or one behind its own proxy, answers within this.
const CONNECTED_WITHIN: Duration = Duration::from_secs(3);

/// Checks that the node can sell to x402 clients, and that the address in its terms accepts connections. `None` without a port.
pub(super) async fn check(node: &Handles) -> Option<Check> {
    let url = node.x402_url()?;
    let sales = node.owner.x402();
    sales.look_at_the_door().await;
    if let Some(closed) = sales.closed_door() {
        return Some(super::check("x402", Err((closed.cause, closed.action))));
    }
    let refused = sales.refused_payments().map_or_else(String::new, |refused| {
        let payments = counted(refused.count, "payment");
        format!("; within the last hour the chain refused {payments} of served calls: {}", refused.reason)
    });
    Some(match connects(&url).await {
        Ok(()) => super::check("x402", Ok(format!("x402 clients can buy at {url}{refused}"))),
        // A router may keep this machine alone from its own public address.
        Err(reason) => Check {
            next: Some(
                "ask for `/.well-known/x402` below this address from another network; if it does not answer, correct \
                 `x402.url`, the proxy or the router"
                    .to_owned(),
            ),
            ..super::check("x402", Ok(format!("this machine cannot connect to {url}: {reason}{refused}")))
        },
    })
}

/// Connects to the port of an address.
async fn connects(url: &str) -> Result<(), String> {
    let parsed = Url::parse(url).map_err(|error| error.to_string())?;
    let (host, port) = (parsed.host_str(), parsed.port_or_known_default());
    let (Some(host), Some(port)) = (host, port) else { return Err("it names no host".to_owned()) };
    let connecting = TcpStream::connect(format!("{host}:{port}"));
    match timeout(CONNECTED_WITHIN, connecting).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} s", CONNECTED_WITHIN.as_secs())),
    }
}
