//! The languages, what they need, and how their code is compiled and run: scripts of `tests/sdk/languages`.

use std::{
    env,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use farthing_tests::tell::tell;
use serde_json::Value;
use tokio::{
    process::Command,
    sync::{OnceCell, Semaphore},
};

/// Far longer than any compiler takes on a slow machine, so that only one that hangs runs into it.
const DEADLINE: Duration = Duration::from_secs(1800);

/// Compilers are hungry: no more of them at a time, whichever test they are for.
static SLOTS: Semaphore = Semaphore::const_new(2);

/// Asked for once: cargo looks at every file of the workspace to tell.
static CRATES: OnceCell<Crates> = OnceCell::const_new();

/// A language of client code.
#[derive(Debug, Clone, Copy)]
pub struct Toolchain {
    pub language: &'static str,
    /// Commands, or files below `tests/sdk`.
    needs: &'static [&'static str],
    script: &'static str,
    /// For a program beside the client of one service.
    one_client: &'static str,
    /// Whether its code can only be parsed.
    pub is_parsed_only: bool,
}

macro_rules! toolchain {
    ($language:literal, $needs:expr) => {
        Toolchain {
            language: $language,
            needs: &$needs,
            script: include_str!(concat!("../../sdk/languages/", $language, ".sh")),
            one_client: include_str!(concat!("../../sdk/one_client/", $language, ".sh")),
            is_parsed_only: false,
        }
    };
}

pub const TOOLCHAINS: [Toolchain; 12] = [
    // The one that takes longest begins first.
    toolchain!("kotlin", ["java", "node_modules/kotlin-compiler/lib/kotlin-compiler.jar"]),
    toolchain!("go", [".venv/bin/go"]),
    toolchain!("rust", ["rustc"]),
    toolchain!("python", [".venv/bin/mypy"]),
    toolchain!("typescript", ["node", "node_modules/.bin/tsc"]),
    toolchain!("javascript", ["node", "node_modules/.bin/tsc"]),
    toolchain!("shell", ["curl", "jq", "shellcheck"]),
    toolchain!("csharp", ["mcs", ".venv/bin/python"]),
    toolchain!("java", ["javac"]),
    toolchain!("ruby", ["ruby"]),
    toolchain!("php", ["php"]),
    Toolchain { is_parsed_only: true, ..toolchain!("swift", [".venv/bin/python"]) },
];

/// `tests/sdk` of the repository.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk")
}

/// Whether these are there: commands, or files below `tests/sdk`.
pub fn is_installed(needs: &[&str]) -> Result<(), String> {
    let is_there = |need: &&&str| {
        let path = env::var_os("PATH").unwrap_or_default();
        let in_path = || env::split_paths(&path).any(|folder| folder.join(need).is_file());
        if need.contains('/') { folder().join(need).exists() } else { in_path() }
    };
    match needs.iter().find(|need| !is_there(need)) {
        Some(missing) => Err(format!("{missing} is missing: see CONTRIBUTING.md, and run `make sdk-deps`")),
        None => Ok(()),
    }
}

impl Toolchain {
    /// Those that are installed here.
    pub fn all_here() -> Result<Vec<Self>> {
        let here =
            |toolchain: Self| toolchain.is_here().map(|is_here| is_here.then_some(toolchain)).transpose();
        TOOLCHAINS.into_iter().filter_map(here).collect()
    }

    /// Whether it is installed here; where it is not, a loud word says so.
    pub fn is_here(&self) -> Result<bool> {
        let Err(missing) = is_installed(self.needs) else { return Ok(true) };
        ensure!(env::var_os("CI").is_none(), "{}: {missing}", self.language);
        tell(&format!("\n  SKIPPED: client code in {}, because {missing}\n", self.language));
        Ok(false)
    }

    /// Compiles what is in `work` and runs the language's program, with these variables. What it printed.
    pub async fn run(&self, work: &Path, variables: &[(&str, String)]) -> Result<String> {
        self.run_script(self.script, work, variables).await
    }

    /// The same for the client `package` of one service, and the program of this name that uses it.
    pub async fn run_one(
        &self,
        work: &Path,
        (package, program): (&str, &str),
        variables: &[(&str, String)],
    ) -> Result<String> {
        let named = [("PACKAGE", package.to_owned()), ("PROGRAM", program.to_owned())];
        let variables: Vec<(&str, String)> = variables.iter().cloned().chain(named).collect();
        self.run_script(self.one_client, work, &variables).await
    }

    async fn run_script(&self, script: &str, work: &Path, variables: &[(&str, String)]) -> Result<String> {
        let _slot = SLOTS.acquire().await?;
        let mut command = Command::new("bash");
        command
            .args(["-euo", "pipefail", "-c", script])
            .current_dir(work)
            .env("TOOLS", folder())
            .env("PROGRAMS", folder().join("programs"))
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .env("NO_PROXY", "127.0.0.1,localhost")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        if self.language == "rust" {
            let crates = CRATES.get_or_try_init(Crates::find).await?;
            command.env("EXTERNS", &crates.externs).env("DEPENDENCIES", &crates.folder);
        }
        let output = tokio::time::timeout(DEADLINE, command.output())
            .await
            .with_context(|| format!("{} hangs", self.language))??;
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let err = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {}\n{out}\n{err}", self.language, output.status);
        ensure!(err.trim().is_empty(), "{} is not silent:\n{err}", self.language);
        Ok(out)
    }
}

/// Crates of this workspace's own build, for code that is compiled with `rustc` alone.
struct Crates {
    externs: String,
    folder: PathBuf,
}

impl Crates {
    /// Asks cargo where they are; everything is built already, so it only tells.
    async fn find() -> Result<Self> {
        const NEEDED: [&str; 5] = ["reqwest", "serde", "serde_json", "tokio", "rustls"];
        let program = env::current_exe()?;
        let folder = program.parent().context("no folder")?.to_path_buf();
        let target = folder.parent().and_then(Path::parent).context("no target folder")?;
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // What cargo tells this test of its own package would look like a change to build scripts that ask for it, and
        // everything above them would be built again.
        for (name, _) in env::vars_os() {
            if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|of| name.to_string_lossy().starts_with(of)) {
                cargo.env_remove(name);
            }
        }
        let output = cargo
            .args(["build", "--workspace", "--bins", "--locked", "--offline", "--message-format=json"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("CARGO_TARGET_DIR", target)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await?;
        ensure!(output.status.success(), "cargo: {}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8(output.stdout)?;
        let artifacts: Vec<Value> = said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let mut externs = Vec::new();
        for needed in NEEDED {
            let is_it = |artifact: &&Value| {
                artifact["reason"] == "compiler-artifact" && artifact["target"]["name"] == needed
            };
            // A crate may also be built for build scripts, with fewer features.
            let features = |artifact: &&Value| artifact["features"].as_array().map_or(0, Vec::len);
            let artifact = artifacts.iter().filter(is_it).max_by_key(features);
            let files = artifact.and_then(|artifact| artifact["filenames"].as_array());
            let file =
                files.into_iter().flatten().filter_map(Value::as_str).find(|file| file.ends_with(".rlib"));
            externs
                .push(format!("--extern {needed}={}", file.with_context(|| format!("no crate {needed}"))?));
        }
        Ok(Self { externs: externs.join(" "), folder })
    }
}
