//! A TCP proxy between a node and the chain that misbehaves on request.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

const EVENTS: &[u8] = b"eth_getLogs";

/// What happens to a connection. A change ends the open ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Pass,
    /// Closed at once.
    Refuse,
    /// Taken, and never answered.
    Hang,
    /// Every request is answered with status 500.
    Fail,
    /// Every part of a request arrives this much later.
    Delay(Duration),
    /// Taken and never answered, if it is a question for events; everything else passes.
    WithoutEvents,
}

/// It ends with the test's runtime.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    mood: watch::Sender<Mood>,
}

impl Proxy {
    pub async fn before(url: &str) -> Result<Self> {
        let target: SocketAddr = url.strip_prefix("http://").context("an http address")?.parse()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (mood, moods) = watch::channel(Mood::Pass);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let mut moods = moods.clone();
                tokio::spawn(async move {
                    let mood = *moods.borrow_and_update();
                    tokio::select! {
                        _ = carry(client, target, mood) => {}
                        _ = moods.changed() => {}
                    }
                });
            }
        });
        Ok(Self { address, mood })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn set(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }
}

async fn carry(mut client: TcpStream, target: SocketAddr, mood: Mood) -> std::io::Result<()> {
    let delay = match mood {
        Mood::Pass | Mood::WithoutEvents => Duration::ZERO,
        Mood::Delay(delay) => delay,
        Mood::Refuse => return Ok(()),
        Mood::Hang => return std::future::pending().await,
        Mood::Fail => {
            let _ = client.read(&mut [0; 16 * 1024]).await?;
            let answer =
                b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            return client.write_all(answer).await;
        }
    };
    let server = TcpStream::connect(target).await?;
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    tokio::select! {
        done = copy(from_client, to_server, delay, mood == Mood::WithoutEvents) => done,
        done = copy(from_server, to_client, Duration::ZERO, false) => done,
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    delay: Duration,
    without_events: bool,
) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        // A node's questions are small, and each arrives as one.
        if without_events && buffer[..count].windows(EVENTS.len()).any(|part| part == EVENTS) {
            return std::future::pending().await;
        }
        tokio::time::sleep(delay).await;
        to.write_all(&buffer[..count]).await?;
    }
}
