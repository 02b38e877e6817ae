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
use farthing_values::{
    Address, Usdc,
    limits::{CLOSE_DELAY_SECS_MAX, CLOSE_DELAY_SECS_MIN},
    shards::ShardCount,
};

use super::{
    FlagRule, Rendezvous,
    keys::{
        CHAIN_PRESETS,
        Fallback::{Unset, Value, Values},
        Form::{Amount, Choice, List, LogFilter, Path, Secret, Socket, Switch, Text, Url, Wallet},
        Item, SettingKey, integer,
    },
    raw::{ConfigError, Raw},
};

const HOUR_SECS: u64 = 3600;
const DAY_SECS: u64 = 24 * HOUR_SECS;
const MINUTE_MS: u64 = 60_000;

const SHARD_COUNTS: &[&str] =
    &["all", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16"];

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
                    $($field: SettingValue::read(raw, concat!(stringify!($section), ".", key!($field $($key)?)))?,)+
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
        /// Folder for the wallet, the ledger and all other data of the node. Default: /data in a container, elsewhere
        /// farthing in $XDG_DATA_HOME or in ~/.local/share. It cannot be set in this file, which is in that folder.
        data_dir: PathBuf = Path, Unset;
        /// Folder for backups, best on another disk; it must exist. Default: `backups` in the data folder, which is
        /// created.
        backups_dir: Option<PathBuf> = Path, Unset;
        /// Name that other nodes show for this one, at most 40 characters. Default: no name.
        name: Option<String> = Text, Unset;
    }
    /// The key of this node.
    wallet: WalletConfig {
        /// Passphrase that protects the wallet file. If unset, a random one is stored beside the wallet; it protects
        /// only copies of the wallet file.
        passphrase: Option<SecretText> = Secret, Unset;
    }
    /// Port 3000, where scripts call.
    gateway: GatewayConfig {
        /// Address for scripts. Every request needs a secret. Default in a container: 0.0.0.0:3000, which you publish
        /// when you run the container.
        listen: SocketAddr = Socket, Value("127.0.0.1:3000");
        /// Host names, besides localhost, under which scripts reach the gateway. Other names are refused, so that no
        /// web page can reach it by DNS rebinding.
        hosts: Vec<String> = List(Item::Host), Values(&[]);
        /// Use "off" only behind a proxy that speaks TLS; it requires trusted_proxies, or a listen address on this
        /// machine only.
        tls: bool = Choice(&["on", "off"]), Value("on");
        /// File with your own certificate chain (PEM); set tls_key_file too. If unset, the node's own authority issues
        /// a certificate.
        tls_cert_file: Option<PathBuf> = Path, Unset;
        /// File with the private key (PEM) of tls_cert_file.
        tls_key_file: Option<PathBuf> = Path, Unset;
        /// Second address for scripts, without TLS and only on this machine: "127.0.0.1:3003".
        plain: Option<SocketAddr> = Socket, Unset;
        /// Unix socket where scripts of the node's user or group call without TLS. An existing file is not replaced,
        /// unless it is a socket that nobody uses. control.sock in the data folder is refused, because the node uses it
        /// for commands.
        socket: Option<PathBuf> = Path, Unset;
        /// If set, only these addresses may connect.
        trusted_proxies: Vec<IpAddr> = List(Item::Ip), Values(&[]);
        /// Open connections of each of these addresses in all; each needs at most about 2 MiB of buffers.
        connections_max: usize = integer(1, 65_536), Value("128");
        /// Open connections from one address: enough for a busy script, but never all of them.
        connections_per_ip_max: usize = integer(1, 65_536), Value("96");
    }
    /// Port 3002, the console. Its certificate is the gateway's, or one of the node's own authority.
    panel: PanelConfig {
        /// Address of the console in a browser. It needs a password. Default in a container: 0.0.0.0:3002, which you
        /// publish when you run the container.
        listen: SocketAddr = Socket, Value("127.0.0.1:3002");
        /// Host names, besides localhost, under which browsers reach the console. Other names are refused, so that no
        /// web page can reach it by DNS rebinding.
        hosts: Vec<String> = List(Item::Host), Values(&[]);
        /// "off" as for the gateway. The console uses the gateway's certificate, or one from the node's own authority.
        tls: bool = Choice(&["on", "off"]), Value("on");
        /// If set, only these addresses may connect.
        trusted_proxies: Vec<IpAddr> = List(Item::Ip), Values(&[]);
        /// Password of the console, for unattended setup; FARTHING_PANEL_PASSWORD_FILE names a file with it. If unset,
        /// you choose it in the browser.
        password: Option<SecretText> = Secret, Unset;
    }
    /// Port for x402 clients, where anyone buys calls of your services with a payment per call. Off unless listen is set.
    x402: X402Config {
        /// Address for x402 clients: "127.0.0.1:3004". If unset, this node sells to no x402 client. Unlike the gateway,
        /// this port asks for no secret and answers to every name: it is meant for strangers.
        listen: Option<SocketAddr> = Socket, Unset;
        /// Address under which clients reach this port, such as "https://data.example". Payments name it, so set it if a
        /// proxy or a router is in front. Default: the address in listen.
        url: Option<String> = Url, Unset;
        /// Set "on" to speak TLS here with the gateway's certificate. Programs of strangers trust it only if it is in
        /// gateway.tls_cert_file. Leave it "off" behind a proxy that speaks TLS.
        tls: bool = Choice(&["on", "off"]), Value("off");
        /// If set, only these addresses may connect.
        trusted_proxies: Vec<IpAddr> = List(Item::Ip), Values(&[]);
    }
    /// Port 3001 and other nodes.
    network: NetworkConfig {
        /// Addresses where other nodes connect, as multiaddresses.
        listen: Vec<String> = List(Item::Multiaddr), Values(&[
            "/ip4/0.0.0.0/tcp/3001",
            "/ip4/0.0.0.0/udp/3001/quic-v1",
            "/ip6/::/tcp/3001",
            "/ip6/::/udp/3001/quic-v1",
        ]);
        /// Addresses to publish if they differ from what others observe, for example behind a forwarded port. Published
        /// at once, and withdrawn while peers cannot reach them.
        announce: Vec<String> = List(Item::Multiaddr), Values(&[]);
        /// Nodes through which this node finds the others; with /p2p/<peer id> at the end, only that node may answer
        /// there.
        bootstrap: Vec<String> = List(Item::Multiaddr), Values(&[]);
        /// Meeting point for nodes that know no other node. "ipfs" asks the public IPFS DHT while fewer than three
        /// peers are connected, which shows its hosts this node's IP address; while this node can be reached, it is
        /// also listed there, which shows everybody its addresses and its wallet. Default: "off" on a local chain and
        /// where private addresses are allowed, "ipfs" elsewhere.
        rendezvous: Rendezvous = Choice(&["ipfs", "off"]), Unset;
        /// Nodes of that DHT to connect to first.
        rendezvous_entrance: Vec<String> = List(Item::Multiaddr), Values(&[
            "/dnsaddr/bootstrap.libp2p.io/p2p/QmNnooDu7bfjPFoTZYxMNLWUQJyrVwtbZg5gBMjTezGAJN",
            "/dnsaddr/bootstrap.libp2p.io/p2p/QmQCU2EcMqAqQPR2i9bChDtGNJchTbq5TbXJJ16u19uLTa",
            "/dnsaddr/bootstrap.libp2p.io/p2p/QmbLHAnMoJPWSCR5Zhtx6BHJX9KiKNN6tpvbUcqanj75Nb",
            "/dnsaddr/bootstrap.libp2p.io/p2p/QmcZf59bWwK5XFi76CZX8cbJ4BhTzzA3gU1ZjYZcYW3dwt",
            "/dnsaddr/va1.bootstrap.libp2p.io/p2p/12D3KooWKnDdG3iXw9eTFijk3EWSunZcFi54Zka4wmtqtt6rPxc8",
        ]);
        /// Publish and dial private and loopback addresses, and buy from x402 servers there; for test networks on one
        /// machine or LAN.
        allow_private: bool = Switch, Value("false");
        /// Send new records and listings to neighbours at once; without it they spread within minutes.
        gossip: bool = Switch, Value("true");
        /// Look for nodes of the same local network by multicast.
        mdns: bool = Switch, Value("false");
        /// Name of the network, 1-32 lower-case letters, digits or dashes. Nodes connect only to nodes with the same
        /// network name and chain.
        name: Option<String> = Text, Unset;
        /// Ask the router by UPnP to forward the ports of network.listen. Default: "true", unless private addresses are
        /// allowed.
        upnp: bool = Switch, Unset;
        /// Relay for nodes that nobody can connect to, while peers can connect to this node: 32 nodes, and 128
        /// connections of 2 MiB and 5 minutes. The relayed traffic is encrypted.
        relay: bool = Switch, Value("true");
        /// Use the relays of other nodes while this node sells and nobody can connect to it. Relays see who calls and
        /// when, but not the content.
        use_relays: bool = Switch, Value("true");
        /// Time from the start until this node first asks peers whether they can dial it.
        reach_first as "reach_first_ms": Duration = integer(0, 10 * MINUTE_MS), Value("10000");
        /// Time between later tests; a changed address is tested at once.
        reach_interval as "reach_interval_secs": Duration = integer(1, DAY_SECS), Value("900");
        /// Shortest time between two tests with the same peer, in both directions; use less only on test networks.
        reach_peer_interval as "reach_peer_interval_secs": Duration = integer(1, HOUR_SECS), Value("60");
    }
    /// The services of the network that this node knows without asking.
    catalog: CatalogConfig {
        /// Part of the network's listings to keep: "all", or a number of its sixteen shards; a hash puts each owner in
        /// a shard. A node that keeps all is an index node: nodes that keep less ask it when they search. Your own
        /// listings, and those of owners that this node has a channel with or bought from, are always kept.
        shards: ShardCount = Choice(SHARD_COUNTS), Value("all");
        /// Most listings to keep, about 0.6 KiB of memory and 0.5 KiB on disk each. If there are more, keep fewer
        /// shards or raise this.
        listings_max: usize = integer(1_000, 10_000_000), Value("200000");
    }
    /// The chain that settles calls. What is unset follows the preset.
    chain: ChainConfig {
        /// Chain that settles calls. A node starts only after you choose one; its first start writes a public chain
        /// into farthing.toml if that file does not exist. "local" is your own chain, on this machine or in a private
        /// network. "custom" is any other public chain: it needs rpc_urls, chain_id and token, and is treated as a
        /// layer 2 with at most 5 gwei for a unit of gas.
        preset: String = Choice(CHAIN_PRESETS), Value("base");
        /// Endpoints of the chain in order of preference. Default: the preset's public endpoint. A proxy from the
        /// environment is not used for endpoints on this machine or in a private network.
        rpc_urls: Vec<String> = List(Item::Url), Values(&[]);
        /// Id of a local chain (default 31337) or a custom one. With a public chain's name it is only compared, and the
        /// node does not start if they differ.
        chain_id: Option<u64> = integer(1, u64::MAX), Unset;
        /// Set "testnet" if the money of a custom chain is worth nothing; refused for the id of a known main network.
        /// If unset, the money is real.
        kind: Option<String> = Choice(&["mainnet", "testnet"]), Unset;
        /// USDC's address on a local or custom chain.
        token: Option<Address> = Wallet, Unset;
        /// Address of the channel contract, if it is not the usual one.
        contract: Option<Address> = Wallet, Unset;
        /// Number of blocks until a deposit counts. Default: the preset's number.
        confirmations: Option<u64> = integer(1, 1_000), Unset;
        /// If true, a deposit counts in full only when the chain's block tag `safe` has reached it. Default: true on
        /// public layer 2s.
        safe_tag: Option<bool> = Switch, Unset;
        /// Time that an owner has for its claim after a payer asks to close (1 hour to 30 days).
        close_delay_secs: u64 = integer(CLOSE_DELAY_SECS_MIN, CLOSE_DELAY_SECS_MAX), Value("86400");
        /// Time between two reads of the chain's head. Default: 4 s on a layer 2, 12 s on Ethereum itself and 0.2 s on
        /// a local chain.
        poll_interval as "poll_interval_ms": Option<Duration> = integer(50, 10 * MINUTE_MS), Unset;
    }
    /// What this node may spend.
    spending: SpendingConfig {
        /// Set "false" to stop all spending: no call is paid and no channel is opened.
        enabled: bool = Switch, Value("true");
        /// Highest price of one call, whatever its max_price; `farthing spending limits` changes these three limits
        /// while the node runs.
        price_max: Usdc = Amount, Value("0.01");
        /// Most that this node may spend on calls in a day (UTC).
        per_day: Usdc = Amount, Value("5.00");
        /// Most that may be spent with one consumer secret in a day (UTC).
        per_secret_day: Usdc = Amount, Value("5.00");
        /// An agent needs a confirmation for a call that costs more. If unset, it needs none. `farthing secret limit`
        /// can set a lower amount for one secret.
        confirm_above: Option<Usdc> = Amount, Unset;
        /// First deposit of a channel, as a multiple of the price of the call that opens it.
        deposit_prices: u64 = integer(1, 1_000_000), Value("200");
        /// Smallest deposit; less is not worth its transaction.
        deposit_min: Usdc = Amount, Value("0.05");
        /// Largest single deposit, and the largest that a listing may require. Default: 1.00, or 20.00 on Ethereum
        /// itself.
        deposit_max: Usdc = Amount, Unset;
        /// Longest time that a listing may bind a deposit if its owner does not answer; most owners ask for a day.
        close_delay_max_secs: u64 = integer(CLOSE_DELAY_SECS_MIN, CLOSE_DELAY_SECS_MAX), Value("604800");
        /// Rule for paid calls to a service that fails often or whose answers break its own description: buy them with
        /// a warning, or refuse them until it improves; `farthing spending flagged` sets the rule for one service.
        flagged: FlagRule = Choice(&["warn", "stop"]), Value("warn");
        /// Time after its last bad answer until one call tries a flagged service again; doubled after each failed
        /// trial.
        flagged_trial as "flagged_trial_secs": Duration = integer(1, 7 * DAY_SECS), Value("600");
        /// Most that undecided calls to one owner may cost: calls that nobody waits for any more and whose end the
        /// owner has not reported. Ten times the price of a call counts if that is more. Above it calls are refused,
        /// except a trial an hour after the last of them; above half of it nothing is added to the owner's channel.
        undecided_max: Usdc = Amount, Value("0.10");
        /// Most money in the channel with one owner, deposited and not paid out. Default: 5.00, or five times
        /// deposit_max if that is more.
        at_rest_per_owner: Usdc = Amount, Unset;
        /// Most money in all channels, including deposits under way. Default: four times at_rest_per_owner.
        at_rest_max: Usdc = Amount, Unset;
        /// A channel is topped up when less than this many prices remain
        topup_prices: u64 = integer(0, 1_000_000), Value("20");
        /// or less than this part of its deposit remains.
        topup_percent: u64 = integer(0, 100), Value("25");
    }
    /// When what was earned is claimed, and channels are closed.
    settlement: SettlementConfig {
        /// Time between two checks for something to claim or close.
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
        /// Close a channel that has not been used for this long.
        idle_close as "idle_close_secs": Duration = integer(60, 365 * DAY_SECS), Value("604800");
        /// Time for an owner to answer a request to close an unused channel; after it this node closes it on the chain.
        close_answer as "close_answer_secs": Duration = integer(60, 30 * DAY_SECS), Value("86400");
        /// Time for an owner to close a channel as promised; after it this node closes it on the chain.
        close_promise as "close_promise_secs": Duration = integer(1, 30 * DAY_SECS), Value("3600");
        /// Smallest deposit of a channel that this node serves; calls on smaller ones are refused.
        channel_min: Usdc = Amount, Value("0.01");
        /// Most that one payer is served for on deposits that the chain may still take back (chain.safe_tag).
        unsafe_max: Usdc = Amount, Value("1.00");
        /// Most that may be earned and unclaimed while the wallet's ETH does not pay for a claim; above it calls are
        /// refused.
        without_gas_max: Usdc = Amount, Value("0.25");
        /// Pay the gas for buyers without ETH: for their deposits with you, their requests to close and their withdrawals.
        sponsor: bool = Switch, Value("true");
        /// Pay this gas only if the deposit, or what a close returns, is worth at least this many times the gas.
        sponsor_gas_factor: u64 = integer(0, 10_000), Value("20");
        /// Most gas that your node pays for buyers in a day, in USDC.
        sponsor_gas_per_day: Usdc = Amount, Value("0.50");
        /// Most transactions that your node pays for one address range of buyers in an hour.
        sponsor_per_hour: u32 = integer(0, 1_000_000), Value("12");
    }
    /// How much at once, and for how long.
    limits: LimitsConfig {
        /// Time to connect to an upstream.
        upstream_connect as "upstream_connect_ms": Duration = integer(10, MINUTE_MS), Value("3000");
        /// Time from the connection until the head of the answer.
        upstream_first_byte as "upstream_first_byte_ms": Duration = integer(10, 5 * MINUTE_MS), Value("10000");
        /// Time between two parts of an answer.
        upstream_idle as "upstream_idle_ms": Duration = integer(10, 5 * MINUTE_MS), Value("10000");
        /// Time for the whole exchange; a call's own deadline may be shorter. An operation with timeout_secs in its
        /// service file uses that instead of these three.
        upstream_total as "upstream_total_ms": Duration = integer(10, 5 * MINUTE_MS), Value("30000");
        /// Time for a call that this node buys, unless its listing allows longer.
        call_total as "call_total_ms": Duration = integer(1_000, 5 * MINUTE_MS), Value("30000");
        /// Largest body of an upstream's answer; larger ones are refused and not charged.
        response_bytes_max: usize = integer(1024, 64 * 1024 * 1024), Value("8388608");
        /// Memory for the bodies of running requests and answers, on all ports together.
        bodies_bytes_max: usize = integer(16 * 1024 * 1024, 64 * 1024 * 1024 * 1024), Value("134217728");
        /// Calls served at once,
        calls_max: usize = integer(1, 65_536), Value("64");
        /// for one payer,
        calls_per_payer_max: usize = integer(1, 65_536), Value("16");
        /// and of one service.
        calls_per_service_max: usize = integer(1, 65_536), Value("32");
        /// Calls that may wait for their turn; further ones are refused for the moment.
        calls_waiting_max: usize = integer(0, 65_536), Value("128");
        /// Calls of one operation that one payer may make in a minute and that end uncharged. Above it one is tried now
        /// and then, until one is charged. As a consumer this node shares the same number among its secrets.
        uncharged_per_minute: u32 = integer(1, 1_000_000), Value("20");
        /// The same of all operations together.
        uncharged_in_all: u32 = integer(1, 1_000_000), Value("100");
        /// Time between two trial calls.
        uncharged_trial as "uncharged_trial_ms": Duration = integer(10, MINUTE_MS), Value("1000");
    }
    /// What the node tells of itself on standard error.
    log: LogConfig {
        /// Filter for the log: error, warn, info, debug or trace, also for single parts of the program. FARTHING_LOG is
        /// another name for its variable.
        filter: String = LogFilter, Value(LOG_FILTER);
    }
}

impl SettingKey {
    /// The setting called `name`.
    pub fn find(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }
}

/// A type that a setting is read as; its form was checked before.
pub(super) trait SettingValue: Sized {
    fn read(raw: &Raw, name: &str) -> Result<Self, ConfigError>;
}

macro_rules! read_from_text {
    ($($type:ty),+) => {
        $(impl SettingValue for $type {
            fn read(raw: &Raw, name: &str) -> Result<Self, ConfigError> {
                raw.parsed(name, raw.value(name).ok_or_else(|| raw.wrong(name, "has no value"))?)
            }
        })+
    };
}

read_from_text!(Address, PathBuf, SecretText, ShardCount, SocketAddr, String, Usdc, u32, u64, usize);

impl SettingValue for bool {
    fn read(raw: &Raw, name: &str) -> Result<Self, ConfigError> {
        String::read(raw, name).map(|text| matches!(text.as_str(), "true" | "on"))
    }
}

impl SettingValue for FlagRule {
    fn read(raw: &Raw, name: &str) -> Result<Self, ConfigError> {
        String::read(raw, name).map(|text| if text == "stop" { Self::Stop } else { Self::Warn })
    }
}

impl SettingValue for Rendezvous {
    fn read(raw: &Raw, name: &str) -> Result<Self, ConfigError> {
        String::read(raw, name).map(|text| if text == "ipfs" { Self::Ipfs } else { Self::Off })
    }
}

/// The name says the unit.
impl SettingValue for Duration {
    fn read(raw: &Raw, name: &str) -> Result<Self, ConfigError> {
        let of = if name.ends_with("_ms") { Self::from_millis } else { Self::from_secs };
        u64::read(raw, name).map(of)
    }
}

impl<T: SettingValue> SettingValue for Option<T> {
    fn read(raw: &Raw, name: &str) -> Result<Self, ConfigError> {
        raw.value(name).map(|_| T::read(raw, name)).transpose()
    }
}

impl<T: FromStr> SettingValue for Vec<T> {
    fn read(raw: &Raw, name: &str) -> Result<Self, ConfigError> {
        raw.values(name).iter().map(|value| raw.parsed(name, value)).collect()
    }
}
