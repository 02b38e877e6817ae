//! Arguments of the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use farthing_control::types::Eth;
use farthing_node::config::CONSOLE_SETTINGS_FILE;
use farthing_protocol::{Address, ChannelId, Usdc, call::Method};

use super::failure::Exit;

mod add;
mod alert;
mod backup;
mod catalog;
mod chain;
mod history;
mod inspect;
mod logs;
mod pairs;
mod sdk;
mod service;
mod spending;

pub use self::add::{Add, Edit, ListingFlags};
pub use self::alert::{Alert, Levels};
pub use self::backup::{Auto, Backup, PassphraseFile};
pub use self::catalog::{Catalog, Search};
pub use self::chain::{Chain, NewChain};
pub use self::history::History;
pub use self::inspect::Inspect;
pub use self::logs::Logs;
use self::pairs::{header, pair};
pub use self::sdk::{Generate, Sdk};
pub use self::service::{OwnService, ServiceName};
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
    /// Create wallet, secret and certificate without starting the node
    Init,
    /// Show the state of the node: address, balance, peers, alerts
    Status,
    /// Check everything the node needs
    Doctor,
    /// Show the newest lines of the node's log
    Logs(Logs),
    /// Exit with 0 if the node is ready; for containers
    Healthcheck,
    /// Check the books: the ledger with its signatures, and its channels against the contract
    ///
    /// Exits with 0 if everything holds, with 1 if something is violated or differs, and with 3 if the node or the owner
    /// does not answer. A chain that does not answer is reported, and is not a failure. See docs/ledger.md, "Rules".
    Audit {
        /// Also compare with an owner's books, over the network: every call id, and the total of each channel
        #[arg(long, value_name = "WALLET", conflicts_with = "offline")]
        with: Option<Address>,
        /// Check the ledger alone, without asking the chain or another node
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
    /// Preview what an API would offer, before you publish it
    #[command(subcommand)]
    Bridge(Bridge),
    /// Payment channels
    #[command(subcommand)]
    Channel(Channel),
    /// Claim what your services earned
    Settle {
        /// The time to claim; `now` is the only choice
        #[arg(value_parser = ["now"], default_value = "now")]
        when: String,
    },
    /// Problems that need you, and where alerts are sent
    #[command(subcommand)]
    Alert(Alert),
    /// Spending limits, and the switch that stops all spending
    #[command(subcommand)]
    Spending(Spending),
    /// Secrets with which programs buy through this node
    #[command(subcommand)]
    Secret(Secret),
    /// The chain: its endpoints and confirmations
    #[command(subcommand)]
    Chain(Chain),
    /// Finish running calls, then restart the node with the present settings
    Restart,
    /// The other nodes
    #[command(subcommand)]
    Net(Net),
    /// The certificate of this node's ports
    #[command(subcommand)]
    Tls(Tls),
    /// Back up the whole node into one encrypted file, and restore it
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
    /// Run a whole network on this machine
    #[command(subcommand)]
    Testnet(Testnet),
    /// Show the version of this program, and that of the running node
    Version,
}

#[derive(Debug, Args)]
pub struct Man {
    /// Write the pages of all commands into this folder instead
    #[arg(long, value_name = "FOLDER")]
    pub to: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Call {
    /// Its name, its UUID as `farthing catalog search` shows it, or the first digits of that
    pub service: ServiceName,
    /// GET, POST, …
    pub method: Method,
    /// Path such as /v1/things
    pub path: String,
    /// Parameter; may be repeated
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = pair)]
    pub params: Vec<(String, String)>,
    /// Request header; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    pub headers: Vec<(String, String)>,
    /// Request body as JSON, or @FILE
    #[arg(long, value_name = "JSON")]
    pub body: Option<String>,
    /// Request body of any media type, as the file has it; name the type with -H 'Content-Type: image/png'
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    pub body_file: Option<PathBuf>,
    /// The most to pay, in USDC
    #[arg(long, value_name = "USDC", allow_negative_numbers = true)]
    pub max_price: Option<Usdc>,
    /// Repeats with the same id are charged once
    #[arg(long, value_name = "ID")]
    pub call_id: Option<String>,
    /// Show where the time went
    #[arg(long)]
    pub timing: bool,
    /// Show the owner's free sample of this operation instead; buys nothing
    #[arg(long, conflicts_with_all = ["params", "headers", "body", "body_file", "max_price", "call_id", "timing"])]
    pub sample: bool,
}

#[derive(Debug, Subcommand)]
pub enum Wallet {
    /// Print the address
    Address,
    /// Show USDC, ETH, and the USDC in channels
    Balance,
    /// Send USDC or ETH
    Send {
        /// Wallet that gets it, 0x…
        to: Address,
        #[command(flatten)]
        amount: Amount,
        /// Do not ask for confirmation
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
    /// Show one of my services: what it offers, how its description was read, its samples
    Show(OwnService),
    /// Read the description again and show the differences
    Rescan {
        /// Its name, its UUID as `farthing api list` shows it, or the first digits of that
        service: ServiceName,
        /// A newer description than the one that was registered
        #[arg(long, value_name = "FILE|URL")]
        source: Option<String>,
        /// Publish the differences as a new version
        #[arg(long)]
        apply: bool,
    },
    Edit(Box<Edit>),
    /// Ask connected nodes whether they have the listing, and check that your server takes connections
    Health(OwnService),
    /// Ask your own server as a paid call would, and show what it answers and what that would cost; free
    ///
    /// Without OPERATION it is the first that reads and needs no parameters. An operation that writes is carried out.
    /// Exits with 6 if callers would get no answer.
    Test {
        /// Its name, its UUID as `farthing api list` shows it, or the first digits of that
        service: ServiceName,
        /// Such as "GET /v1/things"
        #[arg(value_name = "OPERATION")]
        operation: Option<String>,
        /// Parameter; may be repeated
        #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = pair, requires = "operation")]
        params: Vec<(String, String)>,
        /// Request body as JSON, or @FILE
        #[arg(long, value_name = "JSON", requires = "operation")]
        body: Option<String>,
    },
    /// List the versions, each with the differences for callers
    Versions(OwnService),
    /// The OpenAPI document that consumers get
    Openapi {
        /// Its name, its UUID as `farthing api list` shows it, or the first digits of that
        service: ServiceName,
        /// Version of OpenAPI
        #[arg(long, value_parser = inspect::OPENAPI_VERSIONS, default_value = "3.1")]
        version: String,
    },
    /// Change a price
    Price {
        /// Its name, its UUID as `farthing api list` shows it, or the first digits of that
        service: ServiceName,
        /// In USDC
        #[arg(allow_negative_numbers = true)]
        price: Usdc,
        /// Change the price of one operation only, such as "GET /v1/things"
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
    /// Retire the service, for good
    Remove {
        /// Its name, its UUID as `farthing api list` shows it, or the first digits of that
        service: ServiceName,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
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
        /// Its name, its UUID as `farthing catalog search` shows it, or the first digits of that
        service: ServiceName,
        /// In USDC; by the rules of [spending] unless given
        #[arg(long, value_name = "USDC")]
        deposit: Option<Usdc>,
    },
    /// Close a channel
    Close {
        /// Its id, as `farthing channel list` shows it
        channel: ChannelId,
        /// Ask the chain at once instead of the owner first; the deposit comes back after the channel's delay
        #[arg(long)]
        force: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Buy again from an owner whose channel was stopped and is closed now; accepts what was lost with it
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
    /// Measure the round-trip time to a node
    Ping {
        /// Its wallet's address, 0x…
        wallet: Address,
    },
    /// Look for a node everywhere and show the result of each step
    Lookup {
        /// Its wallet's address, 0x…
        wallet: Address,
    },
    /// Test whether other nodes can dial this one, at most once a minute; exits with 1 if none can
    Reach,
    /// Bytes sent to and received from other nodes
    Traffic,
}

#[derive(Debug, Subcommand)]
pub enum Tls {
    /// Print the SHA-256 of the authority's certificate, to compare by eye
    Fingerprint,
    /// Print the commands that make a machine trust this node; changes nothing by itself
    Trust,
}

#[derive(Debug, Subcommand)]
pub enum Console {
    /// Print its address, and the setup code while it has no password
    Url,
    /// Remove the password and log everybody out; prints a new setup code
    ResetPassword {
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Subcommand)]
pub enum Config {
    /// List every setting
    Show {
        /// Show where each value comes from
        #[arg(long)]
        origin: bool,
    },
    /// Print one setting
    Get {
        /// Such as spending.per_day
        #[arg(value_name = "SECTION.KEY")]
        name: String,
    },
    /// Check the settings for mistakes
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
    /// Exit with 0 if an HTTP server answers; for containers
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
    /// Only report whether everything is there
    #[arg(long)]
    pub check: bool,
}
