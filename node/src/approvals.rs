//! Calls that agents ask their user to approve, because they cost more than the user set for their secret.
//!
//! 1. An agent's door asks for a call that the node refused as too dear ([`Approvals::ask`]): the call waits.
//! 2. The user approves or refuses it, in the console or on the command line.
//! 3. The door asks for the same call again. If it is approved, the approval is taken out and the door buys the call.
//!
//! Invariant: an approval is for exactly one call of one secret, for the approved price at most, once, and for a limited time. All of
//! it is in memory, so a restart ends it.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use farthing_control::types::{APPROVAL_KIB_MAX, Approval, ApprovalRequest, ApprovalState};
use farthing_os::clock;
use parking_lot::Mutex;
use tokio::time::Instant;
use uuid::Uuid;

/// A user who is away finds the call for so long.
const WAITS: Duration = Duration::from_secs(30 * 60);
/// An agent that was told of the decision comes back within this.
const HOLDS: Duration = Duration::from_secs(10 * 60);
/// The most calls of one secret, and of all; with the size of each, 4 MiB of memory.
const OF_SECRET_MAX: usize = 16;
const ALL_MAX: usize = 256;

/// An error that keeps a call from being asked about, approved or refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalError {
    #[error("a call of more than {APPROVAL_KIB_MAX} KiB cannot be approved")]
    TooLarge,
    #[error("no call with this id waits for approval")]
    NotFound,
}

impl ApprovalError {
    #[must_use]
    pub const fn next_step(self) -> &'static str {
        match self {
            Self::TooLarge => "Shorten its parameters and its body.",
            Self::NotFound => {
                "It may have expired or been decided: `farthing mcp approvals` lists the calls that wait."
            }
        }
    }
}

/// The secret that an agent buys with. One that was created later with its name is another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskingSecret {
    pub name: String,
    /// `None` for the default one.
    pub created_secs: Option<u64>,
}

/// One call.
#[derive(Debug)]
struct AskedCall {
    by: AskingSecret,
    approval: Approval,
    ends: Instant,
}

impl AskedCall {
    fn shown(&self, now: Instant) -> Approval {
        let expires_in_secs = self.ends.saturating_duration_since(now).as_secs();
        Approval { expires_in_secs, ..self.approval.clone() }
    }
}

/// The calls that wait for a user, and those about which the user has decided. A cheap handle.
#[derive(Clone, Debug, Default)]
pub struct Approvals(Arc<Mutex<VecDeque<AskedCall>>>);

impl Approvals {
    /// Asks the user to approve a call, once. If the user approved this call at this price or a higher one, returns it as approved
    /// and ends the approval.
    ///
    /// # Errors
    /// [`ApprovalError::TooLarge`].
    pub fn ask(&self, by: AskingSecret, request: ApprovalRequest) -> Result<Approval, ApprovalError> {
        self.ask_at(by, request, Instant::now())
    }

    fn ask_at(
        &self,
        by: AskingSecret,
        request: ApprovalRequest,
        now: Instant,
    ) -> Result<Approval, ApprovalError> {
        let ApprovalRequest { call, price, above } = request;
        let call = call.to_approve().ok_or(ApprovalError::TooLarge)?;
        let mut all = self.0.lock();
        all.retain(|asked| asked.ends > now);
        let place = all.iter().position(|asked| asked.by == by && asked.approval.call == call);
        if let Some(known) = place.and_then(|place| all.remove(place)) {
            let shown = known.shown(now);
            let covers = known.approval.price.0 >= price.0;
            match shown.state {
                ApprovalState::Approved if covers => return Ok(shown),
                ApprovalState::Approved | ApprovalState::Waiting if !covers => {}
                ApprovalState::Approved | ApprovalState::Waiting | ApprovalState::Refused => {
                    all.push_back(known);
                    return Ok(shown);
                }
            }
        }
        let approval = Approval {
            id: Uuid::new_v4().to_string(),
            secret: by.name.clone(),
            state: ApprovalState::Waiting,
            call,
            service_name: String::new(),
            price,
            above,
            asked_secs: clock::now_secs(),
            expires_in_secs: 0,
            url: String::new(),
        };
        let asked = AskedCall { by, approval, ends: now + WAITS };
        let shown = asked.shown(now);
        make_room(&mut all, &asked.by);
        all.push_back(asked);
        Ok(shown)
    }

    /// Lists the calls that wait and those that were decided and did not expire, the newest first.
    #[must_use]
    pub fn all(&self) -> Vec<Approval> {
        let now = Instant::now();
        let mut all = self.0.lock();
        all.retain(|asked| asked.ends > now);
        all.iter().rev().map(|asked| asked.shown(now)).collect()
    }

    /// Approves a call that waits, for one purchase within ten minutes.
    ///
    /// # Errors
    /// [`ApprovalError::NotFound`].
    pub fn approve(&self, id: &str) -> Result<Approval, ApprovalError> {
        self.decide_at(id, ApprovalState::Approved, Instant::now())
    }

    /// Refuses a call. One that was approved and not bought yet is not bought any more.
    ///
    /// # Errors
    /// [`ApprovalError::NotFound`].
    pub fn refuse(&self, id: &str) -> Result<Approval, ApprovalError> {
        self.decide_at(id, ApprovalState::Refused, Instant::now())
    }

    fn decide_at(&self, id: &str, state: ApprovalState, now: Instant) -> Result<Approval, ApprovalError> {
        let mut all = self.0.lock();
        all.retain(|asked| asked.ends > now);
        let asked = all.iter_mut().find(|asked| {
            let is_open = asked.approval.state == ApprovalState::Waiting || state == ApprovalState::Refused;
            asked.approval.id == id && is_open
        });
        let asked = asked.ok_or(ApprovalError::NotFound)?;
        asked.approval.state = state;
        asked.ends = now + HOLDS;
        Ok(asked.shown(now))
    }
}

/// Removes the oldest call of a secret that has too many, or the oldest of all.
fn make_room(all: &mut VecDeque<AskedCall>, by: &AskingSecret) {
    if all.iter().filter(|asked| asked.by == *by).count() >= OF_SECRET_MAX
        && let Some(oldest) = all.iter().position(|asked| asked.by == *by)
    {
        all.remove(oldest);
    } else if all.len() >= ALL_MAX {
        all.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use farthing_control::types::CallRequest;
    use farthing_protocol::Usdc;
    use serde_json::json;

    use super::*;

    fn agent(name: &str) -> AskingSecret {
        AskingSecret { name: name.to_owned(), created_secs: Some(7) }
    }

    fn call(path: &str) -> CallRequest {
        serde_json::from_value(json!({
            "api_id_public": "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b", "method": "GET", "path": path,
            "max_price": "1", "call_id": "c1",
        }))
        .unwrap()
    }

    /// Asks for a call at a time.
    fn asks(approvals: &Approvals, by: &AskingSecret, (path, micros): (&str, u64), now: Instant) -> Approval {
        let amount = |micros| Usdc::from_micros(micros).into();
        let request = ApprovalRequest { call: call(path), price: amount(micros), above: amount(1) };
        approvals.ask_at(by.clone(), request, now).unwrap()
    }

    #[test]
    fn an_approval_is_for_one_call_of_one_secret_at_its_price_at_most_and_once() {
        let (approvals, by, now) = (Approvals::default(), agent("a"), Instant::now());
        let asks = |by: &AskingSecret, path: &str, micros: u64| asks(&approvals, by, (path, micros), now);
        let first = asks(&by, "/a", 5);
        assert_eq!(first.state, ApprovalState::Waiting);
        assert_eq!((&first.call.call_id, first.call.max_price), (&None, None));
        assert_eq!(asks(&by, "/a", 5).id, first.id, "the same question is asked once");
        assert_eq!(approvals.approve(&first.id).unwrap().state, ApprovalState::Approved);
        assert_eq!(approvals.approve(&first.id), Err(ApprovalError::NotFound), "and decided once");
        let later = AskingSecret { created_secs: Some(8), ..by.clone() };
        for (other, path) in [(by.clone(), "/b"), (agent("b"), "/a"), (later, "/a")] {
            assert_eq!(asks(&other, path, 5).state, ApprovalState::Waiting, "{other:?} {path}");
        }
        assert_eq!(asks(&by, "/a", 5).state, ApprovalState::Approved);
        let again = asks(&by, "/a", 5);
        assert_eq!(again.state, ApprovalState::Waiting, "an approval buys once");
        approvals.approve(&again.id).unwrap();
        let dearer = asks(&by, "/a", 6);
        assert_eq!(dearer.state, ApprovalState::Waiting, "a higher price is asked about");
        assert_ne!(dearer.id, again.id);
        approvals.approve(&dearer.id).unwrap();
        assert_eq!(asks(&by, "/a", 4).state, ApprovalState::Approved, "a lower one is not");
    }

    #[test]
    fn a_call_expires_and_a_refused_one_stays_refused_until_then() {
        let (approvals, by, start) = (Approvals::default(), agent("a"), Instant::now());
        let asks = |now: Instant| asks(&approvals, &by, ("/a", 5), now);
        let decide = |id: &str, state, now| approvals.decide_at(id, state, now).map(|one| one.state);
        let first = asks(start);
        assert_eq!(first.expires_in_secs, WAITS.as_secs());
        let (late, gone) = (start + WAITS, Err(ApprovalError::NotFound));
        assert_eq!(decide(&first.id, ApprovalState::Approved, late), gone);
        let second = asks(late);
        assert_eq!(decide(&second.id, ApprovalState::Approved, late), Ok(ApprovalState::Approved));
        let later = late + HOLDS;
        let third = asks(later);
        assert_eq!(third.state, ApprovalState::Waiting, "the approval has expired");
        assert_eq!(decide(&third.id, ApprovalState::Approved, later), Ok(ApprovalState::Approved));
        assert_eq!(decide(&third.id, ApprovalState::Refused, later), Ok(ApprovalState::Refused));
        assert_eq!(asks(later).state, ApprovalState::Refused);
        assert_eq!(asks(later + HOLDS).state, ApprovalState::Waiting);
    }

    #[test]
    fn an_agent_takes_no_room_of_others_and_asks_about_no_call_too_long_to_read() {
        let (approvals, now) = (Approvals::default(), Instant::now());
        asks(&approvals, &agent("b"), ("/first", 5), now);
        for number in 0..3 * OF_SECRET_MAX {
            asks(&approvals, &agent("a"), (&format!("/{number}"), 5), now);
        }
        let all = approvals.all();
        assert_eq!(all.len(), OF_SECRET_MAX + 1);
        assert_eq!(all.last().unwrap().call.path, "/first");
        for number in 0..2 * ALL_MAX {
            asks(&approvals, &agent(&number.to_string()), ("/a", 5), now);
        }
        assert_eq!(approvals.all().len(), ALL_MAX);
        let long = call(&format!("/{}", "x".repeat(APPROVAL_KIB_MAX * 1024)));
        let amount = Usdc::from_micros(5);
        let request = ApprovalRequest { call: long, price: amount.into(), above: amount.into() };
        assert_eq!(approvals.ask(agent("a"), request), Err(ApprovalError::TooLarge));
    }
}
