//! A script at a place, for what the system's own commands do not do; it ends when this value is dropped.

use std::{
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, ensure};

use super::commands::command_in;
use crate::tell::tell;

#[derive(Debug)]
pub struct Script(Child);

impl Script {
    /// Starts `name` of this folder in a namespace and waits until it says `ready`. `None`, and a loud word, where
    /// there is no Python.
    pub fn start(namespace: &str, name: &str, words: &[String], ready: &str) -> Result<Option<Self>> {
        if !has_python()? {
            return Ok(None);
        }
        let launcher = command_in(namespace);
        let (program, first) = launcher.split_first().context("no launcher")?;
        let child = Command::new(program)
            .args(first)
            .args(["python3", &path(name)?])
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        // From here on `Drop` ends it, also when it never gets ready.
        let mut script = Self(child);
        let mut said = String::new();
        BufReader::new(script.0.stdout.take().context("no output")?).read_line(&mut said)?;
        ensure!(said.trim() == ready, "{name} says {said:?} and not {ready:?}");
        Ok(Some(script))
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where a script of this folder lies.
pub fn path(name: &str) -> Result<String> {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/lab").join(name);
    Ok(script.to_str().context("the repository's path is not text")?.to_owned())
}

/// Whether scripts can be run here; says so when not.
pub fn has_python() -> Result<bool> {
    if Command::new("python3").arg("-V").stdout(Stdio::null()).status().is_ok() {
        return Ok(true);
    }
    let missing = "python3 is not installed: apt-get install python3";
    ensure!(std::env::var_os("CI").is_none(), "{missing}");
    tell(&format!("\n  SKIPPED: a case of the NAT laboratory, because {missing}\n"));
    Ok(false)
}
