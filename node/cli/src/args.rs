//! The command line as a whole: the nouns, and what every command understands. What follows a noun stands in its module.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use farthing_os::file_names::CHOSEN_SETTINGS;
use farthing_protocol::Address;

use super::{
    alert::Alert, api::Api, backup::Backup, bridge::Bridge, call::Call, calls::Calls, catalog::Catalog,
    chain::Chain, channel::Channel, config::Config, console::Console, contract::Contract, failure::Exit,
    init::Init, logs::Logs, mcp::Mcp, net::Net, sdk::Sdk, secret::Secret, spending::Spending,
    testnet::Testnet, tls::Tls, wallet::Wallet, x402::X402,
};

/// Buy and sell data by the call, paid in USDC.
#[derive(Debug, Parser)]
#[command(name = "farthing", version, max_term_width = 100, propagate_version = true, after_help = after_help())]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Exit codes, and where settings come from.
fn after_help() -> String {
    let exits = Exit::value_variants().iter();
    let codes = exits.map(|exit| format!(", {} {}", *exit as u8, exit.name().replace('-', " ")));
    format!(
        "Exit codes: 0 ok{}.\nSettings come from flags, FARTHING_SECTION__KEY, {CHOSEN_SETTINGS} in the data folder \
         (written by the console and `farthing chain`), farthing.toml in the data folder, and defaults. The first \
         source that has a value wins.",
        codes.collect::<String>()
    )
}

/// Shown apart from a command's own.
const EVERYWHERE: &str = "Options of every command";

/// Understood by every command.
#[derive(Debug, Args)]
pub struct Global {
    /// Data folder of the node
    #[arg(long, global = true, value_name = "FOLDER", help_heading = EVERYWHERE)]
    pub data: Option<PathBuf>,
    /// Settings file to use instead of farthing.toml in the data folder
    #[arg(long, global = true, value_name = "FILE", help_heading = EVERYWHERE)]
    pub config: Option<PathBuf>,
    /// One setting; may be repeated
    #[arg(long, global = true, value_name = "SECTION.KEY=VALUE", help_heading = EVERYWHERE)]
    pub set: Vec<String>,
    /// Answer in JSON
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    pub json: bool,
    /// Form of the log on standard error
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text, help_heading = EVERYWHERE)]
    pub log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the node
    Run {
        /// Create a wallet if the named folder has none
        #[arg(long)]
        new: bool,
    },
    /// Choose chain, folder and addresses, and create the wallet, secret and certificate; does not start the node
    Init(Init),
    /// Show the state of the node: address, balance, peers, alerts
    Status,
    /// Check everything the node needs
    Doctor,
    /// Show the newest lines of the node's log
    Logs(Logs),
    /// Exit with 0 if the node is ready; for containers
    Healthcheck,
    /// Check the ledger with its signatures, and its channels against the contract
    ///
    /// Exits with 0 if everything adds up, with 1 if something is violated or differs, and with 3 if the node or the
    /// owner does not answer. A chain that does not answer is reported but is not a failure. See docs/ledger.md,
    /// "Rules".
    Audit {
        /// Also compare every call and the total of each channel with an owner's ledger, over the network
        #[arg(long, value_name = "WALLET", conflicts_with = "offline")]
        with: Option<Address>,
        /// Check the ledger alone, without asking the chain or another node
        #[arg(long)]
        offline: bool,
    },
    /// Buy one call
    Call(Call),
    /// Offer an agent tools to find, try and buy data, over the Model Context Protocol on standard input and output
    Mcp(Mcp),
    /// List the calls that reached this node, including refused ones, or show one of them
    Calls(Calls),
    /// Wallet: address, balance, sending, history
    #[command(subcommand)]
    Wallet(Wallet),
    /// My services
    #[command(subcommand)]
    Api(Api),
    /// Services on the network
    #[command(subcommand)]
    Catalog(Catalog),
    /// Servers that are no nodes and sell over x402; this node pays them for each call
    #[command(subcommand)]
    X402(X402),
    /// Generate client code for a service, in many languages
    #[command(subcommand)]
    Sdk(Sdk),
    /// Preview what an API would offer, before you publish it
    #[command(subcommand)]
    Bridge(Bridge),
    /// Payment channels
    #[command(subcommand)]
    Channel(Channel),
    /// Claim your services' earnings
    Settle {
        /// Time to claim; only `now` is possible
        #[arg(value_parser = ["now"], default_value = "now")]
        when: String,
    },
    /// List and configure alerts
    #[command(subcommand)]
    Alert(Alert),
    /// Spending limits, and the switch that stops all spending
    #[command(subcommand)]
    Spending(Spending),
    /// Secrets that programs use to buy through this node
    #[command(subcommand)]
    Secret(Secret),
    /// The chain: its endpoints and confirmations
    #[command(subcommand)]
    Chain(Chain),
    /// The contract that holds the channels' money on the node's chain
    #[command(subcommand)]
    Contract(Contract),
    /// Finish running calls, then restart the node with the current settings
    Restart,
    /// Other nodes and the connection to them
    #[command(subcommand)]
    Net(Net),
    /// The certificate of this node's ports
    #[command(subcommand)]
    Tls(Tls),
    /// Create, verify and restore backups
    #[command(subcommand)]
    Backup(Backup),
    /// The console in the browser
    #[command(subcommand, alias = "panel")]
    Console(Console),
    /// Settings
    #[command(subcommand)]
    Config(Config),
    /// Print a completion script for a shell
    Completions { shell: clap_complete::Shell },
    /// Print the manual page
    Man(Man),
    /// Run a whole network on this machine
    #[command(subcommand)]
    Testnet(Testnet),
    /// Show the version of this program and of the running node
    Version,
}

#[derive(Debug, Args)]
pub struct Man {
    /// Write a page for every command into this folder instead
    #[arg(long, value_name = "FOLDER")]
    pub to: Option<PathBuf>,
}
