//! The program `farthing`, run as a person or a script runs it.

use std::{
    env,
    ffi::OsString,
    process::{Output, Stdio},
};

use anyhow::{Context, Result, ensure};
use farthing_testnet::{NodeProcess, program};
use serde_json::Value;
use tokio::{io::AsyncWriteExt as _, process::Command};

/// On a busy machine any command may say so to people.
pub const WHEN_SLOW: &str = "Still waiting for the node …\n";

/// What a command left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn of(output: Output) -> Result<Self> {
        Ok(Self {
            code: output.status.code().context("ended by a signal")?,
            out: String::from_utf8(output.stdout)?,
            err: String::from_utf8(output.stderr)?,
        })
    }

    pub fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.out).with_context(|| format!("no JSON: {self:?}"))
    }

    /// The error that a failed command with `--json` leaves on standard error, where nothing else may be.
    pub fn error(&self) -> Result<Value> {
        let told: Value = serde_json::from_str(&self.err).with_context(|| format!("no JSON: {self:?}"))?;
        let error = &told["error"];
        for field in ["code", "message", "next"] {
            ensure!(error[field].as_str().is_some_and(|text| !text.is_empty()), "no {field}: {self:?}");
        }
        Ok(error.clone())
    }

    /// The answer of a command that went well.
    pub fn ok(self) -> Result<Self> {
        ensure!(self.code == 0, "ended with {}: {}", self.code, self.err);
        Ok(self)
    }

    /// Checks that the command failed with `code`, nothing on standard output, and all of `says` on the other.
    pub fn fails(self, code: i32, says: &[&str]) -> Result<Self> {
        ensure!(self.code == code && self.out.is_empty(), "no failure with {code}: {self:?}");
        for text in says {
            ensure!(self.err.contains(text), "it does not say `{text}`: {}", self.err);
        }
        Ok(self)
    }

    /// Checks the exit code; a failure has nothing on standard output and says what to do on the other.
    pub fn ends_with(&self, code: i32) -> Result<&Self> {
        ensure!(self.code == code, "ended with {} and not {code}: {self:?}", self.code);
        ensure!(code == 0 || self.out.is_empty() && !self.err.trim().is_empty(), "{self:?}");
        Ok(self)
    }
}

/// Runs any program to its end, with `input` on its standard input.
pub async fn fed(command: &mut Command, input: &[u8]) -> Result<Output> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("{:?} cannot be started", command.as_std().get_program()))?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    let feed = async move {
        // A program that fails early does not read.
        let _ = stdin.write_all(input).await;
    };
    Ok(tokio::join!(feed, child.wait_with_output()).1?)
}

/// The path on which a shell finds the built program first.
pub fn path() -> Result<OsString> {
    let built = program("farthing")?;
    let built = built.parent().context("the program lies in no folder")?.to_owned();
    let others = env::var_os("PATH").unwrap_or_default();
    Ok(env::join_paths([built].into_iter().chain(env::split_paths(&others)))?)
}

/// Runs a command on a node.
pub async fn farthing(node: &NodeProcess, arguments: &[&str]) -> Result<Ran> {
    run(&node.data_dir().display().to_string(), arguments).await
}

/// Runs a command on a data folder.
pub async fn run(data: &str, arguments: &[&str]) -> Result<Ran> {
    let output = Command::new(program("farthing")?)
        .args(arguments)
        .args(["--data", data])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    Ran::of(output)
}
