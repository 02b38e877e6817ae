//! Commands of the system, and what is missing to run them.

use std::{
    fmt, fs,
    io::Write as _,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};

/// Why there can be no lab here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    Root,
    Program { name: &'static str, package: &'static str },
}

impl Missing {
    pub const fn is_for_root(self) -> bool {
        matches!(self, Self::Root)
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("network namespaces need root: run `make nat-test` as root"),
            Self::Program { name, package } => {
                write!(f, "`{name}` is not installed: apt-get install {package}")
            }
        }
    }
}

/// The first thing that is missing.
pub fn missing() -> Option<Missing> {
    let programs = [("ip", "iproute2"), ("nft", "nftables")];
    let absent = programs.into_iter().find(|(name, _)| !is_installed(name));
    let absent = absent.map(|(name, package)| Missing::Program { name, package });
    if is_root() { absent } else { Some(Missing::Root) }
}

/// By the effective user id, the second number of the line (proc(5)).
fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    ids.is_some_and(|ids| ids.split_whitespace().nth(1) == Some("0"))
}

fn is_installed(name: &str) -> bool {
    Command::new(name).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// The words that start a program in a namespace, in their own place.
pub fn command_in(namespace: &str) -> Vec<String> {
    ["ip", "netns", "exec", namespace].map(str::to_owned).to_vec()
}

/// Runs a command in a namespace.
pub fn run_in(namespace: &str, words: &[&str], input: &str) -> Result<()> {
    output_in(namespace, words, input).map(drop)
}

/// The same, with its standard output.
pub fn output_in(namespace: &str, words: &[&str], input: &str) -> Result<String> {
    let launcher = command_in(namespace);
    let words: Vec<&str> = launcher.iter().map(String::as_str).chain(words.iter().copied()).collect();
    output(&words, input)
}

/// Runs a command to its end, with `input` on its standard input.
pub fn run(words: &[&str], input: &str) -> Result<()> {
    output(words, input).map(drop)
}

/// The same, with its standard output.
pub fn output(words: &[&str], input: &str) -> Result<String> {
    let shown = words.join(" ");
    let (program, arguments) = words.split_first().context("no command")?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {shown}"))?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    // A command that fails early does not read; its end says why.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{shown}` failed: {}\n{input}", said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
