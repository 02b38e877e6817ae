//! Calls of agents that wait for their user: the page shows exactly what is asked for, and only a password approves it.

use anyhow::{Result, ensure};
use farthing_control::{
    endpoint,
    types::{Approval, ApprovalRequest, ApprovalState, NewSecret, SecretLimits},
};
use farthing_testnet::NodeProcess;
use serde_json::json;

use crate::{
    pages::HTML_BYTES_MAX,
    support::{Node, PASSWORD},
};

const PAGE: &str = "/panel/finance/approvals";
const APPROVE: &str = "/panel/finance/approvals/approve";
const REFUSE: &str = "/panel/finance/approvals/refuse";

/// Asks as an agent's door does.
async fn asks(node: &NodeProcess, note: &str, price: &str) -> Result<Approval> {
    let request: ApprovalRequest = serde_json::from_value(json!({
        "price": price, "above": "0.001",
        "call": {
            "api_id_public": "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b", "method": "POST", "path": "/orders",
            "params": { "note": note }, "body": { "count": 7 }, "max_price": "1", "call_id": "mine",
        },
    }))?;
    Ok(node.control().tell(endpoint::AskApproval.of("agent"), &request).await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_an_agent_is_approved_once_with_the_password_and_refused_without_it() -> Result<()> {
    let mut node = Node::start().await?;
    let mut browser = node.set_up().await?;
    let new = NewSecret { name: "agent".to_owned(), limits: SecretLimits::default() };
    node.process.control().tell(endpoint::CreateSecret, &new).await?;
    let empty = browser.get(PAGE).await?;
    ensure!(empty.status == 200 && empty.body.contains("No calls wait for your approval"), "{empty:?}");

    // Whatever an agent says is shown as what it is.
    let asked = asks(&node.process, "</code><script>approve()</script>\u{202e}", "0.25").await?;
    ensure!(asked.state == ApprovalState::Waiting && asked.url.ends_with(PAGE), "{asked:?}");
    let home = browser.get("/panel").await?;
    ensure!(home.body.contains("An agent waits for your approval"), "{home:?}");
    let page = browser.get(PAGE).await?;
    for part in ["0.25 USDC at most", "secrets/agent", "POST /orders", "\\u202e", "count", "Waiting for you"]
    {
        ensure!(page.body.contains(part), "{part}: {page:?}");
    }
    ensure!(!page.body.contains("An agent waits for your approval"), "the page itself says it: {page:?}");
    ensure!(!page.body.contains("<script>approve()") && page.body.len() <= HTML_BYTES_MAX, "{page:?}");

    // A password is asked for, because the one of the set-up is not fresh after a restart; which also ends what waits.
    node.restart(&mut browser).await?;
    let gone = browser.press(APPROVE, &[("id", &asked.id), ("console_password", PASSWORD)]).await?;
    ensure!(gone.status == 422 && gone.body.contains("with this id waits for approval"), "{gone:?}");
    let asked = asks(&node.process, "a", "0.25").await?;
    node.restart(&mut browser).await?;
    ensure!(asks(&node.process, "a", "0.25").await?.id != asked.id, "a restart ends it");
    let asked = asks(&node.process, "a", "0.25").await?;
    let page = browser.press(APPROVE, &[("id", &asked.id)]).await?;
    ensure!(page.asks_for_password(), "{page:?}");
    ensure!(asks(&node.process, "a", "0.25").await?.state == ApprovalState::Waiting, "nothing was approved");
    let page = browser.post_and_follow(APPROVE, &[("id", &asked.id)]).await?;
    ensure!(page.body.contains("Call approved") && page.body.contains("not bought yet"), "{page:?}");
    ensure!(asks(&node.process, "b", "0.25").await?.state == ApprovalState::Waiting, "another call");
    ensure!(asks(&node.process, "a", "0.25").await?.state == ApprovalState::Approved, "this call");
    ensure!(asks(&node.process, "a", "0.25").await?.state == ApprovalState::Waiting, "once");

    let other = asks(&node.process, "b", "0.25").await?;
    let mut thief = browser.thief();
    ensure!(
        thief.press(REFUSE, &[("id", &other.id)]).await?.asks_for_password(),
        "a cookie alone decides nothing"
    );
    ensure!(browser.press(REFUSE, &[("id", &other.id)]).await?.status == 303, "no password to refuse");
    ensure!(asks(&node.process, "b", "0.5").await?.state == ApprovalState::Refused);
    Ok(())
}
