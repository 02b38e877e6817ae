//! Labs whose process was killed before it could remove them.

use std::path::Path;

use anyhow::Result;

use super::commands::{output, run};

/// Of the namespaces' names; the process id of their maker follows.
pub const PREFIX: &str = "farthing-nat-";

/// Removes the labs of processes that are gone, with the programs that still run in them.
pub fn remove() -> Result<()> {
    let listed = output(&["ip", "netns", "list"], "")?;
    let names = listed.lines().filter_map(|line| line.split_whitespace().next());
    for name in names.filter(|name| maker(name).is_some_and(|pid| !is_running(pid))) {
        // Another process may be removing the same at this moment.
        let inside = output(&["ip", "netns", "pids", name], "").unwrap_or_default();
        for pid in inside.split_whitespace() {
            let _ = run(&["sh", "-c", "kill -KILL \"$0\"", pid], "");
        }
        let _ = run(&["ip", "netns", "delete", name], "");
    }
    Ok(())
}

fn maker(namespace: &str) -> Option<u32> {
    namespace.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

fn is_running(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn only_namespaces_of_labs_have_a_maker() {
    assert_eq!(maker("farthing-nat-17-0-owner"), Some(17));
    for foreign in ["farthing-nat-", "farthing-nat-x-0-owner", "cni-17", "farthing-17-0-owner"] {
        assert_eq!(maker(foreign), None, "{foreign}");
    }
}
