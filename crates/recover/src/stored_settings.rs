//! The metadata that a database keeps in addition to its data: the settings of the last open for
//! writing, and its keyspaces, as the manifest has them.
//!
//! It needs none of the user's components, so a program may ask before it decides how to open. It
//! only reads, except for a reader's lease in a directory where another process writes.
//!
//! Owns: the two types, and reading them. Never does: open a database with them.

use crate::discovery::manifest_tail::read_records;
use crate::discovery::remains::refuse_foreign;
use crate::discovery::{fold_manifest, read_current, refuse_newer};
use std::collections::BTreeMap;
use std::path::Path;
use windrow_base::{ErrorKind, Result};
use windrow_env::Env;
use windrow_env::fs::LockMode;
use windrow_format::names;
use windrow_read::options::{KeyspaceSettings, Settings};
use windrow_store::host::database_directory::enter;
use windrow_store::host::readers::ReaderLease;
use windrow_store::manifest::record::{Field, KeyspaceRecord, ManifestRecord};

/// Settings that a database keeps in addition to its data.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StoredSettings {
    /// The settings. They are valid in this build; a setting that was left out has its default.
    pub settings: Settings,
    /// The settings that this build cannot use, each with the reason: it does not have the setting,
    /// or does not know the value.
    pub left_out: Vec<String>,
}

/// A keyspace, and the components that must be registered to use it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredKeyspace {
    /// Its name.
    pub name: String,
    /// The id of the comparator that orders its keys.
    pub comparator: String,
    /// The name of its merge operator, if it has one.
    pub merge_operator: Option<String>,
    /// The settings of its own, as far as this build knows them.
    pub settings: KeyspaceSettings,
}

impl StoredKeyspace {
    #[doc(hidden)]
    pub fn of(record: &KeyspaceRecord) -> StoredKeyspace {
        let KeyspaceRecord { name, comparator, merge_operator, .. } = record.clone();
        let settings = KeyspaceSettings::default();
        StoredKeyspace { name: name.to_string(), comparator, merge_operator, settings }
    }
}

/// Passes the records of the manifest in force to `each`. `None` if there is no database. The inner
/// result has the error behind the records that were read.
///
/// A writer begins a new manifest, and removes the one that CURRENT named. So where no process
/// writes the lock is held, and where one does a reader's lease.
fn records(
    env: &Env,
    dir: &Path,
    mut each: impl FnMut(&ManifestRecord),
) -> Result<Option<Result<()>>> {
    if !env.fs.exists(dir)? {
        return Ok(None);
    }
    let (env, dir) = &enter(env, dir)?;
    refuse_newer(env, dir)?;
    refuse_foreign(env, dir)?;
    if !env.fs.exists(&dir.join(names::CURRENT))? {
        return Ok(None);
    }
    let _lock = match env.fs.lock(&dir.join(names::LOCK), LockMode::Shared) {
        Ok(lock) => lock,
        Err(error) if error.kind() == ErrorKind::Busy => {
            let _lease = ReaderLease::take(env, dir)?;
            let current = read_current(env, dir)?;
            return Ok(Some(read_records(env, dir, &current, &mut 0, &mut |record| {
                each(record);
                Ok(())
            })));
        }
        Err(error) => return Err(error),
    };
    let current = read_current(env, dir)?;
    let (number, uid) = (current.manifest_number, Some(current.manifest_uid));
    let folded = fold_manifest(env, dir, number, uid, |record| {
        each(record);
        Ok(())
    });
    Ok(Some(folded.map(drop)))
}

/// The result of `Db::stored_keyspaces`, with this environment.
pub fn keyspaces(env: &Env, dir: &Path) -> Result<Option<Vec<StoredKeyspace>>> {
    let mut known = BTreeMap::new();
    let folded = records(env, dir, |record| {
        for field in &record.0 {
            match field {
                Field::Snapshot => known.clear(),
                Field::KeyspaceCreate(made) => _ = known.insert(made.id, StoredKeyspace::of(made)),
                Field::KeyspaceSettings(id, text) => {
                    if let Some(keyspace) = known.get_mut(id) {
                        keyspace.settings = KeyspaceSettings::from_text_known(text);
                    }
                }
                Field::KeyspaceDrop(id) => _ = known.remove(id),
                _ => {}
            }
        }
    })?;
    let Some(folded) = folded else { return Ok(None) };
    folded?;
    Ok(Some(known.into_values().collect()))
}

/// The result of `Db::stored_settings`, with this environment.
pub fn read(env: &Env, dir: &Path) -> Result<Option<StoredSettings>> {
    let mut text = None;
    let folded = records(env, dir, |record| {
        text = record.settings().map(str::to_owned).or(text.take());
    })?;
    let Some(folded) = folded else { return Ok(None) };
    // Every manifest begins with a snapshot, which has the settings. Damage behind that is reported
    // by the open, and no reason for a repair to forget them.
    if text.is_none() {
        folded?;
    }
    Ok(text.map(|text| {
        let (settings, left_out) = Settings::from_text_known(&text);
        StoredSettings { settings, left_out }
    }))
}
