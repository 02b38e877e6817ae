//! Deposits that calls make into channels which had been emptied. An owner that closes the channel after each call has its
//! payer pay for a deposit for each: so many at once are borne, and one more in each stretch of time, over restarts too.

use farthing_ledger::{Ledger, LedgerError, Namespace};
use farthing_protocol::Address;

const AT_ONCE: u64 = 6;
const EVERY_SECS: u64 = 6 * 3_600;

/// The second until which each owner's refills are paid off, in the ledger: each of them cost gas, so there are few.
#[derive(Clone, Debug)]
pub struct Refills(Ledger);

impl Refills {
    pub const fn new(ledger: Ledger) -> Self {
        Self(ledger)
    }

    /// Returns the seconds until another one is borne; none when it is now.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn wait_secs(&self, owner: Address, now_secs: u64) -> Result<u64, LedgerError> {
        Ok(self.left_secs(owner, now_secs)?.saturating_sub(EVERY_SECS * (AT_ONCE - 1)))
    }

    /// Counts one that was made.
    ///
    /// # Errors
    /// When the ledger cannot be read or written.
    pub async fn note(&self, owner: Address, now_secs: u64) -> Result<(), LedgerError> {
        let paid_off = now_secs.saturating_add(self.left_secs(owner, now_secs)?).saturating_add(EVERY_SECS);
        let key = owner.as_bytes().to_vec();
        self.0.put(Namespace::Refills, key, paid_off.to_be_bytes().to_vec()).await
    }

    /// The time that those which were made are yet to be paid off: no more than they can take, however far ahead the clock
    /// was then.
    fn left_secs(&self, owner: Address, now_secs: u64) -> Result<u64, LedgerError> {
        let stored = self.0.get(Namespace::Refills, owner.as_bytes())?;
        let paid_off = stored.and_then(|bytes| <[u8; 8]>::try_from(&bytes[..]).ok()).map(u64::from_be_bytes);
        let left = paid_off.unwrap_or_default().saturating_sub(now_secs);
        Ok(left.min(EVERY_SECS * AT_ONCE))
    }
}

#[cfg(test)]
mod tests {
    use farthing_ledger::OpenMode;

    use super::*;

    const NOW: u64 = 1_795_000_000;

    #[tokio::test]
    async fn emptied_channels_are_filled_so_often_at_once_and_then_now_and_then_over_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.redb");
        let open = || Refills::new(Ledger::open(&path, OpenMode::Create).unwrap());
        let [one, other] = [1, 2].map(|n| Address::from_bytes([n; 20]));
        for _ in 0..AT_ONCE {
            let refills = open();
            assert_eq!(refills.wait_secs(one, NOW).unwrap(), 0);
            refills.note(one, NOW).await.unwrap();
        }
        let refills = open();
        assert_eq!(refills.wait_secs(one, NOW).unwrap(), EVERY_SECS);
        assert_eq!(refills.wait_secs(other, NOW).unwrap(), 0, "each owner by itself");
        assert_eq!(refills.wait_secs(one, NOW + EVERY_SECS - 1).unwrap(), 1);
        assert_eq!(refills.wait_secs(one, NOW + EVERY_SECS).unwrap(), 0);
        refills.note(one, NOW + EVERY_SECS).await.unwrap();
        assert_eq!(refills.wait_secs(one, NOW + EVERY_SECS).unwrap(), EVERY_SECS);
        assert_eq!(refills.wait_secs(one, NOW).unwrap(), EVERY_SECS, "the clock went back");
        assert_eq!(refills.wait_secs(one, 1).unwrap(), EVERY_SECS, "the clock was far ahead");
    }
}
