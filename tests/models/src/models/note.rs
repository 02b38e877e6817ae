//! The note that every promise is stored: `node/ledger/src/writer/note.rs`.

use real_std::sync::Arc;

use super::{
    any, begin, end,
    writer::{close, insert, start},
};
use crate::{Database, error::LedgerError};

/// Calls leave while the ledger ends its promises, as when a node stops. Whenever the power goes, either the disk has the
/// promise of each call that left, or it has no note, and the next start asks the owners.
pub fn the_disk_never_has_the_note_without_the_promise_of_a_call_that_left() {
    let database = Database::with(any(2) == 0, [None, Some(any(4))][any(2)]);
    let queue = Arc::new(start(&database));
    queue.store().look_for_losses();
    let tasks: Vec<_> = (0..2_u64)
        .map(|number| {
            let (queue, database) = (Arc::clone(&queue), database.clone());
            begin(async move {
                match queue.promise(insert(number)).await {
                    Err(error) => {
                        assert!(matches!(error, LedgerError::Ending | LedgerError::Closed(_)), "{error:?}");
                    }
                    Ok(stored) => {
                        // Its call is on its way from here on, whatever comes of the promise.
                        database.leaves(number);
                        assert_eq!(stored.await.is_ok(), database.holds(number));
                    }
                }
            })
        })
        .collect();
    let ending = begin({
        let (queue, database) = (Arc::clone(&queue), database.clone());
        async move {
            let ended = queue.end_promises().await;
            assert!(queue.takes_no_promise());
            assert!(ended.is_err() || database.has_note(), "it has not ended");
            ended.is_ok()
        }
    });
    end(tasks);
    let has_ended = end([ending])[0];
    assert!(!has_ended || database.has_note(), "nothing takes the note away any more");
    close(queue);
    assert!(database.has_note() || database.failure.get().is_some(), "the last handle leaves it");
}
