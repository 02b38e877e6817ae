//! Listing anew at the start what was listed for another network, by a wrong clock, or before a backup.

use farthing_ledger::{LedgerError, Namespace};
use farthing_os::clock;
use farthing_protocol::{Listing, Signed, Verified, limits, wire};

use super::{Registry, RegistryError, date, samples_count};

impl Registry {
    /// Lists services above versions that others know and this node's ledger lacks: its disk was put back to an earlier
    /// state, and nobody would take what it offers. Where the owner had paused the service since, made it dearer or
    /// changed what it offers, it is paused.
    pub async fn rise_above(&self, others: &[Verified<Listing>]) {
        for later in others {
            let service = later.service;
            let rise = |listing: &mut Listing| {
                listing.seq = listing.seq.max(later.seq);
                listing.paused |= later.paused
                    || later.price > listing.price
                    || later.charge_policy != listing.charge_policy
                    || later.details_hash != listing.details_hash;
            };
            let risen = match self.turn(service).await {
                Ok(turn) => self.change(turn, rise).await,
                Err(error) => Err(error),
            };
            match risen {
                Ok(risen) => {
                    let is_paused = risen.listing().paused;
                    tracing::warn!(%service, is_paused, "other nodes have a later version of this service than the \
                                                         ledger; the ledger's version is published above it now: check \
                                                         that it is right");
                }
                Err(error) => tracing::warn!(%service, %error, "others know a later version of a service"),
            }
        }
    }

    /// Lists what was listed for another network, or another way to pay, for this one, and what was dated by a clock
    /// that was ahead, or came from a backup: each as a new version, so that it is the newest wherever it comes by; and says so.
    ///
    /// # Errors
    /// [`LedgerError`] when the ledger fails. A service that cannot be listed is left as it is, with a warning.
    pub async fn relist(&self) -> Result<(), LedgerError> {
        let (mut moved, mut dated) = (0, 0);
        let (now_secs, restored_secs) = (clock::now_secs(), self.0.ledger.restored_secs()?.unwrap_or(0));
        for service in self.all() {
            let listing = service.listing();
            let accepts = &self.0.accepts;
            let is_dated_ahead = is_of_the_future(listing, now_secs);
            // Listings of an older version of this program tell of neither.
            let tells_all = listing.history.is_some();
            // Others may know versions that are not in the backup, and take none below them.
            let is_of_backup = listing.seq < restored_secs;
            if listing.network == self.0.network
                && listing.accepts == *accepts
                && !is_dated_ahead
                && tells_all
                && !is_of_backup
            {
                continue;
            }
            let samples_count = samples_count(service.samples());
            let here = |listing: &mut Listing| {
                listing.network.clone_from(&self.0.network);
                listing.accepts.clone_from(accepts);
                listing.samples_count = samples_count;
                if is_of_backup {
                    // More than a version a second is never made, whatever clock they were dated by.
                    listing.seq = restored_secs.max(listing.updated_secs).max(now_secs);
                }
            };
            let changed = match self.turn(listing.service).await {
                Ok(turn) => self.change(turn, here).await,
                Err(error) => Err(error),
            };
            match changed {
                Ok(_) if is_dated_ahead => dated += 1,
                Ok(_) if is_of_backup => {
                    let Listing { service, name, price, .. } = &**listing;
                    tracing::warn!(%service, name, %price, "is offered as it is in the backup; check that it is right");
                }
                Ok(_) => moved += 1,
                Err(RegistryError::Ledger(error)) => return Err(error),
                Err(error) => {
                    tracing::warn!(service = %listing.service, %error, "a service cannot be listed on this network");
                }
            }
        }
        moved += self.relist_retired(now_secs, restored_secs).await?;
        if dated > 0 {
            tracing::info!(services = dated, "services that a wrong clock had dated ahead are listed again");
        }
        if moved > 0 {
            let network = &self.0.network;
            tracing::info!(
                services = moved,
                network,
                "services of another network or chain are listed here now"
            );
        }
        Ok(())
    }

    /// The same for the last listings of what was retired; counts them.
    async fn relist_retired(&self, now_secs: u64, restored_secs: u64) -> Result<usize, LedgerError> {
        let mut moved = 0;
        for (key, bytes) in self.0.ledger.list(Namespace::Retired)? {
            let last = wire::decode::<Signed<Listing>>(&bytes).ok().and_then(|last| last.claimed().ok());
            let is_stale = |last: &Listing| {
                last.network != self.0.network || is_of_the_future(last, now_secs) || last.seq < restored_secs
            };
            let Some(last) = last.filter(is_stale) else { continue };
            // What is retired stays above every version that another backup brought back.
            let above = if last.seq < restored_secs { restored_secs.max(now_secs) } else { last.seq };
            let mut here = Listing { network: self.0.network.clone(), seq: above + 1, ..last };
            let dated_secs = here.updated_secs.min(now_secs);
            date(&mut here, dated_secs);
            if let Ok(here) = self.0.signer.sign_document(&here) {
                self.0.ledger.put(Namespace::Retired, key, wire::encode(&here)).await?;
                moved += 1;
            }
        }
        Ok(moved)
    }
}

/// Tells whether the listing is dated so far ahead that nobody takes it before its time has come.
fn is_of_the_future(listing: &Listing, now_secs: u64) -> bool {
    listing.updated_secs > now_secs.saturating_add(limits::CLOCK_SKEW_SECS_MAX)
}
