//! Kept bodies of answers, and the count of their bytes.

use redb::{ReadableTable as _, WriteTransaction};

use crate::{
    error::Result,
    tables::{BODIES, BODY_BYTES, META},
};

/// All kept bodies together, whatever the settings say.
pub(crate) const BODIES_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Removes a kept body; its size.
pub(crate) fn forget_body(tx: &WriteTransaction, by_time: &[u8; 44]) -> Result<Option<u64>> {
    let bytes = tx.open_table(BODIES)?.remove(by_time)?.map(|body| body.value().len() as u64);
    if let Some(bytes) = bytes {
        let mut meta = tx.open_table(META)?;
        let kept = meta.get(BODY_BYTES)?.map_or(0, |total| total.value());
        meta.insert(BODY_BYTES, kept.saturating_sub(bytes))?;
    }
    Ok(bytes)
}

/// Keeps a body. The oldest ones beyond `bytes_max` go at once: calls that cost nothing would fill the disk before
/// anybody tidies up.
pub(super) fn keep_body(
    tx: &WriteTransaction,
    by_time: &[u8; 44],
    body: &[u8],
    bytes_max: u64,
) -> Result<()> {
    tx.open_table(BODIES)?.insert(by_time, body)?;
    let kept = bytes_kept(tx)?.saturating_add(body.len() as u64);
    tx.open_table(META)?.insert(BODY_BYTES, kept)?;
    while bytes_kept(tx)? > bytes_max {
        let oldest = tx.open_table(BODIES)?.first()?.map(|(key, _)| *key.value());
        let Some(oldest) = oldest else { break };
        forget_body(tx, &oldest)?;
    }
    Ok(())
}

fn bytes_kept(tx: &WriteTransaction) -> Result<u64> {
    Ok(tx.open_table(META)?.get(BODY_BYTES)?.map_or(0, |total| total.value()))
}

#[cfg(test)]
mod tests {
    use redb::{Database, ReadableTableMetadata as _, backends::InMemoryBackend};

    use super::*;

    #[test]
    fn bodies_beyond_the_bound_go_the_oldest_first_and_at_once() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let tx = database.begin_write().unwrap();
        for number in 0..20 {
            keep_body(&tx, &[number; 44], &[0; 100], 550).unwrap();
            assert!(bytes_kept(&tx).unwrap() <= 550);
        }
        let bodies = tx.open_table(BODIES).unwrap();
        assert_eq!((bodies.len().unwrap(), bodies.first().unwrap().unwrap().0.value()[0]), (5, 15));
    }
}
