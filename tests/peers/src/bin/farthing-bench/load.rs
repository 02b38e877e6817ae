//! The load generator: the same request over and over on kept connections, the same way to whatever is measured.
//!
//! It shares the machine with what it measures, so it does as little as it can: one thread, one HTTP/1.1 connection
//! for each caller, opened before the clock starts, and a request that was made once.

use std::{
    net::SocketAddr,
    path::Path,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::counts::processor_time_of;
use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use futures::future::{join_all, poll_fn};
use hdrhistogram::Histogram;
use http_body_util::Full;
use hyper::{
    Request, StatusCode,
    body::{Body, Incoming},
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::{net::TcpStream, task::LocalSet};
use tokio_rustls::TlsConnector;

/// How long a caller that was refused for lack of room waits before it asks again.
const AFTER_A_REFUSAL: Duration = Duration::from_millis(1);

/// What is asked of whom.
#[derive(Clone)]
pub struct Target {
    address: SocketAddr,
    tls: Option<Arc<ClientConfig>>,
    request: Request<Full<Bytes>>,
}

impl Target {
    /// `request` has an absolute `http` or `https` address on this machine; `authority` is the file of the certificate
    /// authority that is trusted.
    pub fn new(mut request: Request<Full<Bytes>>, authority: Option<&Path>) -> Result<Self> {
        let url = request.uri().clone();
        let port = url.port_u16().context("a port")?;
        let path = url.path_and_query().context("a path")?.as_str().parse()?;
        request.headers_mut().insert("host", url.authority().context("a host")?.as_str().parse()?);
        *request.uri_mut() = path;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        Ok(Self { address, tls: authority.map(trusting).transpose()?, request })
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return speak(TokioIo::new(stream)).await };
        let name = ServerName::try_from("localhost")?;
        speak(TokioIo::new(TlsConnector::from(Arc::clone(tls)).connect(name, stream).await?)).await
    }
}

fn trusting(authority: &Path) -> Result<Arc<ClientConfig>> {
    farthing_serve::tls::install_provider();
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authority)? {
        roots.add(certificate?)?;
    }
    Ok(Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()))
}

async fn speak<S>(stream: TokioIo<S>) -> Result<SendRequest<Full<Bytes>>>
where
    TokioIo<S>: hyper::rt::Read + hyper::rt::Write + Unpin + 'static,
{
    let (sender, connection) = http1::handshake(stream).await?;
    tokio::task::spawn_local(connection);
    Ok(sender)
}

/// What a turn of load came to.
pub struct Load {
    pub calls: u64,
    /// Asked and refused because there was no room (429 and 503); the caller asked again.
    pub refused: u64,
    pub seconds: f64,
    /// Of the calls that succeeded, in microseconds.
    pub times: Histogram<u64>,
    /// Processor time of the generator itself.
    pub generator: Duration,
}

/// `callers` callers ask for `time`, each one of `targets` in turn, on a thread of their own. The time begins when all are
/// connected and each has been answered once.
pub async fn run(targets: Vec<Target>, callers: usize, time: Duration) -> Result<Load> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    std::thread::Builder::new().name("load".to_owned()).spawn(move || {
        // Whoever asked may be gone, and then nobody wants to know.
        let _ = sender.send(on_this_thread(&targets, callers, time));
    })?;
    receiver.await?
}

fn on_this_thread(targets: &[Target], callers: usize, time: Duration) -> Result<Load> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(LocalSet::new().run_until(async {
        let mut ready = Vec::new();
        for target in targets.iter().cycle().take(callers) {
            let mut connection = target.connect().await?;
            // The first call opens what is opened once: a channel, connections to the next in the row.
            let until = Instant::now() + Duration::from_secs(30);
            while !ask(&mut connection, target).await? {
                ensure!(Instant::now() < until, "{} has no room for a first call", target.address);
                tokio::time::sleep(AFTER_A_REFUSAL).await;
            }
            ready.push((connection, target));
        }
        let (before, started) = (processor_time_of(std::process::id())?, Instant::now());
        let all = ready.into_iter().map(|(connection, target)| caller(connection, target, started + time));
        let (mut calls, mut refused, mut times) = (0, 0, super::histogram()?);
        for one in join_all(all).await {
            let (own, own_refused) = one?;
            calls += own.len();
            refused += own_refused;
            times.add(own)?;
        }
        let seconds = started.elapsed().as_secs_f64();
        let generator = processor_time_of(std::process::id())?.saturating_sub(before);
        Ok(Load { calls, refused, seconds, times, generator })
    }))
}

async fn caller(
    mut connection: SendRequest<Full<Bytes>>,
    target: &Target,
    until: Instant,
) -> Result<(Histogram<u64>, u64)> {
    let (mut times, mut refused) = (super::histogram()?, 0);
    let mut begun = Instant::now();
    while begun < until {
        if ask(&mut connection, target).await? {
            times.record(super::micros(begun.elapsed()))?;
        } else {
            refused += 1;
            tokio::time::sleep(AFTER_A_REFUSAL).await;
        }
        begun = Instant::now();
    }
    Ok((times, refused))
}

/// One call, to the last byte of its answer. False if there was no room for it.
async fn ask(connection: &mut SendRequest<Full<Bytes>>, target: &Target) -> Result<bool> {
    connection.ready().await?;
    let response = connection.send_request(target.request.clone()).await?;
    let status = response.status();
    let mut body = response.into_body();
    let mut last = Bytes::new();
    while let Some(bytes) = next(&mut body).await? {
        last = bytes;
    }
    match status {
        StatusCode::OK => Ok(true),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Ok(false),
        other => anyhow::bail!("{}: {other}: {}", target.address, String::from_utf8_lossy(&last)),
    }
}

async fn next(body: &mut Incoming) -> Result<Option<Bytes>> {
    let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await.transpose()?;
    Ok(frame.map(|frame| frame.into_data().unwrap_or_default()))
}
