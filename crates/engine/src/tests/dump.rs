//! Tests of `recover/src/dump.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::{Db, Options};
use std::path::Path;
use windrow_env::testing;
use windrow_format::names;
use windrow_recover::discovery::read_current;
use windrow_recover::dump::*;

/// A writer begins another manifest and removes the one that the reader will open.
#[test]
#[allow(clippy::disallowed_methods, reason = "the writer goes on meanwhile")]
fn the_manifest_that_goes_while_it_is_looked_for_is_not_missed() {
    let (env, handles) = testing::env(1);
    let mut options = Options::default();
    options.settings.manifest_bytes = 1 << 10;
    options.components.env = Some(handles.env());
    let (dir, db) = (Path::new("db"), Db::open_with("db", options).unwrap());
    let before = read_current(&env, dir).unwrap().manifest_number;
    let (writer, jobs) = (db.clone(), handles.jobs.clone());
    let act = move || {
        for n in 0..100 {
            writer.keyspace(&format!("space{n}")).unwrap();
            writer.drop_keyspace(&format!("space{n}")).unwrap();
        }
        writer.keyspace("last").unwrap();
        jobs.run_until_idle();
    };
    handles.fs.before_open("MANIFEST", 0, || std::thread::spawn(act).join().unwrap());
    let mut told = Vec::new();
    trees_of(&env, dir, &mut |trees| {
        told = trees.into_iter().map(|(name, _)| name).collect();
        Ok(())
    })
    .unwrap();
    assert!(read_current(&env, dir).unwrap().manifest_number > before);
    assert!(!handles.fs.files(dir).contains(&names::manifest(before)));
    assert_eq!(told, ["default", "last"]);
}
