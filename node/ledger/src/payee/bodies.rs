//! Kept bodies of answers, and the count of their bytes.

use redb::{ReadableTable as _, WriteTransaction};

use super::shares::Share;
use crate::{
    error::Result,
    tables::{BODIES, BODY_BYTES, META},
};

/// All kept bodies together, whatever the settings say.
pub(crate) const BODIES_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Removes a kept body; its size.
pub(crate) fn forget_body(tx: &WriteTransaction, by_time: &[u8; 44]) -> Result<Option<u64>> {
    Share::Bodies.remove(tx, by_time)?;
    let bytes = tx.open_table(BODIES)?.remove(by_time)?.map(|body| body.value().len() as u64);
    if let Some(bytes) = bytes {
        let mut meta = tx.open_table(META)?;
        let kept = meta.get(BODY_BYTES)?.map_or(0, |total| total.value());
        meta.insert(BODY_BYTES, kept.saturating_sub(bytes))?;
    }
    Ok(bytes)
}

/// Keeps a body. The oldest ones beyond `bytes_max` go at once, of its payer first if that has more than its part: calls
/// that cost nothing would fill the disk before anybody tidies up, and one payer would leave others no answer.
pub(super) fn keep_body(
    tx: &WriteTransaction,
    by_time: &[u8; 44],
    body: &[u8],
    bytes_max: u64,
) -> Result<()> {
    tx.open_table(BODIES)?.insert(by_time, body)?;
    Share::Bodies.add(tx, by_time, body.len() as u64)?;
    let kept = bytes_kept(tx)?.saturating_add(body.len() as u64);
    tx.open_table(META)?.insert(BODY_BYTES, kept)?;
    while bytes_kept(tx)? > bytes_max {
        let of_all = tx.open_table(BODIES)?.first()?.map(|(key, _)| *key.value());
        let Some(oldest) = Share::Bodies.oldest_beyond(tx, by_time, bytes_max)?.or(of_all) else { break };
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

    /// Seconds, payer and call.
    fn key(secs: u8, payer: u8) -> [u8; 44] {
        let mut key = [payer; 44];
        key[..8].copy_from_slice(&u64::from(secs).to_be_bytes());
        key
    }

    #[test]
    fn one_payer_leaves_the_answers_of_others_whatever_it_buys() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let tx = database.begin_write().unwrap();
        (0..6).for_each(|secs| keep_body(&tx, &key(secs, 1), &[0; 100], 800).unwrap());
        (10..60).for_each(|secs| keep_body(&tx, &key(secs, 2), &[0; 100], 800).unwrap());
        let count = |payer: u8| {
            let bodies = tx.open_table(BODIES).unwrap();
            bodies.iter().unwrap().filter(|body| body.as_ref().unwrap().0.value()[8] == payer).count()
        };
        assert_eq!((count(1), count(2)), (6, 2), "of 800 bytes, 200 are the part of one");
        assert!(tx.open_table(BODIES).unwrap().get(&key(59, 2)).unwrap().is_some(), "its newest");
        // An earlier program forgets bodies without a word here.
        for secs in [58, 59] {
            tx.open_table(BODIES).unwrap().remove(&key(secs, 2)).unwrap();
        }
        tx.open_table(META).unwrap().insert(BODY_BYTES, 600).unwrap();
        (60..70).for_each(|secs| keep_body(&tx, &key(secs, 2), &[0; 100], 800).unwrap());
        assert_eq!((count(1), count(2)), (6, 2));
        (70..90).for_each(|secs| keep_body(&tx, &key(secs, 3), &[0; 10], 800).unwrap());
        assert_eq!((count(1), count(2), count(3)), (4, 2, 20), "within its part, others make room");
    }
}
