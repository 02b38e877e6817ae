//! Durations of calls, by how they end, for `/metrics`.

use std::time::Duration;

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder},
    metrics::{
        family::Family,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};

/// The way in which a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The service answered, and was paid.
    Charged,
    /// The service answered for nothing.
    Free,
    /// There was no answer of the service.
    Failed,
}

impl EncodeLabelValue for End {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> std::fmt::Result {
        let name = match self {
            Self::Charged => "charged",
            Self::Free => "free",
            Self::Failed => "failed",
        };
        name.encode(encoder)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    end: End,
}

type Times = Family<Labels, Histogram, fn() -> Histogram>;

/// The times that calls took since the start. A cheap handle.
#[derive(Clone, Debug)]
pub struct CallTimes {
    bought: Times,
    served: Times,
}

impl Default for CallTimes {
    fn default() -> Self {
        let times = || Times::new_with_constructor(buckets as fn() -> Histogram);
        Self { bought: times(), served: times() }
    }
}

/// From a millisecond to about a minute, each twice the one before.
fn buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 17))
}

impl CallTimes {
    /// A call that this node bought, from the order to its end.
    pub fn bought(&self, end: End, took: Duration) {
        self.bought.get_or_create(&Labels { end }).observe(took.as_secs_f64());
    }

    /// A copy of a call that this node answered, from its arrival to the answer.
    pub fn served(&self, end: End, took: Duration) {
        self.served.get_or_create(&Labels { end }).observe(took.as_secs_f64());
    }

    /// Names them for whoever asks.
    pub fn register(&self, registry: &mut Registry) {
        let (bought, served) = (self.bought.clone(), self.served.clone());
        let help = "Calls that this node bought, from order to end";
        registry.register_with_unit("farthing_call_bought", help, Unit::Seconds, bought);
        let help = "Copies of calls that this node answered as owner, from arrival to answer";
        registry.register_with_unit("farthing_call_served", help, Unit::Seconds, served);
    }
}
