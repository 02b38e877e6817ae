//! Calls and money over time: every range on every page that has one, and sums that are those of the calls.

use anyhow::{Result, ensure};
use farthing_control::{
    endpoint,
    types::{SeriesRange, Text},
};
use farthing_tests::world::{PRICE, World};
use farthing_values::{Address, Usdc};

use crate::{
    pages::HTML_BYTES_MAX,
    support::{Browser, set_up},
};

const CALLS: u64 = 3;

#[tokio::test(flavor = "multi_thread")]
async fn every_range_of_every_page_with_charts_shows_what_was_bought_and_served() -> Result<()> {
    let world = World::start().await?;
    world.buy(CALLS).await?;
    let (mut buyer, mut seller) = (set_up(&world.consumer).await?, set_up(&world.owner).await?);
    let id = world.api.id;
    for range in SeriesRange::ALL {
        let bought = [format!("/panel/catalog/{id}"), format!("/panel/owners/{}", world.owner_wallet)];
        for path in
            ["/panel", "/panel/finance", "/panel/network"].map(ToOwned::to_owned).into_iter().chain(bought)
        {
            has_charts(&mut buyer, &path, range).await?;
        }
        for path in ["/panel".to_owned(), "/panel/finance".to_owned(), format!("/panel/apis/{id}")] {
            has_charts(&mut seller, &path, range).await?;
        }
    }
    // Whoever mistypes an address sees the usual days.
    let page = buyer.get("/panel?range=century").await?;
    ensure!(page.status == 200 && page.body.contains("aria-current=\"true\">7 days"), "{page:?}");
    let page = seller.get("/panel/apis").await?;
    ensure!(
        page.body.contains("class=\"spark\"") && page.body.contains("<title>3 in 7 days</title>"),
        "{page:?}"
    );
    // A service and an owner also have how their calls ended: whether they are reliable.
    for path in [format!("/panel/catalog/{id}"), format!("/panel/owners/{}", world.owner_wallet)] {
        let page = buyer.get(&path).await?;
        ensure!(page.body.contains("3 calls in the last 12 months, for 0.006 USDC."), "{path}: {page:?}");
        ensure!(page.body.contains("<path class=\"bars answered\""), "{path}: {page:?}");
    }
    let other = buyer.get(&format!("/panel/owners/{}", Address::from_bytes([7; 20]))).await?;
    ensure!(other.status == 200 && !other.body.contains("Your calls</h2>"), "{other:?}");
    ensure!(other.body.contains("Your node knows no service of this wallet."), "{other:?}");
    // Nothing is told of calls to a service that nobody here has made.
    let page = seller.get(&format!("/panel/catalog/{id}")).await?;
    ensure!(page.status == 200 && !page.body.contains("Your calls</h2>"), "{page:?}");
    Ok(())
}

async fn has_charts(browser: &mut Browser, path: &str, range: SeriesRange) -> Result<()> {
    let page = browser.get(&format!("{path}?range={range}")).await?;
    ensure!(page.status == 200, "{path}, {range}: {page:?}");
    ensure!(page.body.len() <= HTML_BYTES_MAX, "{path}, {range}: {} bytes", page.body.len());
    for part in ["<svg class=\"chart\"", "<path class=\"bars ", "Show as table", "aria-current=\"true\">"] {
        ensure!(page.body.contains(part), "{path}, {range}: no {part} in {}", page.body);
    }
    let shown = format!("{path}?range={range}#");
    let link = page.body.split("<a href=\"").find(|link| link.starts_with(&shown)).unwrap_or_default();
    ensure!(
        link.split('>').next().is_some_and(|link| link.contains("aria-current")),
        "{path}, {range}: {link}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_series_counts_every_call_and_comes_to_what_the_days_of_the_history_say() -> Result<()> {
    let world = World::start().await?;
    world.buy(CALLS).await?;
    let (consumer, owner) = (world.consumer.control(), world.owner.control());
    let cost = Usdc::from_micros(CALLS * PRICE.micros());
    for range in SeriesRange::ALL {
        let bought = consumer.ask(endpoint::Series.with("range", range)).await?;
        let served = owner.ask(endpoint::Series.with("range", range).with("service", world.api.id)).await?;
        for sums in [&bought.bought, &served.served] {
            ensure!(sums.outcomes.answered == CALLS && sums.charged.0 == cost, "{range}: {sums:?}");
            ensure!(sums.p50_us.is_some() && sums.p50_us <= sums.p95_us, "{range}: {sums:?}");
        }
        let parts: u64 = bought.points.iter().map(|point| point.bought.outcomes.answered).sum();
        ensure!(parts == CALLS && bought.served.outcomes.answered == 0, "{range}: {bought:?}");
    }
    for (wallet, calls) in [(world.owner_wallet, CALLS), (Address::from_bytes([7; 20]), 0)] {
        let bought = consumer.ask(endpoint::Series.with("owner", wallet)).await?;
        ensure!(bought.bought.outcomes.answered == calls, "{wallet}: {bought:?}");
    }
    let month = consumer.ask(endpoint::Series.with("range", SeriesRange::Month)).await?;
    let days = consumer.ask(endpoint::HistoryDays).await?;
    let spent = days.iter().fold(Usdc::ZERO, |sum, day| sum.saturating_add(day.spent.0));
    ensure!(month.bought.charged == Text(spent) && spent == cost, "{month:?} {days:?}");
    // A tile and a line of the same calls show the same; after midnight, today has others.
    let day = consumer.ask(endpoint::Series.with("range", SeriesRange::Day)).await?;
    let today = consumer.ask(endpoint::Figures).await?;
    ensure!(today.bought_today < CALLS || today.median_us == day.bought.p50_us, "{today:?} {day:?}");
    for (name, value) in [("range", "century"), ("service", "nothing"), ("owner", "0x12")] {
        let refused = consumer.ask(endpoint::Series.with(name, value)).await;
        ensure!(refused.as_ref().is_err_and(|error| error.to_string().contains(name)), "{refused:?}");
    }
    Ok(())
}
