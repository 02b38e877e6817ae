//! What no client may fall for: a proxy that the environment names, a configuration file of curl's that trusts anybody, and
//! a node that answers a byte at a time.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy, sink},
    net::{TcpListener, TcpStream, tcp::OwnedWriteHalf},
    task::JoinSet,
};

/// So long it takes between two bytes; programs end an attempt after two seconds.
const DRIP: Duration = Duration::from_millis(250);

/// So many bytes come, in two minutes, and then the answer is whole: who waited for it says something else.
const DRIPS: usize = 480;

/// A listener of each kind, until it is dropped.
pub struct Traps {
    dripping_url: String,
    proxy_port: u16,
    caught: Arc<AtomicUsize>,
    /// Of a file `.curlrc`.
    home: String,
    _listening: JoinSet<()>,
}

impl Traps {
    /// Listens, and writes a configuration file of curl's into the folder.
    pub async fn set(folder: &Path) -> Result<Self> {
        let mut listening = JoinSet::new();
        let dripping = TcpListener::bind("127.0.0.1:0").await?;
        let dripping_url = format!("http://{}", dripping.local_addr()?);
        listening.spawn(async move {
            while let Ok((stream, _)) = dripping.accept().await {
                // One that goes away is what the program is to be.
                tokio::spawn(async move { drip(stream).await.is_ok() });
            }
        });
        let proxy = TcpListener::bind("127.0.0.1:0").await?;
        let proxy_port = proxy.local_addr()?.port();
        let caught = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&caught);
        listening.spawn(async move {
            while proxy.accept().await.is_ok() {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        let curl = format!("insecure\nlocation\nproxy = \"http://127.0.0.1:{proxy_port}\"\n");
        fs::write(folder.join(".curlrc"), curl)?;
        let home = folder.display().to_string();
        Ok(Self { dripping_url, proxy_port, caught, home, _listening: listening })
    }

    /// For the scripts: `$BESET program` runs it where all of this lies in wait.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let Self { proxy_port, home, .. } = self;
        let proxies = ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
        let proxies: String = proxies.map(|name| format!(" {name}=http://127.0.0.1:{proxy_port}")).concat();
        let of_the_jvm = format!(
            "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort={proxy_port} -Dhttps.proxyHost=127.0.0.1 \
             -Dhttps.proxyPort={proxy_port} -Dhttp.nonProxyHosts="
        );
        vec![
            ("DRIPPING_URL", self.dripping_url.clone()),
            ("BESET", format!("env -u NO_PROXY -u no_proxy CURL_HOME={home}{proxies}")),
            ("JVM_PROXY", of_the_jvm),
        ]
    }

    /// How often somebody came to the proxy.
    pub fn caught(&self) -> usize {
        self.caught.load(Ordering::Relaxed)
    }
}

/// Answers the head at once and the body in drips, below `/headers` the head as well.
async fn drip(stream: TcpStream) -> Result<()> {
    let (from, mut to) = stream.into_split();
    let mut from = BufReader::new(from);
    let mut asked = String::new();
    from.read_line(&mut asked).await?;
    let reading = tokio::spawn(async move { copy(&mut from, &mut sink()).await });
    let head = format!(
        "x-farthing-price-usdc: 0.004\r\nx-farthing-charged: 0.004\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        DRIPS + 4
    );
    to.write_all(b"HTTP/1.1 200 OK\r\n").await?;
    if asked.contains("/headers") {
        to.write_all(b"x-drip: ").await?;
        slowly(&mut to).await?;
        to.write_all(format!("\r\n{head}{}null", " ".repeat(DRIPS)).as_bytes()).await?;
    } else {
        to.write_all(head.as_bytes()).await?;
        slowly(&mut to).await?;
        to.write_all(b"null").await?;
    }
    reading.await??;
    Ok(())
}

async fn slowly(to: &mut OwnedWriteHalf) -> Result<()> {
    for _ in 0..DRIPS {
        to.write_all(b" ").await?;
        tokio::time::sleep(DRIP).await;
    }
    Ok(())
}
