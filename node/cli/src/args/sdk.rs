//! Arguments of `farthing sdk`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ServiceName;

#[derive(Debug, Subcommand)]
pub enum Sdk {
    /// List the languages, and what their code needs
    Languages,
    /// Write client code for a service: typed, documented, ready to run
    Generate(Box<Generate>),
}

#[derive(Debug, Args)]
pub struct Generate {
    /// Its name, its UUID as `farthing catalog search` shows it, or the first digits of that
    pub service: ServiceName,
    /// One of `farthing sdk languages`
    #[arg(short, long, value_name = "LANGUAGE")]
    pub language: String,
    /// Folder to write to; created if it does not exist
    #[arg(short, long, value_name = "FOLDER")]
    pub output: PathBuf,
    /// Write everything into one file, without tests and metadata
    #[arg(long)]
    pub single_file: bool,
    /// Name of the package, in place of one made from the service's name
    #[arg(long, value_name = "NAME")]
    pub package: Option<String>,
    /// Folder with templates that replace those of the same name
    #[arg(long, value_name = "FOLDER")]
    pub template_dir: Option<PathBuf>,
    /// Replace existing files that differ
    #[arg(long)]
    pub force: bool,
}
