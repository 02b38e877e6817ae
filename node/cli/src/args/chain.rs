//! How the chain is reached.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Chain {
    /// Its endpoints, by host, and how deep a deposit must lie
    Show,
    /// Change that, from the next start on; every endpoint is asked before it is taken
    Set(NewChain),
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct NewChain {
    /// File with the addresses of endpoints, one a line in order of preference; - for standard input. They may hold
    /// access keys, which have no place on a command line
    #[arg(long, value_name = "FILE")]
    pub rpc_urls_file: Option<PathBuf>,
    /// Blocks until a deposit counts
    #[arg(long, value_name = "BLOCKS")]
    pub confirmations: Option<u64>,
    /// First back to the configuration's
    #[arg(long)]
    pub reset: bool,
    /// Restart the node at once
    #[arg(long)]
    pub restart: bool,
}
