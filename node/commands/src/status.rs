//! The state of the node: status, health, doctor.

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use farthing_chain::ChainKind;
use farthing_config::Rendezvous;
use farthing_control::{
    counted,
    types::{Alert, AlertKind, AlertSeverity, ChainStatus, Check, Doctor, Eth, Status},
};
use farthing_network::{AddressCheck, AddressSource, BootstrapPeer, NetworkStatus, ReachState};
use farthing_node::{
    alerts::{TWIN, TWIN_NEXT, catalog_alert},
    handles::Handles,
    status::{clock_off, has_public_head},
};
use farthing_os::clock;
use farthing_protocol::{Usdc, shards::Shards};
use farthing_shared::{
    chain_view::{self, NotReady, STALE_NEXT},
    disk::{LOW, LOW_NEXT, Space},
};

mod door;

use super::{
    audit::full_audit,
    reach::{Words, bootstrap as joining, rendezvous},
};

answer!(Status: status);
async fn status(State(node): State<Handles>) -> Json<Status> {
    let network = node.network.status().borrow().clone();
    let spec = node.chain.spec();
    let head = *node.chain.head().borrow();
    // What stops it first, then what may; that spending is stopped is told by `spending`.
    let raised = node.alerts.look().into_iter().filter(|alert| alert.kind != AlertKind::SpendingStopped);
    let mut alerts: Vec<Alert> = raised.collect();
    let joining = |kind, cause: String, action: &str| Alert {
        since_secs: node.started_secs,
        ..Alert::new(kind, AlertSeverity::Warning, cause, action)
    };
    if is_alone(&node, &network) {
        let cause = match network.rendezvous.is_on {
            true => {
                let words = rendezvous::sentence(&network.rendezvous, clock::now_secs());
                format!("no peers: {}", words.trim_end_matches('.'))
            }
            false => "no peers and no `network.bootstrap`".to_owned(),
        };
        alerts.push(joining(AlertKind::Alone, cause, "name a node to join through"));
    }
    let amiss = network.bootstrap.iter().filter(|peer| is_amiss(peer, &network));
    alerts.extend(amiss.map(|peer| {
        let cause = format!("{} {}", peer.address, peer.state);
        joining(AlertKind::BootstrapUnusable, cause, "change `network.bootstrap`").about(&peer.address)
    }));
    Json(Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_secs: clock::now_secs().saturating_sub(node.started_secs),
        address: node.wallet.into(),
        peer_id: node.peer_id.clone(),
        addresses: if network.external.is_empty() { network.listening } else { network.external },
        reach: Words(&network.reachability).in_short(),
        rendezvous: rendezvous::sentence(&network.rendezvous, clock::now_secs()),
        gateway_url: node.gateway_url(),
        x402_url: node.x402_url(),
        network: node.network_name.clone(),
        chain: ChainStatus {
            name: spec.name.clone(),
            chain_id: spec.chain_id,
            testnet: spec.kind != ChainKind::Mainnet,
            explorer: spec.explorer.clone(),
            head: head.map(|head| head.number),
            head_age_secs: head.map(|head| head.age().as_secs()),
            problem: chain_view::ready(&node.chain).err().map(|reason| reason.to_string()),
        },
        balance: node.balance(),
        peers: network.peers as u64,
        services: node.registry.all().len() as u64,
        spending: node.consumer.may_spend().is_ok() && node.ledger.closed().is_none(),
        spent_today: node.consumer.spent_today().into(),
        alerts,
    })
}

answer!(Health: health);
async fn health(State(node): State<Handles>) -> Response {
    let health = node.readiness.health();
    let status = if health.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(health)).into_response()
}

answer!(Doctor: doctor);
async fn doctor(State(node): State<Handles>) -> Json<Doctor> {
    let is_twin_there = node.network.look_for_twin().await;
    let network = node.network.status().borrow().clone();
    let audit = full_audit(&node, false).await;
    let mut checks = vec![
        check(
            "ledger",
            match (node.ledger.closed(), &audit) {
                (Some(closed), _) => Err((closed.to_string(), "free disk space, then restart the node")),
                (None, Err(error)) => Err((error.to_string(), "restore a backup of the data folder")),
                (None, Ok(audit)) if audit.violations_total > 0 => Err((
                    format!("{} invariants are violated", audit.violations_total),
                    "keep the data folder as it is and see docs/ledger.md",
                )),
                (None, Ok(audit)) => Ok(format!(
                    "the books add up ({} served, {} bought)",
                    counted(audit.calls, "call"),
                    audit.purchases
                )),
            },
        ),
        chain(&node),
        wallet(&node),
        catalog(&node),
        check(
            "network",
            if is_twin_there {
                Err((TWIN.to_owned(), TWIN_NEXT))
            } else if network.peers > 0 {
                Ok(format!("peers: {}; listening on {}", network.peers, network.listening.join(", ")))
            } else {
                Err(("no peers are connected".to_owned(), alone(&node.config.network)))
            },
        ),
    ];
    // First: it notes what the alerts tell.
    checks.extend(door::check(&node).await);
    checks.extend(node.alerts.look().into_iter().filter(|alert| !has_a_check(alert.kind)).map(of_alert));
    checks.extend(Space::of(&node.config.node.data_dir).map(disk_check));
    checks.push(clock_check(&node, &network));
    checks.extend(bootstrap(&network));
    checks.extend(of_rendezvous(&network));
    checks.push(check("reach", reach(&node, &network)));
    Json(Doctor { checks })
}

/// Tells how much of the network is known here, and whether more can be stored.
fn catalog(node: &Handles) -> Check {
    let name = "catalog".to_owned();
    if let Some(failing) = node.catalog.storage().failing {
        return Check { name, ..of_alert(catalog_alert(failing)) };
    }
    let known = node.catalog.counts();
    let mut told = format!("{} of {}", counted(known.listings, "service"), counted(known.owners, "owner"));
    let shards = node.catalog.shards();
    if shards != Shards::ALL {
        told += &format!("; this node keeps {} of the network's 16 shards (catalog.shards)", shards.count());
    }
    if node.catalog.is_full() {
        told += "; the storage for listings is full: raise catalog.listings_max, or keep fewer shards (catalog.shards)";
    }
    Check { name, good: true, detail: told, next: None }
}

fn check(name: &str, result: Result<String, (String, &str)>) -> Check {
    let (good, detail, next) = match result {
        Ok(detail) => (true, detail, None),
        Err((detail, next)) => (false, detail, Some(next.to_owned())),
    };
    Check { name: name.to_owned(), good, detail, next }
}

/// Checks that the chain can be used, and shows new blocks.
fn chain(node: &Handles) -> Check {
    let spec = node.chain.spec();
    let ready = chain_view::ready(&node.chain).map_err(|reason| {
        let next = match &reason {
            NotReady::ContractMissing { .. } => chain_view::contract_next(spec.kind),
            NotReady::Refused { .. } => {
                "check that `chain.token`, `chain.contract` and `chain.rpc_urls` belong to the chain you want"
            }
            _ => "set an endpoint that answers in `chain.rpc_urls`",
        };
        (reason.to_string(), next)
    });
    let usable = ready.map(|()| format!("{} answers and its contracts are the right ones", spec.name));
    match chain_view::stale(&node.chain) {
        Some(stale) if usable.is_ok() => {
            let next = Some(STALE_NEXT.to_owned());
            Check { good: !stale.is_too_old(), next, ..check("chain", Ok(stale.to_string())) }
        }
        _ => check("chain", usable),
    }
}

/// Tells whether a check of the doctor's own says what an alert does, with more.
const fn has_a_check(kind: AlertKind) -> bool {
    use AlertKind::{CatalogFailed, ChainStale, ClockOff, DiskLow, NotReady, WalletTwice, X402Closed};
    matches!(kind, NotReady | ChainStale | DiskLow | CatalogFailed | ClockOff | WalletTwice | X402Closed)
}

/// An alert as a check, in its own words.
fn of_alert(alert: Alert) -> Check {
    let Alert { kind, severity, cause, action, .. } = alert;
    let good = severity != AlertSeverity::Error;
    Check { name: kind.name().to_owned(), good, detail: cause, next: Some(action) }
}

/// A node works until the last byte is written.
fn disk_check(space: Space) -> Check {
    let detail = format!("{space} free on the disk with the data folder");
    let (detail, next) = match space.is_little() {
        true => (format!("{detail}: {LOW}"), Some(LOW_NEXT.to_owned())),
        false => (detail, None),
    };
    Check { name: "disk".to_owned(), good: true, detail, next }
}

fn wallet(node: &Handles) -> Check {
    let Some(held) = *node.chain.balances().borrow() else {
        return check(
            "wallet",
            Err(("the balance is not known yet".to_owned(), "wait until the chain answers")),
        );
    };
    let needs = Needs {
        usdc: held.usdc.is_zero(),
        eth: held.eth_wei == 0,
        trade: match (node.channels.all().is_empty(), node.registry.all().is_empty()) {
            (false, _) => Trade::Buys,
            (true, false) => Trade::Sells,
            (true, true) => Trade::Nothing,
        },
        is_sponsored: !node.funding.needs_eth(),
        unclaimed: node.balance().unclaimed.0,
    };
    let detail = format!("{} holds {} USDC and {} ETH", node.wallet, held.usdc, Eth { wei: held.eth_wei });
    let mut check = needs.check(detail);
    if let Some(faucets) = chain_view::faucets(node.chain.spec().kind).filter(|_| needs.usdc || needs.eth) {
        let text = check.next.as_mut().unwrap_or(&mut check.detail);
        text.push_str("; ");
        text.push_str(faucets);
    }
    check
}

/// The trade of a node, as far as it takes money.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trade {
    /// Has neither services nor channels.
    Nothing,
    /// Has services, and never opened a channel to buy from others.
    Sells,
    /// Opened a channel.
    Buys,
}

/// The money that a wallet lacks, and its purpose.
#[derive(Clone, Copy)]
struct Needs {
    /// There is none.
    usdc: bool,
    /// There is none.
    eth: bool,
    trade: Trade,
    /// As far as is known, owners pay the gas of its deposits.
    is_sponsored: bool,
    /// Earned, and to be claimed.
    unclaimed: Usdc,
}

impl Needs {
    /// Checks the money: who only sells needs gas alone, to claim what was earned; who does neither needs nothing; and who buys
    /// needs gas only where owners do not pay it.
    fn check(self, detail: String) -> Check {
        if !self.usdc && !self.eth {
            return check("wallet", Ok(detail));
        }
        if self.trade == Trade::Nothing && self.unclaimed.is_zero() {
            let enough = format!(
                "{detail}, enough as long as it buys nothing; to buy, USDC alone is enough for most owners"
            );
            return check("wallet", Ok(enough));
        }
        match (self.trade, self.usdc, self.is_sponsored) {
            (Trade::Buys, true, true) => {
                let next =
                    "send it USDC to buy calls; the owners that it pays also pay the gas, so it needs no ETH";
                return check("wallet", Err((detail, next)));
            }
            (Trade::Buys, _, false) => {
                let next = match (self.usdc, self.eth) {
                    (true, true) => "send it USDC and a little ETH for gas to buy calls",
                    (true, false) => "send it USDC to buy calls",
                    (false, _) => {
                        "send it a little ETH for gas to buy calls, because an owner does not pay it; `farthing wallet \
                         send` needs ETH as well"
                    }
                };
                return check("wallet", Err((detail, next)));
            }
            (Trade::Buys, false, true) if self.unclaimed.is_zero() => {
                let enough = format!(
                    "{detail}; USDC alone is enough, because owners pay the gas of its deposits. To send USDC out of \
                     the wallet takes a little ETH"
                );
                return check("wallet", Ok(enough));
            }
            _ => {}
        }
        if !self.eth {
            return check("wallet", Ok(detail));
        }
        if self.unclaimed.is_zero() {
            let enough = format!("{detail}, enough to sell; claiming your earnings takes a little ETH");
            return check("wallet", Ok(enough));
        }
        let detail = format!("{detail}, and {} USDC are earned and not claimed", self.unclaimed);
        let next = "send it a little ETH for gas, so that your earnings can be claimed".to_owned();
        Check { next: Some(next), ..check("wallet", Ok(detail)) }
    }
}

/// Returns whether nobody is there, and nobody is about to come: a node that has the rendezvous is alone once it has asked there.
fn is_alone(node: &Handles, network: &NetworkStatus) -> bool {
    let has_asked = !network.rendezvous.is_on || network.rendezvous.asked.is_some();
    node.config.network.bootstrap.is_empty() && network.peers == 0 && has_asked
}

/// Returns what a node without peers can do about it.
const fn alone(network: &farthing_config::NetworkConfig) -> &'static str {
    let asks_elsewhere = matches!(network.rendezvous, Rendezvous::Ipfs);
    match (network.bootstrap.is_empty(), network.mdns) {
        (false, _) => "see each node of `network.bootstrap` below, and name one that answers",
        (true, _) if asks_elsewhere => {
            "see the rendezvous below, where this node keeps asking; or name a node in `network.bootstrap`"
        }
        (true, true) => {
            "no node of this network was found on the local network; name a node in `network.bootstrap`, or wait for \
             one"
        }
        (true, false) => {
            "name a node to join through in `network.bootstrap`; the first node of a network waits until another node \
             joins through it"
        }
    }
}

/// Checks that this machine's clock is right, by the chain's and others'.
fn clock_check(node: &Handles, network: &NetworkStatus) -> Check {
    const NEXT: &str = "set this machine's clock, for example with `timedatectl set-ntp true`; if it is off by five \
                        minutes, other nodes refuse what this node signs, or it refuses theirs";
    let off = clock_off(&node.chain, network.clock, network.peers);
    match off {
        None => check("clock", Ok(clock_words(network.peers, has_public_head(&node.chain)).to_owned())),
        Some(off) if off.is_bad() => check("clock", Err((off.to_string(), NEXT))),
        Some(off) => Check { next: Some(NEXT.to_owned()), ..check("clock", Ok(off.to_string())) },
    }
}

/// Words on a clock of which nobody says that it is wrong: who was compared with.
const fn clock_words(peers: usize, has_public_head: bool) -> &'static str {
    match (peers, has_public_head) {
        (0, false) => "no other node is connected to compare it with",
        (0, true) => "the chain's newest block agrees; no other node is connected to compare it with",
        _ => "other nodes agree",
    }
}

/// Returns whether there is something to do about a configured peer: every mistake, and whoever does not answer a node
/// that has nobody.
fn is_amiss(peer: &BootstrapPeer, network: &NetworkStatus) -> bool {
    peer.state.is_mistake() || network.peers == 0 && joining::next(&peer.state).is_some()
}

/// One check for each configured peer: what mends one does not mend another.
fn bootstrap(network: &NetworkStatus) -> Vec<Check> {
    if network.bootstrap.is_empty() {
        return vec![check("bootstrap", Ok("no nodes are configured to begin with".to_owned()))];
    }
    let of_peer = |peer: &BootstrapPeer| Check {
        name: "bootstrap".to_owned(),
        good: !is_amiss(peer, network),
        detail: format!("{} {}", peer.address, peer.state),
        next: joining::next(&peer.state).map(str::to_owned),
    };
    network.bootstrap.iter().map(of_peer).collect()
}

/// Tells what the public DHT did for this node, where it is used. A node with company goes on without it.
fn of_rendezvous(network: &NetworkStatus) -> Option<Check> {
    let report = &network.rendezvous;
    let words = check("rendezvous", Ok(rendezvous::sentence(report, clock::now_secs())));
    report.is_on.then(|| Check { next: rendezvous::next(report).map(str::to_owned), ..words })
}

/// Only who sells has to be reached; but what somebody named has to lead here.
fn reach(node: &Handles, network: &NetworkStatus) -> Result<String, (String, &'static str)> {
    let reachability = &network.reachability;
    let words = Words(reachability).sentence(clock::now_secs());
    let is_tested = reachability.checks.iter().any(|check| check.state == ReachState::NotReachable);
    let is_dead = |check: &AddressCheck| {
        check.source == AddressSource::Announced && check.state == ReachState::NotReachable
    };
    if reachability.checks.iter().any(is_dead) && reachability.is_reachable() {
        return Err((words, "nobody can connect to an address in `network.announce`; correct or remove it"));
    }
    if reachability.checks.iter().any(is_dead) && node.registry.all().is_empty() {
        return Err((
            words,
            "nobody can connect to the addresses in `network.announce`; correct or remove them, or open the port",
        ));
    }
    let is_relayed = !reachability.relays.through.is_empty();
    if is_tested && !reachability.is_reachable() && !is_relayed && !node.registry.all().is_empty() {
        return Err((
            words,
            "consumers cannot call your services until TCP, UDP or a relay works; `farthing net reach` tests again",
        ));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_said_to_agree_only_with_those_that_are_there() {
        for (peers, has_public_head, by_nodes, by_chain) in [
            (0, false, false, false),
            (0, true, false, true),
            (1, false, true, false),
            (1, true, true, false),
        ] {
            let words = clock_words(peers, has_public_head);
            let told = (words.contains("other nodes agree"), words.contains("block agrees"));
            assert_eq!(told, (by_nodes, by_chain), "{words}");
        }
    }

    #[test]
    fn who_only_sells_needs_gas_for_claims_and_who_does_nothing_needs_nothing() {
        for (usdc, eth, trade, unclaimed, good, warns) in [
            (false, false, Trade::Buys, 0, true, false),
            (true, false, Trade::Buys, 0, false, true),
            (false, true, Trade::Buys, 0, false, true),
            (true, true, Trade::Buys, 9, false, true),
            (true, true, Trade::Sells, 0, true, false),
            (true, false, Trade::Sells, 9, true, false),
            (true, true, Trade::Sells, 9, true, true),
            (true, true, Trade::Nothing, 0, true, false),
            (true, true, Trade::Nothing, 9, true, true),
        ] {
            let unclaimed = Usdc::from_micros(unclaimed);
            let needs = Needs { usdc, eth, trade, is_sponsored: false, unclaimed };
            let check = needs.check("the wallet".to_owned());
            assert_eq!((check.good, check.next.is_some()), (good, warns), "{check:?}");
        }
    }

    #[test]
    fn a_buyer_whose_gas_no_owner_pays_is_asked_for_what_it_lacks_alone() {
        for (usdc, eth) in [(true, true), (true, false), (false, true)] {
            let (trade, unclaimed) = (Trade::Buys, Usdc::ZERO);
            let needs = Needs { usdc, eth, trade, is_sponsored: false, unclaimed };
            let next = needs.check("the wallet".to_owned()).next.unwrap_or_default();
            assert_eq!((next.contains("send it USDC"), next.contains("a little ETH")), (usdc, eth), "{next}");
        }
        let needs =
            Needs { usdc: false, eth: true, trade: Trade::Buys, is_sponsored: true, unclaimed: Usdc::ZERO };
        let check = needs.check("the wallet".to_owned());
        assert!(check.good && check.detail.contains("out of the wallet takes a little ETH"), "{check:?}");
    }

    #[test]
    fn who_buys_from_owners_that_pay_its_gas_is_asked_for_usdc_alone() {
        for (usdc, eth, unclaimed, good, asks_for_eth) in [
            (false, true, 0, true, false),
            (true, true, 0, false, false),
            (true, false, 0, false, false),
            (false, true, 9, true, true),
        ] {
            let unclaimed = Usdc::from_micros(unclaimed);
            let needs = Needs { usdc, eth, trade: Trade::Buys, is_sponsored: true, unclaimed };
            let check = needs.check("the wallet".to_owned());
            let next = check.next.clone().unwrap_or_default();
            assert_eq!((check.good, next.contains("a little ETH")), (good, asks_for_eth), "{check:?}");
            assert_eq!(next.contains("send it USDC"), usdc, "{check:?}");
        }
    }
}
