//! What raises which alert, below, at and above its level.

use farthing_control::types::{Eth, NodePart, ReplacedNode, WalletBalance};
use farthing_protocol::ServiceId;

use super::*;
use crate::consumer::{channels::tests::usdc, conduct::Flag};

fn levels() -> Levels {
    Levels {
        usdc_below: usdc(100),
        eth_below: Eth { wei: 50 },
        channel_below: usdc(10),
        webhook: None,
        secret: None,
    }
}

fn paying(available: u64) -> Paying {
    Paying {
        id: ChannelId::NONE,
        owner: Address::ZERO,
        available: usdc(available),
        stopped: false,
        closing: false,
    }
}

/// Everything is well with this node, which buys.
fn well() -> NodeFacts {
    NodeFacts {
        per_day: usdc(1_000),
        usdc: Some(usdc(100)),
        wei: Some(50),
        paying: vec![paying(10)],
        ..NodeFacts::default()
    }
}

fn kinds(facts: &NodeFacts) -> Vec<&'static str> {
    current(facts, &levels()).iter().map(|alert| alert.kind.name()).collect()
}

#[test]
fn each_level_raises_its_alert_below_it_and_not_at_it() {
    assert_eq!(kinds(&well()), [""; 0]);
    assert_eq!(kinds(&NodeFacts { usdc: Some(usdc(99)), ..well() }), ["usdc-low"]);
    assert_eq!(kinds(&NodeFacts { wei: Some(49), ..well() }), ["eth-low"]);
    assert_eq!(kinds(&NodeFacts { paying: vec![paying(9)], ..well() }), ["channel-low"]);
    assert_eq!(kinds(&NodeFacts { spent_today: usdc(799), ..well() }), [""; 0]);
    assert_eq!(kinds(&NodeFacts { spent_today: usdc(800), ..well() }), ["budget-low"]);
    let lost = Some(EarningsLost { amount: usdc(1), channels: 1 });
    assert_eq!(kinds(&NodeFacts { lost, ..well() }), ["earnings-lost"]);
    let sales_lost = Some(SalesLost { amount: usdc(1), calls: 1 });
    assert_eq!(kinds(&NodeFacts { sales_lost, ..well() }), ["sales-lost"]);
    let balance = WalletBalance {
        address: Address::ZERO.into(),
        usdc: None,
        eth: None,
        in_channels: usdc(1).into(),
        unclaimed: Usdc::ZERO.into(),
        stale: None,
    };
    let replaced = ReplacedNode {
        name: "replaced-x".to_owned(),
        path: String::new(),
        bytes: 1,
        replaced_secs: 1,
        wallet: None,
        left: Some(balance),
    };
    let left =
        vec![MoneyLeft { wallet: Address::ZERO.to_string(), folders: vec![replaced], better: Vec::new() }];
    assert_eq!(kinds(&NodeFacts { left, ..well() }), ["money-left"]);
    let none =
        Levels { usdc_below: Usdc::ZERO, eth_below: Eth { wei: 0 }, channel_below: Usdc::ZERO, ..levels() };
    let poor = NodeFacts { usdc: Some(Usdc::ZERO), wei: Some(0), paying: vec![paying(0)], ..well() };
    assert_eq!(current(&poor, &none), [], "a level of zero raises nothing");
}

#[test]
fn who_buys_nothing_needs_no_money_and_who_claims_needs_gas() {
    let poor = NodeFacts { usdc: Some(Usdc::ZERO), wei: Some(0), paying: Vec::new(), ..well() };
    assert_eq!(kinds(&poor), [""; 0]);
    assert_eq!(kinds(&NodeFacts { unclaimed: usdc(1), ..poor.clone() }), ["eth-low"]);
    let sponsored = NodeFacts { wei: Some(0), is_gas_paid: true, ..well() };
    assert_eq!(kinds(&sponsored), [""; 0], "owners pay the gas of deposits");
    assert_eq!(kinds(&NodeFacts { unclaimed: usdc(1), ..sponsored }), ["eth-low"], "but not of claims");
    let unread = UnreadEvents { skipped: vec![7, 9], failing: None };
    assert_eq!(kinds(&NodeFacts { unread, ..poor.clone() }), ["events-skipped"]);
    let stuck = NodeFacts { unclaimed: usdc(1), unaffordable: usdc(1), ..poor.clone() };
    assert_eq!(kinds(&stuck), ["claim-unaffordable", "eth-low"]);
    let refused = RefusedClaims { channels: 1, amount: usdc(1), reason: "the token refused".to_owned() };
    let refused = NodeFacts { unclaimed: usdc(1), refused: Some(refused), ..well() };
    assert_eq!(kinds(&refused), ["claim-refused"]);
    assert_eq!(kinds(&NodeFacts { unclaimed: Usdc::ZERO, ..refused }), [""; 0]);
    let unknown = NodeFacts { usdc: None, wei: None, ..well() };
    assert_eq!(kinds(&unknown), [""; 0], "what is not known yet is not told");
}

#[test]
fn a_transaction_that_keeps_claims_waiting_is_told() {
    let waits =
        |secs| NodeFacts { under_way: Some(("the ETH transfer", Duration::from_secs(secs))), ..well() };
    assert_eq!(kinds(&waits(599)), [""; 0]);
    let alerts = current(&waits(600), &levels());
    assert_eq!(alerts[0].kind, AlertKind::TransactionWaits);
    assert!(alerts[0].cause.starts_with("the ETH transfer has not been mined for 10 minutes"), "{alerts:?}");
}

#[test]
fn a_view_of_the_chain_that_grows_old_is_told_until_the_node_is_not_ready_for_it() {
    let seen = |secs| NodeFacts {
        stale: Stale::of("base", Duration::from_secs(secs), Duration::from_secs(600)),
        ..well()
    };
    for (secs, is_told) in [(300, false), (301, true), (600, true), (601, false)] {
        let told = if is_told { vec!["chain-stale"] } else { Vec::new() };
        assert_eq!(kinds(&seen(secs)), told, "{secs}");
    }
    let alerts = current(&seen(301), &levels());
    assert!(alerts[0].action.contains("`chain.rpc_urls`"), "{alerts:?}");
}

#[test]
fn a_stop_and_what_keeps_the_node_from_working_are_told_with_what_to_do() {
    for stopped in [SpendingStop::ByConfiguration, SpendingStop::Since(1)] {
        assert_eq!(kinds(&NodeFacts { stopped: Some(stopped), ..well() }), ["spending-stopped"]);
    }
    let mut closing = paying(0);
    closing.closing = true;
    assert_eq!(kinds(&NodeFacts { paying: vec![closing], ..well() }), [""; 0]);
    let mut distrusted = paying(0);
    distrusted.stopped = true;
    let waiting_for = [(NodePart::Chain, "it does not answer"), (NodePart::Network, "not listening yet")]
        .map(|(part, cause)| NotReadyPart { part, cause: cause.to_owned() });
    let alerts = current(
        &NodeFacts { paying: vec![distrusted], waiting_for: waiting_for.into(), ..well() },
        &levels(),
    );
    let named: Vec<_> = alerts.iter().map(|alert| (alert.kind.name(), alert.subject.as_str())).collect();
    let channel = ChannelId::NONE.to_string();
    assert_eq!(
        named,
        [("not-ready", "chain"), ("not-ready", "network"), ("channel-stopped", channel.as_str())]
    );
    assert!(alerts.iter().all(|alert| !alert.cause.is_empty() && !alert.action.is_empty()));
}

#[test]
fn a_flagged_service_is_told_unless_its_user_buys_it_all_the_same() {
    use crate::consumer::conduct::window::Figures;
    let figures =
        Figures { failed: 2, broke: 5, of: 9, since_secs: 1, last: "the answer is not JSON".to_owned() };
    let flag = Some(Flag::Breaks(figures));
    let service = ServiceId::from_bytes([3; 16]);
    let known = |flag: Option<Flag>, own_rule: Option<FlagRule>, rule| NodeFacts {
        flagged: vec![FlaggedService {
            conduct: ServiceConduct { service, flag, own_rule, rule },
            name: Some("Planets".to_owned()),
        }],
        ..well()
    };
    let (warn, stop) = (FlagRule::Warn, FlagRule::Stop);
    for (own_rule, rule) in [(None, warn), (None, stop), (Some(stop), stop)] {
        let alerts = current(&known(flag.clone(), own_rule, rule), &levels());
        assert_eq!(alerts.len(), 1);
        assert_eq!(
            (alerts[0].kind.name(), alerts[0].subject.clone()),
            ("service-flagged", service.to_string())
        );
        assert!(alerts[0].cause.contains("9 paid calls 2 failed and 5 "), "{}", alerts[0].cause);
        assert!(alerts[0].cause.contains(&format!("“Planets” ({service})")), "{}", alerts[0].cause);
    }
    assert_eq!(kinds(&known(flag, Some(warn), warn)), [""; 0]);
    assert_eq!(kinds(&known(None, Some(stop), stop)), [""; 0]);
}

#[test]
fn a_disk_that_is_nearly_full_is_told_first() {
    let space = |free_mib: u64| Space { free_bytes: free_mib << 20, total_bytes: 10_000 << 20 };
    assert_eq!(kinds(&NodeFacts { disk: Some(space(512)), ..well() }), [""; 0]);
    let alerts = current(&NodeFacts { disk: Some(space(511)), ..well() }, &levels());
    assert_eq!(alerts[0].kind, AlertKind::DiskLow);
    assert!(alerts[0].cause.starts_with("511 of 10000 MiB free"), "{}", alerts[0].cause);
    assert_eq!(alerts[0].severity, Error);
    let little = Space { free_bytes: 4_999 << 20, total_bytes: 100_000 << 20 };
    let alerts = current(&NodeFacts { disk: Some(little), ..well() }, &levels());
    assert_eq!((alerts[0].kind, alerts[0].severity), (AlertKind::DiskLow, Warning));
}

#[test]
fn a_catalog_that_cannot_be_written_is_told_and_leaves_the_node_ready() {
    for (failing, severity) in [(Failing::Storage, Error), (Failing::Index, Warning)] {
        let alerts = current(&NodeFacts { catalog: Some(failing), ..well() }, &levels());
        let told: Vec<_> = alerts.iter().map(|alert| (alert.kind, alert.severity)).collect();
        assert_eq!(told, [(AlertKind::CatalogFailed, severity)]);
    }
}

#[test]
fn an_alert_keeps_its_time_and_takes_that_of_a_clock_which_was_set_back() {
    let mut since = BTreeMap::new();
    let mut told = |facts: &NodeFacts, now_secs| {
        let mut alerts = current(facts, &levels());
        date(&mut alerts, &mut since, now_secs);
        alerts.first().map(|alert| alert.since_secs)
    };
    let poor = NodeFacts { usdc: Some(usdc(1)), ..well() };
    assert_eq!(told(&poor, 10_000), Some(10_000));
    assert_eq!(told(&poor, 10_009), Some(10_000));
    // It is not held back for as long as the clock jumped: nobody would be told of it.
    assert_eq!(told(&poor, 5_000), Some(5_000));
    assert_eq!(told(&poor, 5_009), Some(5_000));
    assert_eq!(told(&well(), 5_010), None);
    assert_eq!(told(&poor, 5_020), Some(5_020), "another time is another alert");
}
