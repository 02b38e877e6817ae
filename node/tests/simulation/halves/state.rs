//! What the tasks of one history share: chance, the log, the connection, the owner that is there, and its service.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use farthing_ledger::{Ledger, ServedRow};
use farthing_network::{InboundCall, Origin};
use farthing_node::consumer::{Bought, BuyError};
use farthing_owner::{
    book::Book,
    upstream::{PlayedRequest, PlayedServer},
};
use farthing_protocol::{Address, CallId, ChannelId, SignedClose, Usdc, call::Method};
use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::mpsc, time::Instant};

use super::hostile::{FORGED, Hostile};
use crate::{books, choices::Choices, play::Failed, service::Service};

/// Longer than an owner takes to store an answer.
const STORED_WITHIN: Duration = Duration::from_secs(3);
/// The time that an owner gives its service. No caller waits as long: work with effects goes on without it.
pub const SERVICE_WITHIN: Duration = Duration::from_secs(30);
/// Between a call's arrival and the question to its service.
const ADMITTED_WITHIN: Duration = Duration::from_millis(100);
/// The times of an answer that comes, if the call has effects, mostly after its caller's deadline.
const TOO_SLOW_MS: [u64; 2] = [8_000, 28_000];

/// A cheap handle.
#[derive(Clone)]
pub struct State(Arc<Mutex<Shared>>);

pub struct Shared {
    pub choices: Choices,
    /// Cleared when faults stop.
    pub has_faults: bool,
    pub usual: Usual,
    pub owner: Option<OwnerThere>,
    /// The ledger of each consumer's newest run, by its wallet.
    pub consumers: BTreeMap<Address, Ledger>,
    /// The side that breaks the rules, if one does.
    pub hostile: Option<Hostile>,
    /// Another one for each start of the owner.
    pub run: u64,
    pub connection: Connection,
    pub service: Service,
    /// The body that the service was sent last, and the one that it answers with.
    pub sent: Bytes,
    pub answer: Bytes,
    /// Promises that the service saw broken.
    pub broken: Vec<String>,
    /// What the service answers, as far as its owner has stored it.
    answers: Vec<ServiceAnswer>,
    /// Calls that it answers well, whatever became of the owner's disk.
    answered_ever: BTreeSet<u64>,
    /// Calls that came while their channel was being closed, and when.
    came_late: BTreeMap<u64, Instant>,
    /// The closes that the owner has signed.
    pub closes: Vec<SignedClose>,
    /// Nothing gets through between the two nodes.
    pub is_cut: bool,
    /// How often each call was ordered, and the charge that its last caller was told.
    orders: BTreeMap<u64, (u32, Option<Usdc>)>,
    log: Vec<String>,
    started: Instant,
}

/// The course of things while nothing goes wrong, and an outage of the service.
#[derive(Clone, Copy)]
pub struct Usual {
    /// The longest that a message is on its way, in milliseconds.
    pub way_ms_max: u64,
    /// The shortest and the longest time in which the service answers, in milliseconds.
    pub service_ms: [u64; 2],
    /// Whether the service answers with an error instead.
    pub is_service_failing: bool,
}

/// An answer of the service.
#[derive(Clone, Copy)]
struct ServiceAnswer {
    number: u64,
    at: Instant,
    is_good: bool,
}

/// The owner's node as it can be reached now.
#[derive(Clone)]
pub struct OwnerThere {
    pub calls: mpsc::Sender<InboundCall>,
    pub ledger: Ledger,
    pub book: Book,
}

impl OwnerThere {
    /// Everybody with a channel.
    fn payers(&self) -> BTreeSet<Address> {
        self.book.all().into_iter().map(|(_, channel)| channel.config.payer).collect()
    }

    /// Whether a channel is being closed, and no call runs on it.
    fn is_closing_idle(&self, channel: ChannelId) -> bool {
        let state = self.book.get(channel).map(|channel| channel.state);
        state.is_some_and(|state| state.closing && state.reserved.is_zero())
    }
}

/// The newest connection between the two nodes. Each call has streams of its own, so calls overtake each other: only the messages of
/// one call arrive in order. Those of no call arrive after all that were sent before them, and before all that are sent later.
pub struct Connection {
    pub origin: Origin,
    last_arrival: Instant,
    /// The arrival of the last message of no call.
    last_of_none: Instant,
    last_of_call: BTreeMap<u64, Instant>,
}

impl Connection {
    fn new(number: u64) -> Self {
        let since = Instant::now();
        let last_of_call = BTreeMap::new();
        Self { origin: Origin { number, since }, last_arrival: since, last_of_none: since, last_of_call }
    }

    /// The time at which a message of a call, or of none, arrives that takes until then if nothing is before it.
    fn arrival(&mut self, call: Option<u64>, until: Instant) -> Instant {
        let before = match call {
            Some(call) => {
                self.last_of_call.get(&call).map_or(self.last_of_none, |last| self.last_of_none.max(*last))
            }
            None => self.last_arrival,
        };
        let at = until.max(before + Duration::from_millis(1));
        self.last_arrival = self.last_arrival.max(at);
        match call {
            Some(call) => {
                self.last_of_call.insert(call, at);
            }
            None => self.last_of_none = at,
        }
        at
    }
}

impl Shared {
    /// A time between these, in milliseconds.
    pub fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.choices.u64_below(most - least + 1))
    }

    /// The time at which a message of a call, or of none, arrives that takes so long.
    pub fn arrival(&mut self, call: Option<u64>, takes: Duration) -> Instant {
        self.connection.arrival(call, Instant::now() + takes)
    }

    /// Cuts the line, or mends it.
    pub fn cut(&mut self, is_cut: bool) {
        self.is_cut = is_cut;
        self.reconnect();
        self.tell(if is_cut { "the line is cut" } else { "the line is mended" });
    }

    /// Connects anew.
    pub fn reconnect(&mut self) {
        self.connection = Connection::new(self.connection.origin.number + 1);
    }

    pub fn tell(&mut self, line: impl AsRef<str>) {
        let at = self.started.elapsed().as_secs_f64();
        self.log.push(format!("{at:>8.3} {}", line.as_ref()));
    }

    /// Forgets the answers that an owner may not have stored whose disk stores nothing more since then.
    pub fn lose_answers_since(&mut self, died: Instant) {
        let stored = died - STORED_WITHIN;
        self.answers.retain(|answer| answer.at < stored);
    }

    /// Forgets everything that the service did: the owner's ledger is put back to what it was before.
    pub fn forget_served(&mut self) {
        self.answers.clear();
        self.service = Service::default();
    }

    /// Calls that the service answered well while their owner lived on.
    pub fn answered(&self) -> impl Iterator<Item = u64> {
        self.answers.iter().filter(|answer| answer.is_good).map(|answer| answer.number)
    }

    /// Calls that the service answered, well or with an error, while their owner lived on.
    pub fn ended(&self) -> impl Iterator<Item = u64> {
        self.answers.iter().map(|answer| answer.number)
    }

    /// Notes that a call arrives, to be paid on this channel.
    pub fn note_arrival(&mut self, number: u64, channel: ChannelId) {
        let is_closing = self.owner.as_ref().is_some_and(|owner| owner.is_closing_idle(channel));
        if is_closing && !self.service.has_executed(call_id(number)) {
            self.came_late.insert(number, Instant::now());
        } else {
            self.came_late.remove(&number);
        }
    }

    /// Whether the service answered a call well, in whatever run of its owner.
    pub fn is_answered(&self, number: u64) -> bool {
        self.answered_ever.contains(&number)
    }

    /// What the callers of calls that were ordered once were told of their charge. An order that is repeated can be refused before
    /// anybody looks at what became of it, and be charged by another one.
    pub fn told(&self) -> impl Iterator<Item = (u64, Usdc)> {
        let once = |(number, (times, told)): (&u64, &(u32, Option<Usdc>))| match (times, told) {
            (1, Some(charged)) => Some((*number, *charged)),
            _ => None,
        };
        self.orders.iter().filter_map(once)
    }

    /// Whether no caller has repeated a call.
    pub fn is_ordered_once(&self, number: u64) -> bool {
        self.orders.get(&number).is_some_and(|(times, _)| *times == 1)
    }

    /// The charge that the caller of a call was told, once it has ended for certain.
    pub fn told_of(&self, number: u64) -> Option<Usdc> {
        self.orders.get(&number).and_then(|(_, told)| *told)
    }

    /// Whether an answer or a charge of a call is stored, whoever pays for it.
    fn has_ended(&self, call_id: CallId) -> bool {
        let Some(owner) = &self.owner else { return false };
        owner.payers().into_iter().any(|payer| {
            let row = owner.ledger.served(payer, call_id).unwrap();
            matches!(row, Some(ServedRow::Done(row)) if row.receipt.is_final())
        })
    }
}

impl State {
    /// To be made in the runtime of its history, of which a seed makes so many steps.
    pub fn new(history: &[u8], seed_steps: usize) -> Self {
        let started = Instant::now();
        Self(Arc::new(Mutex::new(Shared {
            choices: Choices::of(history, seed_steps),
            has_faults: true,
            usual: Usual { way_ms_max: 300, service_ms: [1, 200], is_service_failing: false },
            owner: None,
            consumers: BTreeMap::new(),
            hostile: None,
            run: 0,
            connection: Connection::new(0),
            service: Service::default(),
            sent: Bytes::new(),
            answer: Bytes::from_static(b"{}"),
            broken: Vec::new(),
            answers: Vec::new(),
            answered_ever: BTreeSet::new(),
            came_late: BTreeMap::new(),
            closes: Vec::new(),
            is_cut: false,
            orders: BTreeMap::new(),
            log: Vec::new(),
            started,
        })))
    }

    pub fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock()
    }

    pub fn tell(&self, line: impl AsRef<str>) {
        self.lock().tell(line);
    }

    /// Begins the next step; false after the last one.
    pub fn begin_step(&self) -> bool {
        self.lock().choices.begin_step()
    }

    /// Notes that a caller orders a call.
    pub fn ordered(&self, number: u64) {
        let mut shared = self.lock();
        shared.tell(format!("order {number}"));
        shared.orders.entry(number).or_default().0 += 1;
    }

    /// Notes what a caller is told at the end of a call.
    pub fn ended(&self, number: u64, end: &Result<Bought, BuyError>) {
        let (words, charged) = match end {
            Ok(bought) => {
                let charged =
                    bought.charged.map_or_else(|| "nobody knows what".to_owned(), |usdc| usdc.to_string());
                (format!("status {}, {charged} charged", bought.status), bought.charged)
            }
            Err(error) => (error.to_string(), is_told_free(error).then_some(Usdc::ZERO)),
        };
        let mut shared = self.lock();
        if end.as_ref().is_ok_and(|bought| bought.body == FORGED) {
            shared
                .broken
                .push(format!("the caller of {number} gets an answer that its owner did not sign for it"));
        }
        shared.tell(format!("end of {number}: {words}"));
        shared.orders.entry(number).or_default().1 = charged;
    }

    /// What happened so far, a line each.
    pub fn log(&self) -> String {
        self.lock().log.join("\n")
    }

    /// What the ledgers of each consumer and of the owner hold, as far as both are there.
    pub fn books(&self) -> String {
        let (consumers, owner) = {
            let shared = self.lock();
            (shared.consumers.clone(), shared.owner.as_ref().map(|owner| owner.ledger.clone()))
        };
        let mut lines = Vec::new();
        for (payer, ledger) in &consumers {
            lines.push(format!("the consumer {payer}"));
            lines.extend(books::bought(ledger));
            lines.push("the owner".to_owned());
            lines.extend(owner.iter().flat_map(|ledger| books::sold(ledger, *payer)));
        }
        lines.join("\n")
    }

    /// The end of a history that failed: its decisions, its steps and the books of both sides.
    pub fn failed(&self) -> Box<Failed> {
        let books = catch_unwind(AssertUnwindSafe(|| self.books()));
        let books = books.unwrap_or_else(|_| "the books cannot be read".to_owned());
        let made = self.lock().choices.made();
        Box::new(Failed { made, log: self.log(), books })
    }

    /// The server behind the service, which counts what it is asked for.
    pub fn server(&self) -> PlayedServer {
        let state = self.clone();
        PlayedServer::new(move |request| {
            let (end, answer) = {
                let mut shared = state.lock();
                shared.sent = request.body.clone();
                (shared.execute(&request), shared.answer.clone())
            };
            Box::pin(async move {
                match end {
                    Execution::Silent => None,
                    Execution::Never => std::future::pending().await,
                    Execution::Answer(status, takes) => {
                        tokio::time::sleep(takes).await;
                        let mut answer = http::Response::new(answer);
                        *answer.status_mut() = status;
                        let json = http::HeaderValue::from_static("application/json");
                        answer.headers_mut().insert(http::header::CONTENT_TYPE, json);
                        Some(answer)
                    }
                }
            })
        })
    }
}

/// What the server makes of one request.
enum Execution {
    /// It breaks off.
    Silent,
    Never,
    Answer(http::StatusCode, Duration),
}

impl Shared {
    fn execute(&mut self, request: &PlayedRequest) -> Execution {
        let number = request.url.query_pairs().find_map(|(name, value)| (name == "n").then_some(value));
        let number: u64 = number.and_then(|text| text.parse().ok()).unwrap_or_default();
        let (call_id, is_safe) = (call_id(number), request.method == http::Method::GET);
        let has_ended = self.has_ended(call_id);
        if let Err(broken) = self.service.execute(call_id, is_safe, has_ended) {
            self.broken.push(format!("call {number}: {broken}"));
        }
        if self.came_late.remove(&number).is_some_and(|at| at.elapsed() < ADMITTED_WITHIN) {
            self.broken.push(format!("{number} is served on a channel that is being closed"));
        }
        let Usual { service_ms: [least, most], is_service_failing: is_failing, .. } = self.usual;
        let end = match self.choices.below(if self.has_faults { 100 } else { 1 }) {
            0..82 if is_failing => self.fail(number),
            // Of a call without effects the owner ends the work itself, with its caller's deadline.
            78..82 if !is_safe => self.answer_well(number, TOO_SLOW_MS[0], TOO_SLOW_MS[1]),
            0..82 => self.answer_well(number, least, most),
            82..88 => self.fail(number),
            88..92 => self.answer_well(number, 1_000, 6_000),
            // A read is sent again after that, which is one execution more. It has no more than one after its end.
            92..96 if !has_ended => Execution::Silent,
            _ => Execution::Never,
        };
        self.tell(format!("the service executes {number}"));
        end
    }

    /// Answers after a time between these, in milliseconds.
    fn answer_well(&mut self, number: u64, least: u64, most: u64) -> Execution {
        self.answered_ever.insert(number);
        self.answer(number, http::StatusCode::OK, [least, most])
    }

    fn fail(&mut self, number: u64) -> Execution {
        self.answer(number, http::StatusCode::INTERNAL_SERVER_ERROR, [1, 200])
    }

    fn answer(&mut self, number: u64, status: http::StatusCode, [least, most]: [u64; 2]) -> Execution {
        let takes = self.millis(least, most);
        let (at, is_good) = (Instant::now() + takes, status.is_success());
        self.answers.push(ServiceAnswer { number, at, is_good });
        Execution::Answer(status, takes)
    }
}

/// Whether this says that a call was not charged.
const fn is_told_free(error: &BuyError) -> bool {
    !matches!(
        error,
        BuyError::Undecided(_)
            | BuyError::NotStored(_)
            | BuyError::Failed
            | BuyError::NotRepeated { .. }
            | BuyError::BadAnswer { .. }
            | BuyError::BodyGone { .. }
    )
}

/// The id of the call with this number.
pub fn call_id(number: u64) -> CallId {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    CallId::from_bytes(bytes)
}

/// The number of a call.
pub fn number(id: CallId) -> u64 {
    u64::from_be_bytes(id.as_bytes()[..8].try_into().unwrap())
}

/// The way in which a number is asked for.
pub fn method(number: u64) -> Method {
    if number.is_multiple_of(3) { Method::Post } else { Method::Get }
}
