//! The cost of a process, from Linux.

use std::process::{Child, ExitStatus};
use std::time::Duration;

/// The time and memory of a process. Zero on systems without these figures.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Wall time from the start of the wait to the end.
    pub wall: Duration,
    /// Processor time in clock ticks of 10 ms, in the program and in the system for it.
    pub cpu_ticks: u64,
    /// The most memory that was resident, in KiB.
    pub peak_kib: u64,
}

/// Waits for a process to end, and reads its cost.
pub fn cost_of(mut child: Child) -> (ExitStatus, Cost) {
    let start = std::time::Instant::now();
    let (id, mut cost) = (child.id(), Cost::default());
    loop {
        // Both only grow, and a process that has ended keeps its times until it is waited for.
        cost.peak_kib = cost.peak_kib.max(peak_kib(id));
        let (ticks, has_ended) = ticks(id);
        cost.cpu_ticks = cost.cpu_ticks.max(ticks);
        if has_ended {
            break;
        }
        std::thread::sleep(Duration::from_micros(300));
    }
    let status = child.wait().expect("a status");
    (status, Cost { wall: start.elapsed(), ..cost })
}

/// The high-water mark of a process's memory.
fn peak_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// The processor time of a process, and whether it has ended.
fn ticks(process: u32) -> (u64, bool) {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in parentheses, may contain any character.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    (number(11) + number(12), fields.first().is_none_or(|state| *state == "Z"))
}
