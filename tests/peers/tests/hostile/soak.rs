//! The soak of `make soak`, small: books and counts are judged, times and memory are not.

use std::time::Duration;

use anyhow::{Result, ensure};
use farthing_peers::soak::{self, Plan};

const CALLS: u64 = 150;
/// With the third kill everything that may happen has had its turn.
const KILLS: u64 = 3;

#[tokio::test(flavor = "multi_thread")]
async fn after_kills_outages_and_strangers_every_book_agrees_and_nothing_stays_open() -> Result<()> {
    let plan = Plan {
        owners: 2,
        consumers: 2,
        // As long as it takes until there were as many calls and kills.
        lasts: Duration::ZERO,
        calls_least: CALLS,
        kills_least: KILLS,
        calls_per_second: 20,
        sample_every: Duration::from_secs(1),
        fault_every: Duration::from_secs(2),
        judges_growth: false,
    };
    let report = soak::run(&plan).await?;
    let failures = report.failures();
    ensure!(failures.is_empty(), "{}\n{:?}", failures.join("\n"), report.happened);
    ensure!(report.calls.answered >= CALLS && report.happened.kills >= KILLS, "{:?}", report.calls);
    Ok(())
}
