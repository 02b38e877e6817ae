//! How services behave that this node pays: what their latest calls came to, which of them are flagged, and whether
//! that stops buying from them.
//!
//! In order: a flagged service that is stopped is refused before anything is promised, but for one trial at a time
//! ([`Conduct::admit`]); what a call came to is judged after its answer was handed on ([`observed`](super::observed)),
//! and counted ([`Conduct::note`]). Kept in the ledger for services with something to tell, so that a flag outlives
//! restarts and services that are well cost nothing.
//!
//! Invariant: nobody but the service's owner can flag it. What counts is signed by the owner, or came over a connection
//! that proved its wallet; what is lost on the way is nobody's word.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use farthing_ledger::{Document, Ledger, LedgerError, Namespace};
use farthing_protocol::ServiceId;

use crate::{clock, config::FlagRule};

pub mod window;

pub use window::Flag;
use window::{Came, Window};

/// Services that are remembered; each of them was paid.
const SERVICES_MAX: usize = 1_000;
/// While one trial is under way.
const SOON_SECS: u64 = 1;

/// The rule of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    pub rule: FlagRule,
    /// Since the last bad call, until a flagged service is tried.
    pub trial_after_secs: u64,
}

/// Why nothing is bought from a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub flag: Flag,
    /// Until the next trial.
    pub wait_secs: u64,
}

/// What is known of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub service: ServiceId,
    pub flag: Option<Flag>,
    /// What the user said of it.
    pub own_rule: Option<FlagRule>,
    /// In force.
    pub rule: FlagRule,
}

/// The right to try a stopped service; ends when dropped.
#[derive(Debug)]
pub struct Trial {
    conduct: Conduct,
    service: ServiceId,
}

impl Drop for Trial {
    fn drop(&mut self) {
        self.conduct.state().trying.remove(&self.service);
    }
}

/// The services that this node pays. A cheap handle.
#[derive(Clone, Debug)]
pub struct Conduct(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ledger: Ledger,
    settings: Settings,
    state: Mutex<State>,
    /// One after the other, so that what is stored is what was counted last.
    storing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    windows: HashMap<ServiceId, Window>,
    trying: BTreeSet<ServiceId>,
    /// What differs from the ledger.
    dirty: BTreeSet<ServiceId>,
}

impl Conduct {
    /// Continues with what was counted before the last stop.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn restore(ledger: Ledger, settings: Settings) -> Result<Self, LedgerError> {
        let (mut state, now_secs) = (State::default(), clock::now_secs());
        for (key, bytes) in ledger.list(Namespace::Conduct)? {
            let Ok(id) = <[u8; 16]>::try_from(&key[..]) else { continue };
            let service = ServiceId::from_bytes(id);
            match serde_json::from_slice::<Window>(&bytes) {
                Ok(window) if window.is_worth_keeping(now_secs) => {
                    state.windows.insert(service, window);
                }
                Ok(_) => drop(state.dirty.insert(service)),
                Err(error) => tracing::warn!(%service, %error, "how a service behaved cannot be read"),
            }
        }
        Ok(Self(Arc::new(Inner { ledger, settings, state: Mutex::new(state), storing: Default::default() })))
    }

    /// Whether a paid call of the service may be made now; the trial it is, if the service is flagged and stopped.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn admit(&self, service: ServiceId) -> Result<Option<Trial>, Refused> {
        let (mut state, now_secs) = (self.state(), clock::now_secs());
        let Some(window) = state.windows.get(&service) else { return Ok(None) };
        let rule = window.rule.unwrap_or(self.0.settings.rule);
        let Some(flag) = window.flag(now_secs).filter(|_| rule == FlagRule::Stop) else { return Ok(None) };
        let wait_secs = window.wait_secs(now_secs, self.0.settings.trial_after_secs);
        if wait_secs > 0 {
            return Err(Refused { flag, wait_secs });
        }
        if !state.trying.insert(service) {
            return Err(Refused { flag, wait_secs: SOON_SECS });
        }
        Ok(Some(Trial { conduct: self.clone(), service }))
    }

    /// Counts what a call came to; `why` says what was wrong with it.
    pub async fn note(&self, service: ServiceId, came: Came, why: &str, trial: Option<Trial>) {
        {
            let (mut state, now_secs) = (self.state(), clock::now_secs());
            let window = state.windows.entry(service).or_default();
            let (was_kept, was_flagged) =
                (window.is_worth_keeping(now_secs), window.flag(now_secs).is_some());
            window.note(came, why, trial.is_some(), now_secs);
            match (was_flagged, window.flag(now_secs)) {
                (false, Some(flag)) => tracing::warn!(%service, %flag, "a service is flagged"),
                (true, None) => tracing::info!(%service, "a service is no longer flagged"),
                _ => {}
            }
            if was_kept || window.is_worth_keeping(now_secs) {
                state.dirty.insert(service);
            }
            state.make_room();
        }
        drop(trial);
        if let Err(error) = self.store().await {
            tracing::warn!(%error, "how services behave was not stored; it is tried again with the next call");
        }
    }

    /// Says otherwise for one service than the setting does, durably; `None` ends that.
    ///
    /// # Errors
    /// When it cannot be stored; it is in force until the next restart then.
    pub async fn set_rule(&self, service: ServiceId, rule: Option<FlagRule>) -> Result<(), LedgerError> {
        {
            let mut state = self.state();
            state.windows.entry(service).or_default().rule = rule;
            state.dirty.insert(service);
            state.make_room();
        }
        self.store().await
    }

    /// The rule of the configuration.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.0.settings
    }

    /// What is known of a service.
    #[must_use]
    pub fn of(&self, service: ServiceId) -> Known {
        let state = self.state();
        self.known(service, state.windows.get(&service), clock::now_secs())
    }

    /// Every service that is flagged, or of which the user said something.
    #[must_use]
    pub fn all(&self) -> Vec<Known> {
        let (state, now_secs) = (self.state(), clock::now_secs());
        let known =
            state.windows.iter().map(|(service, window)| self.known(*service, Some(window), now_secs));
        let mut told: Vec<_> =
            known.filter(|known| known.flag.is_some() || known.own_rule.is_some()).collect();
        told.sort_by_key(|known| *known.service.as_bytes());
        told
    }

    fn known(&self, service: ServiceId, window: Option<&Window>, now_secs: u64) -> Known {
        let own_rule = window.and_then(|window| window.rule);
        let flag = window.and_then(|window| window.flag(now_secs));
        Known { service, flag, own_rule, rule: own_rule.unwrap_or(self.0.settings.rule) }
    }

    /// Stores what differs. Those that come while it is stored go together into the next commit.
    async fn store(&self) -> Result<(), LedgerError> {
        let _alone = self.0.storing.lock().await;
        let dirty = std::mem::take(&mut self.state().dirty);
        if dirty.is_empty() {
            return Ok(());
        }
        let documents = {
            let (state, now_secs) = (self.state(), clock::now_secs());
            dirty.iter().map(|service| document(*service, state.windows.get(service), now_secs)).collect()
        };
        let stored = self.0.ledger.put_many(documents).await;
        if stored.is_err() {
            self.state().dirty.extend(dirty);
        }
        stored
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn make_room(&mut self) {
        while self.windows.len() > SERVICES_MAX {
            let least =
                self.windows.iter().min_by_key(|(_, window)| window.worth()).map(|(service, _)| *service);
            let Some(least) = least else { return };
            self.windows.remove(&least);
            self.dirty.insert(least);
        }
    }
}

fn document(service: ServiceId, window: Option<&Window>, now_secs: u64) -> Document {
    let kept = window.filter(|window| window.is_worth_keeping(now_secs));
    Document {
        namespace: Namespace::Conduct,
        key: service.as_bytes().to_vec().into(),
        value: kept
            .map(|window| serde_json::to_vec(window).expect("text and numbers are always JSON").into()),
    }
}

#[cfg(test)]
mod tests {
    use farthing_ledger::OpenMode;

    use super::*;

    const STOP: Settings = Settings { rule: FlagRule::Stop, trial_after_secs: 600 };

    fn ledger() -> (tempfile::TempDir, Ledger) {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(&folder.path().join("ledger.redb"), OpenMode::Create).unwrap();
        (folder, ledger)
    }

    fn service(n: u8) -> ServiceId {
        ServiceId::from_bytes([n; 16])
    }

    async fn noted(conduct: &Conduct, service: ServiceId, came: Came, times: usize) {
        for _ in 0..times {
            conduct.note(service, came, "garbage", None).await;
        }
    }

    #[tokio::test]
    async fn a_flag_and_the_users_word_outlive_a_restart_and_what_is_well_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let open = |mode| Ledger::open(&folder.path().join("ledger.redb"), mode).unwrap();
        let ledger = open(OpenMode::Create);
        let conduct = Conduct::restore(ledger.clone(), STOP).unwrap();
        noted(&conduct, service(1), Came::Good, 3).await;
        assert_eq!(ledger.list(Namespace::Conduct).unwrap().len(), 0);
        noted(&conduct, service(1), Came::Broke, 4).await;
        conduct.set_rule(service(2), Some(FlagRule::Warn)).await.unwrap();
        let (before, refused) = (conduct.all(), conduct.admit(service(1)).unwrap_err());
        assert_eq!((before.len(), refused.flag.figures().of), (2, 7));
        drop((conduct, ledger));

        let conduct = Conduct::restore(open(OpenMode::Existing), STOP).unwrap();
        assert_eq!(conduct.all(), before);
        assert_eq!(conduct.admit(service(1)).unwrap_err().flag, refused.flag);
        noted(&conduct, service(1), Came::Good, window::GOOD_IN_A_ROW).await;
        conduct.set_rule(service(2), None).await.unwrap();
        assert_eq!(conduct.all(), []);
        assert_eq!(conduct.0.ledger.list(Namespace::Conduct).unwrap().len(), 0);
    }

    #[tokio::test]
    async fn a_stopped_service_is_tried_by_one_call_at_a_time_and_the_users_word_goes_before_the_setting() {
        let (_folder, ledger) = ledger();
        let conduct = Conduct::restore(ledger.clone(), Settings { trial_after_secs: 0, ..STOP }).unwrap();
        assert!(conduct.admit(service(1)).unwrap().is_none(), "nothing is known");
        noted(&conduct, service(1), Came::Failed, 6).await;
        let trial = conduct.admit(service(1)).unwrap();
        assert!(trial.is_some() && conduct.admit(service(1)).is_err(), "one at a time");
        drop(trial);
        assert!(conduct.admit(service(1)).unwrap().is_some(), "the next one");
        assert!(conduct.admit(service(2)).unwrap().is_none(), "another service");

        let waiting = Conduct::restore(ledger, STOP).unwrap();
        assert!(waiting.admit(service(1)).is_err());
        waiting.set_rule(service(1), Some(FlagRule::Warn)).await.unwrap();
        assert!(waiting.admit(service(1)).unwrap().is_none());
        assert!(waiting.of(service(1)).flag.is_some(), "it is flagged all the same");
    }

    #[tokio::test]
    async fn services_beyond_the_bound_make_room_and_flagged_ones_stay() {
        let (_folder, ledger) = ledger();
        let conduct = Conduct::restore(ledger, STOP).unwrap();
        noted(&conduct, service(255), Came::Broke, 4).await;
        for n in 0..=SERVICES_MAX as u128 {
            conduct.state().windows.insert(ServiceId::from_bytes(n.to_be_bytes()), Window::default());
        }
        noted(&conduct, service(254), Came::Good, 1).await;
        assert_eq!(conduct.state().windows.len(), SERVICES_MAX);
        assert!(conduct.of(service(255)).flag.is_some());
    }
}
