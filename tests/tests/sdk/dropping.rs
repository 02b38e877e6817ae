//! A line to the gateway that is cut once, while the answer is on its way.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use anyhow::{Context, Result};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// More than the node says to introduce itself, and less than an answer with forty earthquakes.
const LET_THROUGH_BYTES: u64 = 8_000;

/// A proxy; it ends with this value.
#[derive(Debug)]
pub struct Dropping {
    pub url: String,
    connections: Arc<AtomicU32>,
    task: JoinHandle<()>,
}

impl Dropping {
    /// Passes connections on to the gateway at `url`; the first one ends in the middle of an answer.
    pub async fn start(url: &str) -> Result<Self> {
        let gateway: SocketAddr = {
            let port = url.rsplit(':').next().and_then(|port| port.trim_end_matches('/').parse().ok());
            ([127, 0, 0, 1], port.context("an address without a port")?).into()
        };
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("https://localhost:{}", listener.local_addr()?.port());
        let connections = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let is_first = counted.fetch_add(1, Ordering::Relaxed) == 0;
                let most = if is_first { LET_THROUGH_BYTES } else { u64::MAX };
                // Either side may end a connection at any time.
                tokio::spawn(async move {
                    let _ = pass(client, gateway, most).await;
                });
            }
        });
        Ok(Self { url, connections, task })
    }

    /// How many connections there were.
    pub fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Dropping {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Passes on both directions until one ends, or `most` bytes have come from the gateway.
async fn pass(client: TcpStream, gateway: SocketAddr, most: u64) -> Result<()> {
    let server = TcpStream::connect(gateway).await?;
    let (mut from_client, mut to_client) = client.into_split();
    let (from_server, mut to_server) = server.into_split();
    let mut from_server = from_server.take(most);
    tokio::select! {
        ended = copy(&mut from_client, &mut to_server) => ended?,
        ended = copy(&mut from_server, &mut to_client) => ended?,
    };
    to_client.shutdown().await?;
    Ok(())
}
