//! A line between two nodes whose connections can stall: what they carry is held, and delivered later.

use anyhow::{Context, Result};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

/// A line to one node. Its connections end with the test.
#[derive(Debug)]
pub struct Line {
    address: String,
    holds: watch::Sender<bool>,
    /// Pieces that were held and have been delivered to the node.
    delivered: watch::Receiver<u64>,
}

impl Line {
    /// Opens a line to the node at `address`, a multiaddress of TCP.
    pub async fn to(address: &str) -> Result<Self> {
        let mut parts: Vec<String> = address.split('/').map(str::to_owned).collect();
        let port = parts.get_mut(4).context("an address without a port")?;
        let behind: u16 = port.parse()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        *port = listener.local_addr()?.port().to_string();
        let (holds, held) = watch::channel(false);
        let (deliveries, delivered) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", behind)).await else { return };
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                let ((from_client, to_client), (from_server, to_server)) =
                    (client.into_split(), server.into_split());
                // One that is made while others stall has a path of its own.
                let stalls = (!*held.borrow()).then(|| held.clone());
                tokio::spawn(carry(from_client, to_server, stalls.clone(), Some(deliveries.clone())));
                tokio::spawn(carry(from_server, to_client, stalls, None));
            }
        });
        Ok(Self { address: parts.join("/"), holds, delivered })
    }

    /// The address to dial in place of the node's own.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Stalls every connection that is there, or lets all of them go on.
    pub fn hold(&self, holds: bool) {
        self.holds.send_replace(holds);
    }

    /// Waits until something that was held has reached the node.
    pub async fn delivered(&self) -> Result<()> {
        self.delivered.clone().wait_for(|pieces| *pieces > 0).await?;
        Ok(())
    }
}

async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut stalls: Option<watch::Receiver<bool>>,
    deliveries: Option<watch::Sender<u64>>,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count) = from.read(&mut buffer).await {
        let mut was_held = false;
        if let Some(stalls) = &mut stalls {
            was_held = *stalls.borrow();
            if stalls.wait_for(|holds| !holds).await.is_err() {
                return;
            }
        }
        if count == 0 || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
        if let Some(deliveries) = deliveries.as_ref().filter(|_| was_held) {
            deliveries.send_modify(|pieces| *pieces += 1);
        }
    }
}
