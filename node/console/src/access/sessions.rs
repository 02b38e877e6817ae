//! Sessions of those who are logged in: a bounded list, each known by the hash of a random token in a cookie.
//!
//! Only tokens made here are ever accepted, and every log-in makes a new one, so nobody can be made to use a
//! token that somebody else knows. What is stored cannot be presented: it is the hash.
//!
//! Browsers send a cookie to every port of its host, so whoever runs a server on this machine can be given one. A
//! token therefore only reads. Changes need the session's [`Key`], which is made apart from it and kept where
//! browsers show it to the console's own origin alone.
//!
//! Times are of the machine's clock, which goes on while the machine sleeps and can be set back. A time that is ahead of it
//! then was told by a wrong clock: a session lasts no longer for it, and the password is asked for again.

use std::io;

use farthing_os::secret::SecretText;
use serde::{Deserialize, Serialize};

use super::{
    devices::{DeviceId, DeviceKey},
    secret_hash::{SecretHash, random_text},
};

/// A person has a few browsers; beyond this the one unused for longest is logged out.
const SESSIONS_MAX: usize = 32;
/// A browser left alone over night asks again.
const IDLE_SECS: u64 = 12 * 3600;
/// However busy, once a week.
pub const ABSOLUTE_SECS: u64 = 7 * 24 * 3600;
/// Dangerous actions need the password this recently.
const PASSWORD_FRESH_SECS: u64 = 15 * 60;

/// The secret in the cookie.
#[derive(Debug)]
pub struct Token(SecretText);

impl Token {
    /// A new one from the operating system's randomness.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn generate() -> io::Result<Self> {
        random_text().map(Self)
    }

    /// As a browser presented it.
    pub fn presented(text: &str) -> Self {
        Self(SecretText::new(text))
    }

    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    pub(crate) fn id(&self) -> SessionId {
        SessionId(SecretHash::of(b"farthing console session\0", self.expose()))
    }
}

/// The secret that changes carry. It never stands in a cookie, and no page says it.
#[derive(Debug)]
pub struct Key(SecretText);

impl Key {
    /// A new one from the operating system's randomness.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn generate() -> io::Result<Self> {
        random_text().map(Self)
    }

    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    fn hash(presented: &str) -> SecretHash {
        SecretHash::of(b"farthing console key\0", presented)
    }
}

/// The result of a log-in: the token becomes the cookie, the keys go to the console's own origin.
#[derive(Debug)]
pub struct NewSession {
    pub token: Token,
    pub key: Key,
    /// For who was not known yet.
    pub device: Option<DeviceKey>,
}

impl NewSession {
    /// A new pair.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn generate() -> io::Result<Self> {
        Ok(Self { token: Token::generate()?, key: Key::generate()?, device: None })
    }
}

/// A token's hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionId(SecretHash);

/// A logged-in browser, as one request sees it.
#[derive(Clone)]
pub struct Session {
    id: SessionId,
    key: Option<SecretHash>,
    device: Option<DeviceId>,
    password_at_secs: u64,
}

farthing_os::hidden!(Session);

/// Proof that the password was entered in this session within the last 15 minutes.
#[derive(Debug)]
pub struct Reauthenticated(());

/// Proof that the password came with this very request.
#[derive(Debug, Clone, Copy)]
pub struct PasswordProof(());

impl PasswordProof {
    /// For [`super::Access`] alone, which has just compared the password.
    pub(super) const fn new() -> Self {
        Self(())
    }
}

impl From<PasswordProof> for Reauthenticated {
    fn from(_: PasswordProof) -> Self {
        Self(())
    }
}

impl Session {
    /// The session that `token` would be.
    #[cfg(test)]
    pub fn of_token(token: &Token) -> SessionId {
        token.id()
    }

    pub const fn id(&self) -> SessionId {
        self.id
    }

    /// Returns whether a form or a request carried the session's key. A session of an earlier version has none.
    #[must_use]
    pub fn has_key(&self, presented: &str) -> bool {
        self.key.is_some_and(|key| key.is_equal(&Key::hash(presented)))
    }

    /// Returns the device that logged in.
    pub(super) const fn device(&self) -> Option<DeviceId> {
        self.device
    }

    /// The proof that dangerous actions ask for; `None` when the password was entered too long ago.
    #[must_use]
    pub const fn reauthenticated(&self, now_secs: u64) -> Option<Reauthenticated> {
        if now_secs.saturating_sub(self.password_at_secs) <= PASSWORD_FRESH_SECS {
            Some(Reauthenticated(()))
        } else {
            None
        }
    }
}

/// One session as it is kept, and stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SessionEntry {
    id: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<SecretHash>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    device: Option<DeviceId>,
    created_secs: u64,
    seen_secs: u64,
    /// Not stored: after a restart the password is asked for again.
    #[serde(skip)]
    password_at_secs: u64,
}

/// Every session there is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sessions(Vec<SessionEntry>);

impl Sessions {
    /// Begins a session; the password was just entered.
    pub fn begin(&mut self, begun: &NewSession, device: Option<DeviceId>, now_secs: u64) {
        self.expire(now_secs);
        if self.0.len() >= SESSIONS_MAX
            && let Some(oldest) = (0..self.0.len()).min_by_key(|&index| self.0[index].seen_secs)
        {
            self.0.remove(oldest);
        }
        self.0.push(SessionEntry {
            id: begun.token.id(),
            key: Some(Key::hash(begun.key.expose())),
            device,
            created_secs: now_secs,
            seen_secs: now_secs,
            password_at_secs: now_secs,
        });
    }

    /// The session of `token`, if it is one and has not ended. Being asked for keeps it from being idle.
    pub fn find(&mut self, token: &Token, now_secs: u64) -> Option<Session> {
        self.expire(now_secs);
        let id = token.id();
        let entry = self.0.iter_mut().find(|entry| entry.id == id)?;
        entry.seen_secs = entry.seen_secs.max(now_secs);
        let SessionEntry { key, device, password_at_secs, .. } = *entry;
        Some(Session { id, key, device, password_at_secs })
    }

    /// Returns whether a session has not ended.
    pub fn has(&mut self, id: SessionId, now_secs: u64) -> bool {
        self.expire(now_secs);
        self.0.iter().any(|entry| entry.id == id)
    }

    /// The password was entered again.
    pub fn password_entered(&mut self, id: SessionId, now_secs: u64) {
        if let Some(entry) = self.0.iter_mut().find(|entry| entry.id == id) {
            entry.password_at_secs = now_secs;
        }
    }

    pub fn end(&mut self, id: SessionId) {
        self.0.retain(|entry| entry.id != id);
    }

    /// Returns the number of sessions.
    pub const fn count(&self) -> usize {
        self.0.len()
    }

    pub fn end_all(&mut self, kept: Option<SessionId>) {
        self.0.retain(|entry| Some(entry.id) == kept);
    }

    fn expire(&mut self, now_secs: u64) {
        for entry in &mut self.0 {
            entry.seen_secs = entry.seen_secs.min(now_secs);
            entry.created_secs = entry.created_secs.min(now_secs);
            if entry.password_at_secs > now_secs {
                // As after a restart.
                entry.password_at_secs = 0;
            }
        }
        self.0.retain(|entry| {
            now_secs.saturating_sub(entry.seen_secs) <= IDLE_SECS
                && now_secs.saturating_sub(entry.created_secs) <= ABSOLUTE_SECS
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(now_secs: u64) -> (Sessions, Token) {
        let (sessions, begun) = begun_with_key(now_secs);
        (sessions, begun.token)
    }

    fn begun_with_key(now_secs: u64) -> (Sessions, NewSession) {
        let (mut sessions, begun) = (Sessions::default(), NewSession::generate().unwrap());
        sessions.begin(&begun, None, now_secs);
        (sessions, begun)
    }

    #[test]
    fn only_tokens_made_here_are_sessions() {
        let (mut sessions, token) = begun(100);
        assert!(sessions.find(&token, 100).is_some());
        for wrong in ["", "0", &"0".repeat(64), &token.expose()[1..]] {
            assert!(sessions.find(&Token::presented(wrong), 100).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_session_ends_when_idle_and_at_the_latest_after_a_week() {
        let (mut sessions, token) = begun(0);
        assert!(sessions.find(&token, IDLE_SECS).is_some());
        assert!(sessions.find(&token, 2 * IDLE_SECS).is_some(), "it was used meanwhile");
        assert!(sessions.clone().find(&token, 3 * IDLE_SECS + 1).is_none(), "idle");
        let id = Session::of_token(&token);
        assert!(sessions.clone().has(id, 3 * IDLE_SECS));
        let mut watched = sessions.clone();
        assert!(watched.has(id, 3 * IDLE_SECS) && !watched.has(id, 3 * IDLE_SECS + 1), "to watch is no use");
        let mut now = 2 * IDLE_SECS;
        while now + IDLE_SECS <= ABSOLUTE_SECS {
            now += IDLE_SECS;
            assert!(sessions.find(&token, now).is_some(), "{now}");
        }
        assert!(sessions.find(&token, ABSOLUTE_SECS).is_some());
        assert!(sessions.find(&token, ABSOLUTE_SECS + 1).is_none());
    }

    #[test]
    fn the_session_unused_for_longest_makes_room() {
        let (mut sessions, first) = begun(0);
        let others: Vec<NewSession> = (1..SESSIONS_MAX).map(|_| NewSession::generate().unwrap()).collect();
        others.iter().for_each(|begun| sessions.begin(begun, None, 1));
        assert!(sessions.find(&first, 2).is_some(), "there is room for it");
        sessions.begin(&NewSession::generate().unwrap(), None, 3);
        assert_eq!(sessions.0.len(), SESSIONS_MAX);
        assert!(sessions.find(&others[0].token, 3).is_none());
        assert!(sessions.find(&first, 3).is_some());
    }

    #[test]
    fn the_password_is_fresh_for_fifteen_minutes_and_not_after_a_restart() {
        let (mut sessions, token) = begun(1_000);
        let session = sessions.find(&token, 1_000).unwrap();
        assert!(session.reauthenticated(1_000 + PASSWORD_FRESH_SECS).is_some());
        assert!(session.reauthenticated(1_001 + PASSWORD_FRESH_SECS).is_none());
        let stored = serde_json::to_string(&sessions).unwrap();
        assert!(!stored.contains(token.expose()), "only hashes are stored");
        let mut restored: Sessions = serde_json::from_str(&stored).unwrap();
        let session = restored.find(&token, 1_000).unwrap();
        assert!(session.reauthenticated(1_001).is_none());
        restored.password_entered(session.id(), 1_001);
        assert!(restored.find(&token, 1_001).unwrap().reauthenticated(1_001).is_some());
    }

    #[test]
    fn a_clock_that_is_set_back_keeps_no_session_longer_and_no_password_fresh() {
        let ahead = 10 * ABSOLUTE_SECS;
        let (mut sessions, token) = begun(ahead);
        let id = Session::of_token(&token);
        assert!(sessions.has(id, 1_000), "the clock is right again");
        assert!(sessions.clone().has(id, 1_000 + IDLE_SECS));
        assert!(!sessions.clone().has(id, 1_001 + IDLE_SECS), "idle");
        let is_fresh = |sessions: &mut Sessions, now_secs| {
            sessions.find(&token, now_secs).unwrap().reauthenticated(now_secs).is_some()
        };
        assert!(!is_fresh(&mut sessions.clone(), 1_000), "nobody knows when the password was entered");
        sessions.password_entered(id, 5_000);
        assert!(is_fresh(&mut sessions, 5_000));
        assert!(!is_fresh(&mut sessions, 4_000), "set back");
        assert!(!is_fresh(&mut sessions, 5_001), "and for good");
    }

    #[test]
    fn a_key_belongs_to_one_session_and_nothing_else_leads_to_it() {
        let (mut sessions, first) = begun_with_key(0);
        let other = NewSession::generate().unwrap();
        sessions.begin(&other, None, 0);
        let (one, two) = (sessions.find(&first.token, 0).unwrap(), sessions.find(&other.token, 0).unwrap());
        assert!(one.has_key(first.key.expose()) && two.has_key(other.key.expose()));
        for wrong in [other.key.expose(), "", first.token.expose(), &first.key.expose()[1..]] {
            assert!(!one.has_key(wrong), "{wrong}");
        }
        let stored = serde_json::to_string(&sessions).unwrap();
        assert!(!stored.contains(first.key.expose()), "only its hash is stored");
        let mut restored: Sessions = serde_json::from_str(&stored).unwrap();
        assert!(restored.find(&first.token, 0).unwrap().has_key(first.key.expose()), "after a restart, too");
        sessions.end(one.id());
        assert!(sessions.find(&first.token, 0).is_none() && sessions.find(&other.token, 0).is_some());
    }

    #[test]
    fn a_session_of_before_there_were_keys_has_none() {
        let (sessions, begun) = begun_with_key(0);
        let mut stored = serde_json::to_value(&sessions).unwrap();
        stored[0].as_object_mut().unwrap().remove("key").unwrap();
        let mut restored: Sessions = serde_json::from_value(stored).unwrap();
        let session = restored.find(&begun.token, 0).unwrap();
        assert!(!session.has_key(begun.key.expose()) && !session.has_key(""));
    }
}
