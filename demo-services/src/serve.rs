//! Run a service: bind, say where on standard output, answer until told to stop, finish what is in flight.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Answers take milliseconds; a connection still busy after this long is a client that stopped reading.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// Serves `app` on `address` until SIGTERM or SIGINT.
///
/// Prints one line, `listening on http://ADDRESS`, once connections are accepted; with port 0 it names the
/// port that was given.
pub async fn run(address: SocketAddr, app: Router) -> anyhow::Result<()> {
    let stop = stop_signal().context("cannot listen for SIGTERM")?;
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}; choose another address with --listen"))?;
    let bound = listener.local_addr().context("cannot read the bound address")?;
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "listening on http://{bound}").and_then(|()| stdout.flush())?;
    drop(stdout);
    serve_until(listener, app, stop).await.context("cannot accept connections")
}

/// Serves `app` on `listener` until `stop` completes, then lets running requests finish, for five seconds at most.
pub async fn serve_until(
    listener: TcpListener,
    app: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (stopping, mut stopped) = tokio::sync::watch::channel(false);
    // Small answers must not wait for the client's acknowledgement of the head.
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
    });
    let server = axum::serve(listener, app).with_graceful_shutdown(async move {
        stop.await;
        stopping.send_replace(true);
    });
    let drained = async {
        // An error means that the sender is gone, so the server has ended and the other branch has won.
        let _ = stopped.wait_for(|stopping| *stopping).await;
        tokio::time::sleep(DRAIN_MAX).await;
    };
    tokio::select! {
        ended = async { server.await } => ended,
        () = drained => Ok(()),
    }
}

/// Log lines on standard error, `info` and above unless `RUST_LOG` says otherwise.
pub fn log_to_stderr() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).init();
}

/// Completes at the first SIGTERM or SIGINT. The handlers are in place when this returns.
fn stop_signal() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::Router;
    use axum::routing::get;
    use tokio::net::TcpListener;
    use tokio::sync::{Notify, oneshot};

    #[tokio::test]
    async fn a_request_in_flight_is_answered_before_the_service_ends() {
        let (arrived, answer) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (tell, wait) = (Arc::clone(&arrived), Arc::clone(&answer));
        let slow = move || async move {
            tell.notify_one();
            wait.notified().await;
            "done"
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let stopped = async { stopped.await.unwrap() };
        let service =
            tokio::spawn(super::serve_until(listener, Router::new().route("/", get(slow)), stopped));

        // The provider stays installed after the first test; later ones change nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let asked = tokio::spawn(async move { reqwest::get(url).await.unwrap().text().await.unwrap() });
        arrived.notified().await;
        stop.send(()).unwrap();
        answer.notify_one();

        assert_eq!(asked.await.unwrap(), "done");
        service.await.unwrap().unwrap();
    }
}
