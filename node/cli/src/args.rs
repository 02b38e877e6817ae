//! What may be written on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use farthing_control::types::Eth;
use farthing_node::config::CONSOLE_SETTINGS_FILE;
use farthing_protocol::{Address, ChannelId, ServiceId, Usdc, call::Method};

use super::failure::Exit;

mod add;
mod alert;
mod backup;
mod catalog;
mod chain;
mod history;
mod inspect;
mod sdk;
mod spending;

pub use self::add::{Add, Edit, ListingFlags};
pub use self::alert::{Alert, Levels};
pub use self::backup::{Auto, Backup, PassphraseFile};
pub use self::catalog::{Catalog, Search};
pub use self::chain::{Chain, NewChain};
pub use self::history::History;
pub use self::inspect::{Inspect, OpenApiVersion, ScalarOverride};
pub use self::sdk::{Generate, Sdk};
pub use self::spending::{FlagRuleArg, NewLimits, Secret, SecretCaps, Spending};

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
        "Exit codes: 0 ok{}.\nSettings come from flags, FARTHING_SECTION__KEY, {CONSOLE_SETTINGS_FILE} in the data folder \
         (what the console and `farthing chain` set), farthing.toml there, and defaults. The first of them that has a \
         value wins.",
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
    /// Settings file, in place of farthing.toml in the data folder
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
    Run,
    /// Make wallet, secret and certificate without running
    Init,
    /// What the node is and has
    Status,
    /// Check everything the node needs
    Doctor,
    /// End with 0 when the node is ready; for containers
    Healthcheck,
    /// Check the books: the ledger with its signatures, and its channels against the contract
    ///
    /// Ends with 0 when all of it holds, with 1 when something is violated or differs, and with 3 when the node or the
    /// owner does not answer. A chain that does not answer is said and no failure. See docs/ledger.md, "Rules".
    Audit {
        /// Also compare with an owner's books, over the network: every call id, and what each channel comes to
        #[arg(long, value_name = "WALLET", conflicts_with = "offline")]
        with: Option<Address>,
        /// Look at the ledger alone: ask neither the chain nor anybody else
        #[arg(long)]
        offline: bool,
    },
    /// Buy one call
    Call(Call),
    /// Address, balance, sending, history
    #[command(subcommand)]
    Wallet(Wallet),
    /// My services
    #[command(subcommand)]
    Api(Api),
    /// The services of the network
    #[command(subcommand)]
    Catalog(Catalog),
    /// Client code for a service, in many languages
    #[command(subcommand)]
    Sdk(Sdk),
    /// What would become of an API, before it is published
    #[command(subcommand)]
    Bridge(Bridge),
    /// Payment channels
    #[command(subcommand)]
    Channel(Channel),
    /// Claim what was earned
    Settle {
        /// When: now, which is all there is
        #[arg(value_parser = ["now"], default_value = "now")]
        when: String,
    },
    /// What needs a person, and who is told
    #[command(subcommand)]
    Alert(Alert),
    /// What this node may spend, and the switch that stops it
    #[command(subcommand)]
    Spending(Spending),
    /// The secrets that scripts present
    #[command(subcommand)]
    Secret(Secret),
    /// How the chain is reached
    #[command(subcommand)]
    Chain(Chain),
    /// End running calls, then start the node again with the settings of now
    Restart,
    /// The other nodes
    #[command(subcommand)]
    Net(Net),
    /// The certificate of this node's ports
    #[command(subcommand)]
    Tls(Tls),
    /// Everything the node is, in one encrypted file, and back
    #[command(subcommand)]
    Backup(Backup),
    /// The console in the browser
    #[command(subcommand, alias = "panel")]
    Console(Console),
    /// Settings
    #[command(subcommand)]
    Config(Config),
    /// Print a script that completes commands in a shell
    Completions { shell: clap_complete::Shell },
    /// Print the manual page
    Man(Man),
    /// A whole network on this machine
    #[command(subcommand)]
    Testnet(Testnet),
}

#[derive(Debug, Args)]
pub struct Man {
    /// Write the pages of all commands into this folder instead
    #[arg(long, value_name = "FOLDER")]
    pub to: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Call {
    /// UUID of the service
    pub service: ServiceId,
    /// GET, POST, …
    pub method: Method,
    /// Path such as /v1/things
    pub path: String,
    /// Parameter; may be repeated
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = pair)]
    pub params: Vec<(String, String)>,
    /// Request header; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME=VALUE", value_parser = pair)]
    pub headers: Vec<(String, String)>,
    /// Request body as JSON, or @FILE
    #[arg(long, value_name = "JSON")]
    pub body: Option<String>,
    /// The most to pay, in USDC
    #[arg(long, value_name = "USDC", allow_negative_numbers = true)]
    pub max_price: Option<Usdc>,
    /// Repeats with the same id are charged once
    #[arg(long, value_name = "ID")]
    pub call_id: Option<String>,
    /// Show where the time went
    #[arg(long)]
    pub timing: bool,
    /// The owner's free sample of this operation instead; nothing is bought
    #[arg(long, conflicts_with_all = ["params", "headers", "body", "max_price", "call_id", "timing"])]
    pub sample: bool,
}

#[derive(Debug, Subcommand)]
pub enum Wallet {
    /// Print the address
    Address,
    /// USDC, ETH, and what is bound in channels
    Balance,
    /// Send USDC or ETH
    Send {
        /// Wallet that gets it, 0x…
        to: Address,
        #[command(flatten)]
        amount: Amount,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Calls bought and served, transactions and settlements, the newest first
    History(History),
    /// Print the backup phrase; needs no running node
    Export {
        /// The encrypted wallet file (Web3 keystore v3) instead
        #[arg(long)]
        keystore: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Make the wallet of a backup phrase in a data folder without a node
    Import {
        /// File with the words; - for standard input
        #[arg(long, value_name = "FILE")]
        phrase_file: PathBuf,
    },
    /// A settlement with the calls that it paid for
    Settlement {
        /// As `history --kind settlement` shows it
        number: u64,
    },
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Amount {
    /// Amount of USDC, such as 1.50
    #[arg(long)]
    pub usdc: Option<Usdc>,
    /// Amount of ETH, such as 0.001
    #[arg(long)]
    pub eth: Option<Eth>,
}

#[derive(Debug, Subcommand)]
pub enum Api {
    Add(Box<Add>),
    /// What a description or a running server offers, before it is published; as `bridge inspect`
    Scan(Box<Inspect>),
    /// My services
    List,
    /// One of my services: what it offers, what became of its description, its samples
    Show(OwnService),
    /// Read the description again and say what is different
    Rescan {
        /// Its UUID, as `farthing api list` shows it
        service: ServiceId,
        /// A newer description than the one that was registered
        #[arg(long, value_name = "FILE|URL")]
        source: Option<String>,
        /// Publish the differences as a new version
        #[arg(long)]
        apply: bool,
    },
    Edit(Box<Edit>),
    /// Ask connected nodes whether they have the listing, and look whether your server takes connections
    Health(OwnService),
    /// The versions so far, each with what was different for callers
    Versions(OwnService),
    /// The OpenAPI document that consumers get
    Openapi {
        /// Its UUID, as `farthing api list` shows it
        service: ServiceId,
        /// Of OpenAPI
        #[arg(long, value_enum, default_value = "3.1")]
        version: OpenApiVersion,
    },
    /// Change a price
    Price {
        /// Its UUID, as `farthing api list` shows it
        service: ServiceId,
        /// In USDC
        #[arg(allow_negative_numbers = true)]
        price: Usdc,
        /// Of one operation, such as "GET /v1/things"
        #[arg(long, value_name = "METHOD PATH")]
        operation: Option<String>,
        /// Do not ask about a price above 1 USDC
        #[arg(long)]
        yes: bool,
    },
    /// Refuse calls for now
    Pause(OwnService),
    /// Serve again
    Resume(OwnService),
    /// Retire the service
    Remove(OwnService),
}

#[derive(Debug, Args)]
pub struct OwnService {
    /// Its UUID, as `farthing api list` shows it
    pub service: ServiceId,
}

#[derive(Debug, Subcommand)]
pub enum Bridge {
    /// Read an API and show what would be offered; needs no node and no money
    Inspect(Inspect),
}

#[derive(Debug, Subcommand)]
pub enum Channel {
    /// Channels as payer and as payee
    List,
    /// Open a channel with a service's owner
    Open {
        /// Its UUID, as `farthing catalog search` shows it
        service: ServiceId,
        /// In USDC; by the rules of [spending] unless given
        #[arg(long, value_name = "USDC")]
        deposit: Option<Usdc>,
    },
    /// Close a channel
    Close {
        /// Its id, as `farthing channel list` shows it
        channel: ChannelId,
        /// Ask the chain at once, and not the owner first; the deposit comes back after the channel's delay
        #[arg(long)]
        force: bool,
    },
    /// Buy again from an owner whose channel was stopped, once that is closed; accepts what was lost with it
    Resume {
        /// Its id, as `farthing channel list` shows it
        channel: ChannelId,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Subcommand)]
pub enum Net {
    /// Connected nodes
    Peers,
    /// Measure the way to a node
    Ping {
        /// Its wallet's address, 0x…
        wallet: Address,
    },
    /// Look for a node everywhere and tell what every step brought
    Lookup {
        /// Its wallet's address, 0x…
        wallet: Address,
    },
    /// Whether other nodes can dial this one, tested now unless that was done within the last minute; ends with 1
    /// unless one can
    Reach,
    /// How much travels between this node and others
    Traffic,
}

#[derive(Debug, Subcommand)]
pub enum Tls {
    /// SHA-256 of the authority's certificate, to compare by eye
    Fingerprint,
    /// Print the commands that make a machine trust this node; changes nothing by itself
    Trust,
}

#[derive(Debug, Subcommand)]
pub enum Console {
    /// Print where it is, and the setup code while it has no password
    Url,
    /// Forget the password and log everybody out; prints a new setup code
    ResetPassword,
}

#[derive(Debug, Subcommand)]
pub enum Config {
    /// Every setting
    Show {
        /// Where each value came from
        #[arg(long)]
        origin: bool,
    },
    /// Look for mistakes
    Check,
    /// Print a commented farthing.toml
    Example,
}

#[derive(Debug, Subcommand)]
pub enum Testnet {
    /// Start a chain, two owners with a service each, a consumer and a web application that buys; runs until Ctrl-C
    Up,
    /// Stop what `testnet up` left running on this machine, from another terminal
    Down,
    /// Run the story of a paid call, then stop everything
    Demo {
        /// Write the figures to a file
        #[arg(long, value_name = "FILE")]
        report: Option<PathBuf>,
    },
    /// Fund nodes that run elsewhere, publish the demo's services, and keep it so
    Prepare(Prepare),
    /// End with 0 when an HTTP server answers; for containers
    Probe {
        /// Such as http://127.0.0.1:4001/openapi.json
        url: String,
    },
}

/// The defaults are the names in deploy/compose.testnet.yaml.
#[derive(Debug, Args)]
pub struct Prepare {
    /// JSON-RPC of an anvil chain
    #[arg(long, value_name = "URL", default_value = "http://chain:8545")]
    pub rpc_url: String,
    /// Folder of the nodes' data folders: bootstrap, neighbour, earthquake-owner, planet-owner, consumer
    #[arg(long, value_name = "FOLDER", default_value = "/nodes")]
    pub nodes: PathBuf,
    /// Where the owner of the earthquake service reaches its server
    #[arg(long, value_name = "URL", default_value = "http://earthquakes:4001")]
    pub earthquakes_url: String,
    /// Where the owner of the planet service reaches its server
    #[arg(long, value_name = "URL", default_value = "http://exoplanets:4002")]
    pub planets_url: String,
    /// Where people reach the consumer's gateway
    #[arg(long, value_name = "URL", default_value = "https://localhost:3000")]
    pub gateway_url: String,
    /// Where people reach the consumer's console
    #[arg(long, value_name = "URL", default_value = "https://localhost:3002/panel")]
    pub panel_url: String,
    /// Only say whether everything is there
    #[arg(long)]
    pub check: bool,
}

fn pair(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
