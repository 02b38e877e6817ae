//! Rules of the user, changeable while the node runs: the switch that stops all spending, and the limits.
//!
//! Limits start as the section `[spending]` has them. One that is set here replaces the configured one, lower or
//! higher, over restarts, until it is reset. `spending.enabled = false` belongs to the configuration alone: nothing
//! here lifts it. A stop holds from the moment it is asked for, even when it cannot be stored; everything that allows
//! more is stored first.

use std::sync::Arc;

use farthing_control::types::Text;
use farthing_ledger::{Ledger, LedgerError, Namespace};
use farthing_os::clock;
use farthing_protocol::Usdc;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};

use super::spending::SpendingCaps;

const STORED_KEY: &[u8] = b"spending";

/// The one who stopped spending: the configuration or the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpendingStop {
    /// `spending.enabled` is `false`.
    ByConfiguration,
    /// The user, at a time in seconds since the Unix epoch.
    Since(u64),
}

impl SpendingStop {
    /// Returns the step that lets the node buy again.
    #[must_use]
    pub const fn next_step(self) -> &'static str {
        match self {
            Self::ByConfiguration => "Set `spending.enabled = true` and restart the node.",
            Self::Since(_) => {
                "Allow it again with `farthing spending resume` or on the console's Finance page."
            }
        }
    }
}

/// Limits that were set here; `None` where the configuration's holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserLimits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_max: Option<Text<Usdc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_day: Option<Text<Usdc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_secret_day: Option<Text<Usdc>>,
}

impl UserLimits {
    /// These limits, and `earlier` where none is named.
    #[must_use]
    pub fn or(self, earlier: Self) -> Self {
        Self {
            price_max: self.price_max.or(earlier.price_max),
            per_day: self.per_day.or(earlier.per_day),
            per_secret_day: self.per_secret_day.or(earlier.per_secret_day),
        }
    }

    fn over(self, configured: SpendingCaps) -> SpendingCaps {
        let choose = |chosen: Option<Text<Usdc>>, configured| chosen.map_or(configured, |Text(usdc)| usdc);
        SpendingCaps {
            price_max: choose(self.price_max, configured.price_max),
            per_day: choose(self.per_day, configured.per_day),
            per_secret_day: choose(self.per_secret_day, configured.per_secret_day),
        }
    }
}

/// As it is kept in the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct StoredRules {
    stopped_secs: Option<u64>,
    #[serde(default)]
    limits: UserLimits,
}

/// Stops spending in the ledger of a node that does not run; limits that were set stay.
pub async fn stop_in(ledger: &Ledger) -> Result<(), LedgerError> {
    let stored = ledger.get(Namespace::Settings, STORED_KEY)?;
    let mut stored: StoredRules =
        stored.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    stored.stopped_secs.get_or_insert_with(clock::now_secs);
    let bytes = serde_json::to_vec(&stored).expect("text and numbers are always JSON");
    ledger.put(Namespace::Settings, STORED_KEY, bytes).await
}

/// The reason that a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    #[error("spending is stopped, but this could not be stored, so it lasts only until the next restart")]
    StopNotStored(#[source] LedgerError),
    #[error("the change could not be stored, so nothing was changed")]
    NotStored(#[source] LedgerError),
    #[error("`spending.enabled` is false in the configuration")]
    OffByConfiguration,
}

impl RulesError {
    /// Returns the step to take next.
    pub const fn next_step(&self) -> &'static str {
        match self {
            Self::StopNotStored(error) | Self::NotStored(error) => error.next_step(),
            Self::OffByConfiguration => SpendingStop::ByConfiguration.next_step(),
        }
    }
}

/// The rules of the configuration.
#[derive(Clone, Copy, Debug)]
struct ConfiguredRules {
    limits: SpendingCaps,
    enabled: bool,
}

/// The switch and the limits. A cheap handle.
#[derive(Clone, Debug)]
pub struct Rules(Arc<RulesInner>);

#[derive(Debug)]
struct RulesInner {
    ledger: Ledger,
    configured: RwLock<ConfiguredRules>,
    current: RwLock<StoredRules>,
    /// Changes are made one after the other, so that what is stored is what is in force.
    changing: tokio::sync::Mutex<()>,
}

impl Rules {
    /// Continues with what was set before the last stop. What cannot be read stops all spending.
    pub fn restore(ledger: Ledger, configured: SpendingCaps, enabled: bool) -> Result<Self, LedgerError> {
        let stored = ledger.get(Namespace::Settings, STORED_KEY)?;
        let current = match stored.as_deref().map(serde_json::from_slice) {
            None => StoredRules::default(),
            Some(Ok(stored)) => stored,
            Some(Err(error)) => {
                tracing::error!(%error, "the stored spending rules cannot be read, so spending is stopped");
                StoredRules { stopped_secs: Some(clock::now_secs()), limits: UserLimits::default() }
            }
        };
        let changing = tokio::sync::Mutex::new(());
        Ok(Self(Arc::new(RulesInner {
            ledger,
            configured: RwLock::new(ConfiguredRules { limits: configured, enabled }),
            current: RwLock::new(current),
            changing,
        })))
    }

    /// The limits in force.
    pub fn limits(&self) -> SpendingCaps {
        self.current().limits.over(self.configured())
    }

    /// The limits of the configuration.
    pub fn configured(&self) -> SpendingCaps {
        self.0.configured.read().limits
    }

    /// Takes what the configuration says from now on. What was set here goes on to replace it.
    pub fn configure(&self, limits: SpendingCaps, enabled: bool) {
        *self.0.configured.write() = ConfiguredRules { limits, enabled };
    }

    fn is_enabled(&self) -> bool {
        self.0.configured.read().enabled
    }

    /// The limits that were set here.
    pub fn chosen(&self) -> UserLimits {
        self.current().limits
    }

    /// Returns who stopped spending, when it is.
    pub fn stopped(&self) -> Option<SpendingStop> {
        if !self.is_enabled() {
            return Some(SpendingStop::ByConfiguration);
        }
        self.current().stopped_secs.map(SpendingStop::Since)
    }

    /// Stops all spending, at once and over restarts.
    ///
    /// # Errors
    /// [`RulesError::StopNotStored`]; it is stopped all the same.
    pub async fn stop(&self) -> Result<(), RulesError> {
        let _alone = self.0.changing.lock().await;
        let stopped = {
            let mut current = self.0.current.write();
            current.stopped_secs.get_or_insert_with(clock::now_secs);
            *current
        };
        tracing::warn!("all spending is stopped");
        self.store(&stopped).await.map_err(RulesError::StopNotStored)
    }

    /// Ends a stop.
    ///
    /// # Errors
    /// [`RulesError`]; it is still stopped then.
    pub async fn resume(&self) -> Result<(), RulesError> {
        if !self.is_enabled() {
            return Err(RulesError::OffByConfiguration);
        }
        self.change(|stored| stored.stopped_secs = None).await?;
        tracing::info!("spending is allowed again");
        Ok(())
    }

    /// Sets the limits that were chosen; the configuration's hold where none was.
    ///
    /// # Errors
    /// [`RulesError::NotStored`]; the limits are then as before.
    pub async fn set_limits(&self, edit: impl FnOnce(UserLimits) -> UserLimits) -> Result<(), RulesError> {
        self.change(|stored| stored.limits = edit(stored.limits)).await
    }

    async fn change(&self, edit: impl FnOnce(&mut StoredRules)) -> Result<(), RulesError> {
        let _alone = self.0.changing.lock().await;
        let mut changed = self.current();
        edit(&mut changed);
        self.store(&changed).await.map_err(RulesError::NotStored)?;
        *self.0.current.write() = changed;
        Ok(())
    }

    async fn store(&self, stored: &StoredRules) -> Result<(), LedgerError> {
        let bytes = serde_json::to_vec(stored).expect("text and numbers are always JSON");
        self.0.ledger.put(Namespace::Settings, STORED_KEY, bytes).await
    }

    fn current(&self) -> StoredRules {
        *self.0.current.read()
    }
}

#[cfg(test)]
mod tests {
    use farthing_ledger::OpenMode;

    use super::*;
    use crate::consumer::channels::tests::usdc;

    const CONFIGURED: SpendingCaps =
        SpendingCaps { price_max: usdc(10), per_day: usdc(30), per_secret_day: usdc(20) };

    #[tokio::test]
    async fn a_stop_and_the_limits_are_kept_over_restarts_until_they_are_lifted() {
        let folder = tempfile::tempdir().unwrap();
        let open = |mode| Ledger::open(&folder.path().join("ledger.redb"), mode).unwrap();
        let rules = Rules::restore(open(OpenMode::Create), CONFIGURED, true).unwrap();
        assert_eq!((rules.limits(), rules.stopped()), (CONFIGURED, None));
        let set = UserLimits {
            price_max: Some(Text(usdc(50))),
            per_day: Some(Text(usdc(5))),
            ..UserLimits::default()
        };
        rules.set_limits(|chosen| set.or(chosen)).await.unwrap();
        rules.stop().await.unwrap();
        drop(rules);

        let rules = Rules::restore(open(OpenMode::Existing), CONFIGURED, true).unwrap();
        assert!(matches!(rules.stopped(), Some(SpendingStop::Since(_))));
        let limits = SpendingCaps { price_max: usdc(50), per_day: usdc(5), per_secret_day: usdc(20) };
        assert_eq!(rules.limits(), limits, "higher or lower than configured");
        rules.resume().await.unwrap();
        let more = UserLimits { per_secret_day: Some(Text(usdc(1))), ..UserLimits::default() };
        rules.set_limits(|chosen| more.or(chosen)).await.unwrap();
        assert_eq!(rules.limits(), SpendingCaps { per_secret_day: usdc(1), ..limits });
        rules.set_limits(|_| UserLimits::default()).await.unwrap();
        assert_eq!((rules.limits(), rules.stopped()), (CONFIGURED, None));
    }

    #[tokio::test]
    async fn the_configurations_stop_is_lifted_by_the_configuration_alone() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(&folder.path().join("ledger.redb"), OpenMode::Create).unwrap();
        let rules = Rules::restore(ledger, CONFIGURED, false).unwrap();
        assert_eq!(rules.stopped(), Some(SpendingStop::ByConfiguration));
        assert!(matches!(rules.resume().await, Err(RulesError::OffByConfiguration)));
        assert_eq!(rules.stopped(), Some(SpendingStop::ByConfiguration));
        let less = SpendingCaps { per_day: usdc(3), ..CONFIGURED };
        rules.configure(less, true);
        assert_eq!((rules.limits(), rules.stopped()), (less, None));
    }

    #[tokio::test]
    async fn what_cannot_be_read_stops_spending_and_can_be_lifted() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(&folder.path().join("ledger.redb"), OpenMode::Create).unwrap();
        ledger.put(Namespace::Settings, STORED_KEY, &b"{"[..]).await.unwrap();
        let rules = Rules::restore(ledger, CONFIGURED, true).unwrap();
        assert!(rules.stopped().is_some());
        rules.resume().await.unwrap();
        assert_eq!(rules.stopped(), None);
    }
}
