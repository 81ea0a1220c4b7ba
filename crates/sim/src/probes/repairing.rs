//! Scenarios of repair without a manifest: from the files in the directory when the process dies in
//! the middle of flushes and merges, and from the logs.
//!
//! Owns: the scenarios. Never does: damage anything but the manifest and a log;
//! `rot` does that to every byte.

use super::steps::{damage_end, ensure, killed, kind, logs, options, text, with_contents};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use windrow::inspect::{self, RepairReport};
use windrow::{Db, Error, ErrorKind, Options, WriteSync};
use windrow_env::FileSystem;
use windrow_env::fs::ReadFileOptions;
use windrow_env::testing::{Fault, FaultKind, Handles, Ops, When, env};
use windrow_format::names;
use windrow_format::table::{Expect, Table};
use windrow_testkit::variant::Variant;
use windrow_testkit::world::DIR;

/// Option sets that cut flushes into level-0 partitions, or merge within level 0.
const VARIANTS_USED: [&str; 3] = ["partitions", "windrow", "leveled"];
/// The number of counters, and of additions to each.
const COUNTERS: u64 = 12;
const ROUNDS: u64 = 60;
/// The process dies at one in this number of operations of the last merges.
const STEP: u64 = 5;

/// Returns the options of a variant whose default keyspace adds.
fn adding(handles: &Handles, variant: &str) -> Options {
    let mut options = Variant::named(variant).options().expect("a valid variant");
    options.components.env = Some(handles.env());
    options.default_keyspace.merge_operator = Some("add".to_owned());
    options
}

/// Removes the manifest and repairs.
fn repair_without_manifest(handles: &Handles, options: Options) -> Result<RepairReport, String> {
    for name in handles.fs.files(Path::new(DIR)).iter().filter(|n| n.starts_with("MANIFEST")) {
        handles.fs.remove_file(&Path::new(DIR).join(name));
    }
    let report = windrow::repair(DIR, options).map_err(|e| format!("repair: {e}"))?;
    handles.jobs.discard();
    ensure(report.manifest_rebuilt, "the manifest was not missed")?;
    Ok(report)
}

fn lost(handles: &Handles) -> Vec<String> {
    handles.fs.files(&Path::new(DIR).join("lost"))
}

/// At whichever operation of flushes and merges the process dies, every counter has its value: no
/// part of a flush counts as all of it, and no operand counts twice.
pub(super) fn every_operation_counts_once() -> Result<(), String> {
    VARIANTS_USED.iter().try_for_each(|variant| {
        let mut operations = 0;
        while !dies_while_merging(variant, operations)? {
            operations += STEP;
        }
        ensure(operations > 10 * STEP, &format!("{variant}: nothing was merged"))
    })
}

/// Whether it reports damage of a new table. A table whose footer was not written yet cannot be
/// told from one that lost it.
fn is_unfinished(problem: &Error, there_before: &[String]) -> bool {
    let name = Path::new(problem.file().unwrap_or_default()).file_name().and_then(OsStr::to_str);
    let is_new = |name: &str| name.ends_with(".sst") && !there_before.iter().any(|old| old == name);
    problem.kind() == ErrorKind::Corruption && name.is_some_and(is_new)
}

/// Returns whether all was done before the process died.
fn dies_while_merging(variant: &str, operations: u64) -> Result<bool, String> {
    let (_, handles) = env(1);
    let db = Db::open_with(DIR, adding(&handles, variant)).map_err(text)?;
    // It keeps the logs of flushed memtables.
    let idle = db.keyspace("idle").map_err(text)?;
    // They keep the tables that merges replace.
    let mut readers = Vec::new();
    let mut want: BTreeMap<String, i64> = BTreeMap::new();
    for round in 0..ROUNDS {
        if round % 20 == 19 {
            idle.put("round", round.to_string()).map_err(text)?;
        }
        for counter in 0..COUNTERS {
            let (key, number) = (format!("{counter:02}"), 1_i64 << (round % 30));
            let bytes = number.to_le_bytes();
            let count = want.entry(key.clone()).or_default();
            if (round + counter) % 25 == 0 {
                *count = 0;
                db.put(&key, 0_i64.to_le_bytes()).map_err(text)?;
            }
            *count += number;
            db.merge(&key, bytes).map_err(text)?;
            db.put(format!("{key}/{round}"), vec![0; 700]).map_err(text)?;
        }
        if round + 6 < ROUNDS {
            handles.jobs.run_until_idle();
        }
        if round == ROUNDS / 2 {
            idle.flush().map_err(text)?;
        }
        if round % 8 == 0 {
            let mut reader = db.iter();
            ensure(reader.next().is_some(), "there is nothing to read")?;
            readers.push(reader);
        }
    }
    db.put_with("end", [0; 8], WriteSync::Yes).map_err(text)?;
    drop(idle);
    let there = handles.fs.files(Path::new(DIR));
    handles.fs.crash_at(handles.fs.operations() + operations);
    handles.jobs.run_until_idle();
    let over = !handles.fs.is_dead();
    handles.fs.halt();
    drop(readers);
    let handles = killed(db, &handles, 1);
    let place = format!("{variant}, {operations} operations on");
    let report = repair_without_manifest(&handles, adding(&handles, variant))?;
    // The manifest is one of the problems.
    let (_, others) = report.problems.split_first().ok_or("the manifest is not missed")?;
    ensure(
        others.iter().all(|problem| is_unfinished(problem, &there)),
        &format!("{place}: {:?}", report.problems),
    )?;
    let db = Db::open_with(DIR, adding(&handles, variant)).map_err(text)?;
    for (key, count) in want {
        let found = db.get(&key).map_err(|e| format!("{place}, {key}: {e}"))?;
        let found = found.and_then(|v| v.as_bytes().try_into().ok().map(i64::from_le_bytes));
        ensure(found == Some(count), &format!("{place}: {key} is {found:?}, not {count}"))?;
        for round in 0..ROUNDS {
            let found = db.get(format!("{key}/{round}")).map_err(text)?;
            ensure(found.is_some(), &format!("{place}: {key}/{round} is gone"))?;
        }
    }
    let idle = db.open_keyspace("keyspace-1").map_err(text)?.ok_or("a keyspace is gone")?;
    let found = idle.get("round").map_err(text)?;
    ensure(found.as_deref() == Some(b"59"), &format!("{place}: the other's is {found:?}"))?;
    Ok(over)
}

/// The inputs of a merge that combined operands are still present next to its output; a snapshot
/// keeps the operands apart from their base. The log has all of them, or is gone.
pub(super) fn combined_operands_count_once() -> Result<(), String> {
    [true, false].into_iter().try_for_each(combined_operands_count)
}

fn combined_operands_count(with_log: bool) -> Result<(), String> {
    let (_, handles) = env(1);
    let options = || adding(&handles, "small");
    let db = Db::open_with(DIR, options()).map_err(text)?;
    let number = |n: i64| n.to_le_bytes();
    db.put("k", number(5)).and_then(|()| db.flush()).map_err(text)?;
    let snapshot = db.snapshot();
    db.merge("k", number(20)).and_then(|()| db.flush()).map_err(text)?;
    db.merge("k", number(100)).and_then(|()| db.flush()).map_err(text)?;
    let inputs = table_numbers(&db);
    let mut reader = db.iter();
    ensure(reader.next().is_some(), "there is nothing to read")?;
    db.compact().map_err(text)?;
    for (_, version) in inspect::trees(&db) {
        for (_, _, file) in version.files() {
            let path = Path::new(DIR).join(names::table(file.number));
            let raw = handles.fs.open(&path, ReadFileOptions::default()).map_err(text)?;
            let (file_bytes, uid, order) = (file.bytes, file.uid, version.order.clone());
            let table = Table::open(&raw, Expect { file_bytes, uid, order }).map_err(text)?;
            let made_of = table.properties().made_of.clone();
            let known = made_of.as_ref() == Some(&inputs);
            ensure(known, &format!("made of {made_of:?}, not {inputs:?}"))?;
        }
    }
    handles.fs.halt();
    drop((reader, snapshot));
    let handles = killed(db, &handles, 1);
    let there = handles.fs.files(Path::new(DIR));
    let kept = inputs.iter().filter(|&&n| there.contains(&names::table(n))).count();
    ensure(kept == 3, &format!("{kept} inputs are still there"))?;
    for log in logs(&handles).iter().filter(|_| !with_log) {
        handles.fs.remove_file(log);
    }
    repair_without_manifest(&handles, adding(&handles, "small"))?;
    let db = Db::open_with(DIR, adding(&handles, "small")).map_err(text)?;
    let found = db.get("k").map_err(text)?;
    ensure(found.as_deref() == Some(&number(125)), &format!("the counter is {found:?}"))
}

fn table_numbers(db: &Db) -> Vec<u64> {
    let mut numbers = Vec::new();
    for (_, version) in inspect::trees(db) {
        numbers.extend(version.files().map(|(_, _, file)| file.number));
    }
    numbers.sort_unstable();
    numbers
}

/// A keyspace without tables.
pub(super) fn a_keyspace_in_logs_alone_is_kept() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = Db::open_with(DIR, options(&handles)).map_err(text)?;
    let other = db.keyspace("other").map_err(text)?;
    other.put_with("a", "1", WriteSync::Yes).map_err(text)?;
    drop(other);
    let handles = killed(db, &handles, 1);
    let report = repair_without_manifest(&handles, options(&handles))?;
    ensure(report.batches_replayed == 1, &format!("{report:?}"))?;
    let db = Db::open_with(DIR, options(&handles)).map_err(text)?;
    let other = db.open_keyspace("keyspace-1").map_err(text)?.ok_or("the keyspace is gone")?;
    ensure(other.get("a").map_err(text)?.as_deref() == Some(b"1"), "a synced write is gone")?;
    // A later write is newer.
    other.put("a", "2").map_err(text)?;
    ensure(other.get("a").map_err(text)?.as_deref() == Some(b"2"), "a new write is not seen")
}

/// Nothing is recovered from logs after a damaged one: they are moved to `lost` and reported, with
/// or without a manifest.
pub(super) fn a_log_that_is_not_taken_over_is_kept() -> Result<(), String> {
    for without_manifest in [false, true] {
        let (_, handles) = env(1);
        let db = Db::open_with(DIR, options(&handles)).map_err(text)?;
        handles.jobs.run_until_idle();
        let other = db.keyspace("other").map_err(text)?;
        other.put_with("a", "1", WriteSync::Yes).map_err(text)?;
        // Enough to start the next log, though the other keyspace keeps this one.
        db.put("filler", vec![7; 40_000]).map_err(text)?;
        handles.jobs.run_until_idle();
        db.put("b", "2").and_then(|()| db.default_keyspace().flush()).map_err(text)?;
        db.put_with("c", "3", WriteSync::Yes).map_err(text)?;
        drop(other);
        let handles = killed(db, &handles, 1);
        let found = logs(&handles);
        ensure(found.len() == 2, &format!("{found:?}"))?;
        damage_end(&handles, &found[0])?;
        let report = match without_manifest {
            true => repair_without_manifest(&handles, options(&handles))?,
            false => windrow::repair(DIR, options(&handles)).map_err(text)?,
        };
        handles.jobs.discard();
        let kept = lost(&handles);
        for log in &found {
            let name = log.file_name().map(|name| name.to_string_lossy().into_owned());
            let is_kept = name.is_some_and(|name| kept.contains(&name));
            let shown = log.display().to_string();
            let reported = report.problems.iter().any(|e| e.file() == Some(shown.as_str()));
            ensure(is_kept && reported, &format!("{shown}: {kept:?}, {:?}", report.problems))?;
        }
        let db = Db::open_with(DIR, options(&handles)).map_err(text)?;
        ensure(db.get("b").map_err(text)?.as_deref() == Some(b"2"), "what a table holds is gone")?;
    }
    Ok(())
}

/// One damaged byte in a log that was never synced, and whole batches behind it: an open and a
/// repair report their number, and keep the log.
pub(super) fn what_is_left_out_is_said_and_kept() -> Result<(), String> {
    [true, false].into_iter().try_for_each(is_left_out_said)
}

fn is_left_out_said(by_repair: bool) -> Result<(), String> {
    let (_, handles) = env(1);
    let db = Db::open_with(DIR, options(&handles)).map_err(text)?;
    (0..20).try_for_each(|key| db.put(format!("key{key:02}"), "value")).map_err(text)?;
    let handles = killed(db, &handles, 1);
    let log = logs(&handles).pop().ok_or("there is no log")?;
    let bytes = handles.fs.read_file(&log).ok_or("there is no log")?;
    let at = bytes.windows(5).position(|bytes| bytes == b"key05").ok_or("it is not logged")?;
    handles.fs.flip(&log, at as u64, 1);
    let said: u64 = if by_repair {
        let report = windrow::repair(DIR, options(&handles)).map_err(text)?;
        report.logs.iter().map(|log| log.whole_batches).sum()
    } else {
        let db = Db::open_with(DIR, options(&handles)).map_err(text)?;
        db.records_left_out().iter().map(|records| records.batches).sum()
    };
    ensure(said == 14, &format!("{said} of 14 batches were said to be left out"))?;
    ensure(lost(&handles).len() == 1, "a log with whole batches is gone")
}

/// A power loss brings back a log whose unlink was not durable, but not the next one. Later synced
/// writes are in the log behind that gap.
pub(super) fn a_log_that_is_back_is_no_end() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = Db::open_with(DIR, adding(&handles, "small")).map_err(text)?;
    let add = |key: &str, n: i64| db.merge(key, n.to_le_bytes()).map_err(text);
    let mut removed = Vec::new();
    for round in 0..2 {
        add("counter", 1)?;
        // Enough for the next log to be made.
        db.put_with(format!("round {round}"), vec![7; 40_000], WriteSync::Yes).map_err(text)?;
        handles.jobs.run_until_idle();
        removed.push(logs(&handles)[round].clone());
        let bytes = handles.fs.read_file(&removed[round]).ok_or("no log")?;
        db.flush().map_err(text)?;
        handles.jobs.run_until_idle();
        ensure(!logs(&handles).contains(&removed[round]), "the log is still there")?;
        if round == 0 {
            add("counter", 1)?;
            add("other", 1)?;
            handles.fs.write_file(&removed[0], &bytes);
        }
    }
    add("counter", 1)?;
    db.put_with("synced", "1", WriteSync::Yes).map_err(text)?;
    let handles = killed(db, &handles, 1);
    let report = repair_without_manifest(&handles, adding(&handles, "small"))?;
    let said = format!("{report:?}");
    // The missing records between them are in tables, which nothing can confirm.
    ensure(report.logs.len() == 2 && report.originals.len() == 2, &said)?;
    let db = Db::open_with(DIR, adding(&handles, "small")).map_err(text)?;
    let synced = db.get("synced").map_err(text)?;
    ensure(synced.as_deref() == Some(b"1"), &format!("a synced write is gone: {said}"))?;
    for (key, count) in [("counter", 4_i64), ("other", 1)] {
        let found = db.get(key).map_err(text)?;
        let right = found.as_deref() == Some(&count.to_le_bytes()[..]);
        ensure(right, &format!("{key} is {found:?}, not {count}: {said}"))?;
    }
    Ok(())
}

/// Keys of a table that has many blocks.
const KEYS: usize = 200;

fn key(n: usize) -> String {
    format!("key{n:04}")
}

/// A closed database, and its only table.
fn with_a_table() -> Result<(Handles, PathBuf), String> {
    let (_, handles) = env(1);
    let db = Db::open_with(DIR, options(&handles)).map_err(text)?;
    (0..KEYS).try_for_each(|n| db.put(key(n), [n as u8; 40])).map_err(text)?;
    db.delete_range("zzz", "zzzz").and_then(|()| db.flush()).map_err(text)?;
    let number = *table_numbers(&db).first().ok_or("there is no table")?;
    db.close().map_err(text)?;
    handles.jobs.discard();
    Ok((handles, Path::new(DIR).join(names::table(number))))
}

fn repaired(handles: &Handles) -> Result<(RepairReport, Db), String> {
    let report = windrow::repair(DIR, options(handles)).map_err(text)?;
    handles.jobs.discard();
    let db = Db::open_with(DIR, options(handles)).map_err(text)?;
    Ok((report, db))
}

/// Returns the place of a table's index, from its footer.
fn index_at(bytes: &[u8]) -> Option<u64> {
    let handle = bytes.len().checked_sub(84 - 40)?;
    bytes[handle..].first_chunk().map(|at| u64::from_le_bytes(*at))
}

/// Blocks record their own places, so a lost index costs no entry.
pub(super) fn an_index_costs_nothing() -> Result<(), String> {
    let (handles, table) = with_a_table()?;
    let bytes = handles.fs.read_file(&table).ok_or("no table")?;
    let index = index_at(&bytes).ok_or("no footer")?;
    for (what, at) in [("index", index + 9), ("footer", bytes.len() as u64 - 50)] {
        let handles = Handles { fs: handles.fs.fork(), ..handles.reborn(1) };
        handles.fs.flip(&table, at, 1);
        let (report, db) = repaired(&handles)?;
        let said = format!("without {what}: {report:?}");
        ensure(report.problems.len() == 1 && report.tables.len() == 1, &said)?;
        ensure(!report.lost_something() && report.tables[0].lost.is_empty(), &said)?;
        ensure(report.tables[0].entries == Some(KEYS as u64), &said)?;
        ensure(db.iter().count() == KEYS, &said)?;
        ensure(lost(&handles).len() == 1 && report.originals.len() == 1, &said)?;
    }
    Ok(())
}

/// The report has the keys around a damaged block, and the number of lost entries.
pub(super) fn what_is_lost_is_said() -> Result<(), String> {
    let (handles, table) = with_a_table()?;
    handles.fs.flip(&table, 3_000, 1);
    let (report, db) = repaired(&handles)?;
    let said = format!("{report:?}");
    let [damaged] = &report.tables[..] else { return Err(said) };
    ensure(report.lost_something() && damaged.lost.len() == 1, &said)?;
    let there: Vec<bool> =
        (0..KEYS).map(|n| db.get(key(n)).is_ok_and(|value| value.is_some())).collect();
    let saved = there.iter().filter(|there| **there).count();
    ensure(damaged.entries_saved == saved as u64 && saved < KEYS, &said)?;
    ensure(damaged.keyspace.as_deref() == Some("default"), &said)?;
    ensure(damaged.range_tombstones == Some(1) && damaged.range_tombstones_saved, &said)?;
    let first = there.iter().position(|there| !there).ok_or("nothing is lost")?;
    let last = there.iter().rposition(|there| !there).ok_or("nothing is lost")?;
    let range = &damaged.lost[0];
    ensure(range.bytes.contains(&3_000), &said)?;
    ensure(range.after.as_deref() == Some(key(first - 1).as_bytes()), &said)?;
    ensure(range.before.as_deref() == Some(key(last + 1).as_bytes()), &said)
}

/// No descriptors, no permission: the table may be whole. Nothing is given up.
pub(super) fn what_cannot_be_opened_is_not_lost() -> Result<(), String> {
    let (handles, table) = with_a_table()?;
    let before = handles.fs.read_file(&table);
    let fault = Fault::new(FaultKind::TooManyFiles, Ops::OPEN, When::MatchingFrom(0));
    handles.fs.inject(fault.on_path(".sst"));
    let refused = kind(windrow::repair(DIR, options(&handles)));
    ensure(refused == Some(ErrorKind::Io), &format!("repair gave {refused:?}"))?;
    handles.fs.clear_faults();
    handles.jobs.discard();
    ensure(handles.fs.read_file(&table) == before && lost(&handles).is_empty(), "it is gone")?;
    let (report, db) = repaired(&handles)?;
    ensure(report.tables_kept == 1 && !report.lost_something(), &format!("{report:?}"))?;
    ensure(db.iter().count() == KEYS, "a key is gone")
}

/// Tables in `lost`, where a killed repair of an earlier version left them.
pub(super) fn moved_tables_are_found() -> Result<(), String> {
    let (handles, table) = with_a_table()?;
    let bytes = handles.fs.read_file(&table).ok_or("no table")?;
    let name = table.file_name().ok_or("no name")?;
    let dir = Path::new(DIR).join("lost");
    handles.fs.create_dir(&dir).map_err(text)?;
    handles.fs.write_file(&dir.join(name), &bytes);
    handles.fs.remove_file(&table);
    let opened = kind(Db::open_with(DIR, options(&handles)));
    ensure(opened == Some(ErrorKind::Corruption), &format!("an open gave {opened:?}"))?;
    let (report, db) = repaired(&handles)?;
    ensure(!report.lost_something(), &format!("{report:?}"))?;
    ensure(db.iter().count() == KEYS, "a key is gone")
}

/// Verify counts the batches of logs, both in the session that wrote them and in one that replayed
/// them, and distinguishes damaged files from unreadable ones.
pub(super) fn verify_reads_manifest_and_logs() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = with_contents(&handles)?;
    handles.jobs.run_until_idle();
    db.delete_range("x", "y").and_then(|()| db.merge("n", [])).ok();
    let counted = |db: &Db| {
        let report = db.verify().map_err(text)?;
        let said = format!("{report:?}");
        ensure(report.is_ok() && report.manifest_records > 0, &said)?;
        Ok::<_, String>((report.tables, report.logs, report.log_batches, report.log_operations))
    };
    let (tables, logs_read, batches, operations) = counted(&db)?;
    let want = format!("{tables} tables, {logs_read} logs, {batches}, {operations}");
    ensure(tables == 1 && logs_read > 0 && batches >= 2 && operations >= 2, &want)?;
    let handles = killed(db, &handles, 1);
    let db = Db::open_with(DIR, Options { read_only: true, ..options(&handles) }).map_err(text)?;
    let (_, _, replayed, _) = counted(&db)?;
    ensure(replayed == batches, &format!("{replayed} batches, not {batches}"))?;
    let log = logs(&handles).into_iter().next().ok_or("no log")?;
    for (kind, path) in [(FaultKind::Io, ".wal"), (FaultKind::Io, ".sst"), (FaultKind::Io, "MANI")]
    {
        handles.fs.inject(Fault::new(kind, Ops::READING, When::MatchingFrom(0)).on_path(path));
        let report = db.verify().map_err(text)?;
        let said = format!("{path}: {report:?}");
        ensure(report.unreadable().count() > 0 && report.damaged().count() == 0, &said)?;
        handles.fs.clear_faults();
    }
    // A bit within the first batch of a log.
    handles.fs.flip(&log, 100, 1);
    let report = db.verify().map_err(text)?;
    let is_named = |error: &Error| error.file().is_some_and(|file| file.ends_with(".wal"));
    let found = report.damaged().any(is_named) && report.unreadable().count() == 0;
    ensure(found, &format!("a damaged log: {report:?}"))
}
