//! Sessions about records in the swarm's task: with whom to hold one, and when.

use std::{
    hash::{BuildHasher, RandomState},
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::SwarmTask;
use crate::{
    agreement::Agreed,
    command::{Command, Protocol},
};

/// The time until the next session when there is more to fetch.
const REST_AFTER: Duration = Duration::from_secs(5);
/// The same after one that ended early, as the other side may have been busy; doubling, because it may also have made this node
/// work and then left.
const AGAIN_AFTER: Duration = Duration::from_secs(30);

impl SwarmTask {
    /// Opens a session with one neighbour, another one each time. The first is due as soon as there is anybody.
    pub(super) fn agree_if_due(&mut self, now: Instant) {
        if self.agreement_due.is_none_or(|due| due > now) {
            return;
        }
        let Some(peer) = self.peers.agreeing(RandomState::new().hash_one(self.ticks)) else { return };
        self.agreement_due = None;
        let (sender, stream) = oneshot::channel();
        self.open(peer, Protocol::Records, sender);
        let (agreement, commands) = (self.parts.agreement.clone(), self.parts.own_commands.clone());
        tokio::spawn(async move {
            let agreed = match stream.await {
                Ok(Ok(line)) => agreement.open(peer, line).await,
                Ok(Err(_)) | Err(_) => None,
            };
            if let Some(commands) = commands.upgrade() {
                // An error means that the network has stopped.
                let _ = commands.send(Command::Agreed { agreed }).await;
            }
        });
    }

    pub(super) fn on_agreed(&mut self, agreed: Option<Agreed>, now: Instant) {
        self.agreements_failed = if agreed.is_some() { 0 } else { self.agreements_failed.saturating_add(1) };
        let lot = RandomState::new().hash_one(self.ticks);
        let pause = pause(agreed, self.agreements_failed, self.parts.agreement.interval(), lot);
        self.agreement_due = Some(now + pause);
    }
}

/// The time until the next session, after `failures` in a row.
fn pause(agreed: Option<Agreed>, failures: u32, interval: Duration, lot: u64) -> Duration {
    match agreed {
        Some(Agreed { is_rest: true, .. }) => REST_AFTER.min(interval),
        // Between three quarters and five quarters, so that nodes do not fall into step.
        Some(_) => {
            let part = u32::try_from(lot % 1_000).unwrap_or(0);
            interval * 3 / 4 + interval / 2 * part / 1_000
        }
        None => {
            let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
            AGAIN_AFTER.saturating_mul(doubled).min(interval)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_sessions_that_end_early_the_next_comes_ever_later_and_the_rest_of_a_newcomer_at_once() {
        const HOUR: Duration = Duration::from_secs(3600);
        let early = |failures| pause(None, failures, HOUR, 0);
        assert_eq!([1, 2, 3, 7].map(early), [30, 60, 120, 1920].map(Duration::from_secs));
        assert_eq!(early(8), HOUR);
        assert_eq!(early(u32::MAX), HOUR);
        let after = |is_rest, lot| pause(Some(Agreed { learned: 1, is_rest }), 0, HOUR, lot);
        assert_eq!(after(true, 0), REST_AFTER);
        assert_eq!([0, 999].map(|lot| after(false, lot) >= HOUR * 3 / 4), [true; 2]);
    }
}
