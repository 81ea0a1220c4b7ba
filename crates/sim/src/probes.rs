//! Promises that one small scenario each can test: which opens are refused, which files a read-only
//! open and a refusal leave alone, limits, and the effects of a failure.
//!
//! Owns: the scenarios. Never does: draw anything by seed; the crash harness and the sweep test
//! promises that need many cases.

mod backing_up;
mod feeding;
mod filling;
mod following;
mod forking;
mod ingesting;
mod merging;
mod placing;
mod planning;
mod racing;
mod repairing;
mod steps;
mod transacting;

use std::path::Path;
use steps::{damage_end, ensure, killed, kind, logs, open, options, refused, text, with_contents};
use windrow::testing::crowd;
use windrow::{Batch, Db, ErrorKind, Options, ReadOptions, WriteSync};
use windrow_base::key::KEY_BYTES_MAX;
use windrow_env::testing::{
    Fault, FaultKind, FileDamage, Handles, NameDamage, Ops, PowerLoss, When, env,
};
use windrow_format::current::{Current, FORMAT_VERSION};
use windrow_format::log::{self, FileHeader, LogKind};
use windrow_format::names;
use windrow_testkit::variant::SMALL_MEMORY_BYTES;
use windrow_testkit::world::DIR;

/// A scenario: `Err` says which promise was broken, and how.
pub type Probe = fn() -> Result<(), String>;

/// Every scenario, by its promise.
pub const PROBES: &[(&str, Probe)] = &[
    ("a panic turns writing off (P24)", a_panic_turns_writing_off),
    ("a second open is refused (P13)", a_second_open_is_refused),
    ("a forked child is refused (P13)", forking::a_forked_child_is_refused),
    ("a read-only open writes nothing (P17)", a_read_only_open_writes_nothing),
    ("limits hold (P15)", limits_hold),
    ("a newer format is refused (P21)", a_newer_format_is_refused),
    ("nothing is removed after a failure (P7)", nothing_is_removed_after_a_failure),
    ("a failed edit keeps its tables (P7)", a_failed_edit_keeps_its_tables),
    ("a name that is not durable ends writing (P7)", a_name_that_is_not_durable_ends_writing),
    ("a scan stays failed (P9)", a_scan_stays_failed),
    ("a checkpoint that fails says so (P20)", a_checkpoint_that_fails_says_so),
    ("a link that fails is not copied over (P20)", a_link_that_fails_is_not_copied_over),
    ("memtables are flushed in order (P2)", memtables_are_flushed_in_order),
    ("remains without CURRENT are no new database (P5)", remains_are_no_new_database),
    ("a log that is missing is missed (P5)", a_missing_log_is_missed),
    ("another database's log is refused (P12)", another_log_is_refused),
    ("the next log confirms the one before (P5)", the_next_log_confirms),
    ("a record confirms those before it (P5)", a_record_confirms),
    ("memtables keep to their budget (P18)", memtables_keep_to_their_budget),
    ("a close leaves nothing to do (P14)", a_close_leaves_nothing_to_do),
    ("a leftover keeps its number (R8)", a_leftover_keeps_its_number),
    ("only its own logs count (P12)", only_its_own_logs_count),
    ("an idle iterator shows its moment (P4)", an_iterator_shows_its_moment),
    ("an idle iterator holds no memory (P18)", an_iterator_holds_no_memory),
    (
        "a filter takes nothing from a snapshot (P4)",
        merging::a_filter_takes_nothing_from_a_snapshot,
    ),
    ("what is put into a gap is seen (P4)", what_is_put_into_a_gap_is_seen),
    ("a drop keeps sequence numbers (P2)", a_drop_keeps_sequence_numbers),
    ("a drop is not durable before older writes (P2)", a_drop_follows_older_writes),
    ("a clock goes back under a merge (P16)", merging::a_clock_goes_back_under_a_merge),
    ("a dropped keyspace leaves no table (P20)", merging::a_dropped_keyspace_leaves_no_table),
    ("a replaced directory is noticed (P1)", placing::a_replaced_directory_is_noticed),
    ("strangers in the directory stay (P20)", placing::strangers_stay),
    ("repair counts every operation once (P23)", repairing::every_operation_counts_once),
    ("repair counts combined operands once (P23)", repairing::combined_operands_count_once),
    (
        "repair keeps a keyspace that only logs know (P23)",
        repairing::a_keyspace_in_logs_alone_is_kept,
    ),
    (
        "repair keeps a log that it does not take over (P23)",
        repairing::a_log_that_is_not_taken_over_is_kept,
    ),
    (
        "whole batches behind damage are said and kept (P23)",
        repairing::what_is_left_out_is_said_and_kept,
    ),
    ("a log that is back ends no repair (P23)", repairing::a_log_that_is_back_is_no_end),
    ("a table without its index loses nothing (P23)", repairing::an_index_costs_nothing),
    ("repair says what is lost (P23)", repairing::what_is_lost_is_said),
    ("what cannot be opened is not lost (P23)", repairing::what_cannot_be_opened_is_not_lost),
    ("repair looks into lost/ (P23)", repairing::moved_tables_are_found),
    ("verify reads manifest and logs (P23)", repairing::verify_reads_manifest_and_logs),
    ("a full device leaves room to flush (P8)", filling::a_full_device_leaves_room_to_flush),
    ("a tree is no deeper than its shape (S1)", planning::a_tree_is_no_deeper_than_its_shape),
    ("filters keep to their memory (F2)", planning::filters_keep_to_their_memory),
    (
        "a transaction that read what changed is refused (P25)",
        transacting::what_was_read_and_written_since_is_refused,
    ),
    (
        "a transaction longer than the record is refused, too (P25)",
        transacting::a_long_transaction_is_refused_as_well,
    ),
    ("a locked key is one transaction's (P25)", transacting::a_locked_key_is_one_transactions),
    ("files stay for a follower (P26)", following::files_stay_for_a_follower),
    ("a follower counts operands once (P26)", following::operands_count_once),
    (
        "a follower shows nothing without an ingestion before it (P26)",
        following::nothing_is_shown_without_an_ingestion_before_it,
    ),
    ("a follower's copy opens (P26)", following::a_copy_opens_whatever_the_writer_did_meanwhile),
    ("what is ingested into a gap is seen (P4)", ingesting::what_comes_into_a_gap_is_seen),
    (
        "a transaction that read what was ingested since is refused (P25)",
        ingesting::a_transaction_that_read_it_is_refused,
    ),
    ("what is ingested is newer than what was there (P3)", ingesting::what_comes_is_the_newest),
    ("what two writers fail with can go away (P7)", racing::a_failure_of_one_is_that_of_both),
    ("a prune leaves what others need (P28)", backing_up::a_prune_leaves_what_others_need),
    ("damage to a backup is not restored (P28)", backing_up::damage_is_not_restored),
    ("damage is not backed up (P28)", backing_up::damage_is_not_backed_up),
    ("tables stay until they are copied (P28)", backing_up::tables_stay_until_they_are_copied),
    ("a kept log is durable (P29)", feeding::a_kept_log_is_durable),
    ("a drop is a change (P29)", feeding::a_drop_is_a_change),
    ("a write wakes who waits for it (P29)", feeding::a_write_wakes_who_waits),
    ("an old value is the one before (P29)", feeding::old_values_are_those_before),
    ("a log is there for either manifest (P19)", feeding::a_log_is_there_for_either_manifest),
    ("a drop took place for all or none (P29)", feeding::a_drop_took_place_for_all_or_none),
    (
        "changes of another history are not taken (P28)",
        backing_up::changes_of_another_history_are_not_taken,
    ),
    ("a HotMap keeps its layers (H1)", planning::a_hot_map_keeps_its_layers),
];

fn a_panic_turns_writing_off() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = with_contents(&handles)?;
    handles.jobs.run_until_idle();
    let fault = Fault::new(FaultKind::Panic, Ops::CREATE, When::MatchingFrom(0)).on_path(".sst");
    handles.fs.inject(fault);
    // More than a memtable, and less than would make a writer wait.
    for round in 0..20 {
        db.put(format!("{round}"), vec![0; 4_000]).map_err(text)?;
    }
    handles.jobs.run_until_idle();
    handles.fs.clear_faults();
    ensure(
        kind(db.put("d", "4")) == Some(ErrorKind::ReadOnly),
        "a write after the panic succeeded",
    )?;
    ensure(db.get("a").is_ok_and(|value| value.is_some()), "a read after the panic failed")
}

fn a_second_open_is_refused() -> Result<(), String> {
    let (_, handles) = env(1);
    let _held = open(&handles)?;
    let second = kind(Db::open_with(DIR, options(&handles)));
    ensure(second == Some(ErrorKind::Busy), &format!("the second open: {second:?}"))
}

fn a_read_only_open_writes_nothing() -> Result<(), String> {
    let (_, handles) = env(1);
    let read_only = Options { read_only: true, ..options(&handles) };
    let missing = kind(Db::open_with(DIR, read_only.clone()));
    ensure(missing == Some(ErrorKind::InvalidArgument), "a read-only open of nothing")?;
    ensure(handles.fs.operations() == 0, "a read-only open of nothing made something")?;
    let db = with_contents(&handles)?;
    let handles = killed(db, &handles, 1);
    let before = (handles.fs.operations(), handles.fs.files(Path::new(DIR)));
    let read_only = Options { read_only: true, ..options(&handles) };
    let db = Db::open_with(DIR, read_only).map_err(text)?;
    ensure(db.get("b").is_ok_and(|value| value.is_some()), "what the log holds is not seen")?;
    ensure(kind(db.put("c", "3")) == Some(ErrorKind::ReadOnly), "a write succeeded")?;
    db.close().map_err(text)?;
    let after = (handles.fs.operations(), handles.fs.files(Path::new(DIR)));
    ensure(before == after, "a read-only open changed files")
}

fn limits_hold() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = open(&handles)?;
    db.put(vec![b'k'; KEY_BYTES_MAX], "1").map_err(|e| format!("the longest key: {e}"))?;
    let before = handles.fs.operations();
    let long = kind(db.put(vec![b'k'; KEY_BYTES_MAX + 1], "1"));
    ensure(long == Some(ErrorKind::InvalidArgument), "a key over the limit")?;
    ensure(kind(db.write(batch_of(&db, 1), WriteSync::No)) == long, "a batch over the limit")?;
    let mut small = Batch::new();
    (0..SMALL_MEMORY_BYTES / 2 / 45 + 1).for_each(|_| small.delete(&db, "k"));
    ensure(kind(db.write(small, WriteSync::No)) == long, "a batch over the memory of memtables")?;
    ensure(handles.fs.operations() == before, "what is over a limit was written")?;
    db.write(batch_of(&db, 0), WriteSync::No)
        .map(drop)
        .map_err(|e| format!("the largest batch: {e}"))
}

/// Makes a batch of the most bytes that are allowed, and `more`.
fn batch_of(db: &Db, more: u64) -> Batch {
    let mut batch = Batch::new();
    let bytes = SMALL_MEMORY_BYTES / 4 + more;
    let mut value_bytes = bytes as usize - 64;
    batch.put(db, "k", vec![0; value_bytes]);
    value_bytes += bytes as usize - batch.byte_len();
    batch.clear();
    batch.put(db, "k", vec![0; value_bytes]);
    assert_eq!(batch.byte_len() as u64, bytes);
    batch
}

fn a_newer_format_is_refused() -> Result<(), String> {
    let (_, handles) = env(1);
    with_contents(&handles)?.close().map_err(text)?;
    handles.jobs.discard();
    let path = Path::new(DIR).join("CURRENT");
    let bytes = handles.fs.read_file(&path).ok_or("CURRENT is missing")?;
    let current = Current::decode(&bytes).map_err(text)?;
    let newer = Current { format_version: FORMAT_VERSION + 1, ..current.clone() };
    let featured = Current { required_features: 1 << 40, ..current };
    for (what, current) in [("version", newer), ("feature", featured)] {
        handles.fs.write_file(&path, &current.encode());
        let before = (handles.fs.operations(), handles.fs.files(Path::new(DIR)));
        let refused = kind(Db::open_with(DIR, options(&handles)));
        ensure(refused == Some(ErrorKind::NotSupported), &format!("a newer {what}: {refused:?}"))?;
        let after = (handles.fs.operations(), handles.fs.files(Path::new(DIR)));
        ensure(before == after, &format!("a newer {what} was refused after writing"))?;
    }
    Ok(())
}

fn tables(handles: &Handles) -> Vec<String> {
    let files = handles.fs.files(Path::new(DIR));
    files.into_iter().filter(|name| name.ends_with(".sst")).collect()
}

/// A reader releases replaced tables after the failure.
fn nothing_is_removed_after_a_failure() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = with_contents(&handles)?;
    db.put("a", "3").and_then(|()| db.flush()).map_err(text)?;
    handles.jobs.run_until_idle();
    let mut reader = db.iter();
    ensure(reader.next().is_some_and(|pair| pair.is_ok()), "nothing to read")?;
    let old = tables(&handles);
    db.compact().map_err(text)?;
    let kept = tables(&handles);
    let are_kept = old.iter().all(|name| kept.contains(name)) && kept.len() > old.len();
    ensure(are_kept, &format!("of {old:?}, which are read, {kept:?} are there"))?;
    let lost = Fault::new(FaultKind::Io, Ops::SYNC, When::MatchingFrom(0)).on_path(".wal");
    handles.fs.inject(lost);
    ensure(db.put_with("c", "3", WriteSync::Yes).is_err(), "a write whose sync failed succeeded")?;
    let before = handles.fs.files(Path::new(DIR));
    drop(reader);
    handles.jobs.run_until_idle();
    let after = handles.fs.files(Path::new(DIR));
    let gone: Vec<_> = before.iter().filter(|name| !after.contains(name)).collect();
    ensure(gone.is_empty(), &format!("{gone:?} went after a failure"))
}

/// The manifest's record may be present although its sync failed: the seed draws the part that
/// survives a kill.
fn a_failed_edit_keeps_its_tables() -> Result<(), String> {
    (1..=32).try_for_each(|seed| {
        let (_, handles) = env(seed);
        let db = with_contents(&handles)?;
        let fault = Fault::new(FaultKind::Io, Ops::SYNC, When::MatchingFrom(0)).on_path("MANIFEST");
        handles.fs.inject(fault);
        ensure(db.flush().is_err(), "a flush whose edit was not durable succeeded")?;
        let db = open(&killed(db, &handles, seed))?;
        ensure(db.get("b").is_ok_and(|value| value.is_some()), "a synced write is gone")
    })
}

fn a_name_that_is_not_durable_ends_writing() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = with_contents(&handles)?;
    handles.jobs.run_until_idle();
    handles.fs.inject(Fault::new(FaultKind::Io, Ops::SYNC_DIR, When::MatchingFrom(0)));
    ensure(db.flush().is_err(), "a flush whose table has no durable name succeeded")?;
    ensure(kind(db.put("c", "3")) == Some(ErrorKind::ReadOnly), "a write after it succeeded")
}

/// A link whose call failed may exist or not, by the seed.
fn a_link_that_fails_is_not_copied_over() -> Result<(), String> {
    for seed in 0..16 {
        let (_, handles) = env(seed);
        let db = with_contents(&handles)?;
        handles.fs.inject(Fault::new(FaultKind::Io, Ops::LINK, When::Matching(0)));
        ensure(db.checkpoint("/world/copy").is_err(), "a checkpoint without a table succeeded")?;
        let report = db.verify().map_err(text)?;
        ensure(report.is_ok(), &format!("the checkpoint's source: {:?}", report.problems))?;
    }
    Ok(())
}

fn a_scan_stays_failed() -> Result<(), String> {
    let (_, handles) = env(1);
    with_contents(&handles)?.close().map_err(text)?;
    let db = open(&handles)?;
    handles
        .fs
        .inject(Fault::new(FaultKind::Io, Ops::READING, When::MatchingFrom(0)).on_path(".sst"));
    let mut cursor = db.cursor(ReadOptions::default());
    ensure(cursor.seek_first().is_err(), "a scan of what cannot be read found something")?;
    handles.fs.clear_faults();
    ensure(cursor.next().is_err(), "a scan went on after an error")
}

fn a_checkpoint_that_fails_says_so() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = with_contents(&handles)?;
    handles.fs.inject(Fault::new(FaultKind::Io, Ops::LINK, When::Matching(0)));
    ensure(db.checkpoint("/world/copy").is_err(), "a checkpoint without its tables succeeded")
}

/// At whichever operation the process dies while two memtables are flushed, both survive.
fn memtables_are_flushed_in_order() -> Result<(), String> {
    let mut operations = 0;
    loop {
        let (_, handles) = env(1);
        let db = open(&handles)?;
        handles.jobs.run_until_idle();
        for value in ["old", "new"] {
            db.put("key", value).map_err(text)?;
            for round in 0..20 {
                db.put(format!("{value}{round}"), vec![0; 4_000]).map_err(text)?;
            }
        }
        db.put_with("end", "", WriteSync::Yes).map_err(text)?;
        handles.fs.crash_at(handles.fs.operations() + operations);
        handles.jobs.run_until_idle();
        let over = !handles.fs.is_dead();
        let db = open(&killed(db, &handles, 1))?;
        let found = db.get("key").map_err(text)?;
        ensure(found.as_deref() == Some(b"new"), &format!("an older memtable won: {found:?}"))?;
        let older = db.get("old0").map_err(text)?;
        ensure(older.is_some(), &format!("{operations} operations on, a memtable is gone"))?;
        if over {
            return ensure(operations > 10, "nothing was flushed");
        }
        operations += 1;
    }
}

fn remains_are_no_new_database() -> Result<(), String> {
    let (_, handles) = env(1);
    let handles = killed(with_contents(&handles)?, &handles, 1);
    handles.fs.remove_file(&Path::new(DIR).join("CURRENT"));
    let before = handles.fs.files(Path::new(DIR));
    refused(&handles, "what is left of a database")?;
    let mut after = handles.fs.files(Path::new(DIR));
    after.retain(|name| name != "LOCK" || before.contains(name));
    ensure(before == after, "an open that was refused changed files")
}

fn a_missing_log_is_missed() -> Result<(), String> {
    let (_, handles) = env(1);
    let handles = killed(with_contents(&handles)?, &handles, 1);
    for log in logs(&handles) {
        handles.fs.remove_file(&log);
    }
    refused(&handles, "a database without its log")
}

fn another_log_is_refused() -> Result<(), String> {
    let made = |seed| {
        let (_, handles) = env(seed);
        Ok::<_, String>(killed(with_contents(&handles)?, &handles, 1))
    };
    let handles = made(1)?;
    // Jobs run in an order drawn by the seed, and take numbers as they run.
    let mut others = (2..100).map(made);
    let alike = |other: &Result<Handles, String>| {
        other.as_ref().is_ok_and(|other| logs(other) == logs(&handles))
    };
    let other = others.find(alike).ok_or("no other database has logs of these names")??;
    for log in logs(&handles) {
        handles.fs.write_file(&log, &other.fs.read_file(&log).ok_or("no log")?);
    }
    refused(&handles, "a database with another one's log")
}

/// The next open removes the leftovers of an interrupted open, under any number near the next one,
/// and is not hindered by them.
fn a_leftover_keeps_its_number() -> Result<(), String> {
    for number in 0..20 {
        for leftover in [names::temp(number), names::manifest(number), names::table(number)] {
            let (_, handles) = env(1);
            let handles = killed(with_contents(&handles)?, &handles, 1);
            let path = Path::new(DIR).join(&leftover);
            if handles.fs.read_file(&path).is_some() {
                continue;
            }
            handles.fs.write_file(&path, b"");
            let db = open(&handles).map_err(|e| format!("with {leftover}: {e}"))?;
            let found = db.get("b").map_err(text)?;
            ensure(found.as_deref() == Some(b"2"), &format!("with {leftover}: {found:?}"))?;
            let left = handles.fs.read_file(&path).is_some_and(|bytes| bytes.is_empty());
            ensure(!left, &format!("{leftover} is still there"))?;
        }
    }
    Ok(())
}

/// A log that the manifest does not name, as another database left it on the sectors of a log that
/// was never synced, proves nothing. A log that names the manifest in force, or a newer one that
/// CURRENT does not name yet, does.
fn only_its_own_logs_count() -> Result<(), String> {
    let (_, handles) = env(1);
    let handles = killed(with_contents(&handles)?, &handles, 1);
    let current = handles.fs.read_file(&Path::new(DIR).join(names::CURRENT));
    let current = Current::decode(&current.ok_or("no CURRENT")?).map_err(text)?;
    let (number, uid) = (current.manifest_number, current.manifest_uid);
    // Beyond every number that is in use.
    let (newer, log) = (number + 1_000, number + 1_001);
    let newer_manifest = log_header(LogKind::Manifest, newer, (newer, 5));
    for (counts, manifest) in
        [(false, (number, uid ^ 1)), (true, (number, uid)), (false, (newer, 4)), (true, (newer, 5))]
    {
        let handles = Handles { fs: handles.fs.fork(), ..handles.reborn(1) };
        let place = |name| Path::new(DIR).join::<String>(name);
        handles.fs.write_file(&place(names::manifest(newer)), &newer_manifest);
        handles.fs.write_file(&place(names::wal(log)), &log_header(LogKind::Wal, log, manifest));
        let what = format!("a log that names manifest {manifest:?}");
        match counts {
            true => refused(&handles, &what)?,
            false => {
                let db = open(&handles).map_err(|e| format!("{what}: {e}"))?;
                ensure(db.get("b").is_ok_and(|value| value.is_some()), &what)?;
            }
        }
    }
    Ok(())
}

/// Encodes the header of a log that records more durable bytes of a manifest than the manifest has.
fn log_header(kind: LogKind, number: u64, (manifest_number, manifest_uid): (u64, u64)) -> Vec<u8> {
    log::encode_file_header(&FileHeader {
        kind,
        framing: kind.framing(),
        number,
        uid: manifest_uid,
        manifest_number,
        manifest_durable_bytes: 1 << 30,
        manifest_uid,
    })
}

/// Records that were synced only after the next log had been started: nothing in their own log says
/// so, and no mark was due since.
fn the_next_log_confirms() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = open(&handles)?;
    handles.jobs.run_until_idle();
    let mut rounds = 0;
    let first = logs(&handles);
    while logs(&handles).len() == first.len() {
        db.put(format!("{rounds}"), vec![b'v'; 4_000]).map_err(text)?;
        rounds += 1;
        ensure(rounds < 10_000, "the log never went on in another file")?;
    }
    db.put_with("synced", "v", WriteSync::Yes).map_err(text)?;
    db.put("after", "v").map_err(text)?;
    let handles = killed(db, &handles, 1);
    damage_end(&handles, &first[first.len() - 1])?;
    refused(&handles, "a log that lost what was synced")
}

/// Damage to synced records is no torn end: the records after them prove it.
fn a_record_confirms() -> Result<(), String> {
    const MARK: &[u8] = b"a value to be found";
    let (_, handles) = env(1);
    let db = open(&handles)?;
    handles.jobs.run_until_idle();
    db.put_with("a", MARK, WriteSync::Yes).and_then(|()| db.put("b", "2")).map_err(text)?;
    let handles = killed(db, &handles, 1);
    let found = logs(&handles).into_iter().find_map(|log| {
        let bytes = handles.fs.read_file(&log)?;
        let at = bytes.windows(MARK.len()).position(|bytes| bytes == MARK)?;
        Some((log, at as u64))
    });
    let (log, at) = found.ok_or("the value is in no log")?;
    handles.fs.flip(&log, at, 1);
    refused(&handles, "a log that was damaged before what was synced")
}

/// A write that is only in a table, since the log is lost. The table is dropped with its keyspace.
fn a_drop_keeps_sequence_numbers() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = with_contents(&handles)?;
    db.keyspace("gone").and_then(|_| db.close()).map_err(text)?;
    // Just after an open there is no second log yet.
    let db = open(&handles)?;
    let gone = db.keyspace("gone").map_err(text)?;
    gone.put("a", "1").and_then(|_| gone.flush()).map_err(text)?;
    let seq = db.snapshot().seq();
    let lost = Fault::new(FaultKind::Io, Ops::SYNC, When::MatchingFrom(0)).on_path(".wal");
    handles.fs.inject(lost);
    ensure(db.drop_keyspace("gone").is_err(), "the mark of a drop is durable without a sync")?;
    drop(gone);
    let handles = killed(db, &handles, 1);
    handles.fs.crash(1);
    let db = open(&handles)?;
    let after = db.snapshot().seq();
    ensure(db.open_keyspace("gone").is_ok_and(|k| k.is_none()), "the drop is undone")?;
    ensure(after >= seq, &format!("sequence numbers went back from {seq} to {after}"))
}

/// The log can no longer be synced when a keyspace is dropped, and the power fails: either the drop
/// did not happen, or the write before it is present too.
fn a_drop_follows_older_writes() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = with_contents(&handles)?;
    let gone = db.keyspace("gone").map_err(text)?;
    gone.put_with("a", "1", WriteSync::Yes).map_err(text)?;
    db.put("older", "1").map_err(text)?;
    let lost = Fault::new(FaultKind::Io, Ops::SYNC, When::MatchingFrom(0)).on_path(".wal");
    handles.fs.inject(lost);
    ensure(db.drop_keyspace("gone").is_err(), "a drop succeeded although the log failed")?;
    drop(gone);
    let handles = killed(db, &handles, 1);
    let everything =
        PowerLoss { seed: 1, files: Some(FileDamage::DropAll), names: Some(NameDamage::DropAll) };
    handles.fs.crash_with(everything);
    let db = open(&handles)?;
    let is_dropped = db.open_keyspace("gone").map_err(text)?.is_none();
    let is_there = db.get("older").map_err(text)?.is_some();
    ensure(is_there || !is_dropped, "a drop outlived what was written before it")
}

fn memtables_keep_to_their_budget() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = open(&handles)?;
    let mut most = 0;
    for round in 0..400 {
        db.put(format!("{round}"), vec![0; 40_000]).map_err(text)?;
        most = most.max(db.stats().memory.memtables_bytes);
    }
    ensure(
        most <= SMALL_MEMORY_BYTES / 2,
        &format!("memtables hold {most} bytes of a budget of {SMALL_MEMORY_BYTES}"),
    )
}

/// Deleted keys that a scan has walked once, and a batch that puts a key among them.
fn what_is_put_into_a_gap_is_seen() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = open(&handles)?;
    let other = db.keyspace("other").map_err(text)?;
    let spaces = [db.default_keyspace(), other];
    for (space, n) in spaces.iter().flat_map(|space| (0..200).map(move |n| (space, n))) {
        let key = format!("{n:03}");
        space.put(&key, "old").and_then(|()| space.delete(&key)).map_err(text)?;
    }
    for space in [0, 1, 0, 1] {
        ensure(spaces[space].iter().next().is_none(), "deleted keys are there")?;
    }
    ensure(db.stats().gaps_skipped > 0, "there is no gap")?;
    let mut batch = Batch::new();
    spaces.iter().for_each(|space| batch.put(space, "100", "new"));
    db.write(batch, WriteSync::No).map_err(text)?;
    for space in &spaces {
        let seen = space.iter().count();
        ensure(seen == 1, &format!("{seen} of one key seen in {}", space.name()))?;
        let mut cursor = space.cursor(ReadOptions::default());
        ensure(cursor.seek_last().map_err(text)?, "nothing is seen backward")?;
    }
    Ok(())
}

/// An iterator that is made while memory is short, moved once, and left while all that it reads is
/// overwritten, deleted and merged away.
fn an_iterator_shows_its_moment() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = open(&handles)?;
    let keys = ["a", "b", "c", "d", "e"];
    let expected: Vec<_> = keys.map(|key| (key.as_bytes().to_vec(), b"old".to_vec())).into();
    keys.iter().try_for_each(|key| db.put(key, "old")).map_err(text)?;
    let crowd = crowd(&db);
    let mut iter = db.iter();
    let mut shown = Vec::from_iter(iter.next());
    keys.iter().try_for_each(|key| db.put(key, "new")).map_err(text)?;
    db.flush()
        .and_then(|()| db.delete("b"))
        .and_then(|()| db.delete_range("c", "d"))
        .map_err(text)?;
    db.flush().and_then(|()| db.compact()).map_err(text)?;
    drop(crowd);
    shown.extend(iter);
    let shown: windrow::Result<Vec<_>> = shown.into_iter().collect();
    let shown = shown.map_err(text)?;
    let pairs = shown.iter().map(|(key, value)| (key.to_vec(), value.to_vec()));
    ensure(pairs.eq(expected), &format!("an iterator shows what came after it: {shown:?}"))
}

fn an_iterator_holds_no_memory() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = open(&handles)?;
    let value = vec![0; 20_000];
    db.put("a", &value).and_then(|()| db.put("b", &value)).map_err(text)?;
    let _crowd = crowd(&db);
    let before = db.stats().memory.readers_bytes;
    let mut iter = db.iter();
    ensure(matches!(iter.next(), Some(Ok(_))), "there is no entry")?;
    db.flush().map_err(text)?;
    handles.jobs.run_until_idle();
    let after = db.stats().memory.readers_bytes;
    ensure(
        after < before + value.len() as u64,
        &format!("readers held {before} bytes and now {after}: the memtable is kept"),
    )
}

fn a_close_leaves_nothing_to_do() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = with_contents(&handles)?;
    for round in 0..60 {
        db.put(format!("{round}"), vec![0; 4_000]).map_err(text)?;
    }
    ensure(handles.jobs.queued() > 0, "nothing was left to do before the close")?;
    db.close().map_err(text)?;
    ensure(handles.jobs.queued() == 0, "jobs are queued after a close")
}
