//! Limits of the gas that is paid for others.

use std::net::Ipv4Addr;

use farthing_ledger::OpenMode;

use super::*;

const NOW_SECS: u64 = 1_795_000_000;
const OWN: Address = Address::from_bytes([9; 20]);

const fn usdc(micros: u64) -> Usdc {
    Usdc::from_micros(micros)
}

fn sponsor(rules: SponsorRules) -> Sponsor {
    Sponsor::new(rules, Usdc::ZERO)
}

fn range(n: u32) -> ErrandOrigin {
    ErrandOrigin::Range(Ipv4Addr::from(n).into())
}

/// The reason and the wait of a refusal.
fn refused(reply: Result<(), SponsorReply>) -> Option<(NotSponsored, Option<u64>)> {
    match reply {
        Err(SponsorReply::Refused { why, retry_after_secs, .. }) => Some((why, retry_after_secs)),
        Err(other) => panic!("{other:?}"),
        Ok(()) => None,
    }
}

#[test]
fn one_origin_asks_so_often_in_an_hour_and_others_ask_beside_it() {
    let sponsor = sponsor(SponsorRules { per_hour: 3, ..SponsorRules::default() });
    let now = Instant::now();
    for _ in 0..3 {
        assert_eq!(refused(sponsor.count(range(1), now)), None);
    }
    let later = now + Duration::from_secs(600);
    assert_eq!(refused(sponsor.count(range(1), later)), Some((NotSponsored::TooMany, Some(3_000))));
    assert_eq!(refused(sponsor.count(range(2), later)), None, "another address range");
    assert_eq!(refused(sponsor.count(ErrandOrigin::Wallet(OWN), later)), None);
    assert_eq!(refused(sponsor.count(range(1), now + HOUR)), None, "an hour later");
}

#[test]
fn a_flood_of_origins_is_remembered_up_to_a_bound_and_forgotten_after_an_hour() {
    let sponsor = sponsor(SponsorRules::default());
    let (now, all) = (Instant::now(), u32::try_from(ORIGINS_MAX).unwrap());
    for n in 0..all {
        assert_eq!(refused(sponsor.count(range(n), now)), None);
    }
    let refusal = refused(sponsor.count(range(all), now));
    assert_eq!(refusal.map(|(why, _)| why), Some(NotSponsored::TooMany));
    assert_eq!(refused(sponsor.count(range(0), now)), None, "one that is remembered");
    assert_eq!(refused(sponsor.count(range(all), now + HOUR)), None);
    assert_eq!(sponsor.asked.lock().len(), 1);
}

#[test]
fn the_gas_of_a_day_is_bounded_and_what_was_not_spent_of_it_is_free_again() {
    let sponsor = sponsor(SponsorRules { gas_per_day: usdc(1_000), ..SponsorRules::default() });
    let now = Instant::now();
    assert_eq!(refused(sponsor.reserve(usdc(1_001), now)), Some((NotSponsored::DayIsSpent, Some(86_400))));
    assert_eq!(refused(sponsor.reserve(usdc(1_000), now)), None, "exactly the budget");
    assert!(sponsor.reserve(usdc(1), now).is_err());
    sponsor.settle(usdc(1_000), usdc(400));
    assert_eq!(refused(sponsor.reserve(usdc(600), now)), None);
    assert!(sponsor.reserve(usdc(1), now + DAY - Duration::from_secs(1)).is_err());
    let next_day = now + DAY;
    assert!(sponsor.reserve(usdc(401), next_day).is_err(), "what is under way may be paid on the next day");
    assert_eq!(refused(sponsor.reserve(usdc(400), next_day)), None);
    sponsor.settle(usdc(600), usdc(100));
    assert!(sponsor.reserve(usdc(501), next_day).is_err(), "and what it did cost counts on it");
    assert_eq!(refused(sponsor.reserve(usdc(500), next_day)), None);
}

#[test]
fn a_sum_is_worth_its_gas_at_the_factor_and_not_below() {
    let sponsor = sponsor(SponsorRules::default());
    for (sum, gas, expected) in [
        (400, 20, None),
        (399, 20, Some((NotSponsored::TooSmall, None))),
        (0, 0, None),
        (0, 1, Some((NotSponsored::TooSmall, None))),
    ] {
        assert_eq!(refused(sponsor.check_worth(usdc(sum), usdc(gas))), expected, "{sum} for {gas}");
    }
}

#[test]
fn a_withdrawal_waits_for_the_claim_of_what_was_earned_but_for_none_below_its_gas() {
    for (unclaimed, gas, expected) in [
        (0, 0, None),
        (20, 20, None),
        (21, 20, Some((NotSponsored::Unable, Some(10)))),
        (1, 0, Some((NotSponsored::Unable, Some(10)))),
    ] {
        assert_eq!(refused(check_claimed(usdc(unclaimed), usdc(gas))), expected, "{unclaimed} for {gas}");
    }
}

#[tokio::test]
async fn what_was_paid_for_others_in_the_last_day_counts_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(&folder.path().join("ledger.redb"), OpenMode::Create).unwrap();
    // A millionth of an ETH: 3,000 micros.
    let fee_wei = 1_000_000_000_000_u128.to_be_bytes();
    let other = Address::from_bytes([8; 20]);
    for (n, purpose, peer, time_secs) in [
        (1, "sponsored deposit", other, NOW_SECS - 10),
        (2, "sponsored request to close", other, NOW_SECS - 86_400),
        (3, "withdrawal", OWN, NOW_SECS - 10),
        (4, "withdrawal", other, NOW_SECS - 10),
        (5, "deposit", other, NOW_SECS - 10),
        (6, "sponsored deposit", other, NOW_SECS - 86_401),
    ] {
        let transaction = Transaction {
            hash: [n; 32],
            block: 1,
            time_secs,
            purpose: purpose.to_owned(),
            channel: None,
            peer: Some(peer),
            amount: Usdc::ZERO,
            wei: [0; 16],
            fee_wei,
            standing: None,
            chain_id: Some(1),
        };
        ledger.note_transaction(transaction, None).await.unwrap();
    }
    let rules = SponsorRules { gas_per_day: usdc(10_000), ..SponsorRules::default() };
    let sponsor = Sponsor::restore(rules, &ledger, OWN, NOW_SECS).unwrap();
    let now = Instant::now();
    assert!(sponsor.reserve(usdc(1_001), now).is_err(), "three of them count");
    assert!(sponsor.reserve(usdc(1_000), now).is_ok());
}
