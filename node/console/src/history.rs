//! The sandbox's questions and answers: kept for each session, in memory and bounded, so that a page
//! can show an answer as often as it is loaded and nothing is paid for again.
//!
//! Invariant: a session sees its own exchanges only. What is left out here is not lost: the ledger has every
//! purchase, and Activity lists it.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use bytes::Bytes;
use farthing_control::types::Problem;
use farthing_values::{CallId, ServiceId};
use parking_lot::Mutex;

use super::access::SessionId;

/// Sessions with a history; the one unused for longest is forgotten first.
const SESSIONS_MAX: usize = 8;
/// Exchanges of a session; more than a screen of them.
const EXCHANGES_MAX: usize = 20;
/// Bodies of all answers: the largest that a call can bring, and some more. The oldest go first.
const BODIES_BYTES_MAX: usize = 96 * 1024 * 1024;

/// The stage that an exchange is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallStage {
    /// Somebody waits for the answer.
    UnderWay,
    /// The same, and the person at the browser waits no more.
    LetGo,
    Ended,
}

/// The party that an exchange asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskedParty {
    /// An owner of this network.
    Owner,
    X402Server,
}

/// One press of a button.
#[derive(Debug, Clone)]
pub(super) struct Exchange {
    /// Of a sample as well, which has no other use for it.
    pub(super) call_id: CallId,
    pub(super) service: ServiceId,
    pub(super) asked: AskedParty,
    pub(super) at_secs: u64,
    /// The same moment, for what is counted from it: the time of day can be set.
    pub(super) began: Instant,
    /// True for a call, false for a free sample.
    pub(super) live: bool,
    pub(super) stage: CallStage,
    /// `GET /v1/things`
    pub(super) operation: String,
    /// Fields of the form as they were sent.
    pub(super) fields: Vec<(String, String)>,
    pub(super) answer: Answer,
}

/// The answer that came back.
#[derive(Debug, Clone, Default)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) media_type: String,
    /// The origin of a sample, in words.
    pub(super) origin: &'static str,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
    /// The network's word in place of the service's.
    pub(super) problem: Option<Problem>,
    /// USDC as the gateway says it; empty when it does not.
    pub(super) charged: String,
    pub(super) receipt: String,
    /// Parts of the time taken: name and microseconds.
    pub(super) timing: Vec<(String, u64)>,
    /// As this page waited, in microseconds.
    pub(super) took_us: u64,
}

/// An exchange, and whether its body is still here.
#[derive(Debug, Clone)]
pub(super) struct StoredExchange {
    pub(super) exchange: Arc<Exchange>,
    pub(super) has_body: bool,
}

#[derive(Debug, Default)]
pub(super) struct History(Mutex<Vec<Own>>);

/// One session's, the newest first.
#[derive(Debug)]
struct Own {
    session: SessionId,
    kept: VecDeque<StoredExchange>,
}

impl StoredExchange {
    /// Returns whether nothing new comes of pressing the same button again: it is waited for, or its answer is here.
    fn stands(&self) -> bool {
        let is_answered = self.exchange.answer.problem.is_none() && self.has_body;
        self.exchange.stage != CallStage::Ended || is_answered
    }
}

impl History {
    /// Keeps an exchange in place of an earlier one with the same call id.
    pub(super) fn keep(&self, session: SessionId, exchange: Exchange) {
        keep_in(&mut self.0.lock(), session, exchange);
    }

    /// Keeps a call that is to begin; false where it has begun before, and is waited for again or answered.
    pub(super) fn begin(&self, session: SessionId, exchange: Exchange) -> bool {
        let mut all = self.0.lock();
        if let Some(begun) = find(&mut all, session, exchange.call_id).filter(|begun| begun.stands()) {
            if begun.exchange.stage == CallStage::LetGo {
                Arc::make_mut(&mut begun.exchange).stage = CallStage::UnderWay;
            }
            return false;
        }
        keep_in(&mut all, session, exchange);
        true
    }

    /// Notes that nobody waits any more for a call that is under way.
    pub(super) fn let_go(&self, session: SessionId, call_id: CallId) {
        let mut all = self.0.lock();
        let found = find(&mut all, session, call_id);
        if let Some(found) = found.filter(|found| found.exchange.stage == CallStage::UnderWay) {
            Arc::make_mut(&mut found.exchange).stage = CallStage::LetGo;
        }
    }

    /// Exchanges with one service, the newest first.
    pub(super) fn of(&self, session: SessionId, service: ServiceId) -> Vec<StoredExchange> {
        let all = self.0.lock();
        let own = all.iter().find(|own| own.session == session);
        let kept = own.into_iter().flat_map(|own| &own.kept);
        kept.filter(|kept| kept.exchange.service == service).cloned().collect()
    }
}

fn find(all: &mut [Own], session: SessionId, call_id: CallId) -> Option<&mut StoredExchange> {
    let own = all.iter_mut().find(|own| own.session == session)?;
    own.kept.iter_mut().find(|kept| kept.exchange.call_id == call_id)
}

fn keep_in(all: &mut Vec<Own>, session: SessionId, mut exchange: Exchange) {
    // A copy, within this history's own bound: the answer itself takes memory from calls for as long as it is held.
    exchange.answer.body = Bytes::copy_from_slice(&exchange.answer.body);
    let at = all.iter().position(|own| own.session == session);
    let mut own = at.map_or_else(|| Own { session, kept: VecDeque::new() }, |at| all.remove(at));
    own.kept.retain(|kept| kept.exchange.call_id != exchange.call_id);
    own.kept.push_front(StoredExchange { exchange: Arc::new(exchange), has_body: true });
    own.kept.truncate(EXCHANGES_MAX);
    // The session used last stands first.
    all.insert(0, own);
    all.truncate(SESSIONS_MAX);
    drop_bodies(all);
}

/// Forgets the oldest bodies beyond the bound; what was charged stays to be seen.
fn drop_bodies(all: &mut [Own]) {
    let bytes = |kept: &StoredExchange| kept.exchange.answer.body.len();
    let mut total: usize = all.iter().flat_map(|own| &own.kept).map(bytes).sum();
    while total > BODIES_BYTES_MAX {
        let with_body = all
            .iter_mut()
            .flat_map(|own| own.kept.iter_mut())
            .filter(|kept| !kept.exchange.answer.body.is_empty());
        let Some(oldest) = with_body.min_by_key(|kept| kept.exchange.began) else { return };
        total -= bytes(oldest);
        let mut without = Exchange::clone(&oldest.exchange);
        without.answer.body = Bytes::new();
        *oldest = StoredExchange { exchange: Arc::new(without), has_body: false };
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::access::Token;

    const SERVICE: ServiceId = ServiceId::from_bytes([7; 16]);

    fn session(name: &str) -> SessionId {
        Token::presented(name).id()
    }

    fn exchange(number: u8, bytes: usize) -> Exchange {
        Exchange {
            call_id: CallId::from_bytes([number; 16]),
            service: SERVICE,
            asked: AskedParty::Owner,
            at_secs: u64::from(number),
            began: Instant::now() + Duration::from_secs(number.into()),
            live: true,
            stage: CallStage::Ended,
            operation: "GET /a".to_owned(),
            fields: Vec::new(),
            answer: Answer { body: vec![0; bytes].into(), ..Answer::default() },
        }
    }

    #[test]
    fn a_session_sees_its_own_newest_exchanges_only() {
        let history = History::default();
        for number in 0..=EXCHANGES_MAX {
            history.keep(session("a"), exchange(u8::try_from(number).unwrap(), 1));
        }
        let kept = history.of(session("a"), SERVICE);
        assert_eq!(kept.len(), EXCHANGES_MAX);
        assert_eq!(kept[0].exchange.at_secs, EXCHANGES_MAX as u64, "the newest is the first");
        assert!(history.of(session("b"), SERVICE).is_empty());
        assert!(history.of(session("a"), ServiceId::from_bytes([8; 16])).is_empty());
        history.keep(session("a"), exchange(5, 2));
        let kept = history.of(session("a"), SERVICE);
        assert_eq!((kept.len(), kept[0].exchange.at_secs), (EXCHANGES_MAX, 5), "a repeat takes its place");
    }

    #[test]
    fn a_call_begins_once_is_let_go_and_waited_for_again_and_its_answer_stays() {
        let history = History::default();
        let begun = || Exchange { stage: CallStage::UnderWay, ..exchange(1, 0) };
        let call_id = begun().call_id;
        let stage = || history.of(session("a"), SERVICE)[0].exchange.stage;
        assert!(history.begin(session("a"), begun()));
        assert!(!history.begin(session("a"), begun()), "it is under way");
        history.let_go(session("b"), call_id);
        assert_eq!(stage(), CallStage::UnderWay, "another log-in lets nothing go");
        history.let_go(session("a"), call_id);
        assert_eq!(stage(), CallStage::LetGo);
        assert!(!history.begin(session("a"), begun()));
        assert_eq!(stage(), CallStage::UnderWay, "waited for again");
        history.let_go(session("a"), call_id);
        history.keep(session("a"), exchange(1, 2));
        assert_eq!(stage(), CallStage::Ended);
        history.let_go(session("a"), call_id);
        assert!(!history.begin(session("a"), begun()), "the answer is here");
        assert_eq!((stage(), history.of(session("a"), SERVICE).len()), (CallStage::Ended, 1));
        let mut failed = exchange(1, 0);
        failed.answer.problem = Some(Problem::of_status(http::StatusCode::BAD_GATEWAY, "", ""));
        history.keep(session("a"), failed);
        assert!(history.begin(session("a"), begun()), "what failed is tried again");
    }

    #[test]
    fn the_session_unused_for_longest_is_forgotten() {
        let history = History::default();
        for number in 0..=SESSIONS_MAX {
            history.keep(session(&number.to_string()), exchange(1, 1));
        }
        assert!(history.of(session("0"), SERVICE).is_empty());
        assert_eq!(history.of(session("1"), SERVICE).len(), 1);
    }

    #[test]
    fn the_oldest_bodies_go_and_what_was_charged_stays() {
        let history = History::default();
        for number in 1..=4 {
            history.keep(session("a"), exchange(number, BODIES_BYTES_MAX / 3));
        }
        let kept = history.of(session("a"), SERVICE);
        let bodies: Vec<bool> = kept.iter().map(|kept| kept.has_body).collect();
        assert_eq!(bodies, [true, true, true, false]);
        assert!(kept[3].exchange.answer.body.is_empty());
    }
}
