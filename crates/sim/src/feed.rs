//! The feed of changes after a crash: applied to an empty database, it makes the contents that came
//! back (P29).
//!
//! Owns: that database, and its comparison. Never does: write to the database that it reads.

use windrow::changes::Operation;
use windrow::{Db, InKeyspace, Options};
use windrow_env::Jobs;
use windrow_env::testing::env;
use windrow_testkit::compose::Composer;
use windrow_testkit::model::Model;
use windrow_testkit::op::Subject;
use windrow_testkit::oracle::compare;
use windrow_testkit::subject::Database;
use windrow_testkit::world::World;

/// Applies all changes of a database to an empty one, and compares that with the model. Returns
/// whether the feed has everything: it begins from scratch where no room was left for old logs,
/// and has no entries of ingestions.
///
/// # Errors
/// The fault, in words.
pub fn check(db: &Db, model: &Model, options: &Options) -> Result<bool, String> {
    if db.stats().changes_begin > 1 {
        return Ok(false);
    }
    let failed = |error: windrow::Error| format!("the feed of changes: {error}");
    let changes = db.changes(1, Default::default()).map_err(failed)?;
    let (env, handles) = env(1);
    handles.clock.set_wall_ms(db.now_ms());
    let mut options = options.clone();
    options.components.listener = None;
    options.settings.changes_bytes = 0;
    let mut mirror = Database::open(World::of(env, handles.clone()), options).map_err(failed)?;
    for op in &Composer::setup() {
        mirror.apply(op);
    }
    let mut next_seq = 1;
    for change in changes {
        let change = change.map_err(failed)?;
        if change.seq + 1 < next_seq {
            return Err(format!("change {} comes after {}", change.seq, next_seq - 1));
        }
        next_seq = change.seq + 1;
        if change.operations.iter().any(|op| matches!(op, Operation::Ingested { .. })) {
            return Ok(false);
        }
        change.apply(mirror.db()).map_err(failed)?;
        handles.jobs.step();
    }
    let last = db.snapshot().seq();
    if next_seq != last + 1 {
        return Err(format!("the feed of changes ends at {}, and {last} is visible", next_seq - 1));
    }
    // An empty keyspace is in no change.
    for name in model.keyspaces() {
        mirror.db().keyspace(&name).map_err(failed)?;
    }
    compare(mirror.db(), model).map_err(|why| format!("a mirror of the changes: {why}"))?;
    Ok(true)
}
