//! Time, and work beside the tasks, come from places that a test can hold.

use crate::{
    Breaches,
    source::{repository, source_files},
};

/// The code that decides by time. In a paused runtime of tokio its hours pass at once, in the same way each time.
const DECIDING: [&str; 5] =
    ["node/src", "node/chain/src", "node/discovery/src", "node/owner/src", "node/shared/src"];

/// The only file of the node that asks the machine for the time.
const WALL_CLOCK: &str = "node/os/src/clock.rs";

#[test]
fn what_decides_by_time_reads_the_clock_that_a_test_can_pause() {
    let mut breaches = Breaches::default();
    for file in DECIDING.iter().flat_map(|folder| source_files(&repository().join(folder))) {
        if file.paths_in("std").iter().any(|path| path.join("::").starts_with("time::Instant")) {
            breaches.add(&file.path, "uses std::time::Instant; use tokio::time::Instant");
        }
    }
    breaches.none();
}

#[test]
fn the_wall_clock_is_read_in_one_place() {
    let files = source_files(&repository().join("node"));
    let readers = files.iter().filter(|file| file.has_text("SystemTime::now"));
    let readers: Vec<&str> = readers.map(|file| file.path.as_str()).collect();
    assert_eq!(readers, [WALL_CLOCK], "ask {WALL_CLOCK} for the time instead");
}

/// The only file of what decides that gives work to a thread which may wait.
const BLOCKING: &str = "node/shared/src/blocking.rs";

#[test]
fn work_beside_the_tasks_is_started_in_one_place() {
    let files = DECIDING.iter().flat_map(|folder| source_files(&repository().join(folder)));
    let starting = files.filter(|file| file.has_text("spawn_blocking")).map(|file| file.path);
    assert_eq!(
        starting.collect::<Vec<_>>(),
        [BLOCKING],
        "start it by farthing_shared::blocking::start_blocking"
    );
}
