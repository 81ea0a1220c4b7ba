//! The memory part of `torture limits`: a load with ten thousand iterators in a control group that
//! kills a process with more memory than the budget and a tenth.
//!
//! Owns: the control group (version 1 or 2, by the system), removed when dropped. Never does: count
//! the page cache against the database: the kernel takes it back before it kills.

use super::child::Worker;
use super::history::History;
use super::plan::Plan;
use super::setup::Setup;
use super::worker::Task;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `memory_bytes` of the database.
const BUDGET_BYTES: u64 = 256 << 20;
/// Iterators that stay open.
const ITERATORS: usize = 10_000;

/// The type that `statfs` returns for a file system in memory.
const TMPFS: u64 = 0x0102_1994;

/// A memory control group.
struct Group {
    dir: PathBuf,
    limit: &'static str,
    peak: &'static str,
}

impl Group {
    /// Makes a group; `None` without the right or the controller.
    fn new() -> Option<Group> {
        let name = format!("windrow-torture-{}", std::process::id());
        let v1 = Path::new("/sys/fs/cgroup/memory");
        if v1.join("memory.limit_in_bytes").exists() {
            let dir = v1.join(name);
            std::fs::create_dir(&dir).ok()?;
            let (limit, peak) = ("memory.limit_in_bytes", "memory.max_usage_in_bytes");
            return Some(Group { dir, limit, peak });
        }
        let v2 = Path::new("/sys/fs/cgroup");
        let controllers = std::fs::read_to_string(v2.join("cgroup.subtree_control")).ok()?;
        if !controllers.split_whitespace().any(|c| c == "memory") {
            return None;
        }
        let dir = v2.join(name);
        std::fs::create_dir(&dir).ok()?;
        Some(Group { dir, limit: "memory.max", peak: "memory.peak" })
    }

    fn write(&self, file: &str, value: u64) -> Result<(), String> {
        let path = self.dir.join(file);
        std::fs::write(&path, value.to_string()).map_err(|e| format!("{}: {e}", path.display()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The group is busy until its last process is reaped.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.dir).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Runs the load for `plan.seconds`.
///
/// # Errors
/// The kill, or another failure, of the worker.
pub(super) fn run(plan: &Plan, history: &mut History) -> Result<String, String> {
    if plan.seconds == 0 {
        return Ok("SKIPPED: --seconds 0".into());
    }
    let parent = history.dir.parent().unwrap_or(&history.dir);
    if rustix::fs::statfs(parent).is_ok_and(|stat| stat.f_type as u64 == TMPFS) {
        return Ok("SKIPPED: files in memory count as memory, give --dir on a device".into());
    }
    let Some(group) = Group::new() else {
        return Ok("SKIPPED: no memory control group that may be used".into());
    };
    let limit = BUDGET_BYTES + BUDGET_BYTES / 10;
    group.write(group.limit, limit)?;
    history.expected.shape.slots = 200_000;
    let mut setup = Setup::draw(&mut history.rng, &plan.preset);
    // The sizes are the defaults'; the preset and the compression stay as drawn.
    setup.settings.retain(|s| s.starts_with("preset") || s.starts_with("compression"));
    setup.settings.push(format!("memory_bytes={BUDGET_BYTES}"));
    let task = Task { iterators: ITERATORS, pause_us: 200, ..history.task(&setup) };
    let (mut worker, ledger) = Worker::start(&task, None)?;
    group.write("cgroup.procs", u64::from(worker.id()))?;
    let ended = worker.run_for(Duration::from_secs(plan.seconds))?;
    let resident = high_water(worker.id());
    let end = worker.kill()?;
    if ended {
        return Err(format!(
            "with {ITERATORS} iterators and {limit} bytes for a memory_bytes of {BUDGET_BYTES} the \
             process ended: {end:?}, under {:?}",
            setup.settings
        ));
    }
    let peak = std::fs::read_to_string(group.dir.join(group.peak)).unwrap_or_default();
    let told = history.acks(&ledger)?;
    let acknowledged = history.checked(&setup, false, Some(&told))?;
    Ok(format!(
        "{ITERATORS} iterators and 3 writers for {} s within {limit} bytes (memory_bytes \
         {BUDGET_BYTES}): resident at most {resident}, the group with its page cache {}; lost 0 \
         of {acknowledged} acknowledged batches",
        plan.seconds,
        peak.trim()
    ))
}

/// Returns the most memory that a process has used, as its status page prints it.
fn high_water(id: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap_or("unknown").trim().to_owned()
}
