//! Endpoints that are late, silent or behind, and chains that take blocks back: the node's own watcher and writer end with the money
//! that the chain has.

use std::time::Duration;

use farthing_chain::{ChainError, ChainHandle, ChainStatus, TxReport};
use farthing_played_chain::{Faults, Machine, PlayedChain};
use farthing_values::{ChannelConfig, Usdc};
use tokio::time::Instant;

use crate::{
    node::{PATIENCE, WEALTH, World, until, usdc},
    random::{Random, seed},
};

/// A few polls: long before everything is read again without a reason.
const NOTICED_WITHIN: Duration = Duration::from_secs(15);
/// So many blocks after a deposit, no poll reads its event again: a channel that an event names is read whatever the head is.
const QUIET_AFTER_BLOCKS: u64 = 12;

/// A deposit on top of what the channel's view says, as a node that decides by its view makes them.
async fn deposit(chain: &ChainHandle, config: ChannelConfig, micros: u64) -> Result<TxReport, ChainError> {
    let view = chain.channel(&config.id(&chain.domain()));
    let before = view.map_or((0, Usdc::ZERO), |view| (view.round, view.deposited));
    chain.deposit_onto(config, before, usdc(micros)).await
}

async fn with_both() -> (World, ChainHandle, ChainHandle) {
    let world = World::new();
    let (payer, payee) = (world.start(&world.payer).await, world.start(&world.payee).await);
    for chain in [&payer, &payee] {
        until(chain.status(), |status| *status == ChainStatus::Ready).await;
    }
    (world, payer, payee)
}

async fn both_see(world: &World, payer: &ChainHandle, payee: &ChainHandle, config: ChannelConfig) {
    world.check_money();
    world.until_seen(payer, &world.payer, config).await;
    world.until_seen(payee, &world.payee, config).await;
}

#[tokio::test(start_paused = true)]
async fn a_channel_is_filled_claimed_and_closed_over_a_played_chain() {
    let (world, payer, payee) = with_both().await;
    let config = world.terms(1);
    let report = deposit(&payer, config, 400_000).await.unwrap();
    assert!(report.fee_wei > 0 && report.tx_hash.is_some());
    both_see(&world, &payer, &payee, config).await;

    let row = world.row(&payee, config, 150_000);
    let claim = payee.claim_many(vec![row]).await.unwrap();
    assert_eq!((claim.transactions.len(), claim.refused), (1, vec![]));
    both_see(&world, &payer, &payee, config).await;

    payee.close(world.row(&payee, config, 250_000)).await.unwrap();
    both_see(&world, &payer, &payee, config).await;
    assert_eq!((world.usdc_of(&world.payer), world.usdc_of(&world.payee)), (99_750_000, 250_000));
    assert_eq!(world.slot(&payer, config).round, 1);
}

#[tokio::test(start_paused = true)]
async fn a_deposit_whose_broadcast_is_not_answered_is_made_once() {
    let (world, payer, payee) = with_both().await;
    for endpoint in 0..2 {
        world.chain.change_faults(endpoint, |faults| faults.unanswered_broadcasts = 1);
    }
    let config = world.terms(1);
    let report = deposit(&payer, config, 400_000).await.unwrap();
    assert!(report.tx_hash.is_some(), "it was followed, though nobody said that it was taken");
    both_see(&world, &payer, &payee, config).await;
    assert_eq!(world.slot(&payer, config).deposited, 400_000);
    assert_eq!(world.usdc_of(&world.payer), 99_600_000);
}

#[tokio::test(start_paused = true)]
async fn a_deposit_that_endpoints_keep_to_themselves_or_that_the_chain_forgets_is_made_once() {
    let (world, payer, payee) = with_both().await;
    let config = world.terms(1);
    for (micros, nonce, endpoints_keep_it) in [(400_000, 1, true), (800_000, 2, false)] {
        let deposited = {
            let payer = payer.clone();
            tokio::spawn(async move { deposit(&payer, config, 400_000).await })
        };
        if endpoints_keep_it {
            for endpoint in 0..2 {
                world.chain.change_faults(endpoint, |faults| faults.kept_broadcasts = 1);
            }
        } else {
            let lost = async {
                while world.chain.with(Machine::lose_waiting) == 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::time::timeout(PATIENCE, lost).await.expect("it waits for a block");
        }
        let report = tokio::time::timeout(PATIENCE, deposited).await.expect("it is sent again").unwrap();
        assert!(report.unwrap().tx_hash.is_some());
        both_see(&world, &payer, &payee, config).await;
        assert_eq!((world.slot(&payer, config).deposited, world.nonce_of(&world.payer)), (micros, nonce));
    }
}

#[tokio::test(start_paused = true)]
async fn a_false_nonce_of_one_endpoint_delays_a_deposit_and_doubles_none() {
    let (world, payer, payee) = with_both().await;
    let config = world.terms(1);
    world.chain.change_faults(0, |faults| faults.false_nonces = 1);
    let deposited = tokio::time::timeout(PATIENCE, deposit(&payer, config, 400_000)).await;
    assert!(deposited.expect("it is made").unwrap().tx_hash.is_some());
    both_see(&world, &payer, &payee, config).await;
    assert_eq!((world.slot(&payer, config).deposited, world.nonce_of(&world.payer)), (400_000, 1));
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_answers_after_the_time_out_is_left_for_the_other() {
    let (world, payer, payee) = with_both().await;
    // The request is carried out all the same, also the one with the transaction.
    let late = Duration::from_millis(payer.spec().request_timeout_ms + 1);
    world.chain.change_faults(0, |faults| faults.late = late);
    let config = world.terms(1);
    deposit(&payer, config, 400_000).await.unwrap();
    both_see(&world, &payer, &payee, config).await;
    assert_eq!(world.slot(&payer, config).deposited, 400_000);
}

#[tokio::test(start_paused = true)]
async fn wallets_whose_last_endpoint_lags_see_what_the_chain_has_some_blocks_later() {
    let (world, payer, payee) = with_both().await;
    let config = world.terms(1);
    deposit(&payer, config, 400_000).await.unwrap();
    both_see(&world, &payer, &payee, config).await;
    world.chain.change_faults(1, |faults| faults.lag_blocks = 5);
    payee.claim_many(vec![world.row(&payee, config, 300_000)]).await.unwrap();
    // The one that is up to date goes away, and the other one has not seen the claim.
    world.chain.change_faults(0, |faults| faults.is_down = true);
    both_see(&world, &payer, &payee, config).await;
    assert_eq!(world.slot(&payer, config).claimed, 300_000);
}

#[tokio::test(start_paused = true)]
async fn a_deposit_in_blocks_that_are_taken_back_is_not_counted_and_the_next_one_is_made_once() {
    let (world, payer, payee) = with_both().await;
    let config = world.terms(1);
    let report = deposit(&payer, config, 400_000).await.unwrap();
    both_see(&world, &payer, &payee, config).await;
    let quiet_block = report.block + QUIET_AFTER_BLOCKS;
    until(payer.head(), |head| head.is_some_and(|head| head.number >= quiet_block)).await;
    // Down to the block of the deposit, which nobody sends again. The new chain is longer, so the old head's number has a block.
    world.chain.with(|machine| {
        let blocks = machine.head().number + 1 - report.block;
        take_back(machine, blocks, false);
    });
    assert_eq!(world.slot(&payer, config).deposited, 0);
    let began = Instant::now();
    both_see(&world, &payer, &payee, config).await;
    assert!(began.elapsed() < NOTICED_WITHIN, "noticed after {:?}", began.elapsed());

    deposit(&payer, config, 300_000).await.unwrap();
    both_see(&world, &payer, &payee, config).await;
    assert_eq!(world.slot(&payer, config).deposited, 300_000);
    assert_eq!(world.usdc_of(&world.payer), 99_700_000);
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_the_base_fee_outgrows_is_replaced_by_a_dearer_one_and_made_once() {
    let (world, payer, payee) = with_both().await;
    let config = world.terms(1);
    // The newest block does not show it yet, so the first form offers too little.
    let dear_wei = 10_000_000;
    world.chain.with(|machine| machine.set_base_fee_wei(dear_wei));
    let report = deposit(&payer, config, 400_000).await.unwrap();
    both_see(&world, &payer, &payee, config).await;
    assert!(report.fee_wei >= dear_wei * u128::from(report.gas_used), "{report:?}");
    assert_eq!((world.nonce_of(&world.payer), world.waiting()), (1, 0));
    assert_eq!(world.slot(&payer, config).deposited, 400_000);
}

#[tokio::test(start_paused = true)]
async fn a_deposit_that_runs_out_of_gas_moves_nothing_and_is_made_when_it_is_asked_for_again() {
    let (world, payer, payee) = with_both().await;
    let config = world.terms(1);
    world.chain.with(|machine| machine.set_gas_extra(1_000_000));
    let failed = deposit(&payer, config, 400_000).await;
    assert!(matches!(failed, Err(ChainError::Failed { .. })), "{failed:?}");
    both_see(&world, &payer, &payee, config).await;
    assert_eq!((world.usdc_of(&world.payer), world.nonce_of(&world.payer)), (WEALTH, 1));

    world.chain.with(|machine| machine.set_gas_extra(0));
    deposit(&payer, config, 400_000).await.unwrap();
    both_see(&world, &payer, &payee, config).await;
    assert_eq!((world.slot(&payer, config).deposited, world.nonce_of(&world.payer)), (400_000, 2));
}

#[tokio::test(start_paused = true)]
async fn the_domain_of_the_token_is_read_once_in_ten_minutes_and_a_second_after_it_could_not_be_read() {
    let (world, payer, _payee) = with_both().await;
    let asked = || payer.request_counts().on_demand;
    let set_down = |is_down| {
        for endpoint in 0..2 {
            world.chain.change_faults(endpoint, |faults| faults.is_down = is_down);
        }
    };
    set_down(true);
    let failed = payer.token_domain().await;
    assert!(matches!(failed, Err(ChainError::Unreachable { .. })), "{failed:?}");
    let asked_in_vain = asked();
    set_down(false);
    assert_eq!((payer.token_domain().await, asked()), (failed, asked_in_vain));
    assert_eq!(payer.token_domain_told_last(), None);

    tokio::time::sleep(Duration::from_secs(1)).await;
    let read = payer.token_domain().await;
    let asked_once = asked();
    assert!(read.is_ok() && asked_once > asked_in_vain, "{read:?}");
    tokio::time::sleep(Duration::from_secs(599)).await;
    assert_eq!((payer.token_domain().await, asked()), (read.clone(), asked_once));
    assert_eq!(payer.token_domain_told_last(), read.ok());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(payer.token_domain().await.is_ok() && asked() > asked_once);
}

/// Replaces the newest blocks by two more than they were, so that the new head is no child of the old one's parent.
fn take_back(machine: &mut Machine, blocks: u64, are_kept: bool) {
    let now = machine.head().timestamp_secs;
    machine.take_back(usize::try_from(blocks).expect("a few blocks"), are_kept);
    for block in 0..blocks + 2 {
        machine.mine(now + block);
    }
}

/// Histories of one run, each with the next seed.
const HISTORIES: u64 = 12;
const OPERATIONS: usize = 8;

/// Changes what is wrong, now and then, for ever.
async fn trouble(chain: PlayedChain, mut random: Random) {
    loop {
        tokio::time::sleep(Duration::from_secs(1 + random.u64_below(20))).await;
        let endpoint = random.below(2);
        let amount = random.u64_below(8);
        match random.u64_below(7) {
            0 => chain.change_faults(endpoint, |faults| faults.late = Duration::from_secs(amount)),
            1 => chain.change_faults(endpoint, |faults| faults.lag_blocks = amount),
            2 => chain.change_faults(endpoint, |faults| faults.unanswered_broadcasts = 1),
            3 => chain.change_faults(endpoint, |faults| faults.is_down = true),
            4 => chain.with(|machine| take_back(machine, 1 + amount % 3, true)),
            _ => chain.change_faults(endpoint, |faults| *faults = Faults::default()),
        }
    }
}

/// One history: the books of a channel are those of the chain in the end, and nothing was paid that nobody decided.
async fn history(seed: u64) {
    let mut random = Random::new(seed);
    let (world, payer, payee) = with_both().await;
    let config = world.terms(1);
    let trouble = tokio::spawn(trouble(world.chain.clone(), Random::new(random.next())));
    let (mut decided, mut signed) = (0, 0);
    for _ in 0..OPERATIONS {
        let micros = 10_000 + random.u64_below(50_000);
        // An error is an answer, too: the chain could not be reached, or refuses.
        let operation = async {
            match random.u64_below(10) {
                0..5 => {
                    decided += micros;
                    drop(deposit(&payer, config, micros).await);
                }
                5..8 => {
                    signed += micros / 4;
                    drop(payee.claim_many(vec![world.row(&payee, config, signed)]).await);
                }
                8 => drop(payee.close(world.row(&payee, config, signed)).await),
                _ => drop(payer.request_close(config).await),
            }
        };
        assert!(tokio::time::timeout(PATIENCE, operation).await.is_ok(), "an operation has no end");
    }
    trouble.abort();
    for endpoint in 0..2 {
        world.chain.change_faults(endpoint, |faults| *faults = Faults::default());
    }
    both_see(&world, &payer, &payee, config).await;
    let slot = world.slot(&payer, config);
    assert_eq!(world.usdc_of(&world.payee), slot.claimed, "the payee has what is claimed");
    assert!(slot.claimed <= u128::from(signed), "M3: {slot:?} and {signed} signed");
    let spent = WEALTH - world.usdc_of(&world.payer);
    assert!(spent <= u128::from(decided), "{spent} are gone of {decided} that were decided on");
    payer.shutdown().await;
    payee.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn both_wallets_end_with_the_chains_money_whatever_its_endpoints_and_forks_do() {
    let first = seed();
    for seed in (0..HISTORIES).map(|number| first.wrapping_add(number)) {
        println!("history {seed}");
        history(seed).await;
    }
}
