//! Kept bodies of answers, and the count of their bytes.

use redb::{ReadableTable as _, WriteTransaction};

use crate::{
    error::Result,
    tables::{BODIES, BODY_BYTES, META},
};

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

pub(super) fn add_body_bytes(tx: &WriteTransaction, bytes: u64) -> Result<()> {
    let mut meta = tx.open_table(META)?;
    let kept = meta.get(BODY_BYTES)?.map_or(0, |total| total.value());
    meta.insert(BODY_BYTES, kept + bytes)?;
    Ok(())
}
