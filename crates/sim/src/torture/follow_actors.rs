//! The processes of `torture follow`: a writer and its followers, and the board that they
//! share.
//!
//! Owns: the writes, and the contents that must then be read. Never does: start or end a process.

use clap::{Args, ValueEnum};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use windrow::{Batch, Db, Follower, Keyspace, Options, WriteSync};
use windrow_env::testing::Rng;

/// Slots that are written in turn.
const SLOTS: u64 = 20_000;
/// Batches whose number is a multiple of this delete their slots.
const DELETES: u64 = 7;

const ACKNOWLEDGED_AT: u64 = 0;
pub(super) const OVER_AT: u64 = 8;
/// Each follower has a counter of its refreshes from this place on.
const REFRESHES_AT: u64 = 16;
const BOARD_BYTES: u64 = 1024;

/// The kind of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Writes.
    Writer,
    /// Follows.
    Reader,
}

/// The arguments of a process.
#[derive(Args, Clone, Debug)]
pub struct Task {
    /// Its kind.
    #[arg(long, value_enum)]
    pub kind: Kind,
    /// Its number.
    #[arg(long)]
    pub number: u64,
    /// The database.
    #[arg(long)]
    pub dir: PathBuf,
    /// The file in which processes tell each other their progress.
    #[arg(long)]
    pub board: PathBuf,
    /// How often a follower refreshes, in ms.
    #[arg(long)]
    pub every_ms: u64,
}

impl Task {
    pub(super) fn arguments(&self) -> Vec<String> {
        let kind = if self.kind == Kind::Writer { "writer" } else { "reader" };
        let (dir, board) = (self.dir.display().to_string(), self.board.display().to_string());
        let (number, every_ms) = (self.number.to_string(), self.every_ms.to_string());
        let pairs = [
            ("--kind", kind.to_owned()),
            ("--number", number),
            ("--dir", dir),
            ("--board", board),
            ("--every-ms", every_ms),
        ];
        pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
    }
}

/// Numbers that all processes see, in a file.
pub(super) struct Board(File);

impl Board {
    pub(super) fn create(path: &Path) -> Result<Board, String> {
        let board = File::options().create(true).truncate(true).read(true).write(true).open(path);
        let board = board.and_then(|file| file.set_len(BOARD_BYTES).map(|()| file));
        board.map(Board).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn open(path: &Path) -> Result<Board, String> {
        let board = File::options().read(true).write(true).open(path);
        board.map(Board).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn get(&self, at: u64) -> Result<u64, String> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, at).map_err(|error| format!("the board: {error}"))?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub(super) fn set(&self, at: u64, number: u64) -> Result<(), String> {
        let written = self.0.write_all_at(&number.to_le_bytes(), at);
        written.map_err(|error| format!("the board: {error}"))
    }

    /// Returns the number of the last batch that was acknowledged.
    pub(super) fn acknowledged(&self) -> Result<u64, String> {
        self.get(ACKNOWLEDGED_AT)
    }

    /// Returns the number of all followers' refreshes.
    pub(super) fn refreshes(&self) -> Result<u64, String> {
        (REFRESHES_AT..BOARD_BYTES).step_by(8).map(|at| self.get(at)).sum()
    }

    /// Waits for the first batches.
    pub(super) fn wait_for_batches(&self, most: Duration) -> Result<(), String> {
        let begin = Instant::now();
        while self.acknowledged()? == 0 {
            if begin.elapsed() > most {
                return Err("the writer does not begin".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

/// Runs the process of its kind. Exit code 4: a promise was broken.
pub fn run(task: &Task) -> ExitCode {
    let done = Board::open(&task.board).and_then(|board| match task.kind {
        Kind::Writer => write(task, &board),
        Kind::Reader => read(task, &board),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{:?} {}: {why}", task.kind, task.number);
            ExitCode::from(super::worker::EXIT_BROKEN)
        }
    }
}

fn options() -> Options {
    let mut options = Options::default();
    options.settings.memory_bytes = 64 << 20;
    options.settings.memtable_bytes = 2 << 20;
    options
}

fn text(error: windrow::Error) -> String {
    error.to_string()
}

fn slot_key(slot: u64) -> String {
    format!("slot{slot:06}")
}

fn value_of(n: u64) -> Vec<u8> {
    let mut value = n.to_le_bytes().to_vec();
    value.resize(8 + (n % 400) as usize, n as u8);
    value
}

/// Returns the number of the last of `n` batches that wrote to the slot.
fn last_of(slot: u64, n: u64) -> Option<u64> {
    let since = (n % SLOTS + SLOTS - slot) % SLOTS;
    n.checked_sub(since).filter(|last| *last > 0)
}

fn number_in(space: &Keyspace) -> Result<u64, String> {
    let value = space.get("number").map_err(text)?;
    Ok(value.map_or(0, |value| u64::from_le_bytes(value[..8].try_into().unwrap_or_default())))
}

fn write(task: &Task, board: &Board) -> Result<(), String> {
    let db = Db::open_with(&task.dir, options()).map_err(text)?;
    let other = db.keyspace("other").map_err(text)?;
    let mut n = number_in(&other)?;
    let acknowledged = board.acknowledged()?;
    if n < acknowledged {
        return Err(format!("{acknowledged} batches were acknowledged, and {n} are there"));
    }
    let mut batch = Batch::new();
    while n % 64 != 0 || board.get(OVER_AT)? == 0 {
        n += 1;
        batch.clear();
        batch.put(&db, "number", n.to_le_bytes());
        batch.put(&other, "number", n.to_le_bytes());
        let slot = slot_key(n % SLOTS);
        match n % DELETES {
            0 => batch.delete(&other, slot),
            _ => batch.put(&other, slot, value_of(n)),
        };
        let sync = if n % 4096 == 0 { WriteSync::Yes } else { WriteSync::No };
        db.write(&mut batch, sync).map_err(text)?;
        board.set(ACKNOWLEDGED_AT, n)?;
    }
    db.close().map_err(text)
}

fn read(task: &Task, board: &Board) -> Result<(), String> {
    let mut rng = Rng::new(task.number);
    let mut acknowledged = board.acknowledged()?;
    let follower = Follower::open_with(&task.dir, options()).map_err(text)?;
    let (mut seen, mut refreshes, mut over) = (0, 1, false);
    // A state that is kept for long: its number, and its handle.
    let mut kept: Option<(u64, Db)> = None;
    loop {
        board.set(REFRESHES_AT + 8 * (task.number % 100), refreshes)?;
        let db = follower.db();
        let n = number_in(&db)?;
        if n < acknowledged || n < seen {
            return Err(format!(
                "{n} is seen; {acknowledged} was acknowledged, {seen} seen before"
            ));
        }
        seen = n;
        check(&db, n, &mut rng, 50)?;
        if rng.below(100) == 0
            && let Some((n, db)) = kept.replace((n, db))
        {
            check(&db, n, &mut rng, 50)?;
            check_all(&db, n)?;
        }
        if over {
            return kept.map_or(Ok(()), |(n, db)| check_all(&db, n));
        }
        std::thread::sleep(Duration::from_millis(task.every_ms));
        over = board.get(OVER_AT)? != 0;
        acknowledged = board.acknowledged()?;
        follower.refresh().map_err(text)?;
        refreshes += 1;
    }
}

/// Checks some slots, by gets.
fn check(db: &Db, n: u64, rng: &mut Rng, count: u64) -> Result<(), String> {
    let other = db.open_keyspace("other").map_err(text)?.ok_or("a keyspace is missing")?;
    if number_in(&other)? != n {
        return Err(format!("half of a batch: {n}, and {}", number_in(&other)?));
    }
    for _ in 0..count {
        let slot = rng.below(SLOTS);
        let found = other.get(slot_key(slot)).map_err(text)?;
        if found.as_deref() != expected(slot, n).as_deref() {
            return Err(format!("slot {slot} is not as batch {n} left it"));
        }
    }
    Ok(())
}

/// Checks all slots, by a scan.
fn check_all(db: &Db, n: u64) -> Result<(), String> {
    let other = db.open_keyspace("other").map_err(text)?.ok_or("a keyspace is missing")?;
    let mut iter = other.prefix("slot");
    for slot in 0..SLOTS {
        let Some(value) = expected(slot, n) else { continue };
        let (key, found) = iter.next().ok_or("a slot is missing")?.map_err(text)?;
        if *key != *slot_key(slot).as_bytes() || *found != *value {
            return Err(format!("slot {slot} is not as batch {n} left it, in a scan"));
        }
    }
    if iter.next().is_some() { Err("a slot too many".into()) } else { Ok(()) }
}

fn expected(slot: u64, n: u64) -> Option<Vec<u8>> {
    last_of(slot, n).filter(|last| last % DELETES != 0).map(value_of)
}

#[cfg(test)]
mod tests {
    use super::{SLOTS, last_of};

    #[test]
    fn the_last_batch_of_a_slot() {
        assert_eq!(last_of(5, 4), None);
        assert_eq!(last_of(5, 5), Some(5));
        assert_eq!(last_of(5, SLOTS + 4), Some(5));
        assert_eq!(last_of(5, SLOTS + 5), Some(SLOTS + 5));
        assert_eq!(last_of(0, SLOTS - 1), None);
        assert_eq!(last_of(0, SLOTS), Some(SLOTS));
    }
}
