//! Scenarios in which the wall clock is set back, or far ahead and back again.
//!
//! An entry without expiry stays, at any time of the clock; an entry that a merge has judged to be
//! expired does not come back. In this process, with a manual clock over real files and threads.
//! Owns: that clock. Never does: touch the system's.

use super::scenario::{Scenario, Verdict, passed};
use super::stage::{Stage, check, key, options, value};
use std::sync::Arc;
use std::time::Duration;
use windrow::env::Env;
use windrow::{Db, Options};
use windrow_env::testing::ManualClock;

/// The scenarios of this group.
pub(super) const SCENARIOS: &[Scenario] =
    &[("clock-set-back-while-open", while_open), ("clock-set-back-between-opens", between_opens)];

const DAY_MS: u64 = 86_400_000;
/// A moment long after the clock's own beginning, so that it can be set back.
const NOW_MS: u64 = 2_000_000_000_000;
/// The number of keys that never expire, and of those that do.
const LASTING: u64 = 1_500;
const PASSING: u64 = 300;

fn by_hand(clock: &Arc<ManualClock>) -> Result<Options, String> {
    let mut options = options()?;
    options.components.env = Some(Env { clock: clock.clone(), ..Env::os(2) });
    Ok(options)
}

fn open(stage: &Stage, clock: &Arc<ManualClock>) -> Result<Db, String> {
    Db::open_with(stage.at("db"), by_hand(clock)?).map_err(|e| format!("open: {e}"))
}

/// Writes keys that last, and in a keyspace of their own keys with a time to live of a day.
fn fill(db: &Db) -> windrow::Result<()> {
    let passing = db.keyspace("passing")?;
    for number in 0..LASTING {
        db.put(key(number), value("one", number))?;
    }
    for number in 0..PASSING {
        passing.put_with_ttl(key(number), value("one", number), Duration::from_millis(DAY_MS))?;
    }
    db.flush()
}

/// Returns how many of the keys that expire are visible.
fn passing(db: &Db) -> Result<u64, String> {
    let keyspace = db.keyspace("passing").map_err(|e| e.to_string())?;
    let found: windrow::Result<Vec<_>> = keyspace.iter().collect();
    found.map(|found| found.len() as u64).map_err(|e| e.to_string())
}

fn expect(what: &str, found: u64, wanted: u64) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{what}: {found} keys, not {wanted}")) }
}

fn while_open(stage: &Stage) -> Verdict {
    let clock = Arc::new(ManualClock::new());
    clock.set_wall_ms(NOW_MS);
    let db = open(stage, &clock)?;
    let failed = |e: windrow::Error| e.to_string();
    fill(&db).map_err(failed)?;
    expect("before they expire", passing(&db)?, PASSING)?;
    clock.set_wall_ms(NOW_MS + 2 * DAY_MS);
    expect("after they have expired", passing(&db)?, 0)?;
    db.compact().map_err(failed)?;
    clock.set_wall_ms(NOW_MS - 300 * DAY_MS);
    expect("set back after a merge", passing(&db)?, 0)?;
    expect("those that last", check(&db, "one")?, LASTING)?;
    for number in LASTING..LASTING + 200 {
        db.put(key(number), value("one", number)).map_err(failed)?;
    }
    db.close().map_err(failed)?;
    stage.holds(&stage.at("db"), "one", LASTING + 200)?;
    passed(format!("{} keys last, {PASSING} expired for good", LASTING + 200))
}

fn between_opens(stage: &Stage) -> Verdict {
    let clock = Arc::new(ManualClock::new());
    clock.set_wall_ms(NOW_MS);
    let failed = |e: windrow::Error| e.to_string();
    let db = open(stage, &clock)?;
    fill(&db).map_err(failed)?;
    clock.set_wall_ms(NOW_MS + 2 * DAY_MS);
    db.compact().map_err(failed)?;
    db.close().map_err(failed)?;
    for back_days in [1, 400, 20_000] {
        clock.set_wall_ms(NOW_MS.saturating_sub(back_days * DAY_MS));
        let db = open(stage, &clock)?;
        expect("reopened before it was written", passing(&db)?, 0)?;
        expect("those that last", check(&db, "one")?, LASTING)?;
        // A new expiry counts from the time that merges have used.
        let new = db.keyspace("new").map_err(failed)?;
        let day = Duration::from_millis(DAY_MS);
        new.put_with_ttl(key(back_days), "new", day).map_err(failed)?;
        if new.get(key(back_days)).map_err(failed)?.is_none() {
            return Err("what was just written with a day to live is gone".into());
        }
        db.close().map_err(failed)?;
    }
    stage.holds(&stage.at("db"), "one", LASTING)?;
    passed(format!("{LASTING} keys last through three opens in the past"))
}
