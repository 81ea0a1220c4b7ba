//! Merges that reads have paid for, and the use that a keyspace is measured to have.
//!
//! Readers count (`read/cost.rs`) and never start anything: a timer looks whether tables have
//! cost as much as their size, and has the policy asked. It is asked wherever it has nothing else to do,
//! so that such merges follow each other, and yield to all others. At most one runs on a tree.
//!
//! Owns: what the policy is told of reads. Never does: count, or decide.

use crate::host::Host;
use crate::plan_sizes::for_use;
use crate::tree::{MeasuredUse, Tree, Work};
use std::sync::Arc;
use windrow_plan::usage::Use;
use windrow_plan::{Decision, Policy, ReadCosts, View};
use windrow_read::events::Event;
use windrow_read::read::cost::worth_of;

/// How often it is looked for tables that reads have paid for, in ms.
pub(crate) const LOOK_MS: u64 = 1_000;

/// The job that reads have paid for, where the policy is idle without it.
pub(crate) fn pick(tree: &Tree, work: &Work, policy: &Policy, view: &View<'_>) -> Decision {
    if work.merging > 0 || !policy.merges_for_reads() {
        return Decision::Idle;
    }
    let pinned = tree.view();
    let over = pinned.runs.iter().filter(|run| run.is_sst_log).flat_map(|run| &run.files);
    let costs = over.map(|file| (file.file.number, worth_of(file.table.read_cost())));
    let costs: ReadCosts = costs.collect();
    policy.pick_for_reads(view, &costs)
}

/// A job begins: tables that it moves lie over others afterwards, and have cost nothing there.
pub(crate) fn forget_moved(tree: &Tree, decision: &Decision) {
    if let Decision::Move(_) = decision {
        for (_, _, file) in decision.files() {
            tree.reads.tables.handle(&file, &tree.reads.order).forget_read_cost();
        }
    }
}

/// A flush of a keyspace wrote so many bytes: what was read and written since the one before may
/// come to another use, where the policy goes by that.
pub(crate) fn measure_use(host: &Host, tree: &Tree, put_bytes: u64) {
    if tree.policy.load().usage != Use::Measured {
        return;
    }
    let mut work = tree.work.lock();
    let all = tree.reads.cost.of_one_table();
    let MeasuredUse { measured, read_bytes } = work.notes().measured.get_or_insert_default();
    let since = all.saturating_sub(std::mem::replace(read_bytes, all));
    let (sizes, now_ms) = (tree.sizes.load_full(), host.env.clock.monotonic_ns() / 1_000_000);
    let changed = measured.flushed(put_bytes, since, sizes.memtable_bytes, now_ms);
    let Some(usage) = changed else { return };
    tree.sizes.store(Arc::new(for_use(&host.settings, (*sizes).clone(), usage)));
    let reason = measured.to_string();
    drop(work);
    host.events.send_with(|| Event::UseMeasured { keyspace: tree.name.clone(), reason });
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use crate::{Db, Options, ReadOptions};
    use windrow_env::testing::{Handles, env};
    use windrow_plan::tree::Part;

    const KEYS: u64 = 12_000;

    fn key(n: u64) -> String {
        format!("key{:08}", n * 7919 % KEYS)
    }

    /// Keys all over, written many times, and nothing is to be merged any more.
    fn written(preset: &str) -> (Db, Handles) {
        let (env, handles) = env(1);
        let mut options = Options::default();
        options.components.env = Some(env);
        let settings = [
            ("preset", preset),
            ("compression", "none"),
            ("memtable_bytes", "64KiB"),
            // Tables that are small for the data, and room for many of them above the last level.
            ("file_bytes", "64KiB"),
            ("space_max_percent", "200"),
        ];
        settings.iter().for_each(|(name, value)| options.settings.set(name, value).unwrap());
        let db = Db::open_with("db", options).unwrap();
        (0..5 * KEYS).for_each(|n| db.put(key(n), [n as u8; 100]).unwrap());
        db.flush().unwrap();
        db.wait_idle().unwrap();
        (db, handles)
    }

    /// Tables over others, and the depth at which they lie.
    fn over(db: &Db) -> (usize, u32) {
        let version = db.default_keyspace().tree.version();
        let count = version.files().filter(|(_, part, _)| *part == Part::SstLog).count();
        (count, version.levels.iter().map(|level| level.sst_log_depth()).sum())
    }

    /// Reads, with the timer's step now and then, until nothing lies over others or so often.
    fn read(db: &Db, handles: &Handles, rounds: u64, read: impl Fn(u64)) {
        for n in 0..rounds * KEYS {
            read(n);
            if n.is_multiple_of(KEYS / 8) {
                handles.jobs.fire_timers();
                db.wait_idle().unwrap();
                if over(db) == (0, 0) {
                    break;
                }
            }
        }
    }

    #[test]
    fn reads_merge_tables_that_they_have_paid_for_and_stop_there() {
        for use_seeks in [true, false] {
            // With few bits, gets search tables in vain.
            let (db, handles) = written("windrow filters=mnemosyne(bits=1)");
            let (before, depth) = over(&db);
            assert!(before > 4 && depth > 1, "{before} tables over others, {depth} deep");
            // Of gets, those for keys that are not there ask every table.
            let step = |n: u64| match use_seeks {
                true => assert!(db.cursor(ReadOptions::default()).seek(key(n)).unwrap()),
                false => assert!(db.get(key(n) + "x").unwrap().is_none()),
            };
            read(&db, &handles, 200, step);
            assert_eq!(over(&db), (0, 0), "seeks: {use_seeks}");
            let merged = db.stats().merge_entries_in;
            (0..KEYS).for_each(step);
            handles.jobs.fire_timers();
            db.wait_idle().unwrap();
            assert_eq!(db.stats().merge_entries_in, merged, "nothing is left to merge");
            for n in 4 * KEYS..5 * KEYS {
                assert_eq!(db.get(key(n)).unwrap().unwrap(), [n as u8; 100], "{n}");
            }
            db.verify().unwrap().into_result().unwrap();
            db.close().unwrap();
        }
    }

    #[test]
    fn a_fixed_k_is_left_as_somebody_asked_for() {
        let (db, handles) = written(
            "windrow level0=partitioned(lanes=16,k=4) pick=sst_log(closed,share=0.5,levels=1)",
        );
        let before = over(&db);
        assert!(before.0 > 0, "{before:?}");
        read(&db, &handles, 40, |n| {
            assert!(db.cursor(ReadOptions::default()).seek(key(n)).unwrap())
        });
        assert_eq!(over(&db), before);
        db.close().unwrap();
    }

    #[test]
    fn the_measured_use_follows_what_is_done_and_says_why() {
        let (db, handles) = written("windrow use=measured");
        let measured = |db: &Db| db.stats().keyspaces[0].measured_use.clone();
        assert!(measured(&db).starts_with("writes: "), "{}", measured(&db));
        let mut cursor = db.cursor(ReadOptions::default());
        for n in 0..20 * KEYS {
            // Ten seeks for each put, and a minute for each flush.
            db.put(key(n), [1; 100]).unwrap();
            for seek in 0..10 {
                cursor.seek(key(n * 10 + seek)).unwrap();
            }
            if n.is_multiple_of(KEYS / 8) {
                handles.clock.advance_ms(60_000);
            }
        }
        assert!(measured(&db).starts_with("reads: "), "{}", measured(&db));
        db.set_policy("windrow use=writes").unwrap();
        assert_eq!(measured(&db), "");
        db.close().unwrap();
    }
}
