//! Ends of calls, on both sides: what `/metrics` counts of them, and a line of the access log for each.
//!
//! Invariant: a line names the call, never what was asked or answered. Of the path it has the operation's, as its owner
//! describes it; values, bodies and secrets it does not have.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use farthing_bounds::LineLimiter;
use farthing_values::{Address, CallId, Method, ServiceId, Usdc};
use minicbor::{Decode, Encode};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{
        MetricType,
        counter::{ConstCounter, Counter},
        family::Family,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};
use tokio::time::Instant;

/// The target of the access log's lines, for `FARTHING_LOG` and for whoever reads JSON.
pub const ACCESS: &str = "access";

/// Lines about calls that this node refused: wallets are free, so anybody can cause them for nothing.
static REFUSED_TOLD: LineLimiter = LineLimiter::new(60);
/// Lines about copies of calls that had ended before: one call can be sent again for ever, and costs nothing more.
static AGAIN_TOLD: LineLimiter = LineLimiter::new(60);

/// The half of the node that a call was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(index_only)]
pub enum Half {
    /// It bought the call.
    #[n(0)]
    Consumer,
    /// It served the call.
    #[n(1)]
    Owner,
}

impl Half {
    pub const ALL: [Self; 2] = [Self::Consumer, Self::Owner];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Consumer => "consumer",
            Self::Owner => "owner",
        }
    }

    /// Returns the label that tells the halves apart in `/metrics`.
    pub const fn label(self) -> Label {
        ("side", self.name())
    }
}

/// The way in which a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The service answered, and was paid.
    Charged,
    /// The service answered for nothing.
    Free,
    /// The call had been answered before, and was answered so again. Nothing more was charged.
    Repeated,
    /// The call had been answered before, and its answer is not to be had any more.
    Gone,
    /// The owner's node refused it.
    Refused,
    /// The service's server gave no answer, or an error of its own. Nothing was charged.
    Failed,
    /// The answer contradicted its receipt, or the receipt what was bought.
    Disputed,
    /// Nobody knows yet if it was served.
    Undecided,
    /// The owner's node was not reached.
    Unreached,
    /// The consumer's own node kept it back: a limit, a parameter, its money.
    NotSent,
}

impl End {
    pub const ALL: [Self; 10] = [
        Self::Charged,
        Self::Free,
        Self::Repeated,
        Self::Gone,
        Self::Refused,
        Self::Failed,
        Self::Disputed,
        Self::Undecided,
        Self::Unreached,
        Self::NotSent,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Charged => "charged",
            Self::Free => "free",
            Self::Repeated => "repeated",
            Self::Gone => "gone",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Disputed => "disputed",
            Self::Undecided => "undecided",
            Self::Unreached => "unreached",
            Self::NotSent => "not_sent",
        }
    }

    /// The end as the durations are told by: was there an answer, and was it paid?
    const fn answered(self) -> Label {
        match self {
            Self::Charged => ("end", "charged"),
            Self::Free | Self::Repeated => ("end", "free"),
            _ => ("end", "failed"),
        }
    }
}

/// A call at its beginning: what its end is told with.
#[derive(Debug)]
pub struct BegunCall {
    pub call_id: CallId,
    pub service: ServiceId,
    pub method: Method,
    path: Option<String>,
    began: Instant,
}

impl BegunCall {
    /// A call that begins now. Its path is kept when somebody reads the access log, and for nothing else.
    pub fn new(call_id: CallId, service: ServiceId, method: Method, path: &str) -> Self {
        let is_logged = tracing::enabled!(target: ACCESS, tracing::Level::INFO);
        let path = is_logged.then(|| path.to_owned());
        Self { call_id, service, method, path, began: Instant::now() }
    }

    /// The time since it began.
    pub fn took(&self) -> Duration {
        self.began.elapsed()
    }

    /// The path to look its operation up with; `None` when nobody reads the access log.
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }
}

#[derive(Clone, Copy, Debug)]
pub struct EndedCall<'a> {
    pub half: Half,
    pub end: End,
    /// The sum that this end cost its consumer.
    pub charged: Usdc,
    /// The status of the service's answer, when there is one.
    pub status: Option<u16>,
    /// The name of the owner's refusal.
    pub refusal: Option<&'static str>,
    /// The wallet on the other side, when it is known.
    pub peer: Option<Address>,
    /// The path of the operation, as it is described: `/planets/{id}`.
    pub operation: Option<&'a str>,
}

/// A label's name and value.
pub type Label = (&'static str, &'static str);
type Times<const LABELS: usize> = Family<[Label; LABELS], Histogram, fn() -> Histogram>;

/// The calls that ended since the start. A cheap handle.
#[derive(Clone, Debug)]
pub struct CallEnds(Arc<EndCounts>);

#[derive(Debug)]
struct EndCounts {
    calls: Family<[Label; 2], Counter>,
    charged_micros: [AtomicU64; Half::ALL.len()],
    bought: Times<1>,
    served: Times<1>,
    parts: Times<2>,
}

impl Default for CallEnds {
    fn default() -> Self {
        let calls: Family<[Label; 2], Counter> = Family::default();
        // From the start, so that the first of a kind is seen as an increase.
        for half in Half::ALL {
            for end in End::ALL {
                drop(calls.get_or_create(&labels(half, end)));
            }
        }
        Self(Arc::new(EndCounts {
            calls,
            charged_micros: Default::default(),
            bought: Times::new_with_constructor(buckets as fn() -> Histogram),
            served: Times::new_with_constructor(buckets as fn() -> Histogram),
            parts: Times::new_with_constructor(buckets as fn() -> Histogram),
        }))
    }
}

/// From a millisecond to about a minute, each twice the one before.
fn buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 17))
}

const fn labels(half: Half, end: End) -> [Label; 2] {
    [half.label(), ("outcome", end.name())]
}

impl CallEnds {
    /// Notes the end of a call, of each copy on the owner's side: counts it, and writes its line.
    pub fn note(&self, call: &BegunCall, ended: &EndedCall<'_>) {
        let took = call.took();
        let EndedCall { half, end, charged, .. } = *ended;
        let (of_half, times) = match half {
            Half::Consumer => (&self.0.charged_micros[0], &self.0.bought),
            Half::Owner => (&self.0.charged_micros[1], &self.0.served),
        };
        self.0.calls.get_or_create(&labels(half, end)).inc();
        of_half.fetch_add(charged.micros(), Relaxed);
        times.get_or_create(&[end.answered()]).observe(took.as_secs_f64());
        log(call, ended, took);
    }

    /// Notes the time that one part of an answered call took.
    pub fn note_part(&self, half: Half, part: &'static str, took: Duration) {
        self.0.parts.get_or_create(&[half.label(), ("part", part)]).observe(took.as_secs_f64());
    }

    /// Names all of it for whoever asks.
    pub fn register(&self, registry: &mut Registry) {
        let EndCounts { calls, bought, served, parts, .. } = &*self.0;
        registry.register("farthing_calls", "Calls by outcome", calls.clone());
        let help = "Calls that this node bought, from order to end";
        registry.register_with_unit("farthing_call_bought", help, Unit::Seconds, bought.clone());
        let help = "Copies of calls that this node answered as owner, from arrival to answer";
        registry.register_with_unit("farthing_call_served", help, Unit::Seconds, served.clone());
        let help = "Parts of calls that services answered";
        registry.register_with_unit("farthing_call_part", help, Unit::Seconds, parts.clone());
        registry.register_collector(Box::new(self.clone()));
    }
}

/// The money is counted in whole micros, and only told as Prometheus knows numbers.
impl Collector for CallEnds {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let (help, unit) = ("Charged for calls that ended", usdc_unit());
        let mut family =
            encoder.encode_descriptor("farthing_charged", help, Some(&unit), MetricType::Counter)?;
        for (half, micros) in Half::ALL.into_iter().zip(&self.0.charged_micros) {
            let labels = [half.label()];
            ConstCounter::new(usdc(micros.load(Relaxed))).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

/// The unit of money in `/metrics`.
pub fn usdc_unit() -> Unit {
    Unit::Other("usdc".to_owned())
}

/// Money as a number of `/metrics`, which are floating-point numbers to whoever reads them.
pub fn usdc(micros: u64) -> f64 {
    micros as f64 / 1e6
}

fn log(call: &BegunCall, ended: &EndedCall<'_>, took: Duration) {
    if call.path.is_none() {
        return;
    }
    let Some(left_out) = admit_line(ended.half, ended.end) else { return };
    let left_out = Some(left_out).filter(|left_out| *left_out > 0);
    tracing::info!(
        target: ACCESS,
        side = %ended.half.name(),
        call_id = %call.call_id,
        service = %call.service,
        method = %call.method,
        path = ended.operation,
        peer = ended.peer.as_ref().map(display),
        outcome = %ended.end.name(),
        refusal = ended.refusal.map(display),
        status = ended.status,
        charged = %ended.charged,
        ms = millis(took),
        left_out,
        "call"
    );
}

/// Admits a line about a call that ended like this. Returns how many such lines were left out since the last one.
fn admit_line(half: Half, end: End) -> Option<u64> {
    let lines = match (half, end) {
        (Half::Owner, End::Refused) => &REFUSED_TOLD,
        (Half::Owner, End::Repeated | End::Gone) => &AGAIN_TOLD,
        _ => return Some(0),
    };
    lines.admits(Instant::now().into_std())
}

/// Milliseconds, to the microsecond.
fn millis(took: Duration) -> f64 {
    (took.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    fn call() -> BegunCall {
        BegunCall::new(CallId::from_bytes([1; 16]), ServiceId::from_bytes([2; 16]), Method::Get, "/ok")
    }

    fn ended(half: Half, end: End, micros: u64) -> EndedCall<'static> {
        let charged = Usdc::from_micros(micros);
        EndedCall { half, end, charged, status: None, refusal: None, peer: None, operation: None }
    }

    fn told(ends: &CallEnds) -> String {
        let mut registry = Registry::default();
        ends.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn a_call_is_counted_by_its_side_and_its_end_and_money_in_usdc() {
        let ends = CallEnds::default();
        ends.note(&call(), &ended(Half::Consumer, End::Charged, 2_000));
        ends.note(&call(), &ended(Half::Consumer, End::Charged, 1));
        ends.note(&call(), &ended(Half::Owner, End::Repeated, 0));
        ends.note_part(Half::Owner, "upstream", Duration::from_millis(3));
        let told = told(&ends);
        for line in [
            "farthing_calls_total{side=\"consumer\",outcome=\"charged\"} 2",
            "farthing_calls_total{side=\"owner\",outcome=\"repeated\"} 1",
            "farthing_calls_total{side=\"owner\",outcome=\"charged\"} 0",
            "# TYPE farthing_charged_usdc counter",
            "# UNIT farthing_charged_usdc usdc",
            "farthing_charged_usdc_total{side=\"consumer\"} 0.002001",
            "farthing_call_bought_seconds_count{end=\"charged\"} 2",
            "farthing_call_served_seconds_count{end=\"free\"} 1",
            "farthing_call_part_seconds_bucket{le=\"0.004\",side=\"owner\",part=\"upstream\"} 1",
        ] {
            assert!(told.lines().any(|found| found == line), "{line}:\n{told}");
        }
    }

    #[test]
    fn each_end_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<_> = End::ALL.iter().map(|end| end.name()).collect();
        assert_eq!(names.len(), End::ALL.len());
    }

    #[test]
    fn lines_that_anybody_causes_for_nothing_are_written_so_often_in_a_minute_and_all_others_always() {
        let written = |half, ends: &[End]| {
            let ended = ends.iter().cycle().take(200);
            ended.filter(|end| admit_line(half, **end).is_some()).count()
        };
        assert_eq!(written(Half::Owner, &[End::Refused]), 60);
        assert_eq!(
            written(Half::Owner, &[End::Repeated, End::Gone]),
            60,
            "both are copies of calls that had ended"
        );
        let for_nothing = [End::Refused, End::Repeated, End::Gone];
        for end in End::ALL.into_iter().filter(|end| !for_nothing.contains(end)) {
            assert_eq!(written(Half::Owner, &[end]), 200, "{end:?}");
        }
        assert_eq!(written(Half::Consumer, &End::ALL), 200, "this node's own programs ask");
    }

    #[test]
    fn the_path_is_not_kept_when_nobody_reads_the_log() {
        assert_eq!(call().path(), None);
    }

    #[test]
    fn milliseconds_are_told_to_the_microsecond() {
        assert_eq!(millis(Duration::from_micros(12_345)).to_string(), "12.345");
        assert_eq!(millis(Duration::from_nanos(1_499)).to_string(), "0.001");
    }
}
