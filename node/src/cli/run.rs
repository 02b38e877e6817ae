//! `farthing run`: the node and its ports, until a signal.
//!
//! The gateway's port is bound first, so that a port in use is told before a second is spent on the wallet.
//! At the end the ports drain, then the node keeps its promises and stops.

use std::{io, net::SocketAddr};

use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

use super::{
    Context,
    failure::{Exit, Failure},
};
use crate::{
    commands,
    config::{self, Config, TlsMode},
    control, gateway,
    node::{Node, gateway_url},
    serve::{Hosts, Limits, Port, Tls, guarded},
    tls::{self, ServerTls, TlsError},
};

pub(super) async fn run(context: &Context) -> Result<(), Failure> {
    // From the first moment: the first process of a container has no other way to be told to end.
    let mut signals = Signals::new().map_err(|error| Failure::new(Exit::Failure, error))?;
    let mut config = config::load(&context.sources())?.config;
    let listener = bind(config.gateway.listen).await?;
    config.gateway.listen = listener.local_addr().map_err(|error| Failure::new(Exit::Failure, error))?;

    let node = tokio::select! {
        started = Node::start(config.clone()) => started?,
        () = signals.first() => return Ok(()),
    };
    let tls = server_tls(&config).map_err(|error| Failure::new(Exit::Failure, error))?;
    announce(context, &config, &node, tls.as_ref());

    let stop = CancellationToken::new();
    let port = port(&config, &node, tls);
    let gateway = tokio::spawn(port.serve(listener, stop.clone()));
    let (data_dir, routes) = (config.node.data_dir.clone(), commands::router(node.clone()));
    let stopping = stop.clone();
    let control = tokio::spawn(async move { control::serve(&data_dir, routes, stopping).await });

    signals.first().await;
    context.output.prose("Stopping: running calls end first.");
    stop.cancel();
    let (gateway, control) = tokio::join!(gateway, control);
    for ended in [gateway.map_err(io::Error::other), control.map_err(io::Error::other).flatten()] {
        if let Err(error) = ended {
            tracing::warn!(%error, "a port ended badly");
        }
    }
    node.shutdown().await;
    Ok(())
}

async fn bind(listen: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(listen).await.map_err(|error| {
        let next = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "stop the program that has it, or choose another with --set gateway.listen=…"
            }
            io::ErrorKind::PermissionDenied => "choose a port above 1023 with --set gateway.listen=…",
            _ => "choose an address of this machine with --set gateway.listen=…",
        };
        Failure::new(Exit::Failure, format!("{listen} cannot be listened on ({error}); {next}"))
    })
}

fn server_tls(config: &Config) -> Result<Option<ServerTls>, TlsError> {
    match &config.gateway.tls {
        TlsMode::Off => Ok(None),
        TlsMode::OwnAuthority => tls::own(&config.node.data_dir, &config.gateway.hosts).map(Some),
        TlsMode::Files { cert_file, key_file } => tls::from_files(cert_file, key_file).map(Some),
    }
}

fn port(config: &Config, node: &Node, tls: Option<ServerTls>) -> Port {
    let limits = Limits {
        connections_max: config.gateway.connections_max,
        connections_per_ip_max: config.gateway.connections_per_ip_max,
        ..Limits::default()
    };
    Port {
        router: guarded(gateway::router(node.gateway()), Hosts::new(&config.gateway.hosts)),
        tls: tls.map(|tls| Tls { config: tls.config, ca_file: tls.ca_file }),
        trusted_proxies: config.gateway.trusted_proxies.clone(),
        limits,
    }
}

/// The one block that a start prints.
fn announce(context: &Context, config: &Config, node: &Node, tls: Option<&ServerTls>) {
    let mut text = format!(
        "Farthing {} is running.\n  Wallet   {}\n  Gateway  {}/internal/call",
        env!("CARGO_PKG_VERSION"),
        node.wallet,
        gateway_url(config.gateway.listen, tls.is_some()),
    );
    if let Some(ca_file) = tls.and_then(|tls| tls.ca_file.as_ref()) {
        text += &format!("\n  Trust    {}", ca_file.display());
    }
    if let Some(fingerprint) = tls.and_then(|tls| tls.ca_fingerprint.as_ref()) {
        text += &format!("\n  SHA-256  {fingerprint}");
    }
    let data = config.node.data_dir.display();
    text += &format!("\n  Secret   farthing secret show --data {data}");
    context.output.prose(&text);
}

/// The signals that end a node, noticed from when this is made.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn first(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
