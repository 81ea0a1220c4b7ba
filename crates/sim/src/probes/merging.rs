//! Scenarios that happen while a merge runs: its compaction filter, which the merge calls, runs
//! them.
//!
//! Owns: that filter, and the scenarios. Never does: draw anything by seed, or judge the output of
//! an undisturbed merge (the engine's own tests do).

use super::steps::{ensure, options, text};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use windrow::{CompactionFilter, Db, FilterDecision, Iter, Keyspace, Snapshot};
use windrow_env::sync::{Mutex, Rank};
use windrow_env::testing::{Handles, ManualClock, env};
use windrow_env::{Clock, FileSystem};
use windrow_testkit::world::DIR;

/// Time to live of the value that expires.
const TTL_MS: u64 = 1_000;
const HOUR_MS: u64 = 3_600_000;
/// The keyspace whose merges the filter sees.
const KEYSPACE: &str = "filtered";

/// The event that happens while a merge runs.
enum Event {
    Snapshot,
    /// The clock goes back by an hour, and a snapshot is taken.
    Back(Arc<ManualClock>),
    /// The keyspace is dropped.
    Drop,
}

/// Runs its event at the first value that it is shown once it has a database.
struct Meanwhile {
    db: Mutex<Option<Db>>,
    decision: FilterDecision,
    event: Event,
    taken: Mutex<Option<Snapshot>>,
}

impl Meanwhile {
    fn play(&self, db: &Db) {
        if let Event::Back(clock) = &self.event {
            clock.set_wall_ms(clock.wall_ms() - HOUR_MS);
        }
        match &self.event {
            Event::Drop => db.drop_keyspace(KEYSPACE).expect("it is there"),
            Event::Snapshot | Event::Back(_) => *self.taken.lock() = Some(db.snapshot()),
        }
    }
}

impl CompactionFilter for Meanwhile {
    fn name(&self) -> &str {
        "meanwhile"
    }

    fn filter(&self, _level: u32, _key: &[u8], _value: &[u8]) -> FilterDecision {
        let db = self.db.lock().take();
        if let Some(db) = db {
            self.play(&db);
        }
        self.decision.clone()
    }
}

/// A database with a keyspace under such a filter: `a`, `b`, and `c`, which has expired if the
/// clock will go back.
struct Scenario {
    handles: Handles,
    db: Db,
    keyspace: Keyspace,
    filter: Arc<Meanwhile>,
}

fn scenario(
    decision: FilterDecision,
    event: impl Fn(&Handles) -> Event,
) -> Result<Scenario, String> {
    let (_, handles) = env(1);
    let event = event(&handles);
    let expired_ms = if matches!(event, Event::Back(_)) { 2 * TTL_MS } else { 0 };
    let db = Mutex::new(Rank::INNERMOST, None);
    let filter = Meanwhile { db, decision, event, taken: Mutex::new(Rank::INNERMOST, None) };
    let filter = Arc::new(filter);
    let mut options = options(&handles);
    options.components.compaction_filters.push((KEYSPACE.to_owned(), filter.clone()));
    let db = Db::open_with(DIR, options).map_err(text)?;
    let keyspace = db.keyspace(KEYSPACE).map_err(text)?;
    keyspace.put("a", "1").and_then(|()| keyspace.put("b", "2")).map_err(text)?;
    keyspace.put_with_ttl("c", "3", Duration::from_millis(TTL_MS)).map_err(text)?;
    keyspace.flush().map_err(text)?;
    handles.clock.advance_ms(expired_ms);
    Ok(Scenario { handles, db, keyspace, filter })
}

/// Compacts, with the event in the middle, and returns the snapshot that was taken.
fn compact_meanwhile(scenario: &Scenario) -> Result<Snapshot, String> {
    *scenario.filter.db.lock() = Some(scenario.db.clone());
    scenario.keyspace.compact().map_err(text)?;
    let snapshot = scenario.filter.taken.lock().take();
    snapshot.ok_or("no merge met the filter".to_owned())
}

/// Checks the snapshot's entries, whatever the filter removed.
fn check_snapshot(scenario: &Scenario, snapshot: &Snapshot) -> Result<(), String> {
    let seen = shown(scenario.keyspace.range_at(snapshot, ..))?;
    ensure(seen == "a1 b2 c3 ", &format!("the snapshot sees {seen}"))?;
    let repeated = scenario.db.stats().merges_repeated;
    ensure(repeated == 1, &format!("{repeated} merges were done again"))
}

/// Returns all entries of an iterator, as text.
fn shown(iter: Iter) -> Result<String, String> {
    let seen: windrow::Result<Vec<_>> = iter.collect();
    let seen = seen.map_err(text)?;
    Ok(seen.iter().map(|(k, v)| format!("{}{} ", k.escape_ascii(), v.escape_ascii())).collect())
}

/// An entry that a filter removes while a snapshot is taken stays for that snapshot, and goes when
/// a merge meets it once more.
pub(super) fn a_filter_takes_nothing_from_a_snapshot() -> Result<(), String> {
    let cases = [(FilterDecision::Remove, ""), (FilterDecision::Change(b"x".into()), "ax bx cx ")];
    for (decision, filtered) in cases {
        let scenario = scenario(decision, |_| Event::Snapshot)?;
        let snapshot = compact_meanwhile(&scenario)?;
        check_snapshot(&scenario, &snapshot)?;
        drop(snapshot);
        let keyspace = &scenario.keyspace;
        keyspace.put("a", "1").and_then(|()| keyspace.flush()).map_err(text)?;
        keyspace.compact().map_err(text)?;
        let seen = shown(keyspace.iter())?;
        ensure(seen == filtered, &format!("after the filter {seen}is left"))?;
    }
    Ok(())
}

/// A merge finds an entry expired, but for a snapshot taken after the clock went back it is not.
pub(super) fn a_clock_goes_back_under_a_merge() -> Result<(), String> {
    let scenario = scenario(FilterDecision::Keep, |handles| Event::Back(handles.clock.clone()))?;
    let snapshot = compact_meanwhile(&scenario)?;
    check_snapshot(&scenario, &snapshot)
}

/// The output of a merge for a keyspace that was dropped meanwhile goes with it.
pub(super) fn a_dropped_keyspace_leaves_no_table() -> Result<(), String> {
    let scenario = scenario(FilterDecision::Keep, |_| Event::Drop)?;
    let gone = compact_meanwhile(&scenario).is_err();
    ensure(gone, "a keyspace that was dropped is compacted")?;
    drop(scenario.keyspace);
    scenario.handles.jobs.run_until_idle();
    let names = scenario.handles.fs.list(Path::new(DIR)).map_err(text)?;
    let tables: Vec<_> = names.iter().filter(|name| name.ends_with(".sst")).collect();
    ensure(tables.is_empty(), &format!("{tables:?} are left of it"))
}
