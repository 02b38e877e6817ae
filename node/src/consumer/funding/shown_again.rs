//! Second readings of emptied channels: nothing is missing where an endpoint only said for a while that one is empty.

use std::time::Duration;

use farthing_protocol::Address;
use tokio::time::{Instant, timeout};

use super::{DEPOSIT_WAIT_MAX, Funding};
use crate::consumer::channels::PayerChannel;

/// The pause before an owner's emptied channels are read again, however many calls to it are refused meanwhile.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(10);

impl Funding {
    /// Tells whether the chain shows money in a channel with an owner that the books have as emptied, and waits until they
    /// show it as well.
    pub(super) async fn is_shown_again(&self, owner: Address) -> bool {
        let emptied = self.emptied(owner);
        if emptied.is_empty() || !self.may_read_again(owner) {
            return false;
        }
        for PayerChannel { id, config, .. } in emptied {
            let read = self.0.chain.read_channel(config).await;
            let is_filled = read.is_ok_and(|now| now.id == id && now.deposited > now.claimed);
            if is_filled && self.0.chain.reread(id).await.is_ok() {
                let booked = self.0.channels.until(id, PayerChannel::holds_deposit);
                return timeout(DEPOSIT_WAIT_MAX, booked).await.is_ok();
            }
        }
        false
    }

    fn may_read_again(&self, owner: Address) -> bool {
        let mut read_again = self.0.read_again.lock();
        let is_due = read_again.get(&owner).is_none_or(|at| at.elapsed() >= READ_AGAIN_AFTER);
        if is_due {
            read_again.insert(owner, Instant::now());
        }
        is_due
    }
}
