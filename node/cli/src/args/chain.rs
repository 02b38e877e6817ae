//! Commands about how the chain is reached.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Chain {
    /// Show the endpoints, by host, and the blocks until a deposit counts
    Show,
    /// Change endpoints or confirmations from the next start on; tests every endpoint first
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
    /// Return to the configuration's values first
    #[arg(long)]
    pub reset: bool,
    /// Restart the node at once
    #[arg(long)]
    pub restart: bool,
}
