//! The conduct of services that this node pays: what their latest calls came to, which of them are flagged, and whether
//! that stops buying from them.
//!
//! In order: a flagged service that is stopped is refused before anything is promised, but for one trial at a time
//! ([`Conduct::admit`]); what a call came to is judged after its answer was handed on ([`observations`](super::observations)),
//! and counted ([`Conduct::note`]). Kept in the ledger for services with something to tell, so that a flag outlives
//! restarts and services that are well cost nothing.
//!
//! Invariant: nobody but the service's owner can flag it. What counts is signed by the owner, or came over a connection
//! that proved its wallet; what is lost on the way is nobody's word, until the owner signs that it charged it. What a caller asks for decides what comes, so the
//! calls of each consumer secret are counted apart ([`caller`]), and a flag stops the secret that met it.

use std::collections::{BTreeSet, HashMap};
use std::{sync::Arc, time::Duration};

use farthing_config::FlagRule;
use farthing_ledger::{Document, Ledger, LedgerError, Namespace};
use farthing_protocol::ServiceId;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::pauses::ASK_EVERY_MAX;

mod caller;
pub mod window;

use caller::CallerKey;
use farthing_os::clock;
pub use window::Flag;
use window::{CallEnd, ConductWindow, LostAnswer};

/// Services that are remembered, each for each secret; all of them were paid.
const WINDOWS_MAX: usize = 1_000;
/// The longest that a trial keeps other calls from its service: its owner may never tell how it ended. An honest owner has
/// told by then.
const TRIAL_LASTS_MAX: Duration = Duration::from_secs(3_600);
/// The first pause while a trial is under way.
const SOON: Duration = Duration::from_secs(1);

/// The rule of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConductSettings {
    pub rule: FlagRule,
    /// Since the last bad call, until a flagged service is tried.
    pub trial_after_secs: u64,
}

/// The reason that nothing is bought from a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRefusal {
    pub flag: Flag,
    /// Until the next trial; while one is under way, until its end may be known.
    pub wait_secs: u64,
    /// A trial is under way.
    pub is_tried: bool,
}

/// The conduct of a service, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceConduct {
    pub service: ServiceId,
    pub flag: Option<Flag>,
    /// The user's own rule for it.
    pub own_rule: Option<FlagRule>,
    /// In force.
    pub rule: FlagRule,
}

/// The right to try a stopped service; ends when dropped, and after an hour.
#[derive(Debug)]
pub struct TrialPermit {
    conduct: Conduct,
    key: CallerKey,
    begun: Instant,
}

impl Drop for TrialPermit {
    fn drop(&mut self) {
        self.conduct.0.state.lock().end_trial(self.key, self.begun);
    }
}

/// The services that this node pays. A cheap handle.
#[derive(Clone, Debug)]
pub struct Conduct(Arc<ConductInner>);

#[derive(Debug)]
struct ConductInner {
    ledger: Ledger,
    settings: ConductSettings,
    state: Mutex<ConductState>,
    /// One after the other, so that what is stored is what was counted last.
    storing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct ConductState {
    windows: HashMap<CallerKey, ConductWindow>,
    /// The time at which each trial began.
    trying: HashMap<CallerKey, Instant>,
    /// The entries that differ from the ledger.
    dirty: BTreeSet<CallerKey>,
}

impl Conduct {
    /// Continues with what was counted before the last stop.
    pub fn restore(ledger: Ledger, settings: ConductSettings) -> Result<Self, LedgerError> {
        let (mut state, now_secs) = (ConductState::default(), clock::now_secs());
        for (key, bytes) in ledger.list(Namespace::Conduct)? {
            let Some(key) = CallerKey::from_bytes(&key) else { continue };
            match serde_json::from_slice::<ConductWindow>(&bytes) {
                Ok(window) if window.is_worth_keeping(now_secs) => {
                    state.windows.insert(key, window);
                }
                Ok(_) => drop(state.dirty.insert(key)),
                Err(error) => {
                    tracing::warn!(service = %key.service, %error, "the record of a service's behaviour cannot be read");
                }
            }
        }
        Ok(Self(Arc::new(ConductInner {
            ledger,
            settings,
            state: Mutex::new(state),
            storing: Default::default(),
        })))
    }

    /// Admits a paid call of the service with a secret, if it may be made now; returns the trial it is, if the service
    /// is flagged for that secret and stopped.
    pub fn admit(&self, service: ServiceId, secret: &str) -> Result<Option<TrialPermit>, ServiceRefusal> {
        self.admit_at(service, secret, Instant::now())
    }

    fn admit_at(
        &self,
        service: ServiceId,
        secret: &str,
        now: Instant,
    ) -> Result<Option<TrialPermit>, ServiceRefusal> {
        let (mut state, now_secs) = (self.0.state.lock(), clock::now_secs());
        let key = CallerKey::new(service, secret);
        let Some(window) = state.windows.get(&key) else { return Ok(None) };
        let rule = state.own_rule(service).unwrap_or(self.0.settings.rule);
        let Some(flag) = window.flag(now_secs).filter(|_| rule == FlagRule::Stop) else { return Ok(None) };
        let wait_secs = window.wait_secs(now_secs, self.0.settings.trial_after_secs);
        if wait_secs > 0 {
            return Err(ServiceRefusal { flag, wait_secs, is_tried: false });
        }
        if let Some(wait) = state.trial_wait(key, now) {
            return Err(ServiceRefusal { flag, wait_secs: wait.as_secs(), is_tried: true });
        }
        state.trying.insert(key, now);
        Ok(Some(TrialPermit { conduct: self.clone(), key, begun: now }))
    }

    /// Counts what a call with a secret came to, at once, and returns the work of storing it; `why` says what was wrong
    /// with it.
    pub fn note(
        &self,
        call: (ServiceId, &str),
        came: CallEnd,
        why: &str,
        trial: Option<TrialPermit>,
    ) -> impl Future<Output = ()> + Send + use<> {
        self.count(call, (came, why), trial, None);
        self.clone().stored()
    }

    /// Counts as failed, likewise, a charge for a call whose answer was lost. Whoever broke the connection, that loses the
    /// answers of all calls under way: one counts only when its call was made after the last one that counted was known.
    pub fn note_lost(
        &self,
        call: (ServiceId, &str),
        why: &str,
        lost: LostAnswer,
        trial: Option<TrialPermit>,
    ) -> impl Future<Output = ()> + Send + use<> {
        self.count(call, (CallEnd::Failed, why), trial, Some(lost));
        self.clone().stored()
    }

    fn count(
        &self,
        (service, secret): (ServiceId, &str),
        (came, why): (CallEnd, &str),
        trial: Option<TrialPermit>,
        lost: Option<LostAnswer>,
    ) {
        let key = CallerKey::new(service, secret);
        {
            let (mut state, now_secs) = (self.0.state.lock(), clock::now_secs());
            let window = state.windows.entry(key).or_default();
            if lost.is_none_or(|lost| window.counts_lost(lost)) {
                let (was_kept, was_flagged) =
                    (window.is_worth_keeping(now_secs), window.flag(now_secs).is_some());
                window.note(came, why, trial.is_some(), now_secs);
                match (was_flagged, window.flag(now_secs)) {
                    (false, Some(flag)) => tracing::warn!(%service, secret, %flag, "a service is flagged"),
                    (true, None) => tracing::info!(%service, secret, "a service is no longer flagged"),
                    _ => {}
                }
                if was_kept || window.is_worth_keeping(now_secs) {
                    state.dirty.insert(key);
                }
                state.make_room();
            }
        }
        // Its end takes the same lock.
        drop(trial);
    }

    async fn stored(self) {
        if let Err(error) = self.store().await {
            tracing::warn!(%error, "the record of services' behaviour could not be stored; the next call tries again");
        }
    }

    /// Says otherwise for one service than the setting does, durably; `None` ends that.
    ///
    /// # Errors
    /// When it cannot be stored; it is in force until the next restart then.
    pub async fn set_rule(&self, service: ServiceId, rule: Option<FlagRule>) -> Result<(), LedgerError> {
        {
            let mut state = self.0.state.lock();
            let key = CallerKey::of_user(service);
            state.windows.entry(key).or_default().rule = rule;
            state.dirty.insert(key);
            state.make_room();
        }
        self.store().await
    }

    /// The rule of the configuration.
    pub fn settings(&self) -> ConductSettings {
        self.0.settings
    }

    /// Returns what is known of a service, from the calls of all secrets.
    pub fn of(&self, service: ServiceId) -> ServiceConduct {
        self.known(&self.0.state.lock(), service, clock::now_secs())
    }

    /// Every service that is flagged, or of which the user said something.
    pub fn all(&self) -> Vec<ServiceConduct> {
        let (state, now_secs) = (self.0.state.lock(), clock::now_secs());
        let services: BTreeSet<ServiceId> = state.windows.keys().map(|key| key.service).collect();
        let known = services.into_iter().map(|service| self.known(&state, service, now_secs));
        known.filter(|known| known.flag.is_some() || known.own_rule.is_some()).collect()
    }

    /// Of several flags, the one that counts most bad calls.
    fn known(&self, state: &ConductState, service: ServiceId, now_secs: u64) -> ServiceConduct {
        let windows = state.windows.iter().filter(|(key, _)| key.service == service);
        let flag = windows.filter_map(|(_, window)| window.flag(now_secs)).max_by_key(Flag::bad);
        let own_rule = state.own_rule(service);
        ServiceConduct { service, flag, own_rule, rule: own_rule.unwrap_or(self.0.settings.rule) }
    }

    /// Stores what differs. Those that come while it is stored go together into the next commit.
    async fn store(&self) -> Result<(), LedgerError> {
        let _alone = self.0.storing.lock().await;
        let dirty = std::mem::take(&mut self.0.state.lock().dirty);
        if dirty.is_empty() {
            return Ok(());
        }
        let documents = {
            let (state, now_secs) = (self.0.state.lock(), clock::now_secs());
            dirty.iter().map(|key| document(*key, state.windows.get(key), now_secs)).collect()
        };
        let stored = self.0.ledger.put_many(documents).await;
        if stored.is_err() {
            self.0.state.lock().dirty.extend(dirty);
        }
        stored
    }
}

impl ConductState {
    fn own_rule(&self, service: ServiceId) -> Option<FlagRule> {
        self.windows.get(&CallerKey::of_user(service)).and_then(|window| window.rule)
    }

    /// Computes the time after which the trial that is under way may have ended; `None` without one. Its owner is asked for
    /// its end in pauses that double up to the longest: in as long again as it has lasted, it was asked once more.
    fn trial_wait(&self, key: CallerKey, now: Instant) -> Option<Duration> {
        let lasted = now.saturating_duration_since(*self.trying.get(&key)?);
        let left = TRIAL_LASTS_MAX.saturating_sub(lasted);
        (!left.is_zero()).then(|| lasted.min(ASK_EVERY_MAX).min(left).max(SOON))
    }

    /// Ends the trial that began then, and none that followed it.
    fn end_trial(&mut self, key: CallerKey, begun: Instant) {
        if self.trying.get(&key) == Some(&begun) {
            self.trying.remove(&key);
        }
    }

    fn make_room(&mut self) {
        while self.windows.len() > WINDOWS_MAX {
            let least = self.windows.iter().min_by_key(|(_, window)| window.worth()).map(|(key, _)| *key);
            let Some(least) = least else { return };
            self.windows.remove(&least);
            self.dirty.insert(least);
        }
    }
}

fn document(key: CallerKey, window: Option<&ConductWindow>, now_secs: u64) -> Document {
    let kept = window.filter(|window| window.is_worth_keeping(now_secs));
    Document {
        namespace: Namespace::Conduct,
        key: key.to_bytes().into(),
        value: kept
            .map(|window| serde_json::to_vec(window).expect("text and numbers are always JSON").into()),
    }
}

#[cfg(test)]
mod tests {
    use farthing_ledger::OpenMode;

    use crate::secret::file::DEFAULT_SECRET;

    use super::*;

    const STOP: ConductSettings = ConductSettings { rule: FlagRule::Stop, trial_after_secs: 600 };

    fn ledger() -> (tempfile::TempDir, Ledger) {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(&folder.path().join("ledger.redb"), OpenMode::Create).unwrap();
        (folder, ledger)
    }

    fn service(n: u8) -> ServiceId {
        ServiceId::from_bytes([n; 16])
    }

    async fn noted(conduct: &Conduct, service: ServiceId, came: CallEnd, times: usize) {
        for _ in 0..times {
            conduct.note((service, DEFAULT_SECRET), came, "garbage", None).await;
        }
    }

    #[tokio::test]
    async fn a_flag_and_the_users_word_outlive_a_restart_and_what_is_well_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let open = |mode| Ledger::open(&folder.path().join("ledger.redb"), mode).unwrap();
        let ledger = open(OpenMode::Create);
        let conduct = Conduct::restore(ledger.clone(), STOP).unwrap();
        noted(&conduct, service(1), CallEnd::Good, 3).await;
        assert_eq!(ledger.list(Namespace::Conduct).unwrap().len(), 0);
        noted(&conduct, service(1), CallEnd::Broke, 4).await;
        conduct.set_rule(service(2), Some(FlagRule::Warn)).await.unwrap();
        let (before, refused) = (conduct.all(), conduct.admit(service(1), DEFAULT_SECRET).unwrap_err());
        assert_eq!((before.len(), refused.flag.figures().of), (2, 7));
        drop((conduct, ledger));

        let conduct = Conduct::restore(open(OpenMode::Existing), STOP).unwrap();
        assert_eq!(conduct.all(), before);
        assert_eq!(conduct.admit(service(1), DEFAULT_SECRET).unwrap_err().flag, refused.flag);
        noted(&conduct, service(1), CallEnd::Good, window::GOOD_IN_A_ROW).await;
        conduct.set_rule(service(2), None).await.unwrap();
        assert_eq!(conduct.all(), []);
        assert_eq!(conduct.0.ledger.list(Namespace::Conduct).unwrap().len(), 0);
    }

    #[tokio::test]
    async fn a_stopped_service_is_tried_by_one_call_at_a_time_and_the_users_word_goes_before_the_setting() {
        let (_folder, ledger) = ledger();
        let conduct =
            Conduct::restore(ledger.clone(), ConductSettings { trial_after_secs: 0, ..STOP }).unwrap();
        assert!(conduct.admit(service(1), DEFAULT_SECRET).unwrap().is_none(), "nothing is known");
        noted(&conduct, service(1), CallEnd::Failed, 6).await;
        let trial = conduct.admit(service(1), DEFAULT_SECRET).unwrap();
        assert!(trial.is_some() && conduct.admit(service(1), DEFAULT_SECRET).is_err(), "one at a time");
        drop(trial);
        assert!(conduct.admit(service(1), DEFAULT_SECRET).unwrap().is_some(), "the next one");
        assert!(conduct.admit(service(2), DEFAULT_SECRET).unwrap().is_none(), "another service");

        let waiting = Conduct::restore(ledger, STOP).unwrap();
        assert!(waiting.admit(service(1), DEFAULT_SECRET).is_err());
        waiting.set_rule(service(1), Some(FlagRule::Warn)).await.unwrap();
        assert!(waiting.admit(service(1), DEFAULT_SECRET).unwrap().is_none());
        assert!(waiting.of(service(1)).flag.is_some(), "it is flagged all the same");
    }

    #[tokio::test]
    async fn a_trial_whose_owner_never_tells_its_end_ends_after_an_hour_and_says_when_to_ask_again() {
        let (_folder, ledger) = ledger();
        let conduct = Conduct::restore(ledger, ConductSettings { trial_after_secs: 0, ..STOP }).unwrap();
        noted(&conduct, service(1), CallEnd::Failed, 6).await;
        let begun = Instant::now();
        let admit = |after| conduct.admit_at(service(1), DEFAULT_SECRET, begun + after);
        let first = admit(Duration::ZERO).unwrap().unwrap();
        let secs = Duration::from_secs;
        for (lasted, wait_secs) in
            [(secs(0), 1), (secs(30), 30), (secs(600), 60), (TRIAL_LASTS_MAX - secs(5), 5)]
        {
            let refused = admit(lasted).unwrap_err();
            assert_eq!((refused.wait_secs, refused.is_tried), (wait_secs, true), "after {lasted:?}");
        }
        let second = admit(TRIAL_LASTS_MAX).unwrap().unwrap();
        // Its end, an hour late, is not the end of the next one.
        drop(first);
        assert!(admit(TRIAL_LASTS_MAX).is_err());
        drop(second);
        assert!(admit(TRIAL_LASTS_MAX).unwrap().is_some());
    }

    #[tokio::test]
    async fn of_charges_whose_answers_one_break_lost_one_counts_and_each_of_those_that_broke_alone() {
        let (_folder, ledger) = ledger();
        let conduct = Conduct::restore(ledger, STOP).unwrap();
        let note_lost = async |service: ServiceId, lost: LostAnswer| {
            conduct.note_lost((service, DEFAULT_SECRET), "it never arrived", lost, None).await;
        };
        let lost = async |service, made| note_lost(service, LostAnswer { made, known: Instant::now() }).await;
        let together = Instant::now();
        for _ in 0..64 {
            lost(service(1), together).await;
        }
        for nth in 1..=6 {
            assert_eq!(conduct.all(), [], "before the {nth}th");
            lost(service(2), Instant::now()).await;
        }
        let flag = conduct.of(service(2)).flag.expect("six calls, one after the other");
        assert_eq!((flag.figures().failed, flag.figures().of), (6, 6));
        // After the break, the next ones count.
        for _ in 0..5 {
            assert!(conduct.of(service(1)).flag.is_none());
            lost(service(1), Instant::now()).await;
        }
        assert_eq!(conduct.of(service(1)).flag.map(|flag| flag.bad()), Some(6));
        // Each caller saw the charge of the call before, which was counted only after that.
        for ago in (1..=6).rev() {
            let at = together.checked_sub(Duration::from_millis(ago)).unwrap();
            note_lost(service(3), LostAnswer { made: at, known: at }).await;
        }
        assert_eq!(conduct.of(service(3)).flag.map(|flag| flag.bad()), Some(6));
    }

    #[tokio::test]
    async fn a_trial_whose_answer_is_lost_ends_with_its_count() {
        let (_folder, ledger) = ledger();
        let settings = ConductSettings { trial_after_secs: 0, ..STOP };
        let conduct = Conduct::restore(ledger, settings).unwrap();
        noted(&conduct, service(1), CallEnd::Failed, 6).await;
        let before = Instant::now();
        for made in [Instant::now(), before] {
            let trial = conduct.admit(service(1), DEFAULT_SECRET).unwrap();
            assert!(trial.is_some() && conduct.admit(service(1), DEFAULT_SECRET).is_err());
            let lost = LostAnswer { made, known: Instant::now() };
            conduct.note_lost((service(1), DEFAULT_SECRET), "it never arrived", lost, trial).await;
        }
        assert!(conduct.admit(service(1), DEFAULT_SECRET).unwrap().is_some(), "also when it does not count");
        assert_eq!(conduct.of(service(1)).flag.map(|flag| flag.bad()), Some(7));
    }

    #[tokio::test]
    async fn what_the_holder_of_one_secret_asks_for_stops_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let open = |mode| Ledger::open(&folder.path().join("ledger.redb"), mode).unwrap();
        let conduct = Conduct::restore(open(OpenMode::Create), STOP).unwrap();
        for _ in 0..30 {
            conduct.note((service(1), "limited"), CallEnd::Failed, "timed out", None).await;
        }
        drop(conduct);
        let conduct = Conduct::restore(open(OpenMode::Existing), STOP).unwrap();
        assert!(conduct.admit(service(1), "limited").is_err());
        for other in [DEFAULT_SECRET, "other"] {
            assert!(conduct.admit(service(1), other).unwrap().is_none(), "{other}");
        }
        assert!(conduct.of(service(1)).flag.is_some(), "it is shown all the same");
        conduct.set_rule(service(1), Some(FlagRule::Warn)).await.unwrap();
        assert!(conduct.admit(service(1), "limited").unwrap().is_none(), "the user's word counts for all");
    }

    #[tokio::test]
    async fn services_beyond_the_bound_make_room_and_flagged_ones_stay() {
        let (_folder, ledger) = ledger();
        let conduct = Conduct::restore(ledger, STOP).unwrap();
        noted(&conduct, service(255), CallEnd::Broke, 4).await;
        for n in 0..=WINDOWS_MAX as u128 {
            let key = CallerKey::of_user(ServiceId::from_bytes(n.to_be_bytes()));
            conduct.0.state.lock().windows.insert(key, ConductWindow::default());
        }
        noted(&conduct, service(254), CallEnd::Good, 1).await;
        assert_eq!(conduct.0.state.lock().windows.len(), WINDOWS_MAX);
        assert!(conduct.of(service(255)).flag.is_some());
    }
}
