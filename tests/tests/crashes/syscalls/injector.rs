//! The library that makes system calls of a node fail (`faults.c`), and the page by which a test tells it which.
//!
//! A node that is started with [`Injector::environment`] fails none. [`Injector::arm`] counts its system calls from that
//! moment on, over all threads, and fails those of a [`Case`]; [`Injector::disarm`] lets all of them succeed again.

use std::{fs::File, os::unix::fs::FileExt, path::Path};

use anyhow::{Context, Result, ensure};
use farthing_os::file_names;
use tokio::process::Command;

/// What a node asks of the system, in the order of `enum class`: of its ledger's file, and of TCP connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Also at a position, and of several parts.
    Write,
    /// And every change of the file's length.
    Sync,
    Connect,
    Accept,
    Send,
    Recv,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// One byte is written, sent or received; the rest needs another system call.
    Short,
    Interrupted,
    Io,
    FilesUsedUp,
    /// From then on, as a disk stays full.
    Full,
    Reset,
}

/// A system call that fails: the one at a position, counted from 1, among those of its class.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub class: Class,
    pub position: u64,
    pub fault: Fault,
}

impl Class {
    pub const ALL: [Self; 6] = [Self::Write, Self::Sync, Self::Connect, Self::Accept, Self::Send, Self::Recv];

    pub const fn is_of_ledger(self) -> bool {
        matches!(self, Self::Write | Self::Sync)
    }

    /// The faults that a node may meet in it.
    pub const fn faults(self) -> &'static [Fault] {
        match self {
            Self::Write => &[Fault::Short, Fault::Interrupted, Fault::Io, Fault::Full],
            Self::Sync => &[Fault::Interrupted, Fault::Io, Fault::Full],
            Self::Connect => &[Fault::Interrupted, Fault::Reset],
            Self::Accept => &[Fault::Interrupted, Fault::FilesUsedUp, Fault::Reset],
            Self::Send | Self::Recv => &[Fault::Short, Fault::Interrupted, Fault::Reset],
        }
    }
}

impl Fault {
    /// Its number on Linux; 0 stands for one that is no error.
    const fn number(self) -> u64 {
        match self {
            Self::Short => 0,
            Self::Interrupted => 4,
            Self::Io => 5,
            Self::FilesUsedUp => 24,
            Self::Full => 28,
            Self::Reset => 104,
        }
    }
}

/// The words of `struct page`, by number: the plan is class, first and last position, and error.
const ARMED: u64 = 0;
const PLAN: u64 = 1;
const HAPPENED: u64 = 5;
const COUNTS: u64 = 6;
const WORDS: u64 = 12;
const WORD_BYTES: u64 = 8;
/// Behind all classes.
const NO_CLASS: u64 = 7;

pub struct Injector {
    folder: tempfile::TempDir,
    page: File,
    chain_url: String,
}

impl Injector {
    /// Compiles the library. What a node says to the chain is not a part of a call, and is not counted.
    pub async fn new(chain_url: String) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crashes/faults.c");
        let library = folder.path().join("faults.so");
        // Whatever links this test links that.
        let compiler =
            Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).output().await;
        let compiled = compiler.context("cc cannot be run")?;
        ensure!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let page =
            File::options().read(true).write(true).create_new(true).open(folder.path().join("page"))?;
        page.set_len(WORDS * WORD_BYTES)?;
        Ok(Self { folder, page, chain_url })
    }

    pub fn environment(&self) -> Vec<(String, String)> {
        let text = |name: &str| self.folder.path().join(name).display().to_string();
        let port = self.chain_url.rsplit(':').next().unwrap_or_default().to_owned();
        let books = format!("/{}", file_names::LEDGER);
        let named = [
            ("LD_PRELOAD", text("faults.so")),
            ("FAULTS_FILE", text("page")),
            ("FAULTS_BOOKS", books),
            ("FAULTS_EXCEPT_PORT", port),
        ];
        named.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    /// Counts from now on, and fails the case.
    pub fn arm(&self, case: Option<Case>) -> Result<()> {
        let plan = case.map_or([NO_CLASS, 0, 0, 0], |Case { class, position, fault }| {
            let last = if fault == Fault::Full { u64::MAX } else { position };
            [class as u64, position, last, fault.number()]
        });
        self.disarm()?;
        self.set(PLAN, &plan)?;
        self.set(HAPPENED, &[0; 7])?;
        self.set(ARMED, &[1])
    }

    pub fn disarm(&self) -> Result<()> {
        self.set(ARMED, &[0])
    }

    pub fn has_happened(&self) -> Result<bool> {
        Ok(self.word(HAPPENED)? > 0)
    }

    /// Returns how many system calls of a class there were since it was armed.
    pub fn count(&self, class: Class) -> Result<u64> {
        self.word(COUNTS + class as u64)
    }

    fn set(&self, word: u64, values: &[u64]) -> Result<()> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        Ok(self.page.write_all_at(&bytes, word * WORD_BYTES)?)
    }

    fn word(&self, word: u64) -> Result<u64> {
        let mut bytes = [0; 8];
        self.page.read_exact_at(&mut bytes, word * WORD_BYTES)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}
