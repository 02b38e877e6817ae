//! Forms that the values of settings have, and checks of a text against them.

use std::net::{IpAddr, SocketAddr};

use farthing_values::{Address, Usdc};
use tracing_subscriber::EnvFilter;

/// Names of `chain.preset`.
pub const CHAIN_PRESETS: &[&str] = &[
    "base",
    "base-sepolia",
    "arbitrum",
    "arbitrum-sepolia",
    "optimism",
    "ethereum",
    "sepolia",
    "local",
    "custom",
];

/// The value that holds when nothing else is said.
#[derive(Debug, Clone, Copy)]
pub enum Fallback {
    Value(&'static str),
    Values(&'static [&'static str]),
    /// Decided elsewhere, for instance by the chain's preset; `about` says how.
    Unset,
}

#[derive(Debug, Clone, Copy)]
pub enum Form {
    Text,
    Path,
    /// Given directly, or as the path of a file under the same name with `_file` behind it; never shown.
    Secret,
    Switch,
    Integer {
        min: u64,
        max: u64,
    },
    /// USDC as decimal text.
    Amount,
    Choice(&'static [&'static str]),
    /// Address and port to listen on.
    Socket,
    Wallet,
    Url,
    /// Targets of the log with their lowest levels.
    LogFilter,
    /// A list of the form inside.
    List(Item),
}

/// The form of what a list is made of.
#[derive(Debug, Clone, Copy)]
pub enum Item {
    Host,
    Ip,
    Multiaddr,
    Url,
}

impl Form {
    /// Checks that one value has this form; the error says what was expected.
    ///
    /// # Errors
    /// The expectation in words.
    pub fn check(&self, text: &str) -> Result<(), String> {
        let right = match self {
            Self::Text | Self::Path | Self::Secret => !text.is_empty(),
            Self::Switch => matches!(text, "true" | "false"),
            Self::Integer { min, max } => text.parse::<u64>().is_ok_and(|n| (*min..=*max).contains(&n)),
            Self::Amount => return text.parse::<Usdc>().map(drop).map_err(|error| error.to_string()),
            Self::Choice(choices) => choices.contains(&text),
            Self::Socket => text.parse::<SocketAddr>().is_ok(),
            Self::Wallet => return text.parse::<Address>().map(drop).map_err(|error| error.to_string()),
            Self::Url => Item::Url.fits(text),
            Self::LogFilter => !text.is_empty() && EnvFilter::try_new(text).is_ok(),
            Self::List(item) => item.fits(text),
        };
        if right { Ok(()) } else { Err(format!("expected {}", self.expectation())) }
    }

    /// The form in words.
    pub(crate) fn expectation(&self) -> String {
        match self {
            Self::Text | Self::Secret => "a text that is not empty".into(),
            Self::Path => "a path".into(),
            Self::Switch => "true or false".into(),
            Self::Integer { min, max: u64::MAX } => format!("a whole number from {min}"),
            Self::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Self::Amount => "an amount of USDC such as \"0.002\"".into(),
            Self::Choice(choices) => format!("one of {}", choices.join(", ")),
            Self::Socket => "an address with a port such as 0.0.0.0:3000".into(),
            Self::Wallet => "an address such as 0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913".into(),
            Self::Url => "an address such as https://chain.example".into(),
            Self::LogFilter => "targets with levels such as error,farthing=info".into(),
            Self::List(Item::Host) => "host names such as node.example, without port".into(),
            Self::List(Item::Ip) => "IP addresses such as 10.0.0.7".into(),
            Self::List(Item::Multiaddr) => "multiaddresses such as /ip4/0.0.0.0/tcp/3001".into(),
            Self::List(Item::Url) => "addresses such as https://chain.example".into(),
        }
    }
}

impl Item {
    fn fits(self, text: &str) -> bool {
        match self {
            Self::Host => {
                let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':' | '_');
                !text.is_empty()
                    && text.len() <= 253
                    && text.chars().all(name)
                    && (!text.contains(':') || text.parse::<IpAddr>().is_ok())
            }
            Self::Ip => text.parse::<IpAddr>().is_ok(),
            Self::Multiaddr => text.starts_with('/') && !text.contains(char::is_whitespace),
            Self::Url => url::Url::parse(text)
                .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_filter_is_one_that_the_log_can_read() {
        for (text, right) in [
            (crate::LOG_FILTER, true),
            ("debug", true),
            ("access=info", true),
            ("", false),
            ("farthing=loud", false),
            ("farthing=info=debug", false),
        ] {
            assert_eq!(Form::LogFilter.check(text).is_ok(), right, "{text}");
        }
    }

    #[test]
    fn numbers_are_held_to_their_bounds() {
        let form = Form::Integer { min: 3, max: 5 };
        for (text, right) in
            [("2", false), ("3", true), ("5", true), ("6", false), ("", false), ("4.0", false)]
        {
            assert_eq!(form.check(text).is_ok(), right, "{text}");
        }
    }
}
