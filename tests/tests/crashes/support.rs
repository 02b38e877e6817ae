//! What the crash tests share: a world whose owner keeps its address, and questions to both books.

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_testnet::NodeProcess;
pub use farthing_tests::world::tail;
use farthing_tests::{
    agreement,
    wait::eventually,
    world::{Answer, Setup, World},
};
use farthing_values::Usdc;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::{net::TcpSocket, task::JoinHandle};

/// A world whose nodes are found again after a restart: their ports are kept for them.
pub struct Lasting {
    pub world: World,
    _ports: [TcpSocket; 2],
}

impl Lasting {
    pub async fn start() -> Result<Self> {
        Self::with(Setup::default()).await
    }

    pub async fn with(mut setup: Setup) -> Result<Self> {
        let ((network, network_port), (gateway, gateway_port)) = (reserved_port()?, reserved_port()?);
        let listen = format!("/ip4/127.0.0.1/tcp/{network_port}");
        setup.owner_settings.push(("network.listen".to_owned(), listen));
        setup.consumer_settings.push(("gateway.listen".to_owned(), format!("127.0.0.1:{gateway_port}")));
        Ok(Self { world: World::with(setup).await?, _ports: [network, gateway] })
    }

    /// The same with a channel that has carried its first call.
    pub async fn warm() -> Result<Self> {
        let lasting = Self::start().await?;
        let first = lasting.world.get("/ok").await?;
        ensure!(first.status == StatusCode::OK, "the first call: {first:?}");
        Ok(lasting)
    }
}

/// A port that nobody else is given while the socket lives; a node may still listen on it.
fn reserved_port() -> Result<(TcpSocket, u16)> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind("127.0.0.1:0".parse()?)?;
    let port = socket.local_addr()?.port();
    Ok((socket, port))
}

/// A call under a call id of the test's choosing.
pub fn body_with_id(world: &World, method: &str, path: &str, call_id: &str) -> Value {
    let mut body = world.body(method, path);
    body["call_id"] = json!(call_id);
    body
}

/// Sends a call and lets the test do other things meanwhile.
pub async fn call_in_background(world: &World, body: &Value) -> Result<JoinHandle<Result<Answer>>> {
    call_by(world.client(), world, body).await
}

/// The same by another client than the world's.
pub async fn call_by(
    client: &reqwest::Client,
    world: &World,
    body: &Value,
) -> Result<JoinHandle<Result<Answer>>> {
    let url = format!("{}/internal/call", world.consumer.status().await?.gateway_url);
    let request = client.post(url).bearer_auth(&world.secret).body(body.to_string());
    Ok(tokio::spawn(async move {
        let response = request.send().await?;
        Ok(Answer {
            status: response.status(),
            headers: response.headers().clone(),
            body: response.bytes().await?,
        })
    }))
}

/// Repeats a call under its id until the service has answered it. What fails on the way must never say that
/// it was charged.
pub async fn until_answered(world: &World, body: &Value) -> Result<Answer> {
    let mut last = None;
    let answered = eventually("the call is answered", async || {
        let answer = world.call(body).await?;
        ensure!(
            answer.problem().is_empty() || answer.charged() != json!(true),
            "charged without answer: {answer:?}"
        );
        let done = answer.status == StatusCode::OK;
        last = Some(answer);
        Ok(done)
    })
    .await;
    answered.with_context(|| format!("last answer: {last:?}\nconsumer's log:\n{}", tail(&world.consumer)))?;
    last.context("no answer")
}

/// What one side counts as charged on its only channel.
pub async fn spent(node: &NodeProcess) -> Result<Usdc> {
    let channels = node.control().ask(endpoint::Channels).await?;
    Ok(channels.first().map_or(Usdc::ZERO, |channel| channel.spent.0))
}

/// Both sides decided, and they count the same.
pub async fn agreed_spent(world: &World) -> Result<Usdc> {
    world.wait_until_decided().await.context(tail(&world.consumer))?;
    let mut counted = (Usdc::ZERO, Usdc::ZERO);
    // What a crash kept out of the consumer's books and its owner told again is stored there before it is counted.
    let agreed = eventually("X1: both sides count the same", async || {
        counted = (spent(&world.owner).await?, spent(&world.consumer).await?);
        Ok(counted.0 == counted.1)
    })
    .await;
    let (owner, consumer) = counted;
    agreed.with_context(|| {
        let log = tail(&world.consumer);
        format!("the owner counts {owner}, the consumer {consumer}\nconsumer's log:\n{log}")
    })?;
    agreement::check(&[&world.owner, &world.consumer]).await.context(tail(&world.consumer))?;
    Ok(owner)
}

/// A call is answered, both sides count the same, and the chain brings that to the owner.
pub async fn until_all_is_well(world: &World, body: &Value) -> Result<()> {
    until_answered(world, body).await?;
    let spent = agreed_spent(world).await?;
    world.settle_for(spent).await
}

/// The environment that ends a node at a place.
pub fn kill_at(point: &str) -> Vec<(String, String)> {
    vec![("FARTHING_KILL_AT".to_owned(), point.to_owned())]
}
