//! Each pair of things that change the manifest or the log, or read them while they grow, at the
//! same time: whatever is seen of the database, by whom and when, is a prefix of what was
//! committed, and every image of its directory opens.
//!
//! Next to the pair one author writes. On the way an image of the machine is kept, which is
//! opened afterwards as after a kill or a power loss; every copy that is made is opened and
//! compared. `pairs!` at the end lists the pairs; `WINDROW_SCHEDULES=10000` is the long run.
//!
//! Owns: what is done. Never does: know what may be seen (`ledger.rs`).

use crate::ledger::{AUTHORS, Counts, Ledger, observe, within};
use crate::machine::{self, DIR, Machine, draw};
use crate::runner::check_few;
use shuttle::thread;
use std::sync::Arc;
use windrow::{Batch, Db, Error, ErrorKind, Keyspace, Result, WriteSync};
use windrow_env::testing::{CrashFs, Fault, FaultKind, Ops, When};

/// Schedules of each pair in a usual run.
const SCHEDULES: u64 = 50;
/// How often each thing is done.
const TIMES: u64 = 2;

/// Something that is done while another thing is.
type Act = fn(&Stage, usize) -> Result<()>;

/// Where it is done.
#[derive(Clone)]
struct Stage {
    machine: Arc<Machine>,
    db: Db,
    spaces: [Keyspace; 2],
    ledger: Arc<Ledger>,
}

impl Stage {
    /// Runs `look`, and asserts that what it saw has all that was acknowledged before.
    fn look(&self, what: &str, look: impl FnOnce() -> Result<Counts>) -> Result<()> {
        let before = self.ledger.acknowledged();
        let seen = look()?;
        within(what, before, seen, self.ledger.attempted());
        Ok(())
    }
}

/// What a database shows, of which only these keyspaces count.
fn shown(db: &Db) -> Result<Counts> {
    let names = ["default", "other"];
    let spaces = names.map(|name| db.open_keyspace(name));
    let spaces = spaces.into_iter().collect::<Result<Vec<_>>>()?;
    let spaces: Vec<_> =
        spaces.into_iter().map(|space| space.expect("it was made first")).collect();
    observe(&spaces, &db.snapshot())
}

/// A batch over both keyspaces, in which a range may be deleted first.
fn write(stage: &Stage, author: usize) -> Result<()> {
    let attempt = stage.ledger.begin(author);
    let mut batch = Batch::new();
    let deletes = draw(4) == 0;
    for space in &stage.spaces {
        let (from, to) = attempt.range();
        if deletes {
            batch.delete_range(space, from, to);
        }
        attempt.pairs().for_each(|(key, value)| batch.put(space, key, value));
    }
    let sync = if draw(3) == 0 { WriteSync::Yes } else { WriteSync::No };
    stage.db.write(batch, sync)?;
    stage.ledger.end(&attempt, sync.is_yes());
    Ok(())
}

/// The same in a transaction that has read what it writes over.
fn transact(stage: &Stage, author: usize) -> Result<()> {
    let attempt = stage.ledger.begin(author);
    stage.db.transact(|tx| {
        for space in &stage.spaces {
            for (key, value) in attempt.pairs() {
                attempt.assert_comes_after(tx.get(space, &key)?.as_deref());
                tx.put(space, key, value)?;
            }
        }
        Ok(())
    })?;
    stage.ledger.end(&attempt, false);
    Ok(())
}

fn ingest(stage: &Stage, author: usize) -> Result<()> {
    // Of one keyspace always: the other one's keys would be older.
    let attempt = stage.ledger.begin(author);
    let mut ingest = stage.spaces[author % 2].ingest()?;
    attempt.pairs().try_for_each(|(key, value)| ingest.put(key, value))?;
    ingest.finish()?;
    stage.ledger.end(&attempt, true);
    Ok(())
}

fn flush(stage: &Stage, _: usize) -> Result<()> {
    match draw(3) {
        0 => stage.db.flush(),
        n => stage.spaces[n as usize - 1].flush(),
    }
}

fn compact(stage: &Stage, _: usize) -> Result<()> {
    match draw(2) {
        0 => stage.db.compact(),
        _ => stage.spaces[draw(2) as usize].compact_range(None, None),
    }
}

fn checkpoint(stage: &Stage, author: usize) -> Result<()> {
    let dir = format!("/scenario/copy{author}");
    stage.look("a copy", || {
        stage.db.checkpoint(&dir)?;
        open_copy(stage, &dir)
    })
}

/// What a copy shows, which is removed afterwards.
fn open_copy(stage: &Stage, dir: &str) -> Result<Counts> {
    let copy = stage.machine.with_files(stage.machine.fs.fork());
    copy.fs.clear_faults();
    let (db, _jobs) = copy.open(dir);
    db.verify().and_then(|report| report.into_result()).expect("verify a copy");
    let seen = shown(&db);
    db.close().expect("close a copy");
    let files = &stage.machine.fs;
    for name in files.files(std::path::Path::new(dir)) {
        files.remove_file(&std::path::Path::new(dir).join(name));
    }
    seen
}

/// A keyspace that comes and goes, with something in it.
fn keyspaces(stage: &Stage, author: usize) -> Result<()> {
    let name = format!("of author {author}");
    let space = stage.db.keyspace(&name)?;
    space.put("key", "value")?;
    if draw(2) == 0 {
        space.flush()?;
    }
    assert_eq!(space.get("key")?.as_deref(), Some(&b"value"[..]));
    stage.db.drop_keyspace(&name)
}

fn policy(stage: &Stage, _: usize) -> Result<()> {
    let policies = ["leveled", "windrow", "l2sm", "vlsm filters=none"];
    stage.db.set_policy(policies[draw(policies.len() as u64) as usize])
}

fn sync(stage: &Stage, _: usize) -> Result<()> {
    stage.db.sync()
}

/// Snapshots, scans and statistics.
fn read(stage: &Stage, _: usize) -> Result<()> {
    stage.look("a read", || observe(&stage.spaces, &stage.db.snapshot()))?;
    let stats = stage.db.stats();
    assert!(stats.memory.memtables_bytes < u64::MAX / 2, "{:?}", stats.memory);
    Ok(())
}

/// Another process reads, twice.
fn follow(stage: &Stage, _: usize) -> Result<()> {
    let (follower, _jobs) = stage.machine.follow(DIR);
    for _ in 0..2 {
        stage.look("a follower", || {
            follower.refresh().expect("refresh");
            shown(&follower.db())
        })?;
    }
    Ok(())
}

/// Another process copies what it read.
fn copy(stage: &Stage, author: usize) -> Result<()> {
    let (follower, _jobs) = stage.machine.follow(DIR);
    let dir = format!("/scenario/copy{author}");
    for _ in 0..2 {
        stage.look("a follower's copy", || {
            follower.refresh().expect("refresh");
            let shown = shown(&follower.db())?;
            follower.checkpoint(&dir)?;
            let copied = open_copy(stage, &dir)?;
            assert_eq!(copied, shown, "a copy is not what was shown");
            Ok(copied)
        })?;
    }
    Ok(())
}

/// The device fails once, and writing is turned on again.
fn resume(stage: &Stage, _: usize) -> Result<()> {
    let kind = if draw(2) == 0 { FaultKind::NoSpace } else { FaultKind::Io };
    let on = [(Ops::WRITE, ".wal"), (Ops::SYNC, ".wal"), (Ops::WRITE | Ops::SYNC, "MANIFEST")];
    let (on, path) = on[draw(3) as usize];
    let fault = Fault::new(kind, on, When::Matching(draw(4))).on_path(path);
    let fault = stage.machine.fs.inject(fault);
    for _ in 0..draw(30) {
        thread::yield_now();
    }
    let resumed = stage.db.resume();
    stage.machine.fs.remove_fault(fault);
    resumed
}

fn close(stage: &Stage, _: usize) -> Result<()> {
    for _ in 0..draw(60) {
        thread::yield_now();
    }
    stage.db.close()
}

/// What may come of something while the database is closed, or the device fails.
struct Excuses {
    closes: bool,
    fails: bool,
}

impl Excuses {
    fn of(acts: [Act; 2]) -> Excuses {
        let is = |act: Act| acts.iter().any(|of| std::ptr::fn_addr_eq(*of, act));
        Excuses { closes: is(close), fails: is(resume) }
    }

    /// Whether to go on.
    fn take(&self, result: Result<()>) -> bool {
        let Err(error) = result else { return true };
        let closed = self.closes && error.kind() == ErrorKind::Closed;
        assert!(closed || self.fails && is_of_the_device(&error), "{error}");
        !closed
    }
}

fn is_of_the_device(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::Io | ErrorKind::ReadOnly)
}

/// An image of the machine, and what was promised of it.
struct Image {
    files: CrashFs,
    durable: Counts,
    acknowledged: Counts,
    attempted: Counts,
}

impl Image {
    fn take(stage: &Stage) -> Image {
        let (durable, acknowledged) = (stage.ledger.durable(), stage.ledger.acknowledged());
        let files = stage.machine.fs.fork();
        Image { files, durable, acknowledged, attempted: stage.ledger.attempted() }
    }

    /// Opens it as after a kill, or after a power loss.
    fn open(self, stage: &Stage) {
        let loses_power = draw(2) == 0;
        let least = if loses_power { self.durable } else { self.acknowledged };
        self.files.clear_faults();
        match loses_power {
            true => self.files.crash(draw(u64::MAX)),
            false => self.files.kill(draw(u64::MAX)),
        }
        let (db, _jobs) = stage.machine.with_files(self.files).open(DIR);
        let what = if loses_power { "after power loss" } else { "after a kill" };
        within(what, least, shown(&db).expect("observe"), self.attempted);
        db.verify().and_then(|report| report.into_result()).expect("verify");
        db.close().expect("close");
    }
}

/// The device is well: whatever of before is still to fail, writing is on in the end.
fn resume_for_good(db: &Db) {
    for _ in 0..16 {
        db.resume().expect("resume");
        if db.wait_idle().is_ok() {
            return;
        }
    }
    panic!("writing is turned off again and again: {:?}", db.write_error());
}

/// Two things at the same time.
fn run_pair(acts: [Act; 2]) {
    let excuses = Arc::new(Excuses::of(acts));
    let machine = Arc::new(Machine::new().with_setting("manifest_bytes", "1KiB"));
    let (db, jobs) = machine.open(DIR);
    let spaces = machine::spaces(&db);
    let stage = Stage { machine, db, spaces, ledger: Arc::default() };
    let mut threads = Vec::new();
    for (author, act) in [write as Act].into_iter().chain(acts).enumerate() {
        assert!(author < AUTHORS);
        let (stage, excuses) = (stage.clone(), excuses.clone());
        let times = if author == 0 { 2 * TIMES } else { TIMES };
        threads.push(thread::spawn(move || {
            (0..times).all(|_| excuses.take(act(&stage, author)));
        }));
    }
    for _ in 0..draw(200) {
        thread::yield_now();
    }
    let image = Image::take(&stage);
    jobs.fire();
    threads.into_iter().for_each(|thread| thread.join().expect("a thread of the scenario"));
    image.open(&stage);
    end(stage, &excuses);
}

fn end(stage: Stage, excuses: &Excuses) {
    if excuses.fails {
        stage.machine.fs.clear_faults();
        if !excuses.closes {
            resume_for_good(&stage.db);
        }
    }
    if !excuses.closes {
        stage.look("at the end", || shown(&stage.db)).expect("observe");
        stage.db.verify().and_then(|report| report.into_result()).expect("verify");
        if draw(2) == 0 {
            return Image::take(&stage).open(&stage);
        }
        stage.db.close().expect("close");
    }
    let Stage { machine, db, spaces, ledger } = stage;
    drop((db, spaces));
    let (db, _jobs) = machine.open(DIR);
    let seen = shown(&db).expect("observe");
    within("opened again", ledger.acknowledged(), seen, ledger.attempted());
    db.close().expect("close");
}

macro_rules! pairs {
    ($($name:ident: $first:ident, $second:ident;)*) => {
        $(#[test]
        fn $name() {
            check_few(stringify!($name), SCHEDULES, || run_pair([$first, $second]));
        })*
    };
}

pairs! {
    write_and_write: write, write;
    transact_and_transact: transact, transact;
    transact_and_ingest: transact, ingest;
    transact_and_flush: transact, flush;
    transact_and_compact: transact, compact;
    transact_and_checkpoint: transact, checkpoint;
    transact_and_keyspaces: transact, keyspaces;
    transact_and_policy: transact, policy;
    transact_and_sync: transact, sync;
    transact_and_read: transact, read;
    transact_and_follow: transact, follow;
    transact_and_copy: transact, copy;
    transact_and_resume: transact, resume;
    transact_and_close: transact, close;
    ingest_and_ingest: ingest, ingest;
    ingest_and_flush: ingest, flush;
    ingest_and_compact: ingest, compact;
    ingest_and_checkpoint: ingest, checkpoint;
    ingest_and_keyspaces: ingest, keyspaces;
    ingest_and_policy: ingest, policy;
    ingest_and_sync: ingest, sync;
    ingest_and_read: ingest, read;
    ingest_and_follow: ingest, follow;
    ingest_and_copy: ingest, copy;
    ingest_and_resume: ingest, resume;
    ingest_and_close: ingest, close;
    flush_and_flush: flush, flush;
    flush_and_compact: flush, compact;
    flush_and_checkpoint: flush, checkpoint;
    flush_and_keyspaces: flush, keyspaces;
    flush_and_policy: flush, policy;
    flush_and_sync: flush, sync;
    flush_and_read: flush, read;
    flush_and_follow: flush, follow;
    flush_and_copy: flush, copy;
    flush_and_resume: flush, resume;
    flush_and_close: flush, close;
    compact_and_compact: compact, compact;
    compact_and_checkpoint: compact, checkpoint;
    compact_and_keyspaces: compact, keyspaces;
    compact_and_policy: compact, policy;
    compact_and_sync: compact, sync;
    compact_and_read: compact, read;
    compact_and_follow: compact, follow;
    compact_and_copy: compact, copy;
    compact_and_resume: compact, resume;
    compact_and_close: compact, close;
    checkpoint_and_checkpoint: checkpoint, checkpoint;
    checkpoint_and_keyspaces: checkpoint, keyspaces;
    checkpoint_and_policy: checkpoint, policy;
    checkpoint_and_sync: checkpoint, sync;
    checkpoint_and_read: checkpoint, read;
    checkpoint_and_follow: checkpoint, follow;
    checkpoint_and_copy: checkpoint, copy;
    checkpoint_and_resume: checkpoint, resume;
    checkpoint_and_close: checkpoint, close;
    keyspaces_and_keyspaces: keyspaces, keyspaces;
    keyspaces_and_policy: keyspaces, policy;
    keyspaces_and_sync: keyspaces, sync;
    keyspaces_and_read: keyspaces, read;
    keyspaces_and_follow: keyspaces, follow;
    keyspaces_and_copy: keyspaces, copy;
    keyspaces_and_resume: keyspaces, resume;
    keyspaces_and_close: keyspaces, close;
    policy_and_follow: policy, follow;
    policy_and_copy: policy, copy;
    policy_and_resume: policy, resume;
    policy_and_close: policy, close;
    sync_and_follow: sync, follow;
    sync_and_copy: sync, copy;
    sync_and_resume: sync, resume;
    sync_and_close: sync, close;
    read_and_copy: read, copy;
    read_and_resume: read, resume;
    read_and_close: read, close;
    follow_and_copy: follow, copy;
    follow_and_resume: follow, resume;
    follow_and_close: follow, close;
    copy_and_copy: copy, copy;
    copy_and_resume: copy, resume;
    copy_and_close: copy, close;
    resume_and_resume: resume, resume;
    resume_and_close: resume, close;
    close_and_close: close, close;
}
