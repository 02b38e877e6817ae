//! Figures of calls by hour and by day: each end counts once, in bounded tables, as the history has it.

use farthing_ledger::{
    Acknowledgement, Call, CallFigures, Ledger, OpenMode, Promise, Retention, Side, Subject, Timing,
    Uncharged,
};
use farthing_values::{Address, Outcome, RefusalCode, ServiceId, Usdc};
use redb::{Database, TableDefinition};

use crate::world::*;

const HOURS: TableDefinition<&[u8; 41], &[u8]> = TableDefinition::new("service_hours");
const DAYS: TableDefinition<&[u8; 41], &[u8]> = TableDefinition::new("service_days");
const HOUR_SECS: u64 = 3_600;
const DAY_SECS: u64 = 86_400;

/// Everything that is counted, in the order of time.
fn all(ledger: &Ledger) -> Vec<(u64, Subject, CallFigures)> {
    let mut rows = Vec::new();
    ledger.call_figures(0, |_| true, |start, subject, figures| rows.push((start, subject, figures))).unwrap();
    rows.sort_by_key(|(start, subject, _)| (*start, subject.side == Side::Payee, subject.service));
    rows
}

fn sum(ledger: &Ledger, side: Side) -> CallFigures {
    let mut sum = CallFigures::default();
    for (_, _, figures) in all(ledger).iter().filter(|(_, subject, _)| subject.side == side) {
        sum.add(figures);
    }
    sum
}

async fn serve(ledger: &Ledger, number: u64, call: Call) {
    ledger.serve(served(1, micros(number * PRICE.micros()), call)).await.unwrap();
}

/// Buys a call that ends so.
async fn buy(ledger: &Ledger, number: u64, charged: Usdc, outcome: Outcome, total_us: u64) {
    let promise = promise(2, number, micros(number * PRICE.micros()));
    ledger.promise(promise.clone()).await.unwrap().await.unwrap();
    let timing = Timing { total_us, ..Timing::default() };
    let end = Acknowledgement { timing, ..acknowledgement(receipt(&promise, charged, outcome)) };
    ledger.acknowledge(call_id(number), end).await.unwrap();
}

async fn with_both_sides(ledger: Ledger) -> Ledger {
    ledger.put_payee_channel(payee_channel(1)).await.unwrap();
    ledger.put_payer_channel(payer_channel(2)).await.unwrap();
    ledger
}

#[tokio::test]
async fn a_call_counts_once_in_its_hour_however_often_it_ended() {
    let ledger = with_both_sides(in_memory()).await;
    // Failed, then answered under the same id.
    serve(&ledger, 1, failed_call(1)).await;
    serve(&ledger, 1, call(1)).await;
    serve(&ledger, 2, failed_call(2)).await;
    buy(&ledger, 1, PRICE, Outcome::Answered, 40_000).await;
    buy(&ledger, 2, Usdc::ZERO, Outcome::Declined, 400_000).await;
    buy(&ledger, 3, Usdc::ZERO, Outcome::TimedOut, 9_000_000).await;
    // Released, then bought under the same id.
    for (number, why) in [(4, Uncharged::from("never sent")), (5, Uncharged::refused(RefusalCode::Busy))] {
        let promise = promise(2, number, micros(number * PRICE.micros()));
        ledger.promise(promise).await.unwrap().await.unwrap();
        ledger.release(call_id(number), why, NOW_SECS).await.unwrap();
    }
    buy(&ledger, 4, PRICE, Outcome::Answered, 40_000).await;
    // Released in doubt, and charged after all.
    let late = promise(2, 6, micros(6 * PRICE.micros()));
    ledger.promise(late.clone()).await.unwrap().await.unwrap();
    ledger.release_in_doubt(call_id(6), "never served", NOW_SECS).await.unwrap();
    let end = Acknowledgement { status: 0, ..acknowledgement(receipt(&late, PRICE, Outcome::Answered)) };
    ledger.acknowledge(call_id(6), end).await.unwrap();

    let hour = NOW_SECS / HOUR_SECS * HOUR_SECS;
    let owner = world().payee.address();
    let rows = all(&ledger);
    let places: Vec<_> = rows.iter().map(|(start, subject, _)| (*start, *subject)).collect();
    let bought = Subject { side: Side::Payer, owner, service: SERVICE };
    let served = Subject { side: Side::Payee, owner: Address::ZERO, service: SERVICE };
    assert_eq!(places, [(hour, bought), (hour, served)]);
    let (bought, served) = (&rows[0].2, &rows[1].2);
    assert_eq!((served.ended(Outcome::Answered), served.ended(Outcome::ServerError)), (1, 1));
    assert_eq!((served.calls(), served.charged, served.latencies.percentile_us(50)), (2, PRICE, Some(1_000)));
    assert_eq!((bought.calls(), bought.charged), (6, micros(6_000)));
    assert_eq!((bought.refused, bought.released), (1, 0));
    assert_eq!((bought.ended(Outcome::Answered), bought.answered()), (3, 4));
    // The receipt that came late tells no time, and a failure none that counts.
    let percentiles = [50, 95].map(|percent| bought.latencies.percentile_us(percent).unwrap());
    assert!((30_000..=50_000).contains(&percentiles[0]), "{percentiles:?}");
    assert!((300_000..=500_000).contains(&percentiles[1]), "{percentiles:?}");
    // The same calls in the parts of the last hour.
    for side in [Side::Payer, Side::Payee] {
        let (mut sum, mut newest) = (CallFigures::default(), 0);
        let mut add = |secs: u64, of: Subject, figures: CallFigures| {
            assert!(of.side == side && (hour..hour + HOUR_SECS).contains(&secs), "{of:?} at {secs}");
            sum.add(&figures);
            newest = newest.max(secs);
        };
        ledger.latest_figures(hour, |subject| subject.side == side, &mut add);
        assert_eq!(&sum, if side == Side::Payer { bought } else { served });
        let later = |_, subject: Subject, _| panic!("{subject:?} came later than {newest}");
        ledger.latest_figures(newest + 1, |subject| subject.side == side, later);
    }
    // As the history has it.
    assert_eq!(ledger.purchases(100).unwrap().len() as u64, bought.calls());
    assert_eq!(ledger.served_calls(100).unwrap().len() as u64, served.calls());
    assert_eq!(ledger.audit(None).unwrap().violations, []);
}

#[tokio::test]
async fn the_last_hour_is_the_same_after_a_restart() {
    let now_secs = farthing_os::clock::now_secs();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let ledger = with_both_sides(Ledger::open(&path, OpenMode::Create).unwrap()).await;
    for (number, before_secs) in [(1, 3_000), (2, 600), (3, 0), (4, 20 * HOUR_SECS)] {
        serve(&ledger, number, Call { time_secs: now_secs - before_secs, ..call(number) }).await;
    }
    for (number, before_secs) in [(1, 3_000), (2, 20 * HOUR_SECS)] {
        let promise = promise(2, number, micros(number * PRICE.micros()));
        let promise = Promise { time_secs: now_secs - before_secs, ..promise };
        ledger.promise(promise.clone()).await.unwrap().await.unwrap();
        let end = acknowledgement(receipt(&promise, PRICE, Outcome::Answered));
        ledger.acknowledge(call_id(number), end).await.unwrap();
    }
    let told = |ledger: &Ledger| {
        let mut rows = Vec::new();
        ledger.latest_figures(
            now_secs - HOUR_SECS,
            |_| true,
            |secs, subject, figures| rows.push((secs, subject.side == Side::Payee, figures)),
        );
        rows.sort_by_key(|(secs, is_served, _)| (*is_served, *secs));
        rows
    };
    let before = told(&ledger);
    let calls: Vec<_> = before.iter().map(|(_, is_served, figures)| (*is_served, figures.calls())).collect();
    assert_eq!(calls, [(false, 1), (true, 1), (true, 1), (true, 1)]);
    drop(ledger);
    assert_eq!(told(&Ledger::open(&path, OpenMode::Existing).unwrap()), before);
}

#[tokio::test]
async fn hours_become_their_day_after_a_month_and_days_go_after_three_years() {
    let ledger = earning().await;
    for (number, later_secs) in [(1, 0), (2, HOUR_SECS), (3, 31 * DAY_SECS)] {
        serve(&ledger, number, Call { time_secs: NOW_SECS + later_secs, ..call(number) }).await;
    }
    let starts = |ledger: &Ledger| all(ledger).iter().map(|(start, ..)| *start).collect::<Vec<_>>();
    let hour = |secs: u64| secs / HOUR_SECS * HOUR_SECS;
    let month_later = hour(NOW_SECS + 31 * DAY_SECS);
    assert_eq!(
        starts(&ledger),
        [hour(NOW_SECS), hour(NOW_SECS + HOUR_SECS), month_later],
        "31 days are kept"
    );
    serve(&ledger, 4, Call { time_secs: NOW_SECS + 33 * DAY_SECS, ..call(4) }).await;
    let day = NOW_SECS / DAY_SECS * DAY_SECS;
    assert_eq!(starts(&ledger), [day, month_later, hour(NOW_SECS + 33 * DAY_SECS)]);
    let moved = &all(&ledger)[0].2;
    assert_eq!((moved.calls(), moved.charged), (2, micros(4_000)));
    assert_eq!(
        sum(&ledger, Side::Payee).charged,
        micros(8_000),
        "nothing is lost, and nothing in two places"
    );
    assert_eq!(ledger.audit(None).unwrap().violations, []);
    let far = NOW_SECS + 1_200 * DAY_SECS;
    serve(&ledger, 5, Call { time_secs: far, ..call(5) }).await;
    assert_eq!(starts(&ledger), [hour(far)]);
    assert_eq!(
        ledger.audit(None).unwrap().violations,
        [],
        "calls that are older than the figures are no error"
    );
}

#[tokio::test]
async fn an_hour_has_rows_for_64_services_and_one_for_all_others() {
    let ledger = earning().await;
    let of = |service: u8, call: Call| Call { service: ServiceId::from_bytes([service; 16]), ..call };
    for number in 1..=66_u8 {
        serve(&ledger, u64::from(number), of(number, call(u64::from(number)))).await;
    }
    // Counted with the others, and taken out there.
    serve(&ledger, 67, of(67, failed_call(67))).await;
    serve(&ledger, 67, of(67, call(67))).await;
    // One that has a row keeps it.
    serve(&ledger, 68, of(1, call(68))).await;
    let rows = all(&ledger);
    assert_eq!(rows.len(), 65);
    let others = rows.iter().find(|(_, subject, _)| *subject == Subject::others(Side::Payee)).unwrap();
    assert_eq!((others.2.calls(), others.2.ended(Outcome::Answered)), (3, 3));
    assert_eq!(rows.iter().map(|(_, _, figures)| figures.calls()).max(), Some(3));
    assert_eq!(sum(&ledger, Side::Payee).charged, micros(68 * PRICE.micros()));
    assert_eq!(ledger.audit(None).unwrap().violations, []);
}

#[tokio::test]
async fn calls_that_are_removed_stay_counted_over_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let ledger = with_both_sides(Ledger::open(&path, OpenMode::Create).unwrap()).await;
    serve(&ledger, 1, call(1)).await;
    buy(&ledger, 1, PRICE, Outcome::Answered, 40_000).await;
    let before = all(&ledger);
    let keep = Retention { rows_kept_secs: 0, ..Retention::default() };
    let pruned = ledger.prune(keep, NOW_SECS + 30 * DAY_SECS).await.unwrap();
    assert_eq!((pruned.calls, pruned.purchases), (1, 1));
    drop(ledger);
    let ledger = Ledger::open(&path, OpenMode::Existing).unwrap();
    assert_eq!(all(&ledger), before);
    assert_eq!(ledger.audit(None).unwrap().violations, []);
}

/// Changes a file as a program without figures leaves it, and opens it again.
async fn reopened_after(
    change: impl FnOnce(&redb::WriteTransaction),
) -> (Vec<(u64, Subject, CallFigures)>, Ledger) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let ledger = with_both_sides(Ledger::open(&path, OpenMode::Create).unwrap()).await;
    serve(&ledger, 1, call(1)).await;
    serve(&ledger, 2, failed_call(2)).await;
    buy(&ledger, 1, PRICE, Outcome::Answered, 40_000).await;
    serve(&ledger, 3, Call { time_secs: NOW_SECS + 40 * DAY_SECS, ..call(3) }).await;
    let before = all(&ledger);
    drop(ledger);
    let database = Database::open(&path).unwrap();
    let tx = database.begin_write().unwrap();
    change(&tx);
    tx.commit().unwrap();
    drop(database);
    (before, Ledger::open(&path, OpenMode::Existing).unwrap())
}

#[tokio::test]
async fn a_ledger_of_before_gets_its_figures_of_the_calls_that_are_kept() {
    let (before, ledger) = reopened_after(|tx| {
        assert!(tx.delete_table(HOURS).unwrap() && tx.delete_table(DAYS).unwrap());
    })
    .await;
    assert_eq!(all(&ledger), before);
    assert_eq!(before.len(), 3, "two days served, one bought: {before:?}");
    assert_eq!(ledger.audit(None).unwrap().violations, []);
}

#[tokio::test]
async fn a_day_on_which_a_program_of_before_wrote_is_made_anew() {
    let (before, ledger) = reopened_after(|tx| {
        tx.open_table(HOURS).unwrap().retain(|_, _| false).unwrap();
    })
    .await;
    assert_eq!(all(&ledger), before);
    assert_eq!(ledger.audit(None).unwrap().violations, []);
}
