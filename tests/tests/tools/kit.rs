//! The installed tools, how they are run, and what happens where they are missing.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use farthing_tests::command::fed;
pub use farthing_tests::tell::tell;
use tokio::process::Command;

/// Far longer than any of them takes, so that only a hanging one runs into it.
const DEADLINE: Duration = Duration::from_secs(240);

/// Nothing is sent home, nothing is asked of the network, and nothing is coloured.
const QUIET: [(&str, &str); 9] = [
    ("CI", "true"),
    ("DO_NOT_TRACK", "1"),
    ("NO_COLOR", "1"),
    ("NO_PROXY", "127.0.0.1,localhost"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
    ("PYTHONWARNINGS", "ignore"),
    ("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true"),
    ("REDOCLY_TELEMETRY", "off"),
    ("SCARF_ANALYTICS", "false"),
];
/// Whoever still tries is sent to a port where nobody listens.
const NOWHERE: &str = "http://127.0.0.1:9";

/// The folder with the tools.
#[derive(Debug, Clone)]
pub struct Kit {
    folder: PathBuf,
}

/// What a tool said.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Kit {
    /// The tools. `None`, and a loud word, where they are not installed; there the test has nothing to say.
    pub fn find() -> Result<Option<Self>> {
        let folder = folder();
        let parts = ["node_modules/graphql/package.json", ".venv/bin/schemathesis"];
        let Some(missing) = parts.iter().find(|part| !folder.join(part).exists()) else {
            return Ok(Some(Self { folder }));
        };
        let missing = format!("{} is missing: run `make tools-deps`", folder.join(missing).display());
        ensure!(env::var_os("CI").is_none(), "{missing}");
        tell(&format!("\n  SKIPPED: a test by other people's tools, because {missing}\n"));
        Ok(None)
    }

    /// A folder of an npm package.
    pub fn package(&self, name: &str) -> PathBuf {
        self.folder.join("node_modules").join(name)
    }

    /// A command of an npm package.
    pub fn npm(&self, name: &str) -> Command {
        self.node(&format!("node_modules/.bin/{name}"))
    }

    /// A script of the folder.
    pub fn node(&self, script: &str) -> Command {
        let mut command = quiet("node");
        command.arg(self.folder.join(script));
        command
    }

    /// A command of a PyPI package.
    pub fn python(&self, name: &str) -> Command {
        quiet(self.folder.join(".venv/bin").join(name))
    }
}

/// `tests/tools` of the repository: what the tools are given, and the tools themselves.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tools")
}

/// Runs a command to its end, with `input` on its standard input.
pub async fn run(command: &mut Command, input: &[u8]) -> Result<Said> {
    let shown = format!("{:?}", command.as_std().get_program());
    let done = tokio::time::timeout(DEADLINE, fed(command, input)).await;
    let output = done.with_context(|| format!("{shown} hangs"))??;
    Ok(Said {
        code: output.status.code().with_context(|| format!("{shown} was ended by a signal"))?,
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

fn quiet(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.envs(QUIET);
    for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
        command.env(proxy, NOWHERE);
    }
    command
}
