//! Every setting: its name, type, form, default and meaning, in the order of the example file.
//!
//! Reading, checking, `config show`, the example file and the list of environment variables all come from this list,
//! so that none of them can drift from the others.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    str::FromStr,
    time::Duration,
};

use farthing_os::secret::SecretText;
use farthing_protocol::{
    Address, Usdc,
    limits::{CLOSE_DELAY_SECS_MAX, CLOSE_DELAY_SECS_MIN},
};

use super::{
    FlagRule,
    keys::{
        CHAIN_PRESETS,
        Fallback::{Unset, Value, Values},
        Form::{Amount, Choice, List, Path, Secret, Socket, Switch, Text, Wallet},
        Item, SettingKey, integer,
    },
    raw::{ConfigError, Raw},
};

const HOUR_SECS: u64 = 3600;
const DAY_SECS: u64 = 24 * HOUR_SECS;
const MINUTE_MS: u64 = 60_000;

/// Libraries' own words are for their programmers: what matters of them this program says in its own. Strangers can cause
/// warnings for every message that they send and, of streams within a connection, errors for every connection: a log that
/// lets them through can be filled by anybody.
pub const LOG_FILTER: &str = "error,farthing=info,access=info,yamux=off";

/// `name: type = form, default;` with its meaning above it. `as "key"` where the type holds the unit of the name.
macro_rules! settings {
    ($($(#[doc = $purpose:literal])+ $section:ident: $config:ident {$(
        $(#[doc = $about:literal])+ $field:ident $(as $key:literal)?: $type:ty = $form:expr, $default:expr;
    )+})+) => {
        /// The settings of the node, in plain data.
        #[derive(Debug, Clone)]
        pub struct Config {
            $($(#[doc = $purpose])+ pub $section: $config,)+
        }

        $($(#[doc = $purpose])+
        #[allow(clippy::doc_markdown, reason = "these are the comments of the example file, too")]
        #[derive(Debug, Clone)]
        pub struct $config {
            $($(#[doc = $about])+ pub $field: $type,)+
        })+

        /// Every setting.
        pub const KEYS: &[SettingKey] = &[$($(SettingKey {
            name: concat!(stringify!($section), ".", key!($field $($key)?)),
            form: $form,
            default: $default,
            about: concat!($($about),+).trim_ascii_start(),
        },)+)+];

        impl Config {
            pub(super) fn read(raw: &Raw) -> Result<Self, ConfigError> {
                Ok(Self {$($section: $config {
                    $($field: Read::read(raw, concat!(stringify!($section), ".", key!($field $($key)?)))?,)+
                },)+})
            }
        }
    };
}

macro_rules! key {
    ($field:ident $key:literal) => {
        $key
    };
    ($field:ident) => {
        stringify!($field)
    };
}

settings! {
    /// The process and what it keeps.
    node: NodeConfig {
        /// Folder of the wallet, the ledger and everything else worth keeping; unless set, /data in a container, and elsewhere
        /// farthing in $XDG_DATA_HOME or in ~/.local/share. Not set in the file, which lies in it.
        data_dir: PathBuf = Path, Unset;
        /// Folder of backups, better on another disk; it must be there. Unless set, `backups` in the data folder, which
        /// is made.
        backups_dir: Option<PathBuf> = Path, Unset;
        /// What other nodes show for this one, at most 40 characters; nothing unless set.
        name: Option<String> = Text, Unset;
    }
    /// The key of this node.
    wallet: WalletConfig {
        /// Protects the wallet file. Without one, a random passphrase is stored beside the wallet, which protects
        /// copies of the wallet file only.
        passphrase: Option<SecretText> = Secret, Unset;
    }
    /// Port 3000, where scripts call.
    gateway: GatewayConfig {
        /// Where scripts call. Every request needs a secret. In a container it is 0.0.0.0:3000 unless set, and whoever runs
        /// the container publishes that.
        listen: SocketAddr = Socket, Value("127.0.0.1:3000");
        /// Names beside localhost under which scripts reach the gateway. Other names are refused, so that no web page
        /// can reach it by rebinding its own name.
        hosts: Vec<String> = List(Item::Host), Values(&[]);
        /// "off" only behind a proxy that speaks TLS: it needs trusted_proxies, or a listen address of this machine
        /// alone.
        tls: bool = Choice(&["on", "off"]), Value("on");
        /// An own certificate chain (PEM), with tls_key_file; otherwise the node's own authority issues one.
        tls_cert_file: Option<PathBuf> = Path, Unset;
        /// The private key (PEM) of tls_cert_file.
        tls_key_file: Option<PathBuf> = Path, Unset;
        /// A second address where scripts call without TLS, of this machine alone: "127.0.0.1:3003".
        plain: Option<SocketAddr> = Socket, Unset;
        /// A Unix socket where scripts of the node's user or group call without TLS. A file that is there is left alone,
        /// unless it is a socket at which nobody listens. control.sock in the data folder is refused: the node takes commands
        /// there.
        socket: Option<PathBuf> = Path, Unset;
        /// When set, only these addresses may connect.
        trusted_proxies: Vec<IpAddr> = List(Item::Ip), Values(&[]);
        /// Open connections of each of these addresses in all: about 2 MiB of buffers at the most.
        connections_max: usize = integer(1, 65_536), Value("128");
        /// Open connections from one address: many for a busy script, and never all of them.
        connections_per_ip_max: usize = integer(1, 65_536), Value("96");
    }
    /// Port 3002, the console. Its certificate is the gateway's, or one of the node's own authority.
    panel: PanelConfig {
        /// Where the console is opened in a browser. It needs a password. In a container it is 0.0.0.0:3002 unless set, and
        /// whoever runs the container publishes that.
        listen: SocketAddr = Socket, Value("127.0.0.1:3002");
        /// Names beside localhost under which browsers reach the console. Other names are refused, so that no web page
        /// can reach it by rebinding its own name.
        hosts: Vec<String> = List(Item::Host), Values(&[]);
        /// "off" as for the gateway. The certificate is the gateway's, or one of the node's own authority.
        tls: bool = Choice(&["on", "off"]), Value("on");
        /// When set, only these addresses may connect.
        trusted_proxies: Vec<IpAddr> = List(Item::Ip), Values(&[]);
        /// The console's password, for set-ups without hands; FARTHING_PANEL_PASSWORD_FILE names a file with it.
        /// Otherwise it is chosen in the browser.
        password: Option<SecretText> = Secret, Unset;
    }
    /// Port 3001 and other nodes.
    network: NetworkConfig {
        /// Where other nodes connect, as multiaddresses.
        listen: Vec<String> = List(Item::Multiaddr), Values(&[
            "/ip4/0.0.0.0/tcp/3001",
            "/ip4/0.0.0.0/udp/3001/quic-v1",
            "/ip6/::/tcp/3001",
            "/ip6/::/udp/3001/quic-v1",
        ]);
        /// Addresses to publish when they differ from what others observe, for instance behind a forwarded port.
        /// Published at once, withdrawn while peers cannot reach them.
        announce: Vec<String> = List(Item::Multiaddr), Values(&[]);
        /// Nodes through which this one finds the others; /p2p/<peer id> at the end lets nobody else answer there.
        bootstrap: Vec<String> = List(Item::Multiaddr), Values(&[]);
        /// Publish and dial private and loopback addresses: for test networks on one machine or LAN.
        allow_private: bool = Switch, Value("false");
        /// Tell neighbours of new records and listings at once; without it they spread within minutes.
        gossip: bool = Switch, Value("true");
        /// Look for nodes of the same local network by multicast.
        mdns: bool = Switch, Value("false");
        /// Name of the network, 1-32 lower-case letters, digits or dashes. Nodes meet those of the same name and chain.
        name: Option<String> = Text, Unset;
        /// Ask the router by UPnP to forward the ports of network.listen; "true" unless private addresses are allowed.
        upnp: bool = Switch, Unset;
        /// From the start until peers are asked for the first time whether they can dial this node,
        reach_first as "reach_first_ms": Duration = integer(0, 10 * MINUTE_MS), Value("10000");
        /// and from then on how often; a change of address is tested at once.
        reach_interval as "reach_interval_secs": Duration = integer(1, DAY_SECS), Value("900");
        /// How often one peer is asked, and how often one that asks is dialled; lower on test networks only.
        reach_peer_interval as "reach_peer_interval_secs": Duration = integer(1, HOUR_SECS), Value("60");
    }
    /// The chain that settles calls. What is unset follows the preset.
    chain: ChainConfig {
        /// The chain that settles calls; a node starts only where it is chosen, and its first start writes a public one into a
        /// farthing.toml where there is none. "local" is a chain of your own, on this machine or in a private network. "custom"
        /// is any other public chain: it needs rpc_urls, chain_id and token, and is taken for a layer 2, at most 5 gwei for a
        /// unit of gas.
        preset: String = Choice(CHAIN_PRESETS), Value("base");
        /// Endpoints of the chain in order of preference; the preset's public one unless set. A proxy that the environment names
        /// is asked for none on this machine or in a private network.
        rpc_urls: Vec<String> = List(Item::Url), Values(&[]);
        /// Id of a local chain (31337 unless set) or a custom one; beside the name of a public chain it is only compared, and
        /// a node does not start where they differ.
        chain_id: Option<u64> = integer(1, u64::MAX), Unset;
        /// "testnet" where the money of a custom chain is worth nothing, and refused for the id of a known main network; unless
        /// set, it is real.
        kind: Option<String> = Choice(&["mainnet", "testnet"]), Unset;
        /// USDC's address on a local or custom chain.
        token: Option<Address> = Wallet, Unset;
        /// The channel contract, where it is not at its usual address.
        contract: Option<Address> = Wallet, Unset;
        /// Blocks until a deposit counts; the preset's number unless set.
        confirmations: Option<u64> = integer(1, 1_000), Unset;
        /// Whether a deposit counts in full only when the chain's block tag `safe` has reached it; so on public layer
        /// 2s unless set.
        safe_tag: Option<bool> = Switch, Unset;
        /// Time an owner has for its claim after a payer asks to close (1 hour to 30 days).
        close_delay_secs: u64 = integer(CLOSE_DELAY_SECS_MIN, CLOSE_DELAY_SECS_MAX), Value("86400");
        /// How often the head of the chain is read: unless set, every 4 s on a layer 2, 12 s on Ethereum itself and 0.2 s
        /// on a local chain.
        poll_interval as "poll_interval_ms": Option<Duration> = integer(50, 10 * MINUTE_MS), Unset;
    }
    /// What this node may spend.
    spending: SpendingConfig {
        /// "false" stops all spending: no call is paid and no channel opened.
        enabled: bool = Switch, Value("true");
        /// The most one call may cost, whatever max_price it names; `farthing spending limits` replaces these three
        /// while the node runs.
        price_max: Usdc = Amount, Value("0.01");
        /// The most this node spends on calls in a day (UTC).
        per_day: Usdc = Amount, Value("5.00");
        /// The most the holder of one consumer secret spends in a day (UTC).
        per_secret_day: Usdc = Amount, Value("5.00");
        /// First deposit of a channel, in prices of the call that opens it.
        deposit_prices: u64 = integer(1, 1_000_000), Value("200");
        /// Smallest deposit: less is not worth its transaction.
        deposit_min: Usdc = Amount, Value("0.05");
        /// Largest deposit at once, and the largest that a listing may ask for; 1.00, or 20.00 on Ethereum itself,
        /// unless set.
        deposit_max: Usdc = Amount, Unset;
        /// The longest that a listing may bind a deposit when its owner does not answer; owners ask for a day as a
        /// rule.
        close_delay_max_secs: u64 = integer(CLOSE_DELAY_SECS_MIN, CLOSE_DELAY_SECS_MAX), Value("604800");
        /// What becomes of paid calls to a service whose answers break its own description or fail often: they are
        /// bought with a warning, or refused until it does better; `farthing spending flagged` says otherwise for one
        /// service.
        flagged: FlagRule = Choice(&["warn", "stop"]), Value("warn");
        /// How long after its last bad answer one call tries a flagged service that is stopped; twice as long after
        /// each trial that fails.
        flagged_trial as "flagged_trial_secs": Duration = integer(1, 7 * DAY_SECS), Value("600");
        /// The most that undecided calls to one owner may cost, calls whose end it has not told and that nobody waits for
        /// any more; ten times the price of a call where that is more. Beyond it calls are refused, but for a trial an
        /// hour after the last of them, and above half of it nothing is added to the owner's channel.
        undecided_max: Usdc = Amount, Value("0.10");
        /// The most that lies in the channel with one owner, deposited and not paid out; 5.00, or five times
        /// deposit_max where that is more, unless set.
        at_rest_per_owner: Usdc = Amount, Unset;
        /// The most that lies in all channels, deposits under way included; four times at_rest_per_owner unless set.
        at_rest_max: Usdc = Amount, Unset;
        /// A channel is topped up when less than this many prices remain,
        topup_prices: u64 = integer(0, 1_000_000), Value("20");
        /// or less than this part of its deposit.
        topup_percent: u64 = integer(0, 100), Value("25");
    }
    /// When what was earned is claimed, and channels are closed.
    settlement: SettlementConfig {
        /// How often the books are looked at for something to claim or close.
        interval as "interval_secs": Duration = integer(1, DAY_SECS), Value("60");
        /// Claim when at least this much is earned and unclaimed,
        claim_min: Usdc = Amount, Value("0.25");
        /// and at least this many times the cost of the claim,
        claim_gas_factor: u64 = integer(0, 10_000), Value("50");
        /// or when the oldest unclaimed call is this old
        claim_age as "claim_age_secs": Duration = integer(1, 365 * DAY_SECS), Value("86400");
        /// and the sum worth this many times the cost of the claim,
        claim_age_gas_factor: u64 = integer(0, 10_000), Value("5");
        /// or when this part of the deposit is used.
        claim_deposit_percent: u64 = integer(1, 100), Value("90");
        /// Wait while gas costs more than this many times its usual price, unless a close is pending.
        gas_price_factor_max: u64 = integer(1, 1_000), Value("5");
        /// Close a channel that was not used for this long.
        idle_close as "idle_close_secs": Duration = integer(60, 365 * DAY_SECS), Value("604800");
        /// How long an owner may take to answer when asked to close an unused channel; then the chain is asked.
        close_answer as "close_answer_secs": Duration = integer(60, 30 * DAY_SECS), Value("86400");
        /// How long an owner that promised to close may take; then the chain is asked.
        close_promise as "close_promise_secs": Duration = integer(1, 30 * DAY_SECS), Value("3600");
        /// Least deposit of a channel that this node serves; smaller ones are refused and take no place.
        channel_min: Usdc = Amount, Value("0.01");
        /// The most that one payer is served for on deposits that the chain may still take back (chain.safe_tag).
        unsafe_max: Usdc = Amount, Value("1.00");
        /// The most that is earned and unclaimed while the wallet's ETH does not pay for a claim; then calls are
        /// refused.
        without_gas_max: Usdc = Amount, Value("0.25");
    }
    /// How much at once, and for how long.
    limits: LimitsConfig {
        /// Connecting to an upstream.
        upstream_connect as "upstream_connect_ms": Duration = integer(10, MINUTE_MS), Value("3000");
        /// From connecting until the head of the answer.
        upstream_first_byte as "upstream_first_byte_ms": Duration = integer(10, 5 * MINUTE_MS), Value("10000");
        /// Between two parts of an answer.
        upstream_idle as "upstream_idle_ms": Duration = integer(10, 5 * MINUTE_MS), Value("10000");
        /// The whole exchange; a call's own deadline may be shorter. An operation with timeout_secs in its service file has
        /// that in place of these three.
        upstream_total as "upstream_total_ms": Duration = integer(10, 5 * MINUTE_MS), Value("30000");
        /// A call that this node buys, where its listing says no longer.
        call_total as "call_total_ms": Duration = integer(1_000, 5 * MINUTE_MS), Value("30000");
        /// Body of an upstream's answer; larger ones are refused and not charged.
        response_bytes_max: usize = integer(1024, 64 * 1024 * 1024), Value("8388608");
        /// Memory for bodies under way, of requests and answers on all ports together.
        bodies_bytes_max: usize = integer(16 * 1024 * 1024, 64 * 1024 * 1024 * 1024), Value("134217728");
        /// Calls served at once,
        calls_max: usize = integer(1, 65_536), Value("64");
        /// for one payer,
        calls_per_payer_max: usize = integer(1, 65_536), Value("16");
        /// and of one service.
        calls_per_service_max: usize = integer(1, 65_536), Value("32");
        /// Calls that wait for their turn before others are told to come back.
        calls_waiting_max: usize = integer(0, 65_536), Value("128");
        /// Calls of one operation in a minute that one payer makes and that end uncharged. Beyond that one is tried now and
        /// then, until one is charged. As a consumer this node has its secrets share as many.
        uncharged_per_minute: u32 = integer(1, 1_000_000), Value("20");
        /// The same of all operations together.
        uncharged_in_all: u32 = integer(1, 1_000_000), Value("100");
        /// Time between two that are tried.
        uncharged_trial as "uncharged_trial_ms": Duration = integer(10, MINUTE_MS), Value("1000");
    }
    /// What the node tells of itself on standard error.
    log: LogConfig {
        /// What is told: error, warn, info, debug or trace, for parts of the program on their own. FARTHING_LOG is
        /// another name of its variable.
        filter: String = Text, Value(LOG_FILTER);
    }
}

impl SettingKey {
    /// The setting called `name`.
    pub fn find(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }
}

/// A type that a setting is read as; its form was checked before.
pub(super) trait Read: Sized {
    fn read(raw: &Raw, name: &str) -> Result<Self, ConfigError>;
}

macro_rules! read_from_text {
    ($($type:ty),+) => {
        $(impl Read for $type {
            fn read(raw: &Raw, name: &str) -> Result<Self, ConfigError> {
                raw.parsed(name, raw.value(name).ok_or_else(|| raw.wrong(name, "has no value"))?)
            }
        })+
    };
}

read_from_text!(Address, PathBuf, SecretText, SocketAddr, String, Usdc, u32, u64, usize);

impl Read for bool {
    fn read(raw: &Raw, name: &str) -> Result<Self, ConfigError> {
        String::read(raw, name).map(|text| matches!(text.as_str(), "true" | "on"))
    }
}

impl Read for FlagRule {
    fn read(raw: &Raw, name: &str) -> Result<Self, ConfigError> {
        String::read(raw, name).map(|text| if text == "stop" { Self::Stop } else { Self::Warn })
    }
}

/// The name says the unit.
impl Read for Duration {
    fn read(raw: &Raw, name: &str) -> Result<Self, ConfigError> {
        let of = if name.ends_with("_ms") { Self::from_millis } else { Self::from_secs };
        u64::read(raw, name).map(of)
    }
}

impl<T: Read> Read for Option<T> {
    fn read(raw: &Raw, name: &str) -> Result<Self, ConfigError> {
        raw.value(name).map(|_| T::read(raw, name)).transpose()
    }
}

impl<T: FromStr> Read for Vec<T> {
    fn read(raw: &Raw, name: &str) -> Result<Self, ConfigError> {
        raw.values(name).iter().map(|value| raw.parsed(name, value)).collect()
    }
}
