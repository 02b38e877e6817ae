//! Telling a server of the user's own, under the same rules as asking an upstream.
//!
//! Its address often is a secret in itself, so it is never shown whole: not in errors, logs or answers. Whether its name
//! leads to this machine, the LAN or beyond is decided when it is set, and it leads nowhere else later.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use farthing_os::{clock, secret::SecretText};
use farthing_owner::upstream::{self, AddressClass, ForbiddenAddress, ResolverError, UpstreamOptions};
use url::Url;

use super::signature::{self, WebhookSecret};

const ADDRESS_CHARS_MAX: usize = 2_048;
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The address that alerts are posted to.
#[derive(Clone)]
pub struct WebhookAddress {
    text: SecretText,
    /// The class of the address: how far away it may be.
    class: Arc<OnceLock<AddressClass>>,
}

/// The reason that an address is none for a webhook, or that it was not told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    #[error("`webhook` must be an address such as https://example.org/hook, without user name and password")]
    Malformed,
    #[error("`webhook` must not lead to {0}")]
    Forbidden(String),
    #[error("{0} did not answer in {secs} s", secs = ANSWER_WITHIN.as_secs())]
    TimedOut(String),
    #[error("{0} was not reached")]
    Unreachable(String),
    #[error("{0} leads to another address than when the webhook was set; if that is right, set it again")]
    Moved(String),
    #[error("{host} answered with status {status}")]
    Declined { host: String, status: u16 },
}

impl WebhookError {
    pub const fn next_step(&self) -> &'static str {
        "Check the address with the operator of that server."
    }
}

/// The outcome of the last deliveries to a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Seconds since the Unix epoch, of the last time it was told.
    pub told_secs: Option<u64>,
    /// The reason that the last attempt failed; `None` when it did not.
    pub problem: Option<String>,
}

impl PartialEq for WebhookAddress {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for WebhookAddress {}

impl fmt::Debug for WebhookAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookAddress({}…)", self.host())
    }
}

impl WebhookAddress {
    /// As the user wrote it; it is looked at before it is kept.
    pub fn new(text: &str) -> Self {
        Self { text: SecretText::new(text.trim()), class: Arc::default() }
    }

    /// As it was kept; without a class by earlier versions, where the next post decides.
    pub(super) fn stored(text: String, class: Option<AddressClass>) -> Self {
        Self {
            text: SecretText::new(text),
            class: Arc::new(class.map_or_else(OnceLock::new, OnceLock::from)),
        }
    }

    pub(super) fn expose(&self) -> &str {
        self.text.expose()
    }

    pub(super) fn class(&self) -> Option<AddressClass> {
        self.class.get().copied()
    }

    /// Checks it, and decides how far away it may be, where that is open.
    pub(super) async fn fix(&self, options: &UpstreamOptions) -> Result<(), WebhookError> {
        let url = self.check(options)?;
        if let Some(class) = upstream::literal_class(&url) {
            self.class.get_or_init(|| class);
        }
        let fixed = upstream::fix_class(&url, &self.class, options).await;
        fixed.map_err(|_| WebhookError::Forbidden(self.host()))
    }

    /// `https://example.org`, which may be shown.
    pub fn host(&self) -> String {
        Url::parse(self.expose()).map_or_else(|_| String::new(), |url| url.origin().ascii_serialization())
    }

    pub(super) fn check(&self, options: &UpstreamOptions) -> Result<Url, WebhookError> {
        let url = Url::parse(self.expose()).map_err(|_| WebhookError::Malformed)?;
        let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        if !plain
            || !matches!(url.scheme(), "http" | "https")
            || !url.has_host()
            || self.expose().len() > ADDRESS_CHARS_MAX
        {
            return Err(WebhookError::Malformed);
        }
        let mut bare = url.clone();
        bare.set_path("");
        bare.set_query(None);
        upstream::check_base(bare.as_str(), options).map_err(|_| WebhookError::Forbidden(self.host()))?;
        Ok(url)
    }

    /// Posts a JSON document, once; signed, where there is a secret.
    ///
    /// # Errors
    /// [`WebhookError`], without the address.
    pub(super) async fn post(
        &self,
        options: &UpstreamOptions,
        document: &serde_json::Value,
        secret: Option<&WebhookSecret>,
    ) -> Result<(), WebhookError> {
        let url = self.check(options)?;
        let unreachable = || WebhookError::Unreachable(self.host());
        let client = upstream::client(&url, &self.class, options).ok_or_else(unreachable)?;
        let body = document.to_string();
        let signed = secret.map(|secret| (signature::HEADER, secret.sign(clock::now_secs(), &body)));
        let request = client
            .post(url)
            .header(http::header::CONTENT_TYPE, "application/json")
            .header(http::header::USER_AGENT, concat!("farthing/", env!("CARGO_PKG_VERSION")))
            .body(body);
        let request = signed.into_iter().fold(request, |request, (name, value)| request.header(name, value));
        let answer = tokio::time::timeout(ANSWER_WITHIN, request.send()).await;
        let answer = answer.map_err(|_| WebhookError::TimedOut(self.host()))?;
        let answer = answer.map_err(|error| match upstream::resolver_error(&error) {
            Some(ResolverError::Forbidden(ForbiddenAddress::Moved { .. })) => {
                WebhookError::Moved(self.host())
            }
            _ => unreachable(),
        })?;
        // A redirect is not followed: it would lead elsewhere.
        if answer.status().is_success() {
            return Ok(());
        }
        Err(WebhookError::Declined { host: self.host(), status: answer.status().as_u16() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_follows_the_rules_of_upstreams_and_is_never_shown_whole() {
        let options =
            UpstreamOptions { own_ports: upstream::OwnPorts::new([3000]), ..UpstreamOptions::default() };
        for good in [
            "https://hooks.example.org/T0/B0/token",
            "http://127.0.0.1:8080/a?key=token",
            "http://192.168.1.9/",
        ] {
            assert!(WebhookAddress::new(good).check(&options).is_ok(), "{good}");
        }
        for bad in [
            "",
            "example.org/token",
            "ftp://example.org/token",
            "https://user:token@example.org/",
            "https://example.org/#token",
            "http://169.254.169.254/token",
            "http://0.0.0.0/token",
            "http://[fe80::1]/token",
            "http://127.0.0.1:3000/token",
            &format!("https://example.org/{}", "token".repeat(500)),
        ] {
            let error = WebhookAddress::new(bad).check(&options).unwrap_err();
            assert!(!error.to_string().contains("token"), "{error}");
        }
        let secret = WebhookAddress::new("https://hooks.example.org/T0/token?x=token");
        assert_eq!(secret.host(), "https://hooks.example.org");
        assert!(!format!("{secret:?}").contains("token"));
    }
}
