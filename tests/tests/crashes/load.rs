//! Nodes killed at moments nobody chose, while eight workers call.
//!
//! Every run takes a seed of its own for the order of victims and moments, and prints it; `FARTHING_TEST_SEED` repeats one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use farthing_tests::world::{PRICE, World};
use reqwest::StatusCode;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::{
    random::{Random, seed},
    support::{Lasting, agreed_spent, body_with_id, tail},
};

const WORKERS: u64 = 8;
const KILLS: u64 = 10;
/// Longer than any restart takes on a busy machine.
const ANSWERED_WITHIN: Duration = Duration::from_secs(90);

/// A worker that believes what it is told: a call that is told to be free is over and was never charged, and any other
/// is asked for again under its id until it is answered.
#[tokio::test(flavor = "multi_thread")]
async fn random_kills_under_load_neither_lose_nor_double_a_single_call() -> Result<()> {
    let mut random = Random::new(seed());
    let world = &mut Lasting::warm().await?.world;
    let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(1)));
    let told_free = Arc::new(AtomicU64::new(0));
    let url = format!("{}/internal/call", world.consumer.status().await?.gateway_url);
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        let (stop, answered, told_free) = (stop.clone(), answered.clone(), told_free.clone());
        let (client, secret, url) = (world.client().clone(), world.secret.clone(), url.clone());
        let bodies = (0..).map({
            let template = body_with_id(world, "GET", "/slow/60", "");
            move |n| {
                let mut body = template.clone();
                body["call_id"] = format!("{worker}-{n}").into();
                body.to_string()
            }
        });
        workers.spawn(async move {
            'calls: for body in bodies {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let mut last = String::new();
                let until = tokio::time::Instant::now() + ANSWERED_WITHIN;
                loop {
                    ensure!(tokio::time::Instant::now() < until, "{body} was never answered; last: {last}");
                    let sent = client.post(&url).bearer_auth(&secret).body(body.clone()).send().await;
                    match sent {
                        Ok(answer) if answer.status() == StatusCode::OK => break,
                        Ok(answer) => {
                            last = answer.text().await.unwrap_or_default();
                            let problem: Value = serde_json::from_str(&last).unwrap_or_default();
                            if problem["charged"] == false {
                                told_free.fetch_add(1, Ordering::SeqCst);
                                tokio::time::sleep(Duration::from_millis(100)).await;
                                continue 'calls;
                            }
                        }
                        Err(error) => last = error.to_string(),
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                answered.fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        });
    }
    for kill in 0..KILLS {
        let (pause_ms, is_owner) = (100 + random.u64_below(400), random.one_in(2) || kill == 0);
        // Only a crash in the middle of calls is worth something.
        let before = answered.load(Ordering::SeqCst);
        while answered.load(Ordering::SeqCst) < before + WORKERS {
            if let Some(ended) = workers.try_join_next() {
                ended?.with_context(|| logs(world))?;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        let victim = if is_owner { &mut world.owner } else { &mut world.consumer };
        victim.restart(Vec::new()).await?;
    }
    stop.store(true, Ordering::SeqCst);
    while let Some(worker) = workers.join_next().await {
        worker?.with_context(|| logs(world))?;
    }
    let expected = PRICE.saturating_mul(answered.load(Ordering::SeqCst));
    let agreed = agreed_spent(world).await?;
    let free = told_free.load(Ordering::SeqCst);
    ensure!(
        agreed == expected,
        "O5: {agreed} charged for calls worth {expected}, {free} were told to be free"
    );
    world.settle_for(expected).await
}

fn logs(world: &World) -> String {
    format!("consumer's log:\n{}\nowner's log:\n{}", tail(&world.consumer), tail(&world.owner))
}
