//! Tests of `recover/src/stored_settings.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::settings::Settings;
use crate::{Db, Options};
use std::path::{Path, PathBuf};
use windrow_env::testing::{Handles, env};
use windrow_recover::stored_settings::read;

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
    // An open uses the settings that it is given. An open for reading stores none.
    let given = options(&handles, &Settings::default());
    let read_only = Options { read_only: true, ..given.clone() };
    Db::open_with(DIR, read_only).unwrap().close().unwrap();
    assert_eq!(stored().unwrap().unwrap().settings, chosen());
    Db::open_with(DIR, given).unwrap().close().unwrap();
    assert_eq!(stored().unwrap().unwrap().settings, Settings::default());
}

/// Concurrently with a process that has it open, through many of its manifests.
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
        let stored =
            windrow_recover::stored_settings::keyspaces(&env, Path::new(DIR)).unwrap().unwrap();
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
    let settings_end =
        text.len() + bytes.windows(text.len()).position(|bytes| bytes == text.as_bytes()).unwrap();
    handles.fs.flip(&path, settings_end as u64 + 40, 1);
    let open = Db::open_with(DIR, options(&handles, &chosen()));
    assert!(open.unwrap_err().is_corruption());
    assert_eq!(read(&env, Path::new(DIR)).unwrap().unwrap().settings, chosen());
    handles.fs.flip(&path, settings_end as u64 - 1, 1);
    assert!(read(&env, Path::new(DIR)).unwrap_err().is_corruption());
}
