//! Strangers that are libp2p without our rules: they open streams of one protocol, and write on them what they like.
//!
//! They have a thread of their own, so that what they do themselves is not taken for what they do to others.

use std::{fmt, io, sync::Arc, thread, time::Duration};

use anyhow::{Context, Result};
use farthing_protocol::wire::NetworkName;
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, future::BoxFuture};
use libp2p::{
    StreamProtocol, Swarm, SwarmBuilder, identify, identity, noise,
    request_response::{self, ProtocolSupport},
    swarm::NetworkBehaviour,
    tcp, yamux,
};
use tokio::sync::Notify;

/// Longer than any test looks at them.
const PATIENCE: Duration = Duration::from_secs(600);
/// More than any answer that they are given.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// Wallets at work; they end when this is dropped.
#[derive(Debug)]
pub(crate) struct Strangers {
    end: Arc<Notify>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Strangers {
    pub(crate) fn start<F>(name: &str, work: impl FnOnce() -> F + Send + 'static) -> Result<Self>
    where
        F: Future<Output = ()>,
    {
        let end = Arc::<Notify>::default();
        let told = Arc::clone(&end);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                tokio::select! {
                    () = work() => {}
                    () = told.notified() => {}
                }
            });
        })?;
        Ok(Self { end, thread: Some(thread) })
    }
}

impl Drop for Strangers {
    fn drop(&mut self) {
        self.end.notify_one();
        // What it was doing is of no interest any more.
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

/// What is written on each stream.
pub(crate) trait Writes: fmt::Debug + Send + Sync {
    fn write<'a>(&'a self, stream: &'a mut (dyn AsyncWrite + Unpin + Send)) -> BoxFuture<'a, io::Result<()>>;
}

#[derive(NetworkBehaviour)]
pub(crate) struct Behaviour {
    identify: identify::Behaviour,
    pub(crate) streams: request_response::Behaviour<Codec>,
}

/// A wallet of its own, whose streams of `protocol` are written by `writes`. It is connected to nobody yet.
pub(crate) fn stranger(
    network: &NetworkName,
    protocol: String,
    writes: Arc<dyn Writes>,
) -> Result<Swarm<Behaviour>> {
    let keypair = identity::Keypair::from(identity::secp256k1::Keypair::generate());
    let protocol = StreamProtocol::try_from_owned(protocol).ok().context("a protocol's name")?;
    let identify = identify::Config::new(network.identify_version(), keypair.public());
    let behaviour = Behaviour {
        identify: identify::Behaviour::new(identify),
        streams: request_response::Behaviour::with_codec(
            Codec(writes),
            [(protocol, ProtocolSupport::Outbound)],
            request_response::Config::default().with_request_timeout(PATIENCE),
        ),
    };
    Ok(SwarmBuilder::with_existing_identity(keypair)
        .with_tokio()
        .with_tcp(tcp::Config::new(), noise::Config::new, yamux::Config::default)?
        .with_behaviour(|_| behaviour)?
        .with_swarm_config(|config| config.with_idle_connection_timeout(PATIENCE))
        .build())
}

/// Streams that only the stranger's side writes on.
#[derive(Debug, Clone)]
pub(crate) struct Codec(Arc<dyn Writes>);

impl request_response::Codec for Codec {
    type Protocol = StreamProtocol;
    type Request = ();
    type Response = ();

    async fn read_request<T>(&mut self, _: &StreamProtocol, _: &mut T) -> io::Result<()>
    where
        T: AsyncRead + Unpin + Send,
    {
        Err(io::ErrorKind::Unsupported.into())
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<()>
    where
        T: AsyncRead + Unpin + Send,
    {
        let mut answer = Vec::new();
        io.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await.map(drop)
    }

    async fn write_request<T>(&mut self, _: &StreamProtocol, io: &mut T, (): ()) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        self.0.write(io).await
    }

    async fn write_response<T>(&mut self, _: &StreamProtocol, _: &mut T, (): ()) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        Err(io::ErrorKind::Unsupported.into())
    }
}
