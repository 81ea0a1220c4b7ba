//! Fuzz target: a whole directory, which is opened, read, written to, closed, opened again; and
//! repaired.
//!
//! Owns: the sequence of uses. Never does: judge the contents.

use super::archive::{Archive, CREATE, READ_ONLY, REPAIR, VARIANT_SHIFT, VERIFY_ON_OPEN};
use super::checksums::raw_and_recomputed;
use std::path::Path;
use windrow::{Batch, Db, InKeyspace, Options, WriteSync, repair};
use windrow_base::Result;
use windrow_env::testing::{CrashFs, Handles, env};
use windrow_testkit::variant::Variant;
use windrow_testkit::world::DIR;

/// The most entries that a scan reads of a keyspace: damaged bytes may mean many entries, and each
/// is read like the first.
const ENTRIES_MAX: usize = 1_000;

pub(super) fn run(input: &[u8]) -> bool {
    let recompute = |bytes: &mut Vec<u8>| {
        let mut archive = Archive::parse(bytes);
        archive.recompute_checksums();
        *bytes = archive.to_bytes();
    };
    raw_and_recomputed(input, recompute, |bytes| use_directory(&Archive::parse(&bytes)))
}

fn use_directory(archive: &Archive) -> bool {
    let (_, handles) = env(1);
    archive.write(&handles.fs, Path::new(DIR));
    let accepted = open_and_use(&handles, handles.fs.clone(), archive.flags).is_ok();
    if archive.flags & REPAIR != 0 {
        let (_, handles) = env(2);
        archive.write(&handles.fs, Path::new(DIR));
        let options = options(&handles, handles.fs.clone(), archive.flags);
        if repair(DIR, options).is_ok() {
            handles.jobs.discard();
            // A database that repair accepts may still have damaged blocks.
            _ = open_and_use(&handles, handles.fs.clone(), archive.flags & !READ_ONLY);
        }
    }
    accepted
}

fn options(handles: &Handles, fs: CrashFs, flags: u8) -> Options {
    let handles = Handles { fs, ..handles.reborn(3) };
    let variants: Vec<&Variant> = Variant::simulated().collect();
    let variant = variants[usize::from(flags >> VARIANT_SHIFT) % variants.len()];
    let mut options = variant.options().expect("a valid variant");
    options.settings.verify_on_open = flags & VERIFY_ON_OPEN != 0;
    options.read_only = flags & READ_ONLY != 0;
    options.create_if_missing = flags & CREATE != 0;
    options.components.env = Some(handles.env());
    options
}

fn open_and_use(handles: &Handles, fs: CrashFs, flags: u8) -> Result<()> {
    let db = Db::open_with(DIR, options(handles, fs.clone(), flags))?;
    let used = use_database(&db);
    let closed = db.close();
    drop(db);
    used?;
    closed?;
    // The next open must be able to read the writes of this one.
    let db = Db::open_with(DIR, options(handles, fs, flags))?;
    read(&db)?;
    db.close()
}

fn read(db: &Db) -> Result<()> {
    for name in db.keyspaces() {
        let Some(keyspace) = db.open_keyspace(&name)? else { continue };
        for item in keyspace.iter().rev().take(ENTRIES_MAX) {
            item?;
        }
        for (i, item) in keyspace.iter().take(ENTRIES_MAX).enumerate() {
            let (key, _) = item?;
            if i % 4 == 0 {
                keyspace.get(&key)?;
            }
        }
    }
    Ok(())
}

/// Runs every operation that reads or rewrites the directory's contents, each of them even if
/// others failed.
fn use_database(db: &Db) -> Result<()> {
    let mut outcomes = vec![read(db)];
    let mut batch = Batch::new();
    batch.put(db, "key", "value");
    batch.delete_range(db, "a", "b");
    for name in db.keyspaces() {
        if let Ok(Some(keyspace)) = db.open_keyspace(&name) {
            debug_assert_eq!(keyspace.database_id(), db.database_id());
            batch.put(&keyspace, "key", "value");
        }
    }
    outcomes.push(db.write(batch, WriteSync::Yes).map(drop));
    outcomes.push(db.keyspace("made here").map(drop));
    outcomes.push(db.flush());
    outcomes.push(db.compact());
    outcomes.push(db.wait_idle());
    outcomes.push(read(db));
    outcomes.push(db.verify().and_then(|report| report.into_result()).map(drop));
    outcomes.into_iter().collect()
}
