//! Each pair of acts that change the manifest or the log, or read them while they grow, at the same
//! time. Every state of the database that any thread sees is a prefix of the order of commits, and
//! every image of its directory opens.
//!
//! Next to the pair one author writes. Meanwhile an image of the machine is kept, which is opened
//! afterwards as after a kill or a power loss; every copy that is made is opened and compared.
//! `pairs!` at the end lists the pairs; `WINDROW_SCHEDULES=10000` is the long run.
//!
//! Owns: the pairs. Never does: know the acts, or the states that are possible
//! (`windrow_sim::together`).

use crate::machine::{DIR, Machine, draw};
use crate::runner::{check, check_few};
use shuttle::thread;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow::{Db, Follower, Result};
use windrow_env::Env;
use windrow_env::testing::{CrashFs, Fault, FaultId, FaultKind, Ops, When};
use windrow_sim::together::{
    ACTS, Act, Excuses, Ground, Kind, Stage, judge, resume_for_good, shown, verify_backups,
};
use windrow_testkit::ledger::{Counts, Ledger};

/// Schedules of each pair in a usual run.
const SCHEDULES: u64 = 50;
/// The number of runs of each act.
const TIMES: u64 = 2;
/// Bytes of a value: a few writes fill a memtable of 64 KiB.
const VALUE_BYTES: usize = 3 << 10;

/// The device fails until this is dropped.
struct Broken(CrashFs, FaultId);

impl Drop for Broken {
    fn drop(&mut self) {
        self.0.remove_fault(self.1);
    }
}

impl Ground for Machine {
    fn draw(&self, bound: u64) -> u64 {
        draw(bound)
    }

    fn pause(&self) {
        thread::yield_now();
    }

    fn follow(&self) -> Result<Follower> {
        Ok(Machine::follow(self, DIR).0)
    }

    fn copy_path(&self, author: usize) -> String {
        format!("/scenario/copy{author}")
    }

    fn with_copy(&self, dir: &str, look: &mut dyn FnMut(&Db) -> Result<Counts>) -> Result<Counts> {
        let copy = self.with_files(self.fs.fork());
        copy.fs.clear_faults();
        let (db, _jobs) = copy.open(dir);
        db.verify().and_then(|report| report.into_result()).expect("verify a copy");
        let seen = look(&db);
        db.close().expect("close a copy");
        for name in self.fs.files(Path::new(dir)) {
            self.fs.remove_file(&Path::new(dir).join(name));
        }
        seen
    }

    fn env(&self) -> Env {
        self.options().0.components.env.expect("a machine has one")
    }

    fn backups_path(&self) -> PathBuf {
        PathBuf::from("/scenario/backups")
    }

    fn break_device(&self) -> Box<dyn Send> {
        let kind = if draw(2) == 0 { FaultKind::NoSpace } else { FaultKind::Io };
        let on = [(Ops::WRITE, ".wal"), (Ops::SYNC, ".wal"), (Ops::WRITE | Ops::SYNC, "MANIFEST")];
        let (on, path) = on[draw(3) as usize];
        let fault = Fault::new(kind, on, When::Matching(draw(4))).on_path(path);
        Box::new(Broken(self.fs.clone(), self.fs.inject(fault)))
    }
}

/// An image of the machine, and the writes that it must have.
struct Image {
    files: CrashFs,
    durable: Counts,
    acknowledged: Counts,
    attempted: Counts,
}

impl Image {
    fn take(machine: &Machine, ledger: &Ledger) -> Image {
        let (durable, acknowledged) = (ledger.durable(), ledger.acknowledged());
        let files = machine.fs.fork();
        Image { files, durable, acknowledged, attempted: ledger.attempted() }
    }

    /// Opens it as after a kill, or after a power loss.
    fn judge(self, machine: &Machine, ledger: &Ledger) {
        self.files.clear_faults();
        let (what, least) = match draw(2) {
            0 => ("after a power loss", self.durable),
            _ => ("after a kill", self.acknowledged),
        };
        match what {
            "after a kill" => self.files.kill(draw(u64::MAX)),
            _ => self.files.crash(draw(u64::MAX)),
        }
        let image = machine.with_files(self.files);
        verify_backups(&image.env(), &image.backups_path());
        judge(what, &|| Ok(image.try_open(DIR)?.0), ledger, (&least, &self.attempted));
    }
}

fn named(name: &str) -> (usize, &'static Act) {
    let found = ACTS.iter().enumerate().find(|(_, act)| act.name == name);
    found.unwrap_or_else(|| panic!("there is no act `{name}`"))
}

/// Runs two acts at the same time, next to a writer.
fn run_pair(names: [&str; 2]) {
    let acts = names.map(named);
    let is = |kind| acts.iter().any(|(_, act)| act.kind == kind);
    let excuses = Excuses { closes: is(Kind::Closes), fails: is(Kind::Breaks) };
    let machine = Machine::new().with_setting("manifest_bytes", "1KiB");
    let kept = if names.contains(&"changes") { "1MiB" } else { "0" };
    let machine = Arc::new(machine.with_setting("changes_bytes", kept));
    let (db, jobs) = machine.open(DIR);
    let ledger = Arc::new(Ledger::new(ACTS.len() + 2, VALUE_BYTES));
    let stage = Stage::new(db, ledger, machine.clone(), excuses).expect("keyspaces");
    let mut threads = Vec::new();
    for (place, (author, act)) in [named("write")].into_iter().chain(acts).enumerate() {
        // Three of the same act are three authors.
        let author = match place {
            0 => ACTS.len(),
            2 if names[0] == names[1] => ACTS.len() + 1,
            _ => author,
        };
        let stage = stage.clone();
        let times = if place == 0 { 2 * TIMES } else { TIMES };
        threads.push(thread::spawn(move || {
            (0..times).all(|_| excuses.take(act.name, (act.run)(&stage, author)));
        }));
    }
    for _ in 0..draw(200) {
        thread::yield_now();
    }
    let image = Image::take(&machine, &stage.ledger);
    jobs.fire();
    threads.into_iter().for_each(|thread| thread.join().expect("a thread of the scenario"));
    image.judge(&machine, &stage.ledger);
    end(&machine, stage);
}

fn end(machine: &Machine, stage: Stage) {
    let Excuses { closes, fails } = stage.excuses;
    machine.fs.clear_faults();
    if fails && !closes {
        resume_for_good(&stage.db);
    }
    let ledger = stage.ledger.clone();
    if !closes {
        stage.look("at the end", || shown(&stage.db, &ledger)).expect("observe");
        stage.db.verify().and_then(|report| report.into_result()).expect("verify");
        if draw(2) == 0 {
            return Image::take(machine, &ledger).judge(machine, &ledger);
        }
        stage.db.close().expect("close");
    }
    drop(stage);
    let (least, most) = (ledger.acknowledged(), ledger.attempted());
    judge("opened again", &|| Ok(machine.try_open(DIR)?.0), &ledger, (&least, &most));
}

macro_rules! pairs {
    ($($name:ident: $first:literal, $second:literal;)*) => {
        $(#[test]
        fn $name() {
            check_few(stringify!($name), SCHEDULES, || run_pair([$first, $second]));
        })*
    };
}

pairs! {
    write_and_write: "write", "write";
    transact_and_transact: "transact", "transact";
    transact_and_ingest: "transact", "ingest";
    transact_and_flush: "transact", "flush";
    transact_and_compact: "transact", "compact";
    transact_and_checkpoint: "transact", "checkpoint";
    transact_and_keyspaces: "transact", "keyspaces";
    transact_and_policy: "transact", "policy";
    transact_and_sync: "transact", "sync";
    transact_and_read: "transact", "read";
    transact_and_follow: "transact", "follow";
    transact_and_copy: "transact", "copy";
    transact_and_resume: "transact", "resume";
    transact_and_close: "transact", "close";
    condition_and_condition: "condition", "condition";
    condition_and_ingest: "condition", "ingest";
    condition_and_flush: "condition", "flush";
    condition_and_compact: "condition", "compact";
    condition_and_checkpoint: "condition", "checkpoint";
    condition_and_keyspaces: "condition", "keyspaces";
    condition_and_policy: "condition", "policy";
    condition_and_sync: "condition", "sync";
    condition_and_read: "condition", "read";
    condition_and_follow: "condition", "follow";
    condition_and_copy: "condition", "copy";
    condition_and_resume: "condition", "resume";
    condition_and_close: "condition", "close";
    merge_and_merge: "merge", "merge";
    merge_and_ingest: "merge", "ingest";
    merge_and_flush: "merge", "flush";
    merge_and_compact: "merge", "compact";
    merge_and_checkpoint: "merge", "checkpoint";
    merge_and_keyspaces: "merge", "keyspaces";
    merge_and_policy: "merge", "policy";
    merge_and_sync: "merge", "sync";
    merge_and_read: "merge", "read";
    merge_and_follow: "merge", "follow";
    merge_and_copy: "merge", "copy";
    merge_and_resume: "merge", "resume";
    merge_and_close: "merge", "close";
    pop_and_pop: "pop", "pop";
    pop_and_ingest: "pop", "ingest";
    pop_and_flush: "pop", "flush";
    pop_and_compact: "pop", "compact";
    pop_and_checkpoint: "pop", "checkpoint";
    pop_and_keyspaces: "pop", "keyspaces";
    pop_and_policy: "pop", "policy";
    pop_and_sync: "pop", "sync";
    pop_and_read: "pop", "read";
    pop_and_follow: "pop", "follow";
    pop_and_copy: "pop", "copy";
    pop_and_resume: "pop", "resume";
    pop_and_close: "pop", "close";
    ingest_and_ingest: "ingest", "ingest";
    ingest_and_flush: "ingest", "flush";
    ingest_and_compact: "ingest", "compact";
    ingest_and_checkpoint: "ingest", "checkpoint";
    ingest_and_keyspaces: "ingest", "keyspaces";
    ingest_and_policy: "ingest", "policy";
    ingest_and_sync: "ingest", "sync";
    ingest_and_read: "ingest", "read";
    ingest_and_follow: "ingest", "follow";
    ingest_and_copy: "ingest", "copy";
    ingest_and_resume: "ingest", "resume";
    ingest_and_close: "ingest", "close";
    flush_and_flush: "flush", "flush";
    flush_and_compact: "flush", "compact";
    flush_and_checkpoint: "flush", "checkpoint";
    flush_and_keyspaces: "flush", "keyspaces";
    flush_and_policy: "flush", "policy";
    flush_and_sync: "flush", "sync";
    flush_and_read: "flush", "read";
    flush_and_follow: "flush", "follow";
    flush_and_copy: "flush", "copy";
    flush_and_resume: "flush", "resume";
    flush_and_close: "flush", "close";
    compact_and_compact: "compact", "compact";
    compact_and_checkpoint: "compact", "checkpoint";
    compact_and_keyspaces: "compact", "keyspaces";
    compact_and_policy: "compact", "policy";
    compact_and_sync: "compact", "sync";
    compact_and_read: "compact", "read";
    compact_and_follow: "compact", "follow";
    compact_and_copy: "compact", "copy";
    compact_and_resume: "compact", "resume";
    compact_and_close: "compact", "close";
    checkpoint_and_checkpoint: "checkpoint", "checkpoint";
    checkpoint_and_keyspaces: "checkpoint", "keyspaces";
    checkpoint_and_policy: "checkpoint", "policy";
    checkpoint_and_sync: "checkpoint", "sync";
    checkpoint_and_read: "checkpoint", "read";
    checkpoint_and_follow: "checkpoint", "follow";
    checkpoint_and_copy: "checkpoint", "copy";
    checkpoint_and_resume: "checkpoint", "resume";
    checkpoint_and_close: "checkpoint", "close";
    keyspaces_and_keyspaces: "keyspaces", "keyspaces";
    keyspaces_and_policy: "keyspaces", "policy";
    keyspaces_and_sync: "keyspaces", "sync";
    keyspaces_and_read: "keyspaces", "read";
    keyspaces_and_follow: "keyspaces", "follow";
    keyspaces_and_copy: "keyspaces", "copy";
    keyspaces_and_resume: "keyspaces", "resume";
    keyspaces_and_close: "keyspaces", "close";
    policy_and_copy: "policy", "copy";
    policy_and_resume: "policy", "resume";
    policy_and_close: "policy", "close";
    sync_and_copy: "sync", "copy";
    sync_and_resume: "sync", "resume";
    sync_and_close: "sync", "close";
    read_and_copy: "read", "copy";
    read_and_resume: "read", "resume";
    read_and_close: "read", "close";
    follow_and_copy: "follow", "copy";
    follow_and_resume: "follow", "resume";
    follow_and_close: "follow", "close";
    copy_and_copy: "copy", "copy";
    copy_and_resume: "copy", "resume";
    copy_and_close: "copy", "close";
    write_and_backup: "write", "backup";
    transact_and_backup: "transact", "backup";
    condition_and_backup: "condition", "backup";
    merge_and_backup: "merge", "backup";
    pop_and_backup: "pop", "backup";
    ingest_and_backup: "ingest", "backup";
    flush_and_backup: "flush", "backup";
    compact_and_backup: "compact", "backup";
    checkpoint_and_backup: "checkpoint", "backup";
    keyspaces_and_backup: "keyspaces", "backup";
    policy_and_backup: "policy", "backup";
    sync_and_backup: "sync", "backup";
    read_and_backup: "read", "backup";
    follow_and_backup: "follow", "backup";
    copy_and_backup: "copy", "backup";
    backup_and_backup: "backup", "backup";
    backup_and_backup_followed: "backup", "backup_followed";
    backup_and_resume: "backup", "resume";
    backup_and_close: "backup", "close";
    transact_and_backup_followed: "transact", "backup_followed";
    ingest_and_backup_followed: "ingest", "backup_followed";
    flush_and_backup_followed: "flush", "backup_followed";
    compact_and_backup_followed: "compact", "backup_followed";
    checkpoint_and_backup_followed: "checkpoint", "backup_followed";
    keyspaces_and_backup_followed: "keyspaces", "backup_followed";
    copy_and_backup_followed: "copy", "backup_followed";
    backup_followed_and_backup_followed: "backup_followed", "backup_followed";
    backup_followed_and_resume: "backup_followed", "resume";
    backup_followed_and_close: "backup_followed", "close";
    write_and_changes: "write", "changes";
    transact_and_changes: "transact", "changes";
    ingest_and_changes: "ingest", "changes";
    flush_and_changes: "flush", "changes";
    keyspaces_and_changes: "keyspaces", "changes";
    checkpoint_and_changes: "checkpoint", "changes";
    changes_and_changes: "changes", "changes";
    changes_and_resume: "changes", "resume";
    changes_and_close: "changes", "close";
    resume_and_resume: "resume", "resume";
    resume_and_close: "resume", "close";
    close_and_close: "close", "close";
}

/// Followers next to flushes and merges, under as many schedules as a scenario of few threads.
#[test]
fn a_follower_sees_prefixes() {
    check("a_follower_sees_prefixes", || {
        run_pair([["flush", "compact"][draw(2) as usize], "follow"]);
    });
}
