//! Golden directories: small databases that a released format wrote, which every later version
//! opens and reads (P21), and the refusal of a format newer than the program's own.
//!
//! `REWRITE=1 cargo test -p windrow-sim --test golden` writes those of the present format;
//! `golden/README.md` says when to do so.

#![allow(clippy::disallowed_methods, reason = "the golden directories lie in the source tree")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use windrow::{Db, Options};
use windrow_base::ErrorKind;
use windrow_env::testing::{Handles, env};
use windrow_format::current::{Current, FORMAT_VERSION};
use windrow_plan::preset::PRESETS;
use windrow_sim::rot::{CLOSED, CRASHES, Script, Specimen};
use windrow_testkit::op::Pair;
use windrow_testkit::subject::dump;
use windrow_testkit::text;
use windrow_testkit::variant::Variant;
use windrow_testkit::world::DIR;

/// The file of a golden directory's expected contents: a clock, and keyspaces with their pairs.
const CONTENTS: &str = "contents.txt";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

fn contents_text(now_ms: u64, contents: &[(String, Vec<Pair>)]) -> String {
    let mut out = format!("clock {now_ms}\n");
    for (name, pairs) in contents {
        let _ = writeln!(out, "keyspace {name}");
        for (key, value) in pairs {
            let _ = writeln!(out, "{} = {}", text::token(key), text::token(value));
        }
    }
    out
}

/// Returns the directories of the present format: a closed database of each preset, one of each
/// other kind of table, and a crashed one.
fn present() -> Vec<(String, &'static Variant, Script)> {
    let presets = PRESETS.iter().map(|(name, _)| *name);
    let closed = presets.chain(["lz4"]).map(|name| (name.to_owned(), Variant::named(name), CLOSED));
    let large = ("partitioned".to_owned(), Variant::named("partitioned index"), CLOSED.enlarged());
    let crashed = ("crashed".to_owned(), Variant::named("small"), CRASHES[0]);
    closed.chain([large, crashed]).collect()
}

fn write_present() {
    for (name, variant, script) in present() {
        let specimen = Specimen::new(variant, &script).expect("a database");
        let dir = root().join(format!("format-{FORMAT_VERSION}")).join(name);
        if dir.exists() {
            fs::remove_dir_all(&dir).expect("the old directory goes");
        }
        fs::create_dir_all(&dir).expect("a directory");
        for (file, _) in specimen.files() {
            fs::write(dir.join(file), specimen.bytes(file)).expect("a file");
        }
        let text = contents_text(specimen.now_ms(), specimen.contents());
        fs::write(dir.join(CONTENTS), text).expect("the contents");
    }
}

/// Reads every golden directory with its files.
fn directories() -> BTreeMap<String, Vec<(String, Vec<u8>)>> {
    let mut found = BTreeMap::new();
    for format in entries(&root()).into_iter().filter(|path| path.is_dir()) {
        for dir in entries(&format) {
            let name = dir.strip_prefix(root()).expect("beneath").display().to_string();
            let read = |path: PathBuf| {
                let name = path.file_name().expect("a name").to_string_lossy().into_owned();
                (name, fs::read(path).expect("a file"))
            };
            found.insert(name, entries(&dir).into_iter().map(read).collect());
        }
    }
    found
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(dir)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths
}

/// Makes a copy in memory, with the clock's time at its end. Returns it with its expected contents.
fn copy(files: &[(String, Vec<u8>)]) -> (Handles, String) {
    let (_, handles) = env(1);
    let mut contents = String::new();
    for (name, bytes) in files {
        if name == CONTENTS {
            contents = String::from_utf8(bytes.clone()).expect("text");
        } else {
            handles.fs.write_file(&Path::new(DIR).join(name), bytes);
        }
    }
    let clock = contents.lines().next().and_then(|line| line.strip_prefix("clock "));
    handles.clock.set_wall_ms(clock.and_then(|ms| ms.parse().ok()).expect("a clock"));
    (handles, contents)
}

fn options(handles: &Handles, read_only: bool) -> Options {
    let mut options = Variant::named("small").options().expect("valid options");
    options.components.env = Some(handles.env());
    options.create_if_missing = false;
    options.read_only = read_only;
    options
}

fn shown(db: &Db, contents: &str) -> String {
    let now = contents.lines().next().and_then(|line| line.strip_prefix("clock "));
    contents_text(now.and_then(|ms| ms.parse().ok()).expect("a clock"), &dump(db).expect("reads"))
}

fn version_on_disk(handles: &Handles) -> u32 {
    let current = handles.fs.read_file(&Path::new(DIR).join("CURRENT")).expect("CURRENT");
    Current::decode(&current).expect("sound").format_version
}

#[test]
fn every_golden_directory_opens_and_shows_what_it_held() {
    if std::env::var_os("REWRITE").is_some() {
        write_present();
    }
    let directories = directories();
    for (name, ..) in present() {
        let name = format!("format-{FORMAT_VERSION}/{name}");
        assert!(
            directories.contains_key(&name),
            "no golden directory {name}: see golden/README.md"
        );
    }
    for (name, files) in directories {
        let (handles, contents) = copy(&files);
        // Read-only first: it must write nothing (P17).
        let before = handles.fs.operations();
        let db =
            Db::open_with(DIR, options(&handles, true)).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(shown(&db, &contents), contents, "{name}, read-only");
        db.verify().and_then(|r| r.into_result()).unwrap_or_else(|e| panic!("{name}: {e}"));
        db.close().expect("a read-only database closes");
        drop(db);
        assert_eq!(handles.fs.operations(), before, "{name}: a read-only open writes");
        for (file, bytes) in files.iter().filter(|(file, _)| file != CONTENTS) {
            assert_eq!(
                handles.fs.read_file(&Path::new(DIR).join(file)).as_ref(),
                Some(bytes),
                "{name}"
            );
        }
        // Then for writing, merged into the shape of today's policy, and again.
        for _ in 0..2 {
            let db = Db::open_with(DIR, options(&handles, false))
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            // From here on the directory names logs and tables that an older program cannot read.
            assert_eq!(version_on_disk(&handles), FORMAT_VERSION, "{name}");
            assert_eq!(shown(&db, &contents), contents, "{name}");
            db.compact().unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(shown(&db, &contents), contents, "{name}, compacted");
            db.close().expect("it closes");
            drop(db);
            handles.jobs.discard();
        }
    }
}

/// Whether the tables of a golden directory were written before tables recorded their database.
/// These directories are never written again.
fn is_before_identity(name: &str) -> bool {
    name.starts_with("format-1/") || name.ends_with("-without-uid")
}

/// Whether a repaired database shows the pairs of the default keyspace, which alone keeps its name
/// without a manifest.
fn shows_default(handles: &Handles, contents: &str) -> bool {
    let db = Db::open_with(DIR, options(handles, false)).expect("it is repaired");
    let pairs = db.iter().map(|item| item.map(|(key, value)| (key.to_vec(), value.to_vec())));
    let pairs = pairs.collect::<Result<_, _>>().expect("it reads");
    let shown = contents_text(0, &[("default".to_owned(), pairs)]);
    db.close().expect("it closes");
    drop(db);
    handles.jobs.discard();
    let of_default = shown.split_once('\n').expect("a clock").1;
    contents.contains(&format!("\n{of_default}"))
}

/// Makes a table of another database.
fn foreign_table() -> Vec<u8> {
    let (_, handles) = env(7);
    let options = Options { create_if_missing: true, ..options(&handles, false) };
    let db = Db::open_with(DIR, options).expect("a database");
    db.put("foreign", "1").and_then(|()| db.flush()).expect("a table");
    db.close().expect("it closes");
    let files = handles.fs.files(Path::new(DIR));
    let table = files.iter().find(|file| file.ends_with(".sst")).expect("a table");
    handles.fs.read_file(&Path::new(DIR).join(table)).expect("its bytes")
}

/// Tables of earlier versions do not record their database. If the manifest is lost, a repair
/// accepts them and reports their number; it knows the database of all others.
#[test]
fn tables_that_do_not_say_whose_they_are_count() {
    let closed = directories().into_iter().filter(|(name, _)| !name.contains("crashed"));
    let (mut before, mut since) = (0, 0);
    for (name, files) in closed {
        let (handles, contents) = copy(&files);
        let tables = files.iter().filter(|(file, _)| file.ends_with(".sst")).count() as u64;
        let manifests = files.iter().filter(|(file, _)| file.starts_with("MANIFEST"));
        manifests.for_each(|(file, _)| handles.fs.remove_file(&Path::new(DIR).join(file)));
        let report = windrow::repair(DIR, options(&handles, false))
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let unknown = if is_before_identity(&name) { tables } else { 0 };
        *(if unknown > 0 { &mut before } else { &mut since }) += 1;
        assert!(report.tables_of_another_database.is_empty(), "{name}: {report:?}");
        assert_eq!(report.tables_of_unknown_database, unknown, "{name}: {report:?}");
        assert_eq!(report.tables_kept, tables, "{name}: {report:?}");
        assert!(shows_default(&handles, &contents), "{name}");
    }
    assert!(before > 0 && since > 0, "{before} directories of before, {since} of since then");
}

/// A table of another database, in a directory whose own tables do not record their database.
/// CURRENT records it: as long as another file confirms that, the foreign table is left out.
#[test]
fn a_foreign_table_among_tables_without_a_uid_is_left_out() {
    let foreign = foreign_table();
    let all = directories();
    for (name, files) in all.iter().filter(|(name, _)| is_before_identity(name)) {
        let (handles, contents) = copy(files);
        handles.fs.write_file(&Path::new(DIR).join("000777.sst"), &foreign);
        let manifests = files.iter().filter(|(file, _)| file.starts_with("MANIFEST"));
        manifests.for_each(|(file, _)| handles.fs.remove_file(&Path::new(DIR).join(file)));
        let report = windrow::repair(DIR, options(&handles, false))
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(report.tables_of_another_database, ["000777.sst"], "{name}: {report:?}");
        // After a crash the tables are in doubt without their manifest, the database's own
        // included.
        let is_closed = !name.contains("crashed");
        assert!(!is_closed || shows_default(&handles, &contents), "{name}");
    }
}

/// A format version or a feature that this program does not know is refused by every entry point,
/// before anything is written.
#[test]
fn a_newer_format_is_refused_without_a_trace() {
    let directories = directories();
    assert!(!directories.is_empty());
    for (name, files) in directories {
        let (handles, _) = copy(&files);
        let path = Path::new(DIR).join("CURRENT");
        let current =
            Current::decode(&handles.fs.read_file(&path).expect("CURRENT")).expect("sound");
        let newer = Current { format_version: FORMAT_VERSION + 1, ..current.clone() };
        let featured = Current { required_features: 1 << 40, ..current };
        for current in [newer, featured] {
            handles.fs.write_file(&path, &current.encode());
            let before = (handles.fs.operations(), handles.fs.files(Path::new(DIR)));
            let mut refusals = Vec::new();
            for (read_only, create) in [(false, false), (false, true), (true, false)] {
                let mut options = options(&handles, read_only);
                options.create_if_missing = create;
                refusals.push(Db::open_with(DIR, options).err());
            }
            refusals.push(windrow::repair(DIR, options(&handles, false)).err());
            for error in refusals {
                let kind = error.map(|error| error.kind());
                assert_eq!(kind, Some(ErrorKind::NotSupported), "{name}");
            }
            let after = (handles.fs.operations(), handles.fs.files(Path::new(DIR)));
            assert_eq!(after, before, "{name}: something was written");
        }
    }
}
