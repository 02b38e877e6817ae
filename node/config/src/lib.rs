//! Configuration: raw text (defaults ← file ← console ← environment ← flags) → [`Config`], validated once.
//!
//! [`load`] gathers every setting with its origin, checks forms against the table in [`keys`], then the rules
//! between settings. After that nothing in the node reads the environment or asks whether a value is sane.

mod chain;
mod example;
mod gather;
pub mod keys;
mod raw;
mod reload;
mod settings;
mod surroundings;
mod user_settings;

use std::{net::SocketAddr, path::PathBuf};

pub use farthing_control::types::FlagRule;
use farthing_control::types::{PASSWORD_CHARS_MIN, SettingOrigin};
use farthing_os::file_names;
use farthing_values::wire::NetworkName;

use self::raw::Raw;
pub use self::{
    chain::public_chain_id,
    example::{EffectiveSetting, ShownValue, example},
    gather::{NodeFolder, Sources},
    raw::{ConfigError, ConfigProblem},
    reload::ChangedSettings,
    settings::{
        CatalogConfig, ChainConfig, Config, GatewayConfig, LOG_FILTER, LimitsConfig, LogConfig,
        NetworkConfig, NodeConfig, PanelConfig, SettlementConfig, SpendingConfig, WalletConfig, X402Config,
    },
    surroundings::Surroundings,
    user_settings::UserSettings,
};

/// The protection of the gateway's connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsMode {
    /// By a certificate of the node's own authority.
    OwnAuthority,
    /// By a certificate from elsewhere: PEM files of the chain and its key.
    Files { cert_file: PathBuf, key_file: PathBuf },
    /// By a trusted proxy in front, or by never leaving the machine.
    Off,
}

/// The place where nodes that know nobody find each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rendezvous {
    /// The public IPFS DHT, or one that is entered in its place.
    Ipfs,
    Off,
}

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
    let config = Config::read(&raw)?;
    let problems = config.problems(&raw);
    if problems.is_empty() { Ok(Loaded { config, raw }) } else { Err(ConfigError(problems)) }
}

/// Finds the data folder alone, for commands that ask a running node: a mistake in a settings file stops none of them.
///
/// # Errors
/// [`ConfigError`] with every mistake in flags, or without a folder.
pub fn node_folder(sources: &Sources) -> Result<NodeFolder, ConfigError> {
    Raw::folder(sources)
}

impl Loaded {
    /// Makes a problem of what other parts find wrong with a setting, told with where it comes from.
    pub fn problem(&self, name: &str, what: &str) -> ConfigProblem {
        self.raw.problem_with(name, what)
    }

    /// Returns whether somebody chose the value of this setting: it may be that of the default.
    pub fn is_chosen(&self, name: &str) -> bool {
        self.raw.settings.get(name).is_some_and(|setting| setting.origin != SettingOrigin::Default)
    }

    /// Returns whether the files in the data folder say this value of the setting: a start that is told nothing has it, too.
    pub fn is_stored(&self, name: &str) -> bool {
        let said = self.raw.overruled.get(name).or_else(|| self.raw.settings.get(name));
        said.is_some_and(|said| {
            matches!(said.origin, SettingOrigin::File(_)) && said.values == self.raw.values(name)
        })
    }

    /// Returns where the value of this setting comes from.
    pub fn origin(&self, name: &str) -> SettingOrigin {
        self.raw.settings.get(name).map_or(SettingOrigin::Unset, |setting| setting.origin.clone())
    }

    /// The settings that `init` writes: those of `--set`, and the chain as [`Self::named_chain`] has it.
    pub fn of_init(&self) -> UserSettings {
        self.chosen(|name, origin| {
            matches!(origin, SettingOrigin::Flag(_)) || self.is_named_chain(name, origin)
        })
    }

    /// The chain by its name, where a flag or the environment names a public one. Any other chain is more than its name,
    /// and part of one would make another of what is said later.
    pub fn named_chain(&self) -> UserSettings {
        self.chosen(|name, origin| self.is_named_chain(name, origin))
    }

    fn is_named_chain(&self, name: &str, origin: &SettingOrigin) -> bool {
        name == "chain.preset"
            && origin.is_above_console()
            && public_chain_id(&self.config.chain.preset).is_some()
    }

    /// The settings that are meant, by name and origin, as a file holds them.
    fn chosen(&self, is_meant: impl Fn(&str, &SettingOrigin) -> bool) -> UserSettings {
        let mut chosen = UserSettings::default();
        // The data folder is named by whoever looks for the file.
        for key in settings::KEYS.iter().filter(|key| key.name != "node.data_dir") {
            if let Some(setting) = self.raw.settings.get(key.name)
                && is_meant(key.name, &setting.origin)
            {
                chosen.set(key, Some(&setting.values[..]));
            }
        }
        chosen
    }

    /// Finds a setting of `--set` that does not hold without it, and its value.
    pub fn only_by_flag(&self, without: &Self) -> Option<(&'static str, String)> {
        let names = settings::KEYS.iter().map(|key| key.name).filter(|name| *name != "node.data_dir");
        let mut flagged = names.filter(|name| matches!(self.origin(name), SettingOrigin::Flag(_)));
        let name = flagged
            .find(|name| !without.is_chosen(name) || without.raw.values(name) != self.raw.values(name))?;
        Some((name, self.raw.values(name).join(", ")))
    }
}

/// Builds the address at which the gateway can be called from this machine.
pub fn gateway_url(listen: SocketAddr, tls: bool) -> String {
    let scheme = if tls { "https" } else { "http" };
    let host = if listen.ip().is_unspecified() || listen.ip().is_loopback() {
        "localhost".to_owned()
    } else {
        listen.ip().to_string()
    };
    format!("{scheme}://{host}:{}", listen.port())
}

impl GatewayConfig {
    pub fn tls_mode(&self) -> TlsMode {
        match (self.tls, &self.tls_cert_file, &self.tls_key_file) {
            (false, ..) => TlsMode::Off,
            (true, Some(cert_file), Some(key_file)) => {
                TlsMode::Files { cert_file: cert_file.clone(), key_file: key_file.clone() }
            }
            (true, ..) => TlsMode::OwnAuthority,
        }
    }
}

impl Config {
    /// The further names of both ports; one certificate serves them.
    pub fn hosts(&self) -> Vec<String> {
        [&self.gateway.hosts[..], &self.panel.hosts].concat()
    }

    /// The rules between settings.
    fn problems(&self, raw: &Raw) -> Vec<ConfigProblem> {
        let of_chain = chain::problems(&self.chain).into_iter();
        let mut problems: Vec<_> = of_chain.map(|(name, what)| raw.problem_with(name, &what)).collect();
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
        let (certificate, key) = (&gateway.tls_cert_file, &gateway.tls_key_file);
        rule(
            gateway.tls || certificate.is_none() && key.is_none(),
            "gateway.tls",
            "is off but a certificate is set; remove one of them",
        );
        rule(certificate.is_none() || key.is_some(), "gateway.tls_cert_file", "needs tls_key_file too");
        rule(key.is_none() || certificate.is_some(), "gateway.tls_key_file", "needs tls_cert_file too");
        rule(
            gateway.tls || gateway.listen.ip().is_loopback() || !gateway.trusted_proxies.is_empty(),
            "gateway.tls",
            "is off on an address that others can reach: set the proxy in trusted_proxies, or listen on 127.0.0.1",
        );
        rule(
            gateway.plain.is_none_or(|address| address.ip().is_loopback()),
            "gateway.plain",
            "is an address that others can reach, and traffic to it is not encrypted: use 127.0.0.1",
        );
        rule(
            gateway.socket != Some(node.data_dir.join(file_names::CONTROL_SOCKET)),
            "gateway.socket",
            "is the node's own control socket: choose another name, such as `call.sock` in the same folder",
        );
        rule(
            panel.tls || panel.listen.ip().is_loopback() || !panel.trusted_proxies.is_empty(),
            "panel.tls",
            "is off on an address that others can reach: set the proxy in trusted_proxies, or listen on 127.0.0.1",
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
        rule(
            network.rendezvous == Rendezvous::Off || !network.rendezvous_entrance.is_empty(),
            "network.rendezvous_entrance",
            "must have at least one address, or set network.rendezvous to \"off\"",
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
