//! What calls cost besides time, seen from outside: processor time of each process, system calls, allocations,
//! messages between nodes. What the machine's tools cannot tell is left out of the report.

use std::{
    fs,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result};
use serde::Serialize;

/// Linux tells processor times to programs in hundredths of a second, whatever its own clock does (`USER_HZ`, proc(5)).
const A_TICK: Duration = Duration::from_millis(10);

/// What a process has spent on processors, threads that have ended included.
pub fn processor_time_of(process: u32) -> Result<Duration> {
    let stat =
        fs::read_to_string(format!("/proc/{process}/stat")).context("processor time is read from /proc")?;
    // The name stands in parentheses and may hold blanks; `utime` and `stime` are the 14th and 15th field, proc(5).
    let (_, fields) = stat.rsplit_once(") ").context("no name in stat")?;
    let ticks = fields.split(' ').skip(11).take(2).map(str::parse::<u32>).sum::<Result<u32, _>>()?;
    Ok(A_TICK * ticks)
}

/// Events that the kernel counts in a process, or in some together.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Events {
    pub syscalls: Option<u64>,
    pub context_switches: Option<u64>,
    pub allocations: Option<u64>,
}

/// A count under way, by `perf stat`.
pub struct Counting(Child);

/// A point in the C library's `malloc`, `calloc` and `realloc` at which `perf` counts; gone when this is dropped. What
/// a program allocates in another way is not seen.
pub struct AllocationPoints(());

const POINTS: &str = "farthing_bench";
const ALLOCATES: [&str; 4] = ["malloc", "calloc", "realloc", "posix_memalign"];

impl AllocationPoints {
    /// None where there is no perf, or this user may not place such points.
    pub fn place() -> Option<Self> {
        let libraries = fs::read_to_string("/proc/self/maps").ok()?;
        let libc = libraries.lines().filter_map(|line| line.split_whitespace().last());
        let libc = libc
            .into_iter()
            .find(|path| path.rsplit('/').next().is_some_and(|name| name.starts_with("libc.so")))?;
        let points = Self(());
        let mut command = quiet("perf");
        command.args(["probe", "--exec", libc]);
        for function in ALLOCATES {
            command.args(["--add", &format!("{POINTS}:{function}={function}")]);
        }
        command.status().is_ok_and(|status| status.success()).then_some(points)
    }
}

impl Drop for AllocationPoints {
    fn drop(&mut self) {
        // Where none were placed there is nothing to remove.
        let _ = quiet("perf").args(["probe", "--del", &format!("{POINTS}:*")]).status();
    }
}

impl Counting {
    /// None where there is no perf, or this user may not count.
    pub fn begin(processes: &[u32], allocations: Option<&AllocationPoints>) -> Option<Self> {
        let processes: Vec<String> = processes.iter().map(u32::to_string).collect();
        let mut events = "raw_syscalls:sys_enter,context-switches".to_owned();
        if allocations.is_some() {
            ALLOCATES.iter().for_each(|function| events += &format!(",{POINTS}:{function}"));
        }
        let child = Command::new("perf")
            .args(["stat", "--field-separator", ";", "--event", &events, "--pid", &processes.join(",")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .env("LC_ALL", "C")
            .spawn()
            .ok()?;
        Some(Self(child))
    }

    /// What was counted since; nothing where the kernel lets nobody count.
    pub fn end(self) -> Result<Events> {
        interrupt(&self.0)?;
        let output = self.0.wait_with_output()?;
        let told = String::from_utf8_lossy(&output.stderr);
        let count = |event: &str| {
            let mut rows = told.lines().map(|line| line.split(';'));
            let mut row = rows.find(|row| row.clone().nth(2).is_some_and(|name| name == event))?;
            row.next()?.parse::<u64>().ok()
        };
        let allocated = ALLOCATES.map(|function| count(&format!("{POINTS}:{function}")));
        Ok(Events {
            syscalls: count("raw_syscalls:sys_enter"),
            context_switches: count("context-switches"),
            allocations: allocated.into_iter().sum(),
        })
    }
}

/// Asks perf to end and say what it has.
pub fn interrupt(child: &Child) -> Result<()> {
    let asked = quiet("kill").args(["-INT", &child.id().to_string()]).status()?;
    anyhow::ensure!(asked.success(), "perf has ended by itself");
    Ok(())
}

/// Segments with data that this machine's ends of TCP connections with `port` have sent: over loopback each is one write
/// of noise, and so one message or more of them that went together. None where there is no `ss`.
pub fn messages_of(port: u16) -> Option<u64> {
    let (from, to) = (format!("sport = :{port}"), format!("dport = :{port}"));
    let output = Command::new("ss").args(["-tinH", "( ", &from, " or ", &to, " )"]).output().ok()?;
    let told = String::from_utf8_lossy(&output.stdout);
    let sent = told.split_whitespace().filter_map(|word| word.strip_prefix("data_segs_out:"));
    Some(sent.filter_map(|count| count.parse::<u64>().ok()).sum())
}

fn quiet(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}
