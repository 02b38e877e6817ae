//! `farthing run`: the node and its ports, until a signal.
//!
//! The HTTP ports are bound first, so that a port in use is told before a second is spent on the wallet.
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
    config::{self, Config},
    control,
    node::{Node, gateway_url},
};

mod ports;

use ports::Ports;

pub(super) async fn run(context: &Context) -> Result<(), Failure> {
    // From the first moment: the first process of a container has no other way to be told to end.
    let mut signals = Signals::new().map_err(|error| Failure::new(Exit::Failure, error))?;
    let loaded = config::load(&context.sources())?;
    let shown = loaded.shown();
    let mut config = loaded.config;
    let gateway_listener = bind(&mut config.gateway.listen, "gateway").await?;
    let panel_listener = bind(&mut config.panel.listen, "panel").await?;

    let node = tokio::select! {
        started = Node::start(config.clone()) => started?,
        () = signals.first() => return Ok(()),
    };
    let stop = CancellationToken::new();
    let ports = Ports::new(&config, shown, &node, stop.clone()).await?;
    announce(context, &config, &node, &ports);

    let Ports { gateway, panel, routes, .. } = ports;
    let gateway = tokio::spawn(gateway.serve(gateway_listener, stop.clone()));
    let panel = tokio::spawn(panel.serve(panel_listener, stop.clone()));
    let (data_dir, stopping) = (config.node.data_dir.clone(), stop.clone());
    let control = tokio::spawn(async move { control::serve(&data_dir, routes, stopping).await });

    signals.first().await;
    context.output.prose("Stopping: running calls end first.");
    stop.cancel();
    let (gateway, panel, control) = tokio::join!(gateway, panel, control);
    let ports = [gateway, panel].map(|ended| ended.map_err(io::Error::other));
    for ended in ports.into_iter().chain([control.map_err(io::Error::other).flatten()]) {
        if let Err(error) = ended {
            tracing::warn!(%error, "a port ended badly");
        }
    }
    node.shutdown().await;
    Ok(())
}

/// Listens; `listen` becomes the address that was taken.
async fn bind(listen: &mut SocketAddr, section: &str) -> Result<TcpListener, Failure> {
    let bound = TcpListener::bind(*listen).await.and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = bound.map_err(|error| {
        let next = match error.kind() {
            io::ErrorKind::AddrInUse => "stop the program that has it, or choose another",
            io::ErrorKind::PermissionDenied => "choose a port above 1023",
            _ => "choose an address of this machine",
        };
        let text = format!("{listen} cannot be listened on ({error}); {next} with --set {section}.listen=…");
        Failure::new(Exit::Failure, text)
    })?;
    *listen = address;
    Ok(listener)
}

/// The one block that a start prints.
fn announce(context: &Context, config: &Config, node: &Node, ports: &Ports) {
    let console = ports.console.shown();
    let mut text = format!(
        "Farthing {} is running.\n  Wallet   {}\n  Gateway  {}/internal/call\n  Console  {}",
        env!("CARGO_PKG_VERSION"),
        node.wallet,
        gateway_url(config.gateway.listen, ports.gateway.tls.is_some()),
        console.url,
    );
    if let Some(code) = console.setup_code {
        text += &format!("\n  Set up   {code}   (once, to choose the console's password)");
    }
    if let Some(ca_file) = &ports.ca_file {
        text += &format!("\n  Trust    {}", ca_file.display());
    }
    if let Some(fingerprint) = console.ca_fingerprint {
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
