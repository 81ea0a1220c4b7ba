//! An actor: a process of a scenario, this program started once more. It opens a database, runs
//! commands, one in each line, and answers each line: `ok N`, or `no` and the error in its words.
//!
//! Owns: the commands, and the keys and values: numbered from 0, the values marked with the
//! database's tag, so that one scan tells whether any is missing, and which database it is. Never
//! does: judge more than that.

use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use windrow::settings::Settings;
use windrow::{Batch, Db, Options, WriteSync};
use windrow_env::testing::{ForkedChild, Rng};

/// The exit code of a forked child whose copy of the handle is not inert.
const NOT_INERT: i32 = 9;

/// The settings of all actors: a few hundred keys make several tables.
///
/// # Errors
/// The setting that is unknown.
pub fn options() -> Result<Options, String> {
    let mut settings = Settings::default();
    for (name, value) in
        [("memory_bytes", "8MiB"), ("memtable_bytes", "64KiB"), ("file_bytes", "64KiB")]
    {
        settings.set(name, value).map_err(|e| e.to_string())?;
    }
    Ok(Options { settings, ..Options::default() })
}

/// Returns the `number`-th key.
pub fn key(number: u64) -> String {
    format!("{number:010}")
}

/// Returns its value in the database of this tag.
pub fn value(tag: &str, number: u64) -> Vec<u8> {
    let mut bytes = format!("{tag}/{number}/").into_bytes();
    let mut rng = Rng::new(number);
    for _ in 0..4 + rng.below(40) {
        bytes.extend_from_slice(&rng.next_u64().to_le_bytes());
    }
    bytes
}

/// Reads all keys in every way. Returns their number.
///
/// # Errors
/// The key that is missing, wrong or damaged.
pub fn check(db: &Db, tag: &str) -> Result<u64, String> {
    let mut count = 0;
    for item in db.iter() {
        let (found, bytes) = item.map_err(|e| e.to_string())?;
        if *found != *key(count).as_bytes() {
            let shown = String::from_utf8_lossy(&found).into_owned();
            return Err(format!("{shown} is where {} must be", key(count)));
        }
        if *bytes != *value(tag, count) {
            return Err(format!("{} has another value than {tag}'s", key(count)));
        }
        count += 1;
    }
    let numbers: Vec<u64> = (0..count).collect();
    for some in numbers.chunks(200) {
        let keys: Vec<String> = some.iter().map(|&number| key(number)).collect();
        for (&number, found) in some.iter().zip(db.multi_get(&keys)) {
            let found = found.map_err(|e| e.to_string())?;
            if found.as_deref() != Some(&*value(tag, number)) {
                return Err(format!("multi_get gives another value of {}", key(number)));
            }
        }
    }
    Ok(count)
}

/// Runs commands until there is no more input.
pub fn run() -> ExitCode {
    let mut actor = Actor::default();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let answer = match actor.obey(&line) {
            Ok(count) => format!("ok {count}"),
            Err(why) => format!("no {}", why.replace('\n', " ")),
        };
        if writeln!(std::io::stdout(), "{answer}").is_err() {
            break;
        }
    }
    // Without a close of the database: a command closes it.
    std::process::exit(0);
}

#[derive(Default)]
struct Actor {
    db: Option<Db>,
    tag: String,
    next: u64,
}

impl Actor {
    fn db(&self) -> Result<&Db, String> {
        self.db.as_ref().ok_or_else(|| "nothing is open".to_owned())
    }

    /// Runs one command. Answers with the number of keys, or 0.
    fn obey(&mut self, line: &str) -> Result<u64, String> {
        let words: Vec<&str> = line.split(' ').collect();
        let none = |done: windrow::Result<()>| done.map(|()| 0).map_err(|e| e.to_string());
        match words[..] {
            ["open", dir, tag] => self.open(dir, tag, false),
            ["read", dir, tag] => self.open(dir, tag, true),
            ["destroy", dir] => none(Db::destroy(dir)),
            ["repair", dir] => none(windrow::repair(dir, options()?).map(|_| ())),
            ["write", count] => self.write(count, WriteSync::No),
            ["write", count, "synced"] => self.write(count, WriteSync::Yes),
            ["check"] => check(self.db()?, &self.tag),
            ["flush"] => none(self.db()?.flush()),
            ["compact"] => none(self.db()?.compact()),
            ["verify"] => none(self.db()?.verify().and_then(|r| r.into_result()).map(|_| ())),
            ["close"] => none(self.db()?.close()),
            ["drop"] => Ok(self.db.take().map_or(0, |_| 0)),
            ["chdir", dir] => {
                std::env::set_current_dir(dir).map(|()| 0).map_err(|e| format!("chdir: {e}"))
            }
            ["uid", uid] => become_user(uid.parse().map_err(|_| "no number".to_owned())?),
            ["fork", how] => self.fork(how, ""),
            ["fork", how, path] => self.fork(how, path),
            _ => Err(format!("`{line}` is no command")),
        }
    }

    fn open(&mut self, dir: &str, tag: &str, read_only: bool) -> Result<u64, String> {
        let mut options = options()?;
        options.read_only = read_only;
        let db = Db::open_with(dir, options).map_err(|e| e.to_string())?;
        self.next = check(&db, tag)?;
        tag.clone_into(&mut self.tag);
        self.db = Some(db);
        Ok(self.next)
    }

    fn write(&mut self, count: &str, sync: WriteSync) -> Result<u64, String> {
        let count: u64 = count.parse().map_err(|_| "no number".to_owned())?;
        for _ in 0..count {
            let written = self.db()?.put_with(key(self.next), value(&self.tag, self.next), sync);
            written.map_err(|e| format!("after {}: {e}", self.next))?;
            self.next += 1;
        }
        Ok(self.next)
    }

    /// Forks a child that uses its copy of the handle, and waits for it (except for one that
    /// lingers: the answer is its process id).
    fn fork(&mut self, how: &str, path: &str) -> Result<u64, String> {
        if how == "own" || how == "reopen" {
            // A lock that another thread has during the fork stays locked in the child, inside of
            // libraries too. So a fork whose child opens a database waits until the threads are
            // idle.
            self.db()?.wait_idle().map_err(|e| e.to_string())?;
        }
        let pid = std::process::id();
        let child = ForkedChild::start(|| match how {
            "drop" => {
                self.db = None;
                0
            }
            "unwind" => {
                let _db = self.db.take();
                std::panic::resume_unwind(Box::new("on purpose"))
            }
            "exit" => std::process::exit(0),
            "_exit" => 0,
            "linger" => {
                linger_until(Path::new(path));
                self.db = None;
                0
            }
            _ => self.in_child(how, path, pid).map_or(NOT_INERT, |()| 0),
        });
        let child = child.map_err(|e| format!("fork: {e}"))?;
        if how == "linger" {
            return Ok(u64::from(child.id()));
        }
        let wanted = if how == "unwind" { 101 } else { 0 };
        match child.wait().map_err(|e| format!("wait: {e}"))? {
            Some(code) if code == wanted => Ok(self.next),
            Some(NOT_INERT) => Err(format!("a child's {how} was not refused as it must be")),
            Some(code) => Err(format!("a child that was to {how} ended with {code}")),
            None => Err(format!("a child that was to {how} hung, or died by a signal")),
        }
    }

    /// Runs the attempts of a child. Each must be refused, or must affect the child alone.
    fn in_child(&mut self, how: &str, path: &str, parent: u32) -> Option<()> {
        let db = self.db.as_ref()?;
        let keys: Vec<String> = (0..self.next).map(key).collect();
        match how {
            "close" => is_refused(db.close()),
            "write" => {
                let mut batch = Batch::new();
                batch.put(db, key(self.next), "the child's");
                is_refused(db.put_with(key(0), "the child's", WriteSync::Yes))?;
                is_refused(db.write(batch, WriteSync::Yes))?;
                is_refused(db.delete_range(key(0), key(self.next)))?;
                is_refused(db.sync())?;
                is_refused(db.flush())
            }
            "read" => {
                is_refused(db.get(key(0)))?;
                is_refused(db.iter().next()?)?;
                db.multi_get(&keys).into_iter().try_for_each(is_refused)
            }
            "reopen" => {
                let error = Db::open_with(path, options().ok()?).err()?.to_string();
                (error.starts_with("busy") && error.contains(&parent.to_string())).then_some(())
            }
            "own" => {
                let mut own = Actor::default();
                own.open(path, "own", false).ok()?;
                own.write("500", WriteSync::No).ok()?;
                own.db().ok()?.flush().ok()?;
                own.db().ok()?.close().ok()
            }
            _ => None,
        }
    }
}

fn is_refused<T>(result: windrow::Result<T>) -> Option<()> {
    let error = result.err()?.to_string();
    (error.starts_with("closed") && error.contains("fork")).then_some(())
}

fn linger_until(path: &Path) {
    while !path.exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Gives up root for good, while this is the only thread.
fn become_user(id: u32) -> Result<u64, String> {
    use rustix::thread::{Gid, Uid, set_thread_res_gid, set_thread_res_uid};
    let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
    set_thread_res_gid(gid, gid, gid)
        .and_then(|()| set_thread_res_uid(uid, uid, uid))
        .map(|()| 0)
        .map_err(|e| format!("become user {id}: {e}"))
}
