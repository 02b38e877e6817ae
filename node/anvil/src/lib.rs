//! A local chain in a process: finds anvil, starts it on a free port, and ends it when it is dropped.
//!
//! Where anvil is looked for, in this order: `FARTHING_ANVIL`, the `PATH`, and the package that
//! `npm ci --prefix tests/contracts` installs in the repository around the current folder. The binary itself
//! is started, never npm's wrapper script, so that killing the child kills the chain.

use std::{
    env,
    io::{self, BufRead, BufReader},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
    thread,
};

use anyhow::{Context, Result, bail, ensure};

/// A running chain. Dropping it kills the process and waits for its end.
#[derive(Debug)]
pub struct Anvil {
    child: Child,
    port: u16,
}

impl Anvil {
    /// The id that anvil gives its chain unless told otherwise.
    pub const CHAIN_ID: u64 = 31_337;

    /// Starts a chain on a free port that mines every transaction at once.
    pub fn start() -> Result<Self> {
        Self::start_with(0, &[])
    }

    /// The same on a given port, 0 for a free one, with more of anvil's own arguments.
    pub fn start_with(port: u16, arguments: &[&str]) -> Result<Self> {
        let program = find()?;
        let mut child = Command::new(&program)
            .args(["--host", "127.0.0.1", "--port", &port.to_string()])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let stdout = child.stdout.take().context("anvil was started without its output")?;
        // From here on `Drop` ends the child, also when the port never appears.
        let mut anvil = Self { child, port };
        anvil.port = announced_port(stdout)
            .with_context(|| format!("{} ended without opening a port", program.display()))?;
        Ok(anvil)
    }

    /// Returns whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// `http://127.0.0.1:<port>`
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Anvil {
    fn drop(&mut self) {
        // Both fail only when the child has already ended, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The anvil this machine has.
fn find() -> Result<PathBuf> {
    let named = env::var_os("FARTHING_ANVIL").map(PathBuf::from);
    let folders: Vec<PathBuf> = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect();
    choose(named, folders.iter().map(|folder| folder.join(binary_name())).chain(packaged()))
}

/// A named anvil must exist; of the others the first that does is taken.
fn choose(named: Option<PathBuf>, others: impl IntoIterator<Item = PathBuf>) -> Result<PathBuf> {
    if let Some(path) = named {
        ensure!(path.is_file(), "FARTHING_ANVIL names {}, which is not a file", path.display());
        return Ok(path);
    }
    others.into_iter().find(|path| path.is_file()).context(
        "anvil is not installed: run `npm ci --prefix tests/contracts` in the repository, \
         or set FARTHING_ANVIL to an anvil binary",
    )
}

/// Lists the places where npm puts it, in the current folder or one above. npm names platforms as Node.js does.
fn packaged() -> Vec<PathBuf> {
    let os = match env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    };
    let cpu = if env::consts::ARCH == "aarch64" { "arm64" } else { "amd64" };
    let package = format!("tests/contracts/node_modules/@foundry-rs/anvil-{os}-{cpu}/bin");
    let here = env::current_dir().unwrap_or_default();
    here.ancestors().map(|folder| folder.join(&package).join(binary_name())).collect()
}

fn binary_name() -> String {
    format!("anvil{}", env::consts::EXE_SUFFIX)
}

/// Reads up to the line `Listening on 127.0.0.1:<port>`, then keeps the pipe empty so that anvil never
/// waits for a reader.
fn announced_port(stdout: ChildStdout) -> Result<u16> {
    let mut lines = BufReader::new(stdout);
    let port = loop {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            bail!("its output ended; what it printed above says why");
        }
        if let Some(address) = line.trim().strip_prefix("Listening on ") {
            let (_, port) = address.rsplit_once(':').context("anvil announced no port")?;
            break port.parse().with_context(|| format!("anvil announced the port {port:?}"))?;
        }
    };
    thread::spawn(move || io::copy(&mut lines, &mut io::sink()));
    Ok(port)
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn a_dropped_chain_is_gone() -> Result<()> {
        let anvil = Anvil::start()?;
        let address = ("127.0.0.1", anvil.port());
        TcpStream::connect(address)?;
        drop(anvil);
        assert!(TcpStream::connect(address).is_err());
        Ok(())
    }

    #[test]
    fn a_missing_anvil_is_an_error_that_says_what_to_run() {
        let error = choose(None, [PathBuf::from("/nowhere/anvil")]).unwrap_err();
        assert!(error.to_string().contains("npm ci --prefix tests/contracts"), "{error}");
        let error = choose(Some("/nowhere/anvil".into()), []).unwrap_err();
        assert!(error.to_string().contains("FARTHING_ANVIL names /nowhere/anvil"), "{error}");
    }

    #[test]
    fn a_chain_that_cannot_start_is_an_error() {
        assert!(Anvil::start_with(0, &["--no-such-option"]).is_err());
    }
}
