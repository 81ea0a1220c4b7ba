//! `torture small`: a database on a tmpfs of a few MiB, under default and under the smallest
//! settings: opened, filled until it refuses, flushed, merged, closed, opened again; then room is
//! made, and everything must work again, by `resume` in one half of the cases and by reopening in
//! the other.
//!
//! Every error on the way must be `NoSpace`, nothing acknowledged may be missing, and no unused
//! room may stay reserved. Owns: the mount, which needs root or a user namespace of its own
//! (`unshare -rm`). Never does: use more than one process; kills are for `torture kill`.

use super::plan::{Failure, Outcome};
use super::stop;
use clap::Args;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use windrow::{Db, Error, ErrorKind, Options, WriteSync};
use windrow_env::testing::Rng;

/// Set if the program runs in a namespace that it asked for.
const INSIDE: &str = "WINDROW_TORTURE_INSIDE";
/// Bytes of a value, which no codec compresses.
const VALUE_BYTES: usize = 1000;
/// One put in this number is synced.
const SYNCED_OF: u64 = 64;
/// Puts that must succeed once there is room.
const MORE: u64 = 200;
/// The room that a file may take beyond its length: a block, and one for its extents.
const SLACK_BYTES: u64 = 8 << 10;
/// A stranger takes the device's free bytes divided by this, and gives them back.
const BALLAST_SHARE: u64 = 4;

/// The arguments of a run.
#[derive(Args, Clone, Debug)]
pub struct Plan {
    /// Sizes of the device, in MiB.
    #[arg(long, value_delimiter = ',', default_values_t = [8, 16, 32, 64, 128, 256])]
    pub sizes: Vec<u64>,
    /// The seed of all values.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Looks for the smallest device on which everything works instead.
    #[arg(long)]
    pub least: bool,
    /// Uses this directory, which a file system of one's own is mounted at.
    #[arg(long)]
    pub at: Option<PathBuf>,
}

/// Settings by name.
type Preset = (&'static str, &'static [(&'static str, &'static str)]);

/// Nothing set, and everything as small as it may be.
const PRESETS: [Preset; 2] =
    [("defaults", &[]), ("smallest", &[("memory_bytes", "8MiB"), ("memtable_bytes", "64KiB")])];

/// The way to go on once there is room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Resume,
    Reopen,
}

/// The result of a call: done, or refused cleanly for lack of room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Done(bool);

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 { "yes" } else { "no room" })
    }
}

/// The results of a case.
struct Report {
    puts: u64,
    flush: Done,
    merge: Done,
    close: Done,
    reopen: Done,
    closed_bytes: u64,
}

/// A tmpfs, unmounted when dropped; or a given directory.
struct Device {
    point: PathBuf,
    mounted: bool,
}

impl Device {
    fn new(point: &Path, bytes: u64) -> Result<Device, String> {
        let data = std::ffi::CString::new(format!("size={bytes}")).expect("no nul");
        mount("tmpfs", point, "tmpfs", MountFlags::NOATIME, Some(&*data))
            .map_err(|errno| format!("mount {}: {errno}", point.display()))?;
        Ok(Device { point: point.to_owned(), mounted: true })
    }

    fn given(point: &Path) -> Device {
        Device { point: point.to_owned(), mounted: false }
    }

    fn db(&self) -> PathBuf {
        self.point.join("db")
    }

    fn free_bytes(&self) -> Result<u64, String> {
        let stat = rustix::fs::statvfs(&self.point).map_err(|e| e.to_string())?;
        Ok(stat.f_bavail * stat.f_frsize)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if self.mounted {
            let _ = unmount(&self.point, UnmountFlags::DETACH);
        }
    }
}

/// Runs every case, or searches for the least device.
///
/// # Errors
/// The write that was lost, the refusal that was not clean, or the room that stayed reserved.
pub fn run(plan: &Plan) -> Result<Outcome, Failure> {
    let plain = |why: String| Failure { why, seed: plan.seed, kept: None };
    let scratch = tempfile::tempdir().map_err(|e| plain(e.to_string()))?;
    if plan.at.is_none()
        && let Err(why) = Device::new(scratch.path(), 1 << 20)
    {
        return Ok(Outcome::Skipped(in_namespace(&why)));
    }
    if plan.least {
        return least(plan, scratch.path()).map_err(plain);
    }
    println!(
        "| device, MiB | settings | way | puts | flush | merge | close | reopen | closed, KiB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut cases = 0;
    for &mib in &plan.sizes {
        for preset in PRESETS {
            for way in [Way::Resume, Way::Reopen] {
                if stop::requested() {
                    break;
                }
                let report = case(plan, scratch.path(), mib << 20, preset, way)
                    .map_err(|why| plain(format!("{mib} MiB, {}, {way:?}: {why}", preset.0)))?;
                let Report { puts, flush, merge, close, reopen, closed_bytes } = report;
                let (name, kib) = (preset.0, closed_bytes >> 10);
                println!(
                    "| {mib} | {name} | {way:?} | {puts} | {flush} | {merge} | {close} | {reopen} | {kib} |"
                );
                cases += 1;
            }
        }
    }
    Ok(Outcome::Passed(format!(
        "{cases} small devices filled; nothing acknowledged was lost, nothing unused stayed \
         reserved, and all went on once there was room"
    )))
}

/// Starts the program again in a namespace where it may mount. Returns why it could not.
fn in_namespace(why: &str) -> String {
    const UNSHARE: [&str; 3] = ["--user", "--map-root-user", "--mount"];
    let may = || Command::new("unshare").args(UNSHARE).arg("true").output();
    if std::env::var_os(INSIDE).is_some() || !may().is_ok_and(|output| output.status.success()) {
        return format!("needs root, or user namespaces: {why}");
    }
    let program = std::env::current_exe().unwrap_or_default();
    let mut command = Command::new("unshare");
    command.args(UNSHARE).arg(program).args(std::env::args_os().skip(1)).env(INSIDE, "1");
    format!("unshare: {}", command.exec())
}

fn options((_, settings): Preset) -> Result<Options, String> {
    let mut options = Options::default();
    for (name, value) in settings {
        options.settings.set(name, value).map_err(|e| e.to_string())?;
    }
    Ok(options)
}

/// Returns the result of a call, or `None` if it was cleanly refused for lack of room.
fn clean<T>(what: &str, result: Result<T, Error>) -> Result<Option<T>, String> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_clean(&error) => Ok(None),
        Err(error) => Err(format!("{what}: {error}")),
    }
}

fn is_clean(error: &Error) -> bool {
    let tells = error.to_string().contains("no space left");
    error.kind() == ErrorKind::NoSpace || error.kind() == ErrorKind::ReadOnly && tells
}

fn key(n: u64) -> String {
    format!("key{n:012}")
}

/// Returns the n-th value of a seed.
fn value(seed: u64, n: u64) -> Vec<u8> {
    let mut rng = Rng::new(Rng::new(seed ^ n).next_u64());
    (0..VALUE_BYTES / 8).flat_map(|_| rng.next_u64().to_le_bytes()).collect()
}

/// Puts until one is refused, `most` at most. Returns the number of acknowledged puts.
fn fill(db: &Db, seed: u64, from: u64, most: u64) -> Result<u64, String> {
    for n in from..from.saturating_add(most) {
        let sync = if n % SYNCED_OF == 0 { WriteSync::Yes } else { WriteSync::No };
        if clean("put", db.put_with(key(n), value(seed, n), sync))?.is_none() {
            return Ok(n);
        }
    }
    Ok(from + most)
}

/// Checks that everything acknowledged is present, and at most one put more, whose sync failed.
fn check(db: &Db, seed: u64, puts: u64) -> Result<(), String> {
    let mut n = 0;
    for item in db.iter() {
        let (found, bytes) = item.map_err(|e| format!("read: {e}"))?;
        if *found != *key(n).as_bytes() || *bytes != value(seed, n)[..] {
            return Err(format!("entry {n} of {puts} is missing, or another"));
        }
        n += 1;
    }
    if n < puts || puts + 1 < n { Err(format!("{n} of {puts} are there")) } else { Ok(()) }
}

/// Returns the bytes that files take of the device.
fn taken(dir: &Path) -> Result<u64, String> {
    let mut sum = 0;
    let failed = |e: std::io::Error| format!("{}: {e}", dir.display());
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let data = entry.and_then(|entry| entry.metadata()).map_err(failed)?;
        sum += data.blocks() * 512;
    }
    Ok(sum)
}

/// Checks that nothing is reserved beyond the lengths of files. After a clean close a log has
/// almost no contents, so its length does not count. Returns the bytes taken.
fn check_reserved(device: &Device, clean: bool) -> Result<u64, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", device.db().display());
    let mut sum = 0;
    for entry in std::fs::read_dir(device.db()).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (name, data) = (entry.file_name(), entry.metadata().map_err(failed)?);
        let is_log = name.to_string_lossy().ends_with(".wal");
        let held = if is_log && clean { 0 } else { data.len() };
        let taken = data.blocks() * 512;
        if held + SLACK_BYTES < taken {
            return Err(format!("{}: {taken} bytes are taken for {held}", name.display()));
        }
        sum += taken;
    }
    Ok(sum)
}

fn take_ballast(device: &Device, bytes: u64) -> Result<PathBuf, String> {
    let path = device.point.join("ballast");
    std::fs::write(&path, vec![0x5a; bytes as usize]).map_err(|e| format!("ballast: {e}"))?;
    Ok(path)
}

fn case(
    plan: &Plan,
    scratch: &Path,
    bytes: u64,
    preset: Preset,
    way: Way,
) -> Result<Report, String> {
    let device = match &plan.at {
        Some(point) => Device::given(point),
        None => Device::new(scratch, bytes)?,
    };
    let ballast = take_ballast(&device, device.free_bytes()? / BALLAST_SHARE)?;
    let seed = plan.seed ^ bytes;
    let db = Db::open_with(device.db(), options(preset)?)
        .map_err(|e| format!("with {} bytes free: {e}", device.free_bytes().unwrap_or(0)))?;
    let puts = fill(&db, seed, 0, u64::MAX)?;
    check(&db, seed, puts)?;
    let flush = Done(clean("flush", db.flush())?.is_some());
    let merge = Done(clean("compact", db.compact())?.is_some());
    check(&db, seed, puts)?;
    let remove = |path: &Path| std::fs::remove_file(path).map_err(|e| e.to_string());
    let (close, reopen, db) = match way {
        Way::Resume => {
            remove(&ballast)?;
            db.resume().map_err(|e| format!("resume: {e}"))?;
            go_on(&db, seed, puts)?;
            let close = Done(clean("close", db.close())?.is_some());
            drop(db);
            let db = Db::open_with(device.db(), options(preset)?);
            (close, Done(true), db.map_err(|e| format!("reopen: {e}"))?)
        }
        Way::Reopen => {
            let close = Done(clean("close", db.close())?.is_some());
            drop(db);
            check_reserved(&device, false)?;
            let again = clean("reopen", Db::open_with(device.db(), options(preset)?))?;
            let reopen = Done(again.is_some());
            if let Some(db) = again {
                check(&db, seed, puts)?;
            }
            remove(&ballast)?;
            let db = Db::open_with(device.db(), options(preset)?);
            let db = db.map_err(|e| format!("reopen, with room: {e}"))?;
            go_on(&db, seed, puts)?;
            (close, reopen, db)
        }
    };
    check(&db, seed, puts + MORE)?;
    db.verify().and_then(|report| report.into_result()).map_err(|e| format!("verify: {e}"))?;
    db.close().map_err(|e| format!("close, with room: {e}"))?;
    let closed_bytes = check_reserved(&device, true)?;
    let _ = std::fs::remove_dir_all(device.db());
    Ok(Report { puts, flush, merge, close, reopen, closed_bytes })
}

/// Goes on after room was made.
fn go_on(db: &Db, seed: u64, puts: u64) -> Result<(), String> {
    // A reader may have seen the refused put: it is put again.
    let done = fill(db, seed, puts, MORE)?;
    if done < puts + MORE {
        return Err(format!("with room again, {} of {MORE} puts were refused", puts + MORE - done));
    }
    db.flush().map_err(|e| format!("flush, with room again: {e}"))
}

/// Returns the smallest device on which a little of everything works, in steps of 64 KiB.
fn least(plan: &Plan, scratch: &Path) -> Result<Outcome, String> {
    let mut found = Vec::new();
    for preset in PRESETS {
        let works = |kib: u64| little(plan, scratch, kib << 10, preset).is_ok();
        let (mut no, mut yes) = (0, 64 << 10);
        if !works(yes) {
            return Err(little(plan, scratch, yes << 10, preset).unwrap_err());
        }
        while yes - no > 64 {
            let middle = (yes + no) / 128 * 64;
            if works(middle) { yes = middle } else { no = middle }
        }
        let (open, closed) = little(plan, scratch, 64 << 20, preset)?;
        found.push(format!(
            "{}: a device of {yes} KiB; {} KiB while open and empty, {} closed",
            preset.0,
            open >> 10,
            closed >> 10
        ));
    }
    Ok(Outcome::Passed(found.join("; ")))
}

/// Opens, puts a hundred, flushes, merges, closes and reopens. Returns the room that an empty
/// database takes when open and when closed.
fn little(plan: &Plan, scratch: &Path, bytes: u64, preset: Preset) -> Result<(u64, u64), String> {
    let text = |e: Error| e.to_string();
    let device = Device::new(scratch, bytes)?;
    let open = || Db::open_with(device.db(), options(preset)?).map_err(text);
    let db = open()?;
    db.wait_idle().map_err(text)?;
    let open_bytes = taken(&device.db())?;
    db.close().map_err(text)?;
    drop(db);
    let closed_bytes = taken(&device.db())?;
    let db = open()?;
    let puts = fill(&db, plan.seed, 0, 100)?;
    if puts < 100 {
        return Err(format!("{puts} puts of 100"));
    }
    db.flush().and_then(|()| db.compact()).and_then(|()| db.close()).map_err(text)?;
    drop(db);
    let db = open()?;
    check(&db, plan.seed, puts)?;
    db.close().map_err(text)?;
    Ok((open_bytes, closed_bytes))
}
