//! A local chain for one test, ended when it is dropped.
//!
//! anvil is looked for in `FARTHING_ANVIL`, the `PATH`, and what `npm ci --prefix tests/contracts` installs.

use std::{
    env,
    io::{BufRead as _, BufReader, copy, sink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

use serde_json::{Value, json};

/// A running chain.
pub(crate) struct Anvil {
    child: Child,
    port: u16,
    http: reqwest::Client,
}

impl Anvil {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_on(0, arguments)
    }

    pub(crate) fn start_on(port: u16, arguments: &[&str]) -> Self {
        let program = find();
        let mut child = Command::new(&program)
            .args(["--host", "127.0.0.1", "--port", &port.to_string()])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", program.display()));
        let mut output = BufReader::new(child.stdout.take().expect("its output is piped"));
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build().expect("an HTTP client");
        let mut anvil = Self { child, port, http };
        loop {
            let mut line = String::new();
            let read = output.read_line(&mut line).expect("anvil's output is text");
            assert!(read > 0, "anvil ended without opening a port");
            if let Some((_, port)) =
                line.trim().strip_prefix("Listening on ").and_then(|a| a.rsplit_once(':'))
            {
                anvil.port = port.parse().expect("a port");
                break;
            }
        }
        // Whoever stops reading a pipe stops its writer.
        thread::spawn(move || copy(&mut output, &mut sink()));
        anvil
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// One request that the test itself makes.
    pub(crate) async fn rpc(&self, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let request = self.http.post(self.url()).header("content-type", "application/json").body(body);
        let bytes = request.send().await.expect("anvil answers").bytes().await.expect("anvil answers");
        let mut answer: Value = serde_json::from_slice(&bytes).expect("anvil answers in JSON");
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    pub(crate) async fn rpc_u64(&self, method: &str, params: Value) -> u64 {
        let answer = self.rpc(method, params).await;
        let digits = answer.as_str().and_then(|text| text.strip_prefix("0x")).expect("a hexadecimal number");
        u64::from_str_radix(digits, 16).expect("a hexadecimal number")
    }

    pub(crate) async fn mine(&self) {
        self.rpc("evm_mine", json!([])).await;
    }
}

impl Drop for Anvil {
    fn drop(&mut self) {
        // Both fail only when the child has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn find() -> PathBuf {
    let name = format!("anvil{}", env::consts::EXE_SUFFIX);
    let named = env::var_os("FARTHING_ANVIL").map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).map(|folder| folder.join(&name)).collect::<Vec<_>>();
    let os = match env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    };
    let cpu = if env::consts::ARCH == "aarch64" { "arm64" } else { "amd64" };
    let packaged = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../../tests/contracts/node_modules/@foundry-rs/anvil-{os}-{cpu}/bin"))
        .join(&name);
    named.into_iter().chain(on_path).chain([packaged]).find(|path| path.is_file()).expect(
        "anvil is not installed: run `npm ci --prefix tests/contracts`, or set FARTHING_ANVIL to the binary",
    )
}
