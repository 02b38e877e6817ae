//! Access to the console: setting it up, logging in, staying logged in.
//!
//! 1. A node that has no password makes a one-time code at start and prints it. Whoever types it chooses the
//!    password ([`password`]); the code is then void.
//! 2. The password begins a session ([`sessions`]), at a pace that makes guessing hopeless ([`attempts`]) and that
//!    nobody's guesses slow down for who was here before ([`devices`]). Its cookie reads; its key, or the password again,
//!    changes.
//! 3. Password hash, sessions and devices are kept in `console.json` (0600) in the data folder, so that a restart logs
//!    nobody out. What is stored opens nothing by itself.
//!
//! Invariant: a session exists only because the right code or password was given to this node.

use std::{
    io,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use farthing_os::{clock, file_names, files, secret::SecretText};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

mod attempts;
mod devices;
mod password;
mod secret_hash;
mod sessions;
mod setup_code;
mod strength;

use attempts::{Attempts, Guesser};
use devices::{DeviceKey, Devices};
use password::{Hasher, Unfit};
use sessions::Sessions;
pub use sessions::{ABSOLUTE_SECS, NewSession, PasswordProof, Reauthenticated, Session, SessionId, Token};
pub use setup_code::SetupCode;

/// Far below the 12 hours after which a session is idle.
const USE_STORED_EVERY_SECS: u64 = 3600;

/// The reason that somebody is not let in, worded for the person at the browser.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("Wrong password. Nothing is locked: try again, or run `farthing console reset-password`.")]
    WrongPassword,
    #[error("Wrong setup code. `farthing console url` prints the current one.")]
    WrongCode,
    #[error("Too many wrong tries. Try again in {} s.", .0.as_secs().max(1))]
    Wait(Duration),
    #[error("Too many passwords are being checked. Try again in a moment.")]
    Busy,
    #[error(transparent)]
    Unfit(#[from] Unfit),
    #[error("The console is already set up. Log in with its password.")]
    SetUpAlready,
    #[error("The console is not set up yet. Open it and type the setup code.")]
    NotSetUp,
    #[error("The node's configuration sets the password. Change it there.")]
    Configured,
    #[error("{} could not be written, so nothing was changed. Free some disk space and try again.", .0.display())]
    NotStored(PathBuf, #[source] io::Error),
    #[error("The system has no free memory or provides no random numbers. Free some memory and try again.")]
    System,
}

/// The reason that the stored access cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    #[error("{path} cannot be read", path = .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} is damaged", path = .path.display())]
    Damaged { path: PathBuf },
    #[error("the system has no free memory or provides no random numbers")]
    System,
}

impl AccessError {
    pub fn next_step(&self) -> &'static str {
        match self {
            Self::Io { source, .. } => files::next_step(source),
            Self::Damaged { .. } => "remove it to set up the console again; nothing else changes",
            Self::System => "free some memory and start again",
        }
    }
}

/// The content of `console.json`.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredAccess {
    /// `$argon2id$…`
    password: Option<String>,
    sessions: Sessions,
    devices: Devices,
}

/// The sender of a password.
#[derive(Debug, Clone)]
pub struct Asker {
    pub address: IpAddr,
    /// The device key, as it was presented.
    pub device: String,
}

impl From<IpAddr> for Asker {
    fn from(address: IpAddr) -> Self {
        Self { address, device: String::new() }
    }
}

impl StoredAccess {
    fn end_others(&mut self, session: &Session) {
        self.sessions.end_all(Some(session.id()));
        self.devices.keep(session.device());
    }
}

#[derive(Default)]
struct AccessState {
    stored: StoredAccess,
    setup_code: Option<SetupCode>,
}

/// Decides who may use the console. A cheap handle.
#[derive(Clone)]
pub struct Access(Arc<AccessInner>);

struct AccessInner {
    path: PathBuf,
    state: Mutex<AccessState>,
    attempts: Mutex<Attempts>,
    hasher: Hasher,
    /// The password of the configuration, hashed.
    configured: Option<String>,
    /// The time at which the use of sessions was last stored.
    use_stored_secs: AtomicU64,
    /// Held while writing, so that what is written last is what is newest.
    writing: Mutex<()>,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").field("path", &self.0.path).finish_non_exhaustive()
    }
}

impl Access {
    /// Reads what is stored in `data_dir`; `configured` stands in for the stored password. Hashes, so call it
    /// outside of async tasks.
    ///
    /// # Errors
    /// [`AccessError`]; a damaged file is never replaced silently.
    pub fn open(data_dir: &Path, configured: Option<&SecretText>) -> Result<Self, AccessError> {
        let path = data_dir.join(file_names::CONSOLE);
        let stored = match std::fs::read(&path) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).map_err(|_| AccessError::Damaged { path: path.clone() })?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => StoredAccess::default(),
            Err(source) => return Err(AccessError::Io { path, source }),
        };
        let configured = configured.map(password::hash_now).transpose().map_err(|_| AccessError::System)?;
        let needs_setup = stored.password.is_none() && configured.is_none();
        let setup_code =
            needs_setup.then(SetupCode::generate).transpose().map_err(|_| AccessError::System)?;
        Ok(Self(Arc::new(AccessInner {
            path,
            state: Mutex::new(AccessState { stored, setup_code }),
            attempts: Mutex::new(Attempts::new(Instant::now())),
            hasher: Hasher::default(),
            configured,
            use_stored_secs: AtomicU64::new(clock::now_secs()),
            writing: Mutex::default(),
        })))
    }

    /// The one-time code, while it is needed.
    pub fn setup_code(&self) -> Option<SetupCode> {
        self.0.state.lock().setup_code.clone()
    }

    /// Chooses the first password and begins a session.
    ///
    /// # Errors
    /// [`Refused`]; nothing is then set up.
    pub async fn set_up(
        &self,
        code: &str,
        password: SecretText,
        from: IpAddr,
    ) -> Result<NewSession, Refused> {
        let expected = self.setup_code().ok_or(Refused::SetUpAlready)?;
        // Its 60 bits are not guessed, at whatever pace, so who has it never waits for others' guesses.
        if !expected.matches(code) {
            self.book(Guesser::Address(from))?;
            return Err(Refused::WrongCode);
        }
        if expected.matches(password.expose()) {
            return Err(Unfit::Printed.into());
        }
        password::fit(&password)?;
        let hash = self.0.hasher.hash(password).await.map_err(|_| Refused::System)?;
        let mut begun = NewSession::generate().map_err(|_| Refused::System)?;
        let device = DeviceKey::generate().map_err(|_| Refused::System)?;
        {
            let mut state = self.0.state.lock();
            // Two browsers may have come here at once; the code is good for one.
            state.setup_code.take().ok_or(Refused::SetUpAlready)?;
            state.stored.password = Some(hash);
            let id = state.stored.devices.add(&device, clock::now_secs());
            state.stored.sessions.begin(&begun, Some(id), clock::now_secs());
        }
        begun.device = Some(device);
        if let Err(error) = self.store().await {
            let mut state = self.0.state.lock();
            *state = AccessState { stored: StoredAccess::default(), setup_code: Some(expected) };
            return Err(error);
        }
        Ok(begun)
    }

    /// Begins a session, in place of the one that the browser had, if any.
    ///
    /// # Errors
    /// [`Refused`] for a wrong password, or one that comes too fast.
    pub async fn log_in(
        &self,
        password: SecretText,
        had: Option<&Session>,
        from: impl Into<Asker>,
    ) -> Result<NewSession, Refused> {
        let Asker { address, device } = from.into();
        let known = self.0.state.lock().stored.devices.find(&device);
        self.check(password, known.map_or(Guesser::Address(address), Guesser::Device)).await?;
        let mut begun = NewSession::generate().map_err(|_| Refused::System)?;
        let fresh = DeviceKey::generate().map_err(|_| Refused::System)?;
        {
            let (mut state, now_secs) = (self.0.state.lock(), clock::now_secs());
            if let Some(had) = had {
                state.stored.sessions.end(had.id());
            }
            let devices = &mut state.stored.devices;
            // Others may have been forgotten meanwhile.
            let id = match devices.find(&device) {
                Some(id) => {
                    devices.seen(id, now_secs);
                    id
                }
                None => devices.add(begun.device.insert(fresh), now_secs),
            };
            state.stored.sessions.begin(&begun, Some(id), now_secs);
        }
        self.store_or_warn().await;
        Ok(begun)
    }

    /// Takes the password that came with a request, which then may do what is dangerous. `has_key`: whether the
    /// session's key came, too; a cookie alone, which another program may hold, counts as its address.
    pub async fn confirm(
        &self,
        session: &Session,
        password: SecretText,
        from: IpAddr,
        has_key: bool,
    ) -> Result<PasswordProof, Refused> {
        let known = session.device().filter(|_| has_key);
        self.check(password, known.map_or(Guesser::Address(from), Guesser::Device)).await?;
        self.0.state.lock().stored.sessions.password_entered(session.id(), clock::now_secs());
        Ok(PasswordProof::new())
    }

    /// Replaces the password and ends every other session.
    ///
    /// # Errors
    /// [`Refused`]; the old password then still holds.
    pub async fn change_password(
        &self,
        session: &Session,
        _proof: PasswordProof,
        password: SecretText,
    ) -> Result<(), Refused> {
        if self.0.configured.is_some() {
            return Err(Refused::Configured);
        }
        password::fit(&password)?;
        let hash = self.0.hasher.hash(password).await.map_err(|_| Refused::System)?;
        let before = {
            let mut state = self.0.state.lock();
            let before = state.stored.clone();
            state.stored.password = Some(hash);
            state.stored.end_others(session);
            before
        };
        self.store().await.inspect_err(|_| self.0.state.lock().stored = before)
    }

    /// The session of a cookie, if there is one. Called inside the runtime.
    pub fn session(&self, token: &Token) -> Option<Session> {
        let now_secs = clock::now_secs();
        let session = self.0.state.lock().stored.sessions.find(token, now_secs)?;
        self.remember_use(now_secs);
        Some(session)
    }

    /// Returns whether a session goes on. That it is asked about is no use of it.
    pub fn is_session(&self, id: SessionId) -> bool {
        self.0.state.lock().stored.sessions.has(id, clock::now_secs())
    }

    /// Stores, now and then, that sessions are used: a restart must not take them for idle.
    fn remember_use(&self, now_secs: u64) {
        let stored = self.0.use_stored_secs.load(Ordering::Relaxed);
        // Also when the clock was set back: what is stored may be hours ahead.
        let is_due = now_secs.abs_diff(stored) >= USE_STORED_EVERY_SECS;
        let exchange = || {
            self.0.use_stored_secs.compare_exchange(stored, now_secs, Ordering::Relaxed, Ordering::Relaxed)
        };
        if is_due && exchange().is_ok() {
            let access = self.clone();
            tokio::spawn(async move { access.store_or_warn().await });
        }
    }

    /// Browsers and programs that are logged in now.
    pub fn sessions_count(&self) -> usize {
        self.0.state.lock().stored.sessions.count()
    }

    /// Returns whether the password comes from the configuration, and is changed there.
    pub fn is_configured(&self) -> bool {
        self.0.configured.is_some()
    }

    /// Ends every session but this one.
    pub async fn log_out_others(&self, session: &Session) {
        self.0.state.lock().stored.end_others(session);
        self.store_or_warn().await;
    }

    pub async fn log_out(&self, session: &Session) {
        self.0.state.lock().stored.sessions.end(session.id());
        self.store_or_warn().await;
    }

    /// Forgets the password and every session, for the owner of the machine. Returns the code to set up anew
    /// with.
    ///
    /// # Errors
    /// [`Refused::Configured`], or that it could not be stored.
    pub async fn reset(&self) -> Result<SetupCode, Refused> {
        if self.0.configured.is_some() {
            return Err(Refused::Configured);
        }
        let code = SetupCode::generate().map_err(|_| Refused::System)?;
        *self.0.state.lock() =
            AccessState { stored: StoredAccess::default(), setup_code: Some(code.clone()) };
        self.store().await?;
        Ok(code)
    }

    async fn check(&self, password: SecretText, guesser: Guesser) -> Result<(), Refused> {
        let stored = self.0.configured.clone().or_else(|| self.0.state.lock().stored.password.clone());
        let stored = stored.ok_or(Refused::NotSetUp)?;
        // First, so that what is not compared is no wrong try.
        let place = self.0.hasher.place(matches!(guesser, Guesser::Device(_))).ok_or(Refused::Busy)?;
        self.book(guesser)?;
        if !place.matches(password, stored).await {
            return Err(Refused::WrongPassword);
        }
        self.0.attempts.lock().succeeded(guesser);
        Ok(())
    }

    fn book(&self, guesser: Guesser) -> Result<(), Refused> {
        self.0.attempts.lock().book(guesser, Instant::now()).map_err(Refused::Wait)
    }

    async fn store(&self) -> Result<(), Refused> {
        let access = self.clone();
        let written = tokio::task::spawn_blocking(move || {
            let _writing = access.0.writing.lock();
            let bytes = serde_json::to_vec(&access.0.state.lock().stored).map_err(io::Error::other)?;
            files::replace_private(&access.0.path, &bytes)
        });
        let written = written.await.map_err(io::Error::other).flatten();
        written.map_err(|error| Refused::NotStored(self.0.path.clone(), error))
    }

    /// A session that is not stored lasts until the node ends, which is no reason to refuse it.
    async fn store_or_warn(&self) {
        if let Err(error) = self.store().await {
            tracing::warn!(%error, "the console's sessions were not stored");
        }
    }
}

#[cfg(test)]
mod tests;
