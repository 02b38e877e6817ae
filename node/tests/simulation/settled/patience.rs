//! Hours and minutes that nobody waits for in a test: an answer that comes when its time is nearly over, and an upstream that is out for
//! an hour. Both nodes have their real halves and settlement; limits and time-outs are those of a new node.

use std::time::Duration;

use farthing_protocol::Usdc;
use tokio::time::{Instant, sleep};

use super::{
    apart,
    blocks::Blocks,
    ground::{Ground, PUBLIC},
    in_played_time, lay,
    run::{ConsumerRun, OwnerRun},
};
use crate::{
    disk::Disk,
    halves::state::{State, Usual},
    play::history_of,
};

/// The longest time that a listing can give an operation.
const TIMEOUT_SECS: u16 = 300;
/// A call that has no end by then has none.
const ENDS_WITHIN: Duration = Duration::from_secs(600);
/// Between two looks at what became of a call.
const LOOKS_EVERY: Duration = Duration::from_millis(10);
const OPENS_WITHIN_CALLS: usize = 5;
const OUTAGE: Duration = Duration::from_secs(3_600);
/// Between two calls of the outage: shorter than the second in which one call is tried beyond the limit of uncharged calls.
const PAUSE: Duration = Duration::from_millis(250);
/// A call that waited as long waited for its trial.
const HELD_MIN: Duration = Duration::from_millis(500);
/// A trial's second, and a moment for its messages.
const TRIED_WITHIN: Duration = Duration::from_secs(2);
const QUICK: Usual = Usual { way_ms_max: 1, service_ms: [1, 1], is_service_failing: false };

/// A consumer with a channel, and its owner.
struct Market<'g> {
    ground: &'g Ground,
    state: State,
    consumer: ConsumerRun,
    _owner: OwnerRun,
    last: u64,
}

impl<'g> Market<'g> {
    async fn open(ground: &'g Ground) -> Self {
        let state = State::new(&history_of(1), 0);
        {
            let mut shared = state.lock();
            shared.has_faults = false;
            shared.usual = QUICK;
        }
        let blocks = Blocks::begin(ground, &state);
        let owner = OwnerRun::start(ground, &blocks, &state, OwnerRun::first_disk(ground).await).await;
        let consumer = ConsumerRun::start(ground, &blocks, &state, 0, Disk::default()).await;
        let mut market = Self { ground, state, consumer, _owner: owner, last: 0 };
        // An owner on a public chain serves once the deposit is safe.
        for _ in 0..OPENS_WITHIN_CALLS {
            sleep(Duration::from_secs(30)).await;
            if !market.call().await.0.is_zero() {
                return market;
            }
        }
        panic!("no channel is open:\n{}", market.state.log());
    }

    fn set(&self, usual: Usual) {
        self.state.lock().usual = usual;
    }

    /// Has a new call ordered. Its charge, and how long its caller waited.
    async fn call(&mut self) -> (Usdc, Duration) {
        self.last += 1;
        let ordered = Instant::now();
        self.consumer.order(self.ground, &self.state, self.last);
        loop {
            let told = self.state.lock().told_of(self.last);
            if let Some(charged) = told {
                return (charged, ordered.elapsed());
            }
            assert!(ordered.elapsed() < ENDS_WITHIN, "{} has no end:\n{}", self.last, self.state.log());
            sleep(LOOKS_EVERY).await;
        }
    }
}

#[test]
fn an_answer_after_299_seconds_is_bought_and_one_that_comes_later_than_the_listing_says_is_free() {
    let (ground, _kept) = lay(PUBLIC, Some(TIMEOUT_SECS));
    apart(|| {
        in_played_time(async {
            let mut market = Market::open(&ground).await;
            // Every third call writes.
            for (secs, is_bought) in [[(299, true); 3], [(301, false); 3]].concat() {
                market.set(Usual { service_ms: [secs * 1_000; 2], ..QUICK });
                let (charged, waited) = market.call().await;
                let log = || market.state.log();
                assert_eq!(!charged.is_zero(), is_bought, "after {secs} s:\n{}", log());
                assert!((299..302).contains(&waited.as_secs()), "{waited:?} for {secs} s:\n{}", log());
            }
        });
    });
}

#[test]
fn after_an_upstreams_outage_of_an_hour_the_first_call_is_bought_at_once() {
    let (ground, _kept) = lay(PUBLIC, None);
    apart(|| {
        in_played_time(async {
            let mut market = Market::open(&ground).await;
            market.set(Usual { is_service_failing: true, ..QUICK });
            let (began, mut held) = (Instant::now(), Duration::ZERO);
            // It ends while the limit holds calls up: the last one waited for its trial.
            while began.elapsed() < OUTAGE || held < HELD_MIN {
                assert!(began.elapsed() < 2 * OUTAGE, "the limit of uncharged calls holds up none");
                sleep(PAUSE).await;
                let (charged, waited) = market.call().await;
                assert_eq!(charged, Usdc::ZERO, "{} of the outage is free", market.last);
                held = waited;
            }
            market.set(QUICK);
            for n in 0..3 {
                let (charged, waited) = market.call().await;
                assert!(!charged.is_zero(), "call {n} after the outage is not bought");
                assert!(waited < TRIED_WITHIN, "call {n} after the outage took {waited:?}");
            }
        });
    });
}
