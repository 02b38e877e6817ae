//! Endpoints that are dead, silent, late or gone.

use std::{sync::Arc, time::Duration};

use farthing_chain::{ChainError, ChainKind, ChainStatus, MemoryJournal};

use crate::{
    anvil::Anvil,
    proxy::Mode,
    world::{Deposits, World, start, until, until_deposited, usdc},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_and_a_silent_endpoint_are_passed_over_for_a_good_one() {
    let (world, silent) = World::behind(Mode::Silent).await;
    let dead = dead_url().await;
    let mut spec = world.spec_at(&[dead, silent.url(), world.anvil.url()]);
    spec.request_timeout_ms = 2_000;
    let chain = world.payer_at(spec).await;
    chain.open_or_top_up(world.terms(1), usdc(250_000)).await.unwrap();
    // It stays with the good one: nothing more is tried on the silent one.
    let before = chain.request_counts();
    chain.balances_of(world.payer.address()).await.unwrap();
    assert_eq!(chain.request_counts().on_demand - before.on_demand, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_falls_silent_is_left_and_its_chain_stays_in_view() {
    let (world, first) = World::behind(Mode::Pass).await;
    let mut spec = world.spec_at(&[first.url(), world.anvil.url()]);
    spec.request_timeout_ms = 2_000;
    let chain = world.payer_at(spec).await;
    first.set(Mode::Silent);
    let number = chain.head().borrow().unwrap().number;
    world.anvil.mine().await;
    until(chain.head(), |head| head.is_some_and(|head| head.number > number)).await;
    assert_eq!(*chain.status().borrow(), ChainStatus::Ready);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_that_is_down_at_the_start_is_used_as_soon_as_it_is_up() {
    let (world, proxy) = World::behind(Mode::Silent).await;
    let mut spec = world.spec_at(&[proxy.url()]);
    spec.request_timeout_ms = 2_000;
    let chain = start(spec, &world.payer, Arc::new(MemoryJournal::default())).await;
    until(chain.status(), |status| matches!(status, ChainStatus::Unreachable { .. })).await;
    let error = chain.open_or_top_up(world.terms(1), usdc(250_000)).await.unwrap_err();
    assert!(
        matches!(&error, ChainError::Unreachable { reason, .. } if reason.contains("did not answer")),
        "{error}"
    );

    proxy.set(Mode::Pass);
    until(chain.status(), |status| *status == ChainStatus::Ready).await;
    chain.open_or_top_up(world.terms(1), usdc(250_000)).await.unwrap();
    until_deposited(&chain, world.terms(1).id(&chain.domain()), 250_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_head_goes_stale_while_no_endpoint_answers_and_fresh_again_after() {
    let (world, proxy) = World::behind(Mode::Pass).await;
    let mut spec = world.spec_at(&[proxy.url()]);
    spec.request_timeout_ms = 2_000;
    let chain = world.payer_at(spec).await;
    let max_age = Duration::from_secs(2);
    // A local chain that rests stays fresh: the same head is seen again and again.
    let seen_at = chain.head().borrow().unwrap().seen_at;
    until(chain.head(), |head| head.is_some_and(|head| head.seen_at > seen_at)).await;
    assert!(chain.head().borrow().unwrap().is_fresh(max_age));

    proxy.set(Mode::Silent);
    crate::world::until_true(|| async { !chain.head().borrow().unwrap().is_fresh(max_age) }).await;
    proxy.set(Mode::Pass);
    until(chain.head(), |head| head.is_some_and(|head| head.is_fresh(max_age))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_public_chain_without_new_blocks_goes_stale_although_it_answers() {
    let world = World::new().await;
    let mut spec = world.spec();
    spec.kind = ChainKind::Testnet;
    let chain = world.payer_at(spec).await;
    let max_age = Duration::from_secs(1);
    crate::world::until_true(|| async { !chain.head().borrow().unwrap().is_fresh(max_age) }).await;
    world.anvil.mine().await;
    until(chain.head(), |head| head.is_some_and(|head| head.is_fresh(max_age))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_of_another_chain_is_never_used() {
    let world = World::new().await;
    let other = Anvil::start(&["--chain-id", "777"]);
    let chain = world.payer_at(world.spec_at(&[other.url(), world.anvil.url()])).await;
    chain.open_or_top_up(world.terms(1), usdc(250_000)).await.unwrap();

    let chain = start(world.spec_at(&[other.url()]), &world.payer, Arc::new(MemoryJournal::default())).await;
    let status = until(chain.status(), |status| *status != ChainStatus::Connecting).await;
    let ChainStatus::Refused { reason } = status else { panic!("{status:?}") };
    assert!(reason.contains("serves chain 777, not chain 31337"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_names_of_a_local_chain_are_looked_up_by_the_resolver_that_keeps_to_near_addresses() {
    let world = World::new().await;
    let by_name = format!("http://localhost:{}", world.anvil.port());
    let chain = world.payer_at(world.spec_at(&[by_name])).await;
    chain.balances_of(world.payer.address()).await.unwrap();

    // No label of a name is as long, so nobody is asked for it; the words are that resolver's.
    let nowhere = format!("http://{}", "a".repeat(64));
    let chain = start(world.spec_at(&[nowhere]), &world.payer, Arc::new(MemoryJournal::default())).await;
    let status = until(chain.status(), |status| matches!(status, ChainStatus::Unreachable { .. })).await;
    let ChainStatus::Unreachable { reason } = &status else { panic!("{status:?}") };
    assert!(reason.contains("its name is not found"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn access_keys_in_endpoint_addresses_are_never_shown() {
    let dead = dead_url().await;
    let world = World::new().await;
    let spec = world.spec_at(&[format!("{dead}/v2/SECRETKEY?token=SECRETKEY")]);
    let chain = start(spec, &world.payer, Arc::new(MemoryJournal::default())).await;
    let status = until(chain.status(), |status| matches!(status, ChainStatus::Unreachable { .. })).await;
    let error = chain.send_usdc(world.payee.address(), usdc(1)).await.unwrap_err();
    assert!(!format!("{status:?} {error} {error:?}").contains("SECRETKEY"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_counted_by_their_purpose() {
    let (world, chain) = World::with_payer().await;
    let before = chain.request_counts();
    assert!(before.watch > 0);
    assert_eq!((before.write, before.on_demand), (0, 0));
    chain.balances_of(world.payee.address()).await.unwrap();
    let sent = chain.send_usdc(world.payee.address(), usdc(1)).await.unwrap();
    // The upkeep of the books asks both again and again, and nobody waits for it.
    chain.settled_block().await.unwrap();
    chain.landed(sent.tx_hash.unwrap()).await.unwrap();
    let after = chain.request_counts();
    assert_eq!(after.on_demand, 2, "the two balances");
    assert!(after.write > 0);
}

/// An address where nobody listens.
async fn dead_url() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}
