//! Limits of what an owner's node works on at once, and of what it does for nothing.
//!
//! 64 calls in all, 16 per payer and 32 per service are at the upstreams; a bounded number waits its turn;
//! everyone else is told to come back. Of all these places, half are for payers with channels alone: wallets are free,
//! and so are the calls of a free operation. And not all are for payers that take all they may: beyond an eighth
//! of its own places a payer shares five eighths of all with others like it. What is done for nothing is counted beside
//! ([`super::uncharged`]).

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use farthing_bounds::{ByteBudget, HeldBytes, SharedBudget};
use farthing_protocol::{Address, Refusal, RefusalCode, ServiceId};
use farthing_shared::keyed_semaphore::KeyedSemaphore;
use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use super::uncharged::{CalledOperation, NotYet, UnchargedCounts, UnchargedLimits};

const WAIT_MAX: Duration = Duration::from_secs(10);
/// Of the memory for answers, the most that is held for one that is not there yet: all calls at once have half.
const EXPECTED_PART: usize = 128;
/// Room that there has to be for an answer.
const ANSWER_BYTES_MIN: usize = 64 * 1024;

/// The numbers of calls that are allowed at once, and of those that come to nothing.
#[derive(Clone, Copy, Debug)]
pub struct LoadLimits {
    pub calls_max: usize,
    pub per_payer_max: usize,
    pub per_service_max: usize,
    /// Calls waiting for their turn. A waiting call holds its request only.
    pub waiting_max: usize,
    pub uncharged: UnchargedLimits,
}

impl Default for LoadLimits {
    fn default() -> Self {
        Self {
            calls_max: 64,
            per_payer_max: 16,
            per_service_max: 32,
            waiting_max: 256,
            uncharged: UnchargedLimits::default(),
        }
    }
}

/// The owner's capacity.
#[derive(Debug)]
pub struct Load {
    /// Memory for answers, which payers that read slowly hold, and the most that is held before one is there.
    answers: SharedBudget<Address>,
    expected_bytes_max: usize,
    payers: KeyedSemaphore<Address>,
    /// A payer's first few places.
    first: KeyedSemaphore<Address>,
    all: Places,
    /// The share of them that payers may take beyond their first few.
    beyond_first: Places,
    /// The share of them that strangers may take.
    strangers: Places,
    uncharged: Mutex<UnchargedCounts>,
}

/// The caller, as far as places and answers go.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    pub wallet: Address,
    /// Everybody else is a stranger.
    pub has_channel: bool,
    /// It is connected through a relay, which carries small answers alone.
    pub is_relayed: bool,
}

/// Places of everybody, or of strangers.
#[derive(Debug)]
struct Places {
    waiting: Arc<Semaphore>,
    total: Arc<Semaphore>,
    services: KeyedSemaphore<ServiceId>,
}

impl Places {
    fn new(limits: LoadLimits) -> Self {
        Self {
            waiting: Arc::new(Semaphore::new(limits.waiting_max)),
            total: Arc::new(Semaphore::new(limits.calls_max)),
            services: KeyedSemaphore::new(limits.per_service_max),
        }
    }

    /// Waits for a place. Narrow before wide: who waits for its service must not hold what others could use.
    async fn enter(&self, service: ServiceId) -> Option<[OwnedSemaphorePermit; 2]> {
        let service = self.services.get(service).acquire_owned().await.ok()?;
        let total = self.total.clone().acquire_owned().await.ok()?;
        Some([service, total])
    }
}

impl LoadLimits {
    fn eighths(self, count: usize) -> Self {
        let part = |whole: usize| (whole * count).div_ceil(8);
        Self {
            calls_max: part(self.calls_max),
            per_payer_max: part(self.per_payer_max),
            per_service_max: part(self.per_service_max),
            waiting_max: part(self.waiting_max),
            ..self
        }
    }
}

/// A place at work; given back when dropped.
#[derive(Debug)]
pub struct WorkPlace {
    /// Room for the answer, until it is asked for.
    room: Mutex<HeldBytes>,
    /// The payer's share of the memory for answers.
    share: ByteBudget,
    _payer: OwnedSemaphorePermit,
    _first: Option<OwnedSemaphorePermit>,
    /// Of what strangers may take, or payers beyond their first few.
    _of_part: Option<[OwnedSemaphorePermit; 2]>,
    _of_all: [OwnedSemaphorePermit; 2],
}

impl WorkPlace {
    /// Takes the room for the answer; asked for again, there is nothing yet, to be grown.
    pub(super) fn room(&self) -> HeldBytes {
        std::mem::replace(&mut *self.room.lock(), self.share.nothing())
    }
}

impl Load {
    pub fn new(limits: LoadLimits, budget: ByteBudget) -> Self {
        Self {
            expected_bytes_max: budget.bytes_max() / EXPECTED_PART,
            answers: SharedBudget::new(budget),
            payers: KeyedSemaphore::new(limits.per_payer_max),
            first: KeyedSemaphore::new(limits.eighths(1).per_payer_max),
            all: Places::new(limits),
            beyond_first: Places::new(limits.eighths(5)),
            strangers: Places::new(limits.eighths(4)),
            uncharged: Mutex::new(UnchargedCounts::new(limits.uncharged)),
        }
    }

    /// Waits for a place, with room for an answer of so many bytes.
    ///
    /// # Errors
    /// A `Busy` refusal when too many wait already, or the wait takes too long.
    pub async fn enter(
        &self,
        caller: Caller,
        service: ServiceId,
        answer_bytes: usize,
    ) -> Result<WorkPlace, Refusal> {
        // An answer that cannot be held is not asked for: the upstream would have worked for nothing.
        let share = self.answers.of(caller.wallet);
        drop(share.take(ANSWER_BYTES_MIN).ok_or_else(busy)?);
        let strangers = (!caller.has_channel).then_some(&self.strangers);
        let waits = |places: &Places| places.waiting.clone().try_acquire_owned().map_err(|_| busy());
        let first = self.first.get(caller.wallet).try_acquire_owned().ok();
        let part = strangers.or_else(|| first.is_none().then_some(&self.beyond_first));
        let _waiting = (part.map(waits).transpose()?, waits(&self.all)?);
        let places = async {
            // Narrow before wide here as well.
            let payer = self.payers.get(caller.wallet).acquire_owned().await.ok()?;
            let of_part = match part {
                Some(part) => Some(part.enter(service).await?),
                None => None,
            };
            let of_all = self.all.enter(service).await?;
            // Held once there is a place: who waits holds its request only.
            let expected = answer_bytes.min(self.expected_bytes_max).max(ANSWER_BYTES_MIN);
            let room = Mutex::new(share.take(expected)?);
            Some(WorkPlace { room, share, _payer: payer, _first: first, _of_part: of_part, _of_all: of_all })
        };
        tokio::time::timeout(WAIT_MAX, places).await.ok().flatten().ok_or_else(busy)
    }

    /// Holds a stored answer in its payer's share.
    ///
    /// # Errors
    /// A `Busy` refusal when the payer reads none of its others.
    pub fn hold(&self, payer: Address, body: Bytes) -> Result<Bytes, Refusal> {
        let held = self.answers.of(payer).take(body.len()).ok_or_else(busy)?;
        Ok(held.attach(body))
    }

    /// Checks that a call of `payer` may be worked on, whatever comes of it.
    ///
    /// # Errors
    /// A `RateLimited` refusal naming when to come back.
    pub fn check_uncharged(&self, payer: Address, operation: CalledOperation<'_>) -> Result<(), Refusal> {
        self.uncharged.lock().check(payer, operation, Instant::now()).map_err(rate_limited)
    }

    /// The same, of a call that is worked on now.
    pub fn begin_uncharged(&self, payer: Address, operation: CalledOperation<'_>) -> Result<(), Refusal> {
        self.uncharged.lock().begin(payer, operation, Instant::now()).map_err(rate_limited)
    }

    /// Counts a call of a paid operation, or one that came to nothing before it was asked of any.
    pub fn count_end(&self, payer: Address, operation: CalledOperation<'_>, is_charged: bool) {
        self.uncharged.lock().count(payer, operation, is_charged, Instant::now());
    }
}

fn busy() -> Refusal {
    Refusal::new(RefusalCode::Busy, "the owner's node is at its limit").retry_after_ms(500)
}

fn rate_limited(NotYet { limit, is_in_all, wait }: NotYet) -> Refusal {
    let what = if is_in_all { "in all" } else { "of one operation" };
    let detail = format!(
        "at most {limit} uncharged calls {what} per minute are served; beyond that the owner tries one now and then \
         until one is charged"
    );
    // Rounded up: who comes back then is not told to wait again.
    let wait_ms = u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    Refusal::new(RefusalCode::RateLimited, detail).retry_after_ms(wait_ms)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const PAYER: Address = Address::ZERO;
    const SERVICE: ServiceId = ServiceId::from_bytes([0; 16]);

    fn customer() -> Caller {
        Caller { wallet: PAYER, has_channel: true, is_relayed: false }
    }

    fn stranger(n: u8) -> Caller {
        Caller { wallet: Address::from_bytes([n; 20]), has_channel: false, is_relayed: false }
    }

    fn load() -> Load {
        Load::new(LoadLimits::default(), ByteBudget::new(1024 * ANSWER_BYTES_MIN))
    }

    #[tokio::test]
    async fn a_payer_gets_sixteen_places_and_the_next_waits_its_turn() {
        let load = load();
        let mut places = Vec::new();
        for _ in 0..LoadLimits::default().per_payer_max {
            places.push(load.enter(customer(), SERVICE, 0).await.unwrap());
        }
        let mut next = Box::pin(load.enter(customer(), SERVICE, 0));
        assert!(futures::poll!(next.as_mut()).is_pending());
        places.pop();
        assert!(next.await.is_ok());
    }

    #[tokio::test]
    async fn payers_that_take_all_they_may_leave_some_places_of_a_service_to_others() {
        let load = load();
        let (mut places, mut waiting) = (Vec::new(), Vec::new());
        let payer = |n: u8| Caller { wallet: Address::from_bytes([n; 20]), ..customer() };
        for n in [1, 2].into_iter().flat_map(|n| std::iter::repeat_n(n, 16)) {
            let mut entering = Box::pin(tokio::task::unconstrained(load.enter(payer(n), SERVICE, 0)));
            match entering.as_mut().now_or_never() {
                Some(entered) => places.push(entered.unwrap()),
                None => waiting.push(entering),
            }
        }
        assert_eq!((places.len(), waiting.len()), (24, 8));
        for n in [3, 3, 4, 4, 5, 5, 6, 6] {
            let entered = tokio::task::unconstrained(load.enter(payer(n), SERVICE, 0)).now_or_never();
            places.push(entered.expect("a place is left").unwrap());
        }
    }

    #[tokio::test]
    async fn a_payer_that_reads_none_of_its_answers_leaves_memory_for_those_of_others() {
        let load = Load::new(LoadLimits::default(), ByteBudget::new(16 * ANSWER_BYTES_MIN));
        let slow = load.enter(customer(), SERVICE, 0).await.unwrap();
        let mut unread = slow.room();
        while unread.grow(ANSWER_BYTES_MIN) {}
        assert_eq!(load.enter(customer(), SERVICE, 0).await.unwrap_err().code, RefusalCode::Busy);
        let payer = Caller { wallet: Address::from_bytes([7; 20]), ..customer() };
        let other = load.enter(payer, SERVICE, 0).await.unwrap();
        assert!(other.room().grow(2 * ANSWER_BYTES_MIN));
        let few = load.enter(payer, SERVICE, usize::MAX).await.unwrap();
        assert_eq!(few.room().bytes(), ANSWER_BYTES_MIN, "one large answer sizes no others");
        drop(unread);
        assert!(load.enter(customer(), SERVICE, 0).await.is_ok());
    }

    #[tokio::test]
    async fn when_too_many_wait_the_next_is_told_to_come_back() {
        let load = load();
        let _all = load.all.waiting.clone().try_acquire_many_owned(256).unwrap();
        let refusal = load.enter(customer(), SERVICE, 0).await.unwrap_err();
        assert_eq!(refusal.code, RefusalCode::Busy);
        assert!(refusal.retry_after_ms.is_some());
    }

    #[tokio::test]
    async fn however_many_strangers_call_half_of_the_places_are_for_payers_with_channels() {
        let load = load();
        let limits = LoadLimits::default();
        let service = |n: u8| ServiceId::from_bytes([n; 16]);
        let mut places = Vec::new();
        // Without the runtime's budget for one poll, which so many would use up.
        let enter = |caller, n| tokio::task::unconstrained(load.enter(caller, service(n), 0));
        // Strangers at two services, as many as are let in.
        let mut waiting: Vec<_> = (0..200_u8).map(|n| Box::pin(enter(stranger(1 + n / 8), n % 2))).collect();
        let mut refused = 0;
        waiting.retain_mut(|entering| {
            let entered = entering.now_or_never();
            refused += usize::from(entered.as_ref().is_some_and(Result::is_err));
            let is_waiting = entered.is_none();
            places.extend(entered.and_then(Result::ok));
            is_waiting
        });
        assert_eq!(places.len(), limits.calls_max / 2);
        assert_eq!((waiting.len(), refused), (limits.waiting_max / 2, 200 - 128 - 32));
        for n in 0..2 {
            for _ in 0..limits.per_payer_max / 2 {
                let entered = enter(customer(), n).now_or_never();
                places.push(entered.expect("customers wait behind strangers").unwrap());
            }
        }
    }

    #[test]
    fn the_refusal_of_uncharged_work_says_when_to_come_back() {
        let uncharged = UnchargedLimits { per_minute: 1, in_all: 100, trial: Duration::from_secs(10) };
        let limits = LoadLimits { uncharged, ..LoadLimits::default() };
        let load = Load::new(limits, ByteBudget::new(ANSWER_BYTES_MIN));
        let slow = Some((SERVICE, "GET /slow"));
        assert!(load.begin_uncharged(PAYER, slow).is_ok());
        load.count_end(PAYER, slow, false);
        let refused = load.begin_uncharged(PAYER, slow).unwrap_err();
        assert_eq!(refused.code, RefusalCode::RateLimited);
        assert!(refused.retry_after_ms.is_some_and(|wait| (1..=10_000).contains(&wait)), "{refused:?}");
        load.count_end(PAYER, slow, true);
        assert!(load.check_uncharged(PAYER, slow).is_ok(), "a charged call ends it");
        let exact = |wait| rate_limited(NotYet { limit: 1, is_in_all: true, wait }).retry_after_ms;
        assert_eq!(exact(Duration::from_millis(7)), Some(7));
        assert_eq!(exact(Duration::from_micros(7_001)), Some(8));
    }
}
