//! Real servers on free ports and the real programs, for the tests of every service.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use axum::Router;
use farthing_demo_services::serve;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Far longer than anything here takes, so that only a broken promise runs into it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A service on a free port of this machine.
pub(crate) struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    running: JoinHandle<std::io::Result<()>>,
}

impl Server {
    pub(crate) async fn start(app: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let stopped = async { stopped.await.unwrap_or_default() };
        let running = tokio::spawn(serve::serve_until(listener, app, stopped));
        Self { address, stop, running }
    }

    pub(crate) fn url(&self, path_and_query: &str) -> String {
        format!("http://{}{path_and_query}", self.address)
    }

    /// Returns when every connection is closed and the port is free.
    pub(crate) async fn stop(self) {
        self.stop.send(()).unwrap();
        self.running.await.unwrap().unwrap();
    }
}

pub(crate) async fn get_json(url: &str) -> Value {
    let (status, body) = get(url).await;
    assert_eq!(status, 200, "{url}: {body}");
    body
}

/// Status and body of one request on a connection of its own.
pub(crate) async fn get(url: &str) -> (u16, Value) {
    let response = client().get(url).send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or_else(|_| panic!("{url} answered {text}")))
}

pub(crate) fn client() -> reqwest::Client {
    // The provider stays installed after the first call; later ones change nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().timeout(PATIENCE).build().unwrap()
}

/// Starts a service's program on a free port, looks at its health, and asks it to end.
pub(crate) fn assert_names_its_port_answers_and_ends(program: &str) {
    let mut program = Command::new(program)
        .args(["--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let url = first_line(&mut program).strip_prefix("listening on ").unwrap().to_owned();
    assert!(url.starts_with("http://127.0.0.1:") && !url.ends_with(":0"), "{url}");

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let healthy = runtime.block_on(get_json(&format!("{url}/healthz")));
    assert_eq!(healthy["status"], "ok");

    // The shell's own `kill`: no signal can be sent from safe Rust, and no tool need be installed.
    let asked = Instant::now();
    assert!(
        Command::new("sh").arg("-c").arg(format!("kill -TERM {}", program.id())).status().unwrap().success()
    );
    assert!(program.wait().unwrap().success());
    assert!(asked.elapsed() < Duration::from_secs(4), "idle connections do not hold up the end");
}

/// Starts a service's program on a port that is taken.
pub(crate) fn assert_reports_a_taken_port(program: &str) {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = Command::new(program).args(["--listen", &address]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(&address) && said.contains("--listen"), "{said}");
}

/// The first line a program writes on standard output, without its end.
fn first_line(program: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(program.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}
