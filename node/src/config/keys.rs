//! The one table of settings: name, form, default and meaning.
//!
//! Reading, checking, `config show`, the example file and the list of environment variables all come from
//! this table, so none of them can drift from the others.

mod form;

pub use self::form::{CHAIN_PRESETS, Fallback, Form, Item};

/// One setting, `section.key` in the file and `FARTHING_SECTION__KEY` in the environment.
#[derive(Debug)]
pub struct SettingKey {
    pub name: &'static str,
    pub form: Form,
    pub default: Fallback,
    /// One sentence for the example file, with the unit and the reason.
    pub about: &'static str,
}

use Fallback::{List, Unset, Value};

const HOUR_SECS: u64 = 3600;
const DAY_SECS: u64 = 24 * HOUR_SECS;
const MINUTE_MS: u64 = 60_000;

/// Every setting, in the order of the example file.
pub const KEYS: &[SettingKey] = &[
    key(
        "node.data_dir",
        Form::Path,
        Value("/data"),
        "Folder of the wallet, the ledger and everything else worth keeping. Not set in the file, which lies in it.",
    ),
    key(
        "node.backups_dir",
        Form::Path,
        Unset,
        "Folder of backups, better on another disk; it must be there. Unless set, `backups` in the data folder, which is made.",
    ),
    key(
        "node.name",
        Form::Text,
        Unset,
        "What other nodes show for this one, at most 40 characters; nothing unless set.",
    ),
    //
    key(
        "wallet.passphrase",
        Form::Secret,
        Unset,
        "Protects the wallet file. Without one, a random passphrase is stored beside the wallet, which protects copies of the wallet file only.",
    ),
    //
    key(
        "gateway.listen",
        Form::Socket,
        Value("0.0.0.0:3000"),
        "Where scripts call. Every request needs a secret; containers publish this port.",
    ),
    key(
        "gateway.hosts",
        Form::List(Item::Host),
        List(&[]),
        "Names beside localhost under which scripts reach the gateway. Other names are refused, so that no web page can reach it by rebinding its own name.",
    ),
    key(
        "gateway.tls",
        Form::Choice(&["on", "off"]),
        Value("on"),
        "\"off\" only behind a proxy that speaks TLS: it needs trusted_proxies, or a listen address of this machine alone.",
    ),
    key(
        "gateway.tls_cert_file",
        Form::Path,
        Unset,
        "An own certificate chain (PEM), with tls_key_file; otherwise the node's own authority issues one.",
    ),
    key("gateway.tls_key_file", Form::Path, Unset, "The private key (PEM) of tls_cert_file."),
    key(
        "gateway.trusted_proxies",
        Form::List(Item::Ip),
        List(&[]),
        "When set, only these addresses may connect.",
    ),
    key(
        "gateway.connections_max",
        integer(1, 65_536),
        Value("128"),
        "Open connections in all: about 2 MiB of buffers at the most.",
    ),
    key(
        "gateway.connections_per_ip_max",
        integer(1, 65_536),
        Value("96"),
        "Open connections from one address: many for a busy script, and never all of them.",
    ),
    //
    key(
        "panel.listen",
        Form::Socket,
        Value("0.0.0.0:3002"),
        "Where the console is opened in a browser. It needs a password; containers publish this port.",
    ),
    key(
        "panel.hosts",
        Form::List(Item::Host),
        List(&[]),
        "Names beside localhost under which browsers reach the console. Other names are refused, so that no web page can reach it by rebinding its own name.",
    ),
    key(
        "panel.tls",
        Form::Choice(&["on", "off"]),
        Value("on"),
        "\"off\" as for the gateway. The certificate is the gateway's, or one of the node's own authority.",
    ),
    key(
        "panel.trusted_proxies",
        Form::List(Item::Ip),
        List(&[]),
        "When set, only these addresses may connect.",
    ),
    key(
        "panel.password",
        Form::Secret,
        Unset,
        "The console's password, for set-ups without hands; FARTHING_PANEL_PASSWORD_FILE names a file with it. Otherwise it is chosen in the browser.",
    ),
    //
    key(
        "network.listen",
        Form::List(Item::Multiaddr),
        List(&[
            "/ip4/0.0.0.0/tcp/3001",
            "/ip4/0.0.0.0/udp/3001/quic-v1",
            "/ip6/::/tcp/3001",
            "/ip6/::/udp/3001/quic-v1",
        ]),
        "Where other nodes connect, as multiaddresses.",
    ),
    key(
        "network.announce",
        Form::List(Item::Multiaddr),
        List(&[]),
        "Addresses to publish when they differ from what others observe, for instance behind a forwarded port. Published at once, withdrawn while peers cannot reach them.",
    ),
    key(
        "network.bootstrap",
        Form::List(Item::Multiaddr),
        List(&[]),
        "Nodes through which this one finds the others; /p2p/<peer id> at the end lets nobody else answer there.",
    ),
    key(
        "network.allow_private",
        Form::Switch,
        Value("false"),
        "Publish and dial private and loopback addresses: for test networks on one machine or LAN.",
    ),
    key(
        "network.gossip",
        Form::Switch,
        Value("true"),
        "Tell neighbours of new records and listings at once; without it they spread within minutes.",
    ),
    key(
        "network.mdns",
        Form::Switch,
        Value("false"),
        "Look for nodes of the same local network by multicast.",
    ),
    key(
        "network.name",
        Form::Text,
        Unset,
        "Name of the network, 1-32 lower-case letters, digits or dashes. Nodes meet those of the same name and chain.",
    ),
    key(
        "network.upnp",
        Form::Switch,
        Unset,
        "Ask the router by UPnP to forward the ports of network.listen; \"true\" unless private addresses are allowed.",
    ),
    key(
        "network.reach_first_ms",
        integer(0, 10 * MINUTE_MS),
        Value("10000"),
        "From the start until peers are asked for the first time whether they can dial this node,",
    ),
    key(
        "network.reach_interval_secs",
        integer(1, DAY_SECS),
        Value("900"),
        "and from then on how often; a change of address is tested at once.",
    ),
    key(
        "network.reach_peer_interval_secs",
        integer(1, HOUR_SECS),
        Value("60"),
        "How often one peer is asked, and how often one that asks is dialled; lower on test networks only.",
    ),
    //
    key(
        "chain.preset",
        Form::Choice(CHAIN_PRESETS),
        Value("base"),
        "The chain that settles calls. \"custom\" needs rpc_urls, chain_id and token.",
    ),
    key(
        "chain.rpc_urls",
        Form::List(Item::Url),
        List(&[]),
        "Endpoints of the chain in order of preference; the preset's public one unless set.",
    ),
    key(
        "chain.chain_id",
        integer(1, u64::MAX),
        Unset,
        "Id of a custom chain; with a preset it is only compared.",
    ),
    key("chain.token", Form::Wallet, Unset, "USDC's address on a custom chain."),
    key("chain.contract", Form::Wallet, Unset, "The channel contract, where it is not at its usual address."),
    key(
        "chain.confirmations",
        integer(1, 1_000),
        Unset,
        "Blocks until a deposit counts; the preset's number unless set.",
    ),
    key(
        "chain.safe_tag",
        Form::Switch,
        Unset,
        "Whether a deposit counts in full only when the chain's block tag `safe` has reached it; so on public layer 2s unless set.",
    ),
    key(
        "chain.close_delay_secs",
        integer(HOUR_SECS, 30 * DAY_SECS),
        Value("86400"),
        "Time an owner has for its claim after a payer asks to close (1 hour to 30 days).",
    ),
    key(
        "chain.poll_interval_ms",
        integer(50, 10 * MINUTE_MS),
        Unset,
        "How often the head of the chain is read; half the preset's block time unless set.",
    ),
    //
    key(
        "spending.enabled",
        Form::Switch,
        Value("true"),
        "\"false\" stops all spending: no call is paid and no channel opened.",
    ),
    key(
        "spending.price_max",
        Form::Amount,
        Value("0.01"),
        "The most one call may cost, whatever max_price it names; `farthing spending limits` replaces these three while the node runs.",
    ),
    key(
        "spending.per_day",
        Form::Amount,
        Value("5.00"),
        "The most this node spends on calls in a day (UTC).",
    ),
    key(
        "spending.per_secret_day",
        Form::Amount,
        Value("5.00"),
        "The most the holder of one consumer secret spends in a day (UTC).",
    ),
    key(
        "spending.deposit_prices",
        integer(1, 1_000_000),
        Value("200"),
        "First deposit of a channel, in prices of the call that opens it.",
    ),
    key(
        "spending.deposit_min",
        Form::Amount,
        Value("0.05"),
        "Smallest deposit: less is not worth its transaction.",
    ),
    key(
        "spending.deposit_max",
        Form::Amount,
        Unset,
        "Largest deposit at once, and the largest that a listing may ask for; 1.00, or 20.00 on Ethereum itself, unless set.",
    ),
    key(
        "spending.close_delay_max_secs",
        integer(HOUR_SECS, 30 * DAY_SECS),
        Value("604800"),
        "The longest that a listing may bind a deposit when its owner does not answer; owners ask for a day as a rule.",
    ),
    key(
        "spending.flagged",
        Form::Choice(&["warn", "stop"]),
        Value("warn"),
        "What becomes of paid calls to a service whose answers break its own description or fail often: they are bought with a warning, or refused until it does better; `farthing spending flagged` says otherwise for one service.",
    ),
    key(
        "spending.flagged_trial_secs",
        integer(1, 7 * DAY_SECS),
        Value("600"),
        "How long after its last bad answer one call tries a flagged service that is stopped; twice as long after each trial that fails.",
    ),
    key(
        "spending.at_rest_per_owner",
        Form::Amount,
        Unset,
        "The most that lies in the channel with one owner, deposited and not paid out; 5.00, or five times deposit_max where that is more, unless set.",
    ),
    key(
        "spending.at_rest_max",
        Form::Amount,
        Unset,
        "The most that lies in all channels, deposits under way included; four times at_rest_per_owner unless set.",
    ),
    key(
        "spending.topup_prices",
        integer(0, 1_000_000),
        Value("20"),
        "A channel is topped up when less than this many prices remain,",
    ),
    key("spending.topup_percent", integer(0, 100), Value("25"), "or less than this part of its deposit."),
    //
    key(
        "settlement.interval_secs",
        integer(1, DAY_SECS),
        Value("60"),
        "How often the books are looked at for something to claim or close.",
    ),
    key(
        "settlement.claim_min",
        Form::Amount,
        Value("0.25"),
        "Claim when at least this much is earned and unclaimed,",
    ),
    key(
        "settlement.claim_gas_factor",
        integer(0, 10_000),
        Value("50"),
        "and at least this many times the cost of the claim,",
    ),
    key(
        "settlement.claim_age_secs",
        integer(1, 365 * DAY_SECS),
        Value("86400"),
        "or when the oldest unclaimed call is this old",
    ),
    key(
        "settlement.claim_age_gas_factor",
        integer(0, 10_000),
        Value("5"),
        "and the sum worth this many times the cost of the claim,",
    ),
    key(
        "settlement.claim_deposit_percent",
        integer(1, 100),
        Value("90"),
        "or when this part of the deposit is used.",
    ),
    key(
        "settlement.gas_price_factor_max",
        integer(1, 1_000),
        Value("5"),
        "Wait while gas costs more than this many times its usual price, unless a close is pending.",
    ),
    key(
        "settlement.idle_close_secs",
        integer(60, 365 * DAY_SECS),
        Value("604800"),
        "Close a channel that was not used for this long.",
    ),
    key(
        "settlement.close_answer_secs",
        integer(60, 30 * DAY_SECS),
        Value("86400"),
        "How long an owner may take to answer when asked to close an unused channel; then the chain is asked.",
    ),
    key(
        "settlement.close_promise_secs",
        integer(1, 30 * DAY_SECS),
        Value("3600"),
        "How long an owner that promised to close may take; then the chain is asked.",
    ),
    key(
        "settlement.channel_min",
        Form::Amount,
        Value("0.01"),
        "Least deposit of a channel that this node serves; smaller ones are refused and take no place.",
    ),
    key(
        "settlement.unsafe_max",
        Form::Amount,
        Value("1.00"),
        "The most that one payer is served for on deposits that the chain may still take back (chain.safe_tag).",
    ),
    key(
        "settlement.without_gas_max",
        Form::Amount,
        Value("0.25"),
        "The most that is earned and unclaimed while the wallet's ETH does not pay for a claim; then calls are refused.",
    ),
    //
    key("limits.upstream_connect_ms", integer(10, MINUTE_MS), Value("3000"), "Connecting to an upstream."),
    key(
        "limits.upstream_first_byte_ms",
        integer(10, 5 * MINUTE_MS),
        Value("10000"),
        "From connecting until the head of the answer.",
    ),
    key(
        "limits.upstream_idle_ms",
        integer(10, 5 * MINUTE_MS),
        Value("10000"),
        "Between two parts of an answer.",
    ),
    key(
        "limits.upstream_total_ms",
        integer(10, 5 * MINUTE_MS),
        Value("30000"),
        "The whole exchange; a call's own deadline may be shorter.",
    ),
    key(
        "limits.response_bytes_max",
        integer(1024, 64 * 1024 * 1024),
        Value("8388608"),
        "Body of an upstream's answer; larger ones are refused and not charged.",
    ),
    key(
        "limits.bodies_bytes_max",
        integer(16 * 1024 * 1024, 64 * 1024 * 1024 * 1024),
        Value("134217728"),
        "Memory for bodies under way, of requests and answers on all ports together.",
    ),
    key("limits.calls_max", integer(1, 65_536), Value("64"), "Calls served at once,"),
    key("limits.calls_per_payer_max", integer(1, 65_536), Value("16"), "for one payer,"),
    key("limits.calls_per_service_max", integer(1, 65_536), Value("32"), "and of one service."),
    key(
        "limits.calls_waiting_max",
        integer(0, 65_536),
        Value("128"),
        "Calls that wait for their turn before others are told to come back.",
    ),
];

const fn key(name: &'static str, form: Form, default: Fallback, about: &'static str) -> SettingKey {
    SettingKey { name, form, default, about }
}

const fn integer(min: u64, max: u64) -> Form {
    Form::Integer { min, max }
}

impl SettingKey {
    /// The setting called `name`.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    #[must_use]
    pub fn section(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(section, _)| section)
    }

    /// The name within its section.
    #[must_use]
    pub fn short_name(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(_, name)| name)
    }

    /// `FARTHING_GATEWAY__LISTEN`
    #[must_use]
    pub fn variable(&self) -> String {
        format!("FARTHING_{}", self.name.replace('.', "__").to_uppercase())
    }

    #[must_use]
    pub const fn is_secret(&self) -> bool {
        matches!(self.form, Form::Secret)
    }

    #[must_use]
    pub const fn is_list(&self) -> bool {
        matches!(self.form, Form::List(_))
    }
}

#[cfg(test)]
mod tests;
