//! The rendezvous in the swarm's task: visits run beside it, one at a time, and end with it; whom they name is dialled once.

use std::time::Instant;

use libp2p::swarm::dial_opts::DialOpts;
use tokio::task::JoinSet;

use super::SwarmTask;
use crate::{
    RendezvousEnd, RendezvousReport, addresses,
    rendezvous::{Agenda, COMPANY_ENOUGH, Circumstances, Errand, ErrandOutcome, Rendezvous, RendezvousNode},
};

/// Dials at a time to those who were named: most of them may be gone, and calls need dials, too.
const INTRODUCED_AT_ONCE: usize = 4;

/// The visits of one node.
pub(crate) struct Errands {
    agenda: Agenda,
    rendezvous: Rendezvous,
    /// The visit under way, if any. Dropped, it ends.
    visits: JoinSet<ErrandOutcome>,
    errand: Option<Errand>,
    /// Those that are dialled next.
    introduced: Vec<RendezvousNode>,
}

impl Errands {
    pub(crate) fn new(agenda: Agenda, rendezvous: Rendezvous) -> Self {
        Self { agenda, rendezvous, visits: JoinSet::new(), errand: None, introduced: Vec::new() }
    }

    pub(super) fn report(&self) -> RendezvousReport {
        self.agenda.report().clone()
    }

    fn go(&mut self, node: &Circumstances<'_>, now: Instant) {
        let Some(errand) = self.agenda.next(node, now) else { return };
        self.errand = Some(errand.clone());
        self.visits.spawn(self.rendezvous.clone().visit(errand));
    }

    /// The outcome of the visit under way; `None` at once when there is none.
    pub(super) async fn ended(errands: &mut Option<Self>) -> Option<ErrandOutcome> {
        let errands = errands.as_mut()?;
        let ended = errands.visits.join_next().await?;
        // One that did not even end well is one without an answer.
        ended.ok().or_else(|| Some(errands.errand.as_ref()?.without_end()))
    }
}

impl SwarmTask {
    pub(super) fn visit_rendezvous(&mut self, now: Instant) {
        self.dial_introduced();
        let (peers, listening) = (self.peers.identified_count(), self.listening());
        let parts = &mut self.parts;
        let Some(errands) = &mut parts.errands else { return };
        let published = addresses::to_publish(&parts.prober.believed(), &listening, parts.allow_private);
        let node = Circumstances {
            peers,
            published: &published,
            listening: &listening,
            is_tested: parts.prober.is_tested(),
        };
        let was_needed = errands.agenda.report().is_needed;
        errands.go(&node, now);
        self.status_is_stale |= errands.agenda.report().is_needed != was_needed;
    }

    pub(super) fn on_errand_ended(&mut self, outcome: ErrandOutcome) {
        let peers = self.peers.identified_count();
        outcome.count(&self.parts.counters);
        let Some(errands) = &mut self.parts.errands else { return };
        errands.agenda.ended(&outcome, peers, Instant::now(), crate::now_secs());
        let (ErrandOutcome::Asked { ref end, .. } | ErrandOutcome::Listed { ref end }) = outcome;
        if !matches!(end, RendezvousEnd::Found { nodes: 0 }) {
            tracing::info!(?end, "visited the rendezvous");
        }
        if let ErrandOutcome::Asked { introduced, .. } = outcome {
            errands.introduced = introduced;
        }
        self.status_is_stale = true;
        self.dial_introduced();
    }

    /// Dials some of those who were named, as long as there is too little company: each once, until it is named again.
    fn dial_introduced(&mut self) {
        let Some(errands) = &mut self.parts.errands else { return };
        if self.peers.identified_count() >= COMPANY_ENOUGH {
            return errands.introduced.clear();
        }
        let count = errands.introduced.len().min(INTRODUCED_AT_ONCE);
        let next: Vec<RendezvousNode> = errands.introduced.drain(..count).collect();
        for RendezvousNode { peer, addresses } in next {
            let options = DialOpts::peer_id(peer).addresses(addresses.clone()).build();
            let connection = options.connection_id();
            self.parts.swarm.behaviour_mut().keep.wants(connection);
            match self.parts.swarm.dial(options) {
                Ok(()) => self.dials.began(connection, peer, addresses),
                Err(error) => tracing::trace!(%peer, %error, "not dialled"),
            }
        }
    }
}
