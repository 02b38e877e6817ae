//! Calls of agents whose answers have not arrived: an agent that asks again gets the answer of the same call, and pays once.
//!
//! 1. Before an agent's door makes a call, it notes the call here ([`AgentCalls::begin`]). The call gets the id of the newest call
//!    of the same secret that asks for the same and whose answer has not arrived, or a new one.
//! 2. Once the agent has the answer, or the call is known to cost nothing, the door ends the call ([`AgentCalls::end`]): the same
//!    request is a new call then.
//!
//! A door that closes in between ends nothing. Its call is found for half an hour, and as long as it is open in the ledger. After
//! that, an agent that asks for the same wants a new answer.
//!
//! Invariant: a call is in the ledger before it leaves, so neither a restart of the node nor one of the door forgets it.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use farthing_control::types::{AgentCall, CallRequest};
use farthing_ledger::{Document, Ledger, LedgerError, Namespace};
use farthing_os::clock;
use farthing_protocol::{CallId, Hash, keccak256, wire};
use farthing_shared::blocking::run_blocking;
use minicbor::{Decode, Encode};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::approvals::AskingSecret;

/// An agent whose program starts again asks again within this.
const HELD_SECS: u64 = 30 * 60;
/// The most calls of one secret, and of all: revoked ones leave theirs.
const OF_SECRET_MAX: usize = 64;
const ALL_MAX: usize = 128 * OF_SECRET_MAX;
/// The longest id that a call may have.
const CALL_ID_BYTES_MAX: usize = 128;

/// One call, as the ledger has it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
struct NotedCall {
    #[n(0)]
    secret: String,
    #[n(1)]
    created_secs: Option<u64>,
    /// Hash of what it asks for.
    #[cbor(n(2), with = "minicbor::bytes")]
    asked: Hash,
    /// A UUID, or a text of the agent's own.
    #[n(3)]
    call_id: String,
    /// Seconds since the Unix epoch.
    #[n(4)]
    begun_secs: u64,
}

impl NotedCall {
    fn is_of(&self, by: &AskingSecret) -> bool {
        self.secret == by.name && self.created_secs == by.created_secs
    }

    /// The key of its document: secret and id.
    fn key(&self) -> Bytes {
        let Self { secret, created_secs, call_id, .. } = self;
        let parts = wire::encode(&(secret, created_secs, call_id));
        Bytes::copy_from_slice(&keccak256(&[b"farthing agent's call\0", &parts]))
    }
}

/// The noted calls, the oldest first.
#[derive(Debug, Default)]
struct NotedCalls(VecDeque<NotedCall>);

/// A call that was noted, and what it means for the others.
#[derive(Debug)]
struct Begun {
    call: NotedCall,
    was_noted: bool,
    /// Keys of the calls that were removed.
    removed: Vec<Bytes>,
}

impl NotedCalls {
    /// Notes a call. `is_open`: tells whether the end of a call is still not known.
    fn begin(
        &mut self,
        by: AskingSecret,
        (asked, named): (Hash, Option<String>),
        now_secs: u64,
        is_open: impl Fn(&NotedCall) -> bool,
    ) -> Begun {
        let mut removed = Vec::new();
        self.0.retain(|call| {
            let is_held = now_secs < call.begun_secs.saturating_add(HELD_SECS);
            let stays = !call.is_of(&by) || is_held || is_open(call);
            if !stays {
                removed.push(call.key());
            }
            stays
        });
        let is_it = |call: &&NotedCall| {
            call.is_of(&by) && named.as_ref().map_or(call.asked == asked, |id| *id == call.call_id)
        };
        let noted = self.0.iter().rev().find(is_it).map(|call| call.call_id.clone());
        let was_noted = noted.is_some();
        let call_id = named.or(noted).unwrap_or_else(|| Uuid::new_v4().to_string());
        self.end(&by, &call_id);
        removed.extend(self.make_room(&by));
        let AskingSecret { name, created_secs } = by;
        let call = NotedCall { secret: name, created_secs, asked, call_id, begun_secs: now_secs };
        self.0.push_back(call.clone());
        Begun { call, was_noted, removed }
    }

    fn end(&mut self, by: &AskingSecret, call_id: &str) -> Option<NotedCall> {
        let place = self.0.iter().position(|call| call.is_of(by) && call.call_id == call_id)?;
        self.0.remove(place)
    }

    /// Removes the oldest call of a secret that has too many, or else the oldest of all if these are too many.
    fn make_room(&mut self, by: &AskingSecret) -> Option<Bytes> {
        let own = || self.0.iter().enumerate().filter(|(_, call)| call.is_of(by));
        let place = match own().next() {
            Some((oldest, _)) if own().count() >= OF_SECRET_MAX => oldest,
            _ if self.0.len() >= ALL_MAX => 0,
            _ => return None,
        };
        self.0.remove(place).map(|call| call.key())
    }
}

/// The calls of agents whose answers have not arrived. A cheap handle.
#[derive(Clone, Debug)]
pub struct AgentCalls {
    ledger: Ledger,
    noted: Arc<Mutex<NotedCalls>>,
}

impl AgentCalls {
    /// Reads the calls that were noted before.
    ///
    /// # Errors
    /// [`LedgerError`] when the ledger cannot be read.
    pub fn restore(ledger: Ledger) -> Result<Self, LedgerError> {
        let stored = ledger.list(Namespace::AgentCalls)?.into_iter();
        let mut noted: Vec<NotedCall> =
            stored.filter_map(|(_, bytes)| minicbor::decode(&bytes).ok()).collect();
        noted.sort_by_key(|call| call.begun_secs);
        Ok(Self { ledger, noted: Arc::new(Mutex::new(NotedCalls(noted.into()))) })
    }

    /// Notes a call before it leaves, durably. The id that it names counts, or else that of the same call without an answer.
    ///
    /// # Errors
    /// [`LedgerError`] when it cannot be stored; then it must not leave.
    pub async fn begin(&self, by: AskingSecret, call: CallRequest) -> Result<AgentCall, LedgerError> {
        let named = call.call_id.clone();
        if let Some(call_id) = named.as_ref().filter(|id| id.len() > CALL_ID_BYTES_MAX) {
            // No call has this id: it is refused where it is bought.
            return Ok(AgentCall { call_id: call_id.clone(), was_noted: false });
        }
        let asked = run_blocking(move || hash(call)).await;
        let now_secs = clock::now_secs();
        let begun = self.noted.lock().begin(by, (asked, named), now_secs, |call| self.is_open(call));
        let Begun { call, was_noted, removed } = begun;
        let document = |key, value| Document { namespace: Namespace::AgentCalls, key, value };
        let noted = document(call.key(), Some(Bytes::from(wire::encode(&call))));
        // One that was removed may be noted again.
        let documents = removed.into_iter().map(|key| document(key, None)).chain([noted]);
        self.ledger.put_many(documents.collect()).await?;
        Ok(AgentCall { call_id: call.call_id, was_noted })
    }

    /// Ends a call, durably: its agent has the answer, or it cost nothing.
    ///
    /// # Errors
    /// [`LedgerError`] when that cannot be stored.
    pub async fn end(&self, by: &AskingSecret, call_id: String) -> Result<AgentCall, LedgerError> {
        let ended = self.noted.lock().end(by, &call_id);
        if let Some(call) = &ended {
            self.ledger.delete(Namespace::AgentCalls, call.key()).await?;
        }
        Ok(AgentCall { call_id, was_noted: ended.is_some() })
    }

    /// Tells whether the end of a call is not known. What cannot be read is not known.
    fn is_open(&self, call: &NotedCall) -> bool {
        let id = call.call_id.parse::<CallId>();
        id.is_ok_and(|id| !matches!(self.ledger.promise_of(id), Ok(None)))
    }
}

/// Hash of what a call asks for, whatever its id and its highest price. Nobody finds two calls with one hash, of which the user
/// sees one.
fn hash(call: CallRequest) -> Hash {
    let call = CallRequest { call_id: None, max_price: None, ..call };
    let text = serde_json::to_vec(&call).expect("texts and numbers are always JSON");
    keccak256(&[b"farthing agent's request\0", &text])
}

#[cfg(test)]
mod tests {
    use farthing_ledger::OpenMode;
    use serde_json::json;

    use super::*;

    fn agent(name: &str) -> AskingSecret {
        AskingSecret { name: name.to_owned(), created_secs: Some(7) }
    }

    /// Begins a call that asks for a number, and tells its id and whether it was noted before.
    fn begin(
        noted: &mut NotedCalls,
        by: &AskingSecret,
        (asked, now_secs): (u8, u64),
        is_open: bool,
    ) -> (String, bool) {
        let Begun { call, was_noted, .. } =
            noted.begin(by.clone(), ([asked; 32], None), now_secs, |_| is_open);
        (call.call_id, was_noted)
    }

    #[test]
    fn a_call_without_an_answer_is_found_by_the_same_secret_until_it_ends() {
        let (mut noted, by) = (NotedCalls::default(), agent("a"));
        let (first, was_noted) = begin(&mut noted, &by, (1, 0), false);
        assert!(!was_noted);
        assert_eq!(begin(&mut noted, &by, (1, 1), false), (first.clone(), true));
        let later = AskingSecret { created_secs: Some(8), ..by.clone() };
        for (other, asked) in [(&by, 2), (&agent("b"), 1), (&later, 1)] {
            assert!(!begin(&mut noted, other, (asked, 1), false).1, "{other:?} {asked}");
        }
        assert_eq!(noted.end(&agent("b"), &first), None, "another secret ends none of its calls");
        assert!(noted.end(&by, &first).is_some());
        assert_ne!(begin(&mut noted, &by, (1, 1), false).0, first);
        let named = noted.begin(by.clone(), ([1; 32], Some("own".to_owned())), 2, |_| false);
        assert_eq!((named.call.call_id.as_str(), named.was_noted), ("own", false));
        assert_eq!(begin(&mut noted, &by, (1, 2), false), ("own".to_owned(), true), "the newest");
    }

    #[test]
    fn a_call_without_an_answer_is_found_for_half_an_hour_and_as_long_as_it_is_open() {
        let (mut noted, by) = (NotedCalls::default(), agent("a"));
        let (first, _) = begin(&mut noted, &by, (1, 5), false);
        let last = 5 + HELD_SECS - 1;
        assert_eq!(begin(&mut noted, &by, (1, last), false), (first.clone(), true));
        let late = last + HELD_SECS;
        assert_eq!(begin(&mut noted, &by, (1, late), true), (first.clone(), true), "its end is not known");
        let begun = noted.begin(by.clone(), ([1; 32], None), late + HELD_SECS, |_| false);
        assert!(!begun.was_noted && begun.call.call_id != first);
        assert_eq!((begun.removed.len(), noted.0.len()), (1, 1));
    }

    #[test]
    fn one_secret_takes_no_room_of_others_and_all_are_bounded() {
        let (mut noted, by) = (NotedCalls::default(), agent("a"));
        begin(&mut noted, &agent("b"), (1, 0), false);
        let first = begin(&mut noted, &by, (0, 0), false).0;
        for asked in 1..=u8::try_from(OF_SECRET_MAX).unwrap() {
            begin(&mut noted, &by, (asked, 0), false);
        }
        assert_eq!(noted.0.len(), OF_SECRET_MAX + 1);
        assert_ne!(begin(&mut noted, &by, (0, 0), false).0, first, "the oldest made room");
        assert!(begin(&mut noted, &agent("b"), (1, 0), false).1);
        let revoked = noted.0[0].clone();
        noted.0.resize(ALL_MAX, NotedCall { secret: "c".to_owned(), ..revoked });
        assert!(!begin(&mut noted, &agent("d"), (1, 0), false).1);
        assert_eq!(noted.0.len(), ALL_MAX, "the oldest of all made room");
    }

    #[tokio::test]
    async fn a_restart_of_the_node_forgets_no_call_and_brings_none_back() {
        let folder = tempfile::tempdir().unwrap();
        let open = |mode| {
            AgentCalls::restore(Ledger::open(&folder.path().join("ledger.redb"), mode).unwrap()).unwrap()
        };
        let call = |max_price: &str| -> CallRequest {
            serde_json::from_value(json!({
                "api_id_public": "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b", "method": "GET", "path": "/a",
                "max_price": max_price,
            }))
            .unwrap()
        };
        let calls = open(OpenMode::Create);
        let by = agent("a");
        let first = calls.begin(by.clone(), call("1")).await.unwrap();
        drop(calls);
        let calls = open(OpenMode::Existing);
        let again = calls.begin(by.clone(), call("2")).await.unwrap();
        assert_eq!(again, AgentCall { was_noted: true, ..first.clone() });
        assert!(calls.end(&by, first.call_id.clone()).await.unwrap().was_noted);
        assert!(!calls.end(&by, first.call_id.clone()).await.unwrap().was_noted);
        drop(calls);
        let next = open(OpenMode::Existing).begin(by, call("1")).await.unwrap();
        assert!(!next.was_noted && next.call_id != first.call_id);
    }
}
