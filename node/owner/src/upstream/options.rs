//! Options that an owner may set for an upstream, with the defaults that suit most.

use std::{collections::BTreeSet, time::Duration};

use farthing_bounds::ByteBudget;
use farthing_protocol::limits;
use tokio::time::Instant;

use super::{AddressClass, OwnPorts, UpstreamRequest};

/// For answers outside of a node, which has a budget of its own.
const BODIES_BYTES: usize = 128 * 1024 * 1024;

/// Bounds and rules of an upstream.
#[derive(Debug, Clone)]
pub struct UpstreamOptions {
    pub connect: Duration,
    /// From the beginning of the request to the head of the answer.
    pub first_byte: Duration,
    /// Between two parts of the body.
    pub idle: Duration,
    /// The whole exchange, where the call's deadline is not shorter. An operation with a time of its own has that instead of
    /// these three.
    pub total: Duration,
    pub body_bytes_max: usize,
    /// Room for the bodies of all answers, until they are passed on.
    pub budget: ByteBudget,
    /// Response headers beside the usual ones, in lower case.
    pub response_headers: BTreeSet<String>,
    /// The class noted at registration; the first resolution decides when absent.
    pub class: Option<AddressClass>,
    /// Ports of this node on this machine, which can be nobody's upstream.
    pub own_ports: OwnPorts,
    /// Asked in place of every server.
    #[cfg(feature = "played")]
    pub played: Option<super::PlayedServer>,
}

impl Default for UpstreamOptions {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            first_byte: Duration::from_secs(10),
            idle: Duration::from_secs(10),
            total: Duration::from_secs(30),
            body_bytes_max: limits::RESPONSE_BODY_BYTES_DEFAULT,
            budget: ByteBudget::new(BODIES_BYTES),
            response_headers: BTreeSet::new(),
            class: None,
            own_ports: OwnPorts::default(),
            #[cfg(feature = "played")]
            played: None,
        }
    }
}

/// The waits of one request, from when it is begun.
#[derive(Debug)]
pub(super) struct Waits {
    started: Instant,
    first_byte: Duration,
    idle: Duration,
    total: Duration,
}

impl UpstreamOptions {
    pub(super) fn begin(&self, request: &UpstreamRequest) -> Waits {
        let own_or = |usual: Duration| request.time.unwrap_or(usual);
        Waits {
            started: Instant::now(),
            first_byte: own_or(self.first_byte),
            idle: own_or(self.idle),
            total: own_or(self.total).min(request.deadline),
        }
    }
}

impl Waits {
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns how long the head of the answer may still take.
    pub(super) fn head(&self) -> Duration {
        self.first_byte.min(self.left())
    }

    /// Returns how long the next part of the body may take.
    pub(super) fn part(&self) -> Duration {
        self.idle.min(self.left())
    }

    fn left(&self) -> Duration {
        self.total.saturating_sub(self.elapsed())
    }
}
