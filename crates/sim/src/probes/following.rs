//! Scenarios of followers: the files that they read stay, and each operand counts once.
//!
//! Owns: the scenarios. Never does: run them next to threads (`engine/tests/it/follower.rs`
//! does) or processes (`torture follow`).

use super::steps::{ensure, open, options, text};
use windrow::{Db, Follower, KeyspaceOptions};
use windrow_env::testing::{Handles, env};
use windrow_testkit::world::DIR;

fn tables(handles: &Handles) -> usize {
    let names = handles.fs.files(DIR.as_ref());
    names.iter().filter(|name| name.ends_with(".sst")).count()
}

/// Tables that were merged away stay as long as a follower reads them.
pub(super) fn files_stay_for_a_follower() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = open(&handles)?;
    let rewrite = || {
        (0..4).try_for_each(|n| {
            (0..50).try_for_each(|key| db.put(format!("k{key:02}"), format!("{n}")))?;
            db.flush()
        })?;
        db.compact()
    };
    rewrite().map_err(text)?;
    let follower = Follower::open_with(DIR, options(&handles)).map_err(text)?;
    let held = tables(&handles);
    rewrite().map_err(text)?;
    handles.jobs.run_until_idle();
    ensure(tables(&handles) > held, "tables went that a follower reads")?;
    let read = follower.db().count(..).map_err(text)?;
    ensure(read == 50, "a follower misses keys")?;
    follower.refresh().map_err(text)?;
    handles.jobs.fire_timers();
    handles.jobs.run_until_idle();
    ensure(tables(&handles) <= held, "tables stay that nobody reads")
}

/// Merge operands that were in the log when the follower read them, and are in tables now.
pub(super) fn operands_count_once() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = open(&handles)?;
    let asked =
        KeyspaceOptions { merge_operator: Some("add".into()), ..KeyspaceOptions::default() };
    let sums = db.keyspace_with("sums", asked).map_err(text)?;
    let follower = Follower::open_with(DIR, options(&handles)).map_err(text)?;
    let sum = |expected: u64| {
        follower.refresh().map_err(text)?;
        let shown = follower.db().open_keyspace("sums").map_err(text)?.ok_or("no keyspace")?;
        let value = shown.get("k").map_err(text)?;
        ensure(value.as_deref() == Some(&expected.to_le_bytes()[..]), "a sum of operands")
    };
    for n in 1..=4 {
        sums.merge("k", 1u64.to_le_bytes()).map_err(text)?;
        sum(2 * n - 1)?;
        db.flush().map_err(text)?;
        sum(2 * n - 1)?;
        sums.merge("k", 1u64.to_le_bytes()).map_err(text)?;
        sum(2 * n)?;
    }
    Ok(())
}

/// Lets the writer go on between a follower's reads of the manifest and of the log.
#[allow(clippy::disallowed_methods, reason = "another process is another thread here")]
fn between_manifest_and_log(handles: &Handles, act: impl FnOnce() -> bool + Send + 'static) {
    handles.fs.before_open(".wal", 0, || {
        let went = std::thread::spawn(act).join();
        assert!(went.is_ok_and(|went| went), "the writer could not go on");
    });
}

/// A write after an ingestion, while the follower has an older manifest.
pub(super) fn nothing_is_shown_without_an_ingestion_before_it() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = open(&handles)?;
    let space = db.keyspace("space").map_err(text)?;
    db.put("a", "1").map_err(text)?;
    let writer = db.clone();
    between_manifest_and_log(&handles, move || {
        let ingested = space.ingest().and_then(|mut ingest| {
            ingest.put("b", "2")?;
            ingest.finish()
        });
        ingested.is_ok() && writer.put("c", "3").is_ok()
    });
    let follower = Follower::open_with(DIR, options(&handles)).map_err(text)?;
    let shown = follower.db();
    let has = |name: &str, key: &str| {
        let space = shown.open_keyspace(name).map_err(text)?.ok_or("no keyspace")?;
        space.contains_key(key).map_err(text)
    };
    ensure(has("default", "a")?, "what was there before is not shown")?;
    ensure(
        has("space", "b")? || !has("default", "c")?,
        "a write is shown without the ingestion before it",
    )
}

/// The log that the follower read records the length of a later manifest.
pub(super) fn a_copy_opens_whatever_the_writer_did_meanwhile() -> Result<(), String> {
    let (_, handles) = env(1);
    let mut small = options(&handles);
    small.settings.set("manifest_bytes", "1KiB").map_err(text)?;
    let db = Db::open_with(DIR, small).map_err(text)?;
    db.put("a", "1").map_err(text)?;
    let writer = db.clone();
    between_manifest_and_log(&handles, move || {
        // The manifest is written again a few times.
        let rolled = (0..40).try_for_each(|n| {
            let name = format!("keyspace{n}");
            writer.keyspace(&name).and_then(|_| writer.drop_keyspace(&name))
        });
        rolled.and_then(|()| writer.put("b", "2")).is_ok()
    });
    let follower = Follower::open_with(DIR, options(&handles)).map_err(text)?;
    let shown = follower.db().count(..).map_err(text)?;
    follower.checkpoint("/copy").map_err(text)?;
    let copy = Db::open_with("/copy", options(&handles)).map_err(text)?;
    ensure(copy.count(..).map_err(text)? == shown, "a copy lacks what was shown")
}
