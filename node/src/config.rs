//! Configuration: raw text (defaults ← file ← console ← environment ← flags) → [`Config`], validated once.
//!
//! [`load`] gathers every setting with its origin, checks forms against the table in [`keys`], then the rules
//! between settings. After that nothing in the node reads the environment or asks whether a value is sane.

mod chosen;
mod example;
mod flagged;
pub mod keys;
mod raw;

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use farthing_control::types::PASSWORD_CHARS_MIN;
use farthing_protocol::{Address, Usdc, wire::NetworkName};

use self::raw::Raw;
pub use self::{
    chosen::ChosenSettings,
    example::{Shown, ShownValue, example},
    flagged::FlagRule,
    raw::{CONSOLE_SETTINGS_FILE, ConfigError, ConfigProblem, Origin, Sources},
};
use farthing_os::secret::SecretText;

/// What the node does, in plain data.
#[derive(Debug, Clone)]
pub struct Config {
    pub node: NodeConfig,
    pub wallet: WalletConfig,
    pub gateway: GatewayConfig,
    pub panel: PanelConfig,
    pub network: NetworkConfig,
    pub chain: ChainConfig,
    pub spending: SpendingConfig,
    pub settlement: SettlementConfig,
    pub limits: LimitsConfig,
}

#[derive(Debug, Clone)]
pub struct NodeConfig {
    pub data_dir: PathBuf,
    /// `backups` in the data folder when absent.
    pub backups_dir: Option<PathBuf>,
    pub name: Option<String>,
}

#[derive(Debug, Clone)]
pub struct WalletConfig {
    pub passphrase: Option<SecretText>,
}

#[derive(Debug, Clone)]
pub struct GatewayConfig {
    pub listen: SocketAddr,
    pub hosts: Vec<String>,
    pub tls: TlsMode,
    pub trusted_proxies: Vec<IpAddr>,
    pub connections_max: usize,
    pub connections_per_ip_max: usize,
}

/// The console. Its certificate is the gateway's, or one of the node's own authority.
#[derive(Debug, Clone)]
pub struct PanelConfig {
    pub listen: SocketAddr,
    pub hosts: Vec<String>,
    pub tls: bool,
    pub trusted_proxies: Vec<IpAddr>,
    /// In place of the one that is chosen at set-up.
    pub password: Option<SecretText>,
}

/// How the gateway's connections are protected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsMode {
    /// By a certificate of the node's own authority.
    OwnAuthority,
    /// By a certificate from elsewhere: PEM files of the chain and its key.
    Files { cert_file: PathBuf, key_file: PathBuf },
    /// By a trusted proxy in front, or by never leaving the machine.
    Off,
}

#[derive(Debug, Clone)]
pub struct NetworkConfig {
    /// Multiaddresses, as text.
    pub listen: Vec<String>,
    pub announce: Vec<String>,
    pub bootstrap: Vec<String>,
    pub allow_private: bool,
    pub gossip: bool,
    pub mdns: bool,
    /// The chain's id when absent.
    pub name: Option<String>,
    pub upnp: bool,
    pub reach_first: Duration,
    pub reach_interval: Duration,
    pub reach_peer_interval: Duration,
}

/// What is absent follows the preset.
#[derive(Debug, Clone)]
pub struct ChainConfig {
    /// One of [`keys::CHAIN_PRESETS`].
    pub preset: String,
    pub rpc_urls: Vec<String>,
    pub chain_id: Option<u64>,
    pub token: Option<Address>,
    pub contract: Option<Address>,
    pub confirmations: Option<u64>,
    pub safe_tag: Option<bool>,
    pub close_delay_secs: u64,
    pub poll_interval: Option<Duration>,
}

#[derive(Debug, Clone)]
pub struct SpendingConfig {
    pub enabled: bool,
    pub price_max: Usdc,
    pub per_day: Usdc,
    pub per_secret_day: Usdc,
    /// First deposit = clamp(this many prices, `deposit_min`, `deposit_max`).
    pub deposit_prices: u64,
    pub deposit_min: Usdc,
    pub deposit_max: Usdc,
    pub topup_prices: u64,
    pub topup_percent: u64,
    /// The longest close delay of a channel that money is put into.
    pub close_delay_max_secs: u64,
    /// What becomes of calls to services that are flagged.
    pub flagged: FlagRule,
    /// Until a flagged service that is stopped is tried again.
    pub flagged_trial: Duration,
    /// The most that lies in channels, deposited and not paid out.
    pub at_rest_per_owner: Usdc,
    pub at_rest_max: Usdc,
}

#[derive(Debug, Clone)]
pub struct SettlementConfig {
    pub interval: Duration,
    pub claim_min: Usdc,
    pub claim_gas_factor: u64,
    pub claim_age: Duration,
    pub claim_age_gas_factor: u64,
    pub claim_deposit_percent: u64,
    pub gas_price_factor_max: u64,
    pub idle_close: Duration,
    pub close_answer: Duration,
    pub close_promise: Duration,
    pub channel_min: Usdc,
    pub unsafe_max: Usdc,
    pub without_gas_max: Usdc,
}

#[derive(Debug, Clone)]
pub struct LimitsConfig {
    pub upstream_connect: Duration,
    pub upstream_first_byte: Duration,
    pub upstream_idle: Duration,
    pub upstream_total: Duration,
    pub response_bytes_max: usize,
    pub bodies_bytes_max: usize,
    pub calls_max: usize,
    pub calls_per_payer_max: usize,
    pub calls_per_service_max: usize,
    pub calls_waiting_max: usize,
}

/// What may lie in the channel with one owner unless more is deposited at once: a day of spending, as the other
/// defaults have it.
const AT_REST_PER_OWNER: Usdc = Usdc::from_micros(5_000_000);

/// A configuration and where each of its values came from.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    raw: Raw,
}

/// Reads, merges and validates every setting.
///
/// # Errors
/// [`ConfigError`] with every problem found, each naming its origin and what was expected.
pub fn load(sources: &Sources) -> Result<Loaded, ConfigError> {
    let raw = Raw::gather(sources)?;
    let config = raw.to_config()?;
    let problems = config.problems(&raw);
    if problems.is_empty() { Ok(Loaded { config, raw }) } else { Err(ConfigError(problems)) }
}

impl Loaded {
    /// What other parts find wrong with a setting, told with where it comes from.
    #[must_use]
    pub fn problem(&self, name: &str, what: &str) -> ConfigProblem {
        self.raw.problem_with(name, what)
    }
}

impl Raw {
    fn to_config(&self) -> Result<Config, ConfigError> {
        let preset: String = self.required("chain.preset")?;
        let allow_private = self.required("network.allow_private")?;
        let deposit_cap = if preset == "ethereum" { "20.00" } else { "1.00" };
        let deposit_max: Usdc = match self.optional("spending.deposit_max")? {
            Some(deposit_max) => deposit_max,
            None => self.parsed("spending.deposit_max", deposit_cap)?,
        };
        let at_rest_per_owner: Usdc = self
            .optional("spending.at_rest_per_owner")?
            .unwrap_or_else(|| deposit_max.saturating_mul(5).max(AT_REST_PER_OWNER));
        let at_rest_max =
            self.optional("spending.at_rest_max")?.unwrap_or_else(|| at_rest_per_owner.saturating_mul(4));
        Ok(Config {
            node: NodeConfig {
                data_dir: self.required("node.data_dir")?,
                backups_dir: self.optional("node.backups_dir")?,
                name: self.optional("node.name")?,
            },
            wallet: WalletConfig { passphrase: self.optional("wallet.passphrase")? },
            gateway: GatewayConfig {
                listen: self.required("gateway.listen")?,
                hosts: self.list("gateway.hosts")?,
                tls: self.tls_mode()?,
                trusted_proxies: self.list("gateway.trusted_proxies")?,
                connections_max: self.required("gateway.connections_max")?,
                connections_per_ip_max: self.required("gateway.connections_per_ip_max")?,
            },
            panel: PanelConfig {
                listen: self.required("panel.listen")?,
                hosts: self.list("panel.hosts")?,
                tls: self.required::<String>("panel.tls")? == "on",
                trusted_proxies: self.list("panel.trusted_proxies")?,
                password: self.optional("panel.password")?,
            },
            network: NetworkConfig {
                listen: self.list("network.listen")?,
                announce: self.list("network.announce")?,
                bootstrap: self.list("network.bootstrap")?,
                gossip: self.required("network.gossip")?,
                mdns: self.required("network.mdns")?,
                allow_private,
                name: self.optional("network.name")?,
                upnp: self.optional("network.upnp")?.unwrap_or(!allow_private),
                reach_first: self.milliseconds("network.reach_first_ms")?,
                reach_interval: self.seconds("network.reach_interval_secs")?,
                reach_peer_interval: self.seconds("network.reach_peer_interval_secs")?,
            },
            chain: ChainConfig {
                preset,
                rpc_urls: self.list("chain.rpc_urls")?,
                chain_id: self.optional("chain.chain_id")?,
                token: self.optional("chain.token")?,
                contract: self.optional("chain.contract")?,
                confirmations: self.optional("chain.confirmations")?,
                safe_tag: self.optional("chain.safe_tag")?,
                close_delay_secs: self.required("chain.close_delay_secs")?,
                poll_interval: self.optional("chain.poll_interval_ms")?.map(Duration::from_millis),
            },
            spending: SpendingConfig {
                enabled: self.required("spending.enabled")?,
                price_max: self.required("spending.price_max")?,
                per_day: self.required("spending.per_day")?,
                per_secret_day: self.required("spending.per_secret_day")?,
                deposit_prices: self.required("spending.deposit_prices")?,
                deposit_min: self.required("spending.deposit_min")?,
                deposit_max,
                topup_prices: self.required("spending.topup_prices")?,
                topup_percent: self.required("spending.topup_percent")?,
                close_delay_max_secs: self.required("spending.close_delay_max_secs")?,
                flagged: self.required("spending.flagged")?,
                flagged_trial: self.seconds("spending.flagged_trial_secs")?,
                at_rest_per_owner,
                at_rest_max,
            },
            settlement: SettlementConfig {
                interval: self.seconds("settlement.interval_secs")?,
                claim_min: self.required("settlement.claim_min")?,
                claim_gas_factor: self.required("settlement.claim_gas_factor")?,
                claim_age: self.seconds("settlement.claim_age_secs")?,
                claim_age_gas_factor: self.required("settlement.claim_age_gas_factor")?,
                claim_deposit_percent: self.required("settlement.claim_deposit_percent")?,
                gas_price_factor_max: self.required("settlement.gas_price_factor_max")?,
                idle_close: self.seconds("settlement.idle_close_secs")?,
                close_answer: self.seconds("settlement.close_answer_secs")?,
                close_promise: self.seconds("settlement.close_promise_secs")?,
                channel_min: self.required("settlement.channel_min")?,
                unsafe_max: self.required("settlement.unsafe_max")?,
                without_gas_max: self.required("settlement.without_gas_max")?,
            },
            limits: LimitsConfig {
                upstream_connect: self.milliseconds("limits.upstream_connect_ms")?,
                upstream_first_byte: self.milliseconds("limits.upstream_first_byte_ms")?,
                upstream_idle: self.milliseconds("limits.upstream_idle_ms")?,
                upstream_total: self.milliseconds("limits.upstream_total_ms")?,
                response_bytes_max: self.required("limits.response_bytes_max")?,
                bodies_bytes_max: self.required("limits.bodies_bytes_max")?,
                calls_max: self.required("limits.calls_max")?,
                calls_per_payer_max: self.required("limits.calls_per_payer_max")?,
                calls_per_service_max: self.required("limits.calls_per_service_max")?,
                calls_waiting_max: self.required("limits.calls_waiting_max")?,
            },
        })
    }

    fn tls_mode(&self) -> Result<TlsMode, ConfigError> {
        let switch: String = self.required("gateway.tls")?;
        let cert_file: Option<PathBuf> = self.optional("gateway.tls_cert_file")?;
        let key_file: Option<PathBuf> = self.optional("gateway.tls_key_file")?;
        match (switch.as_str(), cert_file, key_file) {
            ("off", None, None) => Ok(TlsMode::Off),
            ("off", ..) => {
                Err(self.wrong("gateway.tls", "is off, yet a certificate is named; remove one of them"))
            }
            (_, None, None) => Ok(TlsMode::OwnAuthority),
            (_, Some(cert_file), Some(key_file)) => Ok(TlsMode::Files { cert_file, key_file }),
            (_, Some(_), None) => Err(self.wrong("gateway.tls_cert_file", "needs tls_key_file beside it")),
            (_, None, Some(_)) => Err(self.wrong("gateway.tls_key_file", "needs tls_cert_file beside it")),
        }
    }

    fn required<T: std::str::FromStr>(&self, name: &str) -> Result<T, ConfigError> {
        self.optional(name)?.ok_or_else(|| self.wrong(name, "has no value"))
    }

    fn optional<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, ConfigError> {
        let value = self.settings.get(name).and_then(|setting| setting.values.first());
        value.map(|value| self.parsed(name, value)).transpose()
    }

    fn list<T: std::str::FromStr>(&self, name: &str) -> Result<Vec<T>, ConfigError> {
        let values = self.settings.get(name).map_or(&[][..], |setting| &setting.values);
        values.iter().map(|value| self.parsed(name, value)).collect()
    }

    fn seconds(&self, name: &str) -> Result<Duration, ConfigError> {
        self.required(name).map(Duration::from_secs)
    }

    fn milliseconds(&self, name: &str) -> Result<Duration, ConfigError> {
        self.required(name).map(Duration::from_millis)
    }

    fn parsed<T: std::str::FromStr>(&self, name: &str, value: &str) -> Result<T, ConfigError> {
        value.parse().map_err(|_| self.wrong(name, "has an unexpected form"))
    }

    fn wrong(&self, name: &str, what: &str) -> ConfigError {
        ConfigError(vec![self.problem_with(name, what)])
    }

    fn problem_with(&self, name: &str, what: &str) -> ConfigProblem {
        let origin = self.settings.get(name).map_or(Origin::Default, |setting| setting.origin.clone());
        ConfigProblem { origin, name: name.into(), what: what.into() }
    }
}

impl Config {
    /// The further names of both ports; one certificate serves them.
    #[must_use]
    pub fn hosts(&self) -> Vec<String> {
        [&self.gateway.hosts[..], &self.panel.hosts].concat()
    }

    /// The rules between settings.
    fn problems(&self, raw: &Raw) -> Vec<ConfigProblem> {
        let mut problems = Vec::new();
        let mut rule = |holds: bool, name: &str, what: &str| {
            if !holds {
                problems.push(raw.problem_with(name, what));
            }
        };
        let Self { node, gateway, panel, network, chain, spending, .. } = self;
        rule(
            node.name
                .as_ref()
                .is_none_or(|name| name.chars().count() <= 40 && !name.contains(char::is_control)),
            "node.name",
            "must be one line of at most 40 characters",
        );
        rule(
            gateway.tls != TlsMode::Off
                || gateway.listen.ip().is_loopback()
                || !gateway.trusted_proxies.is_empty(),
            "gateway.tls",
            "is off on an address others can reach: name the proxy in trusted_proxies, or listen on 127.0.0.1",
        );
        rule(
            panel.tls || panel.listen.ip().is_loopback() || !panel.trusted_proxies.is_empty(),
            "panel.tls",
            "is off on an address others can reach: name the proxy in trusted_proxies, or listen on 127.0.0.1",
        );
        rule(
            panel
                .password
                .as_ref()
                .is_none_or(|password| password.expose().chars().count() >= PASSWORD_CHARS_MIN),
            "panel.password",
            "must have at least 10 characters",
        );
        rule(
            network
                .name
                .as_deref()
                .is_none_or(|name| NetworkName::on_chain(Some(name), chain.chain_id.unwrap_or(0)).is_ok()),
            "network.name",
            "must be 1-32 lower-case letters, digits or dashes",
        );
        rule(!network.listen.is_empty(), "network.listen", "must name at least one address");
        if chain.preset == "custom" {
            rule(!chain.rpc_urls.is_empty(), "chain.rpc_urls", "must be set for a custom chain");
            rule(chain.chain_id.is_some(), "chain.chain_id", "must be set for a custom chain");
        }
        rule(
            chain.token.is_some() || !matches!(chain.preset.as_str(), "local" | "custom"),
            "chain.token",
            "must be set for a local or custom chain: the address of its USDC contract",
        );
        rule(
            chain.preset != "local" || !chain.rpc_urls.is_empty(),
            "chain.rpc_urls",
            "must be set for a local chain, for instance http://127.0.0.1:8545",
        );
        rule(
            spending.deposit_min <= spending.deposit_max,
            "spending.deposit_min",
            "must not exceed deposit_max",
        );
        rule(
            spending.deposit_max <= spending.at_rest_per_owner,
            "spending.at_rest_per_owner",
            "must be at least deposit_max",
        );
        rule(
            spending.at_rest_per_owner <= spending.at_rest_max,
            "spending.at_rest_max",
            "must be at least at_rest_per_owner",
        );
        problems
    }
}

#[cfg(test)]
mod tests;
