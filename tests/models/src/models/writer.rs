//! The ledger's writer: `node/ledger/src/writer.rs` and `node/ledger/src/writer/waiting.rs`.

use real_std::{panic::resume_unwind, sync::Arc};

use futures::future::join_all;

use super::{any, begin, end, give_up};
use crate::{
    Database,
    error::{LedgerError, Result},
    group::Group,
    ledger::writer::{GROUP_OPERATIONS_MAX, QUEUE_OPERATIONS_MAX, Queue, Store},
};

pub(super) fn start(database: &Database) -> Queue {
    let store = Store::new(database.clone(), database.failure.clone()).expect("the disk can be read");
    Queue::start(Arc::new(store)).expect("a thread can be started")
}

pub(super) fn insert(number: u64) -> impl FnOnce(&mut Group<'_>) -> Result<()> + Send + 'static {
    move |group| {
        group.transaction().insert(number);
        Ok(())
    }
}

fn is_shown(queue: &Queue, number: u64) -> bool {
    queue.store().read(|tx| Ok(tx.holds(number))).expect("a snapshot can be read")
}

/// One caller in one of the ways to write; on the disk is what it was told.
async fn call(queue: &Queue, database: &Database, number: u64) {
    let is_there = || {
        assert!(database.holds(number), "{number} was acknowledged and is not on the disk");
        assert!(is_shown(queue, number), "{number} was acknowledged and is not shown");
    };
    match any(5) {
        0 => {
            queue.enqueue(insert(number)).await.expect("it is open").await.expect("nothing fails");
            is_there();
        }
        1 => {
            queue.ride(insert(number)).await.expect("nothing fails");
            is_there();
        }
        2 => {
            drop(queue.enqueue(insert(number)).await.expect("it is open"));
            queue.catch_up().await;
            is_there();
        }
        3 => drop(queue.enqueue(insert(number)).await.expect("it is open")),
        _ => {
            let is_done = give_up(queue.ride(insert(number))).await;
            assert!(is_done.is_none_or(|done| done.is_ok()));
        }
    }
}

fn calls(queue: &Arc<Queue>, database: &Database, count: u64) {
    let tasks: Vec<_> = (0..count)
        .map(|number| {
            let (queue, database) = (Arc::clone(queue), database.clone());
            begin(async move { call(&queue, &database, number).await })
        })
        .collect();
    end(tasks);
}

/// What was acknowledged is on the disk and shown; whoever waits is answered; what nobody waited for is on the disk when the last
/// handle is gone.
pub fn every_write_is_answered_once_it_is_on_the_disk() {
    let database = Database::default();
    let queue = Arc::new(start(&database));
    calls(&queue, &database, 3);
    close(queue);
    assert_eq!(database.len(), 3, "the last handle waits for what is queued or rides");
    assert!(database.has_note(), "every promise is stored");
}

/// The same while so many calls are under way that commits wait for each other's operations.
pub fn every_write_is_answered_while_commits_gather() {
    let database = Database::default();
    let queue = Arc::new(start(&database));
    let under_way: Vec<_> = (0..9).map(|_| queue.under_way()).collect();
    let guest = {
        let queue = Arc::clone(&queue);
        begin(async move { drop((under_way, queue)) })
    };
    calls(&queue, &database, 9);
    end([guest]);
    close(queue);
    assert_eq!(database.len(), 9);
}

/// The last handle goes here, whichever task was the last to use it.
pub(super) fn close(mut queue: Arc<Queue>) {
    loop {
        match Arc::try_unwrap(queue) {
            Ok(last) => return drop(last),
            Err(shared) => queue = shared,
        }
        shuttle::thread::yield_now();
    }
}

/// When the disk fails, whoever waits hears of it, nothing of the failed group is shown, and nothing more is taken.
pub fn everybody_hears_of_a_disk_that_fails() {
    let database = Database::with(false, Some(any(3)));
    let queue = Arc::new(start(&database));
    let tasks: Vec<_> = (0..4_u64)
        .map(|number| {
            let (queue, database) = (Arc::clone(&queue), database.clone());
            begin(async move {
                let rides = any(2) == 0;
                let stored = match rides {
                    true => queue.ride(insert(number)).await,
                    false => async { queue.enqueue(insert(number)).await?.await }.await,
                };
                assert_eq!(stored.is_ok(), database.holds(number), "{stored:?}");
                assert_eq!(stored.is_ok(), is_shown(&queue, number), "{stored:?}");
                stored.is_ok()
            })
        })
        .collect();
    let stored = end(tasks);
    if !stored.iter().all(|stored| *stored) {
        assert!(queue.store().closed().is_some());
        let next = end([begin({
            let queue = Arc::clone(&queue);
            async move { queue.enqueue(insert(9)).await.map(drop) }
        })]);
        assert!(matches!(next[..], [Err(LedgerError::Closed(_))]), "{next:?}");
    }
    close(queue);
}

/// When the thread panics, whoever waits hears of it: for an answer, for a ride, for room.
pub fn everybody_hears_of_a_thread_that_panics() {
    let database = Database::default();
    let queue = Arc::new(start(&database));
    let tasks: Vec<_> = (0..3_u64)
        .map(|number| {
            let queue = Arc::clone(&queue);
            begin(async move {
                match number {
                    // Unlike `panic!`, without words for every schedule.
                    0 => {
                        let broken =
                            |_: &mut Group<'_>| -> Result<()> { resume_unwind(Box::new("on purpose")) };
                        async { queue.enqueue(broken).await?.await }.await.expect_err("it did not happen");
                    }
                    1 => drop(queue.ride(insert(number)).await),
                    _ => drop(async { queue.enqueue(insert(number)).await?.await }.await),
                }
                queue.catch_up().await;
                async { queue.enqueue(insert(10 + number)).await?.await }.await
            })
        })
        .collect();
    let last = end(tasks);
    assert!(last[0].is_err(), "the thread was gone: {last:?}");
    close(queue);
}

/// More operations at once than there is room for: whoever waits for room gets it, or hears that the thread is gone. So many wait
/// then that there are not enough places for each of them to find out by itself.
pub fn whoever_waits_for_room_gets_it_or_hears_that_the_thread_is_gone() {
    const EACH: usize = QUEUE_OPERATIONS_MAX + GROUP_OPERATIONS_MAX;
    let database = Database::default();
    let queue = Arc::new(start(&database));
    let breaks_at = (any(2) == 0).then(|| any(EACH) as u64);
    let tasks: Vec<_> = (0..2)
        .map(|task| {
            let queue = Arc::clone(&queue);
            let breaks_at = breaks_at.filter(|_| task == 0);
            begin(async move {
                let write = |number: u64| {
                    let queue = &queue;
                    let job = move |group: &mut Group<'_>| -> Result<()> {
                        if breaks_at == Some(number) {
                            resume_unwind(Box::new("on purpose"));
                        }
                        group.transaction().insert(1_000 * task + number);
                        Ok(())
                    };
                    async move { queue.enqueue(job).await?.await }
                };
                let stored = join_all((0..EACH as u64).map(write)).await;
                stored.iter().filter(|stored| stored.is_ok()).count()
            })
        })
        .collect();
    let stored: usize = end(tasks).into_iter().sum();
    close(queue);
    assert!(stored <= database.len(), "{stored} were acknowledged");
    assert!(breaks_at.is_some() || stored == 2 * EACH, "each is stored: {stored}");
}

/// While many calls are under way, a commit waits for more operations than one; what a full commit leaves over waits for none.
pub fn what_a_full_commit_leaves_over_is_answered() {
    let database = Database::default();
    let queue = Arc::new(start(&database));
    let under_way: Vec<_> = (0..9).map(|_| queue.under_way()).collect();
    let writes = {
        let queue = Arc::clone(&queue);
        begin(async move {
            let queue = &queue;
            let write = |number| async move { queue.enqueue(insert(number)).await?.await };
            join_all((0..GROUP_OPERATIONS_MAX as u64 + 2).map(write)).await
        })
    };
    assert!(end([writes]).iter().flatten().all(Result::is_ok), "nothing fails");
    drop(under_way);
    close(queue);
}
