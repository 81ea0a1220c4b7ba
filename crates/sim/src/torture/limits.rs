//! `torture limits`: few descriptors, little memory, a second process, and a
//! read-only open that must leave no trace.
//!
//! Owns: the limits, each in a part of its own. Never does: judge the contents of the database.

use super::child::{End, Worker};
use super::history::History;
use super::judge::{Survives, Told, judge};
use super::ledger::Ledger;
use super::plan::{Failure, Outcome, Plan};
use super::setup::Setup;
use super::worker::Task;
use super::workload::Shape;
use super::{memory, stop, trace};
use rustix::mount::{MountFlags, UnmountFlags, mount_bind, mount_remount, unmount};
use std::path::Path;
use std::time::Duration;
use windrow::{Db, ErrorKind};
use windrow_env::testing::Rng;

/// Descriptors that a process gets, standard streams and ledger included.
const DESCRIPTORS: [u64; 8] = [10, 12, 16, 20, 24, 32, 48, 64];
/// The longest time of a worker with a limit.
const WORK_MOST: Duration = Duration::from_secs(3600);

/// Runs every part.
///
/// # Errors
/// The rule that was broken.
pub fn run(plan: &Plan) -> Result<Outcome, Failure> {
    let scratch = plan.scratch(std::env::temp_dir())?;
    let parts: [(&str, Part); 4] = [
        ("descriptors", few_descriptors),
        ("a second process", a_second_process),
        ("read-only", read_only),
        ("memory", memory::run),
    ];
    let mut lines = Vec::new();
    for (name, part) in parts {
        let dir = scratch.path().join(name.replace(' ', "-"));
        std::fs::create_dir_all(&dir)
            .map_err(|e| plan.failure(plan.seed, format!("{}: {e}", dir.display())))?;
        let shape = Shape {
            seed: plan.seed,
            writers: 3,
            slots: 2_000,
            synced_percent: 2,
            deleted_percent: 10,
        };
        let mut history = History::new(Rng::new(plan.seed), shape, dir.join("db"), &dir);
        match part(plan, &mut history) {
            Ok(figures) => lines.push(format!("{name}: {figures}")),
            Err(why) => {
                let _ = scratch.keep();
                let why = format!("{name}: {why}");
                return Err(Failure { why, seed: plan.seed, kept: Some(dir) });
            }
        }
        eprintln!("{}", lines[lines.len() - 1]);
        if stop::requested() {
            break;
        }
    }
    Ok(Outcome::Passed(format!("all passed ({})", lines.len())))
}

type Part = fn(&Plan, &mut History) -> Result<String, String>;

/// Lets a worker write for a while and kills it: logs are left behind.
fn leave_logs(history: &mut History, setup: &Setup) -> Result<Told, String> {
    let (mut worker, ledger) = opened(&Task { pause_us: 500, ..history.task(setup) })?;
    worker.run_for(Duration::from_millis(5 + history.rng.below(40)))?;
    match worker.kill()? {
        End::Killed => history.acks(&ledger),
        end => Err(format!("the worker ended by itself: {end:?}")),
    }
}

/// Starts a worker, and waits until it has the database open.
fn opened(task: &Task) -> Result<(Worker, Ledger), String> {
    let (mut worker, ledger) = Worker::start(task, None)?;
    while !ledger.is_opened() {
        if worker.run_for(Duration::from_millis(1))? {
            return Err(format!("the holder ended by itself: {:?}", worker.kill()?));
        }
    }
    Ok((worker, ledger))
}

/// With too few descriptors a call fails, nothing panics, and nothing is lost; with more it works
/// again.
fn few_descriptors(plan: &Plan, history: &mut History) -> Result<String, String> {
    let (mut done, mut refused, mut acknowledged) = (0, 0, 0);
    for round in 0..plan.rounds {
        let mut setup = Setup::draw(&mut history.rng, &plan.preset);
        // Many small tables.
        setup.settings.extend(["memtable_bytes=64KiB".into(), "level_base_bytes=64KiB".into()]);
        let count = DESCRIPTORS[round as usize % DESCRIPTORS.len()];
        let task = Task { descriptors: count, batches: 300, ..history.task(&setup) };
        let (worker, ledger) = Worker::start(&task, None)?;
        match worker.wait(WORK_MOST)? {
            End::Done => done += 1,
            End::Refused(said) if said.contains("Too many open files") => refused += 1,
            end => return Err(format!("with {count} descriptors it ended: {end:?}, {setup:?}")),
        }
        let told = history.acks(&ledger)?;
        // Even the open may have been refused.
        if history.dir.join("CURRENT").exists() {
            acknowledged += history.checked(&setup, false, Some(&told))?;
        }
        if stop::requested() {
            break;
        }
    }
    if refused == 0 && plan.rounds >= DESCRIPTORS.len() as u64 {
        return Err("no process ever ran out of descriptors: this tests nothing".into());
    }
    Ok(format!(
        "{refused} processes refused cleanly and {done} done with {DESCRIPTORS:?} descriptors; \
         lost 0 of {acknowledged} acknowledged batches"
    ))
}

/// While one process has the database open, another one is refused, for reading too; once the owner
/// is dead no process is.
fn a_second_process(plan: &Plan, history: &mut History) -> Result<String, String> {
    let (mut refused, mut acknowledged) = (0, 0);
    for _ in 0..plan.rounds {
        let setup = Setup::draw(&mut history.rng, &plan.preset);
        let (worker, ledger) = opened(&Task { pause_us: 1_000, ..history.task(&setup) })?;
        for read_only in [false, true] {
            let mut options = setup.options()?;
            options.read_only = read_only;
            match Db::open_with(&history.dir, options) {
                Err(e) if e.kind() == ErrorKind::Busy => {
                    let pid = worker.id().to_string();
                    if !e.to_string().contains(&pid) {
                        return Err(format!("`{e}` does not name the holder, {pid}"));
                    }
                    refused += 1;
                }
                Err(error) => return Err(format!("not Busy: {error}")),
                Ok(_) => return Err("a second process opened it".into()),
            }
        }
        worker.kill()?;
        let told = history.acks(&ledger)?;
        // At once: a dead owner blocks no process.
        let db = Db::open_with(&history.dir, setup.options()?);
        let db = db.map_err(|e| format!("afterwards: {e}"))?;
        let tally = judge(&db, &mut history.expected, Some(&told), Survives::Everything)?;
        acknowledged += tally.acknowledged;
        if stop::requested() {
            break;
        }
    }
    Ok(format!(
        "refused {refused} times while it was held, never after its holder was killed; lost 0 of \
         {acknowledged} acknowledged batches"
    ))
}

/// A read-only open changes nothing: not a file, not a name, not a time; and works on a file system
/// without write access.
fn read_only(plan: &Plan, history: &mut History) -> Result<String, String> {
    let root = rustix::process::geteuid().is_root();
    let point = history.dir.with_file_name("read-only");
    std::fs::create_dir_all(&point).map_err(|e| e.to_string())?;
    let mut done = 0;
    for _ in 0..plan.rounds {
        let setup = Setup::draw(&mut history.rng, &plan.preset);
        let told = leave_logs(history, &setup)?;
        let dir = history.dir.clone();
        let before = trace::of(&dir, true)?;
        history.checked(&setup, true, Some(&told))?;
        if root {
            bind_read_only(&dir, &point)?;
            history.dir.clone_from(&point);
            let on_mount = history.checked(&setup, true, None);
            history.dir.clone_from(&dir);
            unmount(&point, UnmountFlags::DETACH).map_err(|e| e.to_string())?;
            on_mount?;
        }
        let after = trace::of(&dir, true)?;
        if before != after {
            return Err(format!("a read-only open left traces: {}", trace::diff(&before, &after)));
        }
        done += 1;
        if stop::requested() {
            break;
        }
    }
    let mount = if root { ", and on a read-only mount" } else { "; no root, so no mount" };
    Ok(format!("{done} unclean directories read without a trace{mount}"))
}

fn bind_read_only(dir: &Path, point: &Path) -> Result<(), String> {
    mount_bind(dir, point).map_err(|e| format!("bind {}: {e}", point.display()))?;
    mount_remount(point, MountFlags::BIND | MountFlags::RDONLY, "").map_err(|e| {
        let _ = unmount(point, UnmountFlags::DETACH);
        format!("remount {}: {e}", point.display())
    })
}
