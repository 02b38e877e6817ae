//! The memory that connections may take: the container's limit or the machine's, whichever is less.
//!
//! The library's percentages look at the machine alone; in a container of 512 MiB on a machine of 64 GiB they
//! would never bite.

use std::fs;

/// New connections are refused above this part of the memory: bodies under way need the rest.
const PERCENT_MAX: u64 = 80;

/// Bytes above which this process takes no new connections; nothing where the system does not say.
pub(crate) fn connection_bytes_max() -> Option<usize> {
    let read = |path| fs::read_to_string(path).ok();
    let limit = limit_bytes(
        read("/sys/fs/cgroup/memory.max").as_deref(),
        read("/sys/fs/cgroup/memory/memory.limit_in_bytes").as_deref(),
        read("/proc/meminfo").as_deref(),
    )?;
    usize::try_from(limit / 100 * PERCENT_MAX).ok()
}

/// The least of the limits in these files: cgroup v2's `memory.max`, v1's `memory.limit_in_bytes`, and
/// `/proc/meminfo`. `max` (v2) is no limit; v1 says so by a number larger than any memory.
fn limit_bytes(cgroup_v2: Option<&str>, cgroup_v1: Option<&str>, meminfo: Option<&str>) -> Option<u64> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let total = |text: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        number(line.strip_suffix("kB")?)?.checked_mul(1024)
    };
    let limits = [cgroup_v2.and_then(number), cgroup_v1.and_then(number), meminfo.and_then(total)];
    limits.into_iter().flatten().filter(|bytes| *bytes > 0).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str = "MemTotal:       16384256 kB\nMemFree:         1000000 kB\n";
    const MACHINE_BYTES: u64 = 16_384_256 * 1024;

    #[test]
    fn the_least_limit_counts() {
        for (v2, v1, meminfo, expected) in [
            (None, None, Some(MEMINFO), Some(MACHINE_BYTES)),
            (Some("536870912\n"), None, Some(MEMINFO), Some(512 << 20)),
            (Some("max\n"), None, Some(MEMINFO), Some(MACHINE_BYTES)),
            (None, Some("268435456\n"), Some(MEMINFO), Some(256 << 20)),
            (None, Some("9223372036854771712\n"), Some(MEMINFO), Some(MACHINE_BYTES)),
            (Some("1073741824"), Some("536870912"), None, Some(512 << 20)),
            (Some("0"), None, Some(MEMINFO), Some(MACHINE_BYTES)),
            (Some("garbage"), Some(""), Some("MemTotal: many kB"), None),
            (None, None, None, None),
        ] {
            assert_eq!(limit_bytes(v2, v1, meminfo), expected, "{v2:?} {v1:?}");
        }
    }

    #[test]
    fn this_machine_has_a_limit() {
        assert!(connection_bytes_max().is_some_and(|bytes| bytes > 1 << 20));
    }
}
