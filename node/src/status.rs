//! Is the node ready, and what does it count? Answered from memory for probes and metrics.

use std::{fmt, path::PathBuf, sync::Arc};

use farthing_bounds::ByteBudget;
use farthing_chain::{ChainHandle, ChainKind};
use farthing_control::types::{Health, NodePart};
use farthing_discovery::Catalog;
use farthing_ledger::Ledger;
use farthing_network::{ClockSkew, NetworkHandle};
use farthing_os::clock;
use farthing_owner::{book::Book, registry::Registry};
use farthing_shared::{
    call_ends::CallEnds,
    chain_view::{self, Stale},
};
use farthing_wallet::Signer;

use crate::consumer::channels::PayerChannels;

/// The part that keeps the node from buying and selling, and the cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotReadyPart {
    pub part: NodePart,
    pub cause: String,
}

impl fmt::Display for NotReadyPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.part.name(), self.cause)
    }
}

/// The parts that health checks and metrics read.
#[derive(Clone, Debug)]
pub struct Readiness {
    pub ledger: Ledger,
    pub chain: ChainHandle,
    pub network: NetworkHandle,
    pub registry: Registry,
    pub catalog: Catalog,
    pub signer: Signer,
    pub budget: ByteBudget,
    pub ends: CallEnds,
    pub channels: Arc<PayerChannels>,
    pub book: Book,
    pub data_dir: PathBuf,
    pub started_secs: u64,
}

impl Readiness {
    /// Lists what the node still waits for before it can buy and sell; nothing when it is ready.
    pub fn waiting_for(&self) -> Vec<NotReadyPart> {
        let ledger = self.ledger.closed().map(|closed| (NodePart::Ledger, closed.to_string()));
        let too_old = chain_view::stale(&self.chain).filter(Stale::is_too_old);
        let chain = chain_view::ready(&self.chain).err().map(|reason| reason.to_string());
        let chain = chain.or(too_old.map(|stale| stale.to_string())).map(|cause| (NodePart::Chain, cause));
        let is_deaf = self.network.status().borrow().listening.is_empty();
        let network = is_deaf.then(|| (NodePart::Network, "not listening yet".to_owned()));
        [ledger, chain, network]
            .into_iter()
            .flatten()
            .map(|(part, cause)| NotReadyPart { part, cause })
            .collect()
    }

    /// The same as probes read it.
    pub fn health(&self) -> Health {
        let waiting_for: Vec<String> = self.waiting_for().iter().map(ToString::to_string).collect();
        Health { ready: waiting_for.is_empty(), waiting_for }
    }

    /// By how much this machine's clock is off.
    pub fn clock_off(&self) -> Option<ClockOff> {
        let network = self.network.status();
        let (skew, peers) = {
            let network = network.borrow();
            (network.clock, network.peers)
        };
        clock_off(&self.chain, skew, peers)
    }
}

/// From here on it is worth a word, and from there others refuse what this node dates.
const CLOCK_OFF_SECS_MIN: u64 = 60;
const CLOCK_OFF_SECS_BAD: u64 = farthing_protocol::limits::CLOCK_SKEW_SECS_MAX;

/// A clock that is wrong, and who says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockOff {
    /// Negative when it is behind.
    pub ahead_secs: i64,
    witnesses: String,
}

impl ClockOff {
    /// Returns whether others refuse what this node signs, or it refuses what they sign.
    pub const fn is_bad(&self) -> bool {
        self.ahead_secs.unsigned_abs() >= CLOCK_OFF_SECS_BAD
    }
}

impl fmt::Display for ClockOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = if self.ahead_secs > 0 { "ahead of" } else { "behind" };
        let by = span(self.ahead_secs.unsigned_abs());
        write!(f, "this machine's clock is {by} {side} {}", self.witnesses)
    }
}

/// By how much this machine's clock is off, if anybody shows it: the newest block of a public chain, or peers.
pub fn clock_off(chain: &ChainHandle, skew: Option<ClockSkew>, peers: usize) -> Option<ClockOff> {
    let head = *chain.head().borrow();
    let block = head.filter(|_| has_public_head(chain)).map(|head| {
        let seen_secs = clock::now_secs().saturating_sub(head.seen_at.elapsed().as_secs());
        difference(seen_secs, head.timestamp_secs)
    });
    weigh(block, &chain.spec().name, skew, peers)
}

/// Returns whether there is a block of a chain whose clock is not made up: one of one's own may be set to any time.
pub fn has_public_head(chain: &ChainHandle) -> bool {
    chain.spec().kind != ChainKind::Local && chain.head().borrow().is_some()
}

fn weigh(
    block_ahead_secs: Option<i64>,
    chain: &str,
    skew: Option<ClockSkew>,
    peers: usize,
) -> Option<ClockOff> {
    let is_off = |ahead_secs: &i64| ahead_secs.unsigned_abs() >= CLOCK_OFF_SECS_MIN;
    let by_peers = skew.filter(|skew| is_off(&skew.ahead_secs)).map(|skew| ClockOff {
        ahead_secs: skew.ahead_secs,
        witnesses: match (skew.peers, peers) {
            (1, 0 | 1) => "the connected node's".to_owned(),
            (some, all) => format!("that of {some} of {} connected nodes", all.max(some)),
        },
    });
    let by_block = block_ahead_secs.filter(is_off).map(|ahead_secs| ClockOff {
        ahead_secs,
        witnesses: format!("the newest block of {chain} that its endpoint knows"),
    });
    match (by_block, by_peers) {
        (Some(block), Some(peers)) if (block.ahead_secs > 0) == (peers.ahead_secs > 0) => {
            let witnesses = format!("{} and {}", block.witnesses, peers.witnesses);
            Some(ClockOff { witnesses, ..block })
        }
        (Some(block), _) => Some(block),
        (None, by_peers) => by_peers,
    }
}

fn difference(one_secs: u64, other_secs: u64) -> i64 {
    let apart = i64::try_from(one_secs.abs_diff(other_secs)).unwrap_or(i64::MAX);
    if one_secs >= other_secs { apart } else { -apart }
}

/// In the unit one would use: `90 seconds`, `60 minutes`, `3 days`.
fn span(secs: u64) -> String {
    match secs {
        0..120 => format!("{secs} seconds"),
        120..7200 => format!("{} minutes", secs / 60),
        7200..172_800 => format!("{} hours", secs / 3600),
        _ => format!("{} days", secs / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_clock_is_told_with_the_side_the_size_and_the_witnesses() {
        let skew = |ahead_secs, peers| Some(ClockSkew { ahead_secs, peers });
        for (block, skew, words, bad) in [
            (None, None, None, false),
            (Some(59), skew(-59, 1), None, false),
            (Some(60), None, Some("is 60 seconds ahead of the newest block of Base"), false),
            (Some(-299), None, Some("is 4 minutes behind the newest block of Base"), false),
            (Some(-300), None, Some("is 5 minutes behind the newest block of Base"), true),
            (None, skew(3600, 1), Some("is 60 minutes ahead of that of 1 of 3 connected nodes"), true),
            (
                Some(3600),
                skew(3590, 2),
                Some("that its endpoint knows and that of 2 of 3 connected nodes"),
                true,
            ),
            (Some(-200_000), skew(400, 1), Some("is 2 days behind the newest block of Base"), true),
        ] {
            let off = weigh(block, "Base", skew, 3);
            let told = off.as_ref().map(ToString::to_string);
            assert_eq!(told.is_some(), words.is_some(), "{told:?}");
            assert!(told.iter().zip(words).all(|(told, words)| told.contains(words)), "{told:?}");
            assert_eq!(off.is_some_and(|off| off.is_bad()), bad, "{told:?}");
        }
        assert_eq!(difference(5, 7), -2);
        assert_eq!(difference(u64::MAX, 0), i64::MAX);
    }
}
