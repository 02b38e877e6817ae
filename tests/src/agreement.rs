//! Whether the books of two nodes agree, call by call (invariant X1), as their histories show them.
//!
//! For every pair of nodes and every call id that either has: the same charge, the same end, the same channel. A call
//! that only one side has must be explained by what allows it:
//!
//! - the payer alone has it, and it ended without answer and charge: it was refused, or never arrived;
//! - one side alone has it, and it is older than the other's start: a crash or a restored backup kept it out of that
//!   one's books. What it cost stands there in an adjustment.
//!
//! And on both sides a channel's total is the sum of its calls and adjustments, to the micro.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Result, ensure};
use farthing_control::{
    endpoint,
    types::{Channel, ChannelRole, HistoryEntry, HistoryKind, HistoryPage, HistoryState},
};
use farthing_testnet::{NodeProcess, demo::Demo};
use farthing_values::{Address, ChannelId, Usdc};

use crate::wait::eventually;

/// Starts and calls are told in whole seconds.
const CLOCK_SECS: u64 = 2;

/// What one node's books say.
#[derive(Debug)]
pub struct Books {
    pub wallet: Address,
    /// Seconds since the Unix epoch.
    pub started_secs: u64,
    /// Calls that it bought and served, by owner or payer and call id.
    pub bought: BTreeMap<(Address, String), HistoryEntry>,
    pub served: BTreeMap<(Address, String), HistoryEntry>,
    /// Amounts without a call.
    pub adjustments: Vec<HistoryEntry>,
    pub channels: Vec<Channel>,
}

impl Books {
    /// What a running node tells of itself.
    pub async fn of(node: &NodeProcess) -> Result<Self> {
        let status = node.status().await?;
        let now_secs = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let mut books = Self {
            wallet: status.address.0,
            started_secs: now_secs.saturating_sub(status.uptime_secs),
            bought: BTreeMap::new(),
            served: BTreeMap::new(),
            adjustments: Vec::new(),
            channels: node.control().ask(endpoint::Channels).await?,
        };
        let steps = || endpoint::History.with("kind", "bought,served,adjustment").with("limit", 500);
        let mut asked = steps();
        loop {
            let HistoryPage { entries, next } = node.control().ask(asked).await?;
            entries.into_iter().for_each(|entry| books.take(entry));
            let Some(next) = next else { return Ok(books) };
            asked = steps().with("cursor", next);
        }
    }

    fn take(&mut self, entry: HistoryEntry) {
        let Some(peer) = entry.peer.as_ref().map(|peer| peer.0) else { return };
        let id = (peer, entry.id.clone());
        match entry.kind {
            HistoryKind::Bought => drop(self.bought.insert(id, entry)),
            HistoryKind::Served => drop(self.served.insert(id, entry)),
            _ => self.adjustments.push(entry),
        }
    }

    fn spent_on(&self, role: ChannelRole, id: ChannelId) -> Option<Usdc> {
        let channel = self.channels.iter().find(|channel| channel.role == role && channel.id.0 == id);
        channel.map(|channel| channel.spent.0)
    }

    /// What calls and adjustments of one side come to on a channel.
    fn explained(&self, role: ChannelRole, id: ChannelId) -> (Usdc, Usdc) {
        let calls = if role == ChannelRole::Payer { &self.bought } else { &self.served };
        (sum_on(id, calls.values()), sum_on(id, &self.adjustments))
    }
}

/// Compares the books of every pair of nodes, as buyer and seller both.
pub async fn check(nodes: &[&NodeProcess]) -> Result<()> {
    let differences = differences(nodes).await?;
    ensure!(differences.is_empty(), "{}", differences.join("\n"));
    Ok(())
}

/// Compares them once every call of every node is decided.
pub async fn check_at_rest(nodes: &[&NodeProcess]) -> Result<()> {
    until_at_rest(nodes).await?;
    check(nodes).await
}

/// Waits until every call of every node is decided.
pub async fn until_at_rest(nodes: &[&NodeProcess]) -> Result<()> {
    for node in nodes {
        eventually("every call is decided", async || {
            let audit = node.control().ask(endpoint::Audit.with("offline", true)).await?;
            ensure!(audit.violations.is_empty(), "{:?}", audit.violations);
            Ok(audit.calls_undecided == 0)
        })
        .await?;
    }
    Ok(())
}

/// Waits until a node sees all of its channels closed.
pub async fn until_closed(node: &NodeProcess) -> Result<()> {
    eventually("the channels are closed", async || {
        let channels = node.control().ask(endpoint::Channels).await?;
        Ok(channels.iter().all(|channel| channel.state.is_closed()))
    })
    .await
}

/// The end of a test with a demonstration: the books of its three nodes agree, and it stops.
pub async fn end(demo: Demo) -> Result<()> {
    check_at_rest(&[&demo.consumer, &demo.earthquakes.node, &demo.planets.node]).await?;
    demo.stop().await
}

/// What the books of every pair of nodes say differently, as buyer and seller both.
pub async fn differences(nodes: &[&NodeProcess]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for node in nodes {
        all.push(Books::of(node).await?);
    }
    let mut differences = Vec::new();
    for payer in &all {
        for owner in all.iter().filter(|owner| owner.wallet != payer.wallet) {
            differences.extend(compare(payer, owner).into_iter().map(|line| format!("X1: {line}")));
        }
    }
    Ok(differences)
}

/// What two nodes say differently of the calls that the first bought from the second.
#[must_use]
pub fn compare(payer: &Books, owner: &Books) -> Vec<String> {
    let ids = |side: &BTreeMap<(Address, String), HistoryEntry>, peer| -> BTreeSet<String> {
        side.keys().filter(|(other, _)| *other == peer).map(|(_, id)| id.clone()).collect()
    };
    let (asked, given) = (ids(&payer.bought, owner.wallet), ids(&owner.served, payer.wallet));
    let mut differences = Vec::new();
    let (mut forgotten, mut lost) = (BTreeMap::new(), BTreeMap::new());
    let count = |sums: &mut BTreeMap<ChannelId, Usdc>, call: &HistoryEntry| {
        let sum = sums.entry(call.channel.as_ref().map_or(ChannelId::NONE, |id| id.0)).or_default();
        *sum = sum.saturating_add(call.amount.0);
        None
    };
    for id in asked.union(&given) {
        let bought = payer.bought.get(&(owner.wallet, id.clone()));
        let served = owner.served.get(&(payer.wallet, id.clone()));
        let difference = match (bought, served) {
            (Some(bought), Some(served)) => difference_of(bought, served),
            (Some(bought), None) if bought.state == HistoryState::Failed => None,
            (Some(bought), None) if bought.time_secs > owner.started_secs + CLOCK_SECS => {
                Some(format!("{}, and its owner has no such call", told(bought)))
            }
            (Some(bought), None) => count(&mut lost, bought),
            (None, Some(served)) if served.time_secs > payer.started_secs + CLOCK_SECS => {
                Some(format!("its owner says {}, and its payer has no such call", told(served)))
            }
            (None, Some(served)) => count(&mut forgotten, served),
            (None, None) => None,
        };
        differences.extend(difference.map(|difference| format!("call {id}: {difference}")));
    }
    for channel in payer.channels.iter().filter(|channel| channel.role == ChannelRole::Payer) {
        let Some(earned) = owner.spent_on(ChannelRole::Payee, channel.id.0) else { continue };
        let paid = channel.spent.0;
        if earned != paid {
            differences.push(format!("channel {}: {paid} USDC paid, {earned} earned", channel.id));
        }
        let missing = [&mut forgotten, &mut lost].map(|sums| sums.remove(&channel.id.0).unwrap_or_default());
        let sides = [(payer, ChannelRole::Payer, paid), (owner, ChannelRole::Payee, earned)];
        for ((books, role, total), missing) in sides.into_iter().zip(missing) {
            let (calls, adjusted) = books.explained(role, channel.id.0);
            if adjusted != missing {
                let told = format!("forgotten calls of {missing} USDC, adjustments of {adjusted}");
                differences.push(format!("channel {}, {role}: {told}", channel.id));
            }
            if calls.saturating_add(adjusted) != total {
                let told = format!("{total} USDC, of calls {calls} and adjustments {adjusted}");
                differences.push(format!("channel {}, {role}: {told}", channel.id));
            }
        }
    }
    for (id, missing) in forgotten.into_iter().chain(lost).filter(|(_, missing)| !missing.is_zero()) {
        differences
            .push(format!("channel {id}: forgotten calls of {missing} USDC, and no books of the channel"));
    }
    differences
}

fn difference_of(bought: &HistoryEntry, served: &HistoryEntry) -> Option<String> {
    // Without answer and charge there may have been several attempts, and each side tells of its last one.
    let is_nothing = |call: &HistoryEntry| call.state == HistoryState::Failed && call.amount.0.is_zero();
    let same = bought.amount == served.amount
        && bought.state == served.state
        && bought.channel == served.channel
        && bought.service == served.service;
    let agree = same || (is_nothing(bought) && is_nothing(served));
    (!agree).then(|| format!("its payer says {}, its owner {}", told(bought), told(served)))
}

fn sum_on<'a>(id: ChannelId, entries: impl IntoIterator<Item = &'a HistoryEntry>) -> Usdc {
    let on_channel =
        entries.into_iter().filter(|entry| entry.channel.as_ref().is_some_and(|own| own.0 == id));
    on_channel.fold(Usdc::ZERO, |sum, entry| sum.saturating_add(entry.amount.0))
}

fn told(call: &HistoryEntry) -> String {
    let HistoryEntry { state, amount, what, channel, reason, .. } = call;
    let channel = channel.as_ref().map_or_else(|| "no channel".to_owned(), ToString::to_string);
    format!("{what} {state} {amount} USDC on {channel} ({})", reason.as_deref().unwrap_or("answered"))
}

#[cfg(test)]
mod tests {
    use std::slice;

    use farthing_control::types::{ChannelState, Text};

    use super::*;

    const PAYER: Address = Address::from_bytes([1; 20]);
    const OWNER: Address = Address::from_bytes([2; 20]);
    const CHANNEL: ChannelId = ChannelId::from_bytes([3; 32]);
    const STARTED: u64 = 1_000;

    fn call(id: &str, kind: HistoryKind, state: HistoryState, micros: u64) -> HistoryEntry {
        let peer = if kind == HistoryKind::Served { PAYER } else { OWNER };
        HistoryEntry {
            kind,
            time_secs: STARTED + 60,
            state,
            id: id.to_owned(),
            amount: Usdc::from_micros(micros).into(),
            service: None,
            name: String::new(),
            peer: Some(Text(peer)),
            what: "GET /ok".to_owned(),
            status: None,
            secret: None,
            channel: Some(Text(CHANNEL)),
            transaction: None,
            eth: None,
            fee: None,
            reason: None,
        }
    }

    fn books(wallet: Address, calls: &[HistoryEntry], spent: u64) -> Books {
        let side = |kind| {
            let of_kind = calls.iter().filter(|call| call.kind == kind).cloned();
            of_kind.filter_map(|call| Some(((call.peer.as_ref()?.0, call.id.clone()), call))).collect()
        };
        let (role, peer) =
            if wallet == PAYER { (ChannelRole::Payer, OWNER) } else { (ChannelRole::Payee, PAYER) };
        let channel = Channel {
            id: Text(CHANNEL),
            role,
            peer: Text(peer),
            state: ChannelState::Open,
            until_secs: None,
            stopped: false,
            deposited: Usdc::MAX.into(),
            spent: Usdc::from_micros(spent).into(),
            signed: Usdc::MAX.into(),
            claimed: Usdc::ZERO.into(),
        };
        Books {
            wallet,
            started_secs: STARTED,
            bought: side(HistoryKind::Bought),
            served: side(HistoryKind::Served),
            adjustments: calls.iter().filter(|call| call.kind == HistoryKind::Adjustment).cloned().collect(),
            channels: vec![channel],
        }
    }

    fn differences(bought: &[HistoryEntry], paid: u64, served: &[HistoryEntry], earned: u64) -> Vec<String> {
        compare(&books(PAYER, bought, paid), &books(OWNER, served, earned))
    }

    #[test]
    fn books_that_agree_have_no_difference() {
        use HistoryState::{Charged, Failed, Free};
        let bought = [
            call("a", HistoryKind::Bought, Charged, 5),
            call("b", HistoryKind::Bought, Free, 0),
            call("c", HistoryKind::Bought, Failed, 0),
            HistoryEntry { channel: None, ..call("d", HistoryKind::Bought, Failed, 0) },
        ];
        let served = [
            call("a", HistoryKind::Served, Charged, 5),
            call("b", HistoryKind::Served, Free, 0),
            call("d", HistoryKind::Served, Failed, 0),
        ];
        assert_eq!(differences(&bought, 5, &served, 5), Vec::<String>::new());
    }

    #[test]
    fn every_kind_of_difference_is_named_by_its_call() {
        use HistoryState::{Charged, Failed, Free};
        let bought = |state, micros| vec![call("a", HistoryKind::Bought, state, micros)];
        let served = |state, micros| vec![call("a", HistoryKind::Served, state, micros)];
        let elsewhere = |mut calls: Vec<HistoryEntry>| {
            calls[0].channel = Some(Text(ChannelId::from_bytes([9; 32])));
            calls
        };
        for (what, one, paid, other, earned) in [
            ("another charge", bought(Charged, 5), 5, served(Charged, 4), 5),
            ("told free", bought(Failed, 0), 5, served(Charged, 5), 5),
            ("answered and not", bought(Failed, 0), 0, served(Free, 0), 0),
            ("another channel", bought(Charged, 5), 5, elsewhere(served(Charged, 5)), 5),
            ("the payer alone", bought(Charged, 5), 5, vec![], 5),
            ("the payer alone, free", bought(Free, 0), 0, vec![], 0),
            ("the owner alone", vec![], 5, served(Charged, 5), 5),
            ("the owner alone, free", vec![], 0, served(Failed, 0), 0),
        ] {
            let found = differences(&one, paid, &other, earned);
            assert!(found.iter().any(|line| line.starts_with("call a: ")), "{what}: {found:?}");
        }
        let found = differences(&bought(Charged, 5), 5, &served(Charged, 5), 6);
        assert!(found.iter().any(|line| line.starts_with("channel ")), "totals: {found:?}");
    }

    #[test]
    fn what_a_crash_kept_out_is_allowed_when_it_is_older_than_the_start_and_paid() {
        let mut served = [call("a", HistoryKind::Served, HistoryState::Charged, 5)];
        served[0].time_secs = STARTED - 1;
        let adjustment = call("1", HistoryKind::Adjustment, HistoryState::Charged, 5);
        assert_eq!(differences(slice::from_ref(&adjustment), 5, &served, 5), Vec::<String>::new());
        let unpaid = differences(&[], 0, &served, 5);
        assert_eq!(unpaid.len(), 2, "the totals, and no adjustment: {unpaid:?}");
        let without = differences(&[], 5, &served, 5);
        assert_eq!(without.len(), 2, "no adjustment, and a total that nothing explains: {without:?}");
        let for_nothing = differences(&[adjustment], 5, &[], 5);
        assert_eq!(
            for_nothing.len(),
            2,
            "an adjustment without a call, and the owner's total: {for_nothing:?}"
        );
    }
}
