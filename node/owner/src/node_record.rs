//! The node's own record, which tells the network that calls are taken here.

use farthing_ledger::{Ledger, LedgerError, Namespace};
use farthing_network::NetworkHandle;
use farthing_protocol::record::{FLAG_ACCEPTS_CALLS, FLAG_KEEPS_ALL, FLAG_SPONSORS};

use super::registry::Registry;

const SEQ_KEY: &[u8] = b"record-seq";

/// Returns the sequence number of the last record that was published; 0 before the first.
pub fn last_seq(ledger: &Ledger) -> Result<u64, LedgerError> {
    let stored = ledger.get(Namespace::Settings, SEQ_KEY)?;
    Ok(stored.and_then(|bytes| <[u8; 8]>::try_from(bytes.as_ref()).ok()).map_or(0, u64::from_be_bytes))
}

/// Publishes the node record with what is offered now, whether all listings are kept here and whether gas is paid for others,
/// and stores its sequence number.
pub async fn publish(
    registry: &Registry,
    network: &NetworkHandle,
    ledger: &Ledger,
    (keeps_all, sponsors): (bool, bool),
) {
    let (count, root) = registry.root();
    let flag = |holds: bool, flag: u32| if holds { flag } else { 0 };
    let flags =
        flag(count > 0, FLAG_ACCEPTS_CALLS) | flag(keeps_all, FLAG_KEEPS_ALL) | flag(sponsors, FLAG_SPONSORS);
    match network.publish(flags, count, root).await {
        Ok(seq) => {
            let stored = ledger.put(Namespace::Settings, SEQ_KEY, seq.to_be_bytes().to_vec());
            if let Err(error) = stored.await {
                tracing::warn!(%error, "the record's sequence number was not stored");
            }
        }
        Err(error) => tracing::warn!(%error, "the node record was not published"),
    }
}
