//! A TCP proxy between two nodes that counts round trips, can hold what passes back for a while, cut the line or let it go dead.
//!
//! Every piece of data has a depth: one more than the deepest piece that its sender had received before.
//! A request has depth 1, an answer to it depth 2, a request that waited for that answer depth 3. So the
//! deepest piece that came back, halved, is the number of round trips, whatever time they took. Unrelated
//! traffic can only make a count too high, never too low.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

#[derive(Default)]
struct Depths {
    /// Deepest piece on its way to the dialling side, and to the listening side.
    back: AtomicU64,
    forth: AtomicU64,
}

pub(crate) struct Proxy {
    pub(crate) port: u16,
    depths: Arc<Depths>,
    cut: watch::Sender<bool>,
    dead: watch::Sender<bool>,
}

impl Proxy {
    /// Passes everything on to `target_port`.
    pub(crate) async fn start(target_port: u16) -> Self {
        Self::delaying(target_port, Duration::ZERO).await
    }

    /// The same, each piece after `delay`.
    pub(crate) async fn delaying(target_port: u16, delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let depths = Arc::new(Depths::default());
        let ((cut, is_cut), (dead, is_dead)) = (watch::channel(false), watch::channel(false));
        let shared = Arc::clone(&depths);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *is_cut.borrow() {
                    continue;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", target_port)).await else { continue };
                client.set_nodelay(true).unwrap();
                server.set_nodelay(true).unwrap();
                let (depths, is_cut, is_dead) = (Arc::clone(&shared), is_cut.clone(), is_dead.clone());
                tokio::spawn(pass_both(client, server, delay, depths, is_cut, is_dead));
            }
        });
        Self { port, depths, cut, dead }
    }

    pub(crate) fn address(&self) -> String {
        format!("/ip4/127.0.0.1/tcp/{}", self.port)
    }

    /// Counts from zero again.
    pub(crate) fn reset(&self) {
        self.depths.back.store(0, Ordering::SeqCst);
        self.depths.forth.store(0, Ordering::SeqCst);
    }

    /// Round trips since the reset, as the dialling side saw them.
    pub(crate) fn round_trips(&self) -> u64 {
        self.depths.back.load(Ordering::SeqCst).div_ceil(2)
    }

    /// Ends every connection and refuses new ones.
    pub(crate) fn cut(&self) {
        self.cut.send_replace(true);
    }

    /// Nothing passes any more, and nobody is told.
    pub(crate) fn go_dead(&self) {
        self.dead.send_replace(true);
    }
}

async fn pass_both(
    client: TcpStream,
    server: TcpStream,
    delay: Duration,
    depths: Arc<Depths>,
    mut cut: watch::Receiver<bool>,
    dead: watch::Receiver<bool>,
) {
    let (client_read, client_write) = client.into_split();
    let (server_read, server_write) = server.into_split();
    tokio::select! {
        () = pass(client_read, server_write, delay, &depths.back, &depths.forth, &dead) => {}
        () = pass(server_read, client_write, delay, &depths.forth, &depths.back, &dead) => {}
        _ = cut.wait_for(|cut| *cut) => {}
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    delay: Duration,
    received: &AtomicU64,
    sent: &AtomicU64,
    dead: &watch::Receiver<bool>,
) {
    let mut piece = vec![0; 64 * 1024];
    while let Ok(n @ 1..) = from.read(&mut piece).await {
        // Noted before it is passed on, so that an answer is always deeper.
        sent.fetch_max(received.load(Ordering::SeqCst) + 1, Ordering::SeqCst);
        if *dead.borrow() {
            return std::future::pending().await;
        }
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if to.write_all(&piece[..n]).await.is_err() {
            return;
        }
    }
}
