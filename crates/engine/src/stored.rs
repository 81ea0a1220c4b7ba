//! What a database keeps in addition to its data: the settings that it was last opened
//! with for writing, and its keyspaces, as the manifest has them.
//!
//! Reads only (but for a reader's lease next to a process that writes), and needs none of
//! what the user brings: a program may ask before it decides how to open. Never does: open with them; that is for
//! whoever asks.

use crate::follow::manifest_tail::read_records;
use crate::open::found::{fold_manifest, read_current, refuse_newer};
use crate::open::remains::refuse_foreign;
use std::collections::BTreeMap;
use std::path::Path;
use windrow_base::{ErrorKind, Result};
use windrow_env::Env;
use windrow_env::fs::LockMode;
use windrow_format::names;
use windrow_read::options::{KeyspaceSettings, Settings};
use windrow_store::host::place::enter;
use windrow_store::host::readers::ReaderLease;
use windrow_store::manifest::record::{Field, KeyspaceRecord, Record};

/// Settings that a database keeps in addition to its data.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StoredSettings {
    /// The settings. They are valid in this build; what was left out has its default.
    pub settings: Settings,
    /// What this build cannot take, each with the reason: a setting that it
    /// does not have, or a value that it does not know.
    pub left_out: Vec<String>,
}

/// A keyspace, and what has to be registered to use it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredKeyspace {
    /// Its name.
    pub name: String,
    /// The id of the comparator that orders its keys.
    pub comparator: String,
    /// The name of its merge operator, if it has one.
    pub merge_operator: Option<String>,
    /// What it has of its own, as far as this build knows it.
    pub settings: KeyspaceSettings,
}

impl StoredKeyspace {
    pub(crate) fn of(record: &KeyspaceRecord) -> StoredKeyspace {
        let KeyspaceRecord { name, comparator, merge_operator, .. } = record.clone();
        let settings = KeyspaceSettings::default();
        StoredKeyspace { name: name.to_string(), comparator, merge_operator, settings }
    }
}

/// Passes the records of the manifest in force to `each`. `None` if there is no
/// database; the inner result is what was wrong behind the records that were read.
///
/// A writer begins a new manifest, and removes the one that CURRENT named: where there is
/// none its lock is held, and next to one a reader's lease.
fn records(env: &Env, dir: &Path, mut each: impl FnMut(&Record)) -> Result<Option<Result<()>>> {
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

/// What [`crate::Db::stored_keyspaces`] gives, by this environment.
pub(crate) fn keyspaces(env: &Env, dir: &Path) -> Result<Option<Vec<StoredKeyspace>>> {
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

/// What [`crate::Db::stored_settings`] gives, by this environment.
pub(crate) fn read(env: &Env, dir: &Path) -> Result<Option<StoredSettings>> {
    let mut text = None;
    let folded = records(env, dir, |record| {
        text = record.settings().map(str::to_owned).or(text.take());
    })?;
    let Some(folded) = folded else { return Ok(None) };
    // Every manifest begins with a snapshot, which has them. Damage behind
    // that is for the open to tell, and no reason for a repair to forget them.
    if text.is_none() {
        folded?;
    }
    Ok(text.map(|text| {
        let (settings, left_out) = Settings::from_text_known(&text);
        StoredSettings { settings, left_out }
    }))
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::{Db, Options, Settings};
    use std::path::{Path, PathBuf};
    use windrow_env::testing::{Handles, env};

    const DIR: &str = "/db";

    fn options(handles: &Handles, settings: &Settings) -> Options {
        let mut options = Options { settings: settings.clone(), ..Options::default() };
        options.components.env = Some(handles.env());
        options
    }

    fn chosen() -> Settings {
        let mut settings = Settings::default();
        settings.set("reserve_bytes", "2MiB").unwrap();
        settings.set("preset", "leveled").unwrap();
        settings
    }

    fn image(handles: &Handles) -> Vec<(String, Option<Vec<u8>>)> {
        let names = handles.fs.files(Path::new(DIR)).into_iter();
        names.map(|name| (name.clone(), handles.fs.read_file(&Path::new(DIR).join(name)))).collect()
    }

    #[test]
    fn what_the_last_writer_was_given_comes_back() {
        let (env, handles) = env(1);
        let stored = || read(&env, Path::new(DIR));
        assert_eq!(stored().unwrap(), None);
        let db = Db::open_with(DIR, options(&handles, &chosen())).unwrap();
        db.close().unwrap();
        let before = image(&handles);
        let found = stored().unwrap().unwrap();
        assert_eq!((found.settings, found.left_out.len()), (chosen(), 0));
        assert!(image(&handles) == before, "asking wrote");
        // An open uses what it is given; one for reading stores nothing.
        let given = options(&handles, &Settings::default());
        let read_only = Options { read_only: true, ..given.clone() };
        Db::open_with(DIR, read_only).unwrap().close().unwrap();
        assert_eq!(stored().unwrap().unwrap().settings, chosen());
        Db::open_with(DIR, given).unwrap().close().unwrap();
        assert_eq!(stored().unwrap().unwrap().settings, Settings::default());
    }

    /// Next to a process that has it open, through many manifests of it.
    #[test]
    fn what_a_running_writer_has_is_read_next_to_it() {
        let (env, handles) = env(1);
        let mut settings = chosen();
        settings.set("manifest_bytes", "1KiB").unwrap();
        let db = Db::open_with(DIR, options(&handles, &settings)).unwrap();
        let mut names = vec!["default".to_owned()];
        let manifest = |handles: &Handles| {
            let files = handles.fs.files(Path::new(DIR)).into_iter();
            files.filter(|name| name.starts_with("MANIFEST-")).max().unwrap()
        };
        let first = manifest(&handles);
        for number in 0..60 {
            let name = format!("keyspace{number:02}");
            db.keyspace(&name).unwrap().put("key", "value").unwrap();
            names.push(name);
            db.flush().unwrap();
            assert_eq!(read(&env, Path::new(DIR)).unwrap().unwrap().settings, settings);
            let stored = super::keyspaces(&env, Path::new(DIR)).unwrap().unwrap();
            let stored: Vec<String> = stored.into_iter().map(|keyspace| keyspace.name).collect();
            assert_eq!(stored, names);
        }
        assert!(first < manifest(&handles), "the manifest is still the first");
        db.close().unwrap();
    }

    #[test]
    fn damage_behind_the_settings_does_not_hide_them() {
        let (env, handles) = env(1);
        let db = Db::open_with(DIR, options(&handles, &chosen())).unwrap();
        for key in ["a", "b"] {
            db.put(key, "value").unwrap();
            db.flush().unwrap();
        }
        db.close().unwrap();
        let is_manifest = |name: &String| name.contains("MANIFEST-");
        let names: Vec<String> = handles.fs.files(Path::new(DIR));
        let name = names.into_iter().find(is_manifest).unwrap();
        let path: PathBuf = Path::new(DIR).join(name);
        let bytes = handles.fs.read_file(&path).unwrap();
        let text = chosen().to_text();
        let settings_end = text.len()
            + bytes.windows(text.len()).position(|bytes| bytes == text.as_bytes()).unwrap();
        handles.fs.flip(&path, settings_end as u64 + 40, 1);
        let open = Db::open_with(DIR, options(&handles, &chosen()));
        assert!(open.unwrap_err().is_corruption());
        assert_eq!(read(&env, Path::new(DIR)).unwrap().unwrap().settings, chosen());
        handles.fs.flip(&path, settings_end as u64 - 1, 1);
        assert!(read(&env, Path::new(DIR)).unwrap_err().is_corruption());
    }
}
