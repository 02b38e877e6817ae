//! Deaths: what a node stores when its power goes, and what its disk keeps of that.

use farthing_protocol::Outcome;

use super::World;
use crate::disk::Survival;

/// A commit has some thirty writes and syncs; the power goes between any two of them, or after the last.
const OPERATIONS: u64 = 48;

impl World {
    pub(super) fn restart_payer(&mut self) {
        if self.stops {
            self.wire.break_all(self.now);
            self.tell(|| "the consumer stops and starts".to_owned());
            self.payer.stop_and_start(self.now);
        } else {
            let survival = self.let_payer_die();
            self.wire.break_all(self.now);
            self.tell(|| {
                format!("the consumer dies and starts; of what was not synced survives: {survival:?}")
            });
            self.payer.restart(survival, self.now);
        }
        self.payer.see(&self.chain);
    }

    pub(super) fn restart_payee(&mut self) {
        let survival = self.let_payee_die();
        self.tell(|| format!("the owner dies and starts; of what was not synced survives: {survival:?}"));
        self.wire.die();
        self.payee.crash(survival);
        self.is_closing = false;
        self.payee.see(&self.terms, &self.chain);
    }

    /// The power of the consumer's machine goes while a promise, a receipt or what the chain says is stored.
    fn let_payer_die(&mut self) -> Survival {
        if !self.dies_in_commits {
            return Survival::All;
        }
        let stored = self.choices.below(4);
        if stored == 0 {
            // The call travels while its promise is stored.
            self.order();
            self.act();
        }
        self.payer.machine.lose_power_after(self.choices.u64_below(OPERATIONS));
        match stored {
            0 | 1 => self.payer.store_promises(usize::MAX),
            2 => self.payer.store(&self.payee, self.choices.below(64), self.now),
            _ => self.payer.see(&self.chain),
        }
        self.commits_cut += usize::from(self.payer.is_dead());
        self.survival()
    }

    /// The power of the owner's machine goes while a served call, a call that arrives or what the chain says is stored.
    fn let_payee_die(&mut self) -> Survival {
        if !self.dies_in_commits {
            return Survival::All;
        }
        let stored = self.choices.below(4);
        self.payee.machine.lose_power_after(self.choices.u64_below(OPERATIONS));
        match stored {
            0 | 1 => {
                if let Some(id) = self.choices.take(&mut self.payee.serving()) {
                    self.finish(id, Outcome::Answered);
                }
            }
            2 => self.arrive(),
            _ => self.payee.see(&self.terms, &self.chain),
        }
        self.commits_cut += usize::from(self.payee.is_dead());
        self.survival()
    }

    fn survival(&mut self) -> Survival {
        match self.choices.below(4) {
            0 => Survival::None,
            1 => Survival::All,
            _ => Survival::Some(self.choices.u64_below(256)),
        }
    }
}
