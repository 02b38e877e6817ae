//! `farthing run`: the node and its ports, until a signal.
//!
//! The chain has to be chosen, and a first start has to be meant, because it makes a wallet. Then the HTTP ports are bound,
//! so that a port in use is told before a second is spent on the wallet. A first start writes the chain down.
//! SIGHUP has the settings read again, and ends nothing.
//! At the end nobody waits for the chain any more, the ports drain for a while, then the node keeps its promises and stops.
//! When it was to restart, the program then starts itself again in the same process, so that whoever watches over the process
//! notices nothing.

use std::{
    io,
    net::SocketAddr,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    time::Duration,
};

use farthing_commands::settings::RunningNode;
use farthing_config::{self as config, ChangedSettings, Config, Loaded, gateway_url};
use farthing_control::types::Console;
use farthing_node::{
    backup::staged,
    chain_spec,
    home::{self, LockedHome},
    node::{DRAIN_MAX, Node},
};
use farthing_os::shell::word;
use farthing_serve::Listener;
use farthing_wallet::{Wallet, lock_folder};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Context, LogFormat,
    config::checked,
    failure::{Exit, Failure},
    place,
};

mod agents;
mod first;
mod ports;

use ports::Ports;

/// The time that is left for the work of ended calls, however long their ports took.
const RESOLVED_WITHIN: Duration = Duration::from_secs(5);
/// The time in which running calls may still promise something after the node is told to end.
const PROMISES_FOR: Duration = Duration::from_secs(3);

pub(super) async fn run(context: &Context, new: bool) -> Result<(), Failure> {
    // From the first moment: the first process of a container has no other way to be told to end.
    let mut signals = Signals::new().map_err(|error| Failure::new(Exit::Failure, error))?;
    let loaded = load(context).await?;
    let sources = context.sources();
    let mut config = loaded.config.clone();
    context.log.filter(&config.log.filter);
    let has_wallet = Wallet::exists(&config.node.data_dir);
    let is_first = !has_wallet || home::chains(&config.node.data_dir).is_empty();
    first::allow(&sources, &loaded, new)?;
    // Before the ports: that a node runs on this folder already says more than that its ports are taken.
    let locked = LockedHome::lock(&config.node.data_dir)?;
    let gateway_listener = bind(&mut config.gateway.listen, "gateway.listen")?;
    let panel_listener = bind(&mut config.panel.listen, "panel.listen")?;
    let plain_listener =
        config.gateway.plain.as_mut().map(|address| bind(address, "gateway.plain")).transpose()?;
    let socket_listener = config.gateway.socket.as_deref().map(bind_socket).transpose()?;
    let x402_listener =
        config.x402.listen.as_mut().map(|address| bind(address, "x402.listen")).transpose()?;

    if is_first {
        first::write_chain(&sources, &loaded)?;
    }
    if !has_wallet {
        context.tell(&place::surroundings(&sources, &loaded));
    }
    let node = tokio::select! {
        started = Node::start(config.clone(), locked) => started?,
        () = signals.end() => return Ok(()),
    };
    let (stop, restart) = (CancellationToken::new(), CancellationToken::new());
    let running = RunningNode::new(node.handles.clone(), sources, loaded, restart.clone());
    let ports = Ports::new(&config, running.clone(), stop.clone()).await?;
    announce(context, &config, &node, &ports, !has_wallet);

    let Ports { gateway, plain, panel, x402, routes, .. } = ports;
    let listeners = [
        (gateway, Some(gateway_listener)),
        (plain.clone(), plain_listener),
        (plain, socket_listener),
        (panel, Some(panel_listener)),
        (x402, x402_listener),
    ];
    let served = TaskTracker::new();
    for (port, listener) in listeners {
        if let Some(listener) = listener {
            served.spawn(port.serve(listener, stop.clone()));
        }
    }
    served.close();
    let (data_dir, stopping) = (config.node.data_dir.clone(), stop.clone());
    let control = tokio::spawn(async move { farthing_control::serve(&data_dir, routes, stopping).await });

    loop {
        tokio::select! {
            told = signals.next() => match told {
                SignalMeaning::End => {
                    context.tell("Stopping. Waiting for running calls to end.");
                    break;
                }
                SignalMeaning::ReadAgain => read_again(context, &running, &node),
            },
            () = restart.cancelled() => {
                context.tell("Restarting. Waiting for running calls to end.");
                break;
            }
        }
    }
    stop.cancel();
    let until = Instant::now() + DRAIN_MAX;
    node.handles.chain.let_go();
    let ports = async { tokio::join!(served.wait(), control).1 };
    tokio::pin!(ports);
    // Whoever ends this process may not wait for the slowest call.
    let ended = tokio::time::timeout(PROMISES_FOR, &mut ports).await;
    node.end_promises().await;
    let ended = match ended {
        Ok(control) => Ok(control),
        Err(_) => {
            tracing::info!("some calls are still running; this node promises no further payment");
            tokio::time::timeout_at(until, ports).await
        }
    };
    match ended.map(|control| control.map_err(io::Error::other).flatten()) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "the control socket failed"),
        Err(_) => tracing::warn!("some calls and commands did not end in time and get no answer"),
    }
    node.shutdown(until.saturating_duration_since(Instant::now()).max(RESOLVED_WITHIN)).await;
    if restart.is_cancelled() { Err(start_again(context)) } else { Ok(()) }
}

/// The configuration, after a backup that waits has taken the node's place: it may hold settings.
async fn load(context: &Context) -> Result<Loaded, Failure> {
    let loaded = config::load(&context.sources())?;
    let data_dir = loaded.config.node.data_dir.clone();
    if !staged::is_waiting(&data_dir) {
        return Ok(checked(loaded)?);
    }
    let applied = tokio::task::spawn_blocking(move || {
        let _lock = lock_folder(&data_dir)?;
        staged::apply(&data_dir)
    });
    if let Some(kept_in) = applied.await.map_err(anyhow::Error::from)?? {
        let kept_in = kept_in.display();
        context.tell(&format!(
            "A backup was restored. The replaced files are in {kept_in}. All secrets are new."
        ));
    }
    Ok(checked(config::load(&context.sources())?)?)
}

/// Reads the settings again: what can hold at once does, and what cannot is named. Settings that are wrong change nothing.
fn read_again(context: &Context, running: &RunningNode, node: &Node) {
    let newer = match config::load(&context.sources()).and_then(checked) {
        Ok(newer) => newer,
        Err(error) => {
            tracing::error!(%error, "the settings were read again but are not valid, so the earlier ones stay in use");
            return;
        }
    };
    let ChangedSettings { taken, waiting } = running.take_over(&newer);
    node.take_over(&newer.config);
    context.log.filter(&newer.config.log.filter);
    let changed = if taken.is_empty() { "none".to_owned() } else { taken.join(", ") };
    tracing::info!(changed, "the settings were read again");
    if !waiting.is_empty() {
        let waiting = waiting.join(", ");
        tracing::warn!(waiting, "these settings take effect at the next start; use `farthing restart`");
    }
}

/// Starts this program again in the place of this process. Comes back only when that cannot be done.
fn start_again(context: &Context) -> Failure {
    // A program that was replaced meanwhile has no path any more, and is still there under this name.
    let own = std::env::current_exe().ok().filter(|path| path.exists());
    let own = own.unwrap_or_else(|| PathBuf::from("/proc/self/exe"));
    context.log.flush();
    let error = std::process::Command::new(own).args(std::env::args_os().skip(1)).exec();
    Failure::new(Exit::Failure, format!("the node has stopped and could not start again ({error})"))
        .next("start it with `farthing run`")
}

/// Listens; `listen` becomes the address that was taken.
fn bind(listen: &mut SocketAddr, setting: &str) -> Result<Listener, Failure> {
    let bound = farthing_serve::listen(*listen).and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = bound.map_err(|error| {
        let next = match error.kind() {
            io::ErrorKind::AddrInUse => "stop the program that uses it, or choose another",
            io::ErrorKind::PermissionDenied => "choose a port above 1023",
            _ => "choose an address of this machine",
        };
        Failure::new(Exit::Failure, format!("cannot listen on {listen} ({error})"))
            .next(format!("{next} with --set {setting}=…"))
    })?;
    *listen = address;
    Ok(Listener::Tcp(listener))
}

fn bind_socket(path: &Path) -> Result<Listener, Failure> {
    Listener::unix(path).map_err(|error| {
        let next = match error.kind() {
            io::ErrorKind::AddrInUse => "stop the program that listens there, or choose another path",
            io::ErrorKind::AlreadyExists => {
                "remove the file there, which is not a socket, or choose another path"
            }
            _ => "choose a path of at most 90 bytes in a folder that this user owns",
        };
        Failure::new(Exit::Failure, format!("cannot listen on {} ({error})", path.display()))
            .next(format!("{next} with --set gateway.socket=…"))
    })
}

/// The one block that a start prints, or the one line in a log for programs. Logs are kept and sent elsewhere, so that line
/// says how to see the setup code, and not the code.
fn announce(context: &Context, config: &Config, node: &Node, ports: &Ports, is_new: bool) {
    let (version, wallet) = (env!("CARGO_PKG_VERSION"), node.handles.wallet);
    let chain = chain_spec::in_words(node.handles.chain.spec());
    let calls_at = |address, tls| format!("{}/internal/call", gateway_url(address, tls));
    let gateway = calls_at(config.gateway.listen, ports.gateway.tls.is_some());
    let plain = config.gateway.plain.map(|address| calls_at(address, false));
    let path = |path: &PathBuf| path.display().to_string();
    let (socket, trust) = (config.gateway.socket.as_ref().map(path), ports.ca_file.as_ref().map(path));
    let x402 = node.handles.x402_url();
    let Console { url: console, setup_code, ca_fingerprint: sha256, .. } = ports.console.shown();
    let data = word(&config.node.data_dir);
    let secret = format!("farthing secret show --data {data}");
    let back_up = is_new.then(|| format!("farthing backup create --data {data}"));
    if context.global.log_format == LogFormat::Json {
        let set_up = setup_code.map(|_| format!("farthing console url --data {data}"));
        tracing::info!(
            version, %wallet, chain, back_up, gateway, console, plain, socket, x402, set_up, trust, sha256, secret,
            "Farthing is running"
        );
        return;
    }
    let mut text = format!(
        "Farthing {version} is running.\n  Wallet   {wallet}\n  Chain    {chain}\n  Gateway  {gateway}\n  Console  {console}"
    );
    let set_up = setup_code.map(|code| format!("{code}   (once, to choose the console's password)"));
    for (name, value) in [
        ("Plain  ", plain),
        ("Socket ", socket),
        ("x402   ", x402),
        ("Set up ", set_up),
        ("Trust  ", trust),
        ("SHA-256", sha256),
        ("Secret ", Some(secret)),
    ] {
        text += &value.map_or_else(String::new, |value| format!("\n  {name}  {value}"));
    }
    if let Some(back_up) = back_up {
        text += &format!("\nNew wallet {wallet}: only you have its key. Back it up: {back_up}");
    }
    context.output.prose(&text);
}

enum SignalMeaning {
    End,
    ReadAgain,
}

/// The signals of a node, noticed from when this is made.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> SignalMeaning {
        tokio::select! {
            _ = self.terminate.recv() => SignalMeaning::End,
            _ = self.interrupt.recv() => SignalMeaning::End,
            _ = self.hang_up.recv() => SignalMeaning::ReadAgain,
        }
    }

    /// Waits for one that ends a node which has not started yet.
    async fn end(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
