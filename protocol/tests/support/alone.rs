//! Tests that count this process's memory, each in a process of its own, where nobody else's is counted.

/// Whether this process runs the test of this name and no other. If not, it has just been run in one of its own, and has
/// passed.
pub fn is_alone(test: &str) -> bool {
    const ALONE: &str = "FARTHING_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut run = std::process::Command::new(std::env::current_exe().unwrap());
    // Otherwise glibc keeps memory apart for as many threads as happen to allocate at once.
    let run =
        run.args(["--exact", test, "--nocapture"]).env(ALONE, "1").env("MALLOC_ARENA_MAX", "1").output();
    let run = run.unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.contains("1 passed"), "no test has this name: {said}");
    false
}

pub fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
