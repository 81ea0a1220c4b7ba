//! `torture limits`: few descriptors, little memory, a second process, and a
//! read-only open that must leave no trace.
//!
//! Owns: the limits, each in a part of its own. Never does: judge the contents of the database.

use super::bench::Bench;
use super::child::End;
use super::judge::{Survives, judge};
use super::plan::{Failure, Outcome, Plan};
use super::setup::Setup;
use super::{memory, stop, trace};
use rustix::mount::{MountFlags, UnmountFlags, mount_bind, mount_remount, unmount};
use std::path::Path;
use std::time::Duration;
use windrow::{Db, ErrorKind};

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
        let mut bench = Bench::new(&dir, plan.seed)
            .map_err(|e| plan.failure(plan.seed, format!("{}: {e}", dir.display())))?;
        match part(plan, &mut bench) {
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

type Part = fn(&Plan, &mut Bench) -> Result<String, String>;

/// With too few descriptors a call fails, nothing panics, and nothing is lost; with more it works
/// again.
fn few_descriptors(plan: &Plan, bench: &mut Bench) -> Result<String, String> {
    let (mut done, mut refused, mut acknowledged) = (0, 0, 0);
    for round in 0..plan.rounds {
        let mut setup = Setup::draw(&mut bench.rng, &plan.preset);
        // Many small tables.
        setup.settings.extend(["memtable_bytes=64KiB".into(), "level_base_bytes=64KiB".into()]);
        let count = DESCRIPTORS[round as usize % DESCRIPTORS.len()];
        let more = ["--descriptors", &count.to_string(), "--batches", "300"];
        let (worker, ledger) = bench.start(&setup, more.map(String::from).to_vec())?;
        match worker.wait(WORK_MOST)? {
            End::Done => done += 1,
            End::Refused(said) if said.contains("Too many open files") => refused += 1,
            end => return Err(format!("with {count} descriptors it ended: {end:?}, {setup:?}")),
        }
        let told = bench.told(&ledger)?;
        let dir = bench.dir.clone();
        // Even the open may have been refused.
        if dir.join("CURRENT").exists() {
            acknowledged += bench.judged(&dir, &setup, false, Some(&told))?;
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
fn a_second_process(plan: &Plan, bench: &mut Bench) -> Result<String, String> {
    let (mut refused, mut acknowledged) = (0, 0);
    for _ in 0..plan.rounds {
        let setup = Setup::draw(&mut bench.rng, &plan.preset);
        let (mut worker, ledger) = bench.start(&setup, vec!["--pause-us".into(), "1000".into()])?;
        while !ledger.is_opened() {
            if worker.run_for(Duration::from_millis(1))? {
                return Err(format!("the holder ended by itself: {:?}", worker.kill()?));
            }
        }
        for read_only in [false, true] {
            let mut options = setup.options()?;
            options.read_only = read_only;
            match Db::open_with(&bench.dir, options) {
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
        let told = bench.told(&ledger)?;
        let dir = bench.dir.clone();
        // At once: a dead owner blocks no process.
        let db = Db::open_with(&dir, setup.options()?).map_err(|e| format!("afterwards: {e}"))?;
        let tally = judge(&db, &mut bench.expected, Some(&told), Survives::Everything)?;
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
fn read_only(plan: &Plan, bench: &mut Bench) -> Result<String, String> {
    let root = rustix::process::geteuid().is_root();
    let point = bench.dir.with_file_name("read-only");
    std::fs::create_dir_all(&point).map_err(|e| e.to_string())?;
    let mut done = 0;
    for _ in 0..plan.rounds {
        let setup = Setup::draw(&mut bench.rng, &plan.preset);
        let told = bench.leave_logs(&setup)?;
        let dir = bench.dir.clone();
        let before = trace::of(&dir)?;
        bench.judged(&dir, &setup, true, Some(&told))?;
        if root {
            bind_read_only(&dir, &point)?;
            let judged = bench.judged(&point, &setup, true, None);
            unmount(&point, UnmountFlags::DETACH).map_err(|e| e.to_string())?;
            judged?;
        }
        let after = trace::of(&dir)?;
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
