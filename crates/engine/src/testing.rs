//! Access for harnesses to parts that a caller only reaches together with others (feature
//! `testing`).
//!
//! Owns: these entry points. Never does: anything that a released program could use.

use crate::db::Db;
use std::path::Path;
use windrow_base::{FileNumber, Result};
use windrow_env::Env;
use windrow_format::block::Charge;
use windrow_read::options::Components;
use windrow_recover::discovery::fold_manifest;
use windrow_store::manifest::record::ManifestRecord;
use windrow_store::manifest::state::ManifestState;

/// Memory that is taken from the readers of a database until this is dropped.
pub struct Crowd(#[allow(dead_code)] Charge);

/// Takes as much memory as all readers of a database may hold, so that its iterators give up their
/// places.
pub fn crowd(db: &Db) -> Crowd {
    let database = db.database();
    Crowd(database.caches.blocks.hold(database.shares.reads_bytes(database.shares.one_in_use())))
}

/// Folds a manifest as an open does, and its snapshot once more: a state must not change by being
/// written. Returns the number of keyspaces.
///
/// # Errors
/// The errors that an open would return for the manifest.
///
/// # Panics
/// If the snapshot is refused, or folds to another state.
pub fn refold_manifest(
    env: &Env,
    dir: &Path,
    number: FileNumber,
    components: &Components,
) -> Result<usize> {
    let order_of = |id: &str| components.key_order(id);
    let mut state = ManifestState::default();
    fold_manifest(env, dir, number, None, |record| state.apply(record, &order_of))?;
    let snapshot = state.snapshot();
    let mut bytes = Vec::new();
    snapshot.encode(&mut bytes);
    let read = ManifestRecord::decode(&bytes).expect("a snapshot that was just made is read");
    assert_eq!(read, snapshot, "a snapshot is read as it was written");
    let mut again = ManifestState::default();
    again.apply(&read, &order_of).expect("a snapshot that was just made is folded");
    assert_eq!(again.snapshot(), snapshot, "a state outlives its snapshot");
    Ok(state.keyspaces.len())
}
