//! Very many events that an endpoint made up, all of them about this wallet and the true token: they are read page by
//! page, beside everything else.

use std::{collections::BTreeMap, sync::Arc, sync::atomic::Ordering};

use farthing_chain::{Journal, MemoryJournal};
use serde_json::json;
use tokio::sync::watch;

use crate::{
    dust::{MULTICALL3, MULTICALL3_CODE},
    events::{forged, through, until_read},
    proxy::{LogsMode, Pages},
    world::{Deposits, World, start_ready, until, until_deposited, usdc},
};

const BLOCKS: u64 = 400;
const EVENTS_OF_A_BLOCK: u32 = 250;

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_forged_events_are_read_page_by_page_and_no_claim_waits_for_them() {
    let world = World::new().await;
    world.anvil.rpc("anvil_setCode", json!([MULTICALL3, MULTICALL3_CODE.trim()])).await;
    let payer = world.payer_chain().await;
    let (config, later) = (world.terms(1), world.terms(2));
    let (id, later_id) = (config.id(&payer.domain()), later.id(&payer.domain()));
    payer.open_or_top_up(config, usdc(400_000)).await.unwrap();
    let first = world.anvil.rpc_u64("eth_blockNumber", json!([])).await + 1;
    world.anvil.rpc("anvil_mine", json!([format!("{BLOCKS:#x}")])).await;
    let of_block = |number: u64| {
        let begin = u32::try_from(number).unwrap() * EVENTS_OF_A_BLOCK;
        let events = forged(&world, &payer, begin..begin + EVENTS_OF_A_BLOCK);
        (first + number, events.iter().map(ToString::to_string).collect())
    };
    let of_blocks: BTreeMap<u64, Vec<String>> = (0..BLOCKS).map(of_block).collect();
    let pages = Arc::new(Pages {
        of_blocks,
        held_from: first + BLOCKS / 2,
        released: watch::Sender::new(false),
        told: 0.into(),
    });
    let (proxy, mut spec) = through(&world, LogsMode::Pages(Arc::clone(&pages))).await;
    // Long enough to hold back pages; nothing here may wait for it.
    spec.request_timeout_ms = 60_000;
    spec.logs_range_blocks = BLOCKS / 8;

    // Half of them come, the others are on their way: the node is ready, follows its channel and claims.
    let journal = Arc::new(MemoryJournal::default());
    let payee = start_ready(spec, &world.payee, journal.clone()).await;
    payee.track(config).await.unwrap();
    until_deposited(&payee, id, 400_000).await;
    let claim = payee.claim_many(vec![world.row(&payee, config, 120_000)]).await.unwrap();
    assert_eq!(claim.claimed, [(id, usdc(120_000))]);
    assert!(payee.logs().borrow().read_to.is_none(), "the events are still being read");

    pages.released.send_replace(true);
    until_read(&world, &payee).await;
    assert!(pages.told.load(Ordering::SeqCst) >= BLOCKS * u64::from(EVENTS_OF_A_BLOCK));
    let logs = payee.logs().borrow().clone();
    assert!(logs.failing.is_none() && logs.skipped.is_empty(), "{logs:?}");
    proxy.set_logs(LogsMode::Pass);
    payer.open_or_top_up(later, usdc(300_000)).await.unwrap();
    until_deposited(&payee, later_id, 300_000).await;
    until(payee.channels(), |views| views.len() == 2).await;
    let remembered = journal.all().await.unwrap();
    assert_eq!(
        remembered.iter().filter(|(name, _)| name.contains("/channel/")).count(),
        2,
        "no lie is remembered"
    );
}
