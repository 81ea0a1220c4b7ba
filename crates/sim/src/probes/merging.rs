//! Scenes that happen while a merge runs: its compaction filter, which the
//! merge calls, is where they are played.
//!
//! Owns: that filter, and the scenes. Never does: draw anything by seed, or
//! judge what a merge writes without anybody looking (`merge/elide` has that).

use crate::probes::{ensure, options, text};
use std::sync::Arc;
use std::time::Duration;
use windrow::{CompactionFilter, Db, FilterDecision, Iter, Snapshot};
use windrow_env::Clock;
use windrow_env::sync::Mutex;
use windrow_env::testing::{ManualClock, env};
use windrow_testkit::world::DIR;

/// How long the value lives that expires.
const TTL_MS: u64 = 1_000;
const HOUR_MS: u64 = 3_600_000;

/// Takes a snapshot at the first value it is shown once it has a database.
struct Meanwhile {
    db: Mutex<Option<Db>>,
    decision: FilterDecision,
    /// Set back by an hour before that, if there is one.
    clock: Option<Arc<ManualClock>>,
    taken: Mutex<Option<Snapshot>>,
}

impl CompactionFilter for Meanwhile {
    fn name(&self) -> &str {
        "meanwhile"
    }

    fn filter(&self, _level: u32, _key: &[u8], _value: &[u8]) -> FilterDecision {
        if let Some(db) = self.db.lock().take() {
            if let Some(clock) = &self.clock {
                clock.set_wall_ms(clock.wall_ms() - HOUR_MS);
            }
            *self.taken.lock() = Some(db.snapshot());
        }
        self.decision.clone()
    }
}

/// A database under such a filter: `a` and `b`, and `c`, which has expired if
/// the clock will go back.
fn scene(decision: FilterDecision, goes_back: bool) -> Result<(Db, Arc<Meanwhile>), String> {
    let (_, handles) = env(1);
    let clock = goes_back.then(|| handles.clock.clone());
    let filter = Meanwhile { db: Mutex::default(), decision, clock, taken: Mutex::default() };
    let filter = Arc::new(filter);
    let mut options = options(&handles);
    options.components.compaction_filters.push(("default".to_owned(), filter.clone()));
    let db = Db::open_with(DIR, options).map_err(text)?;
    db.put("a", "1").and_then(|()| db.put("b", "2")).map_err(text)?;
    db.put_with_ttl("c", "3", Duration::from_millis(TTL_MS)).map_err(text)?;
    db.flush().map_err(text)?;
    handles.clock.advance_ms(if goes_back { 2 * TTL_MS } else { 0 });
    Ok((db, filter))
}

/// Compacts, and gives the snapshot that was taken in the middle.
fn compact_meanwhile(db: &Db, filter: &Meanwhile) -> Result<Snapshot, String> {
    *filter.db.lock() = Some(db.clone());
    db.compact().map_err(text)?;
    let snapshot = filter.taken.lock().take();
    snapshot.ok_or("no merge met the filter".to_owned())
}

/// All that an iterator gives, as text.
fn shown(iter: Iter) -> Result<String, String> {
    let seen: windrow::Result<Vec<_>> = iter.collect();
    let seen = seen.map_err(text)?;
    Ok(seen.iter().map(|(k, v)| format!("{}{} ", k.escape_ascii(), v.escape_ascii())).collect())
}

/// What a filter takes while a snapshot is taken stays for that snapshot, and
/// goes when a merge meets it once more.
pub(super) fn a_filter_takes_nothing_from_a_snapshot() -> Result<(), String> {
    let cases = [(FilterDecision::Remove, ""), (FilterDecision::Change(b"x".into()), "ax bx cx ")];
    for (decision, filtered) in cases {
        let (db, filter) = scene(decision, false)?;
        let snapshot = compact_meanwhile(&db, &filter)?;
        let seen = shown(snapshot.range::<&str>(..))?;
        ensure(seen == "a1 b2 c3 ", &format!("the snapshot sees {seen}"))?;
        drop(snapshot);
        db.put("a", "1").and_then(|()| db.flush()).and_then(|()| db.compact()).map_err(text)?;
        let seen = shown(db.iter())?;
        ensure(seen == filtered, &format!("after the filter {seen}is left"))?;
    }
    Ok(())
}

/// A merge finds an entry expired, and a snapshot does not that was taken
/// after the clock went back.
pub(super) fn a_clock_goes_back_under_a_merge() -> Result<(), String> {
    let (db, filter) = scene(FilterDecision::Keep, true)?;
    let snapshot = compact_meanwhile(&db, &filter)?;
    let seen = shown(snapshot.range::<&str>(..))?;
    ensure(seen == "a1 b2 c3 ", &format!("the snapshot sees {seen}"))
}
