//! A long line: delay and loss, by a script, because many kernels are built without `tc netem`.

use std::{
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use farthing_tests::tell::tell;

use super::commands::{command_in, run_in};

/// The line's interfaces.
pub const NEAR: &str = "near";
pub const FAR: &str = "far";

/// A line that carries; it is cut when this value is dropped.
#[derive(Debug)]
pub struct Line(Child);

impl Line {
    /// Joins [`NEAR`] and [`FAR`] of a namespace. `ends` are the namespaces and interfaces they lead to.
    ///
    /// # Errors
    /// When the script fails; where `CI` is set, also when there is no Python to run it.
    pub fn open(
        namespace: &str,
        ends: [(&str, &str); 2],
        delay_ms: u32,
        loss_percent: u32,
    ) -> Result<Option<Self>> {
        if Command::new("python3").arg("-V").stdout(Stdio::null()).status().is_err() {
            let missing = "python3 is not installed: apt-get install python3";
            ensure!(std::env::var_os("CI").is_none(), "{missing}");
            tell(&format!("\n  SKIPPED: a case of the NAT laboratory, because {missing}\n"));
            return Ok(None);
        }
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/nat/lab/line.py");
        let script = script.to_str().context("the repository's path is not text")?;
        for (end, interface) in ends {
            run_in(end, &["python3", script, "plain", interface], "")?;
        }
        let launcher = command_in(namespace);
        let (program, words) = launcher.split_first().context("no launcher")?;
        let child = Command::new(program)
            .args(words)
            .args(["python3", script, "carry", NEAR, FAR])
            .args([delay_ms.to_string(), loss_percent.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        // From here on `Drop` ends it, also when it never carries.
        let mut line = Self(child);
        let mut said = String::new();
        BufReader::new(line.0.stdout.take().context("no output")?).read_line(&mut said)?;
        ensure!(said.trim() == "carrying", "the line does not carry");
        Ok(Some(line))
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
