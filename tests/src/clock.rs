//! A clock of a program's own: what it takes for the time of day, as far from this machine's as a test says, also while it runs.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

/// The clock of all programs that have its environment.
#[derive(Debug)]
pub struct Clock {
    library: PathBuf,
    path: PathBuf,
    file: File,
}

impl Clock {
    /// A clock that is `secs` ahead. Its files are in `folder`, which no other clock uses.
    pub async fn ahead(folder: &Path, secs: i64) -> Result<Self> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/skew.c");
        let (library, path) = (folder.join("skew.so"), folder.join("skew-secs"));
        let compiler =
            Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).output().await;
        let compiled = compiler.context("cc cannot be run")?;
        ensure!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        let clock = Self { library, path, file };
        clock.set(secs)?;
        Ok(clock)
    }

    /// Sets the clock: so many seconds ahead of this machine's, or behind it. Programs that run jump to there.
    pub fn set(&self, secs: i64) -> Result<()> {
        Ok(self.file.write_all_at(&secs.to_ne_bytes(), 0)?)
    }

    /// The environment of a program that has this clock.
    pub fn environment(&self) -> Vec<(String, String)> {
        let shown = |path: &Path| path.display().to_string();
        vec![("LD_PRELOAD".to_owned(), shown(&self.library)), ("SKEW_FILE".to_owned(), shown(&self.path))]
    }
}
