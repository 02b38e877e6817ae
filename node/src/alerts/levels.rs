//! From when on somebody is told, and where: set by the user, kept in the ledger.

use farthing_control::types::{Eth, Text};
use farthing_ledger::{Ledger, LedgerError, Namespace};
use farthing_owner::upstream::{AddressClass, UpstreamOptions};
use farthing_protocol::Usdc;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};

use super::{
    signature::WebhookSecret,
    webhook::{WebhookAddress, WebhookError},
};

const STORED_KEY: &[u8] = b"alerts";

/// Levels below which an alert is raised; zero raises none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    /// In the wallet of a node that buys.
    pub usdc_below: Usdc,
    /// For gas, in the wallet of a node that buys or has something to claim.
    pub eth_below: Eth,
    /// On a channel on which the node pays.
    pub channel_below: Usdc,
    /// Told when alerts come and go.
    pub webhook: Option<WebhookAddress>,
    /// Signs what it is told.
    pub secret: Option<WebhookSecret>,
}

impl Default for Levels {
    /// Some fifty calls at a usual price, and gas for about eighty deposits on an L2.
    fn default() -> Self {
        Self {
            usdc_below: Usdc::from_micros(100_000),
            eth_below: Eth { wei: 50_000_000_000_000 },
            channel_below: Usdc::ZERO,
            webhook: None,
            secret: None,
        }
    }
}

/// An error that keeps levels from being set.
#[derive(Debug, thiserror::Error)]
pub enum LevelsError {
    #[error(transparent)]
    Webhook(#[from] WebhookError),
    #[error("the alert levels could not be stored, so nothing was changed")]
    NotStored(#[source] LedgerError),
    #[error("the system gave no random numbers for a secret, so nothing was changed")]
    NoRandomness(#[source] std::io::Error),
}

impl LevelsError {
    pub const fn next_step(&self) -> &'static str {
        match self {
            Self::Webhook(error) => error.next_step(),
            Self::NotStored(error) => error.next_step(),
            Self::NoRandomness(_) => "Try again in a moment.",
        }
    }
}

#[derive(Serialize, Deserialize)]
struct StoredLevels {
    usdc_below: Text<Usdc>,
    eth_below: Text<Eth>,
    channel_below: Text<Usdc>,
    webhook: Option<String>,
    /// The class of its address when it was set: how far away it was.
    webhook_class: Option<AddressClass>,
    /// Not there before messages were signed.
    webhook_secret: Option<String>,
}

/// The levels, in memory and in the ledger.
#[derive(Debug)]
pub(super) struct LevelsStore {
    ledger: Ledger,
    current: RwLock<Levels>,
    /// Changes are made one after the other, so that what is stored is what is in force.
    changing: tokio::sync::Mutex<()>,
}

impl LevelsStore {
    pub(super) fn restore(ledger: Ledger) -> Result<Self, LedgerError> {
        let stored = ledger.get(Namespace::Settings, STORED_KEY)?;
        let current = match stored.as_deref().map(serde_json::from_slice::<StoredLevels>) {
            None => Levels::default(),
            Some(Ok(stored)) => Levels {
                usdc_below: stored.usdc_below.0,
                eth_below: stored.eth_below.0,
                channel_below: stored.channel_below.0,
                webhook: stored.webhook.map(|text| WebhookAddress::stored(text, stored.webhook_class)),
                secret: stored.webhook_secret.map(WebhookSecret::stored),
            },
            Some(Err(_)) => {
                tracing::error!(
                    "the alert levels cannot be read; the defaults apply until you set them again"
                );
                Levels::default()
            }
        };
        Ok(Self { ledger, current: RwLock::new(current), changing: tokio::sync::Mutex::new(()) })
    }

    pub(super) fn get(&self) -> Levels {
        self.current.read().clone()
    }

    pub(super) async fn set(
        &self,
        upstream: &UpstreamOptions,
        edit: impl FnOnce(&mut Levels),
    ) -> Result<(), LevelsError> {
        let _alone = self.changing.lock().await;
        let mut changed = self.get();
        edit(&mut changed);
        if let Some(webhook) = &changed.webhook {
            webhook.fix(upstream).await?;
        }
        let stored = StoredLevels {
            usdc_below: changed.usdc_below.into(),
            eth_below: changed.eth_below.into(),
            channel_below: changed.channel_below.into(),
            webhook: changed.webhook.as_ref().map(|webhook| webhook.expose().to_owned()),
            webhook_class: changed.webhook.as_ref().and_then(WebhookAddress::class),
            webhook_secret: changed.secret.as_ref().map(|secret| secret.expose().to_owned()),
        };
        let bytes = serde_json::to_vec(&stored).expect("texts are always JSON");
        let stored = self.ledger.put(Namespace::Settings, STORED_KEY, bytes).await;
        stored.map_err(LevelsError::NotStored)?;
        *self.current.write() = changed;
        Ok(())
    }
}
