//! Who is logged in: a bounded list of sessions, each known by the hash of a random token in a cookie.
//!
//! Only tokens made here are ever accepted, and every log-in makes a new one, so nobody can be made to use a
//! token that somebody else knows. What is stored cannot be presented: it is the hash.

use std::io;

use farthing_protocol::keccak256;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// A person has a few browsers; beyond this the one unused for longest is logged out.
const SESSIONS_MAX: usize = 32;
/// A browser left alone over night asks again.
pub const IDLE_SECS: u64 = 12 * 3600;
/// However busy, once a week.
pub const ABSOLUTE_SECS: u64 = 7 * 24 * 3600;
/// Dangerous actions need the password this recently.
const PASSWORD_FRESH_SECS: u64 = 15 * 60;

/// The secret in the cookie.
pub struct Token(Zeroizing<String>);

impl Token {
    /// A new one from the operating system's randomness.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn generate() -> io::Result<Self> {
        let mut random = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *random).map_err(io::Error::from)?;
        Ok(Self(Zeroizing::new(hex::encode(*random))))
    }

    /// As a browser presented it.
    #[must_use]
    pub fn presented(text: &str) -> Self {
        Self(Zeroizing::new(text.to_owned()))
    }

    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub(in crate::panel) fn id(&self) -> SessionId {
        SessionId(keccak256(&[b"farthing console session\0", self.0.as_bytes()]))
    }

    /// What forms carry beside the cookie. It follows from the token, and the token does not follow from it.
    fn csrf(&self) -> String {
        hex::encode(&keccak256(&[b"farthing console form\0", self.0.as_bytes()])[..16])
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// A token's hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionId([u8; 32]);

/// A logged-in browser, as one request sees it.
#[derive(Clone)]
pub struct Session {
    id: SessionId,
    csrf: String,
    password_at_secs: u64,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Session(…)")
    }
}

/// Proof that the password was entered in this session within the last 15 minutes.
#[derive(Debug)]
pub struct Reauthenticated(());

impl Session {
    /// The session that `token` would be.
    #[cfg(test)]
    pub fn of_token(token: &Token) -> SessionId {
        token.id()
    }

    #[must_use]
    pub const fn id(&self) -> SessionId {
        self.id
    }

    /// To be put into every form, as the field `csrf`.
    #[must_use]
    pub fn csrf(&self) -> &str {
        &self.csrf
    }

    /// Whether a form or a request of ours carried `presented`.
    #[must_use]
    pub fn is_csrf(&self, presented: &str) -> bool {
        self.csrf.as_bytes().ct_eq(presented.as_bytes()).into()
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
struct Entry {
    #[serde(with = "id_text")]
    id: SessionId,
    created_secs: u64,
    seen_secs: u64,
    /// Not stored: after a restart the password is asked for again.
    #[serde(skip)]
    password_at_secs: u64,
}

/// Every session there is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sessions(Vec<Entry>);

impl Sessions {
    /// Begins the session of `token`; the password was just entered.
    pub fn begin(&mut self, token: &Token, now_secs: u64) {
        self.expire(now_secs);
        if self.0.len() >= SESSIONS_MAX
            && let Some(oldest) = (0..self.0.len()).min_by_key(|&index| self.0[index].seen_secs)
        {
            self.0.remove(oldest);
        }
        self.0.push(Entry {
            id: token.id(),
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
        Some(Session { id, csrf: token.csrf(), password_at_secs: entry.password_at_secs })
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

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.0.len()
    }

    /// Ends all, except for `kept`.
    pub fn end_all(&mut self, kept: Option<SessionId>) {
        self.0.retain(|entry| Some(entry.id) == kept);
    }

    fn expire(&mut self, now_secs: u64) {
        self.0.retain(|entry| {
            now_secs.saturating_sub(entry.seen_secs) <= IDLE_SECS
                && now_secs.saturating_sub(entry.created_secs) <= ABSOLUTE_SECS
        });
    }
}

mod id_text {
    //! A session's id as hexadecimal text.

    use serde::{Deserialize, Deserializer, Serializer};

    use super::SessionId;

    pub(super) fn serialize<S: Serializer>(id: &SessionId, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(id.0))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SessionId, D::Error> {
        let mut id = [0; 32];
        hex::decode_to_slice(String::deserialize(deserializer)?, &mut id)
            .map_err(serde::de::Error::custom)?;
        Ok(SessionId(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(now_secs: u64) -> (Sessions, Token) {
        let (mut sessions, token) = (Sessions::default(), Token::generate().unwrap());
        sessions.begin(&token, now_secs);
        (sessions, token)
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
        let others: Vec<Token> = (1..SESSIONS_MAX).map(|_| Token::generate().unwrap()).collect();
        others.iter().for_each(|token| sessions.begin(token, 1));
        assert!(sessions.find(&first, 2).is_some(), "there is room for it");
        sessions.begin(&Token::generate().unwrap(), 3);
        assert_eq!(sessions.0.len(), SESSIONS_MAX);
        assert!(sessions.find(&others[0], 3).is_none());
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
    fn a_forms_proof_belongs_to_one_session() {
        let (mut sessions, token) = begun(0);
        let other = Token::generate().unwrap();
        sessions.begin(&other, 0);
        let (one, two) = (sessions.find(&token, 0).unwrap(), sessions.find(&other, 0).unwrap());
        assert!(one.is_csrf(one.csrf()));
        assert!(!one.is_csrf(two.csrf()) && !one.is_csrf(""));
        sessions.end(one.id());
        assert!(sessions.find(&token, 0).is_none() && sessions.find(&other, 0).is_some());
    }
}
