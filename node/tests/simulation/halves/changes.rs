//! What changes besides: the owner's price, while calls run; and a ledger of either side, which is put back to what it was some
//! steps before, as from a backup. Two consumers buy from the owner meanwhile, and each pair is judged by itself.
//!
//! A call costs at most the price that its consumer accepted with its first call, or what its order names. The wall clock is real
//! here and hardly passes, so a ledger is put back in an hour to come: everything before is of the time before the backup.

use std::{sync::Arc, thread};

use farthing_ledger::Ledger;
use farthing_os::clock;
use farthing_protocol::Usdc;
use tokio::time::sleep;

use super::{HISTORIES, TRIES, attempt_on, costs::REST, ground::Ground, history::History};
use crate::{
    disk::Disk,
    play::{Simulation, history_of},
};

/// Those that the owner asks for, one after the other. The second is the one that is accepted.
const PRICES: [Usdc; 3] = [Usdc::from_micros(500), Usdc::from_micros(1_000), Usdc::from_micros(2_000)];
/// The calls that are bought first: one of each operation.
const ACCEPTING: usize = 3;
const LATER_SECS: u64 = 3_600;
/// In one, an owner lacks the charge of a call that its ledger has as free; in the other, a price fell after a call that is
/// repeated, and that its consumer's ledger lacks.
const CHOSEN: [u64; 2] = [579, 746];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Consumer(usize),
    Owner,
}

/// What a history with changes knows of them.
#[derive(Default)]
pub struct Changes {
    /// The newest version of the service.
    version: u64,
    backup: Option<(Holder, Disk)>,
    /// Whose ledger was put back.
    restored: Option<Holder>,
}

impl History<'_> {
    /// Buys each operation once of each consumer while nothing fails: what it costs is accepted.
    pub(super) async fn accept_prices(&mut self) {
        self.state.lock().has_faults = false;
        for at in 0..self.buyers.len() {
            for _ in 0..ACCEPTING {
                self.order_of(at, None);
            }
        }
        sleep(REST).await;
        self.state.lock().has_faults = true;
    }

    /// The price that an order names, if it names one.
    pub(super) fn price_named(&self) -> Option<Usdc> {
        let is_named = self.changes.is_some() && self.state.lock().choices.chance(30);
        is_named.then_some(PRICES[2])
    }

    /// Notes what a call may cost.
    pub(super) fn allow(&mut self, number: u64, max_price: Option<Usdc>) {
        let most = self.allowed.entry(number).or_default();
        *most = (*most).max(max_price.unwrap_or(PRICES[1]));
    }

    pub(super) fn is_owner_restored(&self) -> bool {
        self.changes.as_ref().is_some_and(|changes| changes.restored == Some(Holder::Owner))
    }

    /// Changes a price, makes a backup, or puts it back.
    pub(super) async fn change(mut self) -> Self {
        let what = self.state.lock().choices.below(100);
        match what {
            0..8 => self.change_price().await,
            8..16 => self.back_up(),
            16..24 => return self.restore().await,
            _ => {}
        }
        self
    }

    async fn change_price(&mut self) {
        let price = PRICES[self.state.lock().choices.below(PRICES.len())];
        self.publish(price).await;
    }

    /// Publishes a price in a version above all that consumers have heard of.
    async fn publish(&mut self, price: Usdc) {
        let ground = self.buyers[0].ground;
        let Some(changes) = &mut self.changes else { return };
        let known = loop {
            let known = self.owner.publish(ground, price).await;
            if known.listing().seq > changes.version {
                break Arc::new(known);
            }
        };
        changes.version = known.listing().seq;
        self.state.tell(format!("the price is {price} in version {}", changes.version));
        // Calls are on their way at the price of before.
        for buyer in &self.buyers {
            buyer.ground.catalog.use_from_now(&known).await;
        }
    }

    fn back_up(&mut self) {
        let is_of_owner = self.state.lock().choices.chance(50);
        let at = self.pick();
        let backup = match is_of_owner {
            true => (Holder::Owner, self.owner.backup()),
            false => (Holder::Consumer(at), self.buyers[at].run.backup()),
        };
        self.state.tell(format!("a backup of {:?}", backup.0));
        if let Some(changes) = &mut self.changes {
            changes.backup = Some(backup);
        }
    }

    /// Puts a ledger back, once.
    async fn restore(mut self) -> Self {
        let Some(changes) = self.changes.as_mut().filter(|changes| changes.restored.is_none()) else {
            return self;
        };
        let Some((holder, disk)) = changes.backup.take() else { return self };
        changes.restored = Some(holder);
        self.state.tell(format!("the backup of {holder:?} is put back"));
        let disk = marked(disk).await;
        match holder {
            Holder::Consumer(at) => self.restart_consumer(at, Some(disk)).await,
            Holder::Owner => {
                self.state.lock().forget_served();
                self = self.restart_owner(Some(disk)).await;
                self.change_price().await;
            }
        }
        self
    }
}

/// The ledger of a backup, which says that it is one.
async fn marked(disk: Disk) -> Disk {
    let ledger = Ledger::without_thread(disk.clone()).unwrap();
    ledger.mark_restored(clock::now_secs() + LATER_SECS).await.unwrap();
    drop(ledger);
    Disk::new(disk.bytes())
}

#[test]
fn each_pair_agrees_on_every_call_whatever_prices_change_and_backups_are_put_back() {
    let (ground, kept) = Ground::lay();
    let attempt = |history: &[u8], _: bool| {
        attempt_on(history, None, async |state| {
            let (grounds, _folder) = ground.of_two(&kept.beside).await;
            History::begin(&grounds, state, Some(Changes::default())).await.play().await
        })
    };
    let simulation =
        Simulation { name: "halves::changes::each_pair_agrees", tries: TRIES, attempt: &attempt };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let totals = simulation.play_chosen(HISTORIES / 4, CHOSEN.map(history_of).into(), cores);
    assert!(
        totals.histories == 1 || totals.charging == totals.histories as u64,
        "each consumer buys something in each history: {totals:?}"
    );
}
