//! Followers: what they read stays, and counts once.
//!
//! Owns: the scenarios. Never does: run them next to threads (`engine/tests/it/follower.rs`
//! does) or processes (`torture follow`).

use super::steps::{ensure, open, options, text};
use windrow::{Follower, KeyspaceOptions};
use windrow_env::testing::env;
use windrow_testkit::world::DIR;

fn tables(handles: &windrow_env::testing::Handles) -> usize {
    let names = handles.fs.files(DIR.as_ref());
    names.iter().filter(|name| name.ends_with(".sst")).count()
}

/// Tables that were merged away are there as long as somebody reads them.
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

/// Merge operands that were in the log when they were read, and are in tables now.
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
