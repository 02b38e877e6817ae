//! What a full node has stored: what [`farthing_tests::full`] asks for, written by the stores themselves.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Result;
use farthing_ledger::{Ledger, OpenMode, Promise};
use farthing_protocol::{
    Address, CallRequest, ServiceId, Usdc,
    call::{ChargePolicy, Method, Payment},
    wire::NetworkName,
};
use farthing_tests::full::{BETWEEN_CALLS_SECS, LISTINGS, NETWORK, call_id};

use crate::simulate::catalog;

/// Promises on their way to the disk at once.
const BATCH: u64 = 500;

/// Fills the stores of a node that has run once and does not run now. Its `network.name` is [`NETWORK`].
pub async fn fill(data_dir: &Path, wallet: Address, calls: u64) -> Result<()> {
    // The chain of tests.
    let network = NetworkName::on_chain(Some(NETWORK), 31_337)?;
    let learned = data_dir.join("networks").join(network.as_str());
    catalog::fill(&learned, network.as_str(), wallet, LISTINGS).await?;
    buy(&data_dir.join("ledger.redb"), calls).await
}

/// Fills a ledger in memory and puts a copy in its place: 100,000 calls are hundreds of commits or more, and each of them
/// would wait for the disk.
async fn buy(path: &Path, calls: u64) -> Result<()> {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory)? } else { tempfile::tempdir()? };
    let filled = folder.path().join("ledger.redb");
    fs::copy(path, &filled)?;
    let ledger = Ledger::open(&filled, OpenMode::Existing)?;
    record(&ledger, calls).await?;
    fs::remove_file(path)?;
    Ok(ledger.copy_to(path)?)
}

/// Free calls that ended without an answer, in doubt whether they were charged: as many rows as paid ones, without a signature
/// each. Of calls that are certain to have cost nothing the ledger keeps the newest alone.
async fn record(ledger: &Ledger, calls: u64) -> Result<()> {
    let now_secs = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
    for first in (0..calls).step_by(usize::try_from(BATCH)?) {
        let numbers = first..(first + BATCH).min(calls);
        let mut waiting = Vec::new();
        for number in numbers.clone() {
            // The newest last.
            let time_secs = now_secs - (calls - number) * BETWEEN_CALLS_SECS;
            waiting.push(ledger.promise(promise(number, time_secs)).await?);
        }
        for pending in waiting {
            pending.await?;
        }
        let ended =
            numbers.map(|number| ledger.release_in_doubt(call_id(number), "the owner was busy", now_secs));
        futures::future::try_join_all(ended).await?;
    }
    Ok(())
}

fn promise(number: u64, time_secs: u64) -> Promise {
    let request = CallRequest {
        call_id: call_id(number),
        service: ServiceId::from_bytes([7; 16]),
        listing_version: 1,
        method: Method::Get,
        path: "/v1/things".to_owned(),
        params: BTreeMap::new(),
        headers: BTreeMap::new(),
        body_bytes: 0,
        deadline_ms: 30_000,
        price: Usdc::ZERO,
        payment: Payment::Free,
    };
    Promise {
        request_hash: request.request_hash(&[]),
        request,
        owner: Address::from_bytes([3; 20]),
        secret: "default".to_owned(),
        time_secs,
        limits: None,
        seen_total: Usdc::ZERO,
        charge_policy: ChargePolicy::Success,
    }
}
